"""Compute the coordinator's iteration orders before any decision: members, subscriptions, current targets.

An order that a tree bucket decides is flagged and left in insertion order; `exact` computes it key by key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.assignors.server.order import copy_size, walk, walk_added
from groupledger.core.assignors.server.spec import ServerBatch
from groupledger.core.batch import NONE
from groupledger.core.javaorder import LEAST_CAPACITY, TREE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray


class ServerGroupView(NamedTuple):
    """Views of one group; members and topics count from 0. Subscriptions and targets still index the whole batch."""

    members: int
    topics: int
    member_hash: IntArray
    member_rank: IntArray
    instance_rank: IntArray
    timeline_key: LongArray
    joining: int
    timeline_bits: int
    name_hash: IntArray
    id_hash: IntArray
    id_rank: IntArray
    partitions: IntArray
    subscription_start: LongArray  # [members + 1]
    subscription_topic: IntArray
    target_start: LongArray  # [members + 1]


@kernel
def group_at(b: ServerBatch, index: int) -> ServerGroupView:
    """Return the views of group `index`."""
    m = b.member_start[index]
    n = b.member_start[index + 1]
    t = b.topic_start[index]
    u = b.topic_start[index + 1]
    return ServerGroupView(
        n - m,
        u - t,
        b.member_hash[m:n],
        b.member_rank[m:n],
        b.instance_rank[m:n],
        b.timeline_key[m:n],
        b.joining[index],
        b.timeline_bits[index],
        b.name_hash[t:u],
        b.id_hash[t:u],
        b.id_rank[t:u],
        b.topic_partitions[t:u],
        b.subscription_start[m : n + 1],
        b.subscription_topic,
        b.target_start[m : n + 1],
    )


@kernel
def find_paths(b: ServerBatch, path: IntArray) -> None:
    """Set 1 for each group whose subscribed names are all subscribed by all members (ConsumerGroup's rule), else 0."""
    for index in range(len(path)):
        if b.same_subscriptions[index] != NONE:
            path[index] = b.same_subscriptions[index]
            continue
        g = group_at(b, index)
        subscribers = np.zeros(g.topics, np.int32)
        for entry in range(g.subscription_start[0], g.subscription_start[g.members]):
            subscribers[g.subscription_topic[entry]] += 1
        path[index] = 1
        for topic in range(g.topics):
            if 0 < subscribers[topic] < g.members:
                path[index] = 0


@kernel
def walk_members(b: ServerBatch, order: IntArray, tree: NDArray[np.bool_]) -> None:
    """Fill `order` [M] with members in the assignor's iteration order: from the group's table into a HashMap.

    In a slot of a TimelineHashMap the last to join comes first; a member that is still joining comes last.
    """
    for index in range(len(tree)):
        g = group_at(b, index)
        seats = order[b.member_start[index] : b.member_start[index + 1]]
        keys = np.empty(g.members, np.int64)
        for member in range(g.members):
            slot = g.timeline_key[member] >> (31 - g.timeline_bits)
            late = np.int64(1) << 62 if member == g.joining else np.int64(0)
            keys[member] = late | (slot << 31) | (g.members - 1 - member)
        keys.sort()
        for at in range(g.members):
            seats[at] = g.members - 1 - (keys[at] & 0x7FFFFFFF)
        tree[index] = walk(g.member_hash, seats, g.members, LEAST_CAPACITY) == TREE


@kernel
def walk_subscription(g: ServerGroupView, member: int, topics: IntArray, names: IntArray) -> tuple[int, bool]:
    """Fill `topics` with a member's existing topics, as a set of names iterates; return the count, and if by a tree.

    `names` is scratch. If a tree decides, the order is left as in the record.
    """
    first = g.subscription_start[member]
    count = g.subscription_start[member + 1] - first
    names[:count] = g.subscription_topic[first : first + count]
    tree = walk(g.name_hash, names, count, copy_size(count)) == TREE
    known = 0
    for at in range(count):
        if g.partitions[names[at]] != NONE:
            topics[known] = names[at]
            known += 1
    return known, tree


@kernel
def walk_shared(
    b: ServerBatch, order: IntArray, path: IntArray, shared: IntArray, count: IntArray, tree: NDArray[np.bool_]
) -> None:
    """List, for each homogeneous group, its first member's topics as `new HashSet(..)` of their ids iterates.

    They are at `shared[topic_start[g]:]`, `count[g]` of them; `tree` [G] flags the undecided. The set is sized by the
    names, including those without a topic.
    """
    for index in range(len(path)):
        g = group_at(b, index)
        if path[index] == 0 or g.members == 0:
            continue
        first = order[b.member_start[index]]
        topics = shared[b.topic_start[index] : b.topic_start[index + 1]]
        count[index], tree[index] = walk_subscription(g, first, topics, np.empty(g.topics, np.int32))
        size = copy_size(g.subscription_start[first + 1] - g.subscription_start[first])
        tree[index] = walk(g.id_hash, topics, count[index], size) == TREE or tree[index]


@kernel
def walk_targets(b: ServerBatch, topic: IntArray, partition: IntArray, tree: NDArray[np.bool_]) -> None:
    """Fill `topic`, `partition` with every member's target as its maps iterate; `tree` [M] flags the undecided."""
    for index in range(len(b.member_start) - 1):
        id_hash = b.id_hash[b.topic_start[index] : b.topic_start[index + 1]]
        for member in range(b.member_start[index], b.member_start[index + 1]):
            low = b.target_start[member]
            high = b.target_start[member + 1]
            tree[member] = not _walk_target(
                id_hash, b.target_topic[low:high], b.target_partition[low:high], topic[low:high], partition[low:high]
            )


@kernel
def _walk_target(
    id_hash: IntArray, topics: IntArray, partitions: IntArray, topic: IntArray, partition: IntArray
) -> bool:
    heads = np.empty(len(topics) + 1, np.int32)
    runs = 0
    for at in range(len(topics)):
        if at == 0 or topics[at] != topics[at - 1]:
            heads[runs] = at
            runs += 1
    heads[runs] = len(topics)
    hashes = np.empty(runs, np.int32)
    order = np.empty(runs, np.int32)
    for run in range(runs):
        hashes[run] = id_hash[topics[heads[run]]]
        order[run] = run
    if walk(hashes, order, runs, LEAST_CAPACITY) == TREE:
        return False
    to = 0
    for place in order:
        low = heads[place]
        count = heads[place + 1] - low
        topic[to : to + count] = topics[low]
        if not walk_added(partitions[low : low + count], copy_size(count), partition[to : to + count]):
            return False
        to += count
    return True
