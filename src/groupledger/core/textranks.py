"""Rank texts densely by UTF-16 unit, as Java compares strings, from their UTF-8 bytes.

Texts are sorted by machine words, seven bytes at a time: members' ids mostly share a prefix and differ soon after.
UTF-8 sorts by code point; UTF-16 puts surrogates (lead F0-F4) below U+E000 (EE, EF). So those two leads count as
higher than any other, and the end of a text as lower than any byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray

    Bytes = NDArray[np.uint8]

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
