"""Move partitions for balance as Kafka's general algorithm does, without its balance check before every partition.

Kafka stops as soon as the assignment is balanced: no member could take a partition from one that has two more. In a
regular group that is exactly when no partition would move any more, so the check is unnecessary. Two irregularities
make Kafka's balance check, its early stop and its failures visible in the result: a kept partition that does not
exist, after which partitions are handed out twice, and an older claim of a member that is inactive or no longer
subscribes. Such groups are STRICT: for them `pass_strictly` follows Kafka step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.java_orders import LEAST_CAPACITY, TREE_CAPACITY, TREE_CHAIN, partition_hash, spread
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.group import GroupView, Status, first_at_least, sort, sort_by
from groupledger.core.assignors.range_ import has_replica

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


OK = int(Status.OK)
NOT_EMULATED = int(Status.ORDER_NOT_EMULATED)
NULL_POINTER = int(Status.NULL_POINTER)
NO_SUCH_ELEMENT = int(Status.NO_SUCH_ELEMENT)
NOBODY = -2


@kernel
def rebalance(h: Holdings, initializing: bool) -> int:
    """Move newly assigned partitions, then any; undo all if a group that existed is no better off: a Status."""
    # AbstractStickyAssignor.balance. Loads at most one apart are balanced whatever the subscriptions (`isBalanced`).
    if h.flag[STRICT] == 0 and _spread(h) <= 1:
        return OK
    mv = no_movements(h.slots)
    first = h.first.copy()
    after = h.after.copy()
    size = h.size.copy()
    # What was just handed out moves first: its owner has not fetched from it yet. Kafka skips that pass where a member
    # must give up something anyway (`revocationRequired`).
    if h.flag[REVOCATION] == 0:
        _reassign(h, mv, True)
    moved = _reassign(h, mv, False)
    if mv.state[2] == 1:
        return NOT_EMULATED
    # KIP-54's second goal: a group that had an assignment keeps it unless the moves made it more even
    # (`getBalanceScore`). A first assignment has nothing to keep.
    if not initializing and moved and _score(h, h.size) >= _score(h, size):
        h.first[:] = first
        h.after[:] = after
        h.size[:] = size
    return int(h.flag[STATUS])


@kernel
def _spread(h: Holdings) -> int:
    """Return the difference between the most and the fewest partitions of active members."""
    least = np.int64(1) << 62
    most = np.int64(0)
    for place in range(len(h.size)):
        if h.active[place]:
            least = min(least, h.size[place])
            most = max(most, h.size[place])
    return int(most - least)


@kernel
def heaviest(h: Holdings) -> int:
    """Return the highest number of partitions of any member."""
    most = 0
    for place in range(len(h.size)):
        most = max(most, h.size[place])
    return int(most)


@kernel
def _score(h: Holdings, size: LongArray) -> int:
    """Sum the differences between all pairs of active members, in 32 bits as in Java."""
    sizes = size.copy()
    n = 0
    for place in range(len(size)):
        if h.active[place]:
            sizes[n] = size[place]
            n += 1
    sort(sizes[:n])
    score = 0
    for at in range(n):
        score += (2 * at - n + 1) * int(sizes[at])
    # `getBalanceScore` adds in an int, and may overflow.
    return ((score + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


@kernel
def _reassign(h: Holdings, mv: Movements, only_fresh: bool) -> bool:
    """Pass over all contended partitions until a pass moves nothing; return whether anything moved."""
    tree = np.empty(4 * len(h.size), np.int64)
    leaf = np.empty(len(h.size), np.int32)
    moved = False
    while True:
        strict = h.flag[STRICT] == 1
        moves = pass_strictly(h, mv, only_fresh) if strict else _pass(h, mv, only_fresh, tree, leaf)
        if moves == 0 or h.flag[STATUS] != OK:
            return moved
        moved = True


@kernel
def _pass(h: Holdings, mv: Movements, only_fresh: bool, tree: LongArray, leaf: IntArray) -> int:
    """Pass once over the contended partitions, fewest subscribers first; return how many moved."""
    n = len(h.size)
    most = heaviest(h)
    moves = 0
    for topic in h.topics:
        if h.subscriber_count[topic] < 2:  # `canParticipateInReassignment`: one potential owner, so it stays
            continue
        least = _least(h, topic)
        if len(h.previous) == 0 and most <= least // n + 1:
            continue
        planted = False
        for slot in range(h.base[topic], h.base[topic + 1]):
            if only_fresh and not h.fresh[slot]:
                continue
            target = _better(h, slot, least)
            if target == NONE:
                continue
            if not planted:
                _plant(h, topic, tree, leaf)
                planted = True
            moves += 1
            source = shift(h, mv, topic, slot, target)
            _update(h, topic, tree, leaf, source)
            _update(h, topic, tree, leaf, target)
            least = tree[1]
    return moves


@kernel
def _better(h: Holdings, slot: int, least: int) -> int:
    """Return the better owner: the previous one, or the subscriber with the fewest partitions; else NONE."""
    n = len(h.size)
    size = h.size[h.owner[slot]]
    # KIP-341: with generations in the claims, the owner of an earlier generation is known; it may still have state, so
    # `performReassignments` asks whether it is lighter by two before it looks for the lightest subscriber.
    if len(h.previous) > 0:
        previous = h.previous[slot]
        if previous != NONE and size > h.size[previous] + 1:
            return int(previous)
    return int(least % n) if size > least // n + 1 else NONE


@kernel
def _least(h: Holdings, topic: int) -> int:
    """Return the topic's subscriber with the lowest size * members + place."""
    n = len(h.size)
    least = np.int64(1) << 62
    for at in range(h.heads[topic], h.heads[topic + 1]):
        least = min(least, h.size[h.seats[at]] * n + h.seats[at])
    return int(least)


@kernel
def _plant(h: Holdings, topic: int, tree: LongArray, leaf: IntArray) -> None:
    """Build a tournament tree of the topic's subscribers: tree[1] is the winner, entrant i is at tree[count + i]."""
    n = len(h.size)
    low = h.heads[topic]
    count = h.heads[topic + 1] - low
    for at in range(count):
        place = h.seats[low + at]
        leaf[place] = at
        tree[count + at] = h.size[place] * n + place
    for at in range(count - 1, 0, -1):
        tree[at] = min(tree[2 * at], tree[2 * at + 1])


@kernel
def _update(h: Holdings, topic: int, tree: LongArray, leaf: IntArray, place: int) -> None:
    n = len(h.size)
    count = h.heads[topic + 1] - h.heads[topic]
    at = count + leaf[place]
    tree[at] = h.size[place] * n + place
    while at > 1:
        at //= 2
        tree[at] = min(tree[2 * at], tree[2 * at + 1])


@kernel
def shift(h: Holdings, mv: Movements, topic: int, slot: int, target: int) -> int:
    """Move the partition, or the one that returns in its place; return the place that it came from."""
    # `reassignPartition` moves what `getTheActualPartitionToBeMoved` names, so that no two partitions of a topic cross
    # between two members (KIP-54: otherwise it would not be sticky).
    really = to_move_instead(mv, h.base, h.g.topic_hash, topic, slot, h.owner[slot], target)
    source = int(h.owner[really])
    move(h, really, target)
    record(mv, h.base, h.g.topic_hash, topic, really, source, target)
    return source


@kernel
def pass_strictly(h: Holdings, mv: Movements, only_fresh: bool) -> int:
    """Pass once over the contended partitions; return how many moved. A failure is written to flag[STATUS]."""
    moves = 0
    for topic in h.topics:
        if h.subscriber_count[topic] < 2:
            continue
        for slot in range(h.base[topic], h.base[topic + 1]):
            if only_fresh and not h.fresh[slot]:
                continue
            target = _target(h, topic, slot)
            if target == NONE:
                continue
            # `performReassignments` asks `isBalanced` before each partition. With a partition that was handed out twice
            # it may say so while some partition could still move, and the pass ends there.
            if _balanced(h) or h.flag[STATUS] != 0:
                return moves
            if target == NOBODY:
                h.flag[STATUS] = NULL_POINTER
                return moves
            shift(h, mv, topic, slot, target)
            moves += 1
    return moves


@kernel
def _target(h: Holdings, topic: int, slot: int) -> int:
    """Return the new owner; NONE to stay; NOBODY where Kafka dereferences an inactive member (NullPointerException)."""
    owner = h.owner[slot]
    previous = h.previous[slot] if len(h.previous) > 0 else NONE
    if previous != NONE:
        if not (h.active[previous] and h.active[owner]):
            return NOBODY
        if h.size[owner] > h.size[previous] + 1:
            return int(previous)
    rack = h.g.member_rack[h.member_at[owner]]
    number = slot - h.base[topic]
    verdict = NONE
    # KIP-881: who is near a replica looks first for a lighter subscriber that is near one too. Either search only says
    # whether the partition moves; it goes to the lightest subscriber wherever that is, so `_pass` asks no racks.
    if h.racked and rack != NONE and has_replica(h.g, topic, number, rack):
        verdict = _first_lighter(h, topic, slot, True)
    if verdict == NONE:
        verdict = _first_lighter(h, topic, slot, False)
    return verdict if verdict < 0 else _lightest(h, topic)


@kernel
def _first_lighter(h: Holdings, topic: int, slot: int, near: bool) -> int:
    """Return the first subscriber, in the map's order, with at least two partitions fewer than the owner."""
    owner = h.owner[slot]
    for place in h.walk:
        if not subscribes(h, place, topic):
            continue
        rack = h.g.member_rack[h.member_at[place]]
        if near and (rack == NONE or not has_replica(h.g, topic, slot - h.base[topic], rack)):
            continue
        if not (h.active[place] and h.active[owner]):
            return NOBODY
        if h.size[owner] > h.size[place] + 1:
            return int(place)
    return NONE


@kernel
def _lightest(h: Holdings, topic: int) -> int:
    best = NONE
    for at in range(h.heads[topic], h.heads[topic + 1]):
        place = h.seats[at]
        if h.active[place] and (best == NONE or h.size[place] < h.size[best]):
            best = place
    return int(best)


@kernel
def _balanced(h: Holdings) -> bool:
    """Run Kafka's check: no member could take from one with two more. A failure is written to flag[STATUS]."""
    order = _lightest_first(h)
    if len(order) == 0:
        h.flag[STATUS] = NO_SUCH_ELEMENT
        return False
    if h.size[order[0]] >= h.size[order[-1]] - 1:
        return True
    holder = _holders(h)
    mine = np.full(h.slots, NONE, np.int32)
    for place in order:
        if h.size[place] == h.most[place]:
            continue
        node = h.first[place]
        while node != NONE:
            mine[slot_at(h, node)] = place
            node = h.after[node]
        verdict = _could_take(h, place, holder, mine)
        if verdict != NONE:
            return False
    return True


@kernel
def _could_take(h: Holdings, place: int, holder: IntArray, mine: IntArray) -> int:
    """Return the first partition that the member could take from one with two more; NONE if there is none."""
    subscription = h.g.subscription[h.member_at[place]]
    for entry in range(h.g.subscription_start[subscription], h.g.subscription_start[subscription + 1]):
        topic = h.g.topics_of[entry]
        for slot in range(h.base[topic], h.base[topic + 1]):
            if mine[slot] == place:
                continue
            if holder[slot] == NONE:
                h.flag[STATUS] = NULL_POINTER
                return int(slot)
            if h.size[place] + 1 < h.size[holder[slot]]:
                return int(slot)
    return NONE


@kernel
def _lightest_first(h: Holdings) -> IntArray:
    """Return the active members by size, then member id."""
    places = np.empty(len(h.size), np.int32)
    count = 0
    for place in range(len(h.size)):
        if h.active[place]:
            places[count] = place
            count += 1
    sort_by(h.size[places[:count]], places, count)
    return places[:count]


@kernel
def _holders(h: Holdings) -> IntArray:
    """Return, for each partition, the last active member in the map's order that has it; NONE if there is none."""
    holder = np.full(h.slots, NONE, np.int32)
    for place in h.walk:
        if h.active[place]:
            node = h.first[place]
            while node != NONE:
                holder[slot_at(h, node)] = place
                node = h.after[node]
    return holder


# Record which partitions moved between which members: Kafka moves another partition back rather than cross two.
#
# For each topic and pair (source, destination) Kafka keeps a hash set of the partitions that moved that way. When one
# is to move the opposite way, the set's first partition returns instead. Which is first depends on the set's table: it
# grows with additions and never shrinks.

TREE_REMAINS = 6  # a tree with at most this many entries is surely a list again


class Movements(NamedTuple):
    """Sets are numbered; slots of a set are chained in the order of their addition."""

    bucket: IntArray  # first set of each bucket of our own table, NONE if empty
    set_next: IntArray  # next set in the same bucket
    set_topic: IntArray
    set_source: IntArray
    set_target: IntArray
    set_size: IntArray
    set_capacity: IntArray  # of Java's table
    set_first: IntArray
    set_last: IntArray
    set_of: IntArray  # [slots], NONE for a partition that has not moved
    after: IntArray  # [slots]
    before: IntArray  # [slots]
    state: LongArray  # [3]: sets made, head of the free list of sets, 1 if a set's order is not emulated


@kernel
def no_movements(slots: int) -> Movements:
    """Allocate room for as many sets as there are slots; memory is touched only as partitions move."""
    buckets = 16
    while buckets < slots // 4:
        buckets *= 2
    state = np.zeros(3, np.int64)
    state[1] = NONE
    return Movements(
        np.full(buckets, NONE, np.int32),
        np.empty(slots + 1, np.int32),
        np.empty(slots + 1, np.int32),
        np.empty(slots + 1, np.int32),
        np.empty(slots + 1, np.int32),
        np.empty(slots + 1, np.int32),
        np.empty(slots + 1, np.int32),
        np.empty(slots + 1, np.int32),
        np.empty(slots + 1, np.int32),
        np.full(slots, NONE, np.int32),
        np.empty(slots, np.int32),
        np.empty(slots, np.int32),
        state,
    )


@kernel
def to_move_instead(
    mv: Movements, base: LongArray, topic_hash: IntArray, topic: int, slot: int, source: int, target: int
) -> int:
    """Return the slot that really moves when `slot` of `topic` is to move from source to target."""
    # A partition that moved before counts from where it began: a -> b -> c is one move from a to c.
    if mv.set_of[slot] != NONE:
        source = mv.set_source[mv.set_of[slot]]
    back = _find(mv, topic, target, source)
    return slot if back == NONE else _first(mv, base, topic_hash, back)


@kernel
def record(
    mv: Movements, base: LongArray, topic_hash: IntArray, topic: int, slot: int, source: int, target: int
) -> None:
    """Record that `slot` moved from source to target; two moves become one, or none if the partition has returned."""
    known = mv.set_of[slot]
    if known != NONE:
        source = mv.set_source[known]
        _remove(mv, slot)
        if source == target:
            return
    _add(mv, base, topic_hash, topic, slot, source, target)


@kernel
def _bucket(mv: Movements, topic: int, source: int, target: int) -> int:
    mixed = (int(topic) * 1_000_003 + int(source)) * 1_000_003 + int(target)
    return (mixed ^ (mixed >> 21)) & (len(mv.bucket) - 1)


@kernel
def _find(mv: Movements, topic: int, source: int, target: int) -> int:
    each = mv.bucket[_bucket(mv, topic, source, target)]
    while each != NONE:
        if mv.set_topic[each] == topic and mv.set_source[each] == source and mv.set_target[each] == target:
            return int(each)
        each = mv.set_next[each]
    return NONE


@kernel
def _make(mv: Movements, topic: int, source: int, target: int) -> int:
    made = mv.state[1]
    if made != NONE:
        mv.state[1] = mv.set_next[made]
    else:
        made = mv.state[0]
        mv.state[0] += 1
    bucket = _bucket(mv, topic, source, target)
    mv.set_next[made] = mv.bucket[bucket]
    mv.bucket[bucket] = made
    mv.set_topic[made] = topic
    mv.set_source[made] = source
    mv.set_target[made] = target
    mv.set_size[made] = 0
    mv.set_capacity[made] = LEAST_CAPACITY
    mv.set_first[made] = NONE
    mv.set_last[made] = NONE
    return int(made)


@kernel
def _drop(mv: Movements, each: int) -> None:
    bucket = _bucket(mv, mv.set_topic[each], mv.set_source[each], mv.set_target[each])
    if mv.bucket[bucket] == each:
        mv.bucket[bucket] = mv.set_next[each]
    else:
        at = mv.bucket[bucket]
        while mv.set_next[at] != each:
            at = mv.set_next[at]
        mv.set_next[at] = mv.set_next[each]
    mv.set_next[each] = mv.state[1]
    mv.state[1] = each


@kernel
def _add(mv: Movements, base: LongArray, topic_hash: IntArray, topic: int, slot: int, source: int, target: int) -> None:
    into = _find(mv, topic, source, target)
    if into == NONE:
        into = _make(mv, topic, source, target)
    _grow(mv, base, topic_hash, into, slot)
    mv.set_of[slot] = into
    mv.after[slot] = NONE
    mv.before[slot] = mv.set_last[into]
    if mv.set_last[into] == NONE:
        mv.set_first[into] = slot
    else:
        mv.after[mv.set_last[into]] = slot
    mv.set_last[into] = slot
    mv.set_size[into] += 1


@kernel
def _remove(mv: Movements, slot: int) -> None:
    of = mv.set_of[slot]
    before = mv.before[slot]
    after = mv.after[slot]
    if before == NONE:
        mv.set_first[of] = after
    else:
        mv.after[before] = after
    if after == NONE:
        mv.set_last[of] = before
    else:
        mv.before[after] = before
    mv.set_of[slot] = NONE
    mv.set_size[of] -= 1
    if mv.set_size[of] == 0:
        _drop(mv, of)


@kernel
def _grow(mv: Movements, base: LongArray, topic_hash: IntArray, into: int, slot: int) -> None:
    """Double the table past three quarters, or, while it is small, when a bucket gets its ninth entry."""
    capacity = mv.set_capacity[into]
    size = mv.set_size[into]
    if size >= TREE_CHAIN and capacity < TREE_CAPACITY:
        mates = 0
        here = _place(mv, base, topic_hash, into, slot)
        each = mv.set_first[into]
        while each != NONE:
            mates += 1 if _place(mv, base, topic_hash, into, each) == here else 0
            each = mv.after[each]
        if mates >= TREE_CHAIN:
            capacity *= 2
    if (size + 1) * 4 > capacity * 3:
        capacity *= 2
    mv.set_capacity[into] = capacity


@kernel
def _place(mv: Movements, base: LongArray, topic_hash: IntArray, of: int, slot: int) -> int:
    """Return the bucket of a partition in Java's table of the set."""
    topic = mv.set_topic[of]
    return spread(partition_hash(topic_hash[topic], slot - base[topic])) & (int(mv.set_capacity[of]) - 1)


@kernel
def _first(mv: Movements, base: LongArray, topic_hash: IntArray, of: int) -> int:
    """Return what Java's iterator returns first: the earliest addition in the lowest bucket."""
    best = NONE
    lowest = mv.set_capacity[of]
    mates = 0
    each = mv.set_first[of]
    while each != NONE:
        place = _place(mv, base, topic_hash, of, each)
        if place < lowest:
            best = each
            lowest = place
            mates = 0
        mates += 1 if place == lowest else 0
        each = mv.after[each]
    if mates > TREE_REMAINS and mv.set_capacity[of] >= TREE_CAPACITY:
        mv.state[2] = 1
    return int(best)


# Keep the general sticky algorithm's working state: who holds what, in which order, and who could hold it.


class Holdings(NamedTuple):
    """The state of one group. A member's place is its position in the order of member ids (`member_at`).

    Slots are partitions as in `claims`. A list entry ("node") is its slot, or, for a partition that Kafka hands out
    although a member keeps it, one of the numbers after the slots.
    """

    g: GroupView
    member_at: IntArray  # [places]
    walk: IntArray  # places in iteration order of the leader's map
    base: LongArray  # [topics + 1]
    total: int  # partitions that exist
    slots: int  # number of those and the phantoms
    topics: IntArray  # fewest subscribers first, then by name
    subscriber_count: IntArray  # [topics], subscription entries that name it; a topic listed twice counts twice
    heads: LongArray  # [topics + 1]
    seats: IntArray  # places of the subscribers of each topic, ascending
    most: LongArray  # [places], partitions of all the member's topics
    racked: bool
    size: LongArray  # [places]
    first: IntArray  # [places], nodes
    last: IntArray  # [places]
    after: IntArray  # [nodes]
    before: IntArray  # [nodes]
    slot_of_extra: IntArray
    topic_at: IntArray  # [total], topic of each partition
    owner: IntArray  # [slots], place that received it last
    kept: NDArray[np.bool_]  # [slots], some member keeps it
    fresh: NDArray[np.bool_]  # [total], to be handed out
    previous: IntArray  # [total], place of the latest claim of an older generation; empty if there is none
    active: NDArray[np.bool_]  # [places], takes part in reassignment
    flag: LongArray  # see below


REVOCATION = 0  # a claim was dropped because its member may not keep it
EXTRAS = 1  # entries handed out twice so far
STRICT = 2  # the group is irregular: follow Kafka step by step
STATUS = 3


@kernel
def append(h: Holdings, place: int, node: int) -> None:
    """Add an entry at the end of the member's list."""
    h.after[node] = NONE
    h.before[node] = h.last[place]
    if h.last[place] == NONE:
        h.first[place] = node
    else:
        h.after[h.last[place]] = node
    h.last[place] = node
    h.size[place] += 1


@kernel
def slot_at(h: Holdings, node: int) -> int:
    """Return the partition of a list entry."""
    return node if node < h.slots else int(h.slot_of_extra[node - h.slots])


@kernel
def hand_out(h: Holdings, place: int, slot: int) -> None:
    """Give a partition to a member, whether or not another member keeps it."""
    node = slot
    if h.kept[slot]:
        node = int(h.slots + h.flag[EXTRAS])
        h.slot_of_extra[h.flag[EXTRAS]] = slot
        h.flag[EXTRAS] += 1
    append(h, place, node)
    h.owner[slot] = place


@kernel
def move(h: Holdings, slot: int, target: int) -> None:
    """Take the partition from the list of its owner and add it to the target's."""
    source = h.owner[slot]
    node = _find_holding(h, source, slot)
    _unlink(h, source, node)
    append(h, target, node)
    h.owner[slot] = target


@kernel
def _find_holding(h: Holdings, place: int, slot: int) -> int:
    """Return the first entry of the partition in the member's list."""
    if h.flag[EXTRAS] == 0:
        return slot
    node = h.first[place]
    while slot_at(h, node) != slot:
        node = h.after[node]
    return int(node)


@kernel
def _unlink(h: Holdings, place: int, node: int) -> None:
    before = h.before[node]
    after = h.after[node]
    if before == NONE:
        h.first[place] = after
    else:
        h.after[before] = after
    if after == NONE:
        h.last[place] = before
    else:
        h.before[after] = before
    h.size[place] -= 1


@kernel
def subscribes(h: Holdings, place: int, topic: int) -> bool:
    """Return whether the member at `place` names the topic."""
    high = h.heads[topic + 1]
    at = first_at_least(h.seats, h.heads[topic], high, place)
    return bool(at < high and h.seats[at] == place)
