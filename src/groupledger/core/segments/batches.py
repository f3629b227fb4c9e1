"""Read headers of record batches: where each batch of a window begins, and what its header says.

A header has 61 bytes: base offset (8), length of the rest (4), leader epoch (4), magic (1), CRC-32C (4) of all that
follows it, attributes (2), last offset delta (4), base and max timestamp (8, 8), producer id (8), producer epoch (2),
base sequence (4), number of records (4). No checksum covers base offset, length, leader epoch and magic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.kernels import kernel, run
from groupledger.core.segments.checksums import crc32c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray

HEADER = 61
BEFORE_LENGTH = 12
"""Bytes that a batch's length does not count: the base offset and the length itself."""
LEAST_LENGTH = HEADER - BEFORE_LENGTH
LEAST_OLD_LENGTH = 14
"""Length of the smallest message of magic 0."""
MAGIC_AT, CRC_AT, CHECKED_FROM = 16, 17, 21
MAGIC = 2
MOST_BYTES = 128 << 20
"""The longest batch that is read into memory."""
NO_UPPER = 1 << 62
"""Above every offset."""
_UNSIGNED = 0xFFFFFFFF

POSITION, BYTES, BASE, LAST_DELTA, ATTRIBUTES, BASE_TIME, MAX_TIME, PRODUCER, COUNT, EPOCH = range(10)
COLUMNS = 10

CODEC, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20
"""Bits of the attributes."""
PLAIN = 0
WHOLE, MORE, ZEROS, OLD_MAGIC, BAD_MAGIC, BAD_LENGTH, BACKWARD, BEYOND, BAD_HEADER, BAD_CRC = range(10)
"""Why marking stopped: at the end of the window, before a batch that is only partly in the window, or at damage."""


def mark(data: bytes | memoryview, first: int, end: int, least: int, upper: int) -> tuple[LongArray, int, int]:
    """Return a row of COLUMNS per batch from byte `first`, the first byte after them, and why marking stopped there.

    The batches have correct checksums. The file ends at byte `end`, counted as in `data`; base offsets are at least
    `least`, and all offsets are below `upper`.
    """
    table = np.empty(((len(data) - first) // HEADER + 1, COLUMNS), np.int64)
    view = np.frombuffer(data, np.uint8)
    count, stop, status = run(mark_batches, view, first, end, least, upper, table, cells=len(data) - first)
    return table[:count], int(stop), int(status)


@kernel
def mark_batches(
    data: ByteArray, position: int, end: int, least: int, upper: int, table: LongArray
) -> tuple[int, int, int]:
    """Fill `table`; return (rows, position of the first byte that no row covers, status)."""
    count = 0
    filled = len(data)
    while position < filled:
        if position + HEADER > filled:
            return count, position, MORE
        base = big_endian(data, position, 8)
        length = big_endian(data, position + 8, 4)
        magic = int(data[position + MAGIC_AT])
        if base == 0 and length == 0:
            return count, position, ZEROS
        if magic < MAGIC and LEAST_OLD_LENGTH <= length <= end - position - BEFORE_LENGTH:
            return count, position, OLD_MAGIC
        if length < LEAST_LENGTH or length > end - position - BEFORE_LENGTH or length > MOST_BYTES:
            return count, position, BAD_LENGTH
        if magic != MAGIC:
            return count, position, BAD_MAGIC
        if position + BEFORE_LENGTH + length > filled:
            return count, position, MORE
        row = table[count]
        _fill(data, position, row)
        if row[LAST_DELTA] < 0 or row[COUNT] < 0 or row[COUNT] > row[LAST_DELTA] + 1:
            return count, position, BAD_HEADER
        if base < least:
            return count, position, BACKWARD
        if base >= NO_UPPER or base + row[LAST_DELTA] >= upper:
            return count, position, BEYOND
        stop = position + BEFORE_LENGTH + length
        if crc32c(data, position + CHECKED_FROM, stop) != big_endian(data, position + CRC_AT, 4) & _UNSIGNED:
            return count, position, BAD_CRC
        least = base + row[LAST_DELTA] + 1
        count += 1
        position = stop
    return count, position, WHOLE


@kernel
def _fill(data: ByteArray, position: int, row: LongArray) -> None:
    row[POSITION] = position
    row[BYTES] = BEFORE_LENGTH + big_endian(data, position + 8, 4)
    row[BASE] = big_endian(data, position, 8)
    row[EPOCH] = big_endian(data, position + 12, 4)
    row[ATTRIBUTES] = big_endian(data, position + 21, 2)
    row[LAST_DELTA] = big_endian(data, position + 23, 4)
    row[BASE_TIME] = big_endian(data, position + 27, 8)
    row[MAX_TIME] = big_endian(data, position + 35, 8)
    row[PRODUCER] = big_endian(data, position + 43, 8)
    row[COUNT] = big_endian(data, position + 57, 4)


@kernel
def big_endian(data: ByteArray, position: int, size: int) -> int:
    """Read a signed integer of `size` bytes."""
    value = np.int64(data[position])
    if value >= 128:
        value -= 256
    for at in range(position + 1, position + size):
        value = (value << 8) | np.int64(data[at])
    return int(value)


def base_at(data: bytes | memoryview, position: int) -> int:
    """Return the base offset of the batch at a position."""
    return int.from_bytes(data[position : position + 8], "big", signed=True)


def length_at(data: bytes | memoryview, position: int) -> int:
    """Return the length that the batch states."""
    return int.from_bytes(data[position + 8 : position + BEFORE_LENGTH], "big", signed=True)


def next_size(data: bytes | memoryview, position: int) -> int:
    """Return the bytes needed to judge the batch at a position: all of it, once its header is there."""
    return size_at(data, position) if len(data) - position >= HEADER else HEADER


def size_at(data: bytes | memoryview, position: int) -> int:
    """Return the size of the batch in bytes, as it states."""
    return BEFORE_LENGTH + length_at(data, position)
