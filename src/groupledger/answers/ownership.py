"""Who was assigned a partition at a time, from recorded facts only.

The answer rests on `ownership_changes`: the last change at or before the moment, and the first one after it. Changes
are ordered by offset, never by clock; the clock only says which of them came before the moment asked for.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.names import require_names, unknown_topic
from groupledger.answers.reach import reaches
from groupledger.answers.rows import alike, is_pattern, matching, one_of, records
from groupledger.answers.states import CONSUMER, SHARE
from groupledger.answers.topics import TopicLife, life_at, topic_lives
from groupledger.core.moments import iso
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import RecordKind, decode
from groupledger.core.wire.records import CurrentMemberAssignment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from groupledger.answers.rows import GroupKey, Reader, Record, Value


GAPS_NAMED = 10


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

    `last` is None where the partition had not changed hands yet. Without a `member` nobody had it if the record tells
    that (`covered`), else it is not known: the group's record does not reach back to the moment, or was incomplete
    then, or `perhaps`, the id of a topic without a name in any listing, of which the group had this partition, is the
    topic asked for.
    `shared`: others may have the partition too, each with a holding of its own, and `next` is about this member alone.
    In a share group that is right; elsewhere `doubled`. `away_since`: the member is a static one that left for the time
    being (KIP-848) and keeps its partitions. `generation`: of the snapshot of `last`; a group epoch where
    the coordinator assigns. `is_by_name`: the log gives no topic id, and the name stood for several topics; `topic_id`
    is None where it cannot be told which.
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
    is_by_name: bool = False
    perhaps: str | None = None
    away_since: datetime | None = None

    @property
    def is_nobody(self) -> bool:
        """Whether the record gives the partition to nobody."""
        return self.member is None and self.covered

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
    groups = _groups(reader, {holder[:2] for holder in changes}, at)
    changes = _each_owner(asked, changes, groups)
    if not changes:
        require_names(reader, cluster, group)
        if not lives:
            raise unknown_topic(reader, topic, cluster)
    known = _with_members(reader, changes, groups)
    found = [_or_away(reader, each, groups, at) for each in known if not _is_over(each, lives, at)]
    begun = {_group_of(each) for each in found if not _is_to_come(each, lives, at)}
    holdings = tuple(
        _named(each, lives, at) for each in found if not (_group_of(each) in begun and _is_to_come(each, lives, at))
    )
    others: dict[tuple[str, str], str] = {}
    if not changes or any(each.is_nobody for each in holdings):
        others = _perhaps(unnamed(reader, partition, at, cluster, group), lives, at)
        holdings = tuple(
            replace(each, perhaps=others[key], covered=False)
            if each.is_nobody and (key := _group_of(each)) in others
            else each
            for each in holdings
        )
    clusters = [cluster] if cluster else sorted({holding.cluster_id for holding in holdings})
    notes = [*_topic_notes(topic, partition, at, lives), *_reach_notes(reader, at, clusters), *_doubled(holdings)]
    notes += [
        *_away_notes(holdings),
        *_cut_notes(holdings, groups),
        *_identity_notes(topic, partition, holdings, others),
    ]
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


def _is_over(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Whether nobody has the partition because its topic was deleted: no answer, when the name lives on elsewhere."""
    own = [life for life in lives if life.cluster_id == holding.cluster_id and life.since <= at]
    if not holding.is_by_name:
        own = [life for life in own if life.topic_id == holding.topic_id]
    ended = bool(own) and all(life.until is not None and life.until <= at for life in own)
    return ended and holding.last is not None and holding.last.to_member_id is None


def _is_to_come(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Whether nobody has the partition as its topic is made later: no answer, where the name has an earlier topic."""
    if holding.is_by_name or holding.last is not None or holding.member is not None:
        return False
    own = [life for life in lives if (life.cluster_id, life.topic_id) == (holding.cluster_id, holding.topic_id)]
    return all(at < life.since for life in own)


def _group_of(holding: Holding) -> tuple[str, str]:
    return holding.cluster_id, holding.group_id


def _named(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> Holding:
    """Add the id of the topic that the name meant, if the log gives none and it can be inferred."""
    if not holding.is_by_name:
        return holding
    last = holding.last
    handed_over = last is not None and None not in (last.from_member_id, last.to_member_id)
    held = (holding.since or at, at)
    return replace(holding, topic_id=life_of(lives, holding.cluster_id, held, handed_over=handed_over))


def _perhaps(
    others: dict[tuple[str, str], str], lives: tuple[TopicLife, ...], at: datetime
) -> dict[tuple[str, str], str]:
    """Those of the ids without a name that may be this topic: it was in no listing then."""
    clusters = {cluster for cluster, _ in others}
    listed = {
        cluster
        for cluster in clusters
        if life_at(tuple(life for life in lives if life.cluster_id == cluster), at) is not None
    }
    return {group: topic_id for group, topic_id in others.items() if group[0] not in listed}


@dataclass(frozen=True, slots=True)
class _Group:
    """What is known of a group's record at a moment, and whether it ever was a share or a KIP-848 group.

    `last` is the offset of its last state, `complete` of the last one that tells of every member what it has.
    """

    last: int | None
    complete: int | None
    share: bool
    consumer: bool

    def tells(self, change: Change | None) -> bool:
        """Whether nobody had a partition that this change took from its owner; None: that never had one."""
        if self.complete is None or self.last is None:
            return False
        return change is None or self.complete >= min(change.offset, self.last)


def _groups(reader: Reader, groups: set[tuple[str, str]], at: datetime) -> dict[tuple[str, str], _Group]:
    among, values = one_of("t.group_id", "group", sorted({group for _, group in groups}))
    query = (
        "SELECT t.cluster_id, t.group_id, max(CASE WHEN t.observed_at <= :moment THEN t.offset END) AS last, "
        "max(CASE WHEN t.observed_at <= :moment AND (t.complete OR t.members = 0) THEN t.offset END) AS complete, "
        f"max(CASE WHEN t.group_type = '{SHARE}' THEN 1 ELSE 0 END) AS share, "
        f"max(CASE WHEN t.group_type = '{CONSUMER}' THEN 1 ELSE 0 END) AS consumer FROM current_group_snapshots t "
        f"WHERE {among} GROUP BY t.cluster_id, t.group_id"
    )
    return {
        (row["cluster_id"], row["group_id"]): _Group(
            **{name: row[name] for name in ("last", "complete")}, share=row["share"] == 1, consumer=row["consumer"] == 1
        )
        for row in records(reader, query, moment=at, **values)
    }


def _each_owner(
    asked: Changes, changes: dict[Holder, Sides], groups: dict[tuple[str, str], _Group]
) -> dict[Holder, Sides]:
    """The same, with an entry for each owner where several members may have it, unless nobody had the partition."""
    shared = {holder[:2] for holder in changes if holder[:2] in groups and groups[holder[:2]].share}
    shared |= {holder[:2] for holder, sides in changes.items() if sides.several}
    if not shared:
        return changes
    of_shared, values = one_of("x.group_id", "shared", sorted({group for _, group in shared}))
    owners: dict[Holder, Sides] = {}
    for side in ("x.from_member_id", "x.to_member_id"):
        for holder, sides in asked.around(side, f"{of_shared} AND {side} IS NOT NULL", **values).items():
            owners[holder] = sides.nearer(owners.get(holder, sides))
    had = {holder: sides for holder, sides in owners.items() if holder[:2] in shared and _had(holder[3], sides)}
    replaced = {holder[:3] for holder in had}
    return {holder: sides for holder, sides in changes.items() if holder[:3] not in replaced} | had


def _had(member_id: str | None, sides: Sides) -> bool:
    """Whether the member had the partition at the moment between the two sides."""
    if sides.last is not None:
        return sides.last.to_member_id == member_id
    return sides.next is not None and sides.next.from_member_id == member_id


def _with_members(
    reader: Reader, changes: dict[Holder, Sides], groups: dict[tuple[str, str], _Group]
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
            covered=known is not None and known.tells(sides.last),
            shared=owner is not None and (share or owners[holder[:3]] > 1),
            doubled=not share and owners[holder[:3]] > 1,
            generation=numbers.get(evidence) if evidence else None,
            is_by_name=sides.is_by_name,
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


def _or_away(reader: Reader, holding: Holding, groups: dict[tuple[str, str], _Group], at: datetime) -> Holding:
    """Return the holding, with since when its owner is away if it is a static member that left for the time being."""
    group, last, member = _group_of(holding), holding.last, holding.member
    if last is None or member is None or not member.group_instance_id or group not in groups:
        return holding
    known = absences(reader, group, last.offset - 1, at) if groups[group].consumer else {}
    return replace(holding, away_since=known.get(member.member_id))


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
        ended = [life.until for life in lives if life.until is not None and life.until <= at]
        told = f"not since {iso(max(ended))}" if ended else f"first listed {iso(lives[0].since)}"
        yield f"{topic} is in no topic listing at that time; {told}"
    for life in alive:
        if partition >= life.partition_count:
            last = life.partition_count - 1
            yield f"{topic} had partitions 0 to {last} at that time (cluster {life.cluster_id})"


def _identity_notes(
    topic: str, partition: int, holdings: tuple[Holding, ...], others: dict[tuple[str, str], str]
) -> Iterator[str]:
    """Says where it is not known which topic somebody has, or whether it is the one asked for."""
    unsure = sorted({each.group_id for each in holdings if each.is_by_name and each.member and each.topic_id is None})
    if unsure:
        yield f"the log of {', '.join(unsure)} gives no topic ids: which topic named {topic} it is is not known"
    for (_, group), topic_id in sorted(others.items()):
        yield (
            f"{group} had partition {partition} of topic id {topic_id}, whose name no listing shows: "
            f"whether that is {topic} is not known"
        )


def _away_notes(holdings: tuple[Holding, ...]) -> Iterator[str]:
    """Says which owners are static members that left for the time being."""
    for each in holdings:
        if each.away_since is not None and each.member is not None:
            yield away(each.member.group_instance_id, each.member.member_id, each.away_since)


def _cut_notes(holdings: tuple[Holding, ...], groups: dict[tuple[str, str], _Group]) -> Iterator[str]:
    """Says where the record of a group reaches back to the moment, and does not tell whether nobody had it."""
    unsure = {_group_of(each) for each in holdings if each.member is None and not each.covered and not each.perhaps}
    for key in sorted(unsure):
        if key in groups and groups[key].last is not None:
            yield f"the record of {key[1]} is incomplete at that time: whether nobody had the partition is not known"


def _reach_notes(reader: Reader, at: datetime, clusters: list[str]) -> Iterator[str]:
    """Says where the moment lies before the first record of a cluster, or after what is known of it."""
    for cluster, (begins, ends) in reaches(reader, clusters).items():
        if at < begins:
            yield f"history of cluster {cluster} begins at {iso(begins)}: what was before is not known"
        elif at > ends:
            yield f"cluster {cluster} is known up to {iso(ends)}: what was later is not known"


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


# The changes of one partition, and of which of the topics that had its name in turn each is.
#
# The log gives topic ids for KIP-848 groups alone. What a classic group did with a name that was used again is one
# chain:
# a member holds the name until a record takes it away, however many topics it stood for meanwhile.

Holder = tuple[str, str, str | None, str | None]
"""Cluster, group, topic id, and where several members may have it the member: at most one holder within it."""

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


def changes_of(
    topic: str, partition: int, at: datetime, lives: tuple[TopicLife, ...], cluster: str | None, group: str | None
) -> tuple[str, dict[str, Value]]:
    """Build a query of the partition's changes, with the topic as `life`, and whether each is before the moment.

    `life` is null where the log gives no id and the name stood for several topics (`is_by_name`): see `life_of`.
    """
    known = [life for life in lives if life.topic_id is not None]
    by_id, ids = one_of("t.topic_id", "id", sorted({str(life.topic_id) for life in known}))
    condition, values = matching("t.", cluster_id=cluster)
    of_groups, groups = alike("t.group_id", "group_id", group)
    values |= groups | ids | {"topic": topic, "partition": partition, "moment": at}
    cases, reused = [], []
    for number, (name, of_cluster) in enumerate(groupby(known, attrgetter("cluster_id"))):
        own = sorted({str(life.topic_id) for life in of_cluster})
        values |= {f"cluster_{number}": name}
        if len(own) == 1:
            cases.append(f"WHEN t.cluster_id = :cluster_{number} THEN coalesce(t.topic_id, :life_{number})")
            values |= {f"life_{number}": own[0]}
        else:
            reused.append(f"t.cluster_id = :cluster_{number}")
    by_name, join = "false", ""
    if reused:
        by_name, join = "(k.group_id IS NOT NULL)", _by_name(" OR ".join(reused), condition, of_groups)
        cases.insert(0, f"WHEN {by_name} THEN NULL")
    identity = f"CASE {' '.join(cases)} ELSE t.topic_id END" if cases else "t.topic_id"
    columns = "t.cluster_id, t.group_id, t.from_member_id, t.to_member_id, t.at, t.held_since, t.snapshot_id, t.offset"
    query = (
        f"SELECT {columns}, {identity} AS life, {by_name} AS is_by_name, "
        f"CASE WHEN t.at <= :moment THEN '{BEFORE}' ELSE '{AFTER}' END AS side "
        f"FROM current_ownership_changes t {join} WHERE (t.topic = :topic OR (t.topic IS NULL AND {by_id})) "
        f"AND t.partition = :partition AND {condition} AND {of_groups}"
    )
    return query, values


def _by_name(reused: str, condition: str, of_groups: str) -> str:
    """Join the groups of some clusters for which the log gives no topic ids."""
    those = f"({reused}) AND {condition} AND {of_groups}"
    return (
        "LEFT JOIN (SELECT t.cluster_id, t.group_id FROM current_group_snapshots t "
        f"WHERE t.group_type = '{CLASSIC}' AND {those} UNION SELECT t.cluster_id, t.group_id "
        f"FROM current_ownership_changes t WHERE t.topic = :topic AND t.topic_id IS NULL AND {those}) k "
        "ON k.cluster_id = t.cluster_id AND k.group_id = t.group_id"
    )


def life_of(
    lives: tuple[TopicLife, ...], cluster: str, held: tuple[datetime, datetime], *, handed_over: bool
) -> str | None:
    """Return the topic id that a name meant while it was held, between two moments; None: it cannot be inferred.

    A record may be older than the listing that shows its topic: what was taken between two lives is of the later one,
    unless another member handed it over, which may have had it since before. What is held on into another life may be
    either topic.
    """
    since, until = held
    ids = [(life.topic_id, life.since, life.until) for life in lives if life.cluster_id == cluster]
    spans = [(topic_id, list(some)) for topic_id, some in groupby(ids, itemgetter(0))]
    for number, (topic_id, some) in enumerate(spans):
        ends = some[-1][2]
        if ends is None or since < ends:
            is_early = number > 0 and since < some[0][1]
            following = spans[number + 1][1][0][1] if number + 1 < len(spans) else None
            is_known = not (is_early and handed_over) and (following is None or until < following)
            return topic_id if is_known else None
    return None


def unnamed(
    reader: Reader, partition: int, at: datetime, cluster: str | None, group: str | None
) -> dict[tuple[str, str], str]:
    """Cluster and group -> a topic id without a name in any listing, of which the group had the partition then."""
    condition, values = matching("t.", cluster_id=cluster)
    of_groups, groups = alike("t.group_id", "group_id", group)
    order = "t.offset DESC, CASE WHEN t.to_member_id IS NULL THEN 1 ELSE 0 END"
    last = (
        "SELECT t.cluster_id, t.group_id, t.topic_id, t.to_member_id, row_number() OVER "
        f"(PARTITION BY t.cluster_id, t.group_id, t.topic_id ORDER BY {order}) AS place "
        "FROM current_ownership_changes t WHERE t.topic IS NULL AND t.topic_id IS NOT NULL "
        "AND t.partition = :partition AND t.at <= :moment "
        f"AND {condition} AND {of_groups}"
    )
    listed = "SELECT 1 FROM current_topic_snapshots s WHERE s.cluster_id = q.cluster_id AND s.topic_id = q.topic_id"
    query = (
        f"SELECT q.cluster_id, q.group_id, min(q.topic_id) AS topic_id FROM ({last}) q WHERE q.place = 1 "
        f"AND q.to_member_id IS NOT NULL AND NOT EXISTS ({listed}) GROUP BY q.cluster_id, q.group_id"
    )
    found = records(reader, query, partition=partition, moment=at, **values, **groups)
    return {(row["cluster_id"], row["group_id"]): row["topic_id"] for row in found}


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a partition, as a query."""

    reader: Reader
    changes: str
    values: dict[str, Value]

    def around(self, owner: str, where: str = "true", **more: Value) -> dict[Holder, Sides]:
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
        """Return the newest changes after one moment and up to another, by holder and offset, and their number.

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
class Sides:
    """The changes next to a moment; `several`: more members than one may have had the partition then."""

    last: Change | None
    next: Change | None
    several: bool = False
    is_by_name: bool = False

    def nearer(self, other: Sides) -> Sides:
        """Of each side the change that is nearer to the moment."""
        lasts = [each for each in (self.last, other.last) if each is not None]
        nexts = [each for each in (self.next, other.next) if each is not None]
        offset = attrgetter("offset")
        last, following = max(lasts, key=offset, default=None), min(nexts, key=offset, default=None)
        return Sides(last, following, is_by_name=self.is_by_name)


def _sides(before: Record | None, after: Record | None) -> Sides:
    """Several: as many got it, less those who lost it, or whoever had it is not the one it is taken from next."""
    last, following = _change(before), _change(after)
    is_by_name = any(row is not None and row["is_by_name"] for row in (before, after))
    if last is None or before is None:
        return Sides(last, following, is_by_name=is_by_name)
    owner = last.to_member_id
    several = before["owners"] != (owner is not None)
    if following is not None and owner is not None:
        several = several or following.from_member_id != owner
    return Sides(last, following, several, is_by_name)


def _change(row: Record | None) -> Change | None:
    names = ("at", "from_member_id", "to_member_id", "held_since", "snapshot_id", "offset")
    return None if row is None else Change(*(row[name] for name in names))


# Static members of a KIP-848 group that left for the time being: they keep what they have, and nobody reads it.
#
# A coordinator writes such a member's assignment with the epoch -2 alone. Nothing moves, so no snapshot is made of it:
# the records themselves are read, and where they are not kept, no member is known to be away.


def absences(reader: Reader, group: GroupKey, behind: int, until: datetime | None = None) -> dict[str, datetime | None]:
    """Return since when each member is away, by the group's records behind an offset, up to a moment; None: it is not.

    A member of which there is no such record is left out.
    """
    from groupledger.core.history.members import LEFT_STATIC  # with the fold, which few answers need

    condition, values = matching("t.", cluster_id=group[0], group_id=group[1])
    values |= {"behind": behind} | ({} if until is None else {"until": until})
    query = f"SELECT t.offset, t.timestamp, t.key, t.value FROM current_log_records t WHERE {condition} "
    query += "AND t.offset > :behind" + ("" if until is None else " AND t.timestamp <= :until")
    found: dict[str, datetime | None] = {}
    for row in records(reader, f"{query} ORDER BY t.offset", **values):
        try:
            record = decode(row["key"], row["value"])
        except DecodeFault:
            continue
        if record.kind is RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT:
            member, now = str(record.key.fields["member_id"]), record.value
            is_away = isinstance(now, CurrentMemberAssignment) and now.epoch == LEFT_STATIC
            found[member] = (found.get(member) or row["timestamp"]) if is_away else None
    return found


def away(instance: str | None, member: str, since: datetime) -> str:
    """Say that a static member is away, and what follows from it."""
    return (
        f"{instance} left for now at {iso(since)} (member epoch -2): {member} keeps its partitions, and nobody reads "
        "them until it comes back or its session ends"
    )
