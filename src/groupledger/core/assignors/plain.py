"""Assign sticky groups with identical subscriptions, no racks and no conflicting claims: `constrained`, but faster.

A group is plain if its members all send the same list of topics, without racks, and if no two claims conflict and
none names a partition that its topic does not have. Most groups are plain. The kernel works on the arrays of the whole
batch and one scratch space: a group of five members is done before arrays of its own would be allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.assignors.constrained import deal_in_turns, share_out, take_turns
from groupledger.core.assignors.group import Arrays, sort_by_rank
from groupledger.core.assignors.sorting import sort
from groupledger.core.batch import NONE
from groupledger.core.javaorder import TREE, map_order
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.assignors.lists import TargetLists
    from groupledger.core.batch import IntArray, LongArray

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
        _deal_all(d, first, members, d.topics[:known], d.topic_partitions[d.topic_start[group] :])
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
def _deal_all(d: ScratchSpace, first: int, members: int, topics: IntArray, partitions: IntArray) -> None:
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
