"""List the subscribers of each topic, in a given order of the members."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.group import GroupView
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray


@kernel
def subscribers(g: GroupView, order: IntArray) -> tuple[LongArray, IntArray]:
    """Return seats (positions in `order`) of the subscribers of each topic, ascending: seats[heads[t]:heads[t + 1]].

    A member that lists a topic twice appears once.
    """
    if _one_list(g):
        return _everybody(g)
    last = np.full(g.topics, -1, np.int32)
    heads = np.zeros(g.topics + 1, np.int64)
    for seat in range(g.members):
        for entry in range(*_entries(g, order[seat])):
            topic = g.topics_of[entry]
            heads[topic + 1] += 1 if last[topic] != seat else 0
            last[topic] = seat
    for topic in range(g.topics):
        heads[topic + 1] += heads[topic]
    seats = np.empty(heads[g.topics], np.int32)
    free = heads[: g.topics].copy()
    last[:] = -1
    for seat in range(g.members):
        for entry in range(*_entries(g, order[seat])):
            topic = g.topics_of[entry]
            if last[topic] != seat:
                seats[free[topic]] = seat
                free[topic] += 1
                last[topic] = seat
    return heads, seats


@kernel
def _one_list(g: GroupView) -> bool:
    for member in range(1, g.members):
        if g.subscription[member] != g.subscription[0]:
            return False
    return g.members > 0


@kernel
def _everybody(g: GroupView) -> tuple[LongArray, IntArray]:
    """Return the same for a group whose members all share one list."""
    heads = np.zeros(g.topics + 1, np.int64)
    for entry in range(*_entries(g, 0)):
        heads[g.topics_of[entry] + 1] = g.members
    for topic in range(g.topics):
        heads[topic + 1] += heads[topic]
    seats = np.empty(heads[g.topics], np.int32)
    for first in range(0, len(seats), g.members):
        for seat in range(g.members):
            seats[first + seat] = seat
    return heads, seats


@kernel
def _entries(g: GroupView, member: int) -> tuple[int, int]:
    subscription = g.subscription[member]
    return g.subscription_start[subscription], g.subscription_start[subscription + 1]
