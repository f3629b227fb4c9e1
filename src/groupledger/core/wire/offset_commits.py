"""Offset commits told from other records by columns: most of a log, of which nothing is needed but that it decodes.

As in `group_metadata`, only what `offsets_log` reads is accepted; what is not accepted is for it to judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.kernels import kernel, run
from groupledger.core.wire.group_metadata import UNREAD, int16, skip

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray

OTHER, COMMIT, TOMBSTONE = range(3)
"""What a record is: an offset commit that decodes, the tombstone of one, or something else."""

_TYPE = 1
_LEADER_EPOCH_SINCE = 3
_EXPIRE_TIMESTAMP_IN = 1
_FLEXIBLE = 4
_TOPIC_ID_BYTES = 16
_ASCII = 0x80

Spans = tuple["ByteArray", "LongArray", "LongArray"]
"""Byte strings: number i is `data[start[i]:end[i]]`."""


def tell_commits(keys: Spans, values: Spans, is_tombstone: LongArray, names: Spans, group: LongArray) -> LongArray:
    """What each record is, of the group of that number among `names`."""
    found = np.full(len(group), OTHER, np.int64)
    run(tell_each, *keys, *values, is_tombstone, *names, group, found, cells=16 * len(group))
    return found


@kernel
def tell_each(
    keys: ByteArray,
    key_start: LongArray,
    key_end: LongArray,
    values: ByteArray,
    value_start: LongArray,
    value_end: LongArray,
    is_tombstone: LongArray,
    names: ByteArray,
    name_start: LongArray,
    name_end: LongArray,
    group: LongArray,
    found: LongArray,
) -> None:
    """Fill `found`, which is OTHER everywhere."""
    for index in range(len(group)):
        first, end = name_start[group[index]], name_end[group[index]]
        if is_key(keys, key_start[index], key_end[index], names, first, end):
            if is_tombstone[index]:
                found[index] = TOMBSTONE
            elif is_value(values, value_start[index], value_end[index]):
                found[index] = COMMIT


@kernel
def is_key(data: ByteArray, at: int, end: int, names: ByteArray, first: int, last: int) -> bool:
    """Whether it is the key of a commit of the group whose name is `names[first:last]`."""
    size = last - first
    if end - at < 4 + size or int16(data, at) != _TYPE or int16(data, at + 2) != size:
        return False
    at += 4
    for place in range(size):
        if data[at + place] != names[first + place]:
            return False
    return skip(skip_ascii(data, at + size, end), end, 4) == end


@kernel
def is_value(data: ByteArray, at: int, end: int) -> bool:
    """Whether it is the value of a commit."""
    if end - at < 2:
        return False
    version = int16(data, at)
    if version < 0 or version > _FLEXIBLE:
        return False
    at = skip(at + 2, end, 12 if version >= _LEADER_EPOCH_SINCE else 8)
    if version < _FLEXIBLE:
        at = skip_ascii(data, at, end)
        return skip(at, end, 16 if version == _EXPIRE_TIMESTAMP_IN else 8) == end
    at = skip(skip_short_ascii(data, at, end), end, 8)
    if at < 0 or at >= end:
        return False
    if data[at] == 0:
        return at + 1 == end
    has_topic_id = end - at == 3 + _TOPIC_ID_BYTES and data[at] == 1 and data[at + 1] == 0
    return has_topic_id and data[at + 2] == _TOPIC_ID_BYTES


@kernel
def skip_ascii(data: ByteArray, at: int, end: int) -> int:
    """The position behind a text of ASCII alone; UNREAD where there is none."""
    if at < 0 or end - at < 2:
        return UNREAD
    size = int16(data, at)
    return ascii_end(data, at + 2, end, size)


@kernel
def skip_short_ascii(data: ByteArray, at: int, end: int) -> int:
    """The position behind a text of ASCII alone whose length is one byte, one more than it is; or UNREAD."""
    if at < 0 or at >= end or data[at] >= _ASCII:
        return UNREAD
    return ascii_end(data, at + 1, end, int(np.int64(data[at]) - 1))


@kernel
def ascii_end(data: ByteArray, at: int, end: int, size: int) -> int:
    """The position behind so many bytes of ASCII; UNREAD where there are other ones, or not so many."""
    if size < 0 or size > end - at:
        return UNREAD
    for place in range(at, at + size):
        if data[place] >= _ASCII:
            return UNREAD
    return at + size
