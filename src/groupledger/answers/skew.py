"""How unevenly partitions, or what they weigh, lie on the members of a group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.last_states import assigned, last_states
from groupledger.answers.recorded_states import loads
from groupledger.answers.rows import records
from groupledger.answers.scope import Scope, any_members, scope, why_empty

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.last_states import AssignedMember
    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import RequestedScope
    from groupledger.answers.topic_partitions import NamedPartition

Weights = Mapping["NamedPartition", float]


@dataclass(frozen=True, slots=True)
class Load:
    """What a member has. `weight` is None where no weights were given."""

    member_id: str
    client_id: str | None
    partitions: tuple[NamedPartition, ...]
    weight: float | None


@dataclass(frozen=True, slots=True)
class Skew:
    """A group's last state: the most and the least that a member has, and how many members have nothing.

    `loads` are the members, the heaviest first. `unweighted`: partitions that the weights do not name; they weigh 0.
    """

    cluster_id: str
    group_id: str
    observed_at: datetime
    snapshot_id: str
    assignor: str | None
    members: int
    idle: int
    most: int
    least: int
    most_weight: float | None
    least_weight: float | None
    unweighted: int
    loads: tuple[Load, ...]


@dataclass(frozen=True, slots=True)
class Skews:
    """The most uneven groups first; `total` counts those left off."""

    scope: Scope
    groups: tuple[Skew, ...]
    total: int
    notes: tuple[str, ...]


def skew(reader: Reader, asked: RequestedScope, limit: int, weights: Weights | None = None) -> Skews:
    """Rank groups by the difference between the member with most and the one with least, in weight where there is one.

    Raises as `scope.scope`.
    """
    within = scope(reader, asked)
    if weights is None:
        rows = _ranked(reader, within, limit)
        total = rows[0]["groups"] if rows else 0
    else:
        query, values = last_states(within)
        rows = records(reader, query, **values)
        total = len(rows)
    members = assigned(reader, rows)
    found = [_skew(row, members.get(row["snapshot_id"], ()), weights) for row in rows]
    found.sort(key=_rank)
    notes = () if found else (_why_empty(reader, within),)
    return Skews(within, tuple(found[:limit]), total, notes)


def _ranked(reader: Reader, within: Scope, limit: int) -> list[Record]:
    """The states of the most uneven groups; how many groups there are stands in each."""
    of_states, values = last_states(within)
    of_loads = loads(within, of_states)
    spread = "coalesce(l.most, 0) - CASE WHEN coalesce(l.owners, 0) < s.members THEN 0 ELSE l.least END"
    rows = (
        f"SELECT s.*, {spread} AS spread, coalesce(l.most, 0) AS most FROM ({of_states}) s LEFT JOIN ({of_loads}) l "
        "ON l.snapshot_id = s.snapshot_id"
    )
    order = "r.spread DESC, r.most DESC, r.members DESC, r.cluster_id, r.group_id"
    return records(
        reader,
        f"SELECT r.*, count(*) OVER () AS groups FROM ({rows}) r ORDER BY {order} LIMIT {limit}",
        **values,
    )


def _skew(row: Record, members: Sequence[AssignedMember], weights: Weights | None) -> Skew:
    found = [Load(each.member_id, each.client_id, each.partitions, _weight(each, weights)) for each in members]
    found.sort(key=lambda load: (-(load.weight or 0), -len(load.partitions), load.member_id))
    counts = [len(load.partitions) for load in found]
    heavy = [load.weight for load in found if load.weight is not None]
    return Skew(
        cluster_id=row["cluster_id"],
        group_id=row["group_id"],
        observed_at=row["observed_at"],
        snapshot_id=row["snapshot_id"],
        assignor=row["assignor"],
        members=row["members"],
        idle=counts.count(0),
        most=max(counts, default=0),
        least=min(counts, default=0),
        most_weight=max(heavy, default=None),
        least_weight=min(heavy, default=None),
        unweighted=0 if weights is None else sum(place not in weights for load in found for place in load.partitions),
        loads=tuple(found),
    )


def _weight(member: AssignedMember, weights: Weights | None) -> float | None:
    return None if weights is None else sum(weights.get(place, 0.0) for place in member.partitions)


def _rank(of: Skew) -> tuple[object, ...]:
    heavy = (of.most_weight or 0) - (of.least_weight or 0)
    return -heavy, -(of.most - of.least), -of.most, -of.members, of.cluster_id, of.group_id


def _why_empty(reader: Reader, within: Scope) -> str:
    if any_members(reader, within.from_the_beginning):
        return (
            "no group has members at the end of this period; ask for an earlier end with --until. Share and streams "
            "groups are not ranked: a partition of theirs may have several owners, or be known by its task alone"
        )
    return why_empty(reader, within.from_the_beginning)
