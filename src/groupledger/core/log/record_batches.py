"""Read headers of record batches: where each batch of a window begins, and what its header says.

A header has 61 bytes: base offset (8), length of the rest (4), leader epoch (4), magic (1), CRC-32C (4) of all that
follows it, attributes (2), last offset delta (4), base and max timestamp (8, 8), producer id (8), producer epoch (2),
base sequence (4), number of records (4). No checksum covers base offset, length, leader epoch and magic.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.checksums import crc32c
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.ragged import starts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.batch import LongArray
    from groupledger.core.arrays.checksums import ByteArray


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


# Parse records of a batch: varint structures after its header. Only the wanted ones are copied.
#
# A record: length, attributes (1 byte), timestamp delta, offset delta, key, value (each after its length, -1 for null),
# headers. All numbers are zigzag varints.

OFFSET, TIME, KEY, KEY_END, VALUE, VALUE_END, LEADER_EPOCH = range(7)
SPANS = 7
"""Columns that mark a record: offset, timestamp (ms), begin and end of key and value (begin -1: null), leader epoch."""
LEAST_RECORD = 7
"""Bytes of the smallest record: length, attributes, two deltas, two nulls, no headers."""
LATEST_TIME = 1 << 61
"""A later time in ms is invalid, and sums of two would overflow."""
ROOM = 1 << 16
OK = -1
_NULL = -1


@dataclass(frozen=True, slots=True)
class Blobs:
    """Byte strings, one after another: number i is `data[start[i]:start[i + 1]]`, or null."""

    data: ByteArray
    start: LongArray
    is_null: NDArray[np.bool_]

    def __iter__(self) -> Iterator[bytes | None]:
        data, start = self.data.tobytes(), self.start.tolist()
        for first, end, is_null in zip(start[:-1], start[1:], self.is_null.tolist(), strict=True):
            yield None if is_null else data[first:end]


@dataclass(frozen=True, slots=True)
class RecordColumns:
    """Columns of records. Times are in ms; the leader epoch of a batch without one is -1."""

    offsets: LongArray
    times: LongArray
    keys: Blobs
    values: Blobs
    epochs: LongArray

    def __len__(self) -> int:
        return len(self.offsets)

    def __iter__(self) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
        """Yield offset, timestamp, key, value."""
        return zip(self.offsets.tolist(), self.times.tolist(), self.keys, self.values, strict=True)


@dataclass(frozen=True, slots=True)
class FoundRecords:
    """Records found in a run of batches: the wanted ones, and how many offset commits were skipped.

    `bad` is the index of a batch that ends the run because its records are malformed, at byte `at` of the data; None if
    all were read.
    """

    records: tuple[RecordColumns, ...]
    offset_commits: int
    bad: int | None
    at: int


def plain_records(data: memoryview, table: LongArray, *, keep_commits: bool) -> FoundRecords:
    """Return the records of batches that are not compressed, transactional or control batches."""
    view = np.frombuffer(data, np.uint8)
    most = min(int(table[:, COUNT].max(initial=0)), len(data) // LEAST_RECORD)
    found: list[RecordColumns] = []
    first, dropped = 0, 0
    while first < len(table):
        spans = np.empty((max(ROOM, most), SPANS), np.int64)
        cells = int(table[first:, BYTES].sum())
        first, kept, commits, at = map(int, run(mark_plain, view, table, first, keep_commits, spans, cells=cells))
        dropped += commits
        if kept:
            found.append(_copied(view, spans[:kept]))
        if at != OK:
            return FoundRecords(tuple(found), dropped, first, at)
    return FoundRecords(tuple(found), dropped, None, OK)


def joined_records(payload: bytes, table: LongArray, *, keep_commits: bool) -> FoundRecords:
    """Return the records of batches decompressed together; none if any of them are malformed, and then `bad` is 0."""
    view = np.frombuffer(payload, np.uint8)
    spans = np.empty((min(int(table[:, COUNT].sum()), len(payload) // LEAST_RECORD), SPANS), np.int64)
    kept, commits, at = map(int, run(mark_joined, view, table, keep_commits, spans, cells=len(payload)))
    if at != OK:
        return FoundRecords((), 0, 0, at)
    return FoundRecords((_copied(view, spans[:kept]),) if kept else (), commits, None, OK)


def _copied(view: ByteArray, spans: LongArray) -> RecordColumns:
    """Copy the records that `spans` marks, a row of SPANS each, out of the bytes that hold them."""
    keys, values = (_blobs(view, spans, begin) for begin in (KEY, VALUE))
    return RecordColumns(spans[:, OFFSET].copy(), spans[:, TIME].copy(), keys, values, spans[:, LEADER_EPOCH].copy())


def _blobs(view: ByteArray, spans: LongArray, begin: int) -> Blobs:
    is_null = spans[:, begin] < 0
    start = starts(np.where(is_null, 0, spans[:, begin + 1] - spans[:, begin]))
    data = np.empty(int(start[-1]), np.uint8)
    run(copy_blobs, view, spans, begin, start, data, cells=len(data))
    return Blobs(data, start, is_null)


@kernel
def copy_blobs(view: ByteArray, spans: LongArray, begin: int, start: LongArray, data: ByteArray) -> None:
    """Copy the bytes between columns `begin` and the next of `spans` to their place in `data`."""
    for index in range(len(spans)):
        first = spans[index, begin]
        if first >= 0:
            data[start[index] : start[index + 1]] = view[first : spans[index, begin + 1]]


@kernel
def mark_plain(
    data: ByteArray, table: LongArray, first: int, keep_commits: bool, spans: LongArray
) -> tuple[int, int, int, int]:
    """Mark records from batch `first` on, until `spans` is full or a batch is bad.

    Returns (batch to continue with, records in `spans`, offset commits skipped, byte of the defect or OK).
    """
    kept = 0
    dropped = 0
    for index in range(first, len(table)):
        header = table[index]
        if header[ATTRIBUTES] & (CODEC | TRANSACTIONAL | CONTROL) != PLAIN:
            continue
        start = header[POSITION] + HEADER
        end = header[POSITION] + header[BYTES]
        if kept and header[COUNT] > len(spans) - kept:
            return index, kept, dropped, OK
        after, commits, at, good = mark_records(data, start, end, header, keep_commits, spans, kept)
        if not good or at != end:
            return index, kept, dropped, at
        kept = after
        dropped += commits
    return len(table), kept, dropped, OK


@kernel
def mark_joined(data: ByteArray, table: LongArray, keep_commits: bool, spans: LongArray) -> tuple[int, int, int]:
    """Mark the records of consecutive batches: (rows of `spans`, offset commits skipped, byte of the defect or OK)."""
    kept = 0
    dropped = 0
    position = 0
    for index in range(len(table)):
        kept, commits, position, good = mark_records(data, position, len(data), table[index], keep_commits, spans, kept)
        dropped += commits
        if not good:
            return kept, dropped, position
    return kept, dropped, OK if position == len(data) else position


@kernel
def mark_records(
    data: ByteArray, start: int, end: int, header: LongArray, keep_commits: bool, spans: LongArray, kept: int
) -> tuple[int, int, int, bool]:
    """Mark the records of a batch.

    Returns (rows of `spans` filled so far, offset commits skipped, byte after the records or of the defect, all good).
    """
    position = start
    dropped = 0
    before = -1
    if header[COUNT] * LEAST_RECORD > end - start or abs(header[BASE_TIME]) > LATEST_TIME:
        return kept, dropped, start, False
    for _ in range(header[COUNT]):
        begin = position
        length, position = varint(data, position, end)
        stop = position + length
        if position < 0 or length < LEAST_RECORD - 1 or stop > end:
            return kept, dropped, begin, False
        delta, position = varint(data, position + 1, stop)
        number, position = varint(data, position, stop)
        if position < 0 or abs(delta) > LATEST_TIME or not before < number <= header[LAST_DELTA]:
            return kept, dropped, begin, False
        before = number
        key, key_end = blob(data, position, stop)
        value, value_end = blob(data, key_end, stop)
        has_none = value_end == stop - 1 and data[value_end] == 0
        if value_end < 0 or not (has_none or skip_headers(data, value_end, stop) == stop):
            return kept, dropped, begin, False
        position = stop
        if not keep_commits and key >= 0 and key_end - key >= 2 and data[key] == 0 and data[key + 1] <= 1:
            dropped += 1
            continue
        row = spans[kept]
        row[OFFSET] = header[BASE] + number
        row[TIME] = header[MAX_TIME] if header[ATTRIBUTES] & LOG_APPEND_TIME else header[BASE_TIME] + delta
        row[KEY] = key
        row[KEY_END] = key_end
        row[VALUE] = value
        row[VALUE_END] = value_end
        row[LEADER_EPOCH] = header[EPOCH]
        kept += 1
    return kept, dropped, position, True


@kernel
def varint(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """Read a zigzag varint of at most 63 bits; return it and the position after it, -1 if there is none."""
    if position < 0 or position >= end:
        return 0, -1
    value = np.int64(data[position])
    if value < 128:
        return int((value >> 1) ^ -(value & 1)), position + 1
    if position + 1 < end:
        second = np.int64(data[position + 1])
        if second < 128:
            value = (value & 127) | second << 7
            return int((value >> 1) ^ -(value & 1)), position + 2
    return long_varint(data, position, end)


@kernel
def long_varint(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """Read a `varint` of any length, in its own function so that the common short ones are inlined."""
    value = np.int64(0)
    shift = 0
    while position < end and shift < 63:
        byte = np.int64(data[position])
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return int((value >> 1) ^ -(value & 1)), position
        shift += 7
    return 0, -1


@kernel
def blob(data: ByteArray, position: int, end: int) -> tuple[int, int]:
    """Return where the bytes after a length begin (-1: null) and end (-1: they do not fit)."""
    length, start = varint(data, position, end)
    if start < 0 or length < _NULL or length > end - start:
        return -1, -1
    if length == _NULL:
        return -1, start
    return start, start + length


@kernel
def skip_headers(data: ByteArray, position: int, end: int) -> int:
    """Return the position after a record's headers; -1 if they do not fit."""
    count, position = varint(data, position, end)
    if position < 0 or count < 0 or count > end - position:
        return -1
    for _ in range(count):
        key, position = blob(data, position, end)
        _, position = blob(data, position, end)
        if key < 0 or position < 0:
            return -1
    return position
