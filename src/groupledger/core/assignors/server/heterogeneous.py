"""`uniform` for different subscriptions: keep subscribed partitions, deal out the rest, then even out by topic.

Balance comes before stickiness. Topics with the most partitions per subscriber come first, then those with fewer
subscribers, then by id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.assignors.server.balancer import Balancer, balancer, most_loaded_with, next_least, topic_is_level
from groupledger.core.assignors.server.changes import CurrentTargets, with_room, write
from groupledger.core.assignors.server.spec import ServerStatus
from groupledger.core.assignors.server.walks import ServerGroupView
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

OK = int(ServerStatus.OK)
OUT_OF_BOUNDS = int(ServerStatus.OUT_OF_BOUNDS)
MOST_ROUNDS = 16  # Kafka's MAX_ITERATION_COUNT
NOBODY = -1


class HeterogeneousPlan(NamedTuple):
    """Working state of the algorithm. A seat is a member's place in iteration order; ties go to the lower seat."""

    order: IntArray  # [members] the member in each seat
    size: LongArray  # [seats] partitions in its target
    seat_start: LongArray  # [topics + 1] subscribers of each topic in `seats`, ascending
    seats: IntArray
    owner_start: LongArray  # [topics + 1] its partitions in `owner`
    owner: IntArray  # the seat that has each partition, or NOBODY


@kernel
def assign_heterogeneous(
    g: ServerGroupView, order: IntArray, owned: CurrentTargets, log: IntArray, used: int
) -> tuple[IntArray, int, int, int]:
    """Assign members A {t}, B {t, u}, t and u of 2 partitions -> A: t0, t1; B: u0, u1.

    Returns the log, its rows used, a `ServerStatus` and, for OUT_OF_BOUNDS, the failing position in `owned`.
    """
    plan = _plan(g, order)
    log = with_room(log, used, g.target_start[g.members] - g.target_start[0])
    used, offender = _keep_subscribed(g, plan, owned, log, used)
    if offender >= 0:
        return log, used, OUT_OF_BOUNDS, offender
    topics = _sorted_topics(g, plan)
    log = with_room(log, used, len(plan.owner))
    for topic in topics:
        used = _deal(plan, topic, log, used)
    log, used = _even_out(plan, topics, log, used)
    return log, used, OK, -1


@kernel
def _plan(g: ServerGroupView, order: IntArray) -> HeterogeneousPlan:
    seat_start = np.zeros(g.topics + 1, np.int64)
    for at in range(g.subscription_start[0], g.subscription_start[g.members]):
        if g.partitions[g.subscription_topic[at]] >= 0:
            seat_start[g.subscription_topic[at] + 1] += 1
    owner_start = np.zeros(g.topics + 1, np.int64)
    for topic in range(g.topics):
        count = g.partitions[topic] if seat_start[topic + 1] > 0 else 0
        owner_start[topic + 1] = owner_start[topic] + count
        seat_start[topic + 1] += seat_start[topic]
    seats = np.empty(seat_start[g.topics], np.int32)
    filled = seat_start.copy()
    for seat in range(g.members):
        member = order[seat]
        for at in range(g.subscription_start[member], g.subscription_start[member + 1]):
            topic = g.subscription_topic[at]
            if g.partitions[topic] >= 0:
                seats[filled[topic]] = seat
                filled[topic] += 1
    owner = np.full(owner_start[g.topics], NOBODY, np.int32)
    return HeterogeneousPlan(order, np.zeros(g.members, np.int64), seat_start, seats, owner_start, owner)


@kernel
def _keep_subscribed(
    g: ServerGroupView, plan: HeterogeneousPlan, owned: CurrentTargets, log: IntArray, used: int
) -> tuple[int, int]:
    """Log partitions owned without a subscription; if two members own a partition, the later seat has it.

    Returns the log's rows, and the position of a partition beyond its topic's count (Kafka fails there), else -1.
    """
    subscriber = np.full(g.topics, NOBODY, np.int32)
    for seat in range(g.members):
        member = plan.order[seat]
        for at in range(g.subscription_start[member], g.subscription_start[member + 1]):
            subscriber[g.subscription_topic[at]] = seat
        for at in range(g.target_start[member], g.target_start[member + 1]):
            topic = owned.topic[at]
            if subscriber[topic] != seat or g.partitions[topic] < 0:
                used = write(log, used, member, topic, ~owned.partition[at])
            elif owned.partition[at] >= g.partitions[topic]:
                return used, at
            else:
                plan.size[seat] += 1
                plan.owner[plan.owner_start[topic] + owned.partition[at]] = seat
    return used, -1


@kernel
def _sorted_topics(g: ServerGroupView, plan: HeterogeneousPlan) -> IntArray:
    """Return subscribed topics: most partitions per subscriber first, then fewest subscribers, then by id."""
    count = 0
    topics = np.empty(g.topics, np.int32)
    by_id = np.argsort(g.id_rank, kind="mergesort")
    fewest_first = np.empty(g.topics, np.int64)
    share = np.empty(g.topics, np.float64)
    for topic in by_id:
        subscribers = plan.seat_start[topic + 1] - plan.seat_start[topic]
        if subscribers > 0:
            topics[count] = topic
            fewest_first[count] = subscribers
            share[count] = -(g.partitions[topic] / subscribers)
            count += 1
    by_subscribers = np.argsort(fewest_first[:count], kind="mergesort")
    by_share = np.argsort(share[:count][by_subscribers], kind="mergesort")
    return topics[:count][by_subscribers][by_share]


@kernel
def _deal(plan: HeterogeneousPlan, topic: int, log: IntArray, used: int) -> int:
    """Give each unowned partition to the subscriber with the fewest."""
    low = plan.owner_start[topic]
    high = plan.owner_start[topic + 1]
    while low < high and plan.owner[low] != NOBODY:
        low += 1
    if low == high:
        return used
    b = balancer(plan.seats[plan.seat_start[topic] : plan.seat_start[topic + 1]], plan.size)
    for at in range(low, high):
        if plan.owner[at] == NOBODY:
            used = _assign(plan, topic, at, next_least(b, plan.size), log, used)
    return used


@kernel
def _assign(plan: HeterogeneousPlan, topic: int, at: int, seat: int, log: IntArray, used: int) -> int:
    """Give the partition at `owner[at]` to a seat, taking it from its owner."""
    partition = at - plan.owner_start[topic]
    before = plan.owner[at]
    if before != NOBODY:
        used = write(log, used, plan.order[before], topic, ~partition)
        plan.size[before] -= 1
    plan.owner[at] = seat
    plan.size[seat] += 1
    return write(log, used, plan.order[seat], topic, partition)


@kernel
def _even_out(plan: HeterogeneousPlan, topics: IntArray, log: IntArray, used: int) -> tuple[IntArray, int]:
    """Balance the topics in rounds, until none has moved since its last turn, or the rounds are used up."""
    last = -1
    movable = np.empty(len(topics), np.int32)
    count = 0
    for topic in topics:
        if plan.seat_start[topic + 1] - plan.seat_start[topic] >= 2:
            movable[count] = topic
            count += 1
    for _ in range(MOST_ROUNDS):
        for at in range(count):
            if at == last:
                return log, used
            topic = movable[at]
            log = with_room(log, used, 2 * (plan.owner_start[topic + 1] - plan.owner_start[topic]))
            before = used
            used = _level(plan, topic, log, used)
            if used > before or last == -1:
                last = at
    return log, used


@kernel
def _level(plan: HeterogeneousPlan, topic: int, log: IntArray, used: int) -> int:
    """Move a topic's partitions from the most loaded subscribers to the least; each owner gives its last first."""
    seats = plan.seats[plan.seat_start[topic] : plan.seat_start[topic + 1]]
    low = plan.owner_start[topic]
    owner = plan.owner[low : plan.owner_start[topic + 1]]
    b: Balancer = balancer(seats, plan.size)
    if topic_is_level(b, plan.size):
        return used
    by_owner = np.argsort(owner, kind="mergesort")
    first = np.zeros(len(plan.size), np.int64)
    end = np.zeros(len(plan.size), np.int64)
    for at in range(len(by_owner) - 1, -1, -1):
        first[owner[by_owner[at]]] = at
    for at in range(len(by_owner)):
        end[owner[by_owner[at]]] = at + 1
    while True:
        giver = most_loaded_with(b, plan.size, first, end)
        if giver == NOBODY:
            return used
        end[giver] -= 1
        partition = by_owner[end[giver]]
        taker = next_least(b, plan.size)
        if b.level[1] - b.level[0] <= 1:
            return used
        used = _assign(plan, topic, low + partition, taker, log, used)
