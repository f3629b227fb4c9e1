"""GroupMetadata values of versions 0 to 3 as columns: where each field stands, without an object a record.

Two passes of kernels over the buffer that holds all values: one counts members, the other notes where their fields are.
The passes accept no value that `offsets_log.decode_value` refuses, but for texts that are no UTF-8, which
the reader of the texts must judge. What they do not accept (a flexible version, bytes too few or too many) is for
`decode_value` to judge: it may be a record all the same.

A kernel that both counts and notes would be shorter by a fourth, and is not inlined: it takes ten times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.kernels import compiled, compiled_as, kernel, run
from groupledger.core.arrays.ragged import starts
from groupledger.core.wire.codec import INT16, INT32
from groupledger.core.wire.consumer_protocol import NEWEST_VERSION

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import LongArray
    from groupledger.core.arrays.checksums import ByteArray


NEWEST_PLAIN = 3
"""The last version whose lengths are of fixed size."""

PROTOCOL_TYPE, PROTOCOL, LEADER = range(3)
MEMBER_ID, INSTANCE_ID, CLIENT_ID, CLIENT_HOST, SUBSCRIPTION, ASSIGNMENT = range(6)
"""Rows of `GroupColumns.group_at` and `GroupColumns.member_at`."""

UNREAD = -1
NULL = -1

Spans = tuple["ByteArray", "LongArray", "LongArray"]
"""Byte strings: number i is `data[start[i]:end[i]]`."""

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
    """Return number of members of each value `data[start:end]`; UNREAD where it is for `decode_value`."""
    counts = np.empty(len(start), np.int64)
    run(count_each, data, start, end, counts, cells=_cells(start, end))
    return counts


def group_columns(data: ByteArray, start: LongArray, end: LongArray, counts: LongArray) -> GroupColumns:
    """Return the fields of values that `count_members` gave these counts of."""
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
    """Return the position behind a member; UNREAD where it does not fit."""
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
    """Return the position behind so many bytes; UNREAD where they do not fit."""
    return at + size if 0 <= at <= end - size else UNREAD


@kernel
def skip_text(data: ByteArray, at: int, end: int, nullable: bool) -> int:
    """Return the position behind a text; UNREAD where it does not fit."""
    if at < 0 or end - at < 2:
        return UNREAD
    size = int16(data, at)
    if size < 0:
        return at + 2 if nullable and size == NULL else UNREAD
    return skip(at + 2, end, size)


@kernel
def skip_blob(data: ByteArray, at: int, end: int) -> int:
    """Return the position behind bytes that are not null; UNREAD where they do not fit."""
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


@compiled_as(lambda: compiled(int16_of_bytes, cached=False))
def int16(data: ByteArray, at: int) -> int:
    """Return a big-endian number of two bytes."""
    number: int = INT16.unpack_from(data.data, at)[0]
    return number


@compiled_as(lambda: compiled(int32_of_bytes, cached=False))
def int32(data: ByteArray, at: int) -> int:
    """Return a big-endian number of four bytes."""
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


# Subscriptions and assignments of the consumer protocol as columns: what they name and where, without objects.
#
# As in `group_metadata`, nothing is accepted that `consumer_protocol` refuses, but for topics that are no UTF-8; what
# is not accepted is for its decoders to judge.

NO_VERSION = -1
"""The version of no bytes at all."""


@dataclass(frozen=True, slots=True)
class TopicLists:
    """Partitions by topic of N blobs: E topics, each where its name is, and its partitions."""

    start: LongArray  # [N+1]
    name_at: LongArray  # [E]
    name_size: LongArray  # [E]
    number_start: LongArray  # [E+1]
    number: LongArray


@dataclass(frozen=True, slots=True)
class SubscriptionColumns:
    """N subscriptions: their fields, and where those are that are no numbers (size NULL: there is none)."""

    version: LongArray  # NO_VERSION for no bytes
    topic_start: LongArray  # [N+1]
    topic_at: LongArray  # [T]
    topic_size: LongArray  # [T]
    list_at: LongArray  # the bytes of all topics, with their number
    list_size: LongArray
    user_data_at: LongArray
    user_data_size: LongArray
    owned: TopicLists
    generation: LongArray  # NULL: absent
    rack_at: LongArray
    rack_size: LongArray


def read_assignments(data: ByteArray, start: LongArray, end: LongArray) -> tuple[TopicLists, LongArray]:
    """Return what the blobs assign, nothing where one is for `decode_assignment`; and the indices of those."""
    topics, numbers = (np.empty(len(start), np.int64) for _ in range(2))
    run(count_assignments, data, start, end, topics, numbers, cells=_assigned_cells(start, end))
    unread = np.flatnonzero(topics == UNREAD)
    topics[unread] = numbers[unread] = 0
    lists = _lists(topics, numbers)
    run(note_assignments, data, start, *_columns(lists), cells=_assigned_cells(start, end))
    return lists, unread


def read_subscriptions(data: ByteArray, start: LongArray, end: LongArray) -> tuple[SubscriptionColumns, LongArray]:
    """Return what the blobs say, nothing where one is for `decode_subscription`; and the indices of those."""
    counts = np.empty((3, len(start)), np.int64)
    run(count_subscriptions, data, start, end, counts, cells=_assigned_cells(start, end))
    unread = np.flatnonzero(counts[0] == UNREAD)
    counts[:, unread] = 0
    stop = end.copy()
    stop[unread] = start[unread]
    named = int(counts[0].sum())
    fields = np.zeros((8, len(start)), np.int64)
    topics = np.empty((2, named), np.int64)
    topic_start, owned = starts(counts[0]), _lists(counts[1], counts[2])
    columns = (topic_start, topics, fields, *_columns(owned))
    run(note_subscriptions, data, start, stop, *columns, cells=_assigned_cells(start, end))
    version, list_at, list_size, user_at, user_size, generation, rack_at, rack_size = fields
    said = SubscriptionColumns(
        *(version, topic_start, topics[0], topics[1], list_at, list_size, user_at, user_size),
        *(owned, generation, rack_at, rack_size),
    )
    return said, unread


def _assigned_cells(start: LongArray, end: LongArray) -> int:
    return int((end - start).sum()) // 4


def _lists(topics: LongArray, numbers: LongArray) -> TopicLists:
    count = int(topics.sum())
    at, size, number_start = np.empty(count, np.int64), np.empty(count, np.int64), np.zeros(count + 1, np.int64)
    return TopicLists(starts(topics), at, size, number_start, np.empty(int(numbers.sum()), np.int64))


def _columns(lists: TopicLists) -> tuple[LongArray, ...]:
    return lists.start, lists.name_at, lists.name_size, lists.number_start, lists.number


@kernel
def count_assignments(data: ByteArray, start: LongArray, end: LongArray, topics: LongArray, numbers: LongArray) -> None:
    """Fill `topics` and `numbers`, UNREAD in both where a blob does not fit."""
    for index in range(len(start)):
        at, stop = start[index], end[index]
        topics[index] = 0
        numbers[index] = 0
        if at == stop:
            continue
        if stop - at >= 2 and int16(data, at) >= 0:
            at, topics[index], numbers[index] = count_topics(data, at + 2, stop)
            at = skip_nullable(data, at, stop)
        else:
            at = UNREAD
        if at < 0:
            topics[index] = UNREAD
            numbers[index] = UNREAD


@kernel
def count_subscriptions(data: ByteArray, start: LongArray, end: LongArray, counts: LongArray) -> None:
    """Fill the rows of `counts`: topics, topics owned and partitions owned; UNREAD where a blob does not fit."""
    for index in range(len(start)):
        topics, owned, numbers = count_subscription(data, start[index], end[index])
        counts[0, index] = topics
        counts[1, index] = owned
        counts[2, index] = numbers


@kernel
def count_subscription(data: ByteArray, at: int, end: int) -> tuple[int, int, int]:
    """Topics, topics owned and partitions owned; UNREAD each where the blob does not fit."""
    if at == end:
        return 0, 0, 0
    if end - at < 6 or int16(data, at) < 0:
        return UNREAD, UNREAD, UNREAD
    version = int16(data, at)
    topics, owned, numbers = int32(data, at + 2), 0, 0
    at += 6
    for _ in range(topics):
        at = skip_text(data, at, end, False)
        if at < 0:
            break
    at = skip_nullable(data, at, end)
    if version >= 1:
        at, owned, numbers = count_topics(data, at, end)
    if version >= 2:
        at = skip(at, end, 4)
    if version >= NEWEST_VERSION:
        at = skip_text(data, at, end, True)
    if at < 0 or topics < 0:
        return UNREAD, UNREAD, UNREAD
    return topics, owned, numbers


@kernel
def count_topics(data: ByteArray, at: int, end: int) -> tuple[int, int, int]:
    """Return the position behind partitions by topic, and the numbers of both; UNREAD where they do not fit."""
    if at < 0 or end - at < 4:
        return UNREAD, 0, 0
    topics, numbers = int32(data, at), 0
    at += 4
    for _ in range(topics):
        at = skip_text(data, at, end, False)
        if at < 0 or end - at < 4:
            return UNREAD, 0, 0
        count = int32(data, at)
        if count < 0 or count > (end - at - 4) // 4:
            return UNREAD, 0, 0
        numbers += count
        at += 4 + 4 * count
    return at if topics >= 0 else UNREAD, topics, numbers


@kernel
def skip_nullable(data: ByteArray, at: int, end: int) -> int:
    """Return the position behind bytes that may be null; UNREAD where they do not fit."""
    if at < 0 or end - at < 4:
        return UNREAD
    size = int32(data, at)
    if size < 0:
        return at + 4 if size == NULL else UNREAD
    return skip(at + 4, end, size)


@kernel
def note_assignments(
    data: ByteArray,
    start: LongArray,
    topic_start: LongArray,
    name_at: LongArray,
    name_size: LongArray,
    number_start: LongArray,
    number: LongArray,
) -> None:
    """Fill the columns from the blobs that have topics."""
    for index in range(len(start)):
        if topic_start[index + 1] > topic_start[index]:
            note_topics(data, start[index] + 2, topic_start[index], name_at, name_size, number_start, number)


@kernel
def note_topics(
    data: ByteArray,
    at: int,
    topic: int,
    name_at: LongArray,
    name_size: LongArray,
    number_start: LongArray,
    number: LongArray,
) -> int:
    """Note partitions by topic from number `topic` on; the position behind them."""
    topics = int32(data, at)
    at += 4
    for each in range(topic, topic + topics):
        size = int16(data, at)
        name_at[each] = at + 2
        name_size[each] = size
        at += 2 + size
        first, count = number_start[each], int32(data, at)
        at += 4
        for place in range(count):
            number[first + place] = int32(data, at + 4 * place)
        number_start[each + 1] = first + count
        at += 4 * count
    return at


@kernel
def note_subscriptions(
    data: ByteArray,
    start: LongArray,
    end: LongArray,
    topic_start: LongArray,
    topics: LongArray,
    fields: LongArray,
    owned_start: LongArray,
    name_at: LongArray,
    name_size: LongArray,
    number_start: LongArray,
    number: LongArray,
) -> None:
    """Fill the columns; a blob without bytes, or one that `end` cuts to nothing, says nothing."""
    for index in range(len(start)):
        at, version = start[index], NO_VERSION
        fields[1, index] = at
        fields[2, index] = 0
        fields[4, index] = NULL
        fields[5, index] = NULL
        fields[7, index] = NULL
        if at < end[index]:
            version = int16(data, at)
            at += 2
            fields[1, index] = at
            at = note_names(data, at + 4, topic_start[index], topic_start[index + 1], topics)
            fields[2, index] = at - fields[1, index]
            size = int32(data, at)
            fields[3, index] = at + 4
            fields[4, index] = size
            at += 4 + max(size, 0)
        if version >= 1:
            at = note_topics(data, at, owned_start[index], name_at, name_size, number_start, number)
        if version >= 2:
            fields[5, index] = int32(data, at)
            at += 4
        if version >= NEWEST_VERSION:
            fields[6, index] = at + 2
            fields[7, index] = int16(data, at)
        fields[0, index] = version


@kernel
def note_names(data: ByteArray, at: int, first: int, end: int, topics: LongArray) -> int:
    """Note texts; the position behind them."""
    for topic in range(first, end):
        size = int16(data, at)
        topics[0, topic] = at + 2
        topics[1, topic] = size
        at += 2 + size
    return at
