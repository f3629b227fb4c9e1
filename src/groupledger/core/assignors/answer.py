"""Run a kernel over all groups, solve the groups that it cannot, and remove withheld partitions from the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.batch import GroupBatch, IntArray, LongArray
from groupledger.core.arrays.java_orders import LEAST_CAPACITY
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.ragged import MemberAssignments
from groupledger.core.arrays.snapshots import select
from groupledger.core.assignors.group import ExactMapOrders, Status, TargetLists, arrays
from groupledger.core.assignors.server.java_collections import HashedKey, walk_keys

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask

    Kernel = Callable[..., None]


@dataclass(frozen=True, slots=True)
class AssignmentBatch:
    """An assignor's answer: lists in the order of Kafka's own, and a status per group.

    `assigned` is Kafka's answer. `target` is the assignment that the assignor aims for: the same lists, except for
    cooperative-sticky, whose answer withholds each partition that its owner must first revoke (KIP-429).
    """

    assigned: MemberAssignments
    target: MemberAssignments
    status: IntArray  # [G], a `Status` of core/assignors/group.py; a group with another status than OK has empty lists
    path: IntArray  # [G], a `Path` likewise: which algorithm decided


def answer(kernel: Kernel, batch: GroupBatch, cooperative: bool | None) -> AssignmentBatch:
    """Return the answer of this kernel's assignor; `cooperative` is None for one without a cooperative form."""
    lists, status, path = lists_of(kernel, batch, bool(cooperative))
    size = int(lists.start[-1])
    target, withheld = MemberAssignments(lists.start, lists.topic[:size], lists.partition[:size]), lists.withheld[:size]
    given = _without(target, withheld) if cooperative and withheld.any() else target
    return AssignmentBatch(given, target, status, path)


def lists_of(kernel: Kernel, batch: GroupBatch, cooperative: bool) -> tuple[TargetLists, IntArray, IntArray]:
    """Return the kernel's lists, and a `Status` and `Path` per group; only `lists.start[-1]` entries are valid."""
    lists, status, path = _run(kernel, batch, cooperative, None)
    for group in np.flatnonzero(status == Status.ORDER_NOT_EMULATED):
        lists = _look_again(kernel, batch, cooperative, int(group), lists, status)
    return lists, status, path


def _run(
    kernel: Kernel, batch: GroupBatch, cooperative: bool, exact_orders: ExactMapOrders | None
) -> tuple[TargetLists, IntArray, IntArray]:
    """Return the lists of all members; no group gets more entries than it has partitions and claims."""
    counts = batch.topic_partitions
    room = int(counts[counts > 0].sum()) + len(batch.claim_topic)
    start = np.zeros(batch.members + 1, np.int64)
    lists = TargetLists(start, np.empty(room, np.int32), np.empty(room, np.int32), np.zeros(room, np.bool_))
    status, path = np.zeros(batch.groups, np.int32), np.zeros(batch.groups, np.int32)
    cells = 4 * room + 8 * batch.members + len(batch.subscription_topic)
    run(kernel, arrays(batch, exact_orders), cooperative, lists, status, path, cells=cells)
    return lists, status, path


def _without(target: MemberAssignments, withheld: Mask) -> MemberAssignments:
    """Return the lists without the withheld partitions, three times as fast as `only`."""
    count = len(withheld) - int(np.count_nonzero(withheld))
    given = np.empty(len(target.start), np.int64), np.empty(count, np.int32), np.empty(count, np.int32)
    run(_leave_out, target.start, target.topic, target.partition, withheld, *given, cells=len(withheld))
    return MemberAssignments(*given)


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
    alone, _, _ = select(batch, np.array([group]))
    found, found_status, _ = _run(kernel, alone, cooperative, exact_orders_of(alone))
    status[group] = found_status[0]
    if found_status[0] != Status.OK:
        return lists
    first, last = batch.member_start[group], batch.member_start[group + 1]
    at, size = int(lists.start[first]), int(found.start[-1])
    start = lists.start.copy()
    start[first : last + 1] = at + found.start
    start[last + 1 :] += size
    return TargetLists(start, *(np.insert(old, at, new[:size]) for old, new in zip(lists[1:], found[1:], strict=True)))


# Find iteration orders, key by key and slowly, for ids chosen to collide: one bucket of Java's hash map is a tree.


def exact_orders_of(batch: GroupBatch) -> ExactMapOrders:
    """Return the orders in which Kafka iterates over the members and topics of a batch of one group."""
    walk = _walk(batch.member_hash, batch.member_rank, range(batch.members))
    named: dict[int, None] = {}
    for member in walk:
        subscription = batch.member_subscription[member]
        first, last = batch.subscription_start[subscription], batch.subscription_start[subscription + 1]
        named.update(dict.fromkeys(batch.subscription_topic[first:last].tolist()))
    subscribed = _walk(batch.topic_hash, batch.topic_rank, named)
    known = _walk(batch.topic_hash, batch.topic_rank, [each for each in subscribed if batch.topic_partitions[each] > 0])
    keep = _walk(batch.member_hash, batch.member_rank, walk)
    return ExactMapOrders(*(np.array(order, np.int32) for order in (walk, keep, known)))


def _walk(hashes: IntArray, ranks: IntArray, inserted: Iterable[int]) -> list[int]:
    return walk_keys((HashedKey(int(hashes[each]), int(ranks[each]), each) for each in inserted), LEAST_CAPACITY)
