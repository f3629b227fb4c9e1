"""Run `uniform` for a batch: each group by the algorithm for its subscriptions, then order every record."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.server.iteration_orders import (
    NONE_YET,
    MemberTarget,
    ServerGroupView,
    fresh_sizes,
    group_at,
    rows_by,
    write_record,
)
from groupledger.core.assignors.server.server_group import ServerBatch, ServerStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.batch import IntArray, LongArray


OK = int(ServerStatus.OK)


@kernel
def decide(
    b: ServerBatch,
    order: IntArray,
    shared: IntArray,
    shared_count: IntArray,
    owned: CurrentTargets,
    hands_on: bool,
    path: IntArray,
    status: IntArray,
    bad: LongArray,
    remade: NDArray[np.bool_],
) -> tuple[IntArray, LongArray]:
    """Return all groups' log and the start of each group's rows [G+1]; fill `status` [G], `bad` [G], `remade` [M].

    `remade` marks members whose map Kafka makes again, `bad` the position in `owned` that stops a group (else -1).
    """
    log = np.empty((FIRST_ROWS, 3), np.int32)
    rows = np.zeros(len(path) + 1, np.int64)
    for index in range(len(path)):
        used = rows[index]
        g = group_at(b, index)
        seats = order[b.member_start[index] : b.member_start[index + 1]]
        made = remade[b.member_start[index] : b.member_start[index + 1]]
        bad[index] = -1
        if g.members > 0 and path[index] == 1:
            low = b.topic_start[index]
            topics = shared[low : low + shared_count[index]]
            log, used, wanted, status[index] = assign_homogeneous(g, seats, topics, owned, hands_on, log, used)
            if status[index] == OK:
                made[:] = wanted > 0
        elif g.members > 0:
            log, used, status[index], bad[index] = assign_heterogeneous(g, seats, owned, log, used)
        if status[index] != OK:
            used = rows[index]
        for row in range(rows[index], used):
            made[log[row, 0]] = True
        rows[index + 1] = used
    return log, rows


@kernel
def count_records(b: ServerBatch, log: IntArray, rows: LongArray, status: IntArray, start: LongArray) -> None:
    """Set `start` [M+1] to the start of each member's new target. A group that failed has none."""
    start[:] = 0
    for index in range(len(status)):
        first = b.member_start[index]
        if status[index] == OK:
            for member in range(first, b.member_start[index + 1]):
                start[member + 1] = b.target_start[member + 1] - b.target_start[member]
        for row in range(rows[index], rows[index + 1]):
            start[first + log[row, 0] + 1] += 1 if log[row, 2] >= 0 else -1
    for member in range(len(start) - 1):
        start[member + 1] += start[member]


@kernel
def write_records(
    b: ServerBatch,
    owned: CurrentTargets,
    log: IntArray,
    rows: LongArray,
    path: IntArray,
    remade: NDArray[np.bool_],
    start: LongArray,
    topic: IntArray,
    partition: IntArray,
    tree: NDArray[np.bool_],
) -> None:
    """Fill every member's new target, at start[m]:start[m + 1]; `tree` [M] flags those left out: a tree decides."""
    for index in range(len(path)):
        g = group_at(b, index)
        heads, of = rows_by(log[rows[index] : rows[index + 1], 0], g.members)
        fresh = fresh_sizes(g, path[index] == 1)
        slot_of = np.full(g.topics, NONE_YET, np.int32)
        for local in range(g.members):
            member = b.member_start[index] + local
            low = start[member]
            high = start[member + 1]
            held = owned.topic[g.target_start[local] : g.target_start[local + 1]]
            held_partition = owned.partition[g.target_start[local] : g.target_start[local + 1]]
            if not remade[member]:
                topic[low:high] = held[: high - low]
                partition[low:high] = held_partition[: high - low]
                continue
            mine = rows[index] + of[heads[local] : heads[local + 1]]
            m = MemberTarget(held, held_partition, log[mine, 1], log[mine, 2])
            tree[member] = not write_record(g.id_hash, fresh, slot_of, m, topic[low:high], partition[low:high])


# `uniform` for different subscriptions: keep subscribed partitions, deal out the rest, then even out by topic.
#
# Balance comes before stickiness. Topics with the most partitions per subscriber come first, then those with fewer
# subscribers, then by id.

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


# `uniform` for equal subscriptions: keep up to a quota, then hand out the rest.

LEFT_UNASSIGNED = int(ServerStatus.LEFT_UNASSIGNED)


@kernel
def assign_homogeneous(
    g: ServerGroupView,
    order: IntArray,
    topics: IntArray,
    owned: CurrentTargets,
    hands_on: bool,
    log: IntArray,
    used: int,
) -> tuple[IntArray, int, LongArray, int]:
    """Assign 7 partitions over 3 members without targets -> 3, 2, 2; owned partitions stay, up to these numbers.

    `order` and `topics` are the members and the topics that all subscribe to, in iteration order. Returns the log, its
    rows used, how many partitions each member was still to get (Kafka copies its map then, even if it gets none), and a
    `ServerStatus`.
    """
    held = g.target_start[g.members] - g.target_start[0]
    pool, size, total = _unassigned(g, topics, owned)
    log = with_room(log, used, held)
    wanted, used, size = _keep_to_quota(g, order, topics, owned, hands_on, total, pool, size, log, used)
    log = with_room(log, used, size)
    handed = 0
    for member in order:
        for _ in range(min(wanted[member], size - handed)):
            used = write(log, used, member, pool[handed, 0], pool[handed, 1])
            handed += 1
    return log, used, wanted, OK if handed == size else LEFT_UNASSIGNED


@kernel
def _unassigned(g: ServerGroupView, topics: IntArray, owned: CurrentTargets) -> tuple[IntArray, int, int]:
    """Return (topic, partition) pairs that no target holds, in the order of `topics`, with room for all lost later."""
    first = np.full(g.topics, -1, np.int64)
    total = 0
    for topic in topics:
        first[topic] = total
        total += g.partitions[topic]
    taken = np.zeros(total, np.bool_)
    for at in range(g.target_start[0], g.target_start[g.members]):
        topic = owned.topic[at]
        if first[topic] >= 0 and owned.partition[at] < g.partitions[topic]:
            taken[first[topic] + owned.partition[at]] = True
    pool = np.empty((total + g.target_start[g.members] - g.target_start[0], 2), np.int32)
    size = 0
    for topic in topics:
        for partition in range(g.partitions[topic]):
            if not taken[first[topic] + partition]:
                pool[size, 0] = topic
                pool[size, 1] = partition
                size += 1
    return pool, size, total


@kernel
def _keep_to_quota(
    g: ServerGroupView,
    order: IntArray,
    topics: IntArray,
    owned: CurrentTargets,
    hands_on: bool,
    total: int,
    pool: IntArray,
    size: int,
    log: IntArray,
    used: int,
) -> tuple[LongArray, int, int]:
    """Log and pool partitions beyond the quotas; return what members still need, and the log's and pool's sizes.

    `hands_on`: a member that stays below its quota hands its extra partition on while enough members follow. Kafka
    4.0.0 has no such step; 4.0.1 and 4.1.0 have it (KAFKA-18688).
    """
    wanted = np.zeros(g.members, np.int64)
    subscribed = np.zeros(g.topics, np.bool_)
    for topic in topics:
        subscribed[topic] = True
    extras = total % g.members
    for seat in range(g.members):
        member = order[seat]
        has_extra = extras > 0
        quota = total // g.members + (1 if has_extra else 0)
        for at in range(g.target_start[member], g.target_start[member + 1]):
            topic = owned.topic[at]
            if subscribed[topic] and quota > 0:
                quota -= 1
                continue
            used = write(log, used, member, topic, ~owned.partition[at])
            if subscribed[topic]:
                pool[size, 0] = topic
                pool[size, 1] = owned.partition[at]
                size += 1
        if hands_on and has_extra and quota > 0 and g.members - seat > extras:
            quota -= 1
            has_extra = False
        wanted[member] = quota
        extras -= 1 if has_extra else 0
    return wanted, used, size


# Hold current targets in iteration order, and the log of what an assignor does to them.
#
# The log has rows (member, topic, partition) in order of time; a removed partition is logged as its complement
# (~partition, below 0). From the log alone `record` derives the state of Java's maps and sets.

FIRST_ROWS = 1024


class CurrentTargets(NamedTuple):
    """The current targets of a batch, each member's in iteration order of its maps; `target_start` bounds them."""

    topic: IntArray
    partition: IntArray


@kernel
def with_room(log: IntArray, used: int, more: int) -> IntArray:
    """Return the log, or a longer copy of it, with room for `more` rows after the first `used`."""
    if used + more <= len(log):
        return log
    longer = np.empty((max(2 * len(log), used + more), 3), np.int32)
    longer[:used] = log[:used]
    return longer


@kernel
def write(log: IntArray, used: int, member: int, topic: int, partition: int) -> int:
    """Append a row if there is room; return the new number of rows."""
    log[used, 0] = member
    log[used, 1] = topic
    log[used, 2] = partition
    return used + 1


# Track which of a topic's subscribers has the fewest and which the most partitions, as partitions move.
#
# Subscribers are sorted by their number of partitions. From the left a range grows whose members all have the same
# number; each takes one partition in turn, then the range rises a level and widens. From the right a range does the
# reverse. A member that has no partition of the topic to give is put beyond the right range's end.
#
# The order of the turns is Kafka's (4.0 to 4.4), and so is an apparent bug: a member that is compared with a level is
# looked up at its present number, which moves may have changed in the meantime.

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
