"""Moving partitions for balance, as Kafka's general algorithm does it, without asking before each whether to stop.

Kafka stops as soon as the assignment is balanced: no member could take a partition from one that has two more. Where
nothing is out of order, that is exactly when no partition would move any more, so the question need not be asked. Out
of order are claims to partitions that do not exist, and older claims of members that no longer subscribe: `strict`
then follows Kafka step by step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.holdings import REVOCATION, STATUS, STRICT, Holdings, move
from groupledger.core.assignors.movements import Movements, no_movements, record, to_move_instead
from groupledger.core.assignors.outcome import Status
from groupledger.core.assignors.sorting import sort
from groupledger.core.assignors.strict import pass_strictly
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

OK = int(Status.OK)
NOT_EMULATED = int(Status.ORDER_NOT_EMULATED)


@kernel
def rebalance(h: Holdings, initializing: bool) -> int:
    """Move what was handed out, then anything; undo it all if a group that existed is no better off. A Status."""
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
    """Most minus least partitions of the members that take part."""
    least = np.int64(1) << 62
    most = np.int64(0)
    for place in range(len(h.size)):
        if h.active[place]:
            least = min(least, h.size[place])
            most = max(most, h.size[place])
    return int(most - least)


@kernel
def heaviest(h: Holdings) -> int:
    """Most partitions of any member."""
    most = 0
    for place in range(len(h.size)):
        most = max(most, h.size[place])
    return int(most)


@kernel
def _score(h: Holdings, size: LongArray) -> int:
    """Sum of the differences of all pairs of members that take part, in 32 bits as in Java."""
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
    """Passes over all contended partitions until one moves nothing; whether anything moved."""
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
    """One walk over the contended partitions, fewest subscribers first; how many moved."""
    n = len(h.size)
    most = heaviest(h)
    moves = 0
    for topic in h.topics:
        if h.crowd[topic] < 2:
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
    """Who should have the partition instead: its previous owner, or the subscriber with the fewest; else NONE."""
    n = len(h.size)
    size = h.size[h.owner[slot]]
    if len(h.previous) > 0:
        previous = h.previous[slot]
        if previous != NONE and size > h.size[previous] + 1:
            return int(previous)
    return int(least % n) if size > least // n + 1 else NONE


@kernel
def _least(h: Holdings, topic: int) -> int:
    """Of the topic's subscribers, the lowest size * members + place."""
    n = len(h.size)
    least = np.int64(1) << 62
    for at in range(h.heads[topic], h.heads[topic + 1]):
        least = min(least, h.size[h.seats[at]] * n + h.seats[at])
    return int(least)


@kernel
def _plant(h: Holdings, topic: int, tree: LongArray, leaf: IntArray) -> None:
    """A tournament of the topic's subscribers: tree[1] is the winner, entrant i stands at tree[count + i]."""
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
    """Move the partition, or the one that returns in its stead; the place it came from."""
    really = to_move_instead(mv, h.base, h.g.topic_hash, topic, slot, h.owner[slot], target)
    source = int(h.owner[really])
    move(h, really, target)
    record(mv, h.base, h.g.topic_hash, topic, really, source, target)
    return source
