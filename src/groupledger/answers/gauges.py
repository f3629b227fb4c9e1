"""What a monitoring system asks of a ledger: numbers by group, as of its newest record."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.audit import audit
from groupledger.answers.reach import reaches
from groupledger.answers.rows import records
from groupledger.answers.scope import scope
from groupledger.answers.stickiness import rebalances_compared
from groupledger.answers.storms import counted_rebalances
from groupledger.answers.unowned import unowned_partitions

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.found import Found
    from groupledger.answers.rows import GroupKey, Reader, Record
    from groupledger.answers.scope import RequestedScope, Scope

ALL = 10**9
"""More partitions without an owner than there are."""


@dataclass(frozen=True, slots=True)
class GroupGauges:
    """A group's numbers. Of the period: `rebalances`; `given`, how often a partition was given to a member.

    `moves` and `least_moves` are those of `report stickiness`, None where no rebalance of the period counts there.
    At its end: `members`, `unowned` partitions of subscribed topics, and for how long the oldest of them has been.
    """

    cluster_id: str
    group_id: str
    members: int
    rebalances: int
    given: int
    moves: int | None
    least_moves: int | None
    unowned: int
    oldest_unowned_seconds: float


@dataclass(frozen=True, slots=True)
class ClusterGauges:
    """When the first and the last record of a cluster's groups were written."""

    cluster_id: str
    first: datetime
    last: datetime


@dataclass(frozen=True, slots=True)
class Gauges:
    """Numbers of a period, by group in order of cluster and name; `findings` as `audit` has them."""

    scope: Scope
    clusters: tuple[ClusterGauges, ...]
    groups: tuple[GroupGauges, ...]
    findings: tuple[Found, ...]


def gauges(reader: Reader, asked: RequestedScope) -> Gauges:
    """The numbers of the groups that were asked for. Raises as `scope.scope`."""
    within = scope(reader, asked)
    known = reaches(reader, [] if within.cluster is None else [within.cluster])
    clusters = tuple(ClusterGauges(name, first, last) for name, (first, last) in known.items())
    if within.newest is None:
        return Gauges(within, clusters, (), ())
    return Gauges(within, clusters, tuple(_groups(reader, within)), audit(reader, asked).found)


def _groups(reader: Reader, within: Scope) -> list[GroupGauges]:
    counted = _rebalances(reader, within)
    given = _given(reader, within)
    moves = _moves(reader, within)
    unowned = _unowned(reader, within)
    found = []
    for key, members in _members(reader, within).items():
        number, age = unowned.get(key, (0, 0.0))
        moved, least = moves.get(key, (None, None))
        numbers = counted.get(key, 0), given.get(key, 0), moved, least
        found.append(GroupGauges(key[0], key[1], members, *numbers, number, age))
    return found


def _members(reader: Reader, within: Scope) -> dict[GroupKey, int]:
    """Every group that the ledger knows at the end of the period, with the members of its last state."""
    condition, values = within.of_groups("t.")
    of_period = f"FROM current_group_snapshots t WHERE {condition} AND t.observed_at <= :end"
    newest = f"SELECT t.cluster_id, t.group_id, max(t.offset) AS newest {of_period} GROUP BY t.cluster_id, t.group_id"
    query = (
        f"SELECT n.cluster_id, n.group_id, max(t.members) AS members FROM ({newest}) n JOIN current_group_snapshots t "
        "ON t.cluster_id = n.cluster_id AND t.group_id = n.group_id AND t.offset = n.newest "
        "GROUP BY n.cluster_id, n.group_id ORDER BY n.cluster_id, n.group_id"
    )
    return {_key(row): row["members"] for row in records(reader, query, end=within.end, **values)}


def _rebalances(reader: Reader, within: Scope) -> dict[GroupKey, int]:
    query, values = counted_rebalances(within)
    counted = f"SELECT r.cluster_id, r.group_id, count(*) AS n FROM ({query}) r GROUP BY r.cluster_id, r.group_id"
    return {_key(row): row["n"] for row in records(reader, counted, **values)}


def _given(reader: Reader, within: Scope) -> dict[GroupKey, int]:
    condition, values = within.where("t.", "at")
    query = (
        "SELECT t.cluster_id, t.group_id, count(*) AS n FROM current_ownership_changes t "
        f"WHERE {condition} AND t.to_member_id IS NOT NULL GROUP BY t.cluster_id, t.group_id"
    )
    return {_key(row): row["n"] for row in records(reader, query, **values)}


def _moves(reader: Reader, within: Scope) -> dict[GroupKey, tuple[int, int]]:
    """Of the rebalances that stickiness sums, so that the two sums may be held against one another."""
    rows, values = rebalances_compared(within)
    query = (
        "SELECT t.cluster_id, t.group_id, cast(sum(t.moves) AS BIGINT) AS moves, "
        f"cast(sum(t.least_moves) AS BIGINT) AS least FROM ({rows}) t WHERE t.certain = 1 "
        "GROUP BY t.cluster_id, t.group_id"
    )
    found = records(reader, query, **values)
    return {_key(row): (row["moves"], row["least"]) for row in found}


def _unowned(reader: Reader, within: Scope) -> dict[GroupKey, tuple[int, float]]:
    found: dict[GroupKey, tuple[int, float]] = {}
    for each in unowned_partitions(reader, within.end, None, within.cluster, within.group, ALL).partitions:
        number, age = found.get((each.cluster_id, each.group_id), (0, 0.0))
        found[each.cluster_id, each.group_id] = number + 1, max(age, each.age_seconds)
    return found


def _key(row: Record) -> GroupKey:
    return row["cluster_id"], row["group_id"]
