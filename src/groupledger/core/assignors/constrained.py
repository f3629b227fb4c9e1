"""Assign sticky groups with equal subscriptions: keep up to the quota, deal the rest in turns.

KIP-54's goals, reached by the faster algorithm of KIP-615. In order of priority:

1. Balance: with P partitions and n members each gets P // n, and P % n members get one more.
2. Stickiness: members keep their lowest partitions; those that own more than the quota are first to keep one more.
3. Racks (KIP-881): what is dealt goes near a replica while quotas allow.

Steps: settle the claims, `share_out` what each member keeps, `_keep` it, `_find_free` what nobody keeps, deal it by
`deal_near` and `take_turns`, `_add` it to the lists. A list is what was kept, then what is new.

Worked example: 7 partitions, A owns t-0 to t-6, B and C are new. The quota is 2, one member gets 3. A keeps t-0, t-1,
t-2; B and C are dealt t-3, t-4, t-5, t-6 in turns, and cooperative members wait until A has revoked them.

The kernels work on the arrays of the whole batch and one scratch space: a group of five members is done before arrays
of its own would be allocated. Most groups are `plain`: their members all send the same list of topics, without racks,
no two claims conflict and none names a partition that its topic does not have. For the others, `constrained` first
settles the claims as Kafka does (see `claims`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.java_orders import TREE, map_order
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.claims import Claims, phantom_key, settle, slot_of, topics_by_name, voided
from groupledger.core.assignors.group import Arrays, GroupView, Status, TargetLists, sort, sort_by, sort_by_rank
from groupledger.core.assignors.range_ import far_from, has_replica, racks_matter

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask


OK = int(Status.OK)
NO_MEMBERS = int(Status.NO_MEMBERS_TO_DIVIDE_BY)
NO_UNFILLED_MEMBER = int(Status.NO_UNFILLED_MEMBER)

WORD = 32
"""Slots per word of a bit set."""
FULL = (1 << WORD) - 1
UNDER, EXACT, ABOVE = 0, 1, 2
"""Positions in `ScratchSpace.counts`: members below, at and above the quota."""


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
    order: IntArray  # [members], in the order in which the leader serves them
    owned: LongArray  # [members], claims that count
    size: LongArray  # [members], partitions so far
    kept: LongArray  # [members], how many of its owned partitions it keeps
    next_at: LongArray  # [members], where the member's next partition is written
    ordered: Mask  # [members], all its claims count, and are sorted by number, then topic
    under: IntArray  # members below the quota, by member id; the first counts[UNDER] are valid
    exact: IntArray  # members at the quota that may get one more, by member id at first; counts[EXACT] are valid
    counts: LongArray  # [3]
    held: LongArray  # bit set by slot, `WORD` bits a word: a member has it and keeps it
    given: LongArray  # like `held`: a member must give it up
    giver: IntArray  # [slots], that member, if the slot is `given`; NONE: several
    free_topic: IntArray  # [slots], what nobody keeps, in the order in which it is dealt
    free_partition: IntArray
    taker: IntArray  # [slots], new owner of each of these
    keys: LongArray  # [claims of one member]

    start: LongArray  # of the lists of all members
    topic: IntArray
    partition: IntArray
    withheld: Mask


@kernel
def scratch_space(b: Arrays, out: TargetLists) -> ScratchSpace:
    """Allocate room for the largest group of the batch."""
    members, topics, slots, claims = 0, 0, 0, 0
    for group in range(len(b.member_start) - 1):
        members = max(members, b.member_start[group + 1] - b.member_start[group])
        topics = max(topics, b.topic_start[group + 1] - b.topic_start[group])
        count = 0
        for topic in range(b.topic_start[group], b.topic_start[group + 1]):
            count += max(b.topic_partitions[topic], 0)
        slots = max(slots, count)
    for member in range(len(b.claim_start) - 1):
        claims = max(claims, b.claim_start[member + 1] - b.claim_start[member])
    return ScratchSpace(
        member_start=b.member_start,
        member_hash=b.member_hash,
        member_rank=b.member_rank,
        member_rack=b.member_rack,
        topic_start=b.topic_start,
        topic_rank=b.topic_rank,
        topic_partitions=b.topic_partitions,
        subscription=b.member_subscription,
        subscription_start=b.subscription_start,
        topics_of=b.subscription_topic,
        claim_start=b.claim_start,
        claim_topic=b.claim_topic,
        claim_partition=b.claim_partition,
        racks=len(b.rack_topic_start) > 0,
        base=np.zeros(topics + 1, np.int64),
        topics=np.empty(topics, np.int32),
        place=np.empty(topics, np.int32),
        order=np.empty(members, np.int32),
        owned=np.empty(members, np.int64),
        size=np.empty(members, np.int64),
        kept=np.empty(members, np.int64),
        next_at=np.empty(members, np.int64),
        ordered=np.empty(members, np.bool_),
        under=np.empty(members, np.int32),
        exact=np.empty(members, np.int32),
        counts=np.zeros(3, np.int64),
        held=np.empty(slots // WORD + 1, np.int64),
        given=np.empty(slots // WORD + 1, np.int64),
        giver=np.empty(slots, np.int32),
        free_topic=np.empty(slots, np.int32),
        free_partition=np.empty(slots, np.int32),
        taker=np.empty(slots, np.int32),
        keys=np.empty(claims, np.int64),
        start=out.start,
        topic=out.topic,
        partition=out.partition,
        withheld=out.withheld,
    )


@kernel
def plain(d: ScratchSpace, group: int) -> bool:
    """Assign one group if it is plain; otherwise return False: what was written is of no account."""
    first = d.member_start[group]
    members = d.member_start[group + 1] - first
    if members == 0 or not _alike(d, first, members):
        return False
    known = _lay_out(d, group, d.subscription[first])
    if known == NONE:
        return False
    total = d.base[d.topic_start[group + 1] - d.topic_start[group]]
    if d.claim_start[first] == d.claim_start[first + members]:
        _deal_all(d, group, d.topics[:known], total)
        return True
    _clear_slots(d, total)
    if not _settle(d, first, members) or not _walk(d, first, members, total):
        return False
    free = total - share_out(d, first, members, total)
    take_turns(d, total // members, free, 0)
    _line_up(d, first, members, d.size)
    _keep(d, first, members, d.topics[:known], d.ordered[:0])  # no claim was dropped
    _find_free(d, d.topics[:known])
    _add(d, free)
    return True


@kernel
def constrained(d: ScratchSpace, group: int, g: GroupView, members: IntArray, cooperative: bool) -> int:
    """Assign one group; `members` in the order of the leader's map. Return a Status, write the lists."""
    if g.members == 0:
        return NO_MEMBERS
    first = d.member_start[group]
    claims = settle(g, members, cooperative)
    topics = topics_by_name(g, claims.base)
    racked = racks_matter(g, members, g.members, topics, len(topics))
    if len(claims.holder) == 0 and not racked:
        _deal_all(d, group, topics, claims.total)
        return OK
    d.base[: g.topics + 1] = claims.base
    for at in range(len(topics)):
        d.place[topics[at]] = at
    d.order[: g.members] = g.exact_orders.claims if len(g.exact_orders.claims) > 0 else members
    _clear_slots(d, claims.total)
    _void(g, claims, racked)
    _mark_claims(d, g, claims)
    share_out(d, first, g.members, claims.total)
    _line_up(d, first, g.members, d.kept)
    _keep(d, first, g.members, topics, claims.dropped)
    _pass_over_phantom(d, g, topics, claims, first)
    free = _find_free(d, topics)
    dealt = 0
    if racked:
        free_topic, free_partition = d.free_topic[:free], d.free_partition[:free]
        scarce_first(g, members, free_topic, free_partition)
        dealt = deal_near(d, g, claims.total, free_topic, free_partition, d.taker[:free])
    if not take_turns(d, claims.total // g.members, free, dealt):
        return NO_UNFILLED_MEMBER
    _move_apart(d, first, g.members)
    _add(d, free)
    return OK


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
    """Assign numbers to slots, and sort topics by name: return how many to deal. NONE if a topic is named twice."""
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
def _deal_all(d: ScratchSpace, group: int, topics: IntArray, total: int) -> None:
    """Assign a group without claims: members take turns, by id, until everything is dealt."""
    first = d.member_start[group]
    members = d.member_start[group + 1] - first
    partitions = d.topic_partitions[d.topic_start[group] :]
    start = d.start[first : first + members + 1]
    seats = d.order[:members]
    next_at = d.next_at[:members]
    out_topic = d.topic
    out_partition = d.partition
    for member in range(members):
        seats[member] = member
    sort_by_rank(d.member_rank[first : first + members], seats, members)
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
def _clear_slots(d: ScratchSpace, total: int) -> None:
    words = total // WORD + 1
    d.held[:words] = 0
    d.given[:words] = 0


@kernel
def _settle(d: ScratchSpace, first: int, members: int) -> bool:
    """Record who holds what; False if two claim the same partition, or one claims a partition that does not exist."""
    base, place, held, claim_topic, claim_partition = d.base, d.place, d.held, d.claim_topic, d.claim_partition
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
def _walk(d: ScratchSpace, first: int, members: int, total: int) -> bool:
    """Fill `order` in the leader's iteration order, if it matters: more members could keep an extra one than may.

    Return False if the order of an unknown hash map decides.
    """
    spare = total % members
    ample = 0
    for member in range(members):
        d.order[member] = member
        ample += 1 if d.owned[member] > total // members else 0
    if spare == 0 or ample <= spare:
        return True
    return map_order(d.member_hash[first : first + members], d.order, members) != TREE


@kernel
def _void(g: GroupView, claims: Claims, racked: bool) -> None:
    """Void claims to what two members claim in one generation, and, if racks matter, to what is far from the member."""
    holder = claims.holder
    voids = racked
    for topic in range(g.topics if racked else 0):
        for slot in range(claims.base[topic], min(claims.base[topic + 1], len(holder))):
            if holder[slot] >= 0 and far_from(g, holder[slot], topic, slot - claims.base[topic]):
                holder[slot] = voided(holder[slot])
    for slot in range(claims.total, len(holder) if racked else 0):
        if holder[slot] >= 0 and far_from(g, holder[slot], 0, -1):
            holder[slot] = voided(holder[slot])
    for slot in range(len(holder)):
        if holder[slot] >= 0 and claims.contested[slot]:
            holder[slot] = voided(holder[slot])
            voids = True
    if not voids:
        return
    for member in range(g.members):
        for claim in range(g.claim_start[member], g.claim_start[member + 1]):
            slot = slot_of(g, claims.base, claims.phantom, g.claim_topic[claim], g.claim_partition[claim])
            if slot != NONE and holder[slot] != member:
                claims.dropped[claim - g.claim_start[0]] = True


@kernel
def _mark_claims(d: ScratchSpace, g: GroupView, claims: Claims) -> None:
    """Record who holds what and who must give up what, by the settled claims."""
    d.owned[: g.members] = 0
    d.ordered[: g.members] = False
    for slot in range(len(claims.holder)):
        member = claims.holder[slot]
        if member >= 0:
            d.owned[member] += 1
        if slot >= claims.total:
            continue
        if member >= 0:
            d.held[slot // WORD] |= 1 << (slot % WORD)
        elif member < NONE:
            d.given[slot // WORD] |= 1 << (slot % WORD)
            d.giver[slot] = NONE if claims.contested[slot] else voided(member)


@kernel
def share_out(d: ScratchSpace, first: int, members: int, total: int) -> int:
    """Decide how many of its owned partitions each member keeps; the first P % n above the quota keep one more.

    Return how many are kept in all.
    """
    owned, size, under, exact, counts = d.owned, d.size, d.under, d.exact, d.counts
    low = total // members
    spare = total % members
    high = low + (1 if spare > 0 else 0)
    counts[:] = 0
    for member in d.order[:members]:
        if owned[member] < low:
            size[member] = owned[member]
            under[counts[UNDER]] = member
            counts[UNDER] += 1
        elif owned[member] >= high and counts[ABOVE] < spare:
            size[member] = high
            counts[ABOVE] += 1
            # Kafka clears `unfilledMembersWithExactlyMinQuotaPartitions` with the last spare partition: members at the
            # quota stay there.
            if counts[ABOVE] == spare:
                counts[EXACT] = 0
        else:
            size[member] = low
            if counts[ABOVE] < spare:
                exact[counts[EXACT]] = member
                counts[EXACT] += 1
    rank = d.member_rank[first : first + members]
    sort_by_rank(rank, under, counts[UNDER])
    sort_by_rank(rank, exact, counts[EXACT])
    kept = 0
    for member in range(members):
        d.kept[member] = size[member]
        kept += size[member]
    return int(kept)


@kernel
def _line_up(d: ScratchSpace, first: int, members: int, size: LongArray) -> None:
    """Begin a list of `size` partitions for each member."""
    to = d.start[first]
    for member in range(members):
        d.next_at[member] = to
        to += size[member]
        d.start[first + member + 1] = to


@kernel
def _keep(d: ScratchSpace, first: int, members: int, topics: IntArray, dropped: Mask) -> None:
    """Write the lowest partitions of each member, by number, then topic, and mark those that it must give up."""
    claim_topic, claim_partition, out_topic, out_partition = d.claim_topic, d.claim_partition, d.topic, d.partition
    for member in range(members):
        low = d.claim_start[first + member]
        high = d.claim_start[first + member + 1]
        to = d.next_at[member]
        kept = d.kept[member]
        d.next_at[member] = to + kept
        if d.ordered[member]:
            for at in range(kept):
                out_topic[to + at] = claim_topic[low + at]
                out_partition[to + at] = claim_partition[low + at]
            for claim in range(low + kept, high):
                _give_up(d, member, claim_topic[claim], claim_partition[claim])
            continue
        count = _sort_claims(d, low, high, d.claim_start[first], dropped)
        keys = d.keys
        for at in range(min(kept, count)):
            out_topic[to + at] = topics[keys[at] & 0x7FFFFFFF]
            out_partition[to + at] = keys[at] >> 31
        for at in range(kept, count):
            _give_up(d, member, topics[keys[at] & 0x7FFFFFFF], keys[at] >> 31)


@kernel
def _sort_claims(d: ScratchSpace, low: int, high: int, of_group: int, dropped: Mask) -> int:
    """Fill `keys` with (number << 31) | place of the topic, for each claim that counts, ascending; return how many."""
    count = 0
    for claim in range(low, high):
        topic = d.claim_topic[claim]
        if d.base[topic + 1] > d.base[topic] and not (len(dropped) > 0 and dropped[claim - of_group]):
            d.keys[count] = (int(d.claim_partition[claim]) << 31) | int(d.place[topic])
            count += 1
    sort(d.keys[:count])
    return count


@kernel
def _give_up(d: ScratchSpace, member: int, topic: int, number: int) -> None:
    slot = d.base[topic] + number
    if number >= 0 and slot < d.base[topic + 1]:
        d.held[slot // WORD] &= ~(1 << (slot % WORD))
        d.given[slot // WORD] |= 1 << (slot % WORD)
        d.giver[slot] = member


@kernel
def _pass_over_phantom(d: ScratchSpace, g: GroupView, topics: IntArray, claims: Claims, first: int) -> None:
    """Let go of all that follows the first kept partition that does not exist, though its owners keep it.

    Kafka iterates over all partitions beside the sorted kept ones and never gets past a kept one that does not exist:
    everything after it is dealt, kept or not.
    """
    if len(claims.phantom) == 0:
        return
    stuck = 1 << 62
    for at in range(d.start[first], d.start[first + g.members]):
        topic, number = d.topic[at], d.partition[at]
        if not 0 <= number < d.base[topic + 1] - d.base[topic]:
            stuck = min(stuck, phantom_key(g, topic, number))
    for topic in topics:
        if phantom_key(g, topic, 0) > stuck:
            for slot in range(d.base[topic], d.base[topic + 1]):
                d.held[slot // WORD] &= ~(1 << (slot % WORD))


@kernel
def _find_free(d: ScratchSpace, topics: IntArray) -> int:
    """List the partitions left to deal, by topic name and number; return how many."""
    held = d.held
    count = 0
    for topic in topics:
        low = d.base[topic]
        slot = low
        while slot < d.base[topic + 1]:
            bit = slot % WORD
            if bit == 0 and held[slot // WORD] == FULL:
                slot += WORD
                continue
            if (held[slot // WORD] >> bit) & 1 == 0:
                d.free_topic[count] = topic
                d.free_partition[count] = slot - low
                count += 1
            slot += 1
    return count


@kernel
def take_turns(d: ScratchSpace, low: int, free: int, dealt: int) -> bool:
    """Deal in turns to members below the quota until they reach it; then one each to members that may have one more.

    `dealt` of the `free` partitions have a taker already. False if there is none for some.
    """
    size, under, exact, taker = d.size, d.under, d.exact, d.taker
    unfilled = d.counts[UNDER]
    filled = d.counts[EXACT]
    while unfilled > 0 and dealt < free:
        left = 0
        for at in range(min(unfilled, free - dealt)):
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
    if free - dealt > filled:
        return False
    for at in range(free - dealt):
        taker[dealt + at] = exact[at]
        size[exact[at]] += 1
    return True


@kernel
def _move_apart(d: ScratchSpace, first: int, members: int) -> None:
    """Make room behind what each member keeps for what it was dealt; the last lists move first."""
    start = d.start[first : first + members + 1]
    for member in range(members):
        start[member + 1] = start[member] + d.size[member]
    for member in range(members - 1, -1, -1):
        end = d.next_at[member]
        d.next_at[member] = start[member] + d.kept[member]
        shift = d.next_at[member] - end
        for at in range(end - 1, end - d.kept[member] - 1, -1):
            d.topic[at + shift] = d.topic[at]
            d.partition[at + shift] = d.partition[at]


@kernel
def _add(d: ScratchSpace, free: int) -> None:
    """Write new partitions in the order dealt, behind what members keep.

    Withholds those that another member must give up first (KIP-429, "Proposed Changes", step 2.4).
    """
    for at in range(free):
        member = d.taker[at]
        topic = d.free_topic[at]
        slot = d.base[topic] + d.free_partition[at]
        to = d.next_at[member]
        d.next_at[member] = to + 1
        d.topic[to] = topic
        d.partition[to] = d.free_partition[at]
        d.withheld[to] = (d.given[slot // WORD] >> (slot % WORD)) & 1 != 0 and d.giver[slot] != member


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
    free_topic[:] = free_topic[order]
    free_partition[:] = free_partition[order]


@kernel
def deal_near(
    d: ScratchSpace, g: GroupView, total: int, free_topic: IntArray, free_partition: IntArray, taker: IntArray
) -> int:
    """Deal what can be dealt near a replica within the quotas; put dealt partitions first and count them.

    Members below the quota take turns; if none of them is near, the first member at the quota that is near.
    """
    low = total // g.members
    spare = total % g.members
    turn = 0
    for at in range(len(taker)):
        taker[at] = NONE
        found = _next_near(g, d.under, d.counts[UNDER], turn, free_topic[at], free_partition[at])
        if found != NONE:
            taker[at] = d.under[found]
            turn = _give_under(d, found, low, spare)
            continue
        found = _next_near(g, d.exact, d.counts[EXACT], 0, free_topic[at], free_partition[at])
        if found != NONE:
            taker[at] = d.exact[found]
            _give_exact(d, found, low, spare)
    order = np.concatenate((np.flatnonzero(taker != NONE), np.flatnonzero(taker == NONE)))
    free_topic[:] = free_topic[order]
    free_partition[:] = free_partition[order]
    taker[:] = taker[order]
    return int((taker != NONE).sum())


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
def _give_under(d: ScratchSpace, found: int, low: int, spare: int) -> int:
    """Give to a member below the quota; return the position of the next turn."""
    member = d.under[found]
    d.size[member] += 1
    if d.size[member] < low:
        return int((found + 1) % d.counts[UNDER])
    _leave(d.under, d.counts, UNDER, found)
    if spare > 0 and d.counts[ABOVE] < spare:
        d.exact[d.counts[EXACT]] = member
        d.counts[EXACT] += 1
    return int(found % d.counts[UNDER]) if d.counts[UNDER] > 0 else 0


@kernel
def _give_exact(d: ScratchSpace, found: int, low: int, spare: int) -> None:
    """Give to a member at the quota; once no spare partition is left, no member at the quota gets more."""
    member = d.exact[found]
    d.size[member] += 1
    if d.size[member] == low + (1 if spare > 0 else 0):
        _leave(d.exact, d.counts, EXACT, found)
        d.counts[ABOVE] += 1
        if d.counts[ABOVE] == spare:
            d.counts[EXACT] = 0


@kernel
def _leave(line: IntArray, counts: LongArray, which: int, found: int) -> None:
    for at in range(found, counts[which] - 1):
        line[at] = line[at + 1]
    counts[which] -= 1
