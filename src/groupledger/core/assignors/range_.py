"""`range`: topic by topic, each member gets a run of consecutive partitions; by rack if that matters (KIP-881)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, GroupBatch, IntArray, LongArray
from groupledger.core.arrays.java_orders import TREE
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.answer import AssignmentBatch, answer
from groupledger.core.assignors.group import (
    Arrays,
    GroupView,
    Status,
    TargetLists,
    clear,
    group_at,
    sort_by_rank,
    sort_static_first,
    subscribers,
    walk_members,
    walk_topics,
    write_taken,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


OK = int(Status.OK)
NOT_EMULATED = int(Status.ORDER_NOT_EMULATED)


def assign(batch: GroupBatch) -> AssignmentBatch:
    """Return the answer of every group."""
    return answer(range_groups, batch, None)


@kernel
def range_groups(b: Arrays, cooperative: bool, out: TargetLists, status: IntArray, path: IntArray) -> None:
    """Assign every group of the batch into `out`."""
    for index in range(len(b.member_start) - 1):
        status[index] = assign_ranges(group_at(b, index), out)


@kernel
def assign_ranges(g: GroupView, out: TargetLists) -> int:
    """Assign 7 partitions over 3 members -> 3, 2, 2; the first members get more. Lists follow the map's topic order."""
    clear(g, out)
    order = np.empty(g.members, np.int32)
    topics = np.empty(g.topics, np.int32)
    walked = walk_members(g, order)
    known = walk_topics(g, order, topics)
    if walked == TREE or known == TREE:
        return NOT_EMULATED
    sort_static_first(g, order)
    topics = topics[:known]
    heads, seats = subscribers(g, order)
    needs = topics_where_racks_matter(g, order, topics, heads, seats)
    if needs.any():
        assign_near(g, order, topics, heads, seats, needs, out)
    else:
        _write(g, order, topics, heads, seats, out)
    return OK


@kernel
def _write(
    g: GroupView, order: IntArray, topics: IntArray, heads: LongArray, seats: IntArray, out: TargetLists
) -> None:
    start, topic, partition = out.start[g.first :], out.topic, out.partition
    for local in topics:
        count = heads[local + 1] - heads[local]
        share = g.topic_partitions[local] // count
        more = g.topic_partitions[local] % count
        for at in range(count if share > 0 else more):
            start[order[seats[heads[local] + at]] + 1] += share + (1 if at < more else 0)
    next_at = np.empty(g.members, np.int64)
    base = start[0]
    for member in range(g.members):
        size = start[member + 1] - base
        start[member + 1] = start[member] + size
        next_at[member] = start[member]
    for local in topics:
        count = heads[local + 1] - heads[local]
        share = g.topic_partitions[local] // count
        more = g.topic_partitions[local] % count
        number = 0
        for at in range(count if share > 0 else more):
            member = order[seats[heads[local] + at]]
            to = next_at[member]
            for _ in range(share + (1 if at < more else 0)):
                topic[to] = local
                partition[to] = number
                to += 1
                number += 1
            next_at[member] = to


class RangePlan(NamedTuple):
    """One group's ranges while they are computed. Seats are positions in `order`; `at` counts topics as in `topics`."""

    order: IntArray
    topics: IntArray
    heads: LongArray
    seats: IntArray
    base: LongArray  # [topics + 1], first partition of each topic in `owner`
    quota: LongArray  # [topics], partitions per subscriber
    more: LongArray  # [topics], subscribers that may still get one more
    owner: IntArray  # seat of each partition, NONE while free
    given: IntArray  # [topics, seats], partitions handed out


@kernel
def topics_where_racks_matter(
    g: GroupView, order: IntArray, topics: IntArray, heads: LongArray, seats: IntArray
) -> NDArray[np.bool_]:
    """Return, for each of `topics`, whether its own subscribers and replicas require rack matching."""
    needs = np.zeros(len(topics), np.bool_)
    if len(g.rack_topic_start) > 0:
        for at in range(len(topics)):
            local = topics[at]
            members = order[seats[heads[local] : heads[local + 1]]]
            needs[at] = racks_matter(g, members, len(members), topics[at : at + 1], 1)
    return needs


@kernel
def assign_near(
    g: GroupView,
    order: IntArray,
    topics: IntArray,
    heads: LongArray,
    seats: IntArray,
    needs: NDArray[np.bool_],
    out: TargetLists,
) -> None:
    """Match racks, fill the rest in plain ranges, and write the lists sorted by topic name and number."""
    base = np.zeros(len(topics) + 1, np.int64)
    quota = np.empty(len(topics), np.int64)
    more = np.empty(len(topics), np.int64)
    for at in range(len(topics)):
        local = topics[at]
        base[at + 1] = base[at] + g.topic_partitions[local]
        quota[at] = g.topic_partitions[local] // (heads[local + 1] - heads[local])
        more[at] = g.topic_partitions[local] % (heads[local + 1] - heads[local])
    owner = np.full(base[len(topics)], NONE, np.int32)  # seat of each partition
    given = np.zeros((len(topics), g.members), np.int32)  # partitions of each topic given to each seat
    plan = RangePlan(order, topics, heads, seats, base, quota, more, owner, given)
    _match_racks(g, plan, needs)
    for at in range(len(topics)):
        _fill(g, plan, at, False)
    _write_sorted(g, plan, out)


@kernel
def _match_racks(g: GroupView, plan: RangePlan, needs: NDArray[np.bool_]) -> None:
    """Assign topics with the same subscribers and partition count together, partition by partition; others alone."""
    done = np.zeros(len(plan.topics), np.bool_)
    alike = np.empty(len(plan.topics), np.int32)
    for at in range(len(plan.topics)):
        if done[at]:
            continue
        count = 0
        for other in range(at, len(plan.topics)):
            if not done[other] and _same_shape(plan, at, other):
                done[other] = True
                alike[count] = other
                count += 1
        if count > 1:
            _assign_together(g, plan, alike[:count])
        elif needs[at]:
            _fill(g, plan, at, True)


@kernel
def _same_shape(plan: RangePlan, one: int, other: int) -> bool:
    a = plan.topics[one]
    b = plan.topics[other]
    if plan.base[one + 1] - plan.base[one] != plan.base[other + 1] - plan.base[other]:
        return False
    count = plan.heads[a + 1] - plan.heads[a]
    if count != plan.heads[b + 1] - plan.heads[b]:
        return False
    for at in range(count):
        if plan.seats[plan.heads[a] + at] != plan.seats[plan.heads[b] + at]:
            return False
    return True


@kernel
def _assign_together(g: GroupView, plan: RangePlan, alike: IntArray) -> None:
    """Give partition p of all these topics to the first member that is near each and has room in each."""
    first = plan.topics[alike[0]]
    seats = plan.seats[plan.heads[first] : plan.heads[first + 1]]
    any_rack = False
    for seat in seats:
        any_rack = any_rack or g.member_rack[plan.order[seat]] != NONE
    if not any_rack:
        return
    for number in range(plan.base[alike[0] + 1] - plan.base[alike[0]]):
        for seat in seats:
            if _all_near(g, plan, alike, seat, number):
                for at in alike:
                    _give(plan, at, number, seat)
                break


@kernel
def _all_near(g: GroupView, plan: RangePlan, alike: IntArray, seat: int, number: int) -> bool:
    for at in alike:
        if _room(plan, at, seat) <= 0 or far_from(g, plan.order[seat], plan.topics[at], number):
            return False
    return True


@kernel
def _room(plan: RangePlan, at: int, seat: int) -> int:
    return int(plan.quota[at] + (1 if plan.more[at] > 0 else 0) - plan.given[at, seat])


@kernel
def _give(plan: RangePlan, at: int, number: int, seat: int) -> None:
    """Hand out one partition; past the quota it uses up the member's extra one."""
    plan.owner[plan.base[at] + number] = seat
    plan.given[at, seat] += 1
    if plan.given[at, seat] == plan.quota[at] + 1:
        plan.more[at] -= 1


@kernel
def _fill(g: GroupView, plan: RangePlan, at: int, near: bool) -> None:
    """Give free partitions of one topic, in order, to its members, in order: only near ones, or all."""
    local = plan.topics[at]
    low = 0
    for seat in plan.seats[plan.heads[local] : plan.heads[local + 1]]:
        room = _room(plan, at, seat)
        while low < g.topic_partitions[local] and plan.owner[plan.base[at] + low] != NONE:
            low += 1
        for number in range(low, g.topic_partitions[local]):
            if room <= 0:
                break
            free = plan.owner[plan.base[at] + number] == NONE
            if free and not (near and far_from(g, plan.order[seat], local, number)):
                _give(plan, at, number, seat)
                room -= 1


@kernel
def _write_sorted(g: GroupView, plan: RangePlan, out: TargetLists) -> None:
    by_name = np.arange(len(plan.topics)).astype(np.int32)
    sort_by_rank(g.topic_rank[plan.topics], by_name, len(by_name))
    taker = np.empty(len(plan.owner), np.int32)
    filled = 0
    for at in by_name:
        size = plan.base[at + 1] - plan.base[at]
        taker[filled : filled + size] = plan.owner[plan.base[at] : plan.base[at + 1]]
        filled += size
    write_taken(g, plan.topics[by_name], plan.order, taker, out)


# Match racks as KIP-881's leader does: which partitions have replicas near which member, and whether it matters.


@kernel
def has_replica(g: GroupView, topic: int, partition: int, rack: int) -> bool:
    """Return whether a replica of the partition is in `rack`; False for a partition that does not exist."""
    if partition < 0 or partition >= g.topic_partitions[topic]:
        return False
    at = g.rack_topic_start[topic] + partition
    for replica in range(g.rack_start[at], g.rack_start[at + 1]):
        if g.rack_code[replica] == rack:
            return True
    return False


@kernel
def far_from(g: GroupView, member: int, topic: int, partition: int) -> bool:
    """Return whether the member names a rack that has no replica of the partition."""
    rack = g.member_rack[member]
    return rack != NONE and not has_replica(g, topic, partition, rack)


@kernel
def racks_matter(g: GroupView, consumers: IntArray, consumer_count: int, topics: IntArray, topic_count: int) -> bool:
    """KIP-881: return whether a consumer shares a rack with a replica, and some partition is not in all racks."""
    if len(g.rack_topic_start) == 0:
        return False
    highest = -1
    for at in range(consumer_count):
        highest = max(highest, g.member_rack[consumers[at]])
    if highest < 0:
        return False
    consumer_racks = np.zeros(highest + 1, np.bool_)
    for at in range(consumer_count):
        if g.member_rack[consumers[at]] != NONE:
            consumer_racks[g.member_rack[consumers[at]]] = True
    every = np.zeros(_rack_bound(g, topics, topic_count), np.int32)
    most, least = _count_racks(g, topics, topic_count, every)
    shared = False
    for rack in range(min(len(every), highest + 1)):
        shared = shared or (consumer_racks[rack] and every[rack] > 0)
    return shared and least < most


@kernel
def _rack_bound(g: GroupView, topics: IntArray, topic_count: int) -> int:
    """Return the highest rack code of these topics, plus one."""
    bound = 0
    for at in range(topic_count):
        first = g.rack_topic_start[topics[at]]
        last = first + g.topic_partitions[topics[at]]
        for replica in range(g.rack_start[first], g.rack_start[last]):
            bound = max(bound, g.rack_code[replica] + 1)
    return bound


@kernel
def _count_racks(g: GroupView, topics: IntArray, topic_count: int, seen: IntArray) -> tuple[int, int]:
    """Count the racks in all, and those of the partition in the fewest; stamp `seen[rack]`."""
    total = 0
    least = len(seen)
    stamp = 0
    for at in range(topic_count):
        first = g.rack_topic_start[topics[at]]
        for each in range(first, first + g.topic_partitions[topics[at]]):
            stamp += 1
            here = 0
            for replica in range(g.rack_start[each], g.rack_start[each + 1]):
                rack = g.rack_code[replica]
                if rack != NONE and seen[rack] != stamp:
                    total += 1 if seen[rack] == 0 else 0
                    here += 1
                    seen[rack] = stamp
            least = min(least, here)
    return total, least
