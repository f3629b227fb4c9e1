"""Why a group rebalanced: what the record shows of the cause, what moved, and what nobody had for how long."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import listed
from groupledger.answers.causes import GENERATION, CauseKind, Moved, moved, unowned
from groupledger.answers.generations import CLASSIC, Selection, anchor, choose, cluster_of, snapshots_of
from groupledger.answers.names import require_scenario
from groupledger.answers.queries import exactly, from_row, held, matching, one_of, partitions, records, steps
from groupledger.answers.reach import moments
from groupledger.answers.rebalance import MemberMove, Rebalance, moves, rebalance, with_states
from groupledger.answers.rebalance_causes import (
    LeaderChange,
    StateChange,
    leader_changes,
    with_coordinator,
    with_departures,
)
from groupledger.answers.spoken import spans
from groupledger.answers.states import BASELINE, assigned_ids, states
from groupledger.answers.unowned import unowned_partitions
from groupledger.core.faults import Fault
from groupledger.core.moments import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from groupledger.answers.causes import Cause, Side
    from groupledger.answers.queries import NamedPartition, Reader, Record, Value
    from groupledger.answers.rebalance import Result
    from groupledger.answers.states import States
    from groupledger.core.moments import Point


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
class Before:
    """The state that the rebalance began from."""

    snapshot_id: str
    generation: int | None
    observed_at: datetime
    assignor: str | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A rebalance with its causes.

    `rounds` is how many generations it took until no further one had to follow, None where no results say so, or
    others joined or left before; `settled` is the last of them. `leader_change`: that the coordinator moved or
    restarted since the state before, cause or not; None if it did not, or if that is not known.
    """

    rebalance: Rebalance
    before: Before | None
    causes: tuple[Cause, ...]
    moved: tuple[Moved, ...] = field(metadata=listed(Moved))
    unowned: tuple[Unowned, ...]
    rounds: int | None
    settled: int | None
    leader_change: LeaderChange | None = None


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
    return Explanation(
        rebalance=found,
        before=None if before is None else Before(before.snapshot_id, before.number, before.at, before.assignor),
        causes=with_coordinator(causes, change),
        moved=differs.moved,
        unowned=nobody,
        rounds=rounds,
        settled=settled,
        leader_change=change,
    )


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
    condition, values = matching("t.", cluster_id=found.cluster_id, group_id=found.group_id)
    among, names = one_of("t.topic", "topic", sorted({topic for topic, _ in places}))
    changes = records(
        reader,
        "SELECT t.topic, t.partition, t.at, t.offset, t.to_member_id FROM current_ownership_changes t "
        f"WHERE {condition} AND {among} ORDER BY t.offset",
        **values,
        **names,
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
    condition, values = matching("t.", cluster_id=found.cluster_id, group_id=found.group_id)
    later = records(
        reader,
        "SELECT t.generation, t.members, r.follow_up FROM current_group_snapshots t "
        "JOIN (SELECT t.snapshot_id, t.follow_up "
        f"FROM current_rebalances t WHERE {condition} AND t.scenario = :scenario AND t.round = 1) r "
        f"ON r.snapshot_id = t.snapshot_id WHERE {condition} AND t.incarnation = :incarnation "
        f"AND t.generation >= :generation AND t.snapshot_kind = '{GENERATION}' ORDER BY t.offset",
        scenario=BASELINE,
        incarnation=found.incarnation,
        generation=found.generation if found.generation is not None else 0,
        **values,
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
    condition, values = matching("t.", cluster_id=found.cluster_id, group_id=found.group_id)
    # The log gives topic ids for KIP-848 groups alone: a name made again is another topic there.
    same = "" if found.group_type == CLASSIC else "AND coalesce(n.topic_id = c.topic_id, true) "
    query = steps(
        changes="SELECT t.topic, t.topic_id, t.partition, t.at, t.offset, t.from_member_id, t.to_member_id, "
        f"t.snapshot_id FROM current_ownership_changes t WHERE {condition} AND t.topic IS NOT NULL",
        beside="SELECT c.topic, c.topic_id, c.partition, c.at, c.to_member_id, n.at AS other, n.to_member_id AS "
        "other_member, n.offset AS other_offset, c.offset FROM changes c LEFT JOIN changes n "
        f"ON n.topic = c.topic AND n.partition = c.partition AND n.offset <> c.offset {same}"
        "WHERE c.snapshot_id = :snapshot_id AND (c.from_member_id IS NULL OR c.to_member_id IS NULL) "
        "ORDER BY c.topic, c.partition, c.topic_id, n.offset",
    )
    rows = records(reader, query, snapshot_id=found.snapshot_id, **values)
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
    condition, values = matching("t.", cluster_id=cluster, group_id=group_id)
    one, other = (_state(reader, cluster, group_id, each) for each in (begin, end))
    if other["offset"] < one["offset"]:
        text = f"{_named(other)} comes before {_named(one)}: expected --from before --to"
        raise Fault("BAD_PERIOD", text)
    found = states(reader, condition, values, [one["snapshot_id"], other["snapshot_id"]], computed=False)
    found = found.with_given(reader, condition, values)
    before, after = found.pair(cluster, group_id, one["snapshot_id"], other["snapshot_id"])
    assert before is not None
    between = f"SELECT count(*) AS n FROM current_group_snapshots t WHERE {condition} "
    between += "AND t.offset > :after AND t.offset <= :until"
    return GroupDifference(
        cluster_id=cluster,
        group_id=group_id,
        group_type=after.group_type,
        before=_compared(found, cluster, before, one),
        after=_compared(found, cluster, after, other),
        records=records(reader, between, after=one["offset"], until=other["offset"], **values)[0]["n"],
        changes=tuple(
            each for each in found.causes(cluster, group_id, before, after) if each.kind not in OF_NEIGHBOURS
        ),
        members=moves(before.members, after.members),
        moved=tuple(moved(before.members, after.members)),
        notes=(*_notes(one, other, before, after), *_withheld(reader, condition, values, (before, after))),
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
    condition, values = matching("t.", cluster_id=found.cluster_id, group_id=group_id, snapshot_id=found.snapshot_id)
    one, other = (_given(reader, condition, values, name) for name in scenarios)
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


def _withheld(reader: Reader, condition: str, values: Mapping[str, Value], sides: tuple[Side, Side]) -> Iterator[str]:
    """Say what a cooperative leader gave no member, since one of them had it when it joined."""
    for side in sides:
        query = f"SELECT t.claimed FROM current_member_snapshots t WHERE {condition} AND t.snapshot_id = :snapshot_id"
        rows = records(reader, query, **values, snapshot_id=side.snapshot_id) if side.is_cooperative else []
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


def _given(reader: Reader, condition: str, values: Mapping[str, Value], scenario: str) -> Sequence[Mapping[str, Any]]:
    """Return what each member has in the end under a scenario, as rows of members."""
    query = (
        "SELECT a.member_id, a.target AS recorded, m.client_id, m.group_instance_id "
        f"FROM (SELECT t.* FROM current_assignments t WHERE {condition} AND t.scenario = :scenario AND t.round = 1) a "
        f"LEFT JOIN (SELECT t.* FROM current_member_snapshots t WHERE {condition}) m ON m.member_id = a.member_id "
        "ORDER BY a.member_order"
    )
    return records(reader, query, scenario=scenario, **values)
