"""Find where a group's coordinator moved or restarted between two states, by the leader epochs of record batches.

The coordinator of a group is the leader of the log partition that holds it. Each leader that is elected, the same
broker after a restart too, has a higher epoch (KIP-101). That alone makes no member join again: it is a possible cause,
and said only if nothing else differs. `log_records` has no epochs from some sources, and none once they are removed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from groupledger.answers.causes import CauseKind
from groupledger.answers.rows import records
from groupledger.core.moments import iso

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from groupledger.answers.causes import Cause, Side
    from groupledger.answers.rows import Reader, Record, Value

RECENT = timedelta(minutes=10)
"""A state that follows the change later than this is not said to follow from it: by default, the sessions of members
and a rebalance are over earlier (45 s and 5 min)."""


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """A log partition's leader epoch before and after, with the last known record before and the first one after."""

    log_partition: int
    from_epoch: int
    to_epoch: int
    last_offset: int
    last_at: datetime
    first_offset: int
    first_at: datetime

    @property
    def text(self) -> str:
        """Return what the records show."""
        return (
            f"the leader epoch of log partition {self.log_partition} rose from {self.from_epoch} to {self.to_epoch} "
            f"between offsets {self.last_offset} ({iso(self.last_at)}) and {self.first_offset} ({iso(self.first_at)}), "
            "as it does when the coordinator moves or restarts"
        )


class StateChange(NamedTuple):
    """A cluster, two states of a group of it, and what else is known to differ."""

    cluster: str
    before: Side | None
    after: Side
    causes: tuple[Cause, ...]


def with_coordinators(reader: Reader, steps: Sequence[StateChange]) -> list[tuple[Cause, ...]]:
    """Return the causes of each step; where no difference is shown, a change of the coordinator is a possible one."""
    unexplained = [any(each.kind is CauseKind.NOT_SHOWN for each in step.causes) for step in steps]
    changes = iter(leader_changes(reader, [step for step, wanted in zip(steps, unexplained, strict=True) if wanted]))
    return [
        with_coordinator(step.causes, next(changes)) if wanted else step.causes
        for step, wanted in zip(steps, unexplained, strict=True)
    ]


def with_coordinator(causes: tuple[Cause, ...], change: LeaderChange | None) -> tuple[Cause, ...]:
    """Return the causes, with the change in place of NOT_SHOWN."""
    if change is None:
        return causes
    return tuple(
        replace(each, kind=CauseKind.COORDINATOR_MOVED, what=f"{each.what}; {change.text}", possible=True)
        if each.kind is CauseKind.NOT_SHOWN
        else each
        for each in causes
    )


def leader_changes(reader: Reader, steps: Sequence[StateChange]) -> list[LeaderChange | None]:
    """Return for each step the last change of the leader within it; None if there is none, or it is not known."""
    epochs = _epochs(reader, steps)
    return [
        _change(epochs.get((step.cluster, step.after.log_partition), []), step.before, step.after) for step in steps
    ]


def _epochs(reader: Reader, steps: Iterable[StateChange]) -> dict[tuple[str, int | None], list[Record]]:
    """Return the extent of each leader epoch, by log partition, from the first of the states to the last."""
    extents: dict[tuple[str, int | None], list[int]] = {}
    for cluster, before, after, _ in steps:
        if before is not None and before.log_partition == after.log_partition is not None:
            extents.setdefault((cluster, after.log_partition), []).extend((before.offset, after.offset))
    values: dict[str, Value] = {f"cluster_{number}": cluster for number, (cluster, _) in enumerate(extents)}
    places = " OR ".join(
        f"(t.cluster_id = :cluster_{number} AND t.log_partition = {partition} "
        f"AND t.offset >= {min(offsets)} AND t.offset <= {max(offsets)})"
        for number, ((_, partition), offsets) in enumerate(extents.items())
    )
    if not places:
        return {}
    query = (
        "SELECT t.cluster_id, t.log_partition, t.leader_epoch, min(t.offset) AS first_offset, "
        "max(t.offset) AS last_offset, min(t.timestamp) AS first_at, max(t.timestamp) AS last_at "
        f"FROM current_log_records t WHERE t.leader_epoch IS NOT NULL AND ({places}) "
        "GROUP BY t.cluster_id, t.log_partition, t.leader_epoch ORDER BY 1, 2, 3"
    )
    found: dict[tuple[str, int | None], list[Record]] = {}
    for row in records(reader, query, **values):
        found.setdefault((row["cluster_id"], row["log_partition"]), []).append(row)
    return found


def _change(epochs: Sequence[Record], before: Side | None, after: Side) -> LeaderChange | None:
    """Return the last change up to `after`; None if the epochs do not ascend with the offsets: it is another log."""
    if before is None or any(one["last_offset"] >= two["first_offset"] for one, two in pairwise(epochs)):
        return None
    within = [row for row in epochs if before.offset <= row["last_offset"] and row["first_offset"] <= after.offset]
    if len(within) < 2 or within[0]["first_offset"] > before.offset or within[-1]["last_offset"] < after.offset:
        return None
    old, new = within[-2:]
    if after.at - new["first_at"] > RECENT:
        return None
    return LeaderChange(
        log_partition=new["log_partition"],
        from_epoch=old["leader_epoch"],
        to_epoch=new["leader_epoch"],
        last_offset=old["last_offset"],
        last_at=old["last_at"],
        first_offset=new["first_offset"],
        first_at=new["first_at"],
    )
