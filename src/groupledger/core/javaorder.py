"""Compute Java's orders: String.hashCode, comparison by UTF-16 unit, and the iteration order of a HashMap.

In Kafka's assignors, hash maps decide ties (which member keeps the extra partition, which topic comes first in a list),
so their answers depend on these orders. Everything is 32-bit and deterministic: equal input, equal order.

Worked example: "Aa" and "BB" both hash to 2112, so a map holds them in one bucket, in insertion order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.kernels import kernel, run
from groupledger.core.textranks import rank_all

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray

LEAST_CAPACITY = 16
TREE_CHAIN = 8  # a bucket with this many keys becomes a tree at the next one (or doubles a small table)
TREE_CAPACITY = 64
TREE = -1

EIGHT = 8
POWER_8 = 31**8 & 0xFFFFFFFF


def hash_texts(texts: Sequence[str]) -> IntArray:
    """Compute `String.hashCode` of each text."""
    return hash_utf8(*utf8(texts))


def rank_texts(texts: Sequence[str]) -> IntArray:
    """Return the dense rank of each text in Java's order (by UTF-16 unit); equal texts share a rank."""
    keys = [text.encode("utf-16-be", "surrogatepass") for text in texts]
    ranks = {key: rank for rank, key in enumerate(sorted(set(keys)))}
    return np.array([ranks[key] for key in keys], np.int32)


def rank_present(texts: Sequence[str | None], absent: int) -> IntArray:
    """Rank texts like `rank_texts`; missing ones get `absent`."""
    ranks = np.full(len(texts), absent, np.int32)
    present = [at for at, text in enumerate(texts) if text is not None]
    ranks[present] = rank_texts([text for text in texts if text is not None])
    return ranks


def utf8(texts: Sequence[str]) -> tuple[LongArray, NDArray[np.uint8]]:
    """Return offsets [n+1] and bytes, in Arrow's layout of strings."""
    encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(each) for each in encoded], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(encoded), np.uint8)


def hash_utf8(offsets: LongArray, data: NDArray[np.uint8]) -> IntArray:
    """Compute `String.hashCode` of strings laid out as offsets [n+1] and UTF-8 bytes."""
    hashes = np.empty(len(offsets) - 1, np.int32)
    run(_hash_all, offsets, data, hashes, cells=len(data))
    return hashes


def rank_utf8(offsets: LongArray, data: NDArray[np.uint8], segment_start: LongArray) -> IntArray:
    """Return the dense rank by UTF-16 unit of each string inside its segment (a group); equal strings share a rank."""
    ranks = np.empty(len(offsets) - 1, np.int32)
    run(rank_all, offsets, data, segment_start, ranks, cells=len(data))
    return ranks


@kernel
def _hash_all(offsets: LongArray, data: NDArray[np.uint8], hashes: IntArray) -> None:
    for each in range(len(hashes)):
        hashed = _hash(data, offsets[each], offsets[each + 1])
        hashes[each] = hashed - (hashed >> 31 << 32)


@kernel
def _hash(data: NDArray[np.uint8], at: int, end: int) -> int:
    """Return the hash as an unsigned 32-bit number; eight ASCII characters at once, independent of each other."""
    hashed = 0
    while at < end:
        lead = int(data[at])
        if end - at >= EIGHT and _is_ascii(data, at):
            hashed = (hashed * POWER_8 + _hash_8(data, at)) & 0xFFFFFFFF
            at += EIGHT
        elif lead < 0x80:
            hashed = (hashed * 31 + lead) & 0xFFFFFFFF
            at += 1
        elif lead < 0xE0:
            hashed = (hashed * 31 + ((lead & 0x1F) << 6 | int(data[at + 1]) & 0x3F)) & 0xFFFFFFFF
            at += 2
        elif lead < 0xF0:
            unit = (lead & 0x0F) << 12 | (int(data[at + 1]) & 0x3F) << 6 | int(data[at + 2]) & 0x3F
            hashed = (hashed * 31 + unit) & 0xFFFFFFFF
            at += 3
        else:
            point = (lead & 0x07) << 18 | (int(data[at + 1]) & 0x3F) << 12
            point = (point | (int(data[at + 2]) & 0x3F) << 6 | int(data[at + 3]) & 0x3F) - 0x10000
            hashed = (hashed * 31 + (0xD800 | point >> 10)) & 0xFFFFFFFF
            hashed = (hashed * 31 + (0xDC00 | point & 0x3FF)) & 0xFFFFFFFF
            at += 4
    return hashed


@kernel
def _is_ascii(data: NDArray[np.uint8], at: int) -> bool:
    low = data[at] | data[at + 1] | data[at + 2] | data[at + 3]
    return bool((low | data[at + 4] | data[at + 5] | data[at + 6] | data[at + 7]) < 0x80)


@kernel
def _hash_8(data: NDArray[np.uint8], at: int) -> int:
    """Sum eight characters weighted by powers of 31."""
    high = int(data[at]) * 27512614111 + int(data[at + 1]) * 887503681 + int(data[at + 2]) * 28629151
    middle = int(data[at + 3]) * 923521 + int(data[at + 4]) * 29791 + int(data[at + 5]) * 961
    return high + middle + int(data[at + 6]) * 31 + int(data[at + 7])


@kernel
def spread(hashed: int) -> int:
    """Apply HashMap's spread of a hash code: the upper half folded onto the lower, unsigned."""
    unsigned = int(hashed) & 0xFFFFFFFF
    return unsigned ^ (unsigned >> 16)


@kernel
def map_capacity(hashes: IntArray, keys: IntArray, count: int) -> int:
    """Return the table size of a HashMap after `count` distinct keys in this order; TREE if a bucket became a tree.

    The table doubles past three quarters full, and also when a bucket of a table below 64 gets its ninth key.
    """
    capacity = LEAST_CAPACITY
    if count <= TREE_CHAIN:
        return capacity
    chains = np.zeros(4 * max(count, LEAST_CAPACITY), np.int32)
    for size in range(count):
        bucket = spread(hashes[keys[size]]) & (capacity - 1)
        chain = chains[bucket]
        chains[bucket] += 1
        if chain >= TREE_CHAIN and capacity >= TREE_CAPACITY:
            return TREE
        grown = capacity * 2 if chain >= TREE_CHAIN else capacity
        if (size + 1) * 4 > grown * 3:
            grown *= 2
        if grown != capacity:
            capacity = grown
            chains[:capacity] = 0
            for at in range(size + 1):
                chains[spread(hashes[keys[at]]) & (capacity - 1)] += 1
    return capacity


@kernel
def map_order(hashes: IntArray, keys: IntArray, count: int) -> int:
    """Reorder `keys[:count]` from insertion order to a HashMap's iteration order; return its capacity.

    Keys are indices into `hashes`. If a bucket became a tree, TREE is returned, and the order is undefined.
    """
    capacity = map_capacity(hashes, keys, count)
    if capacity == TREE:
        return TREE
    if count <= 2 * TREE_CHAIN:
        _insertion_sort(hashes, keys, count, capacity)
        return capacity
    slot = np.zeros(capacity + 1, np.int32)
    for at in range(count):
        slot[(spread(hashes[keys[at]]) & (capacity - 1)) + 1] += 1
    for bucket in range(capacity):
        slot[bucket + 1] += slot[bucket]
    inserted = keys[:count].copy()
    for at in range(count):
        bucket = spread(hashes[inserted[at]]) & (capacity - 1)
        keys[slot[bucket]] = inserted[at]
        slot[bucket] += 1
    return capacity


@kernel
def computed_map_order(hashes: IntArray, keys: IntArray, count: int, called_again: bool) -> None:
    """Do the same for a HashMap filled by `computeIfAbsent`, as Kafka's sticky user data is.

    That method puts a new key in front of its bucket, and doubles a full table at its next call, even for an existing
    key: `called_again` says whether it was called after the last new key.
    """
    capacity = map_capacity(hashes, keys, count if called_again else max(count - 1, 0))
    keys[:count] = keys[:count][::-1].copy()
    _insertion_sort(hashes, keys, count, capacity if capacity != TREE else TREE_CAPACITY)


@kernel
def _insertion_sort(hashes: IntArray, keys: IntArray, count: int, capacity: int) -> None:
    for at in range(1, count):
        key = keys[at]
        bucket = spread(hashes[key]) & (capacity - 1)
        to = at
        while to > 0 and spread(hashes[keys[to - 1]]) & (capacity - 1) > bucket:
            keys[to] = keys[to - 1]
            to -= 1
        keys[to] = key


@kernel
def partition_hash(topic_hash: int, partition: int) -> int:
    """Compute `TopicPartition.hashCode`, as an unsigned 32-bit number."""
    return (31 * (31 + int(partition)) + int(topic_hash)) & 0xFFFFFFFF
