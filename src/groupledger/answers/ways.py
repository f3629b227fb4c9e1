"""How groups were assigned over time: by whom, under which assignor, and by what kinds of members.

The kind is told by what members did, never by the assignor's name: a member that had partitions and claims some when it
joins again kept them (cooperative), one that claims none gave them up (eager). In a KIP-848 group, classic members are
those that brought a subscription of the classic protocol.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.generations import CLASSIC, assigned_by
from groupledger.answers.recorded_states import CONSUMER, states
from groupledger.answers.rows import one_of, records
from groupledger.core.protocol.recorded import REMEMBERING
from groupledger.core.registry import DEFAULT_ASSIGNOR

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.recorded_states import Query
    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import Scope


class MemberKind(StrEnum):
    """What the members of a state are."""

    EAGER = "eager"
    COOPERATIVE = "cooperative"
    BOTH_CLASSIC = "eager and cooperative"
    KIP_848 = "KIP-848"
    BOTH_TYPES = "classic and KIP-848"


MIXED = frozenset({MemberKind.BOTH_CLASSIC, MemberKind.BOTH_TYPES})


@dataclass(frozen=True, slots=True)
class GroupWay:
    """How a group is assigned. `kind` is None where no record tells: nobody who had partitions joined again."""

    group_type: str
    assignor: str | None
    kind: MemberKind | None


@dataclass(frozen=True, slots=True)
class Stage:
    """Consecutive states with members that are assigned in one way; `first` and `last` are the first and last of them.

    `before` is the state before the first one, whether it has members or not; None where the record begins. `emptied`:
    the first one without members behind the stage before; None where there is none.
    """

    way: GroupWay
    first: Record
    last: Record
    before: Record | None
    states: int
    emptied: Record | None = None


def stages(rows: Sequence[Record]) -> list[Stage]:
    """The states of one group in order -> its stages. One odd state among cooperative ones is none of its own."""
    found: list[Stage] = []
    before: Record | None = None
    emptied: Record | None = None
    for row in rows:
        if not row["members"]:
            emptied = emptied or row
        else:
            way = _way(row, found[-1].way if found else None)
            if found and alike(found[-1].way, way):
                found[-1] = _with(found[-1], row, 1, way)
            else:
                found.append(Stage(way, row, row, before, 1, emptied))
            emptied = None
        before = row
    return _without_slips(found)


def _way(row: Record, last: GroupWay | None) -> GroupWay:
    kind = None if row["kind"] is None else MemberKind(row["kind"])
    way = GroupWay(row["group_type"], row["assignor"], kind)
    if kind is None and last is not None and _same_but_kind(last, way):
        return replace(way, kind=last.kind)
    return way


def alike(last: GroupWay, way: GroupWay) -> bool:
    """Whether two ways are one, as far as is known."""
    return _same_but_kind(last, way) and (last.kind is None or way.kind is None or last.kind is way.kind)


def _with(stage: Stage, last: Record, states: int, way: GroupWay) -> Stage:
    """Return the stage with more states, the last of them `last`."""
    known = replace(stage.way, kind=way.kind or stage.way.kind)
    return replace(stage, way=known, last=last, states=stage.states + states)


def _without_slips(found: list[Stage]) -> list[Stage]:
    """Join what a single state parts: a cooperative member that lost its assignment claims nothing once."""
    kept: list[Stage] = []
    for at, stage in enumerate(found):
        last = kept[-1] if kept else None
        if last is None or not _same_but_kind(last.way, stage.way):
            kept.append(stage)
            continue
        after = found[at + 1].way if at + 1 < len(found) else last.way
        slip = last.way.kind is MemberKind.COOPERATIVE and stage.states == 1 and after == last.way
        if slip or stage.way == last.way:
            kept[-1] = _with(last, stage.last, stage.states, last.way)
        else:
            kept.append(stage)
    return kept


def _same_but_kind(one: GroupWay, other: GroupWay) -> bool:
    by_whom = (assigned_by(way.group_type, way.assignor) for way in (one, other))
    return one.group_type == other.group_type and len(set(by_whom)) == 1


def changing(reader: Reader, within: Scope) -> Iterator[tuple[tuple[str, str], list[Record]]]:
    """(cluster, group), and its states in order, of each group that is not assigned in one way all the time.

    `kind` is what the members of a state are, null where nothing tells. The last state before the period is there too.
    """
    query, values = states(within)
    condition, _ = within.of_groups("m.")
    kinds = f"s.group_type IN ('{CLASSIC}', '{CONSUMER}') AND s.snapshot_kind <> 'rewrite'"
    of_member = "PARTITION BY s.cluster_id, s.group_id, s.incarnation, m.member_id ORDER BY s.offset"
    claimed = (
        "SELECT s.snapshot_id, CASE WHEN m.subscription_version IS NULL THEN 0 ELSE 1 END AS classic, "
        "CASE WHEN cardinality(m.claimed) > 0 THEN 1 ELSE 0 END AS claims, "
        f"CASE WHEN lag(cardinality(m.recorded)) OVER ({of_member}) > 0 THEN 1 ELSE 0 END AS had "
        f"FROM ({query}) s JOIN current_member_snapshots m ON s.cluster_id = m.cluster_id "
        f"AND s.group_id = m.group_id AND s.snapshot_id = m.snapshot_id WHERE {condition} AND {kinds}"
    )
    counted = (
        "SELECT c.snapshot_id, sum(c.had) AS staying, sum(c.had * c.claims) AS keeping, sum(c.classic) AS classic "
        f"FROM ({claimed}) c GROUP BY c.snapshot_id"
    )
    told, named = _told(query, counted, kinds)
    of_group = "OVER (PARTITION BY t.cluster_id, t.group_id)"
    bounds = ", ".join(
        f"{of}(t.{name}) {of_group} AS {of}_{name}" for name in ("by_whom", "kind") for of in ("min", "max")
    )
    rows = records(
        reader,
        f"SELECT q.* FROM (SELECT t.*, {bounds} FROM ({told}) t) q WHERE q.min_by_whom <> q.max_by_whom "
        "OR q.min_kind <> q.max_kind OR q.max_kind LIKE '% and %' "
        "ORDER BY q.cluster_id, q.group_id, q.offset, q.snapshot_id",
        **(values | named),
    )
    for group, some in groupby(rows, lambda row: (row["cluster_id"], row["group_id"])):
        yield group, list(some)


def _told(query: str, counted: str, kinds: str) -> Query:
    """The states with `by_whom` they are assigned, null where they have no members, and the `kind` of these."""
    remembering, named = one_of("s.assignor", "remembering", sorted(REMEMBERING))
    kind = (
        f"CASE WHEN s.group_type = '{CONSUMER}' AND n.classic > 0 THEN '{MemberKind.BOTH_TYPES}' "
        f"WHEN s.group_type = '{CONSUMER}' AND s.members > 0 THEN '{MemberKind.KIP_848}' "
        f"WHEN coalesce(n.staying, 0) = 0 THEN NULL "
        f"WHEN n.keeping = 0 OR {remembering} THEN '{MemberKind.EAGER}' "
        f"WHEN n.keeping < n.staying THEN '{MemberKind.BOTH_CLASSIC}' ELSE '{MemberKind.COOPERATIVE}' END"
    )
    columns = (
        "s.cluster_id, s.group_id, s.snapshot_id, s.offset, s.observed_at, s.group_type, s.assignor, s.members, "
        "s.snapshot_kind"
    )
    assignor = f"coalesce(s.assignor, CASE WHEN s.group_type = '{CONSUMER}' THEN '{DEFAULT_ASSIGNOR}' ELSE '' END)"
    by_whom = f"CASE WHEN s.members > 0 THEN concat(s.group_type, ' ', {assignor}) END AS by_whom"
    return (
        f"SELECT {columns}, {by_whom}, {kind} AS kind "
        f"FROM ({query}) s LEFT JOIN ({counted}) n ON n.snapshot_id = s.snapshot_id WHERE {kinds}"
    ), named


def is_mixed(way: GroupWay) -> bool:
    """Whether members of both kinds are in it."""
    return way.kind in MIXED


def began(stage: Stage) -> datetime:
    """When its first state was recorded."""
    at: datetime = stage.first["observed_at"]
    return at
