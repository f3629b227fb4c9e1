"""Provide one group of a batch to the kernels: views of its arrays, and what all assignors first derive from them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, GroupBatch, IntArray, LongArray
from groupledger.core.arrays.java_orders import TREE, map_order
from groupledger.core.arrays.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.assignors.server.iteration_orders import ServerGroupView


SPARSE = 4  # above this many ranks per item to sort, a counting sort would mostly look at empty ranks


class ExactMapOrders(NamedTuple):
    """Orders of one group that were computed outside the kernels, see `colliding_ids`; empty arrays otherwise."""

    subscriptions: IntArray  # members, in iteration order of the leader's map of subscriptions
    claims: IntArray  # members, in iteration order of the map of claims, which is filled in that order
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
    exact_orders: ExactMapOrders


class GroupView(NamedTuple):
    """Views of one group; members and topics count from 0. `topics_of` and claims still index the whole batch."""

    first: int  # the batch's number of its first member
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
    exact_orders: ExactMapOrders


def arrays(batch: GroupBatch, exact_orders: ExactMapOrders | None = None) -> Arrays:
    """Convert the batch for a kernel."""
    nothing, none = np.zeros(0, np.int64), np.zeros(0, np.int32)
    values: dict[str, Any] = {name: getattr(batch, name, None) for name in Arrays._fields}
    values |= {name: nothing for name in ("rack_start", "rack_topic_start") if values[name] is None}
    values |= {"rack_code": none} if batch.rack_code is None else {}
    return Arrays(
        **values | {"exact_orders": ExactMapOrders(none, none, none) if exact_orders is None else exact_orders}
    )


@kernel
def group_at(b: Arrays, index: int) -> GroupView:
    """Return the views of group `index`."""
    m = b.member_start[index]
    n = b.member_start[index + 1]
    t = b.topic_start[index]
    u = b.topic_start[index + 1]
    return GroupView(
        m,
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
        b.exact_orders,
    )


@kernel
def walk_members(g: GroupView, order: IntArray) -> int:
    """Fill `order` with members in iteration order of the leader's subscription map; TREE if that is not emulated."""
    if len(g.exact_orders.subscriptions) > 0:
        order[:] = g.exact_orders.subscriptions
        return 0
    for member in range(g.members):
        order[member] = member
    return map_order(g.member_hash, order, g.members)


@kernel
def walk_topics(g: GroupView, members: IntArray, order: IntArray) -> int:
    """Fill `order` with topics that have partitions, as `partitionsPerTopic` is iterated; return the count or TREE.

    Kafka collects all subscribed topics in a hash set, member by member, then copies those with metadata to a map.
    """
    if len(g.exact_orders.subscriptions) > 0:
        order[: len(g.exact_orders.topics)] = g.exact_orders.topics
        return len(g.exact_orders.topics)
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
    """Sort by counting if ranks are dense, as they are for ids, else by comparison (few out of many)."""
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
def sort_static_first(g: GroupView | ServerGroupView, order: IntArray) -> None:
    """Sort members as Kafka's MemberInfo: static members first, by instance id; then by member id; stable."""
    key = np.empty(g.members, np.int64)
    for at in range(g.members):
        member = order[at]
        static = g.instance_rank[member] != NONE
        key[at] = g.instance_rank[member] if static else (np.int64(1) << 31) + g.member_rank[member]
    sort_by(key, order, g.members)


# Hold a group's answer as kernels write it: one list per member, back to back.


class TargetLists(NamedTuple):
    """The targets of a batch: member m's list is start[m]:start[m + 1] of topic and partition."""

    start: LongArray  # of all members of the batch; when a group's turn comes, start[g.first] is set
    topic: IntArray
    partition: IntArray
    withheld: NDArray[np.bool_]  # in the target, not in a cooperative answer: its owner must revoke it first


@kernel
def clear(g: GroupView, out: TargetLists) -> None:
    """Empty the lists of one group."""
    start = out.start[g.first :]
    for member in range(g.members):
        start[member + 1] = start[0]


@kernel
def write_taken(g: GroupView, topics: IntArray, circle: IntArray, taker: IntArray, out: TargetLists) -> None:
    """Write the lists of all members, by topic as in `topics`; `taker`: each partition's seat in `circle`."""
    start, topic, partition = out.start[g.first :], out.topic, out.partition
    size = np.zeros(g.members, np.int64)
    for seat in taker:
        size[seat] += 1
    next_at = np.empty(g.members, np.int64)
    for seat in range(g.members):
        start[circle[seat] + 1] = size[seat]
    for member in range(g.members):
        start[member + 1] += start[member]
    for seat in range(g.members):
        next_at[seat] = start[circle[seat]]
    at = 0
    for local in topics:
        for number in range(g.topic_partitions[local]):
            to = next_at[taker[at]]
            topic[to] = local
            partition[to] = number
            next_at[taker[at]] = to + 1
            at += 1


# List the subscribers of each topic, in a given order of the members.


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


# Sort 64-bit keys in kernels: numba takes ten times as long to compile numpy's own sorts.

FEW = 24


@kernel
def sort_by(key: IntArray | LongArray, order: IntArray, count: int) -> None:
    """Sort `order[:count]` by key[0], key[1], ..: current keys of its entries, below 2^32; stable."""
    packed = np.empty(count, np.int64)
    for at in range(count):
        packed[at] = (np.int64(key[at]) << 31) | at
    sort(packed)
    before = order[:count].copy()
    for at in range(count):
        order[at] = before[packed[at] & 0x7FFFFFFF]


@kernel
def sort(keys: LongArray) -> None:
    """Sort in place, ascending: by insertion if there are few keys, else by merging existing runs."""
    if len(keys) > FEW:
        spare = np.empty(len(keys), np.int64)
        while _merge_runs(keys, spare):
            pass
        return
    for at in range(1, len(keys)):
        value = keys[at]
        to = at
        while to > 0 and keys[to - 1] > value:
            keys[to] = keys[to - 1]
            to -= 1
        keys[to] = value


@kernel
def _merge_runs(keys: LongArray, spare: LongArray) -> bool:
    """Merge each pair of neighbouring runs; False if there was only one run."""
    low = 0
    while low < len(keys):
        middle = _end_of_run(keys, low)
        if low == 0 and middle == len(keys):
            return False
        high = _end_of_run(keys, middle)
        one = low
        other = middle
        for at in range(low, high):
            if other >= high or (one < middle and keys[one] <= keys[other]):
                spare[at] = keys[one]
                one += 1
            else:
                spare[at] = keys[other]
                other += 1
        low = high
    keys[:] = spare
    return True


@kernel
def _end_of_run(keys: LongArray, low: int) -> int:
    at = low + 1
    while at < len(keys) and keys[at - 1] <= keys[at]:
        at += 1
    return min(at, len(keys))


@kernel
def first_at_least(values: IntArray | LongArray, low: int, high: int, wanted: int) -> int:
    """Return the index of the first of the ascending values[low:high] that is at least `wanted`; else `high`."""
    while low < high:
        middle = (low + high) // 2
        if values[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low


# Encode how a group's assignment ended: small integers for the kernels, Kafka's words for people.


class Path(IntEnum):
    """Which algorithm decided: the sticky assignors have two."""

    ONLY = 0
    CONSTRAINED = 1
    GENERAL = 2


class Status(IntEnum):
    """OK, one of the ways in which Kafka's own code fails, or an order that is not emulated."""

    OK = 0
    NO_MEMBERS_TO_DIVIDE_BY = 1
    NO_MEMBERS_TO_CIRCLE = 2
    NO_UNFILLED_MEMBER = 3
    NULL_POINTER = 4
    NO_SUCH_ELEMENT = 5
    ORDER_NOT_EMULATED = 6
    SUBSCRIPTIONS_DIFFER = 7
    CUSTOM_REFUSED = 8  # a custom assignor failed; the details are in the group


MESSAGES: dict[Status, str] = {
    Status.NO_MEMBERS_TO_DIVIDE_BY: "ArithmeticException: / by zero",
    Status.NO_MEMBERS_TO_CIRCLE: "IllegalArgumentException: CircularIterator can only be used on non-empty lists",
    Status.NO_UNFILLED_MEMBER: "IllegalStateException: No more unfilled consumers to be assigned.",
    Status.NULL_POINTER: (
        'NullPointerException: Cannot invoke "java.util.List.size()" because the return value of '
        '"java.util.Map.get(Object)" is null'
    ),
    Status.NO_SUCH_ELEMENT: "NoSuchElementException: null",
    Status.ORDER_NOT_EMULATED: (
        "OrderNotEmulated: nine or more ids share one bucket of Java's hash map, which turns it into a tree; "
        "expected fewer; such ids are crafted, judge this group by its invariants instead"
    ),
    Status.SUBSCRIPTIONS_DIFFER: (
        "SubscriptionsDiffer: members subscribe to different topics; constrained-cooperative-sticky expects them "
        "all to subscribe to the same set of topics: use cooperative-sticky instead (KIP-615)"
    ),
    Status.CUSTOM_REFUSED: "CustomRefused: the custom assignor failed or broke its contract on this group",
}
"""What Kafka throws, class and message (kafka-clients 4.4.0 on Java 17), or why there is no answer."""
