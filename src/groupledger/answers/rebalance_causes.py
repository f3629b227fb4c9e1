"""The causes of many rebalances at once, as `explanation.causes` names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.answers.explanation import Cause, CauseKind, causes, counts, listed, sides

if TYPE_CHECKING:
    from groupledger.answers.explanation import Side
    from groupledger.answers.rows import Reader, Record

MOST_ASKED = 500
"""Snapshots that one query asks for."""
QUIET = frozenset({CauseKind.NOT_SHOWN, CauseKind.FOLLOW_UP})
"""Causes of a rebalance before which nothing changed that the log holds."""


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
    states = _states(reader, rows)
    topics_of: dict[str, set[str]] = {}
    for row in rows:
        for snapshot in (row["snapshot_id"], row["previous_snapshot_id"]):
            if snapshot in states:
                topics_of.setdefault(row["cluster_id"], set()).update(states[snapshot].topics)
    changes = {cluster: listed(reader, cluster, sorted(topics)) for cluster, topics in topics_of.items()}
    found = {}
    for row in rows:
        after, before = states[row["snapshot_id"]], states.get(row["previous_snapshot_id"])
        topics = sorted(after.topics | (before.topics if before is not None else frozenset()))
        moments = tuple(counts(changes[row["cluster_id"]], topics, side.at) for side in (before or after, after))
        why = tuple(causes(before, after, (moments[0], moments[1]), row["group_type"]))
        found[row["snapshot_id"]] = Caused(before, after, why)
    return found


def _states(reader: Reader, rows: Sequence[Record]) -> dict[str, Side]:
    wanted: dict[str, str] = {}
    for row in rows:
        for snapshot in (row["previous_snapshot_id"], row["snapshot_id"]):
            if snapshot is not None:
                wanted[snapshot] = row["group_id"]
    ids = list(wanted)
    found: dict[str, Side] = {}
    for begin in range(0, len(ids), MOST_ASKED):
        some = ids[begin : begin + MOST_ASKED]
        found |= sides(reader, sorted({wanted[each] for each in some}), some)
    return found
