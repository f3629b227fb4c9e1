"""Partitions of subscribed topics that nobody has: since when, who had them last, and which record says so.

The last complete state of each group says what it subscribes to and who has what. `since` is from when on all of it has
held: the partition is there, the group subscribes to its topic, and nobody has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import pairwise, takewhile
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from groupledger.answers.answer_columns import listed
from groupledger.answers.owners import LATEST, life_of
from groupledger.answers.queries import (
    BY_ID,
    CLASSIC,
    MOST_ASKED,
    NUMBER,
    GroupKey,
    NamedPartition,
    Reader,
    Record,
    TopicLife,
    by_group,
    gathered,
    group_of,
    in_parts,
    life_at,
    literal,
    newest,
    of_each,
    of_groups,
    one_of,
    records,
    steps,
)
from groupledger.answers.scope import Known, Scope, known, reaches, require_names
from groupledger.answers.spoken import numbered
from groupledger.answers.states import MeasuredStates, States, begun_late, listings, measured, states, unseen_before
from groupledger.core.moments import Bound, iso, placed
from groupledger.core.rebalance.findings import ASSIGNED_WITHOUT_TOPICS, DOUBLE_OWNED, NOT_SUBSCRIBED
from groupledger.core.text import length

if TYPE_CHECKING:
    from groupledger.answers.causes import Side


Place = tuple[str, str, str, int]
"""Cluster, group, topic, partition."""

NAMED = 10


class WhyUnowned(StrEnum):
    """The condition that began at the moment since which a partition has had no owner."""

    GIVEN_UP = "given-up"
    SUBSCRIBED = "subscribed"
    PARTITION_ADDED = "partition-added"
    FIRST_LISTED = "first-listed"


@dataclass(frozen=True, slots=True)
class UnownedPartition:
    """A partition that nobody in a group has that subscribes to its topic.

    `age_seconds` counts to the moment, or as far as the group is known, where that is earlier. `snapshot_id` is the
    state since which that is so, `seen_in` the last one, which still says it. `last_member_id` had it last, until
    `last_until`; None where nobody of the group is known to have had this topic's partition. `from_before`: or longer.
    """

    cluster_id: str
    group_id: str
    topic: str
    partition: int
    since: datetime
    age_seconds: float
    why: WhyUnowned
    generation: int | None
    snapshot_id: str
    last_member_id: str | None
    last_until: datetime | None
    seen_in: str
    from_before: bool = False


@dataclass(frozen=True, slots=True)
class UnownedPartitions:
    """What nobody has at a moment, the oldest first; `left_off` younger ones are not here.

    `since`: only what nobody has had since then, or longer. `not_known`: groups of which it is not known whether they
    have others, too. `notes` say what is not known, and why there is none.
    """

    at: datetime
    since: datetime | None
    partitions: tuple[UnownedPartition, ...] = field(metadata=listed(UnownedPartition))
    left_off: int
    not_known: tuple[GroupKey, ...]
    notes: tuple[str, ...]


def unowned_partitions(
    reader: Reader,
    at: datetime,
    since: Bound | None = None,
    cluster: str | None = None,
    group: str | None = None,
    limit: int = 50,
) -> UnownedPartitions:
    """Return the unowned partitions at a moment, in every group or those like `group`. `since`: unowned for so long.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP.
    """
    last = _last_states(reader, of_groups("t.", cluster, group), at)
    if not last.sides:
        require_names(reader, cluster, group)
    rows = sorted(_explained_all(last), key=attrgetter("since", "cluster_id", "group_id", "topic", "partition"))
    late = begun_late(reader, {row.snapshot_id for row in rows if row.why is WhyUnowned.SUBSCRIBED})
    rows = [replace(row, from_before=row.why is WhyUnowned.SUBSCRIBED and row.snapshot_id in late) for row in rows]
    chosen = rows
    if isinstance(since, datetime):
        chosen = [row for row in rows if row.since <= since]
    elif since is not None:
        chosen = [row for row in rows if row.age_seconds >= since.total_seconds()]
    since_when = None if since is None else placed(since, at)
    unknown = tuple(key for key in last.sides if last.not_counted(key))
    notes = tuple(_notes(last, since_when, rows, chosen))
    return UnownedPartitions(at, since_when, tuple(chosen[:limit]), max(0, len(chosen) - limit), unknown, notes)


@dataclass(frozen=True, slots=True)
class _LastStates:
    """The last complete states, up to a moment, of the groups that are asked for; `until`: up to when each is known."""

    reader: Reader
    asked: str
    at: datetime
    sides: dict[GroupKey, Side]
    until: dict[GroupKey, datetime]
    known: States

    def unowned(self) -> dict[Place, Side]:
        """Return the partitions that no member is recorded for."""
        sides = self.sides.items()
        return {(*key, *at): side for key, side in sides for at in self.known.unowned(key, side, self.until[key])}

    def not_counted(self, key: GroupKey) -> list[str]:
        """Return the topics of a group with members whose partitions are not known."""
        side = self.sides[key]
        return self.known.not_counted(key, side, self.until[key]) if side.members else []

    def deleted_since(self, key: GroupKey) -> list[str]:
        """Return those of them that the record shows to be gone, though a listing has them."""
        return self.known.deleted_since(key, self.sides[key], self.until[key])

    def first_listed(self, key: GroupKey, topic: str) -> str:
        """Return the topic, with the time of its first listing if it has one."""
        lives = self.known.topics.get((key[0], topic))
        return f"{topic} (first listed {iso(lives[0].since)})" if lives else topic

    def histories(self, groups: set[GroupKey], since_offset: int) -> dict[GroupKey, list[Record]]:
        """Return the states of these groups from an offset on, the last one first."""
        condition = f"{_among(self.asked, groups)} AND t.observed_at <= {literal(self.at)}"
        query = (
            f"SELECT t.cluster_id, t.group_id, t.snapshot_id, t.offset, t.observed_at, {NUMBER} AS number, "
            "coalesce(t.shared_topics, t.subscribed_topics) AS topics FROM current_group_snapshots t "
            f"WHERE {condition} AND t.offset >= {since_offset} ORDER BY t.offset DESC, t.snapshot_id DESC"
        )
        return by_group(records(self.reader, query))


def _among(asked: str, groups: Collection[GroupKey]) -> str:
    """Require that columns of `t` name these groups, as far as naming them is shorter."""
    if len(groups) > MOST_ASKED:
        return asked
    return f"{asked} AND {one_of('t.group_id', sorted({group for _, group in groups}))}"


def _last_states(reader: Reader, asked: str, at: datetime) -> _LastStates:
    last = newest(
        f"{asked} AND t.complete AND t.observed_at <= {literal(at)}",
        "t.cluster_id, t.group_id, t.snapshot_id, t.observed_at",
    )
    found = {group_of(row): row for row in records(reader, f"{last} ORDER BY 1, 2, 3")}
    recorded = states(reader, _among(asked, found), [row["snapshot_id"] for row in found.values()])
    read = known(reader)
    until = {key: min(at, read.of(key[0], row["observed_at"])) for key, row in found.items()}
    sides = {key: recorded.sides[(*key, row["snapshot_id"])] for key, row in found.items()}
    gone = [key for key, side in sides.items() if recorded.unassigned(key[0], side, until[key])]
    recorded = recorded.with_given(reader, _among(asked, gone)) if gone else recorded
    return _LastStates(reader, asked, at, sides, until, recorded)


def _explained_all(last: _LastStates) -> Iterator[UnownedPartition]:
    """Say since when, and why; leave out a partition that a later record gives to a member."""
    places = last.unowned()
    if not places:
        return
    groups = {place[:2] for place in places}
    losses, shown = _changes(last, groups, places)
    history = last.histories(groups, min(losses[place]["offset"] if place in losses else -1 for place in places))
    for place, side in places.items():
        lost, until = losses.get(place), last.until[place[:2]]
        if lost is None or lost["to_member_id"] is None:
            lives = last.known.topics[place[0], place[2]]
            existed = _existed(place, side, shown.get(place), lives, until)
            yield _explained(place, existed, lost, history.get(place[:2], []), lives, until)


def _changes(
    last: _LastStates, groups: set[GroupKey], places: Mapping[Place, Side]
) -> tuple[dict[Place, Record], dict[Place, datetime]]:
    """Return the last change of each of the partitions, of the topic that has the name now, and since when it existed.

    Of a classic group, whose log gives no topic ids, the last one under that name. A partition existed when a member of
    the group first had it or a later one of its topic.
    """
    names_now = {
        (cluster, topic): life_at(last.known.topics[cluster, topic], last.at) for cluster, _, topic, _ in places
    }
    by_id = {(key[0], life.topic_id): key[1] for key, life in names_now.items() if life is not None}
    condition = f"{_among(last.asked, groups)} AND t.at <= {literal(last.at)}"
    by_name = one_of("t.topic", sorted({topic for _, topic in names_now}))
    with_id = one_of("t.topic_id", sorted({each for _, each in by_id if each is not None}))
    columns = "t.cluster_id, t.group_id, t.topic, t.topic_id, t.partition"
    query = steps(
        ranked=f"SELECT {columns}, t.at, t.held_since, t.offset, t.from_member_id, t.to_member_id, t.snapshot_id, "
        f"row_number() OVER (PARTITION BY {columns} ORDER BY {LATEST}) AS place, "
        f"min(CASE WHEN t.to_member_id IS NOT NULL THEN t.at END) OVER (PARTITION BY {columns}) AS first_had "
        f"FROM current_ownership_changes t WHERE {condition} AND ({by_name} OR {with_id})",
        lasts="SELECT * FROM ranked q WHERE q.place = 1 "
        "ORDER BY q.offset, CASE WHEN q.to_member_id IS NULL THEN 0 ELSE 1 END",
    )
    lost: dict[Place, Record] = {}
    had: dict[tuple[str, str, str | None], list[tuple[int, datetime]]] = {}
    for row in records(last.reader, query):
        key, number = group_of(row), row["partition"]
        if row["first_had"] is not None:
            had.setdefault((*key, row["topic"]), []).append((number, row["first_had"]))
        topic = by_id.get((row["cluster_id"], row["topic_id"]), row["topic"] if row["topic_id"] is None else None)
        side = places.get((*key, row["topic"] or "", number))
        if topic is None and side is not None and side.group_type == CLASSIC:
            topic = row["topic"]
        if (place := (*key, topic or "", number)) in places and names_now[key[0], place[2]] is not None:
            lost[place] = row
    shown = {of: [at for number, at in had.get(of[:3], ()) if number >= of[3]] for of in places}
    return lost, {place: min(moments) for place, moments in shown.items() if moments}


def _explained(
    place: Place,
    existed: tuple[datetime, WhyUnowned, str],
    lost: Record | None,
    history: list[Record],
    lives: tuple[TopicLife, ...],
    at: datetime,
) -> UnownedPartition:
    """Choose the latest condition: the partition exists, the topic is subscribed to, its last owner lost it."""
    cluster, group, topic, partition = place
    subscribed = list(takewhile(lambda state: topic in (state["topics"] or ()), history))
    reached = subscribed[-1] if subscribed else None
    numbers = {state["snapshot_id"]: state["number"] for state in history}
    conditions = [existed]
    if reached is not None:
        conditions.append((reached["observed_at"], WhyUnowned.SUBSCRIBED, reached["snapshot_id"]))
    if lost is not None:
        conditions.append((lost["at"], WhyUnowned.GIVEN_UP, lost["snapshot_id"]))
    since, why, snapshot_id = max(reversed(conditions), key=itemgetter(0))
    had, life = lost, life_at(lives, at)
    if lost is not None and life is not None:  # an earlier topic of this name may be what was lost
        held = (lost["held_since"] or lost["at"], lost["at"])
        had = lost if life.topic_id == life_of(lives, cluster, held, handed_over=False) else None
    return UnownedPartition(
        cluster_id=cluster,
        group_id=group,
        topic=topic,
        partition=partition,
        since=since,
        age_seconds=(at - since).total_seconds(),
        why=why,
        generation=numbers.get(snapshot_id),
        snapshot_id=snapshot_id,
        last_member_id=None if had is None else had["from_member_id"],
        last_until=None if had is None else had["at"],
        seen_in=existed[2],
    )


def _existed(
    place: Place, side: Side, shown: datetime | None, lives: tuple[TopicLife, ...], at: datetime
) -> tuple[datetime, WhyUnowned, str]:
    """Return since when the partition is known to exist.

    The first listing of a topic is the ledger's news, not the cluster's: what a member had, or had a later partition
    than, existed already.
    """
    listed = _listed_since(lives, place[3], at)
    if listed != lives[0].since or shown is None:
        why = WhyUnowned.PARTITION_ADDED if listed != lives[0].since else WhyUnowned.FIRST_LISTED
        return listed, why, side.snapshot_id
    return min(listed, shown), WhyUnowned.PARTITION_ADDED, side.snapshot_id


def _listed_since(lives: tuple[TopicLife, ...], partition: int, at: datetime) -> datetime:
    """Return since when the topic that has the name at the moment has been listed with the partition."""
    found = life_at(lives, at)
    first = found
    for life in reversed([each for each in lives if each.since <= at]):
        same = found is not None and life.topic_id == found.topic_id and partition < life.partition_count
        if not same or (first is not None and life is not first and life.until != first.since):
            break
        first = life
    return at if first is None else first.since


def _notes(
    last: _LastStates, since: datetime | None, rows: list[UnownedPartition], chosen: list[UnownedPartition]
) -> Iterator[str]:
    """Say what is not known, and, where there is nothing, why."""
    sides = last.sides
    if not sides:
        yield "no group has a complete record up to that moment"
        for cluster, (begins, ends) in reaches(last.reader, []).items():
            yield f"the ledger knows cluster {cluster} from {iso(begins)} to {iso(ends)}"
        return
    empty = sum(not side.members for side in sides.values())
    unknown = [key for key in sides if last.not_counted(key)]
    if not rows and len(sides) - empty > len(unknown):
        of = numbered(len(sides) - empty - len(unknown), "group")
        yield f"every partition of a topic that a group with members subscribes to has an owner ({of})"
    elif rows and not chosen and since is not None:
        oldest = rows[0].since
        number = numbered(len(rows), "partition")
        yield f"{number} without an owner, none since {iso(since)} or longer: the oldest since {iso(oldest)}"
    if empty:
        yield f"{numbered(empty, 'group')} without members: they subscribe to nothing, and are not here"
    gone = {key: last.deleted_since(key) for key in unknown}
    unlisted = {key: [each for each in last.not_counted(key) if each not in gone[key]] for key in unknown}
    for some, why in ((unlisted, "no topic listing up to then has"), (gone, "deleted since the last topic listing:")):
        if groups := [key for key in unknown if some[key]]:
            names = sorted({last.first_listed(key, topic) for key in groups for topic in some[key]})
            named = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
            yield f"not known of {numbered(len(groups), 'group')}: {why} {named}"


# Partitions that nobody had although the group had members, for longer than a rebalance explains.
#
# Between two generations a cooperative group has partitions that nobody has, and a leader may know a new partition
# only minutes after a listing shows it. Both are the course of things: a partition is found where it stays without an
# owner over a second generation of a classic group, or for longer than `PATIENCE`.

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
    """Find every stretch in which a partition had no owner, from consecutive states of a group.

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
    """Return whether a stretch is longer than a rebalance explains."""
    return stretch.length > PATIENCE or (group_type == CLASSIC and len(stretch.generations) > 1)


def unowned(reader: Reader, of_period: MeasuredStates) -> Iterator[tuple[GroupKey, list[Stretch]]]:
    """Find the groups that left partitions without an owner, in order, each with its stretches, the longest first."""
    found: dict[GroupKey, list[Stretch]] = {}
    for first, of_life in _stretches(reader, of_period.within, _candidates(reader, of_period), "group_type"):
        lasting = [each for each in of_life if is_found(each, first["group_type"])]
        found.setdefault(group_of(first), []).extend(lasting)
    for group, lasting in sorted(found.items()):
        if lasting:
            yield group, sorted(lasting, key=_longest_first)


def _stretches(
    reader: Reader, within: Scope, rows: Sequence[Record], *apart: str, is_cut: bool = False
) -> Iterator[tuple[Record, Iterator[Stretch]]]:
    """Find the stretches of each incarnation of a group, with the first of its states, from states in order of offset.

    `apart`: what else parts states; `is_cut`: what nobody has in the first state may have begun before.
    """
    if not rows:
        return
    listed, owned, read = _listed(reader, within), _Recorded(reader, rows), known(reader, within.cluster)
    life = itemgetter("cluster_id", "group_id", "incarnation", *apart)
    for of_life in gathered((life(row), row) for row in rows).values():
        found = [_state(row, owned, read, within.end) for row in of_life]
        if is_cut and of_life[0] is rows[0]:
            found[0] = replace(found[0], given_up=frozenset())
        counted = {topic: counts for (of, topic), counts in listed.items() if of == of_life[0]["cluster_id"]}
        yield of_life[0], stretches(found, counted)


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
    """Find stretches in which partitions of one group had no owner, in the last `most_states` states that lack any.

    Only while the group had members: of an empty group nothing is said. `of_group` names its cluster, too.
    """
    with measured(reader, of_group) as of_period:
        last = (
            f"SELECT b.*, count(*) OVER () AS total FROM ({_lacking(of_period)}) b WHERE b.lacks = 1 "
            f"ORDER BY b.offset DESC, b.snapshot_id DESC LIMIT {most_states}"
        )
        found = records(reader, f"SELECT * FROM ({last}) n ORDER BY n.offset")
    rows = [row for row in found if _lasted(row)]
    if not rows:
        return UnownedTime((), 0)
    left_off = max(0, rows[0]["total"] - most_states)
    of_lives = _stretches(reader, of_group, rows, is_cut=bool(left_off and rows[0]["lacked"]))
    lasting = [each for _, of_life in of_lives for each in of_life]
    return UnownedTime(tuple(sorted(lasting, key=_longest_first)), left_off)


def describe(stretch: Stretch) -> str:
    """Format as `clicks-1 had no owner for 12.4 s, from 2026-11-21T13:51:29.462Z to 2026-11-21T13:51:41.862Z`."""
    since = "from before" if stretch.from_before else "from"
    until = iso(stretch.until)
    end = f"on (still at {until}, as far as known)" if stretch.open_ended else f"to {until}"
    place = f"{stretch.topic}-{stretch.partition}"
    return f"{place} had no owner for {length(stretch.length)}, {since} {iso(stretch.since)} {end}"


def _candidates(reader: Reader, of_period: MeasuredStates) -> list[Record]:
    """Return states that lack an owner, or may hide that they do, and that last.

    What is short and stands alone is a round of a cooperative rebalance.
    """
    until = f"coalesce(b.until_at, {literal(of_period.within.end)})"
    rows = records(
        reader,
        f"SELECT b.* FROM ({_lacking(of_period)}) b WHERE b.lacks = 1 AND (b.lacked = 1 OR b.will_lack = 1 OR "
        f"{until} > b.observed_at + INTERVAL '{int(PATIENCE.total_seconds())} seconds') "
        "ORDER BY b.cluster_id, b.group_id, b.offset",
    )
    return [row for row in rows if _lasted(row)]


def _lasted(row: Record) -> bool:
    return row["until_at"] is None or row["until_at"] > row["observed_at"]


def _lacking(of_period: MeasuredStates) -> str:
    """Select states with `lacks`: 1 if they have another number of partitions than their topics, or may hide it.

    `lacked` and `will_lack` say so of the states before and after.
    """
    hidden_by = (DOUBLE_OWNED, NOT_SUBSCRIBED, ASSIGNED_WITHOUT_TOPICS)
    codes = one_of("v.code", [each.recorded_as for each in hidden_by])
    within_group = "OVER (PARTITION BY d.cluster_id, d.group_id, d.incarnation ORDER BY d.offset)"
    return steps(
        # of runs that do not count, too: who owned what is looked up for each state, and which count takes memory
        hiding=f"SELECT DISTINCT v.snapshot_id FROM violations v WHERE {codes}",
        differing="SELECT s.*, CASE WHEN s.fewest <> s.greatest OR s.greatest <> coalesce(s.total, 0) "
        f"OR v.snapshot_id IS NOT NULL THEN 1 ELSE 0 END AS lacks FROM ({of_period.states}) s "
        "LEFT JOIN hiding v ON v.snapshot_id = s.snapshot_id WHERE s.greatest IS NOT NULL",
        beside="SELECT d.cluster_id, d.group_id, d.group_type, d.incarnation, d.offset, d.snapshot_id, d.number, "
        "d.observed_at, d.until_at, d.before, d.previous_snapshot_id, d.shared_topics, d.subscribed_topics, d.lacks, "
        f"lag(d.lacks) {within_group} AS lacked, lead(d.lacks) {within_group} AS will_lack FROM differing d",
    )


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
        columns = "t.snapshot_id, t.recorded, t.pending_revocation, t.target"
        for row in of_each(reader, columns, "current_member_snapshots", rows):
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
        """Return ids that members had before a state, and that none of it has, or is to have."""
        assigned = self._assigned.get(row["snapshot_id"])
        if assigned is None:
            return frozenset()
        given = self._given.get(group_of(row), {}).items()
        return frozenset(topic_id for topic_id, offset in given if offset < row["offset"]) - assigned


def _given(reader: Reader, rows: Sequence[Record]) -> dict[GroupKey, dict[str, int]]:
    """Map, by group, topic ids to the offset of the first record that gave a partition of it to a member."""
    found: dict[GroupKey, dict[str, int]] = {}
    for groups in in_parts(sorted({row["group_id"] for row in rows})):
        query = (
            "SELECT t.cluster_id, t.group_id, t.topic_id, min(t.offset) AS offset FROM current_ownership_changes t "
            f"WHERE {one_of('t.group_id', groups)} AND t.topic_id IS NOT NULL "
            "GROUP BY t.cluster_id, t.group_id, t.topic_id"
        )
        for row in records(reader, query):
            found.setdefault(group_of(row), {})[row["topic_id"]] = row["offset"]
    return found


def _names(reader: Reader, by_id: set[str]) -> dict[str, str]:
    """Map `id:<topic id>` to the name that a listing gave it after the record was folded."""
    if not by_id:
        return {}
    which = one_of("t.topic_id", sorted(each.removeprefix(BY_ID) for each in by_id))
    query = f"SELECT DISTINCT t.topic_id, t.topic FROM current_topic_snapshots t WHERE {which}"
    return {BY_ID + row["topic_id"]: row["topic"] for row in records(reader, query)}


def _listed(reader: Reader, within: Scope) -> Mapping[tuple[str, str], Listed]:
    """Map cluster and topic to the listings."""
    rows = records(reader, f"SELECT * FROM ({listings(within)}) q ORDER BY q.valid_from, q.valid_until")
    found = gathered(((row["cluster_id"], row["topic"]), row) for row in rows)
    counts: dict[tuple[str, str], Listed] = {}
    for name, some in found.items():
        ids = {row["topic_id"] for row in some} - {None}
        only = next(iter(ids)) if len(ids) == 1 else ""  # a source without topic ids does not contradict it
        counts[name] = [(row["valid_from"], row["partition_count"] or 0, row["topic_id"] or only) for row in some]
    return counts
