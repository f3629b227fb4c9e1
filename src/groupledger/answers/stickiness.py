"""How much classic groups moved, beside how little they could have moved.

What a coordinator moves (KIP-848) is spread over the folds of an epoch, and is not summed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.balance import CERTAIN, SAME
from groupledger.answers.generations import CLASSIC
from groupledger.answers.rows import one_of, records
from groupledger.answers.scope import Scope, any_members, gaps, scope, why_empty
from groupledger.answers.states import BASELINE

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader, Value
    from groupledger.answers.scope import RequestedScope


@dataclass(frozen=True, slots=True)
class Stickiness:
    """A classic group's rebalances of a period under one assignor, as far as the record is what was recomputed.

    Of the `compared` rebalances the least moves are exact in `certain`, and these are summed (docs/concepts/moves.md):
    `moves` went from member to member, `least` had to. `excess` sums what was more, `below` what was less, where the
    result is less balanced than the least moves reach: moves = least + excess - below. `others` are rebalances whose
    record another algorithm made, so that their moves are not ours to count.
    """

    cluster_id: str
    group_id: str
    assignor: str
    compared: int
    others: int
    certain: int
    moves: int
    least: int
    excess: int
    below: int
    worst: int
    worst_at: datetime | None
    worst_snapshot_id: str | None
    worst_generation: int | None


@dataclass(frozen=True, slots=True)
class Stickinesses:
    """The groups with most excess first; `total` counts those left off."""

    scope: Scope
    groups: tuple[Stickiness, ...]
    total: int
    notes: tuple[str, ...]


def stickiness(reader: Reader, asked: RequestedScope, limit: int) -> Stickinesses:
    """Rank groups by what they moved too much. Raises as `scope.scope`."""
    within = scope(reader, asked)
    query, values = _by_group(within)
    order = "g.excess DESC, g.moves DESC, g.cluster_id, g.group_id, g.assignor"
    rows = records(
        reader, f"SELECT g.*, count(*) OVER () AS total FROM ({query}) g ORDER BY {order} LIMIT {limit}", **values
    )
    groups = tuple(Stickiness(**{name: row[name] for name in Stickiness.__slots__}) for row in rows)
    notes = (() if groups else (_why_empty(reader, within),)) + gaps(reader, within)
    return Stickinesses(within, groups, rows[0]["total"] if rows else 0, notes)


def rebalances_compared(within: Scope) -> tuple[str, dict[str, Value]]:
    """Build a query with a row per computed rebalance: whether it is `compared`, and its least is `certain`."""
    condition, values = within.where("r.")
    same, named = one_of("r.verdict", "verdict", list(SAME))
    rows = (
        "SELECT r.cluster_id, r.group_id, r.assignor, r.snapshot_id, s.generation, r.observed_at, r.moves, "
        f"r.least_moves, CASE WHEN {same} AND r.least_moves IS NOT NULL THEN 1 ELSE 0 END AS compared, "
        f"CASE WHEN {same} AND r.least_moves IS NOT NULL AND {CERTAIN} THEN 1 ELSE 0 END AS certain "
        "FROM current_rebalances r JOIN current_group_snapshots s ON s.cluster_id = r.cluster_id "
        f"AND s.group_id = r.group_id AND s.snapshot_id = r.snapshot_id WHERE {condition} "
        "AND r.scenario = :scenario AND r.round = 1 AND r.snapshot_kind <> 'rewrite' AND r.members > 0 "
        f"AND s.group_type = '{CLASSIC}'"
    )
    return rows, values | named | {"scenario": BASELINE}


def _by_group(within: Scope) -> tuple[str, dict[str, Value]]:
    rows, values = rebalances_compared(within)
    more = (
        "SELECT q.*, CASE WHEN q.certain = 1 AND q.moves > q.least_moves THEN q.moves - q.least_moves ELSE 0 END "
        "AS too_many, CASE WHEN q.certain = 1 AND q.moves < q.least_moves THEN q.least_moves - q.moves ELSE 0 END "
        f"AS too_few FROM ({rows}) q"
    )
    group = "o.cluster_id, o.group_id, o.assignor"
    place = f"row_number() OVER (PARTITION BY {group} ORDER BY o.too_many DESC, o.snapshot_id) AS place"
    ranked = f"SELECT o.*, {place} FROM ({more}) o"
    return (
        f"SELECT {group}, cast(sum(o.compared) AS BIGINT) AS compared, "
        "cast(sum(1 - o.compared) AS BIGINT) AS others, cast(sum(o.certain) AS BIGINT) AS certain, "
        "cast(sum(CASE WHEN o.certain = 1 THEN o.moves ELSE 0 END) AS BIGINT) AS moves, "
        "cast(sum(CASE WHEN o.certain = 1 THEN o.least_moves ELSE 0 END) AS BIGINT) AS least, "
        "cast(sum(o.too_many) AS BIGINT) AS excess, cast(sum(o.too_few) AS BIGINT) AS below, "
        "cast(max(o.too_many) AS BIGINT) AS worst, "
        "max(CASE WHEN o.place = 1 AND o.too_many > 0 THEN o.observed_at END) AS worst_at, "
        "max(CASE WHEN o.place = 1 AND o.too_many > 0 THEN o.snapshot_id END) AS worst_snapshot_id, "
        "max(CASE WHEN o.place = 1 AND o.too_many > 0 THEN o.generation END) AS worst_generation "
        f"FROM ({ranked}) o GROUP BY {group}"
    ), values


def _why_empty(reader: Reader, within: Scope) -> str:
    if any_members(reader, within):
        return (
            "no record of a classic group of this period is recomputed: run `groupledger assign --snapshots every`; "
            "what coordinators move (KIP-848) is not summed"
        )
    return why_empty(reader, within)
