"""Dealing with racks (KIP-881) where all subscriptions are equal: first what has a replica near an unfilled member."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.group import Group
from groupledger.core.assignors.racks import has_replica
from groupledger.core.assignors.sorting import sort_by
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.assignors.constrained import Plan
    from groupledger.core.batch import IntArray


@kernel
def scarce_first(g: Group, members: IntArray, free_topic: IntArray, free_partition: IntArray) -> None:
    """Sort the free partitions by how many members are near a replica, stable."""
    near = np.empty(len(free_topic), np.int64)
    for at in range(len(free_topic)):
        near[at] = 0
        for member in members:
            rack = g.member_rack[member]
            if rack != NONE and has_replica(g, free_topic[at], free_partition[at], rack):
                near[at] += 1
    order = np.arange(len(near)).astype(np.int32)
    sort_by(near, order, len(near))
    _reorder(free_topic, order)
    _reorder(free_partition, order)


@kernel
def _reorder(values: IntArray, order: IntArray) -> None:
    before = values.copy()
    for at in range(len(order)):
        values[at] = before[order[at]]


@kernel
def deal_near(g: Group, plan: Plan, free_topic: IntArray, free_partition: IntArray, taker: IntArray) -> int:
    """Deal what can be dealt near a replica within the quotas; reorders the free ones, dealt first, and counts those.

    Members under the quota take turns; where none of them is near, the first member at the quota that is.
    """
    high = plan.low + (1 if plan.spare > 0 else 0)
    turn = 0
    for at in range(len(taker)):
        taker[at] = NONE
        found = _next_near(g, plan.under, plan.counts[0], turn, free_topic[at], free_partition[at])
        if found != NONE:
            turn = _give_under(plan, found, high, taker, at)
            continue
        found = _next_near(g, plan.exact, plan.counts[1], 0, free_topic[at], free_partition[at])
        if found != NONE:
            _give_exact(plan, found, high, taker, at)
    return _dealt_first(free_topic, free_partition, taker)


@kernel
def _next_near(g: Group, line: IntArray, count: int, first: int, topic: int, partition: int) -> int:
    """Place in line of the first member from `first` on, in a circle, that is near; NONE without one."""
    for step in range(count):
        at = (first + step) % count
        rack = g.member_rack[line[at]]
        if rack != NONE and has_replica(g, topic, partition, rack):
            return at
    return NONE


@kernel
def _give_under(plan: Plan, found: int, high: int, taker: IntArray, at: int) -> int:
    """Give to a member under the quota; the place in line whose turn is next."""
    member = plan.under[found]
    taker[at] = member
    plan.size[member] += 1
    if plan.size[member] < plan.low:
        return int((found + 1) % plan.counts[0])
    _leave(plan.under, plan.counts[0], found)
    plan.counts[0] -= 1
    if plan.size[member] < high and plan.counts[2] < plan.spare:
        plan.exact[plan.counts[1]] = member
        plan.counts[1] += 1
    return int(found % plan.counts[0]) if plan.counts[0] > 0 else 0


@kernel
def _give_exact(plan: Plan, found: int, high: int, taker: IntArray, at: int) -> None:
    """Give to a member at the quota; when the last spare partition is gone nobody at the quota gets more."""
    member = plan.exact[found]
    taker[at] = member
    plan.size[member] += 1
    if plan.size[member] == high:
        _leave(plan.exact, plan.counts[1], found)
        plan.counts[1] -= 1
        plan.counts[2] += 1
        if plan.counts[2] == plan.spare:
            plan.counts[1] = 0


@kernel
def _leave(line: IntArray, count: int, found: int) -> None:
    for at in range(found, count - 1):
        line[at] = line[at + 1]


@kernel
def _dealt_first(free_topic: IntArray, free_partition: IntArray, taker: IntArray) -> int:
    """Put what was dealt before what was not, each in its order; how many were dealt."""
    order = np.empty(len(taker), np.int32)
    dealt = 0
    for at in range(len(taker)):
        if taker[at] != NONE:
            order[dealt] = at
            dealt += 1
    left = dealt
    for at in range(len(taker)):
        if taker[at] == NONE:
            order[left] = at
            left += 1
    _reorder(free_topic, order)
    _reorder(free_partition, order)
    _reorder(taker, order)
    return dealt
