"""Provide one group of a batch to the kernels: views of its arrays, and what all assignors first derive from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupledger.core.assignors.sorting import FEW, sort_by
from groupledger.core.batch import NONE, GroupBatch
from groupledger.core.javaorder import TREE, map_order
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray


SPARSE = 4  # above this many ranks per item to sort, a counting sort would mostly look at empty ranks


class ExactMapOrders(NamedTuple):
    """Orders of one group that were computed outside the kernels, see `colliding_ids`; empty arrays otherwise."""

    walk: IntArray  # members, in iteration order of the leader's map of subscriptions
    keep: IntArray  # members, in iteration order of the map of claims, which is filled in the order of `walk`
    topics: IntArray  # topics with partitions, in iteration order of `partitionsPerTopic`


class Arrays(NamedTuple):
    """The arrays of a `GroupBatch` under the same names; racks are empty arrays where the batch has none."""

    member_start: LongArray
    member_hash: IntArray
    member_rank: IntArray
    instance_rank: IntArray
    member_rack: IntArray
    subscription_generation: IntArray
    claim_generation: IntArray
    topic_start: LongArray
    topic_hash: IntArray
    topic_rank: IntArray
    topic_partitions: IntArray
    member_subscription: LongArray
    subscription_start: LongArray
    subscription_topic: IntArray
    claim_start: LongArray
    claim_topic: IntArray
    claim_partition: IntArray
    rack_start: LongArray
    rack_code: IntArray
    rack_topic_start: LongArray
    told: ExactMapOrders


class GroupView(NamedTuple):
    """Views of one group; members and topics count from 0. `topics_of` and claims still index the whole batch."""

    members: int
    topics: int
    member_hash: IntArray
    member_rank: IntArray
    instance_rank: IntArray
    member_rack: IntArray
    subscription_generation: IntArray
    claim_generation: IntArray
    topic_hash: IntArray
    topic_rank: IntArray
    topic_partitions: IntArray
    subscription: LongArray  # [members], index into subscription_start
    subscription_start: LongArray
    topics_of: IntArray
    claim_start: LongArray  # [members + 1]
    claim_topic: IntArray
    claim_partition: IntArray
    rack_topic_start: LongArray
    rack_start: LongArray
    rack_code: IntArray
    told: ExactMapOrders


def arrays(batch: GroupBatch, told: ExactMapOrders | None = None) -> Arrays:
    """Convert the batch for a kernel."""
    nothing, none = np.zeros(0, np.int64), np.zeros(0, np.int32)
    values: dict[str, Any] = {name: getattr(batch, name, None) for name in Arrays._fields}
    values |= {name: nothing for name in ("rack_start", "rack_topic_start") if values[name] is None}
    values |= {"rack_code": none} if batch.rack_code is None else {}
    return Arrays(**values | {"told": ExactMapOrders(none, none, none) if told is None else told})


@kernel
def group_at(b: Arrays, index: int) -> GroupView:
    """Return the views of group `index`."""
    m = b.member_start[index]
    n = b.member_start[index + 1]
    t = b.topic_start[index]
    u = b.topic_start[index + 1]
    return GroupView(
        n - m,
        u - t,
        b.member_hash[m:n],
        b.member_rank[m:n],
        b.instance_rank[m:n],
        b.member_rack[m:n],
        b.subscription_generation[m:n],
        b.claim_generation[m:n],
        b.topic_hash[t:u],
        b.topic_rank[t:u],
        b.topic_partitions[t:u],
        b.member_subscription[m:n],
        b.subscription_start,
        b.subscription_topic,
        b.claim_start[m : n + 1],
        b.claim_topic,
        b.claim_partition,
        b.rack_topic_start[t:u],
        b.rack_start,
        b.rack_code,
        b.told,
    )


@kernel
def walk_members(g: GroupView, order: IntArray) -> int:
    """Fill `order` with members in iteration order of the leader's subscription map; TREE if that is not emulated."""
    if len(g.told.walk) > 0:
        order[:] = g.told.walk
        return 0
    for member in range(g.members):
        order[member] = member
    return map_order(g.member_hash, order, g.members)


@kernel
def walk_topics(g: GroupView, members: IntArray, order: IntArray) -> int:
    """Fill `order` with topics that have partitions, as `partitionsPerTopic` is iterated; return the count or TREE.

    Kafka collects all subscribed topics in a hash set, member by member, then copies those with metadata to a map.
    """
    if len(g.told.walk) > 0:
        order[: len(g.told.topics)] = g.told.topics
        return len(g.told.topics)
    seen = np.zeros(g.topics, np.bool_)
    count = 0
    before = -1
    for at in range(g.members):
        subscription = g.subscription[members[at]]
        if subscription == before:
            continue
        before = subscription
        for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
            topic = g.topics_of[entry]
            if not seen[topic]:
                seen[topic] = True
                order[count] = topic
                count += 1
    if map_order(g.topic_hash, order, count) == TREE:
        return TREE
    known = 0
    for at in range(count):
        if g.topic_partitions[order[at]] > 0:
            order[known] = order[at]
            known += 1
    return TREE if map_order(g.topic_hash, order, known) == TREE else known


@kernel
def mark_subscribed(g: GroupView, subscribed: IntArray) -> None:
    """Set `subscribed[topic]` to 1 for each topic that some member names."""
    before = -1
    for member in range(g.members):
        subscription = g.subscription[member]
        if subscription != before:
            before = subscription
            for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
                subscribed[g.topics_of[entry]] = 1


@kernel
def sort_by_rank(rank: IntArray, order: IntArray, count: int) -> None:
    """Sort `order[:count]` by the rank of its entries; the sort is stable."""
    if count > FEW:
        _sort_many(rank, order, count)
        return
    for at in range(1, count):
        key = order[at]
        to = at
        while to > 0 and rank[order[to - 1]] > rank[key]:
            order[to] = order[to - 1]
            to -= 1
        order[to] = key


@kernel
def _sort_many(rank: IntArray, order: IntArray, count: int) -> None:
    """Counting sort if ranks are dense, as they are for ids, else comparison sort (few out of many)."""
    named = rank[order[:count]]
    ranks = named.max() + 1
    if ranks > SPARSE * count or named.min() < 0:
        sort_by(named, order, count)
        return
    place = np.zeros(ranks + 1, np.int32)
    for at in range(count):
        place[named[at] + 1] += 1
    for at in range(ranks):
        place[at + 1] += place[at]
    before = order[:count].copy()
    for at in range(count):
        order[place[named[at]]] = before[at]
        place[named[at]] += 1


@kernel
def sort_static_first(g: GroupView, order: IntArray) -> None:
    """Sort members as Kafka's MemberInfo: static members first, by instance id; then by member id; stable."""
    key = np.empty(g.members, np.int64)
    for at in range(g.members):
        member = order[at]
        static = g.instance_rank[member] != NONE
        key[at] = g.instance_rank[member] if static else (np.int64(1) << 31) + g.member_rank[member]
    sort_by(key, order, g.members)
