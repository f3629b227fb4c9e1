"""States of groups as a ledger records them, and what differs between two neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from groupledger.answers.causes import Cause, Moved, Side, causes, moved, unowned
from groupledger.answers.generations import CLASSIC
from groupledger.answers.rows import one_of, records
from groupledger.answers.topic_causes import GivenPartition, KnownTopics, TopicChanges
from groupledger.answers.topics import TopicLife, life_at, lives_of

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.causes import Counts
    from groupledger.answers.rows import GroupKey, Reader, Record, Value
    from groupledger.answers.topic_partitions import NamedPartition

BASELINE = "baseline"

SnapshotKey = tuple[str, str, str]
"""Cluster, group, snapshot id."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Two neighbouring states: why the second came about, what moved, and what nobody has in it.

    `before` is None where the record begins with `after`; `unowned` where a topic's partitions are not known.
    """

    before: Side | None
    after: Side
    causes: tuple[Cause, ...]
    moved: tuple[Moved, ...]
    unowned: tuple[NamedPartition, ...] | None


@dataclass(frozen=True, slots=True)
class States:
    """States of groups, with the topics that they subscribe to as these were listed over time.

    `given`: the partitions that members of a group had, for the causes of its states.
    """

    sides: Mapping[SnapshotKey, Side]
    topics: Mapping[tuple[str, str], tuple[TopicLife, ...]]
    given: Mapping[GroupKey, Sequence[GivenPartition]] = field(default_factory=dict)

    def with_more(self, others: States) -> States:
        """These and others."""
        return States({**self.sides, **others.sides}, {**self.topics, **others.topics}, {**self.given, **others.given})

    def with_given(self, reader: Reader, of_groups: str, values: Mapping[str, Value]) -> States:
        """Add what causes rest on; `of_groups` is the condition on `t` that was asked for."""
        query = (
            "SELECT t.cluster_id, t.group_id, t.topic, t.topic_id, t.partition, min(t.offset) AS offset "
            f"FROM current_ownership_changes t WHERE {of_groups} AND t.to_member_id IS NOT NULL "
            "GROUP BY t.cluster_id, t.group_id, t.topic, t.topic_id, t.partition"
        )
        given: dict[GroupKey, list[GivenPartition]] = {}
        for row in records(reader, query, **values):
            each = GivenPartition(row["topic"], row["topic_id"], row["partition"], row["offset"])
            given.setdefault((row["cluster_id"], row["group_id"]), []).append(each)
        return replace(self, given=given)

    def with_results(self, results: Iterable[Record]) -> States:
        """The same, with what our own run says of them: rows of `current_rebalances`, of which the baseline counts."""
        ours = {_key(row): row for row in results if row["scenario"] == BASELINE and row["round"] == 1}
        sides = {
            key: replace(side, follow_up=ours[key]["follow_up"], verdict=ours[key]["verdict"]) if key in ours else side
            for key, side in self.sides.items()
        }
        return replace(self, sides=sides)

    def pair(self, cluster: str, group: str, before_id: str | None, after_id: str) -> tuple[Side | None, Side]:
        """Two of the states; `before_id` may be one that the ledger does not have."""
        before = None if before_id is None else self.sides.get((cluster, group, before_id))
        return before, self.sides[cluster, group, after_id]

    def causes(self, cluster: str, group: str, before: Side | None, after: Side) -> tuple[Cause, ...]:
        """What led from one state to the other."""
        if before is None:
            return tuple(causes(None, after))
        lives = {topic: self.topics.get((cluster, topic), ()) for topic in before.topics | after.topics}
        known = KnownTopics(lives, self.given.get((cluster, group), ()))
        return tuple(causes(before, after, TopicChanges(before, after, known).findings()))

    def difference(self, cluster: str, group: str, before_id: str | None, after_id: str) -> Difference:
        """What differs between two of the states; `before_id` may be one that the ledger does not have."""
        before, after = self.pair(cluster, group, before_id, after_id)
        return Difference(
            before,
            after,
            self.causes(cluster, group, before, after),
            tuple(moved(() if before is None else before.members, after.members)),
            None
            if self.not_counted((cluster, group), after, after.at)
            else self.unowned((cluster, group), after, after.at),
        )

    def unowned(self, key: GroupKey, side: Side, at: datetime) -> tuple[NamedPartition, ...]:
        """Partitions that nobody is recorded for, of the topics subscribed to, as they were listed at the moment."""
        return tuple(unowned(side, self.counted(key, side, at))) if side.members else ()

    def counted(self, key: GroupKey, side: Side, at: datetime) -> Counts:
        """Topics subscribed to as they were listed at the moment; None also for what was `deleted_since`."""
        gone = self.deleted_since(key, side, at)
        return {
            topic: None if topic in gone else count for topic, count in self.listed(key[0], side.topics, at).items()
        }

    def not_counted(self, key: GroupKey, side: Side, at: datetime) -> list[str]:
        """Topics subscribed to whose partitions are not known at the moment."""
        return sorted({*self.not_listed(key[0], side, at), *self.deleted_since(key, side, at)})

    def deleted_since(self, key: GroupKey, side: Side, at: datetime) -> list[str]:
        """Topics subscribed to that were deleted after the last listing, as the record shows by its topic ids.

        A coordinator (KIP-848) assigns every partition of the topics that there are. An id that members had, and that
        is in no target any more, is of a topic that is gone; how many partitions its name has now is not known.
        """
        had = {each.topic_id for each in self.given.get(key, ()) if each.offset < side.offset}
        return [topic for topic, topic_id in self.unassigned(key[0], side, at) if topic_id in had]

    def unassigned(self, cluster: str, side: Side, at: datetime) -> list[tuple[str, str]]:
        """Topics subscribed to, with their ids as listed at the moment, of which no member has or is to have any."""
        has = assigned_ids(side)
        if has is None:
            return []
        listed = sorted(self.listed(cluster, side.topics, at).items())
        return [(topic, count[0]) for topic, count in listed if count and count[0] and count[0] not in has]

    def not_listed(self, cluster: str, side: Side, at: datetime) -> list[str]:
        """Topics subscribed to that no listing had up to the moment: their partitions are not known."""
        known = {topic: self.topics.get((cluster, topic), ()) for topic in sorted(side.topics)}
        return [topic for topic, lives in known.items() if not lives or at < lives[0].since]

    def is_gone(self, cluster: str, topic: str, partition: int, at: datetime) -> bool:
        """Whether a listing had the partition, and the one of the moment no longer has it."""
        lives = self.topics.get((cluster, topic), ())
        life = life_at(lives, at)
        had = any(each.since <= at and partition < each.partition_count for each in lives)
        return had and (life is None or partition >= life.partition_count)

    def unlisted(self, cluster: str, side: Side) -> list[str]:
        """Topics subscribed to that no listing had at the time of the state: deleted ones, too."""
        counts = self.listed(cluster, side.topics, side.at)
        return [topic for topic in sorted(counts) if counts[topic] is None]

    def listed(self, cluster: str, topics: frozenset[str], at: datetime) -> Counts:
        """Topics as they were listed at the moment: id and partition count."""
        lives = {topic: life_at(self.topics.get((cluster, topic), ()), at) for topic in topics}
        return {topic: (life.topic_id, life.partition_count) if life else None for topic, life in lives.items()}


def states(
    reader: Reader, of_groups: str, values: Mapping[str, Value], snapshot_ids: list[str], *, computed: bool = True
) -> States:
    """The states with these ids; `of_groups` is a condition on the columns of `t`, which keeps other groups unread.

    Not `computed`: without what our own run says of them.
    """
    which, ids = one_of("t.snapshot_id", "snapshot", sorted(set(snapshot_ids)))
    asked, named = f"{of_groups} AND {which}", {**values, **ids}
    snapshots = records(
        reader,
        "SELECT t.cluster_id, t.group_id, t.snapshot_id, coalesce(t.generation, t.group_epoch) AS number, "
        "t.observed_at, t.assignor, t.group_type, t.complete, t.log_partition, t.offset, t.snapshot_kind, "
        "t.incarnation, t.shared_topics, t.subscribed_topics "
        f"FROM current_group_snapshots t WHERE {asked}",
        **named,
    )
    members: dict[SnapshotKey, list[Record]] = {}
    rows = records(
        reader,
        "SELECT t.cluster_id, t.group_id, t.snapshot_id, t.member_id, t.group_instance_id, t.client_id, t.host, "
        "t.rack_id, t.subscription_version, t.topics, t.recorded, t.pending_revocation, t.target "
        f"FROM current_member_snapshots t WHERE {asked} "
        "ORDER BY t.offset, t.member_order",
        **named,
    )
    for row in rows:
        members.setdefault(_key(row), []).append(row)
    sides = {_key(row): _side(row, members.get(_key(row), [])) for row in snapshots}
    names = {topic for side in sides.values() for topic in side.topics}
    found = States(sides, lives_of(reader, sorted({cluster for cluster, *_ in sides}), sorted(names)))
    if not computed:
        return found
    results = (
        "SELECT t.cluster_id, t.group_id, t.snapshot_id, t.scenario, t.round, t.follow_up, t.verdict "
        f"FROM current_rebalances t WHERE {asked} AND t.scenario = :scenario AND t.round = 1"
    )
    return found.with_results(records(reader, results, scenario=BASELINE, **named))


def assigned_ids(side: Side) -> frozenset[str] | None:
    """Return the topic ids of which a member has, or is to have, partitions; None if the record has no targets."""
    if side.group_type == CLASSIC or all(row["target"] is None for row in side.members):
        return None
    entries = (entry for row in side.members for entry in (*(row["recorded"] or ()), *(row["target"] or ())))
    return frozenset(entry["topic_id"] for entry in entries if entry["topic_id"] is not None)


def _key(row: Record) -> SnapshotKey:
    return row["cluster_id"], row["group_id"], row["snapshot_id"]


def _side(row: Record, members: list[Record]) -> Side:
    shared = row["shared_topics"]
    return Side(
        snapshot_id=row["snapshot_id"],
        number=row["number"],
        at=row["observed_at"],
        assignor=row["assignor"],
        topics=frozenset(shared or row["subscribed_topics"] or ()),
        follow_up=False,
        members=tuple(each | {"topics": each["topics"] if each["topics"] is not None else shared} for each in members),
        group_type=row["group_type"],
        complete=row["complete"],
        offset=row["offset"],
        log_partition=row["log_partition"],
        kind=row["snapshot_kind"],
        incarnation=row["incarnation"],
    )
