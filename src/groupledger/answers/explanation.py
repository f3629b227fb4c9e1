"""Why a group rebalanced: what the record shows of the cause, what moved, and what nobody had for how long."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import computed, listed, shown
from groupledger.answers.causes import (
    GENERATION,
    Cause,
    CauseKind,
    LeaderChange,
    Moved,
    Side,
    StateChange,
    leader_changes,
    moved,
    unowned,
    with_coordinator,
    with_departures,
)
from groupledger.answers.owners import absences
from groupledger.answers.queries import (
    CLASSIC,
    CONSUMER,
    NamedPartition,
    Reader,
    Record,
    exactly,
    from_row,
    group_of,
    held,
    literal,
    matching,
    one_of,
    partitions,
    records,
    steps,
)
from groupledger.answers.scope import moments, newest, not_known_after, require_scenario
from groupledger.answers.spoken import SERVER_DEFAULT, assignor_of, spans
from groupledger.answers.states import (
    BASELINE,
    OtherRebalance,
    Selection,
    States,
    anchor,
    assigned_ids,
    choose,
    cluster_of,
    rebalance_states,
    select,
    snapshots_of,
    states,
)
from groupledger.answers.unowned import unowned_partitions
from groupledger.core.faults import Fault
from groupledger.core.moments import Point, iso
from groupledger.core.protocol.compatibility import libraries, named_writers
from groupledger.core.rebalance.registry import Attributed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class MemberMove:
    """A member before and after. Partitions are sorted; `stays` is False for one that is no longer in the group.

    `is_away`: a static member (KIP-848) that left for the time being and keeps its partitions.
    """

    member_id: str = field(metadata=shown("member", named=True))
    client_id: str | None
    group_instance_id: str | None
    stays: bool
    held: tuple[NamedPartition, ...] = field(metadata=shown("held", text=spans))
    assigned: tuple[NamedPartition, ...] = field(metadata=shown("assigned", text=spans))
    is_away: bool = False

    @property
    @computed("added", text=spans, in_frames=True)
    def added(self) -> tuple[NamedPartition, ...]:
        """Assigned and not held before."""
        return tuple(sorted(set(self.assigned) - set(self.held)))

    @property
    @computed("revoked", text=spans, in_frames=True)
    def revoked(self) -> tuple[NamedPartition, ...]:
        """Held before and no longer assigned."""
        return tuple(sorted(set(self.held) - set(self.assigned)))


@dataclass(frozen=True, slots=True)
class Result:
    """What a run of ours made of the same snapshot, in one scenario."""

    scenario: str
    assignor: str
    protocol: str
    outcome: str
    verdict: str
    moves: int
    least_moves: int | None
    unassigned: int
    follow_up: bool
    least_moves_certainty: str | None  # None, as the next three are: a row of an older schema version
    fewest_rounds: int | None
    attribution: str | None
    attributed_to: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A snapshot against the one before it, in facts; `results` and `findings` are ours.

    `gaps` are those of the log between the two, `topics_not_listed` topics of which no listing knew at the time: what
    rests on their partition counts is not known. `others`: other rebalances to this generation. `leader_writes`: the
    client libraries that write what the leader of a classic group wrote as a member; empty: none that is known.
    """

    cluster_id: str
    group_id: str
    group_type: str
    snapshot_id: str
    snapshot_kind: str
    incarnation: int
    generation: int | None
    previous_snapshot_id: str | None
    assignor: str | None
    state: str
    complete: bool
    observed_at: datetime
    members: tuple[MemberMove, ...] = field(metadata=listed(MemberMove))
    results: tuple[Result, ...]
    findings: tuple[str, ...]
    same_generation: tuple[str, ...]
    gaps: tuple[str, ...] = ()
    topics_not_listed: tuple[str, ...] = ()
    others: tuple[OtherRebalance, ...] = ()
    leader_writes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """`java-range, generation 3 (range, cluster dev)`."""
        counted = "generation" if self.group_type == CLASSIC else "epoch"
        if self.generation is None:
            return f"{self.group_id}, deleted (cluster {self.cluster_id})"
        assignor = self.assignor or "no assignor"
        if assignor_of(self.group_type, self.assignor, sum(each.stays for each in self.members)) == SERVER_DEFAULT:
            assignor = "uniform, the server's default; the members name none"
        return f"{self.group_id}, {counted} {self.generation} ({assignor}, cluster {self.cluster_id})"

    @property
    def compared(self) -> Result | None:
        """The first result that holds the record against its own assignor; else the first there is."""
        last = {Attributed.NOT_ASKED.text: 1, Attributed.NOT_COMPARED.text: 2}
        return min(self.results, key=lambda each: last.get(each.attribution or "", 0), default=None)


def rebalance(
    reader: Reader,
    group_id: str,
    cluster: str | None = None,
    generation: int | None = None,
    *,
    at: datetime | None = None,
) -> Rebalance:
    """Return the rebalance to a generation (classic) or group epoch (KIP-848), or in force at a time; else the last.

    Of several records with one generation it is the first of the last incarnation (a rewrite computed nothing), of a
    KIP-848 epoch the settled one against that of the epoch before; `same_generation` names the others.
    """
    return with_states(reader, group_id, cluster, Selection(generation, at=at))[0]


def with_states(reader: Reader, group_id: str, cluster: str | None, which: Selection) -> tuple[Rebalance, States]:
    """Return the same for any rebalance, and the two states around it."""
    chosen, same_number, others = select(reader, group_id, cluster, which)
    snapshot_id, previous = chosen["snapshot_id"], chosen["before_id"]
    condition = _of_group(chosen)
    ids = [each for each in (snapshot_id, previous) if each is not None]
    results = _results(reader, chosen, ids)
    known = states(reader, condition, ids).with_results(results)
    if previous is not None:  # the causes of the first state need none
        known = known.with_given(reader, condition)
    before, after = known.pair(*group_of(chosen), previous, snapshot_id)
    found = from_row(
        Rebalance,
        chosen,
        generation=chosen["number"],
        previous_snapshot_id=previous,
        members=_with_absences(reader, chosen, moves(() if before is None else before.members, after.members)),
        results=tuple(
            from_row(Result, row, attributed_to=None if row["attributed_to"] is None else tuple(row["attributed_to"]))
            for row in results
            if row["snapshot_id"] == snapshot_id
        ),
        findings=_findings(reader, chosen),
        same_generation=tuple(row["snapshot_id"] for row in same_number),
        others=others,
        gaps=_gaps(reader, chosen, before),
        topics_not_listed=tuple(known.unlisted(chosen["cluster_id"], after)),
        leader_writes=_leader_writes(reader, chosen),
    )
    return found, known


def moves(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[MemberMove, ...]:
    """Compare member rows of two snapshots: who moved what, in member order; members that left come last.

    A static member is the same one under a new member id: it has the same `group_instance_id`.
    """
    earlier = {_identity(row): row for row in before}
    stayed = tuple(_move(row, earlier.pop(_identity(row), None), stays=True) for row in after)
    return stayed + tuple(_move(row, row, stays=False) for row in earlier.values())


def _identity(row: Mapping[str, Any]) -> tuple[bool, str]:
    instance = row["group_instance_id"]
    return (instance is not None, instance if instance is not None else row["member_id"])


def _move(row: Mapping[str, Any], before: Mapping[str, Any] | None, *, stays: bool) -> MemberMove:
    had, has = held(before) if before else (), held(row) if stays else ()
    return from_row(MemberMove, row, stays=stays, held=had, assigned=has, is_away=False)


def _with_absences(reader: Reader, chosen: Record, members: tuple[MemberMove, ...]) -> tuple[MemberMove, ...]:
    """Mark the static members that are away at the end of a state: there are no others of its group behind it."""
    if chosen["group_type"] != CONSUMER or all(each.group_instance_id is None for each in members):
        return members
    later = f"{_of_group(chosen)} AND t.offset > {chosen['offset']}"
    if records(reader, f"SELECT 1 FROM current_group_snapshots t WHERE {later} LIMIT 1"):
        return members
    known = absences(reader, group_of(chosen), -1)
    return tuple(replace(each, is_away=known.get(each.member_id) is not None) for each in members)


def _of_group(chosen: Record, **more: str) -> str:
    return matching("t.", cluster_id=chosen["cluster_id"], group_id=chosen["group_id"], **more)


def _results(reader: Reader, chosen: Record, snapshot_ids: list[str]) -> list[Record]:
    condition = f"{_of_group(chosen)} AND {one_of('t.snapshot_id', snapshot_ids)}"
    columns = ", ".join(f"t.{name}" for name in ("cluster_id", "group_id", "snapshot_id", "round", *Result.__slots__))
    query = f"SELECT {columns} FROM current_rebalances t WHERE {condition} ORDER BY t.scenario, t.round"
    return records(reader, query)


def _leader_writes(reader: Reader, chosen: Record) -> tuple[str, ...]:
    """Return the client libraries that write the leader's subscription."""
    condition = _of_group(chosen, snapshot_id=chosen["snapshot_id"])
    query = (
        "SELECT m.subscription_version AS version, m.user_data FROM (SELECT * FROM current_group_snapshots t WHERE "
        f"{condition}) s JOIN (SELECT * FROM current_member_snapshots t WHERE {condition}) m ON m.member_id = s.leader"
    )
    for row in records(reader, query) if chosen["group_type"] == CLASSIC else []:
        return named_writers(libraries(chosen["assignor"], row["version"], row["user_data"]), row["version"])
    return ()


def _findings(reader: Reader, chosen: Record) -> tuple[str, ...]:
    condition = _of_group(chosen, snapshot_id=chosen["snapshot_id"])
    query = f"SELECT DISTINCT t.code, t.evidence FROM current_violations t WHERE {condition} ORDER BY 1, 2"
    return tuple(f"{row['code']}: {row['evidence']}" for row in records(reader, query))


def _end_of_incarnation_before(reader: Reader, chosen: Record) -> int:
    if chosen["incarnation"] <= 1:
        return -1
    condition = f"{_of_group(chosen)} AND t.incarnation < {chosen['incarnation']}"
    [row] = records(reader, f"SELECT max(t.offset) AS last FROM current_group_snapshots t WHERE {condition}")
    return -1 if row["last"] is None else int(row["last"])


def _gaps(reader: Reader, chosen: Record, before: Side | None) -> tuple[str, ...]:
    """Return gaps of the group's history behind the snapshot before, and of its log partition, up to this one.

    The first snapshot of an incarnation has none before it: they are those behind the incarnation before.
    """
    log = chosen["snapshot_id"].rpartition("/")[0] + "/"
    since = _end_of_incarnation_before(reader, chosen) if before is None else before.offset
    of_log = f"t.group_id = '' AND substr(t.snapshot_id, 1, {len(log)}) = {literal(log)}"
    query = (
        f"SELECT t.kind, t.reason FROM current_coverage t WHERE {matching('t.', cluster_id=chosen['cluster_id'])} "
        f"AND t.offset > {since} AND t.offset <= {chosen['offset']} "
        f"AND ({matching('t.', group_id=chosen['group_id'])} OR ({of_log})) ORDER BY t.offset, t.kind, t.reason"
    )
    return tuple(f"{row['kind']}: {row['reason']}" for row in records(reader, query))


INVALID = "invalid"
"""The verdict of an assignment that no assignor may give: what followed from it says nothing of rounds."""


@dataclass(frozen=True, slots=True)
class Unowned:
    """A partition that nobody had from `since` on; `until` is None where the record ends before anybody got it.

    `since` is None where no member is known to have had it before.
    """

    topic: str
    partition: int
    since: datetime | None
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Neighbour:
    """The state that a rebalance began from, or that of the next rebalance."""

    snapshot_id: str
    generation: int | None
    observed_at: datetime
    assignor: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rebalance with its causes.

    `rounds` is how many generations it took until no further one had to follow, None where no results say so, or
    others joined or left before; `settled` is the last of them. `leader_change`: that the coordinator moved or
    restarted since the state before, cause or not; None if it did not, or if that is not known. `after`: the next
    rebalance that is recorded. `notes` say that the time that was asked about lies behind all that is known.
    """

    rebalance: Rebalance
    before: Neighbour | None
    causes: tuple[Cause, ...]
    moved: tuple[Moved, ...] = field(metadata=listed(Moved))
    unowned: tuple[Unowned, ...]
    rounds: int | None
    settled: int | None
    leader_change: LeaderChange | None = None
    after: Neighbour | None = None
    notes: tuple[str, ...] = ()


def explain(
    reader: Reader, group_id: str, cluster: str | None = None, generation: int | None = None, **which: Any
) -> Explanation:
    """Explain the rebalance that led to a generation (or epoch; default: the last one).

    `which`: the other fields of a `Selection`, by name. Raises Fault: as `generations.select`.
    """
    found, known = with_states(reader, group_id, cluster, Selection(generation, **which))
    differs = known.difference(found.cluster_id, found.group_id, found.previous_snapshot_id, found.snapshot_id)
    before = differs.before
    changed = tuple(_unowned(reader, found, known, differs.after))
    lasting = _unowned_still(reader, found, known, differs.after, {(each.topic, each.partition) for each in changed})
    nobody = (*changed, *lasting)
    rounds, settled = _rounds(reader, found, differs.after)
    if rounds == 1 and any(each.until is None or each.until > found.observed_at for each in nobody):
        rounds = settled = None  # partitions that nobody has: it has not settled
    causes = with_departures(reader, (found.cluster_id, found.group_id), before, differs.after, differs.causes)
    [change] = leader_changes(reader, [StateChange(found.cluster_id, before, differs.after, causes)])
    at = which.get("at")
    ends = None if at is None else newest(reader, found.cluster_id)
    return Explanation(
        rebalance=found,
        before=None if before is None else Neighbour(before.snapshot_id, before.number, before.at, before.assignor),
        causes=with_coordinator(causes, change),
        moved=differs.moved,
        unowned=nobody,
        rounds=rounds,
        settled=settled,
        leader_change=change,
        after=_next(reader, found, differs.after),
        notes=() if at is None or ends is None or at <= ends else (not_known_after(found.cluster_id, ends),),
    )


def _next(reader: Reader, found: Rebalance, state: Side) -> Neighbour | None:
    condition = matching("t.", cluster_id=found.cluster_id, group_id=found.group_id)
    columns = "q.snapshot_id, q.number AS generation, q.observed_at, q.assignor"
    later = f"q.represents AND q.offset > {state.offset} ORDER BY q.offset LIMIT 1"
    rows = records(reader, f"SELECT {columns} FROM ({rebalance_states(condition)}) q WHERE {later}")
    return from_row(Neighbour, rows[0]) if rows else None


def _unowned_still(
    reader: Reader, found: Rebalance, known: States, state: Side, changed: set[NamedPartition]
) -> Iterator[Unowned]:
    """Return partitions that nobody has in this state, nor had before: of listed topics, and those below one that a
    member has."""
    counts = dict(known.counted((found.cluster_id, found.group_id), state, state.at))
    for topic, number in {place for row in state.members for place in held(row)}:
        topic_id, count = counts.get(topic) or (None, 0)
        if topic in counts:
            counts[topic] = topic_id, max(count, number + 1)
    places = set(unowned(state, counts)) - changed if state.members and state.complete else set()
    if not places:
        return
    known_since = unowned_partitions(
        reader, found.observed_at, None, found.cluster_id, exactly(found.group_id), limit=len(places)
    )
    since = {(each.topic, each.partition): each.since for each in known_since.partitions}
    condition = matching("t.", cluster_id=found.cluster_id, group_id=found.group_id)
    changes = records(
        reader,
        "SELECT t.topic, t.partition, t.at, t.offset, t.to_member_id FROM current_ownership_changes t "
        f"WHERE {condition} AND {one_of('t.topic', sorted({topic for topic, _ in places}))} ORDER BY t.offset",
    )
    for topic, partition in sorted(places):
        of_one = [row for row in changes if (row["topic"], row["partition"]) == (topic, partition)]
        lost = [row["at"] for row in of_one if row["offset"] < state.offset and row["to_member_id"] is None]
        later = [row["at"] for row in of_one if row["offset"] > state.offset and row["to_member_id"] is not None]
        begun = since.get((topic, partition), lost[-1] if lost else None)
        yield Unowned(topic, partition, begun, later[0] if later else None)


def _rounds(reader: Reader, found: Rebalance, state: Side) -> tuple[int | None, int | None]:
    """Count the generations of a classic group until no other had to follow, and return the last of them."""
    if found.group_type != CLASSIC or state.kind != GENERATION or state.verdict == INVALID:
        return None, None
    if state.verdict is not None and not state.follow_up:
        return 1, found.generation
    condition = matching("t.", cluster_id=found.cluster_id, group_id=found.group_id)
    later = records(
        reader,
        "SELECT t.generation, t.members, r.follow_up FROM current_group_snapshots t "
        "JOIN (SELECT t.snapshot_id, t.follow_up "
        f"FROM current_rebalances t WHERE {condition} AND t.scenario = '{BASELINE}' AND t.round = 1) r "
        f"ON r.snapshot_id = t.snapshot_id WHERE {condition} AND t.incarnation = {found.incarnation} "
        f"AND t.generation >= {found.generation or 0} AND t.snapshot_kind = '{GENERATION}' ORDER BY t.offset",
    )
    for number, row in enumerate(later, 1):
        if row["members"] != len(state.members):
            return None, None  # others joined or went: what follows is of another rebalance, too
        if not row["follow_up"]:
            return number, row["generation"]
    return None, None


def _unowned(reader: Reader, found: Rebalance, known: States, state: Side) -> Iterator[Unowned]:
    """Return partitions that this state left with nobody, until one got them; and those that it gave an owner again.

    Not of topics that nobody subscribes to any more, nor those that the topic of this name no longer has.
    """
    condition = matching("t.", cluster_id=found.cluster_id, group_id=found.group_id)
    # The log gives topic ids for KIP-848 groups alone: a name made again is another topic there.
    same = "" if found.group_type == CLASSIC else "AND coalesce(n.topic_id = c.topic_id, true) "
    query = steps(
        changes="SELECT t.topic, t.topic_id, t.partition, t.at, t.offset, t.from_member_id, t.to_member_id, "
        f"t.snapshot_id FROM current_ownership_changes t WHERE {condition} AND t.topic IS NOT NULL",
        beside="SELECT c.topic, c.topic_id, c.partition, c.at, c.to_member_id, n.at AS other, n.to_member_id AS "
        "other_member, n.offset AS other_offset, c.offset FROM changes c LEFT JOIN changes n "
        f"ON n.topic = c.topic AND n.partition = c.partition AND n.offset <> c.offset {same}"
        f"WHERE {matching('c.', snapshot_id=found.snapshot_id)} "
        "AND (c.from_member_id IS NULL OR c.to_member_id IS NULL) ORDER BY c.topic, c.partition, c.topic_id, n.offset",
    )
    rows = records(reader, query)
    owned = {place for row in state.members for place in held(row)}
    assigned = assigned_ids(state)  # of topics that members are to have: what they lost of others is no one's to have
    by_name = assigned is None
    for place, some in groupby(rows, lambda row: (row["topic"], row["partition"], by_name or row["topic_id"])):
        of_one, (topic, partition, topic_id) = list(some), place
        at, offset, owner = of_one[0]["at"], of_one[0]["offset"], of_one[0]["to_member_id"]
        if any((row["to_member_id"] is None) is not (owner is None) for row in of_one):
            continue  # taken away of one topic and given of another of this name
        others = [row for row in of_one if row["other"] is not None]
        if owner is None:
            if (topic, partition) in owned:
                continue  # in a share group others may have it
            if state.members and (topic not in state.topics or known.is_gone(found.cluster_id, topic, partition, at)):
                continue
            later = [row["other"] for row in others if row["other_offset"] > offset and row["other_member"] is not None]
            if assigned is None or topic_id in assigned | {None}:
                yield Unowned(topic, partition, at, later[0] if later else None)
        else:
            earlier = [row for row in others if row["other_offset"] < offset]
            if earlier and earlier[-1]["other_member"] is None:
                yield Unowned(topic, partition, earlier[-1]["other"], at)


# What differs between two states of a group, or between two results for one state: members, partitions, load.

OF_NEIGHBOURS = frozenset((CauseKind.NOT_SHOWN, CauseKind.FOLLOW_UP, CauseKind.GROUP_BORN))
"""Causes that say why one state came right after another; they are no difference between two."""


@dataclass(frozen=True, slots=True)
class ComparedState:
    """One side of a comparison. `most` and `least`: partitions of one member; None where there are no members.

    `unowned` are partitions of subscribed topics that nobody has; None where a topic's partitions are not known.
    """

    snapshot_id: str
    incarnation: int
    generation: int | None
    observed_at: datetime
    state: str
    assignor: str | None
    members: int
    partitions: int
    most: int | None
    least: int | None
    unowned: tuple[NamedPartition, ...] | None


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """A group at two moments. `records`: states that were recorded after the first one, up to the second.

    `members`: what each had and has, those that are gone last. `notes` say what limits the comparison.
    """

    cluster_id: str
    group_id: str
    group_type: str
    before: ComparedState
    after: ComparedState
    records: int
    changes: tuple[Cause, ...]
    members: tuple[MemberMove, ...] = field(metadata=listed(MemberMove))
    moved: tuple[Moved, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ScenarioDifference:
    """Two results for one state. `members`: what each is given at last under the one (`held`) and the other."""

    cluster_id: str
    group_id: str
    snapshot_id: str
    generation: int | None
    observed_at: datetime
    before: Result
    after: Result
    members: tuple[MemberMove, ...] = field(metadata=listed(MemberMove))
    moved: tuple[Moved, ...]


def difference(
    reader: Reader, group_id: str, begin: Point, end: Point | None = None, cluster: str | None = None
) -> GroupDifference:
    """Compare two states: each of a generation (or group epoch), or the last one at a moment; default: the last.

    Raises Fault: UNKNOWN_CLUSTER, UNKNOWN_GROUP, AMBIGUOUS_GROUP, UNKNOWN_GENERATION, NOT_KNOWN_YET; BAD_PERIOD where
    the second state comes before the first.
    """
    cluster = cluster_of(reader, group_id, cluster)
    condition = matching("t.", cluster_id=cluster, group_id=group_id)
    one, other = (_state(reader, cluster, group_id, each) for each in (begin, end))
    if other["offset"] < one["offset"]:
        text = f"{_named(other)} comes before {_named(one)}: expected --from before --to"
        raise Fault("BAD_PERIOD", text)
    found = states(reader, condition, [one["snapshot_id"], other["snapshot_id"]]).with_given(reader, condition)
    before, after = found.pair(cluster, group_id, one["snapshot_id"], other["snapshot_id"])
    assert before is not None
    between = f"{condition} AND t.offset > {one['offset']} AND t.offset <= {other['offset']}"
    [counted] = records(reader, f"SELECT count(*) AS n FROM current_group_snapshots t WHERE {between}")
    return GroupDifference(
        cluster_id=cluster,
        group_id=group_id,
        group_type=after.group_type,
        before=_compared(found, cluster, before, one),
        after=_compared(found, cluster, after, other),
        records=counted["n"],
        changes=tuple(
            each for each in found.causes(cluster, group_id, before, after) if each.kind not in OF_NEIGHBOURS
        ),
        members=moves(before.members, after.members),
        moved=tuple(moved(before.members, after.members)),
        notes=(*_notes(one, other, before, after), *_withheld(reader, condition, (before, after))),
    )


def scenario_difference(
    reader: Reader,
    group_id: str,
    scenarios: tuple[str, str],
    generation: int | None = None,
    cluster: str | None = None,
    at: datetime | None = None,
) -> ScenarioDifference:
    """Compare what two scenarios give the members at a generation, group epoch or time (default: the last) at last.

    Raises Fault: as `rebalance`; UNKNOWN_SCENARIO; NO_RESULT where a scenario has none for this state.
    """
    found = rebalance(reader, group_id, cluster, generation, at=at)
    results = {each.scenario: each for each in reversed(found.results)}  # of several rounds the first
    for name in scenarios:
        if name not in results:
            require_scenario(reader, name)
            have = f"it has: {', '.join(sorted(results)) or 'none'}"
            raise Fault("NO_RESULT", f"{found.title} has no result of the scenario {name!r}; {have}")
    condition = matching("t.", cluster_id=found.cluster_id, group_id=group_id, snapshot_id=found.snapshot_id)
    one, other = (_given(reader, condition, name) for name in scenarios)
    return ScenarioDifference(
        cluster_id=found.cluster_id,
        group_id=group_id,
        snapshot_id=found.snapshot_id,
        generation=found.generation,
        observed_at=found.observed_at,
        before=results[scenarios[0]],
        after=results[scenarios[1]],
        members=moves(one, other),
        moved=tuple(moved(one, other)),
    )


def _state(reader: Reader, cluster: str, group_id: str, point: Point | None) -> Record:
    """Return the record that stands for a generation, or the last one up to a moment."""
    if point is None or isinstance(point, int):
        return choose(snapshots_of(reader, group_id, cluster, point))
    [moment] = moments(reader, cluster, [point])
    return anchor(reader, group_id, cluster, Selection(at=moment))


def _compared(found: States, cluster: str, side: Side, row: Record) -> ComparedState:
    key = cluster, row["group_id"]
    loads = [len(held(each)) for each in side.members]
    return from_row(
        ComparedState,
        row,
        generation=side.number,
        members=len(side.members),
        partitions=len({place for each in side.members for place in held(each)}),
        most=max(loads, default=None),
        least=min(loads, default=None),
        unowned=None if found.not_counted(key, side, side.at) else found.unowned(key, side, side.at),
    )


def _notes(one: Record, other: Record, before: Side, after: Side) -> Iterator[str]:
    if one["snapshot_id"] == other["snapshot_id"]:
        yield "both are the same record: nothing was recorded in between"
    if one["incarnation"] != other["incarnation"]:
        yield "the group was deleted, or begun anew, in between"
    for side in (before, after):
        if not side.complete:
            yield f"{side.snapshot_id} is incomplete: the log was cut there"


def _withheld(reader: Reader, condition: str, sides: tuple[Side, Side]) -> Iterator[str]:
    """Say what a cooperative leader gave no member, since one of them had it when it joined."""
    for side in sides:
        of_state = f"{condition} AND {matching('t.', snapshot_id=side.snapshot_id)}"
        query = f"SELECT t.claimed FROM current_member_snapshots t WHERE {of_state}"
        rows = records(reader, query) if side.is_cooperative else []
        claimed = {place for row in rows for place in partitions(row["claimed"])}
        waiting = sorted(claimed - {place for row in side.members for place in held(row)})
        if waiting:
            yield (
                f"generation {side.number} withholds {spans(waiting)}, which a member had to give up first: the next "
                "hands it over"
            )


def _named(row: Record) -> str:
    counted = "generation" if row["group_type"] == CLASSIC else "epoch"
    return f"{counted} {row['number']} ({iso(row['observed_at'])})"


def _given(reader: Reader, condition: str, scenario: str) -> Sequence[Mapping[str, Any]]:
    """Return what each member has in the end under a scenario, as rows of members."""
    query = (
        "SELECT a.member_id, a.target AS recorded, m.client_id, m.group_instance_id "
        "FROM (SELECT t.* FROM current_assignments t "
        f"WHERE {condition} AND {matching('t.', scenario=scenario)} AND t.round = 1) a "
        f"LEFT JOIN (SELECT t.* FROM current_member_snapshots t WHERE {condition}) m ON m.member_id = a.member_id "
        "ORDER BY a.member_order"
    )
    return records(reader, query)
