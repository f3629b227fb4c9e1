"""Kafka's client-side assignors over whole batches of groups, list for list what kafka-clients 4.4.0 answers.

`assign("cooperative-sticky", batch)` is the one entry; a new assignor is one function in `ASSIGNORS`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from groupledger.core.assignors.group import Arrays, arrays
from groupledger.core.assignors.outcome import MESSAGES, Path, Status
from groupledger.core.assignors.range_ import range_groups
from groupledger.core.assignors.roundrobin import roundrobin_groups
from groupledger.core.assignors.sticky import sticky_groups
from groupledger.core.batch import AssignmentBatch, GroupBatch
from groupledger.core.faults import Fault
from groupledger.core.kernels import run

__all__ = ["ASSIGNORS", "MESSAGES", "Mode", "Path", "Status", "assign"]

Mode = Literal["as-kafka", "safe"]


def assign(name: str, batch: GroupBatch, *, mode: Mode = "as-kafka") -> AssignmentBatch:
    """Assign every group of the batch with one of ASSIGNORS.

    `as-kafka` answers what Kafka does, its failures included (see `Status`). `safe` first drops claims that cannot
    be true, see `safe_claims`. Raises Fault("unknown-assignor") for a name that is not in ASSIGNORS.
    """
    if name not in ASSIGNORS:
        raise Fault("unknown-assignor", f"assignor is {name!r}; expected one of {', '.join(ASSIGNORS)}")
    return ASSIGNORS[name](batch)


def _range(batch: GroupBatch) -> AssignmentBatch:
    return _plain(range_groups, batch)


def _roundrobin(batch: GroupBatch) -> AssignmentBatch:
    return _plain(roundrobin_groups, batch)


def _sticky(batch: GroupBatch) -> AssignmentBatch:
    return _stick(batch, cooperative=False)


def _cooperative_sticky(batch: GroupBatch) -> AssignmentBatch:
    return _stick(batch, cooperative=True)


ASSIGNORS: dict[str, Callable[[GroupBatch], AssignmentBatch]] = {
    "range": _range,
    "roundrobin": _roundrobin,
    "sticky": _sticky,
    "cooperative-sticky": _cooperative_sticky,
}


class _Answer:
    """Room for the answer: no group gets more list entries than it has partitions and claims."""

    def __init__(self, batch: GroupBatch) -> None:
        counts = batch.topic_partitions
        self.room = int(counts[counts > 0].sum()) + len(batch.claim_topic)
        self.start = np.zeros(batch.members + 1, np.int64)
        self.topic = np.empty(self.room, np.int32)
        self.partition = np.empty(self.room, np.int32)
        self.status = np.zeros(batch.groups, np.int32)
        self.path = np.zeros(batch.groups, np.int32)
        self.cells = self.room + 8 * batch.members + len(batch.subscription_topic)

    def finish(self, withheld: np.ndarray | None = None) -> AssignmentBatch:
        size = int(self.start[-1])
        target = (self.start, self.topic[:size], self.partition[:size])
        given = target if withheld is None or not withheld[:size].any() else _without(*target, withheld[:size])
        return AssignmentBatch(*given, *target, status=self.status, path=self.path)


def _plain(kernel: Callable[..., None], batch: GroupBatch) -> AssignmentBatch:
    answer = _Answer(batch)
    run(
        kernel,
        arrays(batch),
        answer.start,
        answer.topic,
        answer.partition,
        answer.status,
        answer.path,
        cells=answer.cells,
    )
    return answer.finish()


def _stick(batch: GroupBatch, *, cooperative: bool) -> AssignmentBatch:
    answer = _Answer(batch)
    withheld = np.zeros(answer.room, np.bool_)
    run(
        sticky_groups,
        arrays(batch),
        cooperative,
        answer.start,
        answer.topic,
        answer.partition,
        withheld,
        answer.status,
        answer.path,
        cells=answer.cells,
    )
    return answer.finish(withheld if cooperative else None)


def _without(start, topic, partition, withheld):
    """Lists without the withheld entries."""
    kept_before = np.concatenate([[0], np.cumsum(~withheld)])
    return kept_before[start], topic[~withheld], partition[~withheld]
