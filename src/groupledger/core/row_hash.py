"""Compute the hash that Spark's `xxhash64` gives a row, column by column, as a kernel over all rows.

The hash of one column is the seed of the next: https://spark.apache.org/docs/latest/api/sql/#xxhash64. It is XXH64
(https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md) of the bytes of a text, and of a number's four or eight
bytes, low byte first; nulls are passed over.

The functions of one value are kernels, and interpreted they take arrays of them: a number of each row, or its bytes as
a column of `data` [bytes, rows].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupledger.core.kernels import compiled, kernel, runs_compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray

    HashArray = NDArray[np.uint64]

FIRST_SEED = 42
"""Spark's."""
IN_FOUR_BYTES, IN_EIGHT_BYTES, IN_BYTES = range(3)
"""Kinds of values: the number `first`, or the bytes from `first` to before `end`."""

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)
LOW_BITS = 0xFFFFFFFF
BYTE = np.uint64(8)


class RowValues(NamedTuple):
    """What is hashed of N rows: row i has the values from `start[i]` to before `start[i + 1]`, in order.

    By its kind a value is the number `first`, or the bytes of `data` from `first` to before `end`.
    """

    start: LongArray  # [N+1]
    kind: ByteArray
    first: LongArray
    end: LongArray
    data: ByteArray


def seeded(seeds: Sequence[int], rows: int) -> HashArray:
    """Return the hashes of rows of which nothing but a seed is hashed: [seeds, rows]."""
    each = of_int(np.array(seeds, np.uint64), np.full(len(seeds), FIRST_SEED, np.uint64))
    return np.repeat(each[:, None], rows, axis=1)


def add_column(hashes: HashArray, number: int, numbered: NDArray[np.bool_], values: RowValues) -> None:
    """Add to the hashes of each row a column's number, where the row is `numbered`, and its values."""
    cells = hashes.size + int((values.end - values.first)[values.kind == IN_BYTES].sum())
    if runs_compiled(_add_column, cells):
        compiled(_add_column)(hashes, number, numbered, *values)
    else:
        _add_alike(hashes, number, numbered, values)


def _add_alike(hashes: HashArray, number: int, numbered: NDArray[np.bool_], values: RowValues) -> None:
    """As `_add_column`, interpreted: all rows at once whose values are of one kind and length."""
    hashes[:, numbered] = of_int(np.array([number], np.uint64), hashes[:, numbered])
    counts = np.diff(values.start)
    for place in range(int(counts.max(initial=0))):
        row = np.flatnonzero(counts > place)
        at = values.start[:-1][row] + place
        sizes = np.where(
            values.kind[at] == IN_BYTES, values.end[at] - values.first[at], -values.kind[at].astype(int) - 1
        )
        for size in np.unique(sizes).tolist():
            some, first = row[sizes == size], values.first[at[sizes == size]]
            if size >= 0:
                columns = values.data[first + np.arange(size)[:, None]]
                hashes[:, some] = of_bytes(columns, 0, size, hashes[:, some])
            elif size == -IN_EIGHT_BYTES - 1:
                hashes[:, some] = of_long(first.astype(np.uint64), hashes[:, some])
            else:
                hashes[:, some] = of_int((first & LOW_BITS).astype(np.uint64), hashes[:, some])


@kernel
def _add_column(
    hashes: HashArray,
    number: int,
    numbered: NDArray[np.bool_],
    start: LongArray,
    kind: ByteArray,
    first: LongArray,
    end: LongArray,
    data: ByteArray,
) -> None:
    for row in range(len(numbered)):
        for each in range(len(hashes)):
            hashed = hashes[each, row]
            if numbered[row]:
                hashed = of_int(np.uint64(number), hashed)
            for at in range(start[row], start[row + 1]):
                if kind[at] == IN_BYTES:
                    hashed = of_bytes(data, first[at], end[at], hashed)
                elif kind[at] == IN_EIGHT_BYTES:
                    hashed = of_long(np.uint64(first[at]), hashed)
                else:
                    hashed = of_int(np.uint64(first[at] & LOW_BITS), hashed)
            hashes[each, row] = hashed


@kernel
def of_int(number: Any, seed: Any) -> Any:
    """Return the hash of a number of 32 bits, without its sign."""
    return mixed(turned((seed + P5 + np.uint64(4)) ^ (number * P1), np.uint64(23)) * P2 + P3)


@kernel
def of_long(number: Any, seed: Any) -> Any:
    """Return the hash of a number of 64 bits."""
    return mixed(with_word(seed + P5 + np.uint64(8), number))


@kernel
def of_bytes(data: ByteArray, start: int, end: int, seed: Any) -> Any:
    """Return the hash of the bytes from `start` to before `end`."""
    size, at = np.uint64(end - start), start
    if end - start >= 32:
        one, two, three, four = seed + P1 + P2, seed + P2, seed, seed - P1
        while at + 32 <= end:
            one = in_lane(one, word(data, at, 8))
            two = in_lane(two, word(data, at + 8, 8))
            three = in_lane(three, word(data, at + 16, 8))
            four = in_lane(four, word(data, at + 24, 8))
            at += 32
        hashed = turned(one, np.uint64(1)) + turned(two, np.uint64(7))
        hashed = hashed + turned(three, np.uint64(12)) + turned(four, np.uint64(18))
        hashed = with_lane(with_lane(with_lane(with_lane(hashed, one), two), three), four)
    else:
        hashed = seed + P5
    hashed = hashed + size
    while at + 8 <= end:
        hashed = with_word(hashed, word(data, at, 8))
        at += 8
    if at + 4 <= end:
        hashed = turned(hashed ^ (word(data, at, 4) * P1), np.uint64(23)) * P2 + P3
        at += 4
    while at < end:
        hashed = turned(hashed ^ (np.uint64(data[at]) * P5), np.uint64(11)) * P1
        at += 1
    return mixed(hashed)


@kernel
def word(data: ByteArray, at: int, size: int) -> Any:
    """Return so many bytes as a number, low byte first."""
    number = np.uint64(0)
    for place in range(size):
        number = number | np.uint64(data[at + place]) << (np.uint64(place) * BYTE)
    return number


@kernel
def in_lane(lane: Any, number: Any) -> Any:
    """Return one of the four running sums with eight more bytes."""
    return turned(lane + number * P2, np.uint64(31)) * P1


@kernel
def with_lane(hashed: Any, lane: Any) -> Any:
    """Return the hash with one of the four sums."""
    return (hashed ^ in_lane(np.uint64(0), lane)) * P1 + P4


@kernel
def with_word(hashed: Any, number: Any) -> Any:
    """Return the hash with eight bytes beyond the last 32."""
    return turned(hashed ^ in_lane(np.uint64(0), number), np.uint64(27)) * P1 + P4


@kernel
def mixed(hashed: Any) -> Any:
    """Return the hash when all bytes are in it."""
    hashed = (hashed ^ (hashed >> np.uint64(33))) * P2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * P3
    return hashed ^ (hashed >> np.uint64(32))


@kernel
def turned(number: Any, bits: Any) -> Any:
    """Return the number with its bits turned to the left."""
    return number << bits | number >> (np.uint64(64) - bits)
