"""GroupMetadata values of versions 0 to 3 as columns: where each field stands, without an object a record.

Two passes of kernels over the buffer that holds all values: one counts members, the other notes where their fields are.
The passes accept no value that `offsets_log.decode_value` refuses, but for texts that are no UTF-8, which whoever reads
the texts must judge. What they do not accept (a flexible version, bytes too few or too many) is for `decode_value` to
judge: it may be a record all the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from groupledger.core.kernels import compiled, compiled_as, kernel, run
from groupledger.core.ragged import starts
from groupledger.core.wire.primitives import INT16, INT32

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray

NEWEST_PLAIN = 3
"""The last version whose lengths are of fixed size."""

PROTOCOL_TYPE, PROTOCOL, LEADER = range(3)
MEMBER_ID, INSTANCE_ID, CLIENT_ID, CLIENT_HOST, SUBSCRIPTION, ASSIGNMENT = range(6)
"""Rows of `GroupColumns.group_at` and `GroupColumns.member_at`."""

UNREAD = -1
NULL = -1

_STATE_TIMESTAMP_SINCE = 2
_REBALANCE_TIMEOUT_SINCE = 1
_INSTANCE_ID_SINCE = 3


@dataclass(frozen=True, slots=True)
class GroupColumns:
    """N values with M members in all: where their fields begin, and their sizes (NULL: no text)."""

    member_start: LongArray  # [N+1]
    generation: LongArray  # [N]
    group_at: LongArray  # [3, N]
    group_size: LongArray  # [3, N]
    member_at: LongArray  # [6, M]
    member_size: LongArray  # [6, M]


def count_members(data: ByteArray, start: LongArray, end: LongArray) -> LongArray:
    """Number of members of each value `data[start:end]`; UNREAD where it is for `decode_value`."""
    counts = np.empty(len(start), np.int64)
    run(count_each, data, start, end, counts, cells=_cells(start, end))
    return counts


def group_columns(data: ByteArray, start: LongArray, end: LongArray, counts: LongArray) -> GroupColumns:
    """The fields of values that `count_members` gave these counts of."""
    columns = GroupColumns(
        starts(counts),
        np.empty(len(start), np.int64),
        *(np.empty((3, len(start)), np.int64) for _ in range(2)),
        *(np.empty((6, int(counts.sum())), np.int64) for _ in range(2)),
    )
    c = columns
    texts = c.member_start, c.generation, c.group_at, c.group_size, c.member_at, c.member_size
    run(note_each, data, start, *texts, cells=_cells(start, end))
    return columns


def _cells(start: LongArray, end: LongArray) -> int:
    """Lengths are read, not bytes: about one in eight."""
    return int((end - start).sum()) // 8


@kernel
def count_each(data: ByteArray, start: LongArray, end: LongArray, counts: LongArray) -> None:
    """Fill `counts`."""
    for index in range(len(start)):
        counts[index] = count_in(data, start[index], end[index])


@kernel
def count_in(data: ByteArray, start: int, end: int) -> int:
    """Members of one value, UNREAD where it does not fit."""
    if end - start < 2:
        return UNREAD
    version = int16(data, start)
    if version < 0 or version > NEWEST_PLAIN:
        return UNREAD
    at = skip_text(data, start + 2, end, False)
    at = skip(at, end, 4)
    at = skip_text(data, at, end, True)
    at = skip_text(data, at, end, True)
    if version >= _STATE_TIMESTAMP_SINCE:
        at = skip(at, end, 8)
    if at < 0 or end - at < 4:
        return UNREAD
    members = int32(data, at)
    at += 4
    for _ in range(members):
        at = skip_member(data, at, end, version)
        if at < 0:
            return UNREAD
    return members if members >= 0 and at == end else UNREAD


@kernel
def skip_member(data: ByteArray, at: int, end: int, version: int) -> int:
    """The position behind a member; UNREAD where it does not fit."""
    at = skip_text(data, at, end, False)
    if version >= _INSTANCE_ID_SINCE:
        at = skip_text(data, at, end, True)
    at = skip_text(data, at, end, False)
    at = skip_text(data, at, end, False)
    at = skip(at, end, 8 if version >= _REBALANCE_TIMEOUT_SINCE else 4)
    at = skip_blob(data, at, end)
    return skip_blob(data, at, end)


@kernel
def skip(at: int, end: int, size: int) -> int:
    """The position behind so many bytes; UNREAD where they do not fit."""
    return at + size if 0 <= at <= end - size else UNREAD


@kernel
def skip_text(data: ByteArray, at: int, end: int, nullable: bool) -> int:
    """The position behind a text; UNREAD where it does not fit."""
    if at < 0 or end - at < 2:
        return UNREAD
    size = int16(data, at)
    if size < 0:
        return at + 2 if nullable and size == NULL else UNREAD
    return skip(at + 2, end, size)


@kernel
def skip_blob(data: ByteArray, at: int, end: int) -> int:
    """The position behind bytes that are not null; UNREAD where they do not fit."""
    if at < 0 or end - at < 4:
        return UNREAD
    size = int32(data, at)
    return skip(at + 4, end, size) if size >= 0 else UNREAD


@kernel
def note_each(
    data: ByteArray,
    start: LongArray,
    member_start: LongArray,
    generation: LongArray,
    group_at: LongArray,
    group_size: LongArray,
    member_at: LongArray,
    member_size: LongArray,
) -> None:
    """Fill the columns from values that fit."""
    for index in range(len(start)):
        version = int16(data, start[index])
        at = note_text(data, start[index] + 2, group_at, group_size, PROTOCOL_TYPE, index)
        generation[index] = int32(data, at)
        at = note_text(data, at + 4, group_at, group_size, PROTOCOL, index)
        at = note_text(data, at, group_at, group_size, LEADER, index)
        at += 12 if version >= _STATE_TIMESTAMP_SINCE else 4
        for member in range(member_start[index], member_start[index + 1]):
            at = note_member(data, at, version, member_at, member_size, member)


@kernel
def note_member(
    data: ByteArray, at: int, version: int, member_at: LongArray, member_size: LongArray, member: int
) -> int:
    """Note the fields of a member; the position behind it."""
    at = note_text(data, at, member_at, member_size, MEMBER_ID, member)
    member_at[INSTANCE_ID, member] = at
    member_size[INSTANCE_ID, member] = NULL
    if version >= _INSTANCE_ID_SINCE:
        at = note_text(data, at, member_at, member_size, INSTANCE_ID, member)
    at = note_text(data, at, member_at, member_size, CLIENT_ID, member)
    at = note_text(data, at, member_at, member_size, CLIENT_HOST, member)
    at += 8 if version >= _REBALANCE_TIMEOUT_SINCE else 4
    at = note_blob(data, at, member_at, member_size, SUBSCRIPTION, member)
    return note_blob(data, at, member_at, member_size, ASSIGNMENT, member)


@kernel
def note_text(data: ByteArray, at: int, place: LongArray, size: LongArray, field: int, index: int) -> int:
    """Note where a text is; the position behind it."""
    length = int16(data, at)
    place[field, index] = at + 2
    size[field, index] = length
    return at + 2 + max(length, 0)


@kernel
def note_blob(data: ByteArray, at: int, place: LongArray, size: LongArray, field: int, index: int) -> int:
    """Note where bytes are; the position behind them."""
    length = int32(data, at)
    place[field, index] = at + 4
    size[field, index] = length
    return at + 4 + length


def _compiled_int16() -> Callable[..., Any]:
    return compiled(int16_of_bytes, cached=False)


def _compiled_int32() -> Callable[..., Any]:
    return compiled(int32_of_bytes, cached=False)


@compiled_as(_compiled_int16)
def int16(data: ByteArray, at: int) -> int:
    """A big-endian number of two bytes."""
    number: int = INT16.unpack_from(data.data, at)[0]
    return number


@compiled_as(_compiled_int32)
def int32(data: ByteArray, at: int) -> int:
    """A big-endian number of four bytes."""
    number: int = INT32.unpack_from(data.data, at)[0]
    return number


@kernel
def int16_of_bytes(data: ByteArray, at: int) -> int:
    """As `int16`, a byte at a time."""
    number = np.int64(data[at]) << 8 | np.int64(data[at + 1])
    return int(number - ((number & 0x8000) << 1))


@kernel
def int32_of_bytes(data: ByteArray, at: int) -> int:
    """As `int32`, a byte at a time."""
    number = np.int64(data[at]) << 24 | np.int64(data[at + 1]) << 16
    number |= np.int64(data[at + 2]) << 8 | np.int64(data[at + 3])
    return int(number - ((number & 0x80000000) << 1))
