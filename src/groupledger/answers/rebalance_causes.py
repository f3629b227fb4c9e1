"""The causes of many rebalances at once, as `causes.causes` names them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.causes import Cause, CauseKind
from groupledger.answers.coordinator_moves import StateChange, with_coordinators
from groupledger.answers.rows import one_of, records
from groupledger.answers.states import BASELINE, States, states

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.causes import Side
    from groupledger.answers.rows import Reader, Record

MOST_ASKED = 1_000
"""Snapshots that one query asks for."""
GROUPS_ASKED = 100
"""Groups whose results one query asks for: those of a group are ranked, wanted or not."""
QUIET = frozenset({CauseKind.NOT_SHOWN, CauseKind.COORDINATOR_MOVED, CauseKind.FOLLOW_UP})
"""Causes of a rebalance before which nothing changed in the group that the log holds."""


@dataclass(frozen=True, slots=True)
class Caused:
    """A state of a group, the one before it, and what led from one to the other."""

    before: Side | None
    state: Side
    causes: tuple[Cause, ...]

    @property
    def is_quiet(self) -> bool:
        """Whether nothing that the log holds changed before it."""
        return all(each.kind in QUIET for each in self.causes)


def caused(reader: Reader, rows: Sequence[Record]) -> dict[str, Caused]:
    """Rows of `current_group_snapshots` -> their states with the causes, by snapshot id.

    A row needs cluster_id, group_id, group_type, snapshot_id and previous_snapshot_id.
    """
    known = _states(reader, rows)
    steps = []
    for row in rows:
        group = row["cluster_id"], row["group_id"]
        before, after = known.pair(*group, row["previous_snapshot_id"], row["snapshot_id"])
        steps.append(StateChange(row["cluster_id"], before, after, known.causes(*group, before, after)))
    return {
        step.after.snapshot_id: Caused(step.before, step.after, causes)
        for step, causes in zip(steps, with_coordinators(reader, steps), strict=True)
    }


def _states(reader: Reader, rows: Sequence[Record]) -> States:
    wanted: dict[str, str] = {}
    for row in rows:
        for snapshot in (row["previous_snapshot_id"], row["snapshot_id"]):
            if snapshot is not None:
                wanted[snapshot] = row["group_id"]
    ids = list(wanted)
    found = States({}, {})
    for begin in range(0, len(ids), MOST_ASKED):
        some = ids[begin : begin + MOST_ASKED]
        of_groups, values = one_of("t.group_id", "group", sorted({wanted[each] for each in some}))
        some_states = states(reader, of_groups, values, some, computed=False)
        found = found.with_more(some_states.with_given(reader, of_groups, values))
    return found.with_results(_results(reader, found))


def _results(reader: Reader, known: States) -> Iterator[Record]:
    """What our own run says of these states, and of others of their groups between them: few questions for many."""
    by_group: dict[str, list[datetime]] = {}
    for (_, group, _), side in known.sides.items():
        by_group.setdefault(group, []).append(side.at)
    groups = sorted(by_group)
    for begin in range(0, len(groups), GROUPS_ASKED):
        some = groups[begin : begin + GROUPS_ASKED]
        of_groups, values = one_of("t.group_id", "group", some)
        moments = [at for group in some for at in by_group[group]]
        yield from records(
            reader,
            "SELECT t.cluster_id, t.group_id, t.snapshot_id, t.scenario, t.round, t.follow_up, t.verdict "
            f"FROM current_rebalances t WHERE {of_groups} AND t.scenario = :scenario AND t.round = 1 "
            "AND t.observed_at >= :first AND t.observed_at <= :last",
            **(values | {"scenario": BASELINE, "first": min(moments), "last": max(moments)}),
        )
