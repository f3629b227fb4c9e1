"""Kafka's reassignment pass step by step, for groups in which something is out of order.

A kept partition that does not exist, one that was handed out twice, or an older claim of a member that takes no part:
each makes Kafka's balance check, its early stop and its failures visible in the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.holdings import STATUS, Holdings, move, slot_at, subscribes
from groupledger.core.assignors.movements import Movements, record, to_move_instead
from groupledger.core.assignors.outcome import Status
from groupledger.core.assignors.racks import has_replica
from groupledger.core.assignors.sorting import sort_by
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray

NULL_POINTER = int(Status.NULL_POINTER)
NO_SUCH_ELEMENT = int(Status.NO_SUCH_ELEMENT)
NOBODY = -2


@kernel
def pass_strictly(h: Holdings, mv: Movements, only_fresh: bool) -> int:
    """One walk over the contended partitions; how many moved. A failure stands in flag[STATUS]."""
    moves = 0
    for topic in h.topics:
        if h.crowd[topic] < 2:
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
    """Where the partition should go; NONE to stay; NOBODY where Kafka asks a member that takes no part, and fails."""
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
    """The first subscriber in the map's order that has at least two fewer than the owner."""
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
    """Kafka's check: no member could take a partition from one with two more. A failure stands in flag[STATUS]."""
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
    """The first partition the member could take from one with two more; NONE without."""
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
    """The members that take part, by size, then member id."""
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
    """Of each partition the last member, in the map's order, that takes part and has it; NONE without."""
    holder = np.full(h.slots, NONE, np.int32)
    for place in h.walk:
        if h.active[place]:
            node = h.first[place]
            while node != NONE:
                holder[slot_at(h, node)] = place
                node = h.after[node]
    return holder
