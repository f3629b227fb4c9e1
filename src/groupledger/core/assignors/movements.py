"""Record which partitions moved between which members: Kafka moves another partition back rather than cross two.

For each topic and pair (source, destination) Kafka keeps a hash set of the partitions that moved that way. When one
is to move the opposite way, the set's first partition returns instead. Which is first depends on the set's table: it
grows with additions and never shrinks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.batch import NONE
from groupledger.core.javaorder import LEAST_CAPACITY, TREE_CAPACITY, TREE_CHAIN, partition_hash, spread
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

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
