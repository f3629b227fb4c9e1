"""Who was assigned a partition at a time, from recorded facts only.

The answer rests on `ownership_changes`: the last change at or before the moment, and the first one after it. Changes
are ordered by offset, never by clock; the clock only says which of them came before the moment asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.names import require_names, unknown_topic
from groupledger.answers.rows import matching, one_of, records
from groupledger.answers.topics import TopicLife, topic_lives
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record, Value

Holder = tuple[str, str, str | None, str | None]
"""Cluster, group, topic id, and of a share group the member: a partition has at most one holder within it."""

SHARE = "share"

GAPS_NAMED = 10
BEFORE, AFTER = "before", "after"


@dataclass(frozen=True, slots=True)
class Change:
    """A partition changing hands: from `at` on `to_member_id` has it, no longer `from_member_id`. None is nobody."""

    at: datetime
    from_member_id: str | None
    to_member_id: str | None
    held_since: datetime | None
    snapshot_id: str
    offset: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member as its group's snapshot names it."""

    member_id: str
    client_id: str | None = None
    group_instance_id: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """One group's record of the partition: `last` made the state at the moment, `next` ended it.

    `last` is None where the partition had not changed hands yet: nobody had it if the record of the group reaches
    back to the moment (`covered`), else it is not known. `shared`: of a share group, in which others may have the
    partition too, each with a holding of its own; `next` is then about this member alone.
    """

    cluster_id: str
    group_id: str
    topic_id: str | None
    last: Change | None
    next: Change | None
    member: Member | None
    covered: bool
    shared: bool = False

    @property
    def since(self) -> datetime | None:
        """Since when the member had it; None where history does not reach back, or nobody did."""
        if self.last is not None:
            return self.last.at
        return self.next.held_since if self.next is not None else None


@dataclass(frozen=True, slots=True)
class Ownership:
    """The answer for a partition and a moment.

    `notes` say in plain words what limits it; `gaps`: how many gaps of the groups' history lie where it is taken from.
    """

    topic: str
    partition: int
    at: datetime
    holdings: tuple[Holding, ...]
    topics: tuple[TopicLife, ...]
    notes: tuple[str, ...]
    gaps: int = 0


def ownership(
    reader: Reader, topic: str, partition: int, at: datetime, cluster: str | None = None, group: str | None = None
) -> Ownership:
    """Who was assigned `topic`-`partition` by the coordinator at `at`, for every group that ever was.

    A topic, cluster or group the ledger never heard of is a `Fault`; whatever else it cannot tell is a note.
    """
    lives = topic_lives(reader, topic, cluster)
    asked = _Asked(reader, *_changes_of(topic, partition, at, lives, cluster, group))
    changes = _each_owner(asked, asked.around("cast(NULL AS STRING)"))
    if not changes:
        require_names(reader, cluster, group)
        if not lives:
            raise unknown_topic(reader, topic, cluster)
    holdings = tuple(each for each in _with_members(reader, changes, at) if not _is_over(each, lives, at))
    clusters = [cluster] if cluster else sorted({holding.cluster_id for holding in holdings})
    notes = [*_topic_notes(topic, partition, at, lives), *_reach_notes(reader, at, clusters)]
    gaps = _gaps(reader, holdings)
    notes += [f"gap in the history of {row['group_id']} ({row['kind']}): {row['reason']}" for row in gaps[:GAPS_NAMED]]
    if not changes:
        who = f"group {group}" if group else "no group in this ledger"
        notes.insert(0, f"{who} was {'never' if group else 'ever'} assigned {topic}-{partition}")
    return Ownership(topic, partition, at, holdings, lives, tuple(notes), len(gaps))


def _changes_of(
    topic: str, partition: int, at: datetime, lives: tuple[TopicLife, ...], cluster: str | None, group: str | None
) -> tuple[str, dict[str, Value]]:
    """A query of the partition's changes, with the topic's identity as `life` and whether each is before the moment.

    A change that was recorded before a listing showed the topic belongs to the life that comes next.
    """
    known = [life for life in lives if life.topic_id is not None]
    by_id, ids = one_of("t.topic_id", "id", sorted({str(life.topic_id) for life in known}))
    condition, values = matching("t.", cluster_id=cluster, group_id=group)
    values |= ids | {"topic": topic, "partition": partition, "moment": at}
    identities = []
    for number, life in enumerate(known):
        then = "true" if life.until is None else f"t.at < :until_{number}"
        identities.append(f"WHEN t.cluster_id = :cluster_{number} AND {then} THEN :life_{number}")
        values |= {f"cluster_{number}": life.cluster_id, f"life_{number}": str(life.topic_id)}
        values |= {} if life.until is None else {f"until_{number}": life.until}
    identity = f"coalesce(t.topic_id, CASE {' '.join(identities)} END)" if identities else "t.topic_id"
    columns = "t.cluster_id, t.group_id, t.from_member_id, t.to_member_id, t.at, t.held_since, t.snapshot_id, t.offset"
    query = (
        f"SELECT {columns}, {identity} AS life, CASE WHEN t.at <= :moment THEN '{BEFORE}' ELSE '{AFTER}' END AS side "
        f"FROM current_ownership_changes t WHERE (t.topic = :topic OR (t.topic IS NULL AND {by_id})) "
        f"AND t.partition = :partition AND {condition}"
    )
    return query, values


@dataclass(frozen=True, slots=True)
class _Asked:
    """The changes of a partition, as a query."""

    reader: Reader
    changes: str
    values: dict[str, Value]

    def around(self, owner: str, where: str = "true", **more: Value) -> dict[Holder, dict[str, Change]]:
        """For each holder the last change before and the first one after: two rows at most are read.

        `owner` is the member that is asked for, as SQL; null: whoever has the partition.
        """
        nearest = f"CASE WHEN c.side = '{BEFORE}' THEN -c.offset ELSE c.offset END"
        within = "PARTITION BY c.cluster_id, c.group_id, c.life, c.owner, c.side"
        owned = f"SELECT x.*, {owner} AS owner FROM ({self.changes}) x WHERE {where}"
        ranked = f"SELECT c.*, row_number() OVER ({within} ORDER BY {nearest}) AS place FROM ({owned}) c"
        found: dict[Holder, dict[str, Change]] = {}
        for row in records(self.reader, f"SELECT * FROM ({ranked}) r WHERE r.place = 1", **self.values, **more):
            holder = (row["cluster_id"], row["group_id"], row["life"], row["owner"])
            found.setdefault(holder, {})[row["side"]] = _change(row)
        return found


def _is_over(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Whether nobody has the partition because its topic was deleted: no answer, when the name lives on elsewhere."""
    own = [life for life in lives if (life.cluster_id, life.topic_id) == (holding.cluster_id, holding.topic_id)]
    ended = bool(own) and all(life.until is not None and life.until <= at for life in own)
    return ended and holding.last is not None and holding.last.to_member_id is None


def _each_owner(asked: _Asked, changes: dict[Holder, dict[str, Change]]) -> dict[Holder, dict[str, Change]]:
    """The same, with an entry for each owner in place of that of a share group, unless nobody had the partition."""
    shared = _share_groups(asked.reader, {group for _, group, *_ in changes})
    if not shared:
        return changes
    of_shared, values = one_of("x.group_id", "shared", sorted({group for _, group in shared}))
    owners: dict[Holder, dict[str, Change]] = {}
    for side in ("x.from_member_id", "x.to_member_id"):
        for holder, sides in asked.around(side, f"{of_shared} AND {side} IS NOT NULL", **values).items():
            for name, change in sides.items():
                known = owners.setdefault(holder, {}).setdefault(name, change)
                nearer = change.offset > known.offset if name == BEFORE else change.offset < known.offset
                owners[holder][name] = change if nearer else known
    had = {holder: sides for holder, sides in owners.items() if holder[:2] in shared and _had(holder[3], sides)}
    replaced = {holder[:3] for holder in had}
    return {holder: sides for holder, sides in changes.items() if holder[:3] not in replaced} | had


def _had(member_id: str | None, sides: dict[str, Change]) -> bool:
    """Whether the member had the partition at the moment between the two sides."""
    if BEFORE in sides:
        return sides[BEFORE].to_member_id == member_id
    return sides[AFTER].from_member_id == member_id


def _share_groups(reader: Reader, groups: set[str]) -> set[tuple[str, str]]:
    """Those of the groups that were share groups at any time: (cluster, group)."""
    among, values = one_of("t.group_id", "group", sorted(groups))
    query = f"SELECT DISTINCT t.cluster_id, t.group_id FROM current_group_snapshots t WHERE {among}"
    found = records(reader, f"{query} AND t.group_type = '{SHARE}'", **values)
    return {(row["cluster_id"], row["group_id"]) for row in found}


def _change(row: Record) -> Change:
    names = ("at", "from_member_id", "to_member_id", "held_since", "snapshot_id", "offset")
    return Change(*(row[name] for name in names))


def _with_members(reader: Reader, changes: dict[Holder, dict[str, Change]], at: datetime) -> tuple[Holding, ...]:
    """In order of cluster, group, topic id; each with the member that held it at the moment."""
    groups = sorted({group for _, group, *_ in changes})
    snapshots = {change.snapshot_id for sides in changes.values() for change in sides.values()}
    members = _members_of(reader, groups, sorted(snapshots))
    covered = _covered(reader, groups, at)
    holdings = []
    for holder in sorted(changes, key=lambda holder: (*holder[:2], holder[2] or "", holder[3] or "")):
        (cluster, group, topic_id, _), sides = holder, changes[holder]
        last, following = sides.get(BEFORE), sides.get(AFTER)
        member_id = last.to_member_id if last else following.from_member_id if following else None
        member = members.get((last.snapshot_id, member_id)) if last and member_id else None
        member = member or (Member(member_id) if member_id else None)
        shared = holder[3] is not None
        holdings.append(Holding(cluster, group, topic_id, last, following, member, (cluster, group) in covered, shared))
    return tuple(holdings)


def _covered(reader: Reader, groups: list[str], at: datetime) -> set[tuple[str, str]]:
    """The (cluster, group)s with a snapshot at or before the moment."""
    among, values = one_of("t.group_id", "group", groups)
    query = f"SELECT DISTINCT t.cluster_id, t.group_id FROM current_group_snapshots t WHERE {among}"
    found = records(reader, f"{query} AND t.observed_at <= :moment", moment=at, **values)
    return {(row["cluster_id"], row["group_id"]) for row in found}


def _members_of(reader: Reader, groups: list[str], snapshot_ids: list[str]) -> dict[tuple[str, str], Member]:
    of_groups, values = one_of("t.group_id", "group", groups)
    among, ids = one_of("t.snapshot_id", "snapshot", snapshot_ids)
    columns = "t.snapshot_id, t.member_id, t.client_id, t.group_instance_id, t.host"
    query = f"SELECT {columns} FROM current_member_snapshots t WHERE {of_groups} AND {among}"
    found = records(reader, query, **values, **ids)
    names = ("member_id", "client_id", "group_instance_id", "host")
    return {(row["snapshot_id"], row["member_id"]): Member(*(row[name] for name in names)) for row in found}


def _topic_notes(topic: str, partition: int, at: datetime, lives: tuple[TopicLife, ...]) -> Iterator[str]:
    """Says where the name stood for another topic, for none, or had fewer partitions."""
    ids = {life.topic_id for life in lives}
    if len(ids) > 1:
        yield f"{topic} was deleted and made again: {len(ids)} topic ids, each another topic"
    if not lives:
        yield f"no topic listing names {topic}: its ids and partition counts are not known"
    alive = [life for life in lives if life.since <= at and (life.until is None or at < life.until)]
    if lives and not alive:
        yield f"{topic} is in no topic listing at that time; first listed {iso(lives[0].since)}"
    for life in alive:
        if partition >= life.partition_count:
            last = life.partition_count - 1
            yield f"{topic} had partitions 0 to {last} at that time (cluster {life.cluster_id})"


def _reach_notes(reader: Reader, at: datetime, clusters: list[str]) -> Iterator[str]:
    """Says where the moment lies before the first or after the last snapshot of a cluster."""
    among, values = one_of("t.cluster_id", "cluster", clusters) if clusters else ("true", {})
    query = (
        "SELECT t.cluster_id, min(t.observed_at) AS begins, max(t.observed_at) AS ends FROM current_group_snapshots t "
        f"WHERE {among} GROUP BY t.cluster_id ORDER BY t.cluster_id"
    )
    for row in records(reader, query, **values):
        if at < row["begins"]:
            yield f"history of cluster {row['cluster_id']} begins at {iso(row['begins'])}: what was before is not known"
        elif at > row["ends"]:
            yield f"the last snapshot of cluster {row['cluster_id']} is of {iso(row['ends'])}: nothing later is known"


def _gaps(reader: Reader, holdings: tuple[Holding, ...]) -> list[Record]:
    """The gaps between the change before the moment and the one after it: they may hide another."""
    conditions = ["false"]
    values: dict[str, Value] = {}
    for number, holding in enumerate(holdings):
        values |= {f"cluster_{number}": holding.cluster_id, f"group_{number}": holding.group_id}
        values |= {f"since_{number}": holding.last.offset if holding.last else -1}
        here = f"t.cluster_id = :cluster_{number} AND t.group_id = :group_{number} AND t.offset > :since_{number}"
        if holding.next is not None:
            values |= {f"until_{number}": holding.next.offset}
            here += f" AND t.offset <= :until_{number}"
        conditions.append(f"({here})")
    query = f"SELECT t.group_id, t.kind, t.reason FROM current_coverage t WHERE {' OR '.join(conditions)}"
    return records(reader, f"{query} ORDER BY t.cluster_id, t.group_id, t.offset, t.kind, t.reason", **values)
