"""Compute orders specific to the coordinator's collections: TimelineHashMap slots, Uuid, tables of given capacity.

Worked example: `new HashSet(ids)` of 24 ids has 64 buckets on Java 17 (24 / 0.75 + 1 = 33, rounded up), 32 on 21.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.java_orders import LEAST_CAPACITY, TREE, TREE_CAPACITY, TREE_CHAIN, sort_by_bucket, spread
from groupledger.core.arrays.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import IntArray, LongArray


GOLDEN = 0x9E3779B97F4A7C15  # 2^64 / golden ratio: Kafka's BaseHashTable.findSlot
JOINED, LEFT, REWRITTEN = 1, -1, 0
"""How a record changes a group's map of members; a member's record written again takes its place."""


def timeline_keys(hashes: IntArray) -> LongArray:
    """Return upper 31 bits of the multiplied hash; its upper b bits are the slot in a TimelineHashMap of size 2^b."""
    wide = hashes.astype(np.int64).astype(np.uint64) * np.uint64(GOLDEN)
    return (wide >> np.uint64(33)).astype(np.int64)


def timeline_bits(changes: Iterable[int]) -> int:
    """Return log2 of a TimelineHashMap's capacity after such changes; it starts at 2, and never shrinks.

    Kafka asks whether there is room for one key more before it looks whether the key is new (`BaseHashTable`), so a
    member that is written again enlarges the map as one that joins does.
    """
    bits, size = 1, 0
    for change in changes:
        if change != LEFT and 3 * (size + 1) > 4 << bits:
            bits += 1
        size += change
    return bits


def uuid_halves(ids: Iterable[bytes]) -> tuple[LongArray, LongArray]:
    """Return the signed upper and lower longs of 16-byte ids."""
    halves = np.frombuffer(b"".join(ids), ">i8").astype(np.int64).reshape(-1, 2)
    return halves[:, 0], halves[:, 1]


def uuid_hashes(upper: LongArray, lower: LongArray) -> IntArray:
    """Compute `Uuid.hashCode`."""
    mixed = upper ^ lower
    return (mixed >> 32).astype(np.int32) ^ mixed.astype(np.int32)


@kernel
def table_size(least: int) -> int:
    """Return the buckets of `new HashMap(least)`: the next power of two, at least 1."""
    size = 1
    while size < least:
        size *= 2
    return size


@kernel
def copy_size(count: int) -> int:
    """Return the buckets of `new HashSet(collection)` on Java 17, which wrote the reference data."""
    return table_size(max(room(count), LEAST_CAPACITY))


@kernel
def room(count: int) -> int:
    """Return Kafka's and Java's usual request for `count` keys: `(int) (count / 0.75f + 1)`."""
    return count * 4 // 3 + 1


@kernel
def after_changes(hashes: IntArray, signs: IntArray, count: int, capacity: int) -> int:
    """Return the capacity after changes to a table of `capacity`: `put` of a new key (1), `remove` (-1).

    `hashes[:count]` are in order of time. TREE if a bucket overflows and becomes a tree.
    """
    chains = np.zeros(4 * max(count, capacity, TREE_CAPACITY // 2) if count > TREE_CHAIN else 0, np.int32)
    size = 0
    for at in range(count):
        size += signs[at]
        doublings = 0
        if len(chains) > 0:
            bucket = spread(hashes[at]) & (capacity - 1)
            chains[bucket] += signs[at]
            if signs[at] > 0 and chains[bucket] > TREE_CHAIN:
                if capacity >= TREE_CAPACITY:
                    return TREE
                doublings += 1
        if 4 * size > 3 * (capacity << doublings):
            doublings += 1
        capacity <<= doublings
        if doublings > 0 and len(chains) > 0:
            chains[:capacity] = 0
            for before in range(at + 1):
                chains[spread(hashes[before]) & (capacity - 1)] += signs[before]
    return capacity


@kernel
def after_load(size: int, capacity: int) -> int:
    """Return the capacity of a table of `capacity` after `put` of `size` keys, if no bucket ever overflows."""
    while 4 * size > 3 * capacity:
        capacity *= 2
    return capacity


@kernel
def walk(hashes: IntArray, keys: IntArray, count: int, capacity: int) -> int:
    """Reorder `keys[:count]` as a table of initial `capacity` iterates; return its final capacity, or TREE."""
    inserted = hashes[keys[:count]]
    capacity = after_changes(inserted, np.ones(count, np.int32), count, capacity)
    if capacity != TREE:
        sort_by_bucket(hashes, keys, count, capacity)
    return capacity


@kernel
def walk_added(numbers: IntArray, capacity: int, partition: IntArray) -> bool:
    """Do as `walk`, for the partitions of a set, at least one; False for TREE, and then no order is promised.

    One run of consecutive numbers, the usual case, needs no buckets.
    """
    count = len(numbers)
    ascending = True
    for at in range(1, count):
        ascending = ascending and numbers[at - 1] < numbers[at]
    if ascending and numbers[count - 1] - numbers[0] == count - 1:
        capacity = after_load(count, capacity)
        if numbers[count - 1] < capacity:
            partition[:] = numbers
            return True
    seats = np.arange(count).astype(np.int32)
    if walk(numbers, seats, count, capacity) == TREE:
        return False
    for at in range(count):
        partition[at] = numbers[seats[at]]
    return True
