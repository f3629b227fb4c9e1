"""Run a kernel over all groups, solve the groups that it cannot, and remove withheld partitions from the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.group import ExactMapOrders, arrays
from groupledger.core.assignors.lists import TargetLists
from groupledger.core.assignors.outcome import Status
from groupledger.core.batch import AssignmentBatch, GroupBatch
from groupledger.core.kernels import kernel, run

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray
    from groupledger.core.slots import Mask

    Kernel = Callable[..., None]


def answer(kernel: Kernel, batch: GroupBatch, cooperative: bool | None) -> AssignmentBatch:
    """Return the answer of this kernel's assignor; `cooperative` is None for one without a cooperative form."""
    lists, status, path = lists_of(kernel, batch, bool(cooperative))
    size = int(lists.start[-1])
    target = lists.start, lists.topic[:size], lists.partition[:size]
    given = target
    if cooperative and lists.withheld[:size].any():
        given = _without(*target, lists.withheld[:size])
    return AssignmentBatch(*given, *target, status, path)


def lists_of(kernel: Kernel, batch: GroupBatch, cooperative: bool) -> tuple[TargetLists, IntArray, IntArray]:
    """Return the kernel's lists, and a `Status` and `Path` per group; only `lists.start[-1]` entries are valid."""
    lists, status, path = _run(kernel, batch, cooperative, None)
    for group in np.flatnonzero(status == Status.ORDER_NOT_EMULATED):
        lists = _look_again(kernel, batch, cooperative, int(group), lists, status)
    return lists, status, path


def _run(
    kernel: Kernel, batch: GroupBatch, cooperative: bool, told: ExactMapOrders | None
) -> tuple[TargetLists, IntArray, IntArray]:
    """Return the lists of all members; no group gets more entries than it has partitions and claims."""
    counts = batch.topic_partitions
    room = int(counts[counts > 0].sum()) + len(batch.claim_topic)
    start = np.zeros(batch.members + 1, np.int64)
    lists = TargetLists(start, np.empty(room, np.int32), np.empty(room, np.int32), np.zeros(room, np.bool_))
    status, path = np.zeros(batch.groups, np.int32), np.zeros(batch.groups, np.int32)
    cells = 4 * room + 8 * batch.members + len(batch.subscription_topic)
    run(kernel, arrays(batch, told), cooperative, lists, status, path, cells=cells)
    return lists, status, path


def _without(
    start: LongArray, topic: IntArray, partition: IntArray, withheld: Mask
) -> tuple[LongArray, IntArray, IntArray]:
    """Return the lists without the withheld partitions."""
    count = len(withheld) - int(np.count_nonzero(withheld))
    given = np.empty(len(start), np.int64), np.empty(count, np.int32), np.empty(count, np.int32)
    run(_leave_out, start, topic, partition, withheld, *given, cells=len(topic))
    return given


@kernel
def _leave_out(
    start: LongArray,
    topic: IntArray,
    partition: IntArray,
    withheld: Mask,
    given_start: LongArray,
    given_topic: IntArray,
    given_partition: IntArray,
) -> None:
    to = 0
    given_start[0] = 0
    for member in range(len(start) - 1):
        for at in range(start[member], start[member + 1]):
            if not withheld[at]:
                given_topic[to] = topic[at]
                given_partition[to] = partition[at]
                to += 1
        given_start[member + 1] = to


def _look_again(
    kernel: Kernel, batch: GroupBatch, cooperative: bool, group: int, lists: TargetLists, status: IntArray
) -> TargetLists:
    """Assign one group with colliding ids, by orders computed key by key, and put its lists in place."""
    from groupledger.core.assignors.colliding_ids import only, told_orders

    alone = only(batch, group)
    found, found_status, _ = _run(kernel, alone, cooperative, told_orders(alone))
    status[group] = found_status[0]
    if found_status[0] != Status.OK:
        return lists
    first, last = batch.member_start[group], batch.member_start[group + 1]
    at, size = int(lists.start[first]), int(found.start[-1])
    start = lists.start.copy()
    start[first : last + 1] = at + found.start
    start[last + 1 :] += size
    return TargetLists(start, *(np.insert(old, at, new[:size]) for old, new in zip(lists[1:], found[1:], strict=True)))
