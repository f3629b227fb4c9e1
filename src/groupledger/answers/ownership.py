"""Who was assigned a partition at a time, from recorded facts only.

The answer rests on `ownership_changes`: the last change at or before the moment, and the first one after it. Changes
are ordered by offset, never by clock; the clock only says which of them came before the moment asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.names import require_names, unknown_topic
from groupledger.answers.reach import reaches
from groupledger.answers.rows import alike, is_pattern, matching, one_of, records
from groupledger.answers.topics import TopicLife, topic_lives
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record, Value

Holder = tuple[str, str, str | None, str | None]
"""Cluster, group, topic id, and where several members may have it the member: at most one holder within it."""

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
class MemberIdentity:
    """A member as its group's snapshot names it."""

    member_id: str
    client_id: str | None = None
    group_instance_id: str | None = None
    host: str | None = None


@dataclass(frozen=True, slots=True)
class Holding:
    """One group's record of the partition: `last` made the state at the moment, `next` ended it.

    `last` is None where the partition had not changed hands yet: nobody had it if the record of the group reaches
    back to the moment (`covered`), else it is not known. `shared`: others may have the partition too, each with a
    holding of its own, and `next` is about this member alone. In a share group that is right; elsewhere `doubled`.
    `generation`: of the snapshot of `last`; a group epoch where the coordinator assigns.
    """

    cluster_id: str
    group_id: str
    topic_id: str | None
    last: Change | None
    next: Change | None
    member: MemberIdentity | None
    covered: bool
    shared: bool = False
    doubled: bool = False
    generation: int | None = None

    @property
    def since(self) -> datetime | None:
        """Since when the member had it; None where history does not reach back, or nobody did."""
        if self.last is not None:
            return self.last.at
        return self.next.held_since if self.next is not None else None


@dataclass(frozen=True, slots=True)
class OwnershipAt:
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
) -> OwnershipAt:
    """Who was assigned `topic`-`partition` by the coordinator at `at`, for every group (or those like `group`).

    A topic, cluster or group the ledger never heard of is a `Fault`; whatever else it cannot tell is a note.
    """
    lives = topic_lives(reader, topic, cluster)
    asked = Changes(reader, *changes_of(topic, partition, at, lives, cluster, group))
    changes = asked.around("cast(NULL AS STRING)")
    groups = _groups(reader, {holder[:2] for holder in changes})
    changes = _each_owner(asked, changes, groups)
    if not changes:
        require_names(reader, cluster, group)
        if not lives:
            raise unknown_topic(reader, topic, cluster)
    holdings = tuple(each for each in _with_members(reader, changes, groups, at) if not _is_over(each, lives, at))
    clusters = [cluster] if cluster else sorted({holding.cluster_id for holding in holdings})
    notes = [*_topic_notes(topic, partition, at, lives), *_reach_notes(reader, at, clusters), *_doubled(holdings)]
    gaps = _gaps(reader, holdings)
    notes += [f"gap in the history of {row['group_id']} ({row['kind']}): {row['reason']}" for row in gaps[:GAPS_NAMED]]
    if not changes:
        notes.insert(0, never_assigned(topic, partition, group))
    return OwnershipAt(topic, partition, at, holdings, lives, tuple(notes), len(gaps))


def never_assigned(topic: str, partition: int, group: str | None) -> str:
    """Says that no group, or not that which was asked for, ever had it."""
    if group is not None and not is_pattern(group):
        return f"group {group} was never assigned {topic}-{partition}"
    among = "in this ledger" if group is None else f"like {group}"
    return f"no group {among} was ever assigned {topic}-{partition}"


def changes_of(
    topic: str, partition: int, at: datetime, lives: tuple[TopicLife, ...], cluster: str | None, group: str | None
) -> tuple[str, dict[str, Value]]:
    """A query of the partition's changes, with the topic's identity as `life` and whether each is before the moment.

    A change that was recorded before a listing showed the topic belongs to the life that comes next.
    """
    known = [life for life in lives if life.topic_id is not None]
    by_id, ids = one_of("t.topic_id", "id", sorted({str(life.topic_id) for life in known}))
    condition, values = matching("t.", cluster_id=cluster)
    of_groups, groups = alike("t.group_id", "group_id", group)
    values |= groups | ids | {"topic": topic, "partition": partition, "moment": at}
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
        f"AND t.partition = :partition AND {condition} AND {of_groups}"
    )
    return query, values


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a partition, as a query."""

    reader: Reader
    changes: str
    values: dict[str, Value]

    def around(self, owner: str, where: str = "true", **more: Value) -> dict[Holder, _Sides]:
        """For each holder the last change before and the first one after: two rows at most are read.

        `owner` is the member that is asked for, as SQL; null: whoever has the partition.
        """
        nearest = f"CASE WHEN c.side = '{BEFORE}' THEN -c.offset ELSE c.offset END"
        given = "CASE WHEN c.to_member_id IS NULL THEN 0 ELSE 1 END"
        taken = "CASE WHEN c.from_member_id IS NULL THEN 0 ELSE 1 END"
        within = "PARTITION BY c.cluster_id, c.group_id, c.life, c.owner, c.side"
        order = f"{nearest}, {given} DESC, {taken} DESC, c.to_member_id, c.from_member_id"
        owned = f"SELECT x.*, {owner} AS owner FROM ({self.changes}) x WHERE {where}"
        ranked = (
            f"SELECT c.*, sum({given} - {taken}) OVER ({within}) AS owners, "
            f"row_number() OVER ({within} ORDER BY {order}) AS place FROM ({owned}) c"
        )
        found: dict[Holder, dict[str, Record]] = {}
        for row in records(self.reader, f"SELECT * FROM ({ranked}) r WHERE r.place = 1", **self.values, **more):
            holder = (row["cluster_id"], row["group_id"], row["life"], row["owner"])
            found.setdefault(holder, {})[row["side"]] = row
        return {holder: _sides(rows.get(BEFORE), rows.get(AFTER)) for holder, rows in found.items()}

    def between(self, since: datetime, until: datetime, limit: int) -> tuple[list[Record], int]:
        """The newest changes after one moment and up to another, by holder and offset, and how many there are.

        Those of one record stand together or not at all.
        """
        rows = f"SELECT x.* FROM ({self.changes}) x WHERE x.at > :since AND x.at <= :until"
        values = self.values | {"since": since, "until": until}
        newest = "x.at DESC, x.offset DESC, x.cluster_id, x.group_id, x.from_member_id, x.to_member_id"
        found = records(self.reader, f"{rows} ORDER BY {newest} LIMIT {limit + 1}", **values)
        total = len(found)
        if total > limit:
            total = records(self.reader, f"SELECT count(*) AS n FROM ({rows}) c", **values)[0]["n"]
        record = itemgetter("cluster_id", "group_id", "offset")
        kept = [row for row in found[:limit] if total <= limit or record(row) != record(found[limit])]
        return sorted(kept, key=lambda row: (*record(row)[:2], row["life"] or "", row["offset"])), total

    def any(self) -> bool:
        """Whether the partition ever changed hands."""
        return bool(records(self.reader, f"SELECT 1 AS found FROM ({self.changes}) x LIMIT 1", **self.values))


@dataclass(frozen=True, slots=True)
class _Sides:
    """The changes next to a moment; `several`: more members than one may have had the partition then."""

    last: Change | None
    next: Change | None
    several: bool = False

    def nearer(self, other: _Sides) -> _Sides:
        """Of each side the change that is nearer to the moment."""
        lasts = [each for each in (self.last, other.last) if each is not None]
        nexts = [each for each in (self.next, other.next) if each is not None]
        offset = attrgetter("offset")
        return _Sides(max(lasts, key=offset, default=None), min(nexts, key=offset, default=None))


def _sides(before: Record | None, after: Record | None) -> _Sides:
    """Several: as many got it, less those who lost it, or whoever had it is not the one it is taken from next."""
    last, following = _change(before), _change(after)
    if last is None or before is None:
        return _Sides(last, following)
    owner = last.to_member_id
    several = before["owners"] != (owner is not None)
    if following is not None and owner is not None:
        several = several or following.from_member_id != owner
    return _Sides(last, following, several)


def _is_over(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Whether nobody has the partition because its topic was deleted: no answer, when the name lives on elsewhere."""
    own = [life for life in lives if (life.cluster_id, life.topic_id) == (holding.cluster_id, holding.topic_id)]
    ended = bool(own) and all(life.until is not None and life.until <= at for life in own)
    return ended and holding.last is not None and holding.last.to_member_id is None


@dataclass(frozen=True, slots=True)
class _Group:
    """What is known of a group's record: when it begins, and whether it ever was a share group."""

    begins: datetime
    share: bool


def _groups(reader: Reader, groups: set[tuple[str, str]]) -> dict[tuple[str, str], _Group]:
    among, values = one_of("t.group_id", "group", sorted({group for _, group in groups}))
    query = (
        "SELECT t.cluster_id, t.group_id, min(t.observed_at) AS begins, "
        f"max(CASE WHEN t.group_type = '{SHARE}' THEN 1 ELSE 0 END) AS share FROM current_group_snapshots t "
        f"WHERE {among} GROUP BY t.cluster_id, t.group_id"
    )
    found = records(reader, query, **values)
    return {(row["cluster_id"], row["group_id"]): _Group(row["begins"], row["share"] == 1) for row in found}


def _each_owner(
    asked: Changes, changes: dict[Holder, _Sides], groups: dict[tuple[str, str], _Group]
) -> dict[Holder, _Sides]:
    """The same, with an entry for each owner where several members may have it, unless nobody had the partition."""
    shared = {holder[:2] for holder in changes if holder[:2] in groups and groups[holder[:2]].share}
    shared |= {holder[:2] for holder, sides in changes.items() if sides.several}
    if not shared:
        return changes
    of_shared, values = one_of("x.group_id", "shared", sorted({group for _, group in shared}))
    owners: dict[Holder, _Sides] = {}
    for side in ("x.from_member_id", "x.to_member_id"):
        for holder, sides in asked.around(side, f"{of_shared} AND {side} IS NOT NULL", **values).items():
            owners[holder] = sides.nearer(owners.get(holder, sides))
    had = {holder: sides for holder, sides in owners.items() if holder[:2] in shared and _had(holder[3], sides)}
    replaced = {holder[:3] for holder in had}
    return {holder: sides for holder, sides in changes.items() if holder[:3] not in replaced} | had


def _had(member_id: str | None, sides: _Sides) -> bool:
    """Whether the member had the partition at the moment between the two sides."""
    if sides.last is not None:
        return sides.last.to_member_id == member_id
    return sides.next is not None and sides.next.from_member_id == member_id


def _change(row: Record | None) -> Change | None:
    names = ("at", "from_member_id", "to_member_id", "held_since", "snapshot_id", "offset")
    return None if row is None else Change(*(row[name] for name in names))


def _with_members(
    reader: Reader, changes: dict[Holder, _Sides], groups: dict[tuple[str, str], _Group], at: datetime
) -> tuple[Holding, ...]:
    """In order of cluster, group, topic id; each with the member that held it at the moment."""
    names = sorted({group for _, group, *_ in changes})
    snapshots = sorted({sides.last.snapshot_id for sides in changes.values() if sides.last is not None})
    members, numbers = _members_of(reader, names, snapshots), generations(reader, names, snapshots)
    owners = Counter(holder[:3] for holder in changes if holder[3] is not None)
    holdings = []
    for holder in sorted(changes, key=lambda holder: (*holder[:2], holder[2] or "", holder[3] or "")):
        (cluster, group, topic_id, owner), sides = holder, changes[holder]
        known = groups.get((cluster, group))
        member_id = sides.last.to_member_id if sides.last else sides.next.from_member_id if sides.next else None
        evidence = (cluster, group, sides.last.snapshot_id) if sides.last else None
        member = members.get((sides.last.snapshot_id, member_id)) if sides.last and member_id else None
        share = known is not None and known.share
        holding = Holding(
            cluster_id=cluster,
            group_id=group,
            topic_id=topic_id,
            last=sides.last,
            next=sides.next,
            member=member or (MemberIdentity(member_id) if member_id else None),
            covered=known is not None and known.begins <= at,
            shared=owner is not None and (share or owners[holder[:3]] > 1),
            doubled=not share and owners[holder[:3]] > 1,
            generation=numbers.get(evidence) if evidence else None,
        )
        holdings.append(holding)
    return tuple(holdings)


def generations(reader: Reader, groups: list[str], snapshot_ids: list[str]) -> dict[tuple[str, str, str], int | None]:
    """The generation or group epoch of snapshots, by cluster, group and snapshot id."""
    of_groups, values = one_of("t.group_id", "group", groups)
    among, ids = one_of("t.snapshot_id", "snapshot", snapshot_ids)
    query = (
        "SELECT t.cluster_id, t.group_id, t.snapshot_id, coalesce(t.generation, t.group_epoch) AS number "
        f"FROM current_group_snapshots t WHERE {of_groups} AND {among}"
    )
    found = records(reader, query, **values, **ids)
    return {(row["cluster_id"], row["group_id"], row["snapshot_id"]): row["number"] for row in found}


def _members_of(reader: Reader, groups: list[str], snapshot_ids: list[str]) -> dict[tuple[str, str], MemberIdentity]:
    of_groups, values = one_of("t.group_id", "group", groups)
    among, ids = one_of("t.snapshot_id", "snapshot", snapshot_ids)
    columns = "t.snapshot_id, t.member_id, t.client_id, t.group_instance_id, t.host"
    query = f"SELECT {columns} FROM current_member_snapshots t WHERE {of_groups} AND {among}"
    found = records(reader, query, **values, **ids)
    names = ("member_id", "client_id", "group_instance_id", "host")
    return {(row["snapshot_id"], row["member_id"]): MemberIdentity(*(row[name] for name in names)) for row in found}


def _topic_notes(topic: str, partition: int, at: datetime, lives: tuple[TopicLife, ...]) -> Iterator[str]:
    """Says where the name stood for another topic, for none, or had fewer partitions."""
    clusters = Counter(cluster for cluster, _ in {(life.cluster_id, life.topic_id) for life in lives})
    for cluster, number in sorted(clusters.items()):
        if number > 1:
            where = f" (cluster {cluster})" if len(clusters) > 1 else ""
            yield f"{topic} was deleted and made again: {number} topic ids, each another topic{where}"
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
    for cluster, (begins, ends) in reaches(reader, clusters).items():
        if at < begins:
            yield f"history of cluster {cluster} begins at {iso(begins)}: what was before is not known"
        elif at > ends:
            yield f"the last snapshot of cluster {cluster} is of {iso(ends)}: nothing later is known"


def _doubled(holdings: tuple[Holding, ...]) -> Iterator[str]:
    """Says where a group that is no share group has the partition recorded for several members."""
    for (cluster, group), number in Counter(
        (each.cluster_id, each.group_id) for each in holdings if each.doubled
    ).items():
        yield f"{group} (cluster {cluster}) is no share group, and the record gives the partition to {number} members"


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
