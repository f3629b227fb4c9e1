"""GroupMetadata values of versions 0 to 3 as columns: where each field stands, without an object a record.

Two passes over the buffer that holds all values: one counts members, the other notes where their fields are.
The passes accept no value that `offsets_log.decode_value` refuses, but for texts that are no UTF-8, which
the reader of the texts must judge. What they do not accept (a flexible version, bytes too few or too many) is for
`decode_value` to judge: it may be a record all the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

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
"""Rows of `GroupColumns.group` and `GroupColumns.member`."""

UNREAD = -1
NULL = -1

Spans = tuple["ByteArray", "LongArray", "LongArray"]
"""Byte strings: number i is `data[start[i]:end[i]]`."""

_STATE_TIMESTAMP_SINCE = 2
_REBALANCE_TIMEOUT_SINCE = 1
_INSTANCE_ID_SINCE = 3


class FieldSpans(NamedTuple):
    """Where F fields of N structs begin, and their sizes (NULL: there is none): [F, N] each."""

    at: LongArray
    size: LongArray

    @classmethod
    def room(cls, fields: int, structs: int) -> FieldSpans:
        """Return spans to be filled."""
        return cls(np.empty((fields, structs), np.int64), np.empty((fields, structs), np.int64))

    def of(self, field: int) -> tuple[LongArray, LongArray]:
        """Return where one field is."""
        return self.at[field], self.size[field]


class GroupColumns(NamedTuple):
    """N values with M members in all."""

    member_start: LongArray  # [N+1]
    generation: LongArray  # [N]
    group: FieldSpans  # [3, N]
    member: FieldSpans  # [6, M]

    @classmethod
    def room(cls, counts: LongArray) -> GroupColumns:
        """Return columns to be filled, of values with so many members."""
        generation, members = np.empty(len(counts), np.int64), int(counts.sum())
        return cls(starts(counts), generation, FieldSpans.room(3, len(counts)), FieldSpans.room(6, members))


def count_members(data: ByteArray, start: LongArray, end: LongArray) -> LongArray:
    """Return the number of members of each value `data[start:end]`; UNREAD where it is for `decode_value`."""
    counts = np.empty(len(start), np.int64)
    nothing = GroupColumns.room(np.zeros(0, np.int64))
    run(read_groups, data, start, end, False, counts, nothing, cells=_cells(start, end))
    return counts


def group_columns(data: ByteArray, start: LongArray, end: LongArray, counts: LongArray) -> GroupColumns:
    """Return the fields of values that `count_members` gave these counts of."""
    columns = GroupColumns.room(counts)
    run(read_groups, data, start, end, True, counts.copy(), columns, cells=_cells(start, end))
    return columns


def _cells(start: LongArray, end: LongArray) -> int:
    """Lengths are read, not bytes: about one in eight."""
    return int((end - start).sum()) // 8


# Kernels that read a struct are used twice: with `index` NULL they check that it fits, and count; then they note where
# its fields are, in the columns' row of that index.


@kernel
def read_groups(
    data: ByteArray, start: LongArray, end: LongArray, notes: bool, counts: LongArray, columns: GroupColumns
) -> None:
    """Fill `counts`; if it `notes`, the columns too."""
    for index in range(len(start)):
        counts[index] = read_group(data, start[index], end[index], index if notes else NULL, columns)


@kernel
def read_group(data: ByteArray, at: int, end: int, index: int, columns: GroupColumns) -> int:
    """Return the members of one value, UNREAD where it does not fit."""
    if end - at < 2:
        return UNREAD
    version = int16(data, at)
    if version < 0 or version > NEWEST_PLAIN:
        return UNREAD
    at = read_text(data, at + 2, end, False, columns.group, PROTOCOL_TYPE, index)
    if index >= 0:
        columns.generation[index] = int32(data, at)
    at = read_text(data, skip(at, end, 4), end, True, columns.group, PROTOCOL, index)
    at = read_text(data, at, end, True, columns.group, LEADER, index)
    if version >= _STATE_TIMESTAMP_SINCE:
        at = skip(at, end, 8)
    if at < 0 or end - at < 4:
        return UNREAD
    members = int32(data, at)
    at += 4
    for member in range(members):
        row = columns.member_start[index] + member if index >= 0 else NULL
        at = read_member(data, at, end, version, columns.member, row)
        if at < 0:
            return UNREAD
    return members if members >= 0 and at == end else UNREAD


@kernel
def read_member(data: ByteArray, at: int, end: int, version: int, spans: FieldSpans, index: int) -> int:
    """Return the position behind a member; UNREAD where it does not fit."""
    at = read_text(data, at, end, False, spans, MEMBER_ID, index)
    if version >= _INSTANCE_ID_SINCE:
        at = read_text(data, at, end, True, spans, INSTANCE_ID, index)
    elif index >= 0:
        spans.at[INSTANCE_ID, index] = at
        spans.size[INSTANCE_ID, index] = NULL
    at = read_text(data, at, end, False, spans, CLIENT_ID, index)
    at = read_text(data, at, end, False, spans, CLIENT_HOST, index)
    at = skip(at, end, 8 if version >= _REBALANCE_TIMEOUT_SINCE else 4)
    at = read_blob(data, at, end, False, spans, SUBSCRIPTION, index)
    return read_blob(data, at, end, False, spans, ASSIGNMENT, index)


@kernel
def skip(at: int, end: int, size: int) -> int:
    """Return the position behind so many bytes; UNREAD where they do not fit."""
    return at + size if 0 <= at <= end - size else UNREAD


@kernel
def read_text(data: ByteArray, at: int, end: int, nullable: bool, spans: FieldSpans, field: int, index: int) -> int:
    """Return the position behind a text; UNREAD where it does not fit."""
    if at < 0 or end - at < 2:
        return UNREAD
    size = int16(data, at)
    if size < 0 and not (nullable and size == NULL):
        return UNREAD
    if index >= 0:
        spans.at[field, index] = at + 2
        spans.size[field, index] = size
    return skip(at + 2, end, max(size, 0))


@kernel
def read_blob(data: ByteArray, at: int, end: int, nullable: bool, spans: FieldSpans, field: int, index: int) -> int:
    """Return the position behind bytes; UNREAD where they do not fit."""
    if at < 0 or end - at < 4:
        return UNREAD
    size = int32(data, at)
    if size < 0 and not (nullable and size == NULL):
        return UNREAD
    if index >= 0:
        spans.at[field, index] = at + 4
        spans.size[field, index] = size
    return skip(at + 4, end, max(size, 0))


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
# is
# not accepted is for its decoders to judge.

NO_VERSION = -1
"""The version of no bytes at all."""
TOPICS, USER_DATA, RACK = range(3)
"""Rows of `SubscriptionColumns.field`: all topics, with their number before them; user data; the rack."""


class TopicLists(NamedTuple):
    """Partitions by topic of N blobs: E topics, each where its name is, and its partitions."""

    start: LongArray  # [N+1]
    name: FieldSpans  # [1, E]
    number_start: LongArray  # [E+1]
    number: LongArray

    @classmethod
    def room(cls, topics: LongArray, numbers: LongArray) -> TopicLists:
        """Return lists to be filled, of blobs with so many topics and partitions."""
        start, count = starts(topics), int(topics.sum())
        return cls(start, FieldSpans.room(1, count), np.zeros(count + 1, np.int64), np.empty(numbers.sum(), np.int64))


class SubscriptionColumns(NamedTuple):
    """N subscriptions: their fields, and where those are that are no numbers."""

    version: LongArray  # NO_VERSION for no bytes
    generation: LongArray  # NULL: absent
    field: FieldSpans  # [3, N]
    topic_start: LongArray  # [N+1]
    topic: FieldSpans  # [1, T]
    owned: TopicLists

    @classmethod
    def room(cls, start: LongArray, counts: LongArray) -> SubscriptionColumns:
        """Return columns that say nothing, with room for so many topics, topics owned and partitions owned."""
        version, generation = np.full((2, len(start)), NULL, np.int64)
        field = FieldSpans(np.repeat(start[None, :], 3, axis=0), np.full((3, len(start)), NULL, np.int64))
        field.size[TOPICS] = 0
        topic = FieldSpans.room(1, int(counts[0].sum()))
        return cls(version, generation, field, starts(counts[0]), topic, TopicLists.room(counts[1], counts[2]))


def read_assignments(data: ByteArray, start: LongArray, end: LongArray) -> tuple[TopicLists, LongArray]:
    """Return what the blobs assign, nothing where one is for `decode_assignment`; and the indices of those."""
    counts, nothing = np.zeros((2, len(start)), np.int64), np.zeros(0, np.int64)
    cells = int((end - start).sum()) // 4
    run(read_each_assignment, data, start, end, False, counts, TopicLists.room(nothing, nothing), cells=cells)
    unread, end = _leave_unread(start, end, counts)
    lists = TopicLists.room(*counts)
    run(read_each_assignment, data, start, end, True, counts, lists, cells=cells)
    return lists, unread


def read_subscriptions(data: ByteArray, start: LongArray, end: LongArray) -> tuple[SubscriptionColumns, LongArray]:
    """Return what the blobs say, nothing where one is for `decode_subscription`; and the indices of those."""
    counts, nothing = np.zeros((3, len(start)), np.int64), np.zeros((3, 0), np.int64)
    cells = int((end - start).sum()) // 4
    columns = SubscriptionColumns.room(nothing[0], nothing)
    run(read_each_subscription, data, start, end, False, counts, columns, cells=cells)
    unread, end = _leave_unread(start, end, counts)
    columns = SubscriptionColumns.room(start, counts)
    run(read_each_subscription, data, start, end, True, counts, columns, cells=cells)
    return columns, unread


def _leave_unread(start: LongArray, end: LongArray, counts: LongArray) -> tuple[LongArray, LongArray]:
    """Return the indices of blobs that do not fit, and where all end: those at once. Their counts become 0."""
    unread, end = np.flatnonzero(counts[0] == UNREAD), end.copy()
    counts[:, unread] = 0
    end[unread] = start[unread]
    return unread, end


@kernel
def read_each_assignment(
    data: ByteArray, start: LongArray, end: LongArray, notes: bool, counts: LongArray, lists: TopicLists
) -> None:
    """Fill the rows of `counts`: topics and partitions, UNREAD where a blob does not fit; if it `notes`, the lists."""
    for index in range(len(start)):
        at, topics, numbers = start[index], 0, 0
        if at < end[index]:
            version = int16(data, at) if end[index] - at >= 2 else UNREAD
            at = at + 2 if version >= 0 else UNREAD
            at, topics, numbers = read_topics(data, at, end[index], lists, index if notes else NULL)
            at = read_blob(data, at, end[index], True, lists.name, 0, NULL)
        counts[0, index] = topics if at >= 0 else UNREAD
        counts[1, index] = numbers if at >= 0 else UNREAD


@kernel
def read_topics(data: ByteArray, at: int, end: int, lists: TopicLists, index: int) -> tuple[int, int, int]:
    """Return the position behind partitions by topic, and the numbers of both; UNREAD where they do not fit."""
    if at < 0 or end - at < 4:
        return UNREAD, 0, 0
    topics, numbers = int32(data, at), 0
    at += 4
    for topic in range(topics):
        row = lists.start[index] + topic if index >= 0 else NULL
        at = read_text(data, at, end, False, lists.name, 0, row)
        if at < 0 or end - at < 4:
            return UNREAD, 0, 0
        count = int32(data, at)
        at += 4
        if count < 0 or count > (end - at) // 4:
            return UNREAD, 0, 0
        if row >= 0:
            first = lists.number_start[row]
            lists.number_start[row + 1] = first + count
            for place in range(count):
                lists.number[first + place] = int32(data, at + 4 * place)
        numbers += count
        at += 4 * count
    return at if topics >= 0 else UNREAD, topics, numbers


@kernel
def read_each_subscription(
    data: ByteArray, start: LongArray, end: LongArray, notes: bool, counts: LongArray, columns: SubscriptionColumns
) -> None:
    """Fill the rows of `counts`: topics, topics owned and partitions owned, as `read_each_assignment` does."""
    for index in range(len(start)):
        topics, owned, numbers = read_subscription(data, start[index], end[index], index if notes else NULL, columns)
        counts[0, index] = topics
        counts[1, index] = owned
        counts[2, index] = numbers


@kernel
def read_subscription(
    data: ByteArray, at: int, end: int, index: int, columns: SubscriptionColumns
) -> tuple[int, int, int]:
    """Return topics, topics owned and partitions owned; UNREAD each where the blob does not fit."""
    if at == end:
        return 0, 0, 0
    if end - at < 6 or int16(data, at) < 0:
        return UNREAD, UNREAD, UNREAD
    version, listed = int16(data, at), at + 2
    topics, owned, numbers = int32(data, listed), 0, 0
    at += 6
    for topic in range(topics):
        row = columns.topic_start[index] + topic if index >= 0 else NULL
        at = read_text(data, at, end, False, columns.topic, 0, row)
        if at < 0:
            break
    if index >= 0:
        columns.version[index] = version
        columns.field.at[TOPICS, index] = listed
        columns.field.size[TOPICS, index] = at - listed
    at = read_blob(data, at, end, True, columns.field, USER_DATA, index)
    if version >= 1:
        at, owned, numbers = read_topics(data, at, end, columns.owned, index)
    if version >= 2:
        if index >= 0:
            columns.generation[index] = int32(data, at)
        at = skip(at, end, 4)
    if version >= NEWEST_VERSION:
        at = read_text(data, at, end, True, columns.field, RACK, index)
    if at < 0 or topics < 0:
        return UNREAD, UNREAD, UNREAD
    return topics, owned, numbers
