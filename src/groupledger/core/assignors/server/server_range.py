"""`range` of the coordinator: each subscriber gets one run of each topic; previous targets do not matter.

Unlike the client's `range`: members with an instance id come first, by it, then the others by member id; no racks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import IntArray, LongArray
from groupledger.core.arrays.java_orders import TREE
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.group import sort_static_first
from groupledger.core.assignors.server.iteration_orders import (
    ServerGroupView,
    count_subscribers,
    group_at,
    walk_subscription,
)
from groupledger.core.assignors.server.orders import room, table_size, walk
from groupledger.core.assignors.server.server_group import ServerBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Shares(NamedTuple):
    """What is left to deal of each topic, and the share dealt last: low:high."""

    quota: IntArray
    extras: IntArray
    low: IntArray
    high: IntArray


@kernel
def sorted_members(g: ServerGroupView) -> IntArray:
    """Return members with an instance id first, by it; then the others by member id."""
    members = np.arange(g.members).astype(np.int32)
    sort_static_first(g, members)
    return members


@kernel
def _shares(g: ServerGroupView) -> Shares:
    subscribers = count_subscribers(g)
    shares = Shares(
        np.zeros(g.topics, np.int32),
        np.zeros(g.topics, np.int32),
        np.zeros(g.topics, np.int32),
        np.zeros(g.topics, np.int32),
    )
    for topic in range(g.topics):
        if subscribers[topic] > 0 and g.partitions[topic] > 0:
            shares.quota[topic] = g.partitions[topic] // subscribers[topic]
            shares.extras[topic] = g.partitions[topic] % subscribers[topic]
    return shares


@kernel
def _deal(shares: Shares, topic: int) -> int:
    """Advance low:high to the next subscriber's share of the topic; return its size."""
    count = shares.quota[topic]
    if shares.extras[topic] > 0:
        shares.extras[topic] -= 1
        count += 1
    shares.low[topic] = shares.high[topic]
    shares.high[topic] += count
    return int(count)


@kernel
def _write(
    g: ServerGroupView, shares: Shares, topics: IntArray, capacity: int, to: int, topic: IntArray, partition: IntArray
) -> bool:
    """Write one member's ranges; False if a tree decides the order of its topics."""
    given = np.empty(len(topics), np.int32)
    count = 0
    for each in topics:
        if _deal(shares, each) > 0:
            given[count] = each
            count += 1
    capacity = walk(g.id_hash, given, count, capacity)
    for each in given[:count]:
        for number in range(shares.low[each], shares.high[each]):
            topic[to] = each
            partition[to] = number
            to += 1
    return capacity != TREE


@kernel
def count_batch(b: ServerBatch, start: LongArray) -> None:
    """Set `start` [M+1] to the start of each member's list; 7 partitions over 3 subscribers -> 3, 2, 2."""
    start[:] = 0
    for index in range(len(b.joining)):
        g = group_at(b, index)
        shares = _shares(g)
        for member in sorted_members(g):
            for at in range(g.subscription_start[member], g.subscription_start[member + 1]):
                start[b.member_start[index] + member + 1] += _deal(shares, g.subscription_topic[at])
    for member in range(len(start) - 1):
        start[member + 1] += start[member]


@kernel
def write_batch(
    b: ServerBatch, path: IntArray, start: LongArray, topic: IntArray, partition: IntArray, tree: NDArray[np.bool_]
) -> None:
    """Fill each member's part, at start[m]:start[m + 1], in iteration order of its map.

    `tree` [M] flags members for which a tree decides that order; their lists are right as sets.
    """
    for index in range(len(path)):
        g = group_at(b, index)
        low = b.member_start[index]
        shares = _shares(g)
        names = np.empty(g.topics, np.int32)
        walked = np.empty(g.topics, np.int32)
        homogeneous = path[index] == 1
        count = 0
        unsure = False
        members = sorted_members(g)
        for member in members:
            if not homogeneous or member == members[0]:
                count, unsure = walk_subscription(g, member, walked, names)
            named = g.subscription_start[member + 1] - g.subscription_start[member]
            capacity = table_size(room(count if homogeneous else named))
            sure = _write(g, shares, walked[:count], capacity, start[low + member], topic, partition)
            tree[low + member] = unsure or not sure
