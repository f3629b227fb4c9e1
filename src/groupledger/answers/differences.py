"""What differs between two states of a group, or between two results for one state: members, partitions, load."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind, moved
from groupledger.answers.generations import CLASSIC, choose, cluster_of, snapshots_of
from groupledger.answers.names import require_scenario
from groupledger.answers.reach import moments
from groupledger.answers.rebalance import moves, rebalance
from groupledger.answers.rows import matching, records
from groupledger.answers.spoken import spans
from groupledger.answers.states import states
from groupledger.answers.topic_partitions import held, partitions
from groupledger.core.faults import Fault
from groupledger.core.moment import iso

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from groupledger.answers.causes import Cause, Moved, Side
    from groupledger.answers.rebalance import MemberMove, Result
    from groupledger.answers.rows import Reader, Record, Value
    from groupledger.answers.states import States
    from groupledger.answers.topic_partitions import NamedPartition
    from groupledger.core.since import Point

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
    members: tuple[MemberMove, ...]
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
    members: tuple[MemberMove, ...]
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
    return GroupDifference(
        cluster_id=cluster,
        group_id=group_id,
        group_type=after.group_type,
        before=_compared(found, cluster, before, one),
        after=_compared(found, cluster, after, other),
        records=_between(reader, condition, values, one["offset"], other["offset"]),
        changes=tuple(
            each for each in found.causes(cluster, group_id, before, after) if each.kind not in OF_NEIGHBOURS
        ),
        members=moves(before.members, after.members),
        moved=tuple(moved(before.members, after.members)),
        notes=(*_notes(one, other, before, after), *_withheld(reader, condition, values, (before, after))),
    )


def scenario_difference(
    reader: Reader, group_id: str, scenarios: tuple[str, str], generation: int | None = None, cluster: str | None = None
) -> ScenarioDifference:
    """Compare what two scenarios give the members at a generation (or group epoch; default: the last one) at last.

    Raises Fault: as `rebalance`; UNKNOWN_SCENARIO; NO_RESULT where a scenario has none for this state.
    """
    told = rebalance(reader, group_id, cluster, generation)
    results = {each.scenario: each for each in reversed(told.results)}  # of several rounds the first
    for name in scenarios:
        if name not in results:
            require_scenario(reader, name)
            have = f"it has: {', '.join(sorted(results)) or 'none'}"
            raise Fault("NO_RESULT", f"{told.title} has no result of the scenario {name!r}; {have}")
    condition, values = matching("t.", cluster_id=told.cluster_id, group_id=group_id, snapshot_id=told.snapshot_id)
    one, other = (_given(reader, condition, values, name) for name in scenarios)
    return ScenarioDifference(
        cluster_id=told.cluster_id,
        group_id=group_id,
        snapshot_id=told.snapshot_id,
        generation=told.generation,
        observed_at=told.observed_at,
        before=results[scenarios[0]],
        after=results[scenarios[1]],
        members=moves(one, other),
        moved=tuple(moved(one, other)),
    )


def _state(reader: Reader, cluster: str, group_id: str, point: Point | None) -> Record:
    """The record that stands for a generation, or the last one up to a moment."""
    if point is None or isinstance(point, int):
        return choose(snapshots_of(reader, group_id, cluster, point))
    [moment] = moments(reader, cluster, [point])
    condition, values = matching("t.", cluster_id=cluster, group_id=group_id)
    every = (
        f"SELECT t.*, coalesce(t.generation, t.group_epoch) AS number FROM current_group_snapshots t WHERE {condition}"
    )
    assert moment is not None
    last = f"{every} AND t.observed_at <= :moment ORDER BY t.offset DESC LIMIT 1"
    for row in records(reader, last, moment=moment, **values):
        return row
    [first] = records(reader, f"{every} ORDER BY t.observed_at, t.offset LIMIT 1", **values)
    text = f"at {iso(moment)} the ledger knows nothing of {group_id} yet: its record begins {iso(first['observed_at'])}"
    raise Fault("NOT_KNOWN_YET", text)


def _between(reader: Reader, condition: str, values: Mapping[str, Value], after: int, until: int) -> int:
    query = (
        "SELECT count(*) AS n FROM current_group_snapshots t "
        f"WHERE {condition} AND t.offset > :after AND t.offset <= :until"
    )
    [row] = records(reader, query, after=after, until=until, **values)
    number: int = row["n"]
    return number


def _compared(found: States, cluster: str, side: Side, row: Record) -> ComparedState:
    key = cluster, row["group_id"]
    loads = [len(held(each)) for each in side.members]
    return ComparedState(
        snapshot_id=side.snapshot_id,
        incarnation=row["incarnation"],
        generation=side.number,
        observed_at=side.at,
        state=row["state"],
        assignor=side.assignor,
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
    """What each member has in the end under a scenario, as rows of members."""
    query = (
        "SELECT a.member_id, a.target AS recorded, m.client_id, m.group_instance_id "
        f"FROM (SELECT t.* FROM current_assignments t WHERE {condition} AND t.scenario = :scenario AND t.round = 1) a "
        f"LEFT JOIN (SELECT t.* FROM current_member_snapshots t WHERE {condition}) m ON m.member_id = a.member_id "
        "ORDER BY a.member_order"
    )
    return records(reader, query, scenario=scenario, **values)
