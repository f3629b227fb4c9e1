"""States of groups as a ledger records them, and what differs between two neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from groupledger.answers.causes import (
    Cause,
    CauseKind,
    Moved,
    Side,
    TopicFindings,
    causes,
    moved,
    partition_count,
    unowned,
)
from groupledger.answers.generations import CLASSIC
from groupledger.answers.queries import MOST_ASKED, from_row, group_of, matching, one_of, records, steps
from groupledger.answers.topic_lives import TopicLife, life_at, lives_of
from groupledger.core.moments import iso

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.causes import Counts
    from groupledger.answers.queries import GroupKey, NamedPartition, Query, Reader, Record, Value
    from groupledger.answers.scope import Scope


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
        """Return these and others."""
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
            given.setdefault(group_of(row), []).append(each)
        return replace(self, given=given)

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
        if before is None:
            return tuple(causes(None, after))
        lives = {topic: self.topics.get((cluster, topic), ()) for topic in before.topics | after.topics}
        given = self.given.get((cluster, group), ())
        return tuple(causes(before, after, TopicChanges(before, after, lives, given).findings()))

    def difference(self, cluster: str, group: str, before_id: str | None, after_id: str) -> Difference:
        """Compare two of the states; `before_id` may be one that the ledger does not have."""
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


def states(
    reader: Reader, of_groups: str, values: Mapping[str, Value], snapshot_ids: list[str], *, computed: bool = True
) -> States:
    """Read the states with these ids; `of_groups` is a condition on the columns of `t`: it keeps other groups unread.

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


def states_of(reader: Reader, rows: Iterable[Record], *, given: bool = False) -> States:
    """Read the states with the snapshot ids of these rows, some at a time; `given`: with what causes rest on."""
    ids = list({row["snapshot_id"]: row for row in rows}.values())
    found = States({}, {})
    for begin in range(0, len(ids), MOST_ASKED):
        some = ids[begin : begin + MOST_ASKED]
        of_groups, values = one_of("t.group_id", "group", sorted({row["group_id"] for row in some}))
        read = states(reader, of_groups, values, [row["snapshot_id"] for row in some], computed=False)
        found = found.with_more(read.with_given(reader, of_groups, values) if given else read)
    return found


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
    return from_row(
        Side,
        row,
        at=row["observed_at"],
        topics=frozenset(shared or row["subscribed_topics"] or ()),
        follow_up=False,
        members=tuple(each | {"topics": each["topics"] if each["topics"] is not None else shared} for each in members),
        verdict=None,
        kind=row["snapshot_kind"],
    )


# The states of groups in a period, each with how long it lasted, and how many partitions its members had.
#
# In joins the smaller side comes first: the engine in delta-rs keeps that one in memory, unless it takes the other for
# smaller. Of lists that were taken apart it has no size to go by.

CONSUMER = "consumer"
RECORDED, TARGET = "recorded", "target"
"""Columns of a member: what it has, and what it is to have."""
SHARE = "share"
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
    "coalesce(t.generation, t.group_epoch) AS number, t.target_epoch, t.previous_snapshot_id"
)


def recorded_states(within: Scope) -> Query:
    """Select the states that lasted into the period: its records, and the last one of each group before it.

    `until_at` is when the next one was recorded, null for a group's last one; `before` is the one before it, null for
    the first of these; `in_period` is false for what lasted into it only.
    """
    before = _newest_before(within)
    if before is None:
        return _lasting(within, None)
    of_states, more = _lasting(within, before[0])
    return of_states, before[1] | more


def _newest_before(within: Scope) -> Query | None:
    """Select the offset of the last state of each group before the period; None: it reaches back to the beginning."""
    if within.since is None:
        return None
    of_groups, values = within.of_groups("t.")
    return (
        "SELECT t.cluster_id, t.group_id, max(t.offset) AS newest FROM current_group_snapshots t "
        f"WHERE {of_groups} AND t.observed_at < :since GROUP BY t.cluster_id, t.group_id"
    ), values | {"since": within.since}


def _lasting(within: Scope, newest_before: str | None, least: int = 0) -> Query:
    """Select the records of the period, and those that have these offsets, none of which is less than `least`."""
    condition, values = within.where("t.")
    rows = f"SELECT {_COLUMNS}, true AS in_period FROM current_group_snapshots t WHERE {condition}"
    if newest_before is not None:
        rows += (
            f" UNION ALL SELECT {_COLUMNS}, false AS in_period FROM ({newest_before}) b "
            "JOIN current_group_snapshots t ON b.cluster_id = t.cluster_id AND b.group_id = t.group_id "
            f"AND b.newest = t.offset WHERE t.offset >= {least}"
        )
    within_group = "OVER (PARTITION BY s.cluster_id, s.group_id ORDER BY s.offset)"
    until = f"lead(s.observed_at) {within_group} AS until_at, lag(s.snapshot_id) {within_group} AS before"
    return f"SELECT s.*, {until} FROM ({rows}) s", values


def _with_last_before(reader: Reader, within: Scope, kept: ExitStack) -> Query:
    """Select the same with two queries: by a number in a query files and pages are left out."""
    of_groups = _newest_before(within)
    if of_groups is None:
        return _lasting(within, None)
    before = f"SELECT * FROM {kept.enter_context(reader.kept(of_groups[0], **of_groups[1]))}"
    [row] = records(reader, f"SELECT min(b.newest) AS least FROM ({before}) b")
    return _lasting(within, before, row["least"] or 0)


def recorded(within: Scope) -> Query:
    """Select the records of the period alone."""
    condition, values = within.where("t.")
    return f"SELECT {_COLUMNS} FROM current_group_snapshots t WHERE {condition}", values


@dataclass(frozen=True, slots=True)
class MeasuredStates:
    """The states of a period, worked out once for many questions, as SQL.

    `states` lasted into the period: the columns of `states`, and those of `expected` and `loads`, null where these have
    no row. `recorded` are those of the period alone, without the latter columns.
    """

    within: Scope
    states: str
    recorded: Query


@contextmanager
def measured(reader: Reader, within: Scope) -> Iterator[MeasuredStates]:
    """Measure the states of a period; they are there until the context ends."""
    with ExitStack() as kept:
        query, values = _with_last_before(reader, within, kept)
        of_states = f"SELECT * FROM {kept.enter_context(reader.kept(query, **values))}"
        [row] = records(reader, f"SELECT min(s.offset) AS oldest FROM ({of_states}) s")
        of_loads = loads(within, of_states, row["oldest"] or 0)
        of_listings, listed = listings(within)
        numbers = (
            "SELECT e.snapshot_id, e.fewest, e.greatest, l.total, l.most, l.least, l.owners "
            f"FROM ({expected(of_states, of_listings)}) e LEFT JOIN ({of_loads}) l ON l.snapshot_id = e.snapshot_id"
        )
        of_numbers = kept.enter_context(reader.kept(numbers, **(listed | within.of_groups("m.")[1])))
        beside = (
            "SELECT s.*, n.fewest, n.greatest, n.total, n.most, n.least, n.owners "
            f"FROM ({of_states}) s LEFT JOIN {of_numbers} n ON n.snapshot_id = s.snapshot_id"
        )
        yield MeasuredStates(within, beside, (f"{of_states} t WHERE t.in_period", {}))


def loads(within: Scope, states_query: str, since: int = 0, *, of: str = RECORDED) -> str:
    """Select for each of these states with an owned partition `total`, `most` and `least` of an owner, and `owners`.

    `since`: an offset that none of them lies before. `of`: what members have, or TARGET, what they are to have.
    """
    condition, _ = within.of_groups("m.")
    return steps(
        entries=f"SELECT m.snapshot_id, m.member_order, unnest(m.{of}) AS entry "
        f"FROM (SELECT t.snapshot_id FROM ({states_query}) t) s JOIN current_member_snapshots m "
        f"ON m.snapshot_id = s.snapshot_id WHERE {condition} AND m.offset >= {since}",
        by_member="SELECT e.snapshot_id, e.member_order, sum(cardinality(e.entry.partitions)) AS load "
        "FROM entries e GROUP BY e.snapshot_id, e.member_order",
        loads="SELECT p.snapshot_id, cast(sum(p.load) AS BIGINT) AS total, cast(max(p.load) AS BIGINT) AS most, "
        "cast(min(p.load) AS BIGINT) AS least, count(*) AS owners FROM by_member p GROUP BY p.snapshot_id",
    )


def listings(within: Scope) -> Query:
    """Select the partition counts of topics, each from when to when it was valid; null: the topic was deleted."""
    order = "t.valid_from, CASE WHEN t.partition_count IS NULL THEN 0 ELSE 1 END, t.topic_id, t.partition_count"
    after = f"lead(t.valid_from) OVER (PARTITION BY t.cluster_id, t.topic ORDER BY {order}) AS valid_until"
    condition, values = matching("t.", cluster_id=within.cluster)
    return (
        f"SELECT t.cluster_id, t.topic, t.topic_id, t.partition_count, t.valid_from, {after} "
        f"FROM current_topic_snapshots t WHERE {condition}"
    ), values


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
    which, named = one_of("t.snapshot_id", "snapshot", sorted(found))
    query = (
        "SELECT t.snapshot_id, t.topic, t.partition FROM current_ownership_changes t "
        f"WHERE {which} AND t.to_member_id IS NULL"
    )
    for row in records(reader, query, **named):
        found[row["snapshot_id"]].add((row["topic"], row["partition"]))
    return {snapshot_id: frozenset(places) for snapshot_id, places in found.items()}


def begun_late(reader: Reader, snapshot_ids: Iterable[str]) -> set[str]:
    """Return those of these snapshots with which a group's history begins although the group was there before."""
    which, named = one_of("t.snapshot_id", "snapshot", sorted(snapshot_ids))
    query = f"SELECT t.snapshot_id FROM current_coverage t WHERE {which} AND t.kind = '{BEGINS_LATE}'"
    return {row["snapshot_id"] for row in records(reader, query, **named)}


# What became of topics between two states of a group.
#
# The records come first: partitions that were never assigned before, topics that are no longer assigned, topic ids. A
# topic listing is of the time of an ingest, so a change that it shows may be older, or not yet have reached the group:
# it confirms what the records show, and is otherwise a possible cause. That a topic is listed for the first time is
# none.

_DELETED, _REPLACED, _CREATED = "listed as gone", "listed with another id", "listed again"
_GROWN = "listed with more partitions"


class GivenPartition(NamedTuple):
    """A partition that a member of the group has had: `offset` is that of the first record that gave it to one."""

    topic: str | None
    topic_id: str | None
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class _Listed:
    """A change that a listing of `at` shows: the topic had been as before since `after`, by a listing, too."""

    what: str
    after: datetime
    at: datetime

    def __str__(self) -> str:
        return f"{self.what} at {iso(self.at)}, as it was before since {iso(self.after)}"


class _Topic(NamedTuple):
    """The partitions of a topic that members had and have, by which topic ids, and those that any had earlier.

    `known_earlier`: whether members had partitions of any topic of that name.
    """

    had: set[int]
    has: set[int]
    ids_before: set[str]
    ids_after: set[str]
    earlier: set[int]
    known_earlier: bool


class TopicChanges:
    """The topics of two neighbouring states. A group that comes from nothing shows nothing of topics."""

    def __init__(
        self,
        before: Side,
        after: Side,
        lives: Mapping[str, tuple[TopicLife, ...]],
        given: Sequence[GivenPartition],
    ) -> None:
        """Take topics by name, with how they were listed; an id that the ledger has no name for stands for itself."""
        self._before, self._after, self._lives, self._given = before, after, lives, given
        self._names = {life.topic_id: topic for topic, some in lives.items() for life in some if life.topic_id}
        entries = [entry for side in (before, after) for row in side.members for entry in _entries(row)]
        self._names |= {entry["topic_id"]: entry["topic"] for entry in entries if entry["topic"] is not None}
        # A classic group's records have no topic ids: those of its rows are from listings.
        self._has_ids = CLASSIC not in (before.group_type, after.group_type)
        self._sure: list[Cause] = []
        self._possible: list[Cause] = []
        self._guesses: list[Cause] = []
        self._late: list[str] = []

    def findings(self) -> TopicFindings:
        """Return what the records show, and changes that listings show where they may have led to the state."""
        given_again = 0
        same = self._before.topics == self._after.topics
        for name, topic in self._topics():
            was, is_now = name in self._before.topics, name in self._after.topics
            if was:
                given_again += len((topic.has - topic.had) & topic.earlier)
            if (was and is_now) or (same and name.startswith("id:")):
                self._of_subscribed(name, topic)
            elif was and topic.had:
                self._of_dropped(name)
            elif is_now:
                self._of_found(name)
        sure, possible, guesses = map(tuple, (self._sure, self._possible, self._guesses))
        return TopicFindings(sure, possible, guesses, given_again, tuple(self._late))

    def _topics(self) -> Iterator[tuple[str, _Topic]]:
        if not all(side.members and side.complete for side in (self._before, self._after)):
            return
        before, after = self._assigned(self._before), self._assigned(self._after)
        given: dict[str, list[GivenPartition]] = {}
        for each in self._given:
            if each.offset <= self._before.offset:
                given.setdefault(self._name(each.topic, each.topic_id), []).append(each)
        nothing: tuple[set[int], set[str]] = (set(), set())
        for name in sorted(before.keys() | after.keys() | self._before.topics | self._after.topics):
            (had, ids_before), (has, ids_after) = before.get(name, nothing), after.get(name, nothing)
            of_name = given.get(name, [])
            same = [
                each
                for each in of_name
                if not (self._has_ids and ids_after) or each.topic_id is None or each.topic_id in ids_after
            ]
            earlier = {each.partition for each in same} | (had if not ids_before or ids_before & ids_after else set())
            yield name, _Topic(had, has, ids_before, ids_after, earlier, bool(had or of_name))

    def _name(self, topic: str | None, topic_id: str | None) -> str:
        return topic or self._names.get(topic_id or "") or f"id:{topic_id}"

    def _assigned(self, side: Side) -> dict[str, tuple[set[int], set[str]]]:
        """Return the partitions that members have or are to get, and the topic ids, by topic."""
        found: dict[str, tuple[set[int], set[str]]] = {}
        for entry in (entry for row in side.members for entry in _entries(row)):
            numbers, ids = found.setdefault(self._name(entry["topic"], entry["topic_id"]), (set(), set()))
            numbers.update(entry["partitions"])
            ids.update([entry["topic_id"]] if self._has_ids and entry["topic_id"] is not None else [])
        return found

    def _of_subscribed(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic that members subscribed to before, and still do."""
        if topic.has and topic.ids_after and topic.known_earlier and not topic.earlier:
            text = f"topic {name} was deleted and made again: it has another id"
            self._sure.append(Cause(CauseKind.TOPIC_MADE_AGAIN, name, text))
        elif topic.has and not topic.earlier:
            self._of_first(name, topic)
        elif topic.has and not topic.had:
            # A cooperative leader may have withheld all of a topic that has few partitions.
            if not self._after.is_cooperative or self._within(name, _CREATED) is not None:
                text = f"topic {name} is assigned again: nobody had any of its partitions"
                self._sure.append(Cause(CauseKind.TOPIC_APPEARED, name, text))
        elif topic.has:
            self._of_assigned(name, topic)
        elif topic.had:
            self._of_vanished(name)

    def _of_first(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic without earlier owners: a new one, unless the leader did not know it."""
        text = f"topic {name} is assigned for the first time, with {partition_count(len(topic.has))}"
        if self._listed_before(name) is not None:
            self._late.append(f"{text}; it was listed before")
        elif self._has_ids or self._within(name, _CREATED) is not None:
            self._sure.append(Cause(CauseKind.TOPIC_APPEARED, name, f"{text}; it was subscribed to before"))
        else:
            text = f"topic {name} is new: it is assigned for the first time (or the leader had not known it)"
            self._guess(CauseKind.TOPIC_APPEARED, name, text)

    def _of_assigned(self, name: str, topic: _Topic) -> None:
        """Return the cause in a topic of which members had and have partitions."""
        was, now = max(topic.earlier) + 1, max(topic.has) + 1
        listed = self._within(name, _REPLACED, _DELETED)
        if listed is not None and not topic.ids_after:
            self._perhaps(CauseKind.TOPIC_MADE_AGAIN, name, "was deleted and made again", listed)
        elif was < now:
            self._of_more(name, was, now)

    def _of_more(self, name: str, was: int, now: int) -> None:
        """More partitions than any state before had: new ones, unless a leader left them out of all of those."""
        text = f"topic {name} went from {partition_count(was)} to {now}"
        listed = self._listed_before(name)
        if listed is not None and listed.partition_count >= now:
            self._late.append(f"partitions of topic {name} from {was} on are assigned for the first time")
            if any(life.partition_count < now for life in self._lives[name] if life.since < listed.since):
                why = f"listed with {listed.partition_count} since {iso(listed.since)}, and assigned only now"
                self._guess(CauseKind.PARTITIONS_ADDED, name, f"{text} ({why})")
        elif self._has_ids or self._within(name, _GROWN) is not None:
            self._sure.append(Cause(CauseKind.PARTITIONS_ADDED, name, text))
        elif not self._same_members:
            what = f"went from {partition_count(was)} to {now}"
            known = self._later(name, _GROWN) or "or the leader before had left them out"
            self._perhaps(CauseKind.PARTITIONS_ADDED, name, what, known)
        elif self._begins_with_withheld:
            self._guess(
                CauseKind.PARTITIONS_ADDED, name, f"{text} (or the state before, the first known, withheld them)"
            )
        else:
            self._sure.append(Cause(CauseKind.PARTITIONS_ADDED, name, text))

    @property
    def _same_members(self) -> bool:
        names = ({row["member_id"] for row in side.members} for side in (self._before, self._after))
        return next(names) == next(names)

    @property
    def _begins_with_withheld(self) -> bool:
        """Whether the state before is the first that the ledger has, and may have withheld partitions."""
        is_first = all(each.offset >= self._before.offset for each in self._given)
        return is_first and self._before.is_cooperative and len(self._before.members) > 1

    def _of_vanished(self, name: str) -> None:
        """Return the cause in a topic of which no member has a partition any more."""
        if self._within(name, _DELETED, _REPLACED) is not None:
            self._sure.append(Cause(CauseKind.TOPIC_DELETED, name, f"topic {name} was deleted"))
            return
        listed = self._later(name, _DELETED, _REPLACED)
        gone = "was deleted: nobody has any of its partitions any more"
        if listed is not None:
            self._perhaps(CauseKind.TOPIC_DELETED, name, gone, listed)
        else:
            # A cooperative leader may withhold all of a topic that has few partitions, and a leader may not know one.
            self._guess(CauseKind.TOPIC_DELETED, name, f"topic {name} {gone} (or the leader left it out)")

    def _of_dropped(self, name: str) -> None:
        """Return the cause in a topic without subscribers: clients with a pattern drop one that is deleted."""
        if self._within(name, _DELETED, _REPLACED) is not None:
            self._sure.append(Cause(CauseKind.TOPIC_DELETED, name, f"topic {name} was deleted"))
        elif (listed := self._later(name, _DELETED, _REPLACED)) is not None:
            self._perhaps(CauseKind.TOPIC_DELETED, name, "was deleted", listed)

    def _of_found(self, name: str) -> None:
        """Return the cause in a topic without earlier subscribers: patterns find one that is made again."""
        listed = self._within(name, _CREATED, _REPLACED) or self._later(name, _CREATED, _REPLACED)
        if listed is not None:
            self._perhaps(CauseKind.TOPIC_MADE_AGAIN, name, "was made again", listed)

    def _perhaps(self, kind: CauseKind, name: str, what: str, why: _Listed | str) -> None:
        self._possible.append(Cause(kind, name, f"possibly: topic {name} {what} ({why})", possible=True))

    def _guess(self, kind: CauseKind, name: str, text: str) -> None:
        self._guesses.append(Cause(kind, name, f"possibly: {text}", possible=True))

    def _listed_before(self, name: str) -> TopicLife | None:
        """Return the topic as it was listed at the time of the state before."""
        return life_at(self._lives.get(name, ()), self._before.at)

    def _within(self, name: str, *what: str) -> _Listed | None:
        """Return the first such change that was listed between the two records."""
        return next((each for each in self._listed(name, what) if self._before.at < each.at <= self._after.at), None)

    def _later(self, name: str, *what: str) -> _Listed | None:
        """Return the first such change that was listed after them, and may have come between them."""
        return next((each for each in self._listed(name, what) if each.after < self._after.at < each.at), None)

    def _listed(self, name: str, what: tuple[str, ...]) -> Iterator[_Listed]:
        lives = self._lives.get(name, ())
        found = []
        for one, other in zip_longest(lives, lives[1:]):
            if one.until is not None and (other is None or one.until < other.since):
                found.append(_Listed(_DELETED, one.since, one.until))
                found += [_Listed(_CREATED, one.until, other.since)] if other is not None else []
            elif other is not None and None not in (ids := (one.topic_id, other.topic_id)) and len(set(ids)) > 1:
                found.append(_Listed(_REPLACED, one.since, other.since))
            elif other is not None and one.partition_count < other.partition_count:
                found.append(_Listed(_GROWN, one.since, other.since))
        return (each for each in found if each.what in what)


def _entries(row: Record) -> list[Mapping[str, Any]]:
    return [*(row["recorded"] or ()), *(row.get("target") or ())]
