"""Partitions that nobody had although the group had members, for longer than a rebalance explains.

Between two generations a cooperative group has partitions that nobody has, and a leader may know a new partition only
minutes after a listing shows it. Both are the course of things: a partition is found where it stays without an owner
over a second generation of a classic group, or for longer than `PATIENCE`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC
from groupledger.answers.reach import known
from groupledger.answers.rebalance_causes import MOST_ASKED
from groupledger.answers.recorded_states import listings, measured, unseen_before
from groupledger.answers.rows import one_of, records
from groupledger.answers.topic_partitions import BY_ID
from groupledger.core.findings import ASSIGNED_WITHOUT_TOPICS, DOUBLE_OWNED, NOT_SUBSCRIBED
from groupledger.core.length import length
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from groupledger.answers.reach import Known
    from groupledger.answers.recorded_states import MeasuredStates, Query
    from groupledger.answers.rows import GroupKey, Reader, Record
    from groupledger.answers.scope import Scope
    from groupledger.answers.topic_partitions import NamedPartition

PATIENCE = timedelta(minutes=5)
"""Kafka's default of `max.poll.interval.ms` and of `metadata.max.age.ms`."""
Listed = Sequence[tuple[datetime, int, str]]
"""When a topic got this many partitions, 0: it was deleted; and its id, empty where none is known. In order of time."""
OwnedByTopic = Mapping[str, Mapping[str, set[int]]]
"""The partitions that members had, by topic and its id, which is empty where the record has none."""


@dataclass(frozen=True, slots=True)
class State:
    """A state of a group, with what was recorded for its members. It lasted from `at` to `until`.

    `given_up`: where what was before it was not looked at, or is not known, the partitions that it took from members;
    else None. `is_last`: it lasted as far as is known. `gone`: ids of topics that members had before, and of which no
    member has, or is to have, a partition any more.
    """

    snapshot_id: str
    number: int | None
    at: datetime
    until: datetime
    topics: tuple[str, ...]
    owned: OwnedByTopic
    given_up: frozenset[NamedPartition] | None = None
    is_last: bool = False
    gone: frozenset[str] = frozenset()

    def numbers(self, topic: str, topic_id: str) -> set[int]:
        """Return the partitions of a topic that members had; if an id is unknown on either side, by name."""
        ids = self.owned.get(topic, {}).items()
        return {number for owned, numbers in ids if topic_id in (owned, "") or not owned for number in numbers}


@dataclass(slots=True)
class Stretch:
    """A partition that nobody had: from when to when, and the records that began without an owner of it.

    `open_ended`: nobody had it yet at the end of what was asked for, or is known; `from_before`: nor before its first
    record.
    """

    topic: str
    partition: int
    snapshot_id: str
    since: datetime
    until: datetime
    snapshots: list[str]
    generations: set[int | None]
    open_ended: bool = False
    from_before: bool = False

    @property
    def length(self) -> timedelta:
        """How long."""
        return self.until - self.since


def stretches(states_of_group: Sequence[State], listed: Mapping[str, Listed]) -> Iterator[Stretch]:
    """Every stretch in which a partition had no owner, from consecutive states of a group.

    Between two states that do not touch, everything had an owner.
    """
    running: dict[_Place, Stretch] = {}
    reached: datetime | None = None
    shown: dict[str, int] = {}
    for state in states_of_group:
        for topic, ids in state.owned.items():
            shown[topic] = max([shown.get(topic, -1), *(number for numbers in ids.values() for number in numbers)])
        if state.at != reached:
            yield from running.values()
            running = {}
        for since, until, lacking in _pieces(state, listed, shown):
            for place in [each for each in running if each not in lacking]:
                yield running.pop(place)
            for place in sorted(lacking):
                stretch = running.get(place)
                if stretch is None:
                    stretch = running[place] = Stretch(*place[:2], state.snapshot_id, since, until, [], set())
                    unseen = state.given_up is not None and place[:2] not in state.given_up
                    stretch.from_before = unseen and since == state.at
                if since == state.at:
                    stretch.snapshots.append(state.snapshot_id)
                    stretch.generations.add(state.number)
                stretch.until = until
        reached = state.until
    for stretch in running.values():
        stretch.open_ended = states_of_group[-1].is_last
        yield stretch


_Place = tuple[str, int, str]
"""Topic, partition, topic id: a name used again is another topic."""


def _pieces(
    state: State, listed: Mapping[str, Listed], shown: Mapping[str, int]
) -> Iterator[tuple[datetime, datetime, set[_Place]]]:
    """Cut the state where its topics changed: from, to, and the partitions that existed then without an owner.

    `shown`: the greatest partition of a topic that members had up to then. Up to it, partitions of the first listing
    existed before that.
    """
    changes = {when for topic in state.topics for when, *_ in listed.get(topic, ()) if state.at < when < state.until}
    cuts = [state.at, *sorted(changes), state.until]
    for since, until in pairwise(cuts):
        lacking = set()
        for topic in state.topics:
            of_topic = listed.get(topic, ())
            _, first, first_id = of_topic[0] if of_topic else (since, 0, "")
            before = since, min(first, shown.get(topic, -1) + 1), first_id
            _, count, topic_id = next((each for each in reversed(of_topic) if each[0] <= since), before)
            if topic_id not in state.gone:  # else it was deleted after that listing
                lacking |= {(topic, number, topic_id) for number in {*range(count)} - state.numbers(topic, topic_id)}
        yield since, until, lacking


def is_found(stretch: Stretch, group_type: str) -> bool:
    """Whether a stretch is longer than a rebalance explains."""
    return stretch.length > PATIENCE or (group_type == CLASSIC and len(stretch.generations) > 1)


@dataclass(frozen=True, slots=True)
class UnownedGroup:
    """A group with the stretches that are found in it, the longest first."""

    cluster_id: str
    group_id: str
    stretches: tuple[Stretch, ...]


def unowned(reader: Reader, of_period: MeasuredStates) -> Iterator[UnownedGroup]:
    """The groups that left partitions without an owner, in order of cluster and name."""
    within = of_period.within
    candidates = _candidates(reader, of_period)
    if not candidates:
        return
    listed = _listed(reader, within)
    owned, read = _Recorded(reader, candidates), known(reader, within.cluster)
    by_group: dict[tuple[str, str, str, int], list[State]] = {}
    for row in candidates:
        key = (row["cluster_id"], row["group_id"], row["group_type"], row["incarnation"])
        by_group.setdefault(key, []).append(_state(row, owned, read, within.end))
    found: dict[GroupKey, list[Stretch]] = {}
    for (cluster, group, kind, _), of_group in by_group.items():
        counted = {topic: counts for (of, topic), counts in listed.items() if of == cluster}
        lasting = [each for each in stretches(of_group, counted) if is_found(each, kind)]
        found.setdefault((cluster, group), []).extend(lasting)
    for (cluster, group), lasting in sorted(found.items()):
        if lasting:
            yield UnownedGroup(cluster, group, tuple(sorted(lasting, key=_longest_first)))


def _longest_first(stretch: Stretch) -> tuple[timedelta, str, int, datetime]:
    return -stretch.length, stretch.topic, stretch.partition, stretch.since


@dataclass(frozen=True, slots=True)
class UnownedTime:
    """Every stretch of one group, those that a rebalance explains among them, the longest first.

    `left_off` states before the first of these may have left a partition without an owner, too: nobody looked at them.
    """

    stretches: tuple[Stretch, ...]
    left_off: int


def unowned_time(reader: Reader, of_group: Scope, most_states: int) -> UnownedTime:
    """For how long which partitions of one group had nobody, from the last `most_states` states in which one had.

    Only while the group had members: of an empty group nothing is said. `of_group` names its cluster, too.
    """
    with measured(reader, of_group) as of_period:
        lacking, values = _lacking(of_period)
        newest = (
            f"SELECT b.*, count(*) OVER () AS total FROM ({lacking}) b WHERE b.lacks = 1 "
            f"ORDER BY b.offset DESC, b.snapshot_id DESC LIMIT {most_states}"
        )
        found = records(reader, f"SELECT * FROM ({newest}) n ORDER BY n.offset", **values)
    rows = [row for row in found if _lasted(row)]
    if not rows:
        return UnownedTime((), 0)
    left_off = max(0, rows[0]["total"] - most_states)
    listed = {topic: counts for (cluster, topic), counts in _listed(reader, of_group).items()}
    owned, read = _Recorded(reader, rows), known(reader, of_group.cluster)
    by_incarnation: dict[int, list[State]] = {}
    for row in rows:
        by_incarnation.setdefault(row["incarnation"], []).append(_state(row, owned, read, of_group.end))
    if left_off and rows[0]["lacked"]:  # what nobody has in it may have begun before
        first = by_incarnation[rows[0]["incarnation"]]
        first[0] = replace(first[0], given_up=frozenset())
    lasting = [each for some in by_incarnation.values() for each in stretches(some, listed)]
    return UnownedTime(tuple(sorted(lasting, key=_longest_first)), left_off)


def told(stretch: Stretch) -> str:
    """`clicks-1 had no owner for 12.400 s, from 2026-11-21T13:51:29.462Z to 2026-11-21T13:51:41.862Z`."""
    since = "from before" if stretch.from_before else "from"
    until = iso(stretch.until)
    end = f"on (still at {until}, as far as known)" if stretch.open_ended else f"to {until}"
    place = f"{stretch.topic}-{stretch.partition}"
    return f"{place} had no owner for {length(stretch.length)}, {since} {iso(stretch.since)} {end}"


def _candidates(reader: Reader, of_period: MeasuredStates) -> list[Record]:
    """States that lack an owner, or may hide that they do, and that last.

    What is short and stands alone is a round of a cooperative rebalance.
    """
    lacking, values = _lacking(of_period)
    rows = records(
        reader,
        f"SELECT b.* FROM ({lacking}) b WHERE b.lacks = 1 AND (b.lacked = 1 OR b.will_lack = 1 OR "
        f"coalesce(b.until_at, :end) > b.observed_at + INTERVAL '{int(PATIENCE.total_seconds())} seconds') "
        "ORDER BY b.cluster_id, b.group_id, b.offset",
        **(values | {"end": of_period.within.end}),
    )
    return [row for row in rows if _lasted(row)]


def _lasted(row: Record) -> bool:
    return row["until_at"] is None or row["until_at"] > row["observed_at"]


def _lacking(of_period: MeasuredStates) -> Query:
    """States with `lacks`, 1 where they have another number of partitions than their topics, or may hide that they do.

    `lacked` and `will_lack` say so of the states before and after.
    """
    hidden_by = (DOUBLE_OWNED, NOT_SUBSCRIBED, ASSIGNED_WITHOUT_TOPICS)
    codes, named = one_of("v.code", "code", [each.recorded_as for each in hidden_by])
    # of runs that do not count, too: who owned what is looked up for each state, and which results count takes memory
    hiding = f"SELECT DISTINCT v.snapshot_id FROM violations v WHERE {codes}"
    differing = (
        "SELECT s.*, CASE WHEN s.fewest <> s.greatest OR s.greatest <> coalesce(s.total, 0) OR v.snapshot_id IS NOT "
        f"NULL THEN 1 ELSE 0 END AS lacks FROM ({of_period.states}) s "
        f"LEFT JOIN ({hiding}) v ON v.snapshot_id = s.snapshot_id WHERE s.greatest IS NOT NULL"
    )
    within_group = "OVER (PARTITION BY d.cluster_id, d.group_id, d.incarnation ORDER BY d.offset)"
    columns = (
        "d.cluster_id, d.group_id, d.group_type, d.incarnation, d.offset, d.snapshot_id, d.number, d.observed_at, "
        "d.until_at, d.before, d.previous_snapshot_id, d.shared_topics, d.subscribed_topics, d.lacks"
    )
    beside = (
        f"SELECT {columns}, lag(d.lacks) {within_group} AS lacked, lead(d.lacks) {within_group} AS will_lack "
        f"FROM ({differing}) d"
    )
    return beside, named


def _state(row: Record, recorded: _Recorded, read: Known, end: datetime) -> State:
    """Make a State of a row of `states`; the last one of a group lasted as far as its cluster is known."""
    ended: datetime | None = row["until_at"]
    is_last = ended is None or ended > end
    if ended is None:
        ended = read.of(row["cluster_id"], row["observed_at"])
    until = max(min(ended, end), row["observed_at"])
    topics = tuple(row["shared_topics"] if row["shared_topics"] is not None else row["subscribed_topics"] or ())
    had, gone = recorded.owned(row["snapshot_id"]), recorded.gone(row)
    given_up = recorded.unseen_before.get(row["snapshot_id"])
    return State(row["snapshot_id"], row["number"], row["observed_at"], until, topics, had, given_up, is_last, gone)


class _Recorded:
    """What members of states had, together, what they were still to give up included; and the topic ids that went
    missing before."""

    def __init__(self, reader: Reader, rows: Sequence[Record]) -> None:
        """Read the members of the states. Topic ids in rows of classic groups are of listings: they do not count."""
        classic = {row["snapshot_id"] for row in rows if row["group_type"] == CLASSIC}
        self._owned: dict[str, dict[tuple[str, str], set[int]]] = {}
        self._assigned: dict[str, set[str]] = {}
        for row in _members(reader, rows):
            snapshot_id = row["snapshot_id"]
            owned = self._owned.setdefault(snapshot_id, {})
            for entry in (*(row["recorded"] or ()), *(row["pending_revocation"] or ())):
                topic_id = "" if snapshot_id in classic else entry["topic_id"] or ""
                owned.setdefault((entry["topic"] or BY_ID + topic_id, topic_id), set()).update(entry["partitions"])
            if row["target"] is not None and snapshot_id not in classic:
                entries = (*(row["recorded"] or ()), *row["target"])
                self._assigned.setdefault(snapshot_id, set()).update(entry["topic_id"] or "" for entry in entries)
        self._names = _names(
            reader, {topic for owned in self._owned.values() for topic, _ in owned if topic.startswith(BY_ID)}
        )
        self.unseen_before = unseen_before(reader, rows)
        self._given = _given(reader, [row for row in rows if row["snapshot_id"] in self._assigned])

    def owned(self, snapshot_id: str) -> OwnedByTopic:
        """Return the partitions that members of a state had."""
        found: dict[str, dict[str, set[int]]] = {}
        for (topic, topic_id), numbers in self._owned.get(snapshot_id, {}).items():
            found.setdefault(self._names.get(topic, topic), {})[topic_id] = numbers
        return found

    def gone(self, row: Record) -> frozenset[str]:
        """Ids that members had before a state, and that none of it has, or is to have."""
        assigned = self._assigned.get(row["snapshot_id"])
        if assigned is None:
            return frozenset()
        given = self._given.get((row["cluster_id"], row["group_id"]), {}).items()
        return frozenset(topic_id for topic_id, offset in given if offset < row["offset"]) - assigned


def _members(reader: Reader, rows: Sequence[Record]) -> Iterator[Record]:
    ids = [row["snapshot_id"] for row in rows]
    for begin in range(0, len(ids), MOST_ASKED):
        some = rows[begin : begin + MOST_ASKED]
        which, named = one_of("t.snapshot_id", "snapshot", ids[begin : begin + MOST_ASKED])
        groups, of_groups = one_of("t.group_id", "group", sorted({row["group_id"] for row in some}))
        columns = "t.snapshot_id, t.recorded, t.pending_revocation, t.target"
        query = f"SELECT {columns} FROM current_member_snapshots t WHERE {groups} AND {which}"
        yield from records(reader, query, **named, **of_groups)


def _given(reader: Reader, rows: Sequence[Record]) -> dict[GroupKey, dict[str, int]]:
    """By group of these states: topic id -> offset of the first record that gave a partition of it to a member."""
    found: dict[GroupKey, dict[str, int]] = {}
    groups = sorted({row["group_id"] for row in rows})
    for begin in range(0, len(groups), MOST_ASKED):
        among, named = one_of("t.group_id", "group", groups[begin : begin + MOST_ASKED])
        query = (
            "SELECT t.cluster_id, t.group_id, t.topic_id, min(t.offset) AS offset FROM current_ownership_changes t "
            f"WHERE {among} AND t.topic_id IS NOT NULL GROUP BY t.cluster_id, t.group_id, t.topic_id"
        )
        for row in records(reader, query, **named):
            found.setdefault((row["cluster_id"], row["group_id"]), {})[row["topic_id"]] = row["offset"]
    return found


def _names(reader: Reader, by_id: set[str]) -> dict[str, str]:
    """`id:<topic id>` -> the name that a listing gave it after the record was folded."""
    if not by_id:
        return {}
    which, named = one_of("t.topic_id", "id", sorted(each.removeprefix(BY_ID) for each in by_id))
    query = f"SELECT DISTINCT t.topic_id, t.topic FROM current_topic_snapshots t WHERE {which}"
    return {BY_ID + row["topic_id"]: row["topic"] for row in records(reader, query, **named)}


def _listed(reader: Reader, within: Scope) -> Mapping[tuple[str, str], Listed]:
    """(cluster, topic) -> its listings."""
    query, values = listings(within)
    rows: Iterable[Record] = records(
        reader, f"SELECT * FROM ({query}) q ORDER BY q.valid_from, q.valid_until", **values
    )
    found: dict[tuple[str, str], list[Record]] = {}
    for row in rows:
        found.setdefault((row["cluster_id"], row["topic"]), []).append(row)
    return {name: [*_with_ids(some)] for name, some in found.items()}


def _with_ids(rows: Sequence[Record]) -> Iterator[tuple[datetime, int, str]]:
    """Return the listings of a name; a source without topic ids does not contradict the only known one."""
    ids = {row["topic_id"] for row in rows} - {None}
    only = next(iter(ids)) if len(ids) == 1 else ""
    for row in rows:
        yield row["valid_from"], row["partition_count"] or 0, row["topic_id"] or only
