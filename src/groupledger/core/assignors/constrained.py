"""Assign sticky groups with equal subscriptions: keep up to the quota, deal the rest in turns.

KIP-54's goals, reached by the faster algorithm of KIP-615. With P partitions and n members each gets P // n, and
P % n members get one more. Members keep their lowest partitions; a list is what was kept, then what is new.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE
from groupledger.core.arrays.java_orders import TREE, map_order
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.claims import BIAS, Claims, phantom_key, settle, slot_of, voided
from groupledger.core.assignors.group import Arrays, GroupView, Status, sort, sort_by, sort_by_rank
from groupledger.core.assignors.range_ import far_from, has_replica, racks_matter

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.batch import IntArray, LongArray
    from groupledger.core.assignors.group import TargetLists


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


# Assign sticky groups with identical subscriptions, no racks and no conflicting claims: `constrained`, but faster.
#
# A group is plain if its members all send the same list of topics, without racks, and if no two claims conflict and
# none names a partition that its topic does not have. Most groups are plain. The kernel works on the arrays of the
# whole
# batch and one scratch space: a group of five members is done before arrays of its own would be allocated.

WORD = 32
"""Slots per word of a bit set."""
FULL = (1 << WORD) - 1


class ScratchSpace(NamedTuple):
    """The batch, scratch space for one group, and the output lists. Members, topics and slots count from 0."""

    member_start: LongArray
    member_hash: IntArray
    member_rank: IntArray
    member_rack: IntArray
    topic_start: LongArray
    topic_rank: IntArray
    topic_partitions: IntArray
    subscription: LongArray
    subscription_start: LongArray
    topics_of: IntArray
    claim_start: LongArray
    claim_topic: IntArray
    claim_partition: IntArray
    racks: bool

    base: LongArray  # [topics + 1], first slot of each topic; a topic that is not dealt has none
    topics: IntArray  # [topics], those that are dealt, by name
    place: IntArray  # [topics], the position of each among those
    order: IntArray  # [members]
    owned: LongArray  # [members], claims that count
    size: LongArray  # [members], partitions so far
    kept: LongArray  # [members], how many of its owned partitions it keeps
    ordered: NDArray[np.bool_]  # [members], all its claims count, and are sorted by number, then topic
    under: IntArray  # [members]
    exact: IntArray  # [members]
    counts: LongArray  # see `share_out`
    held: LongArray  # bit set by slot, `WORD` bits a word: a member has it and keeps it
    given: LongArray  # like `held`: a member must give it up
    giver: IntArray  # [slots], that member, if the slot is `given`
    taker: IntArray  # [slots], new owner of each slot that nobody keeps
    keys: LongArray  # [claims of one member]

    start: LongArray  # of the lists of all members
    topic: IntArray
    partition: IntArray
    withheld: NDArray[np.bool_]


@kernel
def scratch_space(b: Arrays, out: TargetLists) -> ScratchSpace:
    """Allocate room for the largest group of the batch."""
    groups = len(b.member_start) - 1
    members, topics, slots = 0, 0, 0
    for group in range(groups):
        members = max(members, b.member_start[group + 1] - b.member_start[group])
        topics = max(topics, b.topic_start[group + 1] - b.topic_start[group])
        count = 0
        for topic in range(b.topic_start[group], b.topic_start[group + 1]):
            count += max(b.topic_partitions[topic], 0)
        slots = max(slots, count)
    claims = 0
    for member in range(len(b.claim_start) - 1):
        claims = max(claims, b.claim_start[member + 1] - b.claim_start[member])
    return ScratchSpace(
        b.member_start,
        b.member_hash,
        b.member_rank,
        b.member_rack,
        b.topic_start,
        b.topic_rank,
        b.topic_partitions,
        b.member_subscription,
        b.subscription_start,
        b.subscription_topic,
        b.claim_start,
        b.claim_topic,
        b.claim_partition,
        len(b.rack_topic_start) > 0,
        np.zeros(topics + 1, np.int64),
        np.empty(topics, np.int32),
        np.empty(topics, np.int32),
        np.empty(members, np.int32),
        np.empty(members, np.int64),
        np.empty(members, np.int64),
        np.empty(members, np.int64),
        np.empty(members, np.bool_),
        np.empty(members, np.int32),
        np.empty(members, np.int32),
        np.zeros(4, np.int64),
        np.empty(slots // WORD + 1, np.int64),
        np.empty(slots // WORD + 1, np.int64),
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        np.empty(claims, np.int64),
        out.start,
        out.topic,
        out.partition,
        out.withheld,
    )


@kernel
def plain(d: ScratchSpace, group: int) -> bool:
    """Assign one group if it is plain; otherwise return False and write nothing."""
    first = d.member_start[group]
    members = d.member_start[group + 1] - first
    if members == 0 or not _alike(d, first, members):
        return False
    known = _lay_out(d, group, d.subscription[first])
    if known == NONE:
        return False
    if d.claim_start[first] == d.claim_start[first + members]:
        _deal_all_plain(d, first, members, d.topics[:known], d.topic_partitions[d.topic_start[group] :])
        return True
    words = d.base[d.topic_start[group + 1] - d.topic_start[group]] // WORD + 1
    d.held[:words] = 0
    d.given[:words] = 0
    return _settle(d, first, members) and _rejoin(d, first, members, d.topics[:known])


@kernel
def _alike(d: ScratchSpace, first: int, members: int) -> bool:
    """Return whether all members name the same topics in one order, and no rack that might matter."""
    model = d.subscription[first]
    low = d.subscription_start[model]
    length = d.subscription_start[model + 1] - low
    for member in range(first, first + members):
        if d.racks and d.member_rack[member] != NONE:
            return False
        own = d.subscription[member]
        if own == model:
            continue
        begin = d.subscription_start[own]
        if d.subscription_start[own + 1] - begin != length:
            return False
        for at in range(length):
            if d.topics_of[begin + at] != d.topics_of[low + at]:
                return False
    return True


@kernel
def _lay_out(d: ScratchSpace, group: int, subscription: int) -> int:
    """Number the slots, and the topics by name; return how many topics to deal. NONE if a topic is named twice."""
    row = d.topic_start[group]
    topics = d.topic_start[group + 1] - row
    base = d.base
    base[: topics + 1] = 0
    known = 0
    for entry in range(d.subscription_start[subscription], d.subscription_start[subscription + 1]):
        topic = d.topics_of[entry]
        if base[topic + 1] != 0:
            return NONE
        base[topic + 1] = 1 + max(d.topic_partitions[row + topic], 0)
        if base[topic + 1] > 1:
            d.topics[known] = topic
            known += 1
    for topic in range(topics):
        base[topic + 1] = base[topic] + max(base[topic + 1] - 1, 0)
    sort_by_rank(d.topic_rank[row : row + topics], d.topics, known)
    for at in range(known):
        d.place[d.topics[at]] = at
    return known


@kernel
def _deal_all_plain(d: ScratchSpace, first: int, members: int, topics: IntArray, partitions: IntArray) -> None:
    """Assign a group without claims: members take turns, by id, until everything is dealt."""
    total = 0
    for topic in topics:
        total += partitions[topic]
    rank = d.member_rank[first : first + members]
    start = d.start[first : first + members + 1]
    deal_in_turns(rank, topics, partitions, total, d.order[:members], d.size[:members], start, d.topic, d.partition)


@kernel
def _settle(d: ScratchSpace, first: int, members: int) -> bool:
    """Record who holds what; False if two claim the same partition, or one claims a partition that does not exist."""
    base = d.base
    place = d.place
    held = d.held
    claim_topic = d.claim_topic
    claim_partition = d.claim_partition
    for member in range(members):
        low = d.claim_start[first + member]
        high = d.claim_start[first + member + 1]
        count = high - low
        before = -1
        ordered = True
        for claim in range(low, high):
            topic = claim_topic[claim]
            number = claim_partition[claim]
            slot = base[topic] + number
            if base[topic + 1] == base[topic]:
                count -= 1
                continue
            if number < 0 or slot >= base[topic + 1] or (held[slot // WORD] >> (slot % WORD)) & 1:
                return False
            held[slot // WORD] |= 1 << (slot % WORD)
            key = (int(number) << 31) | int(place[topic])
            ordered = ordered and key > before
            before = key
        d.owned[member] = count
        d.ordered[member] = ordered and count == high - low
    return True


@kernel
def _rejoin(d: ScratchSpace, first: int, members: int, topics: IntArray) -> bool:
    """Keep up to the quota, deal the rest in turns; False if an unknown hash map order decides."""
    total = 0
    for topic in topics:
        total += d.base[topic + 1] - d.base[topic]
    if not _walk(d, first, members, total):
        return False
    rank = d.member_rank[first : first + members]
    share_out(total, d.order[:members], rank, d.owned, d.size, d.under, d.exact, d.counts)
    dealt = total
    for member in range(members):
        d.kept[member] = d.size[member]
        dealt -= d.size[member]
    take_turns(total // members, d.size, d.under, d.exact, d.counts, d.taker[:dealt], 0)
    for member in range(members):
        d.start[first + member + 1] = d.start[first + member] + d.size[member]
        _keep(d, first, member, topics)
    _add(d, topics)
    return True


@kernel
def _walk(d: ScratchSpace, first: int, members: int, total: int) -> bool:
    """Fill `order` in the leader's iteration order, if it matters: more members could keep an extra one than may."""
    spare = total % members
    ample = 0
    for member in range(members):
        d.order[member] = member
        ample += 1 if d.owned[member] > total // members else 0
    if spare == 0 or ample <= spare:
        return True
    return map_order(d.member_hash[first : first + members], d.order, members) != TREE


@kernel
def _keep(d: ScratchSpace, first: int, member: int, topics: IntArray) -> None:
    """Write the lowest partitions of the member, by number, then topic, and mark those that it must give up."""
    low = d.claim_start[first + member]
    high = d.claim_start[first + member + 1]
    to = d.start[first + member]
    kept = d.kept[member]
    d.kept[member] = to + kept  # from here on: position of the member's next new partition
    if d.ordered[member]:
        for at in range(kept):
            d.topic[to + at] = d.claim_topic[low + at]
            d.partition[to + at] = d.claim_partition[low + at]
        for claim in range(low + kept, high):
            _give_back(d, member, d.base[d.claim_topic[claim]] + d.claim_partition[claim])
        return
    keys = _sorted_claims(d, low, high)
    for at in range(kept):
        d.topic[to + at] = topics[keys[at] & 0x7FFFFFFF]
        d.partition[to + at] = keys[at] >> 31
    for at in range(kept, len(keys)):
        _give_back(d, member, d.base[topics[keys[at] & 0x7FFFFFFF]] + (keys[at] >> 31))


@kernel
def _sorted_claims(d: ScratchSpace, low: int, high: int) -> LongArray:
    """Return (number << 31) | place of the topic, for each claim that counts, ascending."""
    count = 0
    for claim in range(low, high):
        topic = d.claim_topic[claim]
        if d.base[topic + 1] > d.base[topic]:
            d.keys[count] = (int(d.claim_partition[claim]) << 31) | int(d.place[topic])
            count += 1
    sort(d.keys[:count])
    return d.keys[:count]


@kernel
def _give_back(d: ScratchSpace, member: int, slot: int) -> None:
    d.held[slot // WORD] ^= 1 << (slot % WORD)
    d.given[slot // WORD] |= 1 << (slot % WORD)
    d.giver[slot] = member


@kernel
def _add(d: ScratchSpace, topics: IntArray) -> None:
    """Write unkept partitions, by topic name and number, to their new owners; withhold those another must give up."""
    next_at = d.kept
    dealt = 0
    for topic in topics:
        low = d.base[topic]
        slot = low
        while slot < d.base[topic + 1]:
            bit = slot % WORD
            if bit == 0 and d.held[slot // WORD] == FULL:
                slot += WORD
                continue
            if (d.held[slot // WORD] >> bit) & 1 == 0:
                member = d.taker[dealt]
                dealt += 1
                to = next_at[member]
                next_at[member] = to + 1
                d.topic[to] = topic
                d.partition[to] = slot - low
                d.withheld[to] = (d.given[slot // WORD] >> bit) & 1 != 0 and d.giver[slot] != member
            slot += 1
