"""History under another assignor beside what happened, group by group: two scenarios of the same snapshots.

One is `recorded`, the step from what members held to what was recorded; the other a scenario of `assign` with
`assign.carried`, in which each snapshot starts from the assignor's own answer at the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.rebalance import CLASSIC
from groupledger.answers.rows import records
from groupledger.answers.scope import Scope, scope, why_empty

if TYPE_CHECKING:
    from groupledger.answers.rows import Reader, Value
    from groupledger.answers.scope import Asked

HAPPENED = "recorded"
_COUNTED = ("moves", "revoked", "unassigned", "follow_ups", "spread")


@dataclass(frozen=True, slots=True)
class Course:
    """What a group's rebalances came to, one way or the other.

    `moves`: partitions that went from member to member. `revoked`: partitions that members had to stop reading, which
    under an eager protocol is all they have. `unassigned`: partitions that nobody got. `follow_ups`: rebalances that a
    further one must follow. `spread`: the differences between the most and the fewest partitions of a member, summed.
    """

    moves: int
    revoked: int
    unassigned: int
    follow_ups: int
    spread: int


@dataclass(frozen=True, slots=True)
class ReplayedGroup:
    """A group's rebalances of a period, as they were and as they would have been.

    `refused` of them the assignor gives no answer to; they are not in the sums.
    """

    cluster_id: str
    group_id: str
    rebalances: int
    refused: int
    happened: Course
    replayed: Course


@dataclass(frozen=True, slots=True)
class Replayed:
    """All groups, those with the greatest difference in moves first; the sums are over all, not over those shown."""

    scope: Scope
    scenario: str
    groups: tuple[ReplayedGroup, ...]
    total: int
    rebalances: int
    happened: Course
    replayed: Course
    notes: tuple[str, ...]


def replayed(reader: Reader, asked: Asked, scenario: str, limit: int) -> Replayed:
    """Compare a scenario with what happened. Raises as `scope.scope`."""
    within = scope(reader, asked)
    query, values = _by_group(within, scenario)
    order = "abs(g.h_moves - g.x_moves) DESC, abs(g.h_revoked - g.x_revoked) DESC, g.cluster_id, g.group_id"
    rows = records(reader, f"SELECT * FROM ({query}) g ORDER BY {order}", **values)
    groups = [
        ReplayedGroup(
            row["cluster_id"], row["group_id"], row["rebalances"], row["refused"], _course(row, "h"), _course(row, "x")
        )
        for row in rows
    ]
    refused = sum(group.refused for group in groups)
    notes = [] if groups else [_why_empty(reader, within)]
    if refused:
        notes.append(f"{refused:,} rebalances the assignor gives no answer to: `groupledger show --quarantine`")
    return Replayed(
        within,
        scenario,
        tuple(groups[:limit]),
        len(groups),
        sum(group.rebalances for group in groups),
        _sum([group.happened for group in groups]),
        _sum([group.replayed for group in groups]),
        tuple(notes),
    )


def _by_group(within: Scope, scenario: str) -> tuple[str, dict[str, Value]]:
    """A row a group; only rebalances that both scenarios have, with members, and no rewrites of them."""
    condition, values = within.where("x.")
    same = "h.cluster_id = x.cluster_id AND h.group_id = x.group_id AND h.snapshot_id = x.snapshot_id"
    refused = "CASE WHEN x.outcome IN ('REJECTED', 'NOT_RECOMPUTED') OR h.outcome = 'REJECTED' THEN 1 ELSE 0 END"
    columns = ", ".join(f"{_value(side, name)} AS {side}_{name}" for side in "hx" for name in _COUNTED)
    rows = (
        f"SELECT x.cluster_id, x.group_id, {refused} AS refused, {columns} FROM current_rebalances x "
        f"JOIN current_rebalances h ON {same} WHERE {condition} AND x.scenario = :scenario AND h.scenario = :happened "
        f"AND x.round = 1 AND h.round = 1 AND x.snapshot_kind = 'generation' AND x.members > 0 "
        f"AND x.group_type = '{CLASSIC}'"
    )
    sums = ", ".join(
        f"cast(sum(CASE WHEN r.refused = 0 THEN r.{side}_{name} ELSE 0 END) AS BIGINT) AS {side}_{name}"
        for side in "hx"
        for name in _COUNTED
    )
    return (
        f"SELECT r.cluster_id, r.group_id, cast(sum(1 - r.refused) AS BIGINT) AS rebalances, "
        f"cast(sum(r.refused) AS BIGINT) AS refused, {sums} FROM ({rows}) r GROUP BY r.cluster_id, r.group_id"
    ), values | {"scenario": scenario, "happened": HAPPENED}


def _value(side: str, name: str) -> str:
    if name == "follow_ups":
        return f"CASE WHEN {side}.follow_up THEN 1 ELSE 0 END"
    if name == "spread":
        return f"coalesce({side}.load_max - {side}.load_min, 0)"
    return f"{side}.{name}"


def _course(row: dict[str, int], side: str) -> Course:
    return Course(**{name: row[f"{side}_{name}"] for name in _COUNTED})


def _sum(courses: list[Course]) -> Course:
    return Course(**{name: sum(getattr(each, name) for each in courses) for name in _COUNTED})


def _why_empty(reader: Reader, within: Scope) -> str:
    condition, values = within.where("t.")
    query = f"SELECT 1 AS found FROM current_group_snapshots t WHERE {condition} AND t.members > 0 LIMIT 1"
    if records(reader, query, **values):
        return "no rebalance of a classic consumer group lies there: of others the coordinator decides (KIP-848)"
    return why_empty(reader, within)
