"""Move partitions for balance as Kafka's general algorithm does, without its balance check before every partition.

Kafka stops as soon as the assignment is balanced: no member could take a partition from one that has two more. In a
regular group that is exactly when no partition would move any more, so the check is unnecessary. Three irregularities
make Kafka's balance check, its early stop and its failures visible in the result: a kept partition that does not
exist, a partition that was handed out twice, and an older claim of an inactive member. For these, `pass_strictly`
follows Kafka step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.holdings import REVOCATION, STATUS, STRICT, Holdings, move, slot_at, subscribes
from groupledger.core.assignors.movements import Movements, no_movements, record, to_move_instead
from groupledger.core.assignors.outcome import Status
from groupledger.core.assignors.racks import has_replica
from groupledger.core.assignors.sorting import sort, sort_by
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

OK = int(Status.OK)
NOT_EMULATED = int(Status.ORDER_NOT_EMULATED)
NULL_POINTER = int(Status.NULL_POINTER)
NO_SUCH_ELEMENT = int(Status.NO_SUCH_ELEMENT)
NOBODY = -2


@kernel
def rebalance(h: Holdings, initializing: bool) -> int:
    """Move newly assigned partitions, then any; undo all if a group that existed is no better off: a Status."""
    if h.flag[STRICT] == 0 and _spread(h) <= 1:
        return OK
    mv = no_movements(h.slots)
    first = h.first.copy()
    after = h.after.copy()
    size = h.size.copy()
    if h.flag[REVOCATION] == 0:
        _reassign(h, mv, True)
    moved = _reassign(h, mv, False)
    if mv.state[2] == 1:
        return NOT_EMULATED
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
        if h.subscriber_count[topic] < 2:
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
            if _balanced(h) or h.flag[STATUS] != 0:
                return moves
            if target == NOBODY:
                h.flag[STATUS] = NULL_POINTER
                return moves
            _shift(h, mv, topic, slot, target)
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
def _shift(h: Holdings, mv: Movements, topic: int, slot: int, target: int) -> None:
    really = to_move_instead(mv, h.base, h.g.topic_hash, topic, slot, h.owner[slot], target)
    source = int(h.owner[really])
    move(h, really, target)
    record(mv, h.base, h.g.topic_hash, topic, really, source, target)


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
