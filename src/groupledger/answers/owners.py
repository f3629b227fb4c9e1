"""Who was assigned a partition at a time, from recorded facts only.

The answer rests on `ownership_changes`: the last change at or before the moment, and the first one after it. Changes
are ordered by offset, never by clock; the clock only says which of them came before the moment asked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import listed
from groupledger.answers.queries import (
    CLASSIC,
    CONSUMER,
    NUMBER,
    SHARE,
    GroupKey,
    NamedPartition,
    Reader,
    Record,
    TopicLife,
    first_of,
    from_row,
    gathered,
    group_of,
    is_pattern,
    life_at,
    literal,
    matching,
    of_each,
    of_groups,
    one_of,
    records,
    steps,
    topic_lives,
)
from groupledger.answers.scope import Known, known, not_known_after, reaches, require_names, unknown_topic
from groupledger.core.moments import EPOCH, iso
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import RecordKind, decode
from groupledger.core.wire.records import CurrentMemberAssignment

if TYPE_CHECKING:
    from groupledger.answers.states import SnapshotKey


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

    `last` is None where the partition had not changed hands yet. Without a `member` nobody had it if the record shows
    that (`covered`), else it is not known: the group's record does not reach back to the moment, or was incomplete
    then, or `perhaps`, the id of a topic without a name in any listing, of which the group had this partition, is the
    topic asked for.
    `shared`: others may have the partition too, each with a holding of its own, and `next` is about this member alone.
    In a share group that is right; elsewhere `doubled`. `away_since`: the member is a static one that left for the time
    being (KIP-848) and keeps its partitions. `generation`: of the snapshot of `last`; a group epoch where
    the coordinator assigns. `is_by_name`: the log gives no topic id, and the name stood for several topics; `topic_id`
    is None if it is not known which.
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
    """Return who was assigned `topic`-`partition` at `at`, for every group (or those like `group`).

    A topic, cluster or group the ledger never heard of is a `Fault`; anything else that is not known is a note.
    """
    lives = topic_lives(reader, topic, cluster)
    asked = changes_of(reader, topic, partition, at, lives, cluster, group)
    changes = asked.around(("cast(NULL AS STRING)", "true"))
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
    others: dict[GroupKey, str] = {}
    if not changes or any(each.is_nobody for each in holdings):
        others = _perhaps(unnamed(reader, partition, at, cluster, group), lives, at)
        holdings = tuple(
            replace(each, perhaps=others[key], covered=False)
            if each.is_nobody and (key := _group_of(each)) in others
            else each
            for each in holdings
        )
    clusters = [cluster] if cluster else sorted({holding.cluster_id for holding in holdings})
    notes = [*_topic_notes(topic, partition, at, lives)]
    for name, (begins, ends) in reaches(reader, clusters).items():
        if at < begins:
            notes.append(f"history of cluster {name} begins at {iso(begins)}: what was before is not known")
        elif at > ends:
            notes.append(not_known_after(name, ends))
    notes += [*_holding_notes(holdings, groups), *_identity_notes(topic, partition, holdings, others)]
    gaps = _gaps(reader, holdings)
    notes += [f"gap in the history of {row['group_id']} ({row['kind']}): {row['reason']}" for row in gaps[:GAPS_NAMED]]
    if not changes:
        notes.insert(0, never_assigned(topic, partition, group))
    return OwnershipAt(topic, partition, at, holdings, lives, tuple(notes), len(gaps))


def never_assigned(topic: str, partition: int, group: str | None) -> str:
    """Say that no group, or not that which was asked for, ever had it."""
    if group is not None and not is_pattern(group):
        return f"group {group} was never assigned {topic}-{partition}"
    among = "in this ledger" if group is None else f"like {group}"
    return f"no group {among} was ever assigned {topic}-{partition}"


def _is_over(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Return whether the partition has no owner as its topic was deleted: no answer if the name lives on elsewhere."""
    own = [life for life in lives if life.cluster_id == holding.cluster_id and life.since <= at]
    if not holding.is_by_name:
        own = [life for life in own if life.topic_id == holding.topic_id]
    ended = bool(own) and all(life.until is not None and life.until <= at for life in own)
    return ended and holding.last is not None and holding.last.to_member_id is None


def _is_to_come(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Return whether the partition has no owner as its topic is made later: no answer if an older one has the name."""
    if holding.is_by_name or holding.last is not None or holding.member is not None:
        return False
    own = [life for life in lives if (life.cluster_id, life.topic_id) == (holding.cluster_id, holding.topic_id)]
    return all(at < life.since for life in own)


def _group_of(holding: Holding) -> GroupKey:
    return holding.cluster_id, holding.group_id


def _named(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> Holding:
    """Add the id of the topic that the name meant, if the log gives none and it can be inferred."""
    if not holding.is_by_name:
        return holding
    last = holding.last
    handed_over = last is not None and None not in (last.from_member_id, last.to_member_id)
    held = (holding.since or at, at)
    return replace(holding, topic_id=life_of(lives, holding.cluster_id, held, handed_over=handed_over))


def _perhaps(others: dict[GroupKey, str], lives: tuple[TopicLife, ...], at: datetime) -> dict[GroupKey, str]:
    """Keep the ids without a name that may be this topic: it was in no listing then."""
    by_cluster = groupby(lives, attrgetter("cluster_id"))
    listed = {cluster for cluster, some in by_cluster if life_at(tuple(some), at) is not None}
    return {group: topic_id for group, topic_id in others.items() if group[0] not in listed}


@dataclass(frozen=True, slots=True)
class _Group:
    """What is known of a group's record at a moment, and whether it ever was a share or a KIP-848 group.

    `last` is the offset of its last state, `complete` of the last one with the partitions of every member.
    """

    last: int | None
    complete: int | None
    share: bool
    consumer: bool

    def covers(self, change: Change | None) -> bool:
        """Return whether a partition had no owner after this change took it from one; None: it never had one."""
        if self.complete is None or self.last is None:
            return False
        return change is None or self.complete >= min(change.offset, self.last)


def _groups(reader: Reader, groups: set[GroupKey], at: datetime) -> dict[GroupKey, _Group]:
    among, moment = one_of("t.group_id", sorted({group for _, group in groups})), literal(at)
    query = (
        f"SELECT t.cluster_id, t.group_id, max(CASE WHEN t.observed_at <= {moment} THEN t.offset END) AS last, "
        f"max(CASE WHEN t.observed_at <= {moment} AND (t.complete OR t.members = 0) THEN t.offset END) AS complete, "
        f"max(CASE WHEN t.group_type = '{SHARE}' THEN 1 ELSE 0 END) = 1 AS share, "
        f"max(CASE WHEN t.group_type = '{CONSUMER}' THEN 1 ELSE 0 END) = 1 AS consumer FROM current_group_snapshots t "
        f"WHERE {among} GROUP BY t.cluster_id, t.group_id"
    )
    return {group_of(row): from_row(_Group, row) for row in records(reader, query)}


def _each_owner(asked: Changes, changes: dict[Holder, Sides], groups: dict[GroupKey, _Group]) -> dict[Holder, Sides]:
    """Add an entry for each owner where several members may have the partition, unless nobody had it."""
    shared = {holder[:2] for holder in changes if holder[:2] in groups and groups[holder[:2]].share}
    shared |= {holder[:2] for holder, sides in changes.items() if sides.several}
    if not shared:
        return changes
    of_shared = one_of("x.group_id", sorted({group for _, group in shared}))
    members = ("x.from_member_id", "x.to_member_id")
    owners = asked.around(*((member, f"{of_shared} AND {member} IS NOT NULL") for member in members))
    had = {holder: sides for holder, sides in owners.items() if holder[:2] in shared and sides.owner == holder[3]}
    replaced = {holder[:3] for holder in had}
    return {holder: sides for holder, sides in changes.items() if holder[:3] not in replaced} | had


def _with_members(reader: Reader, changes: dict[Holder, Sides], groups: dict[GroupKey, _Group]) -> tuple[Holding, ...]:
    """Return the holdings in order of cluster, group, topic id, each with the member that had it at the moment."""
    evidence = [
        {"group_id": holder[1], "snapshot_id": sides.last.snapshot_id}
        for holder, sides in changes.items()
        if sides.last is not None
    ]
    columns = "t.snapshot_id, t.member_id, t.client_id, t.group_instance_id, t.host"
    rows = of_each(reader, columns, "current_member_snapshots", evidence)
    members = {(row["snapshot_id"], row["member_id"]): from_row(MemberIdentity, row) for row in rows}
    numbers = generations(reader, evidence)
    owners = Counter(holder[:3] for holder in changes if holder[3] is not None)
    holdings = []
    for holder in sorted(changes, key=lambda holder: (*holder[:2], holder[2] or "", holder[3] or "")):
        (cluster, group, topic_id, owner), sides = holder, changes[holder]
        known, snapshot_id = groups.get((cluster, group)), sides.last.snapshot_id if sides.last else ""
        member = members.get((snapshot_id, sides.owner or ""))
        share = known is not None and known.share
        holding = Holding(
            cluster_id=cluster,
            group_id=group,
            topic_id=topic_id,
            last=sides.last,
            next=sides.next,
            member=member or (MemberIdentity(sides.owner) if sides.owner else None),
            covered=known is not None and known.covers(sides.last),
            shared=owner is not None and (share or owners[holder[:3]] > 1),
            doubled=not share and owners[holder[:3]] > 1,
            generation=numbers.get((cluster, group, snapshot_id)),
            is_by_name=sides.is_by_name,
        )
        holdings.append(holding)
    return tuple(holdings)


def generations(reader: Reader, evidence: Sequence[Record]) -> dict[SnapshotKey, int | None]:
    """Return the generation or group epoch of snapshots, by cluster, group and snapshot id."""
    columns = f"t.cluster_id, t.group_id, t.snapshot_id, {NUMBER} AS number"
    rows = of_each(reader, columns, "current_group_snapshots", evidence)
    return {(*group_of(row), row["snapshot_id"]): row["number"] for row in rows}


def _or_away(reader: Reader, holding: Holding, groups: dict[GroupKey, _Group], at: datetime) -> Holding:
    """Return the holding, with since when its owner is away if it is a static member that left for the time being."""
    group, last, member = _group_of(holding), holding.last, holding.member
    if last is None or member is None or not member.group_instance_id or group not in groups:
        return holding
    known = absences(reader, group, last.offset - 1, at) if groups[group].consumer else {}
    return replace(holding, away_since=known.get(member.member_id))


def _topic_notes(topic: str, partition: int, at: datetime, lives: tuple[TopicLife, ...]) -> Iterator[str]:
    """Say where the name stood for another topic, for none, or had fewer partitions."""
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
        since = f"not since {iso(max(ended))}" if ended else f"first listed {iso(lives[0].since)}"
        yield f"{topic} is in no topic listing at that time; {since}"
    for life in alive:
        if partition >= life.partition_count:
            last = life.partition_count - 1
            yield f"{topic} had partitions 0 to {last} at that time (cluster {life.cluster_id})"


def _identity_notes(
    topic: str, partition: int, holdings: tuple[Holding, ...], others: dict[GroupKey, str]
) -> Iterator[str]:
    """Say where it is not known which topic a member has, or whether it is the one asked for."""
    unsure = sorted({each.group_id for each in holdings if each.is_by_name and each.member and each.topic_id is None})
    if unsure:
        yield f"the log of {', '.join(unsure)} gives no topic ids: which topic named {topic} it is is not known"
    for (_, group), topic_id in sorted(others.items()):
        yield (
            f"{group} had partition {partition} of topic id {topic_id}, whose name no listing shows: "
            f"whether that is {topic} is not known"
        )


def _holding_notes(holdings: tuple[Holding, ...], groups: dict[GroupKey, _Group]) -> Iterator[str]:
    """Say where the record gives the partition to several members, whose owner is away, and where it is incomplete."""
    for (cluster, group), number in Counter(_group_of(each) for each in holdings if each.doubled).items():
        yield f"{group} (cluster {cluster}) is no share group, and the record gives the partition to {number} members"
    for each in holdings:
        if each.away_since is not None and each.member is not None:
            yield away(each.member.group_instance_id, each.member.member_id, each.away_since)
    unsure = {_group_of(each) for each in holdings if each.member is None and not each.covered and not each.perhaps}
    for key in sorted(unsure):
        if key in groups and groups[key].last is not None:
            yield f"the record of {key[1]} is incomplete at that time: whether nobody had the partition is not known"


def _gaps(reader: Reader, holdings: tuple[Holding, ...]) -> list[Record]:
    """Return the gaps between the change before the moment and the one after it: they may hide another."""
    conditions = ["false"]
    for holding in holdings:
        here = matching("t.", cluster_id=holding.cluster_id, group_id=holding.group_id)
        here += f" AND t.offset > {holding.last.offset if holding.last else -1}"
        conditions.append(f"({here}{f' AND t.offset <= {holding.next.offset}' if holding.next else ''})")
    query = f"SELECT t.group_id, t.kind, t.reason FROM current_coverage t WHERE {' OR '.join(conditions)}"
    return records(reader, f"{query} ORDER BY t.cluster_id, t.group_id, t.offset, t.kind, t.reason")


# The changes of one partition, and of which of the topics that had its name in turn each is.
#
# The log gives topic ids for KIP-848 groups alone. What a classic group did with a name that was used again is one
# chain: a member holds the name until a record takes it away, however many topics it stood for meanwhile.

Holder = tuple[str, str, str | None, str | None]
"""Cluster, group, topic id, and where several members may have it the member: at most one holder within it."""

BEFORE, AFTER = "before", "after"
LATEST = "t.offset DESC, CASE WHEN t.to_member_id IS NULL THEN 1 ELSE 0 END"
"""The order of changes `t`, the last one first; of one record, first what a member got."""


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
    reader: Reader,
    topic: str,
    partition: int,
    at: datetime,
    lives: tuple[TopicLife, ...],
    cluster: str | None,
    group: str | None,
) -> Changes:
    """Build a query of the partition's changes, with the topic as `life`, and whether each is before the moment.

    `life` is null where the log gives no id and the name stood for several topics (`is_by_name`): see `life_of`.
    """
    known = [life for life in lives if life.topic_id is not None]
    by_id = one_of("t.topic_id", sorted({str(life.topic_id) for life in known}))
    condition = of_groups("t.", cluster, group)
    cases, reused = [], []
    for name, of_cluster in groupby(known, attrgetter("cluster_id")):
        own, here = sorted({str(life.topic_id) for life in of_cluster}), matching("t.", cluster_id=name)
        if len(own) == 1:
            cases.append(f"WHEN {here} THEN coalesce(t.topic_id, {literal(own[0])})")
        else:
            reused.append(here)
    by_name, join = "false", ""
    if reused:
        by_name = "(k.group_id IS NOT NULL)"
        join = _by_name(literal(topic), f"({' OR '.join(reused)}) AND {condition}")
        cases.insert(0, f"WHEN {by_name} THEN NULL")
    identity = f"CASE {' '.join(cases)} ELSE t.topic_id END" if cases else "t.topic_id"
    columns = "t.cluster_id, t.group_id, t.from_member_id, t.to_member_id, t.at, t.held_since, t.snapshot_id, t.offset"
    query = (
        f"SELECT {columns}, {identity} AS life, {by_name} AS is_by_name, "
        f"CASE WHEN t.at <= {literal(at)} THEN '{BEFORE}' ELSE '{AFTER}' END AS side "
        f"FROM current_ownership_changes t {join} WHERE (t.topic = {literal(topic)} OR (t.topic IS NULL AND {by_id})) "
        f"AND t.partition = {partition} AND {condition}"
    )
    return Changes(reader, query)


def _by_name(topic: str, those: str) -> str:
    """Join the groups of some clusters for which the log gives no topic ids."""
    return (
        "LEFT JOIN (SELECT t.cluster_id, t.group_id FROM current_group_snapshots t "
        f"WHERE t.group_type = '{CLASSIC}' AND {those} UNION SELECT t.cluster_id, t.group_id "
        f"FROM current_ownership_changes t WHERE t.topic = {topic} AND t.topic_id IS NULL AND {those}) k "
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
) -> dict[GroupKey, str]:
    """Map groups to a topic id without a name in any listing, of which the group had the partition then."""
    query = steps(
        changes="SELECT t.cluster_id, t.group_id, t.topic_id, t.to_member_id, row_number() OVER "
        f"(PARTITION BY t.cluster_id, t.group_id, t.topic_id ORDER BY {LATEST}) AS place "
        "FROM current_ownership_changes t WHERE t.topic IS NULL AND t.topic_id IS NOT NULL "
        f"AND t.partition = {partition} AND t.at <= {literal(at)} AND {of_groups('t.', cluster, group)}",
        unnamed="SELECT q.cluster_id, q.group_id, min(q.topic_id) AS topic_id FROM changes q WHERE q.place = 1 "
        "AND q.to_member_id IS NOT NULL AND NOT EXISTS (SELECT 1 FROM current_topic_snapshots s "
        "WHERE s.cluster_id = q.cluster_id AND s.topic_id = q.topic_id) GROUP BY q.cluster_id, q.group_id",
    )
    return {group_of(row): row["topic_id"] for row in records(reader, query)}


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a partition, as a query."""

    reader: Reader
    changes: str

    def around(self, *owners: tuple[str, str]) -> dict[Holder, Sides]:
        """Return for each holder the last change before and the first one after: two rows at most are read.

        `owners`: the member that is asked for, as SQL (null: any), and which changes count for it.
        """
        nearest = f"CASE WHEN c.side = '{BEFORE}' THEN -c.offset ELSE c.offset END"
        given = "CASE WHEN c.to_member_id IS NULL THEN 0 ELSE 1 END"
        taken = "CASE WHEN c.from_member_id IS NULL THEN 0 ELSE 1 END"
        within = "PARTITION BY c.cluster_id, c.group_id, c.life, c.owner, c.side"
        got = "CASE WHEN c.owner = c.to_member_id THEN 0 ELSE 1 END"
        order = f"{nearest}, {got}, {given} DESC, {taken} DESC, c.to_member_id, c.from_member_id"
        query = steps(
            owned=" UNION ALL ".join(
                f"SELECT x.*, {owner} AS owner FROM ({self.changes}) x WHERE {where}" for owner, where in owners
            ),
            ranked=f"SELECT c.*, sum({given} - {taken}) OVER ({within}) AS owners, "
            f"row_number() OVER ({within} ORDER BY {order}) AS place FROM owned c",
            nearest="SELECT * FROM ranked r WHERE r.place = 1",
        )
        found: dict[Holder, dict[str, Record]] = {}
        for row in records(self.reader, query):
            found.setdefault((*group_of(row), row["life"], row["owner"]), {})[row["side"]] = row
        return {holder: _sides(rows.get(BEFORE), rows.get(AFTER)) for holder, rows in found.items()}

    def between(self, since: datetime, until: datetime, limit: int) -> tuple[list[Record], int]:
        """Return the newest changes after one moment and up to another, by holder and offset, and their number.

        Those of one record stand together or not at all.
        """
        period = f"x.at > {literal(since)} AND x.at <= {literal(until)}"
        newest = "q.at DESC, q.offset DESC, q.cluster_id, q.group_id, q.from_member_id, q.to_member_id"
        found, total = first_of(self.reader, f"SELECT x.* FROM ({self.changes}) x WHERE {period}", newest, limit)
        record = itemgetter("cluster_id", "group_id", "offset")
        kept = [row for row in found[:limit] if total <= limit or record(row) != record(found[limit])]
        return sorted(kept, key=lambda row: (*record(row)[:2], row["life"] or "", row["offset"])), total

    def any(self) -> bool:
        """Return whether the partition ever changed hands."""
        return bool(records(self.reader, f"SELECT 1 AS found FROM ({self.changes}) x LIMIT 1"))


@dataclass(frozen=True, slots=True)
class Sides:
    """The changes next to a moment; `several`: more members than one may have had the partition then."""

    last: Change | None
    next: Change | None
    several: bool = False
    is_by_name: bool = False

    @property
    def owner(self) -> str | None:
        """The member that had the partition at the moment, by the change before it, else by the one after."""
        return self.last.to_member_id if self.last else self.next.from_member_id if self.next else None


def _sides(before: Record | None, after: Record | None) -> Sides:
    """Pair the changes; several may have it: more got it than lost it, or the owner does not lose it next."""
    last, following = (None if row is None else from_row(Change, row) for row in (before, after))
    is_by_name = any(row is not None and row["is_by_name"] for row in (before, after))
    if last is None or before is None:
        return Sides(last, following, is_by_name=is_by_name)
    owner = last.to_member_id
    several = before["owners"] != (owner is not None)
    if following is not None and owner is not None:
        several = several or following.from_member_id != owner
    return Sides(last, following, several, is_by_name)


# Static members of a KIP-848 group that left for the time being: they keep what they have, and nobody reads it.
#
# A coordinator writes such a member's assignment with the epoch -2 alone. Nothing moves, so no snapshot is made of it:
# the records themselves are read, and where they are not kept, no member is known to be away.


def absences(reader: Reader, group: GroupKey, behind: int, until: datetime | None = None) -> dict[str, datetime | None]:
    """Return since when each member is away, by the group's records behind an offset, up to a moment; None: it is not.

    A member of which there is no such record is left out.
    """
    from groupledger.core.history.members import LEFT_STATIC  # with the fold, which few answers need

    condition = matching("t.", cluster_id=group[0], group_id=group[1])
    query = f"SELECT t.offset, t.timestamp, t.key, t.value FROM current_log_records t WHERE {condition} "
    query += f"AND t.offset > {behind}" + ("" if until is None else f" AND t.timestamp <= {literal(until)}")
    found: dict[str, datetime | None] = {}
    for row in records(reader, f"{query} ORDER BY t.offset"):
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


# The owners of one partition over time, in each group: one after another, or, where that is allowed, side by side.


@dataclass(frozen=True, slots=True)
class OwnerSpan:
    """A stretch of time in which a member had the partition; None: nobody of the group.

    `since` is None where the record does not reach back to it, `until` where it lasts to the end of what was asked.
    `snapshot_id` and `generation` are of the state that began it, None where that is not in the record.
    """

    cluster_id: str
    group_id: str
    topic_id: str | None
    member_id: str | None
    since: datetime | None
    until: datetime | None
    snapshot_id: str | None = None
    generation: int | None = None
    known_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class PartitionTimeline:
    """The owners of a partition between two moments, by group, in order of time; `left_off` older changes are not here.

    `notes` say why there is nothing.
    """

    topic: str
    partition: int
    since: datetime | None
    until: datetime
    spans: tuple[OwnerSpan, ...] = field(metadata=listed(OwnerSpan))
    left_off: int
    notes: tuple[str, ...]


def partition_timeline(
    reader: Reader,
    topic: str,
    partition: int,
    until: datetime,
    since: datetime | None = None,
    cluster: str | None = None,
    group: str | None = None,
    limit: int = 50,
) -> PartitionTimeline:
    """List who had the partition from one moment (None: the beginning) to another, in all groups or those like `group`.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, UNKNOWN_TOPIC.
    """
    lives = topic_lives(reader, topic, cluster)
    asked = changes_of(reader, topic, partition, until, lives, cluster, group)
    rows, total = asked.between(since or EPOCH, until, limit)
    held = ownership(reader, topic, partition, since, cluster, group).holdings if since and total == len(rows) else ()
    of_groups = _spans(held, rows)
    spans = sorted((span for of_one in of_groups for span in _named_span(of_one, lives, until)), key=_order)
    notes = []
    if not spans:
        require_names(reader, cluster, group)
        changed = asked.any()
        if not lives and not changed:
            raise unknown_topic(reader, topic, cluster)
        never = never_assigned(topic, partition, group)
        notes = [f"nobody is known to have had {topic}-{partition} in that time" if changed else never]
        for name, (begins, ends) in reaches(reader, []).items():
            notes.append(f"the ledger knows cluster {name} from {iso(begins)} to {iso(ends)}")
    numbered = tuple(_with_numbers(reader, spans, known(reader, cluster), until))
    return PartitionTimeline(topic, partition, since, until, numbered, total - len(rows), tuple(notes))


def _with_numbers(reader: Reader, spans: Sequence[OwnerSpan], read: Known, until: datetime) -> Iterator[OwnerSpan]:
    """Add the generation of the state that began each; limit those without an end to what is known of their cluster."""
    evidence = {(span.group_id, span.snapshot_id) for span in spans if span.snapshot_id is not None}
    found = generations(reader, [{"group_id": group, "snapshot_id": name} for group, name in sorted(evidence)])
    for span in spans:
        known_until = min(until, read.of(span.cluster_id, span.since or EPOCH)) if span.until is None else None
        number = found.get((span.cluster_id, span.group_id, span.snapshot_id or ""))
        yield replace(span, known_until=known_until, generation=number)


def _spans(held: Iterable[Holding], rows: Iterable[Record]) -> Iterator[list[OwnerSpan]]:
    """Make spans of what was held at the beginning and of each change, of one group and topic after another."""
    keys = ("cluster_id", "group_id", "life")
    of_held = (span for each in held for span in _begun(each))
    begun = gathered(((span.cluster_id, span.group_id, span.topic_id), span) for span in of_held)
    changes = {key: list(some) for key, some in groupby(rows, itemgetter(*keys))}
    for key in {**begun, **changes}:
        yield list(spans(key, begun.get(key, []), changes.get(key, [])))


def _begun(holding: Holding) -> Iterator[OwnerSpan]:
    """Turn the holding into a span that has no end yet; none if it is not known who had the partition."""
    last, member = holding.last, holding.member
    if member is not None or (last is not None and holding.is_nobody):
        owner, began = None if member is None else member.member_id, None if last is None else last.snapshot_id
        life = None if holding.is_by_name else holding.topic_id
        yield OwnerSpan(holding.cluster_id, holding.group_id, life, owner, holding.since, None, began)


def spans(
    key: tuple[str, str, str | None], begun: Sequence[OwnerSpan], changes: Sequence[Record]
) -> Iterator[OwnerSpan]:
    """Make the spans of one group and topic id from its changes in order of offset; what lasts has no end.

    A member that loses the partition had it since `held_since`, where no change before it says more. Nobody has it from
    when the last owner loses it until another gets it; what was before the first change is not known.
    """
    lasting = {span.member_id: span for span in begun}
    for _, together in groupby(changes, itemgetter("offset")):
        rows = list(together)
        at, snapshot_id = rows[0]["at"], rows[0]["snapshot_id"]
        for lost in sorted({row["from_member_id"] for row in rows} - {None}):
            since = next(row["held_since"] for row in rows if row["from_member_id"] == lost)
            yield replace(lasting.pop(lost, OwnerSpan(*key, lost, since, None)), until=at)
        got = sorted({row["to_member_id"] for row in rows} - {None})
        if got and None in lasting:
            yield replace(lasting.pop(None), until=at)
        if not got and not lasting:
            got = [None]
        lasting |= {member: OwnerSpan(*key, member, at, None, snapshot_id) for member in got}
    yield from lasting.values()


PLACE = "coalesce(t.topic, concat('id:', t.topic_id))"
"""The topic of a change `t` as an answer names it."""


def owners_of(reader: Reader, group: GroupKey, condition: str) -> Iterator[tuple[NamedPartition, list[OwnerSpan]]]:
    """Yield the partitions of one group, each with its owners one after another, by the changes `t` of a condition."""
    query = (
        f"SELECT {PLACE} AS topic, t.partition, t.at, t.offset, t.held_since, t.from_member_id, t.to_member_id, "
        f"t.snapshot_id FROM current_ownership_changes t WHERE {condition} ORDER BY 1, 2, 4, 6 NULLS LAST, 7 NULLS LAST"
    )
    for place, of_one in groupby(records(reader, query), itemgetter("topic", "partition")):
        yield place, list(spans((*group, None), (), list(of_one)))


def _named_span(
    spans_of_one: Sequence[OwnerSpan], lives: tuple[TopicLife, ...], until: datetime
) -> Iterator[OwnerSpan]:
    """Add the id of the topic that the name meant, if the log gives none and it can be inferred."""
    lost = {span.until for span in spans_of_one if span.member_id is not None}
    for span in spans_of_one:
        topic_id = span.topic_id
        if topic_id is None and span.since is not None:
            held, is_new = (span.since, span.until or until), span.member_id is None or span.since not in lost
            topic_id = life_of(lives, span.cluster_id, held, handed_over=not is_new)
        yield replace(span, topic_id=topic_id)


def _order(span: OwnerSpan) -> tuple[str, str, str, datetime, bool, datetime, str]:
    since, until = span.since or EPOCH, span.until or datetime.max.replace(tzinfo=EPOCH.tzinfo)
    life = span.topic_id or ""
    return span.cluster_id, span.group_id, life, since, span.until is None, until, span.member_id or ""
