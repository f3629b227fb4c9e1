"""Compute the order in which the coordinator writes a member's new target: its maps' iteration after the changes.

A member without changes keeps its map. For another, Kafka copies it (`new HashMap(size)`, `new HashSet(set)`) before
the first change; topics come back by `computeIfAbsent`, which puts new keys before their bucket and doubles a full
table at the call after, also one for a known key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.assignors.server.order import (
    after_changes,
    copy_size,
    room,
    sort_by_bucket,
    table_size,
    walk_added,
)
from groupledger.core.assignors.server.walks import ServerGroupView
from groupledger.core.javaorder import LEAST_CAPACITY, TREE, TREE_CHAIN, spread
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

NONE_YET = -1


class MemberTarget(NamedTuple):
    """One member: its target in iteration order, its log rows (topic, partition or ~partition) in order of time."""

    owned_topic: IntArray
    owned_partition: IntArray
    row_topic: IntArray
    row_partition: IntArray


class MapSlots(NamedTuple):
    """The sets of a member's map, copied ones first; a topic that is lost and comes back has a new set."""

    topic: IntArray
    size: IntArray
    low: IntArray  # its part of the owned partitions that were copied in
    high: IntArray
    row: IntArray  # [rows] the slot that a row changes


@kernel
def fresh_sizes(g: ServerGroupView, homogeneous: bool) -> LongArray:
    """Return the buckets of the set Kafka makes for a member's new topic: 16, or (heterogeneous) by its fair share."""
    sizes = np.full(g.topics, LEAST_CAPACITY, np.int64)
    if homogeneous:
        return sizes
    subscribers = np.zeros(g.topics, np.int64)
    for at in range(g.subscription_start[0], g.subscription_start[g.members]):
        subscribers[g.subscription_topic[at]] += 1
    for topic in range(g.topics):
        if subscribers[topic] > 0 and g.partitions[topic] >= 0:
            sizes[topic] = table_size(room((g.partitions[topic] + subscribers[topic] - 1) // subscribers[topic]))
    return sizes


@kernel
def write_record(
    id_hash: IntArray, fresh: LongArray, slot_of: IntArray, m: MemberTarget, topic: IntArray, partition: IntArray
) -> bool:
    """Fill `topic`, `partition` with a changed member's target in iteration order; False if a bucket overflows.

    `slot_of` [topics] is scratch, filled with NONE_YET before and after.
    """
    slots, count = _copied(m, slot_of)
    capacity, count = _replay_map(id_hash, slot_of, m, slots, count)
    for slot in range(count):
        slot_of[slots.topic[slot]] = NONE_YET
    if capacity == TREE:
        return False
    heads, rows = _rows_by_slot(slots, count)
    to = 0
    for slot in _walk_map(id_hash, slots, count, capacity):
        copied = m.owned_partition[slots.low[slot] : slots.high[slot]]
        changes = m.row_partition[rows[heads[slot] : heads[slot + 1]]]
        capacity = copy_size(len(copied)) if len(copied) > 0 else fresh[slots.topic[slot]]
        size = slots.size[slot]
        topic[to : to + size] = slots.topic[slot]
        if not _write_set(copied, changes, capacity, partition[to : to + size]):
            return False
        to += size
    return True


@kernel
def _rows_by_slot(slots: MapSlots, count: int) -> tuple[LongArray, LongArray]:
    """Return the rows of each slot in order of time: those of slot s are at heads[s]:heads[s + 1]."""
    heads = np.zeros(count + 1, np.int64)
    for slot in slots.row:
        heads[slot + 1] += 1
    for slot in range(count):
        heads[slot + 1] += heads[slot]
    filled = heads.copy()
    rows = np.empty(len(slots.row), np.int64)
    for at in range(len(slots.row)):
        rows[filled[slots.row[at]]] = at
        filled[slots.row[at]] += 1
    return heads, rows


@kernel
def _copied(m: MemberTarget, slot_of: IntArray) -> tuple[MapSlots, int]:
    most = len(m.owned_topic) + len(m.row_topic)
    slots = MapSlots(
        np.empty(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.empty(len(m.row_topic), np.int32),
    )
    count = 0
    for at in range(len(m.owned_topic)):
        if at == 0 or m.owned_topic[at] != m.owned_topic[at - 1]:
            slots.topic[count] = m.owned_topic[at]
            slots.low[count] = at
            slot_of[m.owned_topic[at]] = count
            count += 1
        slots.high[count - 1] = at + 1
        slots.size[count - 1] += 1
    return slots, count


@kernel
def _replay_map(id_hash: IntArray, slot_of: IntArray, m: MemberTarget, slots: MapSlots, count: int) -> tuple[int, int]:
    """Return the map's capacity (or TREE) and the number of slots after all rows; set `slots.size` and `slots.row`."""
    hashes = id_hash[slots.topic[:count]]
    capacity = after_changes(hashes, np.ones(count, np.int32), count, table_size(count))
    if capacity == TREE:
        return TREE, count
    chains = _chains(id_hash, slots, count, capacity)
    size = count
    for at in range(len(m.row_topic)):
        topic = m.row_topic[at]
        slot = slot_of[topic]
        if m.row_partition[at] < 0:
            slots.size[slot] -= 1
            if slots.size[slot] == 0:
                slot_of[topic] = NONE_YET
                size -= 1
                chains[spread(id_hash[topic]) & (capacity - 1)] -= 1
        else:
            if 4 * size > 3 * capacity:
                capacity *= 2
                chains = _chains(id_hash, slots, count, capacity)
            if slot == NONE_YET:
                slot = count
                slots.topic[slot] = topic
                slot_of[topic] = slot
                count += 1
                size += 1
                chains[spread(id_hash[topic]) & (capacity - 1)] += 1
                if chains[spread(id_hash[topic]) & (capacity - 1)] >= TREE_CHAIN:
                    return TREE, count
            slots.size[slot] += 1
        slots.row[at] = slot
    return capacity, count


@kernel
def _chains(id_hash: IntArray, slots: MapSlots, count: int, capacity: int) -> IntArray:
    """Count the topics in each bucket."""
    chains = np.zeros(capacity, np.int32)
    for slot in range(count):
        if slots.size[slot] > 0:
            chains[spread(id_hash[slots.topic[slot]]) & (capacity - 1)] += 1
    return chains


@kernel
def _walk_map(id_hash: IntArray, slots: MapSlots, count: int, capacity: int) -> IntArray:
    """Return the slots in iteration order of their topics: per bucket the last computed first, then copied ones."""
    walked = np.empty(count, np.int32)
    alive = 0
    copied = 0
    while copied < count and slots.high[copied] > 0:
        copied += 1
    for slot in range(count - 1, copied - 1, -1):
        if slots.size[slot] > 0:
            walked[alive] = slot
            alive += 1
    for slot in range(copied):
        if slots.size[slot] > 0:
            walked[alive] = slot
            alive += 1
    sort_by_bucket(id_hash[slots.topic[:count]], walked, alive, capacity)
    return walked[:alive]


@kernel
def _write_set(copied: IntArray, changes: IntArray, capacity: int, partition: IntArray) -> bool:
    """Fill `partition` with a set in iteration order: copied partitions, then changes (~partition: removed)."""
    numbers = np.concatenate((copied, changes))
    if len(numbers) == len(partition):
        return walk_added(numbers, capacity, partition)
    signs = np.ones(len(numbers), np.int32)
    for at in range(len(numbers)):
        if numbers[at] < 0:
            numbers[at] = ~numbers[at]
            signs[at] = -1
    capacity = after_changes(numbers, signs, len(numbers), capacity)
    if capacity == TREE:
        return False
    seats = _survivors(numbers, signs)
    sort_by_bucket(numbers, seats, len(seats), capacity)
    for at in range(len(seats)):
        partition[at] = numbers[seats[at]]
    return True


@kernel
def _survivors(numbers: IntArray, signs: IntArray) -> IntArray:
    """Return the row of each remaining partition's last insertion, ascending."""
    by_number = np.argsort(numbers, kind="mergesort")
    last = np.zeros(len(numbers), np.bool_)
    for at in range(len(numbers)):
        if at + 1 == len(numbers) or numbers[by_number[at]] != numbers[by_number[at + 1]]:
            last[by_number[at]] = signs[by_number[at]] > 0
    return np.flatnonzero(last).astype(np.int32)
