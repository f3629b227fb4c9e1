"""Who was assigned a partition at a time, from recorded facts only.

The answer rests on `ownership_changes`: the last change at or before the moment, and the first one after it. Changes
are ordered by offset, never by clock; the clock only says which of them came before the moment asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.core.moment import from_micros, iso, micros
from groupledger.pipeline.names import require_names, unknown_topic
from groupledger.pipeline.topics import TopicLife, topic_lives
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, Row

    from groupledger.pipeline.ledger import Ledger

Holder = tuple[str, str, str | None, str | None]
"""Cluster, group, topic id, and of a share group the member: a partition has at most one holder within it."""

SHARE = "share"

GAPS_NAMED = 10
IS_BEFORE, BEFORE, AFTER, OWNER = "is_before", "before", "after", "owner"


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
    ledger: Ledger, topic: str, partition: int, at: datetime, cluster: str | None = None, group: str | None = None
) -> Ownership:
    """Who was assigned `topic`-`partition` by the coordinator at `at`, for every group that ever was.

    A topic, cluster or group the ledger never heard of is a `Fault`; whatever else it cannot tell is a note.
    """
    lives = topic_lives(ledger, topic, cluster)
    rows = _changes_of(ledger, topic, partition, lives).withColumn(c.TOPIC_ID, _identity(lives))
    for name, wanted in ((c.CLUSTER_ID, cluster), (c.GROUP_ID, group)):
        rows = rows if wanted is None else rows.where(F.col(name) == wanted)
    changes = _changes_around(rows, at)
    changes = _each_owner(ledger, rows, at, changes)
    if not changes:
        require_names(ledger, cluster, group)
        if not lives:
            raise unknown_topic(ledger, topic, cluster)
    holdings = tuple(each for each in _with_members(ledger, changes, at) if not _is_over(each, lives, at))
    clusters = [cluster] if cluster else sorted({holding.cluster_id for holding in holdings})
    notes = [*_topic_notes(topic, partition, at, lives), *_reach_notes(ledger, at, clusters)]
    gaps = _gaps(ledger, holdings)
    notes += [f"gap in the history of {group} ({kind}): {reason}" for group, kind, reason in gaps[:GAPS_NAMED]]
    if not changes:
        who = f"group {group}" if group else "no group in this ledger"
        notes.insert(0, f"{who} was {'never' if group else 'ever'} assigned {topic}-{partition}")
    return Ownership(topic, partition, at, holdings, lives, tuple(notes), len(gaps))


def _changes_of(ledger: Ledger, topic: str, partition: int, lives: tuple[TopicLife, ...]) -> DataFrame:
    ids = [life.topic_id for life in lives if life.topic_id]
    named = (F.col(c.TOPIC) == topic) | (F.col(c.TOPIC).isNull() & F.col(c.TOPIC_ID).isin(ids))
    return ledger.current(OWNERSHIP_CHANGES).where(named & (F.col(c.PARTITION) == partition))


def _identity(lives: tuple[TopicLife, ...]) -> Column:
    """The topic id of a change. One recorded before a listing showed the topic belongs to the life that comes next."""
    found = F.col(c.TOPIC_ID)
    for life in lives:
        then = F.lit(True) if life.until is None else F.col(c.AT) < F.timestamp_micros(F.lit(micros(life.until)))
        found = F.coalesce(found, F.when((F.col(c.CLUSTER_ID) == life.cluster_id) & then, F.lit(life.topic_id)))
    return found


def _is_over(holding: Holding, lives: tuple[TopicLife, ...], at: datetime) -> bool:
    """Whether nobody has the partition because its topic was deleted: no answer, when the name lives on elsewhere."""
    own = [life for life in lives if (life.cluster_id, life.topic_id) == (holding.cluster_id, holding.topic_id)]
    ended = bool(own) and all(life.until is not None and life.until <= at for life in own)
    return ended and holding.last is not None and holding.last.to_member_id is None


def _changes_around(rows: DataFrame, at: datetime, member: str | None = None) -> dict[Holder, dict[str, Change]]:
    """For each holder the last change before and the first one after: two rows at most leave Spark.

    `member` names the column of the member that is asked for; None: whoever has the partition.
    """
    change = F.struct(
        F.unix_micros(c.AT).alias(c.AT),
        c.FROM_MEMBER_ID,
        c.TO_MEMBER_ID,
        F.unix_micros(c.HELD_SINCE).alias(c.HELD_SINCE),
        c.SNAPSHOT_ID,
        c.OFFSET,
    )
    owner = F.lit(None).cast("string") if member is None else F.col(member)
    around = (
        rows.withColumn(IS_BEFORE, F.col(c.AT) <= F.timestamp_micros(F.lit(micros(at))))
        .groupBy(c.CLUSTER_ID, c.GROUP_ID, c.TOPIC_ID, owner.alias(OWNER), IS_BEFORE)
        .agg(F.max_by(change, c.OFFSET).alias(BEFORE), F.min_by(change, c.OFFSET).alias(AFTER))
    )
    found: dict[Holder, dict[str, Change]] = {}
    for row in around.collect():
        side = BEFORE if row[IS_BEFORE] else AFTER
        holder = (row[c.CLUSTER_ID], row[c.GROUP_ID], row[c.TOPIC_ID], row[OWNER])
        found.setdefault(holder, {})[side] = _change(row[side])
    return found


def _each_owner(
    ledger: Ledger, rows: DataFrame, at: datetime, changes: dict[Holder, dict[str, Change]]
) -> dict[Holder, dict[str, Change]]:
    """The same, with an entry for each owner in place of that of a share group, unless nobody had the partition."""
    shared = _share_groups(ledger, {group for _, group, *_ in changes})
    if not shared:
        return changes
    sides = F.array(F.col(c.FROM_MEMBER_ID), F.col(c.TO_MEMBER_ID))
    own = rows.where(F.col(c.GROUP_ID).isin(sorted({group for _, group in shared})))
    own = own.withColumn(OWNER, F.explode(F.array_compact(sides)))
    owners = {
        holder: sides
        for holder, sides in _changes_around(own, at, OWNER).items()
        if holder[:2] in shared and _had(holder[3], sides)
    }
    replaced = {holder[:3] for holder in owners}
    return {holder: sides for holder, sides in changes.items() if holder[:3] not in replaced} | owners


def _had(member_id: str | None, sides: dict[str, Change]) -> bool:
    """Whether the member had the partition at the moment between the two sides."""
    if BEFORE in sides:
        return sides[BEFORE].to_member_id == member_id
    return sides[AFTER].from_member_id == member_id


def _share_groups(ledger: Ledger, groups: set[str]) -> set[tuple[str, str]]:
    """Those of the groups that were share groups at any time: (cluster, group)."""
    rows = ledger.current(GROUP_SNAPSHOTS).where(F.col(c.GROUP_ID).isin(sorted(groups)))
    found = rows.where(F.col(c.GROUP_TYPE) == SHARE).select(c.CLUSTER_ID, c.GROUP_ID).distinct()
    return {(row[0], row[1]) for row in found.collect()}


def _change(row: Row) -> Change:
    since = row[c.HELD_SINCE]
    return Change(
        from_micros(row[c.AT]),
        row[c.FROM_MEMBER_ID],
        row[c.TO_MEMBER_ID],
        None if since is None else from_micros(since),
        row[c.SNAPSHOT_ID],
        row[c.OFFSET],
    )


def _with_members(ledger: Ledger, changes: dict[Holder, dict[str, Change]], at: datetime) -> tuple[Holding, ...]:
    """In order of cluster, group, topic id; each with the member that held it at the moment."""
    snapshots = {change.snapshot_id for sides in changes.values() for change in sides.values()}
    members = _members_of(ledger, sorted(snapshots))
    covered = _covered(ledger, {group for _, group, *_ in changes}, at)
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


def _covered(ledger: Ledger, groups: set[str], at: datetime) -> set[tuple[str, str]]:
    """The (cluster, group)s with a snapshot at or before the moment."""
    rows = ledger.current(GROUP_SNAPSHOTS).where(F.col(c.GROUP_ID).isin(sorted(groups)))
    seen = rows.where(F.col(c.OBSERVED_AT) <= F.timestamp_micros(F.lit(micros(at))))
    return {(row[0], row[1]) for row in seen.select(c.CLUSTER_ID, c.GROUP_ID).distinct().collect()}


def _members_of(ledger: Ledger, snapshot_ids: list[str]) -> dict[tuple[str, str], Member]:
    if not snapshot_ids:
        return {}
    rows = ledger.current(MEMBER_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID).isin(snapshot_ids))
    found = rows.select(c.SNAPSHOT_ID, c.MEMBER_ID, c.CLIENT_ID, c.GROUP_INSTANCE_ID, c.HOST).collect()
    return {(row[0], row[1]): Member(row[1], row[2], row[3], row[4]) for row in found}


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


def _reach_notes(ledger: Ledger, at: datetime, clusters: list[str]) -> Iterator[str]:
    """Says where the moment lies before the first or after the last snapshot of a cluster."""
    first, last = F.unix_micros(F.min(c.OBSERVED_AT)), F.unix_micros(F.max(c.OBSERVED_AT))
    snapshots = ledger.current(GROUP_SNAPSHOTS).groupBy(c.CLUSTER_ID).agg(first, last)
    rows = snapshots.where(F.col(c.CLUSTER_ID).isin(clusters)) if clusters else snapshots
    for cluster, begin, end in rows.sort(c.CLUSTER_ID).collect():
        if at < from_micros(begin):
            yield f"history of cluster {cluster} begins at {iso(from_micros(begin))}: what was before is not known"
        elif at > from_micros(end):
            yield f"the last snapshot of cluster {cluster} is of {iso(from_micros(end))}: nothing later is known"


def _gaps(ledger: Ledger, holdings: tuple[Holding, ...]) -> list[Row]:
    """The gaps between the change before the moment and the one after it: they may hide another."""
    around = F.lit(False)
    for holding in holdings:
        here = (F.col(c.CLUSTER_ID) == holding.cluster_id) & (F.col(c.GROUP_ID) == holding.group_id)
        here &= F.col(c.OFFSET) > (holding.last.offset if holding.last else -1)
        around |= here & (F.col(c.OFFSET) <= holding.next.offset) if holding.next else here
    gaps = ledger.current(COVERAGE).where(around).sort(c.CLUSTER_ID, c.GROUP_ID, c.OFFSET)
    return gaps.select(c.GROUP_ID, c.KIND, c.REASON).collect()
