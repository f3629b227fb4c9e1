"""States of groups as a ledger records them, and what differs between two neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from groupledger.answers.causes import (
    GENERATION,
    Cause,
    Counts,
    GivenPartition,
    Moved,
    Side,
    StateChange,
    causes,
    moved,
    unowned,
)
from groupledger.answers.queries import (
    CLASSIC,
    CONSUMER,
    NUMBER,
    GroupKey,
    NamedPartition,
    Reader,
    Record,
    TopicLife,
    from_row,
    gathered,
    group_of,
    in_parts,
    life_at,
    literal,
    lives_of,
    matching,
    of_their_groups,
    one_of,
    records,
    steps,
)
from groupledger.answers.scope import Scope, unknown_group
from groupledger.core.faults import Fault
from groupledger.core.moments import iso

if TYPE_CHECKING:
    from datetime import datetime


BASELINE = "baseline"

SnapshotKey = tuple[str, str, str]
"""Cluster, group, snapshot id."""


@dataclass(frozen=True, slots=True)
class Difference(StateChange):
    """Two neighbouring states: why the second came about, what moved, and what nobody has in it.

    `before` is None where the record begins with `after`; `unowned` where a topic's partitions are not known.
    """

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

    def with_given(self, reader: Reader, of_groups: str) -> States:
        """Add what causes rest on; `of_groups` is the condition on `t` that was asked for."""
        query = (
            "SELECT t.cluster_id, t.group_id, t.topic, t.topic_id, t.partition, min(t.offset) AS offset "
            f"FROM current_ownership_changes t WHERE {of_groups} AND t.to_member_id IS NOT NULL "
            "GROUP BY t.cluster_id, t.group_id, t.topic, t.topic_id, t.partition"
        )
        rows = records(reader, query)
        given = ((group_of(row), GivenPartition(*(row[name] for name in GivenPartition._fields))) for row in rows)
        return replace(self, given=gathered(given))

    def with_results(self, results: Iterable[Record]) -> States:
        """Add what our own run says of them: rows of `current_rebalances`, of which the baseline counts."""
        ours = {_key(row): row for row in results if row["scenario"] == BASELINE and row["round"] == 1}
        sides = {
            key: replace(side, follow_up=ours[key]["follow_up"], verdict=ours[key]["verdict"]) if key in ours else side
            for key, side in self.sides.items()
        }
        return replace(self, sides=sides)

    def pair(self, cluster: str, group: str, before_id: str | None, after_id: str) -> tuple[Side | None, Side]:
        """Return two of the states; `before_id` may be one that the ledger does not have."""
        before = None if before_id is None else self.sides.get((cluster, group, before_id))
        return before, self.sides[cluster, group, after_id]

    def causes(self, cluster: str, group: str, before: Side | None, after: Side) -> tuple[Cause, ...]:
        """Return what led from one state to the other."""
        names = after.topics if before is None else before.topics | after.topics
        lives = {topic: self.topics.get((cluster, topic), ()) for topic in names}
        return tuple(causes(before, after, lives, self.given.get((cluster, group), ())))

    def difference(self, cluster: str, group: str, before_id: str | None, after_id: str) -> Difference:
        """Compare two of the states; `before_id` may be one that the ledger does not have."""
        before, after = self.pair(cluster, group, before_id, after_id)
        here = (cluster, group), after, after.at
        changed = tuple(moved(() if before is None else before.members, after.members))
        nobody = None if self.not_counted(*here) else self.unowned(*here)
        return Difference(cluster, before, after, self.causes(cluster, group, before, after), changed, nobody)

    def unowned(self, key: GroupKey, side: Side, at: datetime) -> tuple[NamedPartition, ...]:
        """Return unowned partitions of the topics subscribed to, as these were listed at the moment."""
        return tuple(unowned(side, self.counted(key, side, at))) if side.members else ()

    def counted(self, key: GroupKey, side: Side, at: datetime) -> Counts:
        """Return topics subscribed to as they were listed at the moment; None also for those `deleted_since`."""
        gone = self.deleted_since(key, side, at)
        return {
            topic: None if topic in gone else count for topic, count in self.listed(key[0], side.topics, at).items()
        }

    def not_counted(self, key: GroupKey, side: Side, at: datetime) -> list[str]:
        """Return topics subscribed to whose partitions are not known at the moment."""
        return sorted({*self.not_listed(key[0], side, at), *self.deleted_since(key, side, at)})

    def deleted_since(self, key: GroupKey, side: Side, at: datetime) -> list[str]:
        """Return topics subscribed to that were deleted after the last listing, as the record shows by its topic ids.

        A coordinator (KIP-848) assigns every partition of the topics that there are. An id that members had, and that
        is in no target any more, is of a topic that is gone; how many partitions its name has now is not known.
        """
        had = {each.topic_id for each in self.given.get(key, ()) if each.offset < side.offset}
        return [topic for topic, topic_id in self.unassigned(key[0], side, at) if topic_id in had]

    def unassigned(self, cluster: str, side: Side, at: datetime) -> list[tuple[str, str]]:
        """Return topics subscribed to, with their ids as listed then, of which no member has or is to have any."""
        has = assigned_ids(side)
        if has is None:
            return []
        listed = sorted(self.listed(cluster, side.topics, at).items())
        return [(topic, count[0]) for topic, count in listed if count and count[0] and count[0] not in has]

    def not_listed(self, cluster: str, side: Side, at: datetime) -> list[str]:
        """Return topics subscribed to that no listing had up to the moment: their partitions are not known."""
        known = {topic: self.topics.get((cluster, topic), ()) for topic in sorted(side.topics)}
        return [topic for topic, lives in known.items() if not lives or at < lives[0].since]

    def is_gone(self, cluster: str, topic: str, partition: int, at: datetime) -> bool:
        """Return whether a listing had the partition, and the one of the moment no longer has it."""
        lives = self.topics.get((cluster, topic), ())
        life = life_at(lives, at)
        had = any(each.since <= at and partition < each.partition_count for each in lives)
        return had and (life is None or partition >= life.partition_count)

    def unlisted(self, cluster: str, side: Side) -> list[str]:
        """Return topics subscribed to that no listing had at the time of the state: deleted ones, too."""
        counts = self.listed(cluster, side.topics, side.at)
        return [topic for topic in sorted(counts) if counts[topic] is None]

    def listed(self, cluster: str, topics: frozenset[str], at: datetime) -> Counts:
        """Return topics as they were listed at the moment: id and partition count."""
        lives = {topic: life_at(self.topics.get((cluster, topic), ()), at) for topic in topics}
        return {topic: (life.topic_id, life.partition_count) if life else None for topic, life in lives.items()}


def states(reader: Reader, of_groups: str, snapshot_ids: Iterable[str]) -> States:
    """Read the states with these ids; `of_groups` is a condition on the columns of `t`: it keeps other groups unread.

    Without what our own run says of them.
    """
    asked = f"{of_groups} AND {one_of('t.snapshot_id', sorted(set(snapshot_ids)))}"
    snapshots = records(
        reader,
        f"SELECT t.cluster_id, t.group_id, t.snapshot_id, {NUMBER} AS number, "
        "t.observed_at, t.assignor, t.group_type, t.complete, t.log_partition, t.offset, t.snapshot_kind, "
        "t.incarnation, t.shared_topics, t.subscribed_topics "
        f"FROM current_group_snapshots t WHERE {asked}",
    )
    rows = records(
        reader,
        "SELECT t.cluster_id, t.group_id, t.snapshot_id, t.member_id, t.group_instance_id, t.client_id, t.host, "
        "t.rack_id, t.subscription_version, t.topics, t.recorded, t.pending_revocation, t.target "
        f"FROM current_member_snapshots t WHERE {asked} "
        "ORDER BY t.offset, t.member_order",
    )
    members = gathered((_key(row), row) for row in rows)
    sides = {}
    for row in snapshots:
        shared, own = row["shared_topics"], members.get(_key(row), [])
        sides[_key(row)] = from_row(
            Side,
            row,
            at=row["observed_at"],
            topics=frozenset(shared or row["subscribed_topics"] or ()),
            follow_up=False,
            members=tuple(each if each["topics"] is not None else each | {"topics": shared} for each in own),
            verdict=None,
            kind=row["snapshot_kind"],
        )
    names = {topic for side in sides.values() for topic in side.topics}
    return States(sides, lives_of(reader, sorted({cluster for cluster, *_ in sides}), sorted(names)))


def baseline(reader: Reader, condition: str) -> list[Record]:
    """Return what our own run says of the snapshots `t` that a condition holds for: see `States.with_results`."""
    columns = "t.cluster_id, t.group_id, t.snapshot_id, t.scenario, t.round, t.follow_up, t.verdict"
    first = f"t.scenario = '{BASELINE}' AND t.round = 1"
    return records(reader, f"SELECT {columns} FROM current_rebalances t WHERE {condition} AND {first}")


def states_of(reader: Reader, rows: Iterable[Record], *, given: bool = False) -> States:
    """Read the states with the snapshot ids of these rows, some at a time; `given`: with what causes rest on."""
    distinct = list({row["snapshot_id"]: row for row in rows}.values())
    sides: dict[SnapshotKey, Side] = {}
    topics: dict[tuple[str, str], tuple[TopicLife, ...]] = {}
    of_all: dict[GroupKey, Sequence[GivenPartition]] = {}
    for some in in_parts(distinct):
        of_groups = of_their_groups("t.", some)
        found = states(reader, of_groups, [row["snapshot_id"] for row in some])
        found = found.with_given(reader, of_groups) if given else found
        sides |= found.sides
        topics |= found.topics
        of_all |= found.given
    return States(sides, topics, of_all)


def assigned_ids(side: Side) -> frozenset[str] | None:
    """Return the topic ids of which a member has, or is to have, partitions; None if the record has no targets."""
    if side.group_type == CLASSIC or all(row["target"] is None for row in side.members):
        return None
    entries = (entry for row in side.members for entry in (*(row["recorded"] or ()), *(row["target"] or ())))
    return frozenset(entry["topic_id"] for entry in entries if entry["topic_id"] is not None)


def _key(row: Record) -> SnapshotKey:
    return row["cluster_id"], row["group_id"], row["snapshot_id"]


# The states of groups in a period, each with how long it lasted, and how many partitions its members had.
#
# In joins the smaller side comes first: the engine in delta-rs keeps that one in memory, unless it takes the other for
# smaller. Of lists that were taken apart it has no size to go by.

RECORDED, TARGET = "recorded", "target"
"""Columns of a member: what it has, and what it is to have."""
BEGINS_LATE = "history-begins-late"
"""A gap of a group's history (`core.history.fold_rows`, which loads the fold)."""
ASSIGNED = (
    f"s.group_type IN ('{CLASSIC}', '{CONSUMER}') AND s.members > 0 AND s.complete "
    "AND coalesce(s.protocol_type, 'consumer') = 'consumer'"
)
"""States of which the ledger has the whole assignment. Not those of share and streams groups: a partition of theirs
may have several owners, or be known by its task alone."""

_KEYS = "t.snapshot_id, t.cluster_id, t.group_id, t.offset, t.incarnation, t.observed_at, t.group_type, t.protocol_type"
_COLUMNS = (
    f"{_KEYS}, t.snapshot_kind, t.state, t.complete, t.members, t.assignor, t.shared_topics, t.subscribed_topics, "
    f"{NUMBER} AS number, t.target_epoch, t.previous_snapshot_id"
)


def recorded_states(within: Scope) -> str:
    """Select the states that lasted into the period: its records, and the last one of each group before it.

    `until_at` is when the next one was recorded, null for a group's last one; `before` is the one before it, null for
    the first of these; `in_period` is false for what lasted into it only.
    """
    return _lasting(within, _newest_before(within))


def _newest_before(within: Scope) -> str | None:
    """Select the offset of the last state of each group before the period; None: it reaches back to the beginning."""
    if within.since is None:
        return None
    return (
        "SELECT t.cluster_id, t.group_id, max(t.offset) AS newest FROM current_group_snapshots t "
        f"WHERE {within.of_groups('t.')} AND t.observed_at < {literal(within.since)} GROUP BY t.cluster_id, t.group_id"
    )


def _lasting(within: Scope, newest_before: str | None, least: int = 0) -> str:
    """Select the records of the period, and those that have these offsets, none of which is less than `least`."""
    rows = f"SELECT {_COLUMNS}, true AS in_period FROM current_group_snapshots t WHERE {within.where('t.')}"
    if newest_before is not None:
        rows += (
            f" UNION ALL SELECT {_COLUMNS}, false AS in_period FROM ({newest_before}) b "
            "JOIN current_group_snapshots t ON b.cluster_id = t.cluster_id AND b.group_id = t.group_id "
            f"AND b.newest = t.offset WHERE t.offset >= {least}"
        )
    within_group = "OVER (PARTITION BY s.cluster_id, s.group_id ORDER BY s.offset)"
    until = f"lead(s.observed_at) {within_group} AS until_at, lag(s.snapshot_id) {within_group} AS before"
    return f"SELECT s.*, {until} FROM ({rows}) s"


def _with_last_before(reader: Reader, within: Scope, kept: ExitStack) -> str:
    """Select the same with two queries: by a number in a query files and pages are left out."""
    of_groups = _newest_before(within)
    if of_groups is None:
        return _lasting(within, None)
    before = f"SELECT * FROM {kept.enter_context(reader.kept(of_groups))}"
    [row] = records(reader, f"SELECT min(b.newest) AS least FROM ({before}) b")
    return _lasting(within, before, row["least"] or 0)


def recorded(within: Scope) -> str:
    """Select the records of the period alone."""
    return f"SELECT {_COLUMNS} FROM current_group_snapshots t WHERE {within.where('t.')}"


@dataclass(frozen=True, slots=True)
class MeasuredStates:
    """The states of a period, worked out once for many questions, as SQL.

    `states` lasted into the period: the columns of `states`, and those of `expected` and `loads`, null where these have
    no row. `recorded` are those of the period alone, without the latter columns.
    """

    within: Scope
    states: str
    recorded: str


@contextmanager
def measured(reader: Reader, within: Scope) -> Iterator[MeasuredStates]:
    """Measure the states of a period; they are there until the context ends."""
    with ExitStack() as kept:
        lasting = kept.enter_context(reader.kept(_with_last_before(reader, within, kept)))
        of_states = f"SELECT * FROM {lasting}"
        [row] = records(reader, f"SELECT min(s.offset) AS oldest FROM ({of_states}) s")
        of_loads, of_topics = loads(within, of_states, row["oldest"] or 0), expected(of_states, listings(within))
        numbers = (
            "SELECT e.snapshot_id, e.fewest, e.greatest, l.total, l.most, l.least, l.owners "
            f"FROM ({of_topics}) e LEFT JOIN ({of_loads}) l ON l.snapshot_id = e.snapshot_id"
        )
        of_numbers = kept.enter_context(reader.kept(numbers))
        beside = (
            "SELECT s.*, n.fewest, n.greatest, n.total, n.most, n.least, n.owners "
            f"FROM ({of_states}) s LEFT JOIN {of_numbers} n ON n.snapshot_id = s.snapshot_id"
        )
        yield MeasuredStates(within, beside, f"{of_states} t WHERE t.in_period")


def loads(within: Scope, states_query: str, since: int = 0, *, of: str = RECORDED) -> str:
    """Select for each of these states with an owned partition `total`, `most` and `least` of an owner, and `owners`.

    `since`: an offset that none of them lies before. `of`: what members have, or TARGET, what they are to have.
    """
    return steps(
        entries=f"SELECT m.snapshot_id, m.member_order, unnest(m.{of}) AS entry "
        f"FROM (SELECT t.snapshot_id FROM ({states_query}) t) s JOIN current_member_snapshots m "
        f"ON m.snapshot_id = s.snapshot_id WHERE {within.of_groups('m.')} AND m.offset >= {since}",
        by_member="SELECT e.snapshot_id, e.member_order, sum(cardinality(e.entry.partitions)) AS load "
        "FROM entries e GROUP BY e.snapshot_id, e.member_order",
        loads="SELECT p.snapshot_id, cast(sum(p.load) AS BIGINT) AS total, cast(max(p.load) AS BIGINT) AS most, "
        "cast(min(p.load) AS BIGINT) AS least, count(*) AS owners FROM by_member p GROUP BY p.snapshot_id",
    )


def listings(within: Scope) -> str:
    """Select the partition counts of topics, each from when to when it was valid; null: the topic was deleted."""
    order = "t.valid_from, CASE WHEN t.partition_count IS NULL THEN 0 ELSE 1 END, t.topic_id, t.partition_count"
    after = f"lead(t.valid_from) OVER (PARTITION BY t.cluster_id, t.topic ORDER BY {order}) AS valid_until"
    return (
        f"SELECT t.cluster_id, t.topic, t.topic_id, t.partition_count, t.valid_from, {after} "
        f"FROM current_topic_snapshots t WHERE {matching('t.', cluster_id=within.cluster)}"
    )


def expected(states_query: str, listings_query: str) -> str:
    """Select for each of these states the fewest and the most partitions that its topics had while it lasted.

    A topic that no listing had then counts for none.
    """
    return steps(
        topics="SELECT s.cluster_id, s.snapshot_id, s.observed_at, s.until_at, "
        f"unnest(coalesce(s.shared_topics, s.subscribed_topics)) AS topic FROM ({states_query}) s WHERE {ASSIGNED}",
        by_topic="SELECT q.snapshot_id, q.topic, min(coalesce(l.partition_count, 0)) AS least, "
        f"max(coalesce(l.partition_count, 0)) AS most FROM topics q LEFT JOIN ({listings_query}) l "
        "ON l.cluster_id = q.cluster_id AND l.topic = q.topic AND (q.until_at IS NULL OR l.valid_from < q.until_at) "
        "AND (l.valid_until IS NULL OR l.valid_until > q.observed_at) GROUP BY q.snapshot_id, q.topic",
        expected="SELECT b.snapshot_id, cast(sum(b.least) AS BIGINT) AS fewest, cast(sum(b.most) AS BIGINT) AS "
        "greatest FROM by_topic b GROUP BY b.snapshot_id",
    )


def unseen_before(reader: Reader, rows: Sequence[Record]) -> dict[str, frozenset[NamedPartition]]:
    """Return the first of these states of their groups that others came before, and the partitions each took away.

    A group's very first state is one only if its history begins late: before another one there was no group.
    """
    first = {row["snapshot_id"]: row["previous_snapshot_id"] for row in rows if row["before"] is None}
    late = begun_late(reader, [each for each, previous in first.items() if previous is None])
    found: dict[str, set[NamedPartition]] = {each: set() for each in first if first[each] is not None or each in late}
    query = (
        "SELECT t.snapshot_id, t.topic, t.partition FROM current_ownership_changes t "
        f"WHERE {one_of('t.snapshot_id', sorted(found))} AND t.to_member_id IS NULL"
    )
    for row in records(reader, query):
        found[row["snapshot_id"]].add((row["topic"], row["partition"]))
    return {snapshot_id: frozenset(places) for snapshot_id, places in found.items()}


def begun_late(reader: Reader, snapshot_ids: Iterable[str]) -> set[str]:
    """Return those of these snapshots with which a group's history begins although the group was there before."""
    which = one_of("t.snapshot_id", sorted(snapshot_ids))
    query = f"SELECT t.snapshot_id FROM current_coverage t WHERE {which} AND t.kind = '{BEGINS_LATE}'"
    return {row["snapshot_id"] for row in records(reader, query)}


# The snapshots of a generation (or group epoch), and which of them represents the rebalance.
#
# A record of a classic group is a rebalance by itself. A group that its coordinator assigns writes many records in an
# epoch. Of these the last one before a member left represents the rebalance: a member that leaves gives up its
# partitions before the log records the next epoch. A static member that comes back does so within the epoch: from there
# on the states are separate, as a rewrite of a classic generation is, and the next epoch begins from them. And a
# coordinator may begin the next epoch before it has made a target for one: what was recorded in it counts as part of
# the next epoch that has a target.

GENERATIONS_NAMED = 12
_OF_STATE = (
    *("cluster_id", "group_id", "group_type", "incarnation", "offset", "snapshot_id", "previous_snapshot_id"),
    *("snapshot_kind", "state", "complete", "members", "assignor", "observed_at"),
)
_EPOCH_COLUMNS = ", ".join(f"t.{name}" for name in _OF_STATE)


@dataclass(frozen=True, slots=True)
class OtherRebalance:
    """Another rebalance to the same generation: of an earlier incarnation, of the other type, or a rewrite."""

    snapshot_id: str
    offset: int
    observed_at: datetime
    group_type: str
    incarnation: int
    snapshot_kind: str


class Selection(NamedTuple):
    """Which rebalance of a group is meant; nothing: the last one.

    `at`: the one in force then, that is the last one recorded up to that time. `offset`: the one that the record at
    this offset of the group's log partition led to.
    """

    generation: int | None = None
    incarnation: int | None = None
    at: datetime | None = None
    offset: int | None = None


def rebalance_states(condition: str, of_classic: str = "true") -> str:
    """Select the states `t` that a condition holds for; of classic groups only those that meet another one, too.

    `number`: the generation or epoch that a state counts for; `represents`: whether it is the one that represents it,
    or the part of it that begins when a static member came back. Then `before_id` is the state that it began from.
    `began_at`, `last_offset` and `records` are of all states of that part.
    """
    alone = (
        f"SELECT {_EPOCH_COLUMNS}, {NUMBER} AS number, t.observed_at AS began_at, t.offset AS last_offset, "
        "cast(1 AS BIGINT) AS records, true AS represents, t.previous_snapshot_id AS before_id "
        f"FROM current_group_snapshots t WHERE {condition} AND t.group_type = '{CLASSIC}' AND {of_classic}"
    )
    return f"{alone} UNION ALL SELECT * FROM ({_of_epochs(condition)}) t"


def _of_epochs(condition: str) -> str:
    """Select the same of groups that their coordinator assigns, which write several states in an epoch.

    A group that was converted and came back has several stretches: in each, the state before is one of these, but for
    the first. `counts`: the state was recorded when its epoch had a target. Kafka before 4.1 makes no target for the
    epoch in which the last member leaves, so an empty state counts as well, unless the next one is empty, too: then the
    last member was just leaving. `follows`: the state is not from before the target; `whole`: nor has it fewer members
    than one before it. Where it is so again within the epoch, a static member came back: a `part` begins.
    """
    incarnation = "PARTITION BY t.cluster_id, t.group_id, t.incarnation, t.group_type"
    life = f"{incarnation}, t.stretch"
    epoch = f"{life}, coalesce(t.number, -1)"
    order = "ORDER BY t.offset, t.snapshot_id"
    so_far, onward = ("ROWS BETWEEN UNBOUNDED PRECEDING AND", "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")
    next_number = f"min(CASE WHEN t.counts THEN t.own_number END) OVER ({life} {order} {onward})"
    last_one = "last_value(CASE WHEN t.represents THEN t.snapshot_id END) IGNORE NULLS"
    part = f"{epoch}, t.part"
    return steps(
        marked=f"SELECT {_EPOCH_COLUMNS}, {NUMBER} AS own_number, t.target_epoch, t.group_epoch, CASE WHEN "
        f"t.previous_snapshot_id <> lag(t.snapshot_id) OVER ({incarnation} {order}) THEN 1 ELSE 0 END AS anew "
        f"FROM current_group_snapshots t WHERE {condition} AND t.group_type <> '{CLASSIC}'",
        in_stretches=f"SELECT t.*, sum(t.anew) OVER ({incarnation} {order}) AS stretch FROM marked t",
        counting=f"SELECT {_EPOCH_COLUMNS}, t.stretch, t.own_number, coalesce(t.target_epoch = t.group_epoch, false) "
        f"OR (t.members = 0 AND coalesce(lead(t.members) OVER ({life} {order}), 1) > 0) AS counts "
        "FROM in_stretches t",
        numbered=f"SELECT {_EPOCH_COLUMNS}, t.stretch, t.counts, coalesce({next_number}, t.own_number) AS number "
        "FROM counting t",
        following=f"SELECT t.*, t.counts OR NOT max(t.counts) OVER ({epoch}) AS follows, "
        f"first_value(t.previous_snapshot_id) OVER ({epoch} {order}) AS previous_of_first FROM numbered t",
        whole=f"SELECT t.*, t.follows AND t.members = max(t.members) OVER ({epoch}, t.follows {order} "
        f"{so_far} CURRENT ROW) AS whole FROM following t",
        returned=f"SELECT t.*, CASE WHEN t.whole AND NOT lag(t.whole) OVER ({epoch}, t.follows {order}) THEN 1 ELSE 0 "
        "END AS returns FROM whole t",
        in_parts=f"SELECT t.*, sum(t.returns) OVER ({epoch} {order}) AS part FROM returned t",
        representing=f"SELECT t.*, t.offset = max(CASE WHEN t.whole THEN t.offset END) OVER ({part}) AS represents, "
        f"first_value(t.observed_at) OVER ({part} {order}) AS began_at, "
        f"max(t.offset) OVER ({part}) AS last_offset, count(*) OVER ({part}) AS records FROM in_parts t",
        of_epochs=f"SELECT {_EPOCH_COLUMNS}, t.number, t.began_at, t.last_offset, t.records, t.represents, "
        "CASE WHEN t.part > 0 OR t.previous_of_first IS NOT NULL THEN "
        f"coalesce({last_one} OVER ({life} {order} {so_far} 1 PRECEDING), t.previous_of_first) END AS before_id "
        "FROM representing t",
    )


def of_generations(prefix: str) -> str:
    """Require a state that a rebalance of a classic group left, with members: no rewrite, and not its end."""
    return f"{prefix}group_type = '{CLASSIC}' AND {prefix}snapshot_kind = '{GENERATION}' AND {prefix}members > 0"


def cluster_of(reader: Reader, group_id: str, cluster: str | None = None) -> str:
    """Return the cluster of the group. Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP; AMBIGUOUS_GROUP for several."""
    condition = matching("t.", group_id=group_id, cluster_id=cluster)
    query = f"SELECT DISTINCT t.cluster_id FROM current_group_snapshots t WHERE {condition}"
    return _only([row["cluster_id"] for row in records(reader, query)], reader, group_id, cluster)


def _only(clusters: Iterable[str], reader: Reader, group_id: str, cluster: str | None) -> str:
    """Return the one cluster in which a group was found."""
    found = sorted(set(clusters))
    if not found:
        raise unknown_group(reader, group_id, cluster)
    if len(found) > 1:
        text = f"group {group_id!r} is in clusters {', '.join(found)}: choose one (--cluster)"
        raise Fault("AMBIGUOUS_GROUP", text)
    return found[0]


def snapshots_of(reader: Reader, group_id: str, cluster: str | None, generation: int | None) -> list[Record]:
    """Return the snapshots of a generation, or of the last one, in order of position, as `rebalance_states` has them.

    An epoch that got no target counts as part of the next one. Raises Fault: as `cluster_of`, UNKNOWN_GENERATION.

    With the last snapshot in each cluster: so it takes one query, whatever there is.
    """
    condition = matching("t.", group_id=group_id, cluster_id=cluster)
    back = "OVER (PARTITION BY q.cluster_id ORDER BY q.offset DESC, q.snapshot_id DESC)"
    every = (
        f"SELECT q.*, row_number() {back} AS back, first_value(q.number) {back} AS newest "
        f"FROM ({rebalance_states(condition)}) q"
    )
    asked = f"q.back = 1 OR q.number = {'q.newest' if generation is None else generation}"
    rows = records(reader, f"SELECT q.* FROM ({every}) q WHERE {asked} ORDER BY q.offset")
    _only((row["cluster_id"] for row in rows), reader, group_id, cluster)
    number = rows[-1]["number"] if generation is None else generation
    if number is None:  # a deleted group has none any more
        return rows[-1:]
    found = [row for row in rows if row["number"] == number]
    if not found:
        distinct = f"SELECT DISTINCT q.number FROM ({rebalance_states(condition)}) q WHERE q.number IS NOT NULL"
        numbers = records(reader, f"{distinct} ORDER BY 1 DESC LIMIT {GENERATIONS_NAMED}")
        last_known = ", ".join(str(row["number"]) for row in reversed(numbers))
        text = f"group {group_id!r} has no generation {number} in this ledger; last known: {last_known}"
        raise Fault("UNKNOWN_GENERATION", text)
    return found


def choose(found: Sequence[Record]) -> Record:
    """Choose the snapshot that represents one generation or epoch: in the last incarnation, the first one."""
    last = found[-1]
    return next(row for row in found if _life(row) == _life(last) and row["represents"])


def select(
    reader: Reader, group_id: str, cluster: str | None, which: Selection
) -> tuple[Record, list[Record], tuple[OtherRebalance, ...]]:
    """Return the state that represents a rebalance, the others with its number, and other rebalances to that.

    Raises Fault: as `snapshots_of`, NOT_KNOWN_YET, UNKNOWN_RECORD.
    """
    generation, incarnation, at, offset = which
    last = None
    if (at, offset) != (None, None) or (incarnation is not None and generation is None):
        last = anchor(reader, group_id, cluster, which)
        if last["number"] is None:  # a deleted group has none any more
            return last, [], ()
        generation = last["number"]
    found = snapshots_of(reader, group_id, cluster, generation)
    among = found
    if last is not None:
        among = [row for row in found if _life(row) == _life(last)]
    elif incarnation is not None:
        among = [row for row in found if row["incarnation"] == incarnation]
        if not among:
            text = f"group {group_id!r} has no generation {generation} in incarnation {incarnation}: it has one in "
            raise Fault("UNKNOWN_GENERATION", text + ", ".join(sorted({str(row["incarnation"]) for row in found})))
    chosen = choose(among)
    if last is not None:
        chosen = next((row for row in among if row["represents"] and row["last_offset"] == last["last_offset"]), chosen)
    same = [row for row in found if row is not chosen]
    others = tuple(from_row(OtherRebalance, row) for row in same if row["represents"])
    return chosen, same, others


def _life(row: Record) -> tuple[int, str]:
    return row["incarnation"], row["group_type"]


def anchor(reader: Reader, group_id: str, cluster: str | None, which: Selection) -> Record:
    """Return the last state up to a time, at an offset, or of an incarnation."""
    cluster = cluster_of(reader, group_id, cluster)
    condition = matching("t.", group_id=group_id, cluster_id=cluster)
    where = matching("q.", offset=which.offset, incarnation=which.incarnation)
    if which.at is not None:
        where += f" AND q.observed_at <= {literal(which.at)}"
    every = f"SELECT q.* FROM ({rebalance_states(condition)}) q"
    rows = records(reader, f"{every} WHERE {where} ORDER BY q.offset DESC LIMIT 1")
    if rows:
        return rows[0]
    columns = "min(t.observed_at) AS first, min(t.offset) AS low, max(t.offset) AS high, max(t.incarnation) AS lives"
    [bounds] = records(reader, f"SELECT {columns} FROM current_group_snapshots t WHERE {condition}")
    if which.at is not None:
        begins = f"its record begins {iso(bounds['first'])}"
        raise Fault("NOT_KNOWN_YET", f"at {iso(which.at)} the ledger knows nothing of {group_id} yet: {begins}")
    if which.offset is not None:
        text = f"no state of group {group_id!r} is recorded at offset {which.offset}: its states are at offsets "
        raise Fault(
            "UNKNOWN_RECORD", f"{text}{bounds['low']} to {bounds['high']} (`groupledger show {group_id} --wide`)"
        )
    text = f"group {group_id!r} has no incarnation {which.incarnation} in this ledger; last known: {bounds['lives']}"
    raise Fault("UNKNOWN_GENERATION", text)
