"""What a monitoring system asks of a ledger: numbers by group, as of the end of a period."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.audit import Found, audit
from groupledger.answers.queries import GroupKey, Reader, Record, group_of, literal, newest, records
from groupledger.answers.scope import RequestedScope, Scope, known, recorded_spans, scope
from groupledger.answers.storms import counted_rebalances, rebalances_compared
from groupledger.answers.unowned import unowned_partitions
from groupledger.core.protocol.recorded import CONSUMERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime


ALL = 10**9
"""More partitions without an owner than there are."""


@dataclass(frozen=True, slots=True)
class GroupGauges:
    """A group's numbers. Of the period: `rebalances`; `given`, how often a partition was given to a member.

    `moves` and `least_moves` are those of `report stickiness`, None where no rebalance of the period counts there.
    At its end: `members`, `unowned` partitions of subscribed topics, since when the oldest of them has been, and for
    how long; None where it is not known (`unowned`), or there is none.
    """

    cluster_id: str
    group_id: str
    members: int
    rebalances: int
    given: int
    moves: int | None
    least_moves: int | None
    unowned: int | None
    unowned_since: datetime | None
    oldest_unowned_seconds: float | None


@dataclass(frozen=True, slots=True)
class ClusterGauges:
    """When the first record of a cluster's groups was written, the newest of any kind, and up to when it is known."""

    cluster_id: str
    first: datetime
    last: datetime
    known_up_to: datetime


@dataclass(frozen=True, slots=True)
class Gauges:
    """Numbers of a period, by group in order of cluster and name; `findings` as `audit` has them."""

    scope: Scope
    clusters: tuple[ClusterGauges, ...]
    groups: tuple[GroupGauges, ...]
    findings: tuple[Found, ...]


def gauges(reader: Reader, asked: RequestedScope) -> Gauges:
    """Return the numbers of the groups that were asked for. Raises as `scope.scope`."""
    within = scope(reader, asked)
    findings = () if within.known_up_to is None else audit(reader, asked).found
    return Gauges(within, tuple(_clusters(reader, within.cluster)), group_gauges(reader, within), findings)


def _clusters(reader: Reader, cluster: str | None) -> Iterator[ClusterGauges]:
    reached = {each.cluster_id: each for each in known(reader, cluster).reaches}
    for name, (first, last) in recorded_spans(reader, [] if cluster is None else [cluster]).items():
        of = reached.get(name)
        yield ClusterGauges(name, first, (of and of.newest_record) or last, of.up_to if of else last)


def group_gauges(reader: Reader, within: Scope) -> tuple[GroupGauges, ...]:
    """Return the numbers of the groups alone: there are none where the ledger knows of no record."""
    if within.known_up_to is None:
        return ()
    condition = f"{within.where('t.', 'at')} AND t.to_member_id IS NOT NULL"
    changes = f"SELECT t.* FROM current_ownership_changes t WHERE {condition}"
    rebalances, given = _summed(reader, counted_rebalances(within)), _summed(reader, changes)
    certain = f"SELECT r.* FROM ({rebalances_compared(within)}) r WHERE r.certain = 1"
    moves = _summed(reader, certain, "moves", "least_moves")  # of those that stickiness sums
    unowned = _unowned(reader, within)
    nothing, found = {"n": 0, "moves": None, "least_moves": None}, []
    for key, (members, consumes) in _members(reader, within).items():
        moved = moves.get(key, nothing)
        counts = rebalances.get(key, nothing)["n"], given.get(key, nothing)["n"]
        numbers = *counts, moved["moves"], moved["least_moves"]
        none = (0, None, 0.0) if consumes else (None, None, None)
        found.append(GroupGauges(key[0], key[1], members, *numbers, *unowned.get(key, none)))
    return tuple(found)


def _members(reader: Reader, within: Scope) -> dict[GroupKey, tuple[int, bool]]:
    """Return the members in the last state of each group up to the end of the period, and whether they are consumers.

    What members of another protocol, such as Connect's, are assigned is not known, nor what they lack.
    """
    columns = "t.cluster_id, t.group_id, t.members, t.protocol_type"
    last = newest(f"{within.of_groups('t.')} AND t.observed_at <= {literal(within.end)}", columns)
    rows = records(reader, f"{last} ORDER BY 1, 2, 3")
    return {group_of(row): (row["members"], row["protocol_type"] in CONSUMERS) for row in rows}


def _summed(reader: Reader, rows: str, *names: str) -> dict[GroupKey, Record]:
    """Count the rows of each group, `n`, and sum these columns of them."""
    sums = "".join(f", cast(sum(t.{name}) AS BIGINT) AS {name}" for name in names)
    query = f"SELECT t.cluster_id, t.group_id, count(*) AS n{sums} FROM ({rows}) t GROUP BY t.cluster_id, t.group_id"
    return {group_of(row): row for row in records(reader, query)}


def _unowned(reader: Reader, within: Scope) -> dict[GroupKey, tuple[int | None, datetime | None, float | None]]:
    """Count the partitions of each group that nobody has, with the oldest `since` and its age, of groups with any.

    What is not known of all topics of a group has no number; since when a known one has had no owner is so.
    """
    answer = unowned_partitions(reader, within.end, None, within.cluster, within.group, ALL)
    found: dict[GroupKey, tuple[int | None, datetime | None, float | None]] = {}
    for each in answer.partitions:  # the oldest first
        number, since, age = found.get((each.cluster_id, each.group_id), (0, each.since, each.age_seconds))
        found[each.cluster_id, each.group_id] = (number or 0) + 1, since, age
    return found | {key: (None, *found.get(key, (0, None, None))[1:]) for key in answer.not_known}
