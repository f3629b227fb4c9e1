"""Track which of a topic's subscribers has the fewest and which the most partitions, as partitions move.

Subscribers are sorted by their number of partitions. From the left a range grows whose members all have the same
number; each takes one partition in turn, then the range rises a level and widens. From the right a range does the
reverse. A member that has no partition of the topic to give is put beyond the right range's end.

The order of the turns is Kafka's (4.0 to 4.4), and so is an apparent bug: a member that is compared with a level is
looked up at its present number, which moves may have changed in the meantime.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

LEAST, MOST = 0, 1


class Balancer(NamedTuple):
    """Sorted seats and the two ranges over them; index LEAST or MOST of each array."""

    seats: IntArray
    level: LongArray  # number of partitions of the range's members, before their turns
    start: LongArray  # first of the range
    end: LongArray  # behind its last
    turn: LongArray  # whose turn is next


@kernel
def balancer(seats: IntArray, size: LongArray) -> Balancer:
    """Return subscribers sorted by (number of partitions, seat), both ranges empty. `seats` ascend, at least one."""
    count = len(seats)
    keys = np.empty(count, np.int64)
    for at in range(count):
        keys[at] = (size[seats[at]] << 31) | seats[at]
    keys.sort()
    ordered = np.empty(count, np.int32)
    for at in range(count):
        ordered[at] = keys[at] & 0x7FFFFFFF
    level = np.array([size[ordered[0]] - 1, size[ordered[count - 1]] + 1], np.int64)
    start = np.array([0, count], np.int64)
    return Balancer(ordered, level, start, start.copy(), np.array([0, count - 1], np.int64))


@kernel
def topic_is_level(b: Balancer, size: LongArray) -> bool:
    """Return whether no subscriber has two more than another."""
    return bool(size[b.seats[len(b.seats) - 1]] - size[b.seats[0]] <= 1)


@kernel
def next_least(b: Balancer, size: LongArray) -> int:
    """Return the seat that takes the next partition."""
    if b.turn[LEAST] >= b.end[LEAST]:
        b.level[LEAST] += 1
        while b.end[LEAST] < len(b.seats) and size[b.seats[b.end[LEAST]]] == b.level[LEAST]:
            b.end[LEAST] += 1
        b.turn[LEAST] = 0
    b.turn[LEAST] += 1
    return int(b.seats[b.turn[LEAST] - 1])


@kernel
def next_most(b: Balancer, size: LongArray) -> int:
    """Return the seat that gives the next partition, or -1 if none is left."""
    if b.turn[MOST] < b.start[MOST]:
        if b.end[MOST] <= b.start[MOST] and b.start[MOST] > 0:
            b.level[MOST] = size[b.seats[b.start[MOST] - 1]]  # the whole range was put aside: down to the next level
        else:
            b.level[MOST] -= 1
        while b.start[MOST] > 0 and size[b.seats[b.start[MOST] - 1]] == b.level[MOST]:
            b.start[MOST] -= 1
        b.turn[MOST] = b.end[MOST] - 1
    if b.turn[MOST] < 0:
        return -1
    b.turn[MOST] -= 1
    return int(b.seats[b.turn[MOST] + 1])


@kernel
def most_loaded_with(b: Balancer, size: LongArray, first: LongArray, end: LongArray) -> int:
    """Return the next giver with some of the topic (first < end), or -1; others are put aside for good."""
    giver = next_most(b, size)
    while giver != -1 and end[giver] <= first[giver]:
        last = b.end[MOST] - 1
        b.seats[b.turn[MOST] + 1] = b.seats[last]
        b.seats[last] = giver
        b.end[MOST] = last
        giver = next_most(b, size)
    return giver
