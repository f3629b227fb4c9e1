"""Compute Java's orders: String.hashCode, comparison by UTF-16 unit, and the iteration order of a HashMap.

In Kafka's assignors, hash maps decide ties (which member keeps the extra partition, which topic comes first in a list),
so their answers depend on these orders. Everything is 32-bit and deterministic: equal input, equal order.

Worked example: "Aa" and "BB" both hash to 2112, so a map holds them in one bucket, in insertion order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.kernels import kernel, run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.batch import IntArray, LongArray

    Bytes = NDArray[np.uint8]

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
    sort_by_bucket(hashes, keys, count, capacity)
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
def sort_by_bucket(hashes: IntArray, keys: IntArray, count: int, capacity: int) -> None:
    """Turn `keys[:count]` from insertion order into iteration order of a table of `capacity` buckets; stable."""
    if count <= 2 * TREE_CHAIN:
        _insertion_sort(hashes, keys, count, capacity)
        return
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


# Rank texts densely by UTF-16 unit, as Java compares strings, from their UTF-8 bytes.
#
# Texts are sorted by machine words, seven bytes at a time: members' ids mostly share a prefix and differ soon after.
# UTF-8 sorts by code point; UTF-16 puts surrogates (lead F0-F4) below U+E000 (EE, EF). So those two leads count as
# higher than any other, and the end of a text as lower than any byte.

WORD = 7  # symbols of nine bits in a word
FEW = 24
DIGITS = 512


class Sorting(NamedTuple):
    """Work arrays, as long as the longest segment. Runs of texts not yet distinguished wait on a stack."""

    text: LongArray  # the texts of a segment, in the order found so far
    word: LongArray
    other_text: LongArray
    other_word: LongArray
    differs: NDArray[np.bool_]  # from the text before
    low: LongArray  # where a run begins,
    high: LongArray  # and ends,
    depth: LongArray  # and how many leading bytes all its texts are known to share
    tally: LongArray  # [DIGITS + 1], of the symbols of one digit


@kernel
def rank_all(offsets: LongArray, data: Bytes, segment_start: LongArray, ranks: IntArray) -> None:
    """Fill `ranks` with the rank of each text inside its segment, from 0; equal texts share one."""
    s = _room(segment_start)
    for segment in range(len(segment_start) - 1):
        low = segment_start[segment]
        texts = segment_start[segment + 1] - low
        for at in range(texts):
            s.text[at] = low + at
            s.differs[at] = False
        _sort(offsets, data, s, texts)
        rank = 0
        for at in range(texts):
            rank += 1 if s.differs[at] else 0
            ranks[s.text[at]] = rank


@kernel
def _room(segment_start: LongArray) -> Sorting:
    longest = 1
    for segment in range(len(segment_start) - 1):
        longest = max(longest, segment_start[segment + 1] - segment_start[segment])
    return Sorting(
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.zeros(longest, np.bool_),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.zeros(DIGITS + 1, np.int64),
    )


@kernel
def _sort(offsets: LongArray, data: Bytes, s: Sorting, texts: int) -> None:
    s.low[0] = 0
    s.high[0] = texts
    s.depth[0] = 0
    waiting = 1 if texts > 1 else 0
    while waiting > 0:
        waiting -= 1
        low = s.low[waiting]
        high = s.high[waiting]
        text = s.text[low:high]
        word = s.word[low:high]
        depth = _shared(offsets, data, text, s.depth[waiting])
        for at in range(high - low):
            word[at] = _word(offsets, data, text[at], depth)
        if high - low <= FEW:
            _sort_few(text, word)
        else:
            _sort_by_digits(text, word, s.other_text, s.other_word, s.tally)
        waiting = _note_equal(s, low, high, depth, waiting)


@kernel
def _shared(offsets: LongArray, data: Bytes, text: LongArray, depth: int) -> int:
    """Return how many leading bytes the texts share; `depth` of them are known."""
    first = offsets[text[0]]
    shared = offsets[text[0] + 1] - first
    for at in range(1, len(text)):
        begin = offsets[text[at]]
        shared = min(shared, offsets[text[at] + 1] - begin)
        same = depth
        while same < shared and data[first + same] == data[begin + same]:
            same += 1
        shared = same
    return int(shared)


@kernel
def _word(offsets: LongArray, data: Bytes, text: int, depth: int) -> int:
    """Return the symbols after the first `depth` bytes; texts that continue equally have the same word."""
    first = offsets[text] + depth
    last = min(first + WORD, offsets[text + 1])
    word = 0
    for at in range(first, last):
        byte = int(data[at])
        word = word << 9 | (byte + 17 if byte == 0xEE or byte == 0xEF else byte + 1)
    return int(word << 9 * (WORD - (last - first)))


@kernel
def _sort_few(text: LongArray, word: LongArray) -> None:
    for at in range(1, len(text)):
        moved = text[at]
        key = word[at]
        to = at
        while to > 0 and word[to - 1] > key:
            text[to] = text[to - 1]
            word[to] = word[to - 1]
            to -= 1
        text[to] = moved
        word[to] = key


@kernel
def _sort_by_digits(
    text: LongArray, word: LongArray, other_text: LongArray, other_word: LongArray, count: LongArray
) -> None:
    """Sort stably by each symbol, the last one first; a symbol that is the same in all texts moves nothing."""
    texts = len(text)
    for digit in range(WORD):
        shift = 9 * digit
        count[:] = 0
        for at in range(texts):
            count[(word[at] >> shift & (DIGITS - 1)) + 1] += 1
        if count[(word[0] >> shift & (DIGITS - 1)) + 1] == texts:
            continue
        for each in range(DIGITS):
            count[each + 1] += count[each]
        for at in range(texts):
            symbol = word[at] >> shift & (DIGITS - 1)
            to = count[symbol]
            count[symbol] = to + 1
            other_text[to] = text[at]
            other_word[to] = word[at]
        text[:] = other_text[:texts]
        word[:] = other_word[:texts]


@kernel
def _note_equal(s: Sorting, low: int, high: int, depth: int, waiting: int) -> int:
    """Put runs with equal words on the stack if their texts continue; texts that end there are equal."""
    begin = low
    for at in range(low + 1, high + 1):
        if at < high and s.word[at] == s.word[begin]:
            continue
        if at < high:
            s.differs[at] = True
        if at - begin > 1 and at - begin < high - low:
            s.low[waiting] = begin
            s.high[waiting] = at
            s.depth[waiting] = depth
            waiting += 1
        begin = at
    return waiting
