"""`sticky` (KIP-54) and the target of `cooperative-sticky` (KIP-429): choose which of Kafka's two algorithms runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.java_orders import TREE
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.answer import answer
from groupledger.core.assignors.constrained import constrained, plain, scratch_space
from groupledger.core.assignors.general import general
from groupledger.core.assignors.group import Arrays, GroupView, Path, Status, TargetLists, clear, group_at, walk_members

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import GroupBatch, IntArray
    from groupledger.core.assignors.answer import AssignmentBatch

OK = int(Status.OK)
NOT_EMULATED = int(Status.ORDER_NOT_EMULATED)
CONSTRAINED = int(Path.CONSTRAINED)
GENERAL = int(Path.GENERAL)


def assign(batch: GroupBatch) -> AssignmentBatch:
    """Return the answer of every group: the target, which members take at once."""
    return answer(sticky_groups, batch, False)


def assign_cooperatively(batch: GroupBatch) -> AssignmentBatch:
    """Return target and first round of every group: partitions that others still claim are withheld (KIP-429)."""
    return answer(sticky_groups, batch, True)


@kernel
def sticky_groups(b: Arrays, cooperative: bool, out: TargetLists, status: IntArray, path: IntArray) -> None:
    """Assign every group of the batch into `out`."""
    d = scratch_space(b, out)
    for index in range(len(b.member_start) - 1):
        if len(b.exact_orders.subscriptions) == 0 and plain(d, index):
            path[index] = CONSTRAINED
            continue
        g = group_at(b, index)
        clear(g, out)
        members = np.empty(g.members, np.int32)
        walked = walk_members(g, members)
        equal = subscriptions_equal(g, members)
        path[index] = CONSTRAINED if equal else GENERAL
        if walked == TREE:
            status[index] = NOT_EMULATED
        elif equal:
            status[index] = constrained(d, index, g, members, cooperative)
        else:
            status[index] = general(g, members, cooperative, out)
        if status[index] != OK:
            clear(g, out)


@kernel
def subscriptions_equal(g: GroupView, members: IntArray) -> bool:
    """Test as Kafka does: each list has as many entries as the first non-empty one has topics, and no other topic.

    A list that names a topic twice counts it twice; members before the first non-empty list may be without topics.
    """
    named = np.zeros(g.topics, np.bool_)
    topics = 0
    model = -1
    for member in members:
        subscription = g.subscription[member]
        first = g.subscription_start[subscription]
        last = g.subscription_start[subscription + 1]
        if topics == 0:
            model = subscription
            for entry in range(first, last):
                topics += 0 if named[g.topics_of[entry]] else 1
                named[g.topics_of[entry]] = True
            if topics == last - first:
                continue
            model = -1
        elif subscription != model:
            if last - first != topics:
                return False
            for entry in range(first, last):
                if not named[g.topics_of[entry]]:
                    return False
    return True
