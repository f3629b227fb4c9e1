"""`roundrobin`: partitions by topic and number go to members in a circle, skipping those that do not subscribe."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.java_orders import TREE
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.answer import answer
from groupledger.core.assignors.claims import slots, topics_by_name
from groupledger.core.assignors.group import (
    Arrays,
    GroupView,
    Status,
    TargetLists,
    clear,
    first_at_least,
    group_at,
    sort_static_first,
    subscribers,
    walk_members,
    write_taken,
)

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import GroupBatch, IntArray, LongArray
    from groupledger.core.assignors.answer import AssignmentBatch

OK = int(Status.OK)
NO_MEMBERS = int(Status.NO_MEMBERS_TO_CIRCLE)
NOT_EMULATED = int(Status.ORDER_NOT_EMULATED)


def assign(batch: GroupBatch) -> AssignmentBatch:
    """Return the answer of every group."""
    return answer(roundrobin_groups, batch, None)


@kernel
def roundrobin_groups(b: Arrays, cooperative: bool, out: TargetLists, status: IntArray, path: IntArray) -> None:
    """Assign every group of the batch into `out`."""
    for index in range(len(b.member_start) - 1):
        status[index] = roundrobin(group_at(b, index), out)


@kernel
def roundrobin(g: GroupView, out: TargetLists) -> int:
    """Assign 7 partitions over 3 members -> 3, 2, 2. Members: static ones first, by instance id; then by member id."""
    clear(g, out)
    if g.members == 0:
        return NO_MEMBERS
    circle = np.empty(g.members, np.int32)
    if walk_members(g, circle) == TREE:
        return NOT_EMULATED
    sort_static_first(g, circle)
    base = slots(g)
    topics = topics_by_name(g, base)
    heads, seats = subscribers(g, circle)
    taker = np.empty(base[g.topics], np.int32)
    _go_round(g, topics, heads, seats, taker)
    write_taken(g, topics, circle, taker, out)
    return OK


@kernel
def _go_round(g: GroupView, topics: IntArray, heads: LongArray, seats: IntArray, taker: IntArray) -> None:
    """Find the seat that takes each partition: the first subscriber after the last taker, in a circle."""
    at = 0
    hand = 0
    for local in topics:
        low = heads[local]
        count = heads[local + 1] - low
        here = first_at_least(seats, low, low + count, hand) - low
        for _ in range(g.topic_partitions[local]):
            if here >= count:
                here = 0
            taker[at] = seats[low + here]
            here += 1
            at += 1
        hand = taker[at - 1] + 1
