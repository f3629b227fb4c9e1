"""Assign sticky groups with equal subscriptions: keep up to the quota, deal the rest in turns.

KIP-54's goals, reached by the faster algorithm of KIP-615. With P partitions and n members each gets P // n, and
P % n members get one more. Members keep their lowest partitions; a list is what was kept, then what is new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.assignors.claims import BIAS, Claims, phantom_key, settle, slot_of, voided
from groupledger.core.assignors.group import GroupView, sort_by_rank
from groupledger.core.assignors.outcome import Status
from groupledger.core.assignors.racks import far_from, has_replica, racks_matter
from groupledger.core.assignors.sorting import sort, sort_by
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.assignors.lists import TargetLists
    from groupledger.core.batch import IntArray, LongArray

OK = int(Status.OK)
NO_MEMBERS = int(Status.NO_MEMBERS_TO_DIVIDE_BY)
NO_UNFILLED_MEMBER = int(Status.NO_UNFILLED_MEMBER)


class ConstrainedPlan(NamedTuple):
    """One group's assignment while it is computed."""

    low: int  # quota of each member
    spare: int  # members that get one partition more
    size: LongArray  # [members], partitions so far
    under: IntArray  # members below the quota, by member id; the first counts[0] are valid
    exact: IntArray  # members at the quota that may get one more, by member id at first; the first counts[1] are valid
    counts: LongArray  # [4]: members below, at and above the quota; [3] > 0: claims were voided


class KeptLists(NamedTuple):
    """What members keep of their claims: member m's list is start[m]:start[m + 1]."""

    start: LongArray  # [members + 1]
    topic: IntArray
    partition: IntArray


@kernel
def constrained(g: GroupView, members: IntArray, cooperative: bool, out: TargetLists) -> int:
    """Assign one group; `members` in the order of the leader's map. Return a Status, write the lists to `out`."""
    if g.members == 0:
        return NO_MEMBERS
    claims = settle(g, members, cooperative)
    topics = topics_by_name(g, claims.base)
    racked = racks_matter(g, members, g.members, topics, len(topics))
    if len(claims.holder) == 0 and not racked:
        _deal_all(g, topics, claims.total, out)
        return OK
    plan = _keep_up_to_quota(g, claims, g.told.keep if len(g.told.keep) > 0 else members, racked)
    kept = _kept_lists(g, claims, plan, topics)
    free_topic, free_partition = _free(g, claims, topics)
    taker = np.empty(len(free_topic), np.int32)
    dealt = 0
    if racked:
        scarce_first(g, members, free_topic, free_partition)
        dealt = deal_near(g, plan, free_topic, free_partition, taker)
    if not take_turns(plan.low, plan.size, plan.under, plan.exact, plan.counts, taker, dealt):
        return NO_UNFILLED_MEMBER
    _write_kept(g, plan, kept, out)
    _write_new(g, claims, plan, free_topic, free_partition, taker, out)
    return OK


@kernel
def _deal_all(g: GroupView, topics: IntArray, total: int, out: TargetLists) -> None:
    """Assign a group without claims: members take turns, by id, until everything is dealt."""
    seats = np.empty(g.members, np.int32)
    next_at = np.empty(g.members, np.int64)
    deal_in_turns(g.member_rank, topics, g.topic_partitions, total, seats, next_at, out.start, out.topic, out.partition)


@kernel
def deal_in_turns(
    rank: IntArray,
    topics: IntArray,
    partitions: IntArray,
    total: int,
    seats: IntArray,
    next_at: LongArray,
    start: LongArray,
    out_topic: IntArray,
    out_partition: IntArray,
) -> None:
    """Deal `total` partitions of the topics to members by rank, one each per turn; the first list begins at `start[0]`.

    Scratch space, by member: `seats` and `next_at`.
    """
    members = len(rank)
    for member in range(members):
        seats[member] = member
    sort_by_rank(rank, seats, members)
    for seat in range(members):
        start[seats[seat] + 1] = total // members + (1 if seat < total % members else 0)
    for member in range(members):
        start[member + 1] += start[member]
    for seat in range(members):
        next_at[seat] = start[seats[seat]]
    seat = 0
    for topic in topics:
        for number in range(partitions[topic]):
            to = next_at[seat]
            next_at[seat] = to + 1
            out_topic[to] = topic
            out_partition[to] = number
            seat = seat + 1 if seat + 1 < members else 0


@kernel
def topics_by_name(g: GroupView, base: LongArray) -> IntArray:
    """Return the subscribed topics that have partitions, by name."""
    topics = np.empty(g.topics, np.int32)
    count = 0
    for local in range(g.topics):
        if base[local + 1] > base[local]:
            topics[count] = local
            count += 1
    sort_by_rank(g.topic_rank, topics, count)
    return topics[:count]


@kernel
def _keep_up_to_quota(g: GroupView, claims: Claims, members: IntArray, racked: bool) -> ConstrainedPlan:
    """Decide how many of its claims each member keeps."""
    plan = ConstrainedPlan(
        claims.total // g.members,
        claims.total % g.members,
        np.zeros(g.members, np.int64),
        np.empty(g.members, np.int32),
        np.empty(g.members, np.int32),
        np.zeros(4, np.int64),
    )
    owned = _count_owned(g, claims, plan, racked)
    share_out(claims.total, members, g.member_rank, owned, plan.size, plan.under, plan.exact, plan.counts)
    return plan


@kernel
def share_out(
    total: int,
    members: IntArray,
    rank: IntArray,
    owned: LongArray,
    size: LongArray,
    under: IntArray,
    exact: IntArray,
    counts: LongArray,
) -> None:
    """Decide how many of its owned partitions each member keeps; the first P % n above the quota keep one more.

    Fills `size`, and `under`, `exact` and `counts[:3]` as in `ConstrainedPlan`.
    """
    low = total // len(members)
    spare = total % len(members)
    high = low + (1 if spare > 0 else 0)
    counts[:3] = 0
    for member in members:
        if owned[member] < low:
            size[member] = owned[member]
            under[counts[0]] = member
            counts[0] += 1
        elif owned[member] >= high and counts[2] < spare:
            size[member] = high
            counts[2] += 1
            if counts[2] == spare:
                counts[1] = 0
        else:
            size[member] = low
            if counts[2] < spare:
                exact[counts[1]] = member
                counts[1] += 1
    sort_by_rank(rank, under, counts[0])
    sort_by_rank(rank, exact, counts[1])


@kernel
def _count_owned(g: GroupView, claims: Claims, plan: ConstrainedPlan, racked: bool) -> LongArray:
    """Count what each member may keep: not claimed twice, and near it if racks matter; the others are voided."""
    holder = claims.holder
    if racked:
        _void_far(g, claims)
        plan.counts[3] += 1
    owned = np.zeros(g.members, np.int64)
    for slot in range(len(holder)):
        if holder[slot] >= 0:
            if claims.contested[slot]:
                holder[slot] = voided(holder[slot])
                plan.counts[3] += 1
            else:
                owned[holder[slot]] += 1
    return owned


@kernel
def _void_far(g: GroupView, claims: Claims) -> None:
    for topic in range(g.topics):
        for slot in range(claims.base[topic], min(claims.base[topic + 1], len(claims.holder))):
            member = claims.holder[slot]
            if member >= 0 and far_from(g, member, topic, slot - claims.base[topic]):
                claims.holder[slot] = voided(member)
    for slot in range(claims.total, len(claims.holder)):
        member = claims.holder[slot]
        if member >= 0 and far_from(g, member, 0, -1):
            claims.holder[slot] = voided(member)


@kernel
def _kept_lists(g: GroupView, claims: Claims, plan: ConstrainedPlan, topics: IntArray) -> KeptLists:
    """Keep the lowest partitions of each member, by number, then topic; void the rest of its claims."""
    start = np.zeros(g.members + 1, np.int64)
    for member in range(g.members):
        start[member + 1] = start[member] + plan.size[member]
    total = start[g.members]
    kept = KeptLists(start, np.empty(total, np.int32), np.empty(total, np.int32))
    place = np.empty(g.topics, np.int32)
    for at in range(len(topics)):
        place[topics[at]] = at
    most = 0
    for member in range(g.members):
        most = max(most, g.claim_start[member + 1] - g.claim_start[member])
    keys = np.empty(most, np.int64)
    for member in range(g.members):
        count = _gather(g, claims, plan, place, member, keys)
        sort(keys[:count])
        _keep_lowest(g, claims, topics, kept, member, keys[:count])
    return kept


@kernel
def _gather(g: GroupView, claims: Claims, plan: ConstrainedPlan, place: IntArray, member: int, keys: LongArray) -> int:
    """Collect keys of what the member may keep, which sort by number, then topic name; return how many."""
    base = claims.base
    dropped = claims.dropped
    claim_topic = g.claim_topic
    claim_partition = g.claim_partition
    voids = plan.counts[3] > 0
    first = g.claim_start[0]
    count = 0
    for claim in range(g.claim_start[member], g.claim_start[member + 1]):
        topic = claim_topic[claim]
        number = int(claim_partition[claim])
        if base[topic + 1] == base[topic] or dropped[claim - first]:
            continue
        if voids and claims.holder[slot_of(g, base, claims.phantom, topic, number)] != member:
            continue
        keys[count] = ((number + BIAS) << 31) | int(place[topic])
        count += 1
    return count


@kernel
def _keep_lowest(g: GroupView, claims: Claims, topics: IntArray, kept: KeptLists, member: int, keys: LongArray) -> None:
    low = kept.start[member]
    room = min(kept.start[member + 1] - low, len(keys))
    kept_topic = kept.topic
    kept_partition = kept.partition
    for at in range(room):
        kept_topic[low + at] = topics[keys[at] & 0x7FFFFFFF]
        kept_partition[low + at] = (keys[at] >> 31) - BIAS
    for at in range(room, len(keys)):
        slot = slot_of(g, claims.base, claims.phantom, topics[keys[at] & 0x7FFFFFFF], (keys[at] >> 31) - BIAS)
        claims.holder[slot] = voided(member)


@kernel
def _free(g: GroupView, claims: Claims, topics: IntArray) -> tuple[IntArray, IntArray]:
    """Return the partitions left to deal, by topic name and number.

    Kafka iterates over all partitions beside the sorted kept ones and never gets past a kept one that does not exist:
    everything after it is dealt, kept or not.
    """
    stuck = _first_kept_phantom(claims)
    topic = np.empty(claims.total, np.int32)
    partition = np.empty(claims.total, np.int32)
    count = 0
    for local in topics:
        partitions = g.topic_partitions[local]
        honoured = partitions if len(claims.holder) > 0 else 0
        if phantom_key(g, local, 0) > stuck:
            honoured = 0
        for number in range(partitions):
            if number >= honoured or claims.holder[claims.base[local] + number] < 0:
                topic[count] = local
                partition[count] = number
                count += 1
    return topic[:count], partition[:count]


@kernel
def _first_kept_phantom(claims: Claims) -> int:
    """Return the key of the first kept partition that does not exist; a key beyond all others if there is none."""
    for at in range(len(claims.phantom)):
        if claims.holder[claims.total + at] >= 0:
            return int(claims.phantom[at])
    return 1 << 62


@kernel
def take_turns(
    low: int, size: LongArray, under: IntArray, exact: IntArray, counts: LongArray, taker: IntArray, dealt: int
) -> bool:
    """Deal in turns to members below the quota until they reach it; then one each to members that may have one more."""
    unfilled = counts[0]
    filled = counts[1]
    while unfilled > 0 and dealt < len(taker):
        left = 0
        for at in range(min(unfilled, len(taker) - dealt)):
            member = under[at]
            taker[dealt] = member
            dealt += 1
            size[member] += 1
            if size[member] == low:
                exact[filled] = member
                filled += 1
            else:
                under[left] = member
                left += 1
        unfilled = left
    if len(taker) - dealt > filled:
        return False
    for at in range(len(taker) - dealt):
        taker[dealt + at] = exact[at]
        size[exact[at]] += 1
    return True


@kernel
def _write_kept(g: GroupView, plan: ConstrainedPlan, kept: KeptLists, out: TargetLists) -> None:
    for member in range(g.members):
        out.start[member + 1] = out.start[member] + plan.size[member]
        low = kept.start[member]
        count = kept.start[member + 1] - low
        to = out.start[member]
        out.topic[to : to + count] = kept.topic[low : low + count]
        out.partition[to : to + count] = kept.partition[low : low + count]
        plan.size[member] = to + count  # from here on: position of the member's next new partition


@kernel
def _write_new(
    g: GroupView,
    claims: Claims,
    plan: ConstrainedPlan,
    free_topic: IntArray,
    free_partition: IntArray,
    taker: IntArray,
    out: TargetLists,
) -> None:
    """Write new partitions in the order dealt; withhold those that another member must give up first."""
    for at in range(len(taker)):
        member = taker[at]
        to = plan.size[member]
        plan.size[member] = to + 1
        out.topic[to] = free_topic[at]
        out.partition[to] = free_partition[at]
    if len(claims.holder) == 0:
        return
    for at in range(len(taker) - 1, -1, -1):
        member = taker[at]
        plan.size[member] -= 1
        slot = claims.base[free_topic[at]] + free_partition[at]
        revoked = claims.holder[slot] < NONE and voided(claims.holder[slot]) != member
        out.withheld[plan.size[member]] = revoked or claims.contested[slot]


@kernel
def scarce_first(g: GroupView, members: IntArray, free_topic: IntArray, free_partition: IntArray) -> None:
    """Sort the free partitions by how many members are near a replica; the sort is stable."""
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
def deal_near(
    g: GroupView, plan: ConstrainedPlan, free_topic: IntArray, free_partition: IntArray, taker: IntArray
) -> int:
    """Deal what can be dealt near a replica within the quotas; put dealt partitions first and count them.

    Members below the quota take turns; if none of them is near, the first member at the quota that is near.
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
def _next_near(g: GroupView, line: IntArray, count: int, first: int, topic: int, partition: int) -> int:
    """Return the position of the first near member from `first` on, in a circle; NONE if there is none."""
    for step in range(count):
        at = (first + step) % count
        rack = g.member_rack[line[at]]
        if rack != NONE and has_replica(g, topic, partition, rack):
            return at
    return NONE


@kernel
def _give_under(plan: ConstrainedPlan, found: int, high: int, taker: IntArray, at: int) -> int:
    """Give to a member below the quota; return the position of the next turn."""
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
def _give_exact(plan: ConstrainedPlan, found: int, high: int, taker: IntArray, at: int) -> None:
    """Give to a member at the quota; once no spare partition is left, no member at the quota gets more."""
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
    """Put dealt partitions before the others, each in their order; return how many were dealt."""
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
