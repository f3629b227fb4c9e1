"""GroupMetadata records as columns, parsed where they stand; what only the careful decoder reads is written anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from struct import error as StructError
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.ragged import owners
from groupledger.core.wire import group_metadata as g
from groupledger.core.wire.faults import DecodeFault
from groupledger.core.wire.offsets_log import GroupMetadata, RecordKind, decode_value, encode_value
from groupledger.engine.classic.codes import CodedBytes, CodedTexts, blobs, texts, written_again

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.core.segments.checksums import ByteArray
    from groupledger.engine.classic.log import BoolArray, LogColumns


@dataclass(frozen=True, slots=True)
class GroupRecords:
    """N records with M members, those that could be read. Whoever refuses one adds to `refused`: record -> fault.

    `odd` are records that the columns cannot hold.
    """

    record: LongArray  # [N] of the log
    member_start: LongArray  # [N+1]
    generation: LongArray
    protocol_type: CodedTexts
    protocol: CodedTexts
    leader: CodedTexts
    member_id: CodedTexts
    instance_id: CodedTexts
    client_id: CodedTexts
    client_host: CodedTexts
    subscription: CodedBytes
    assignment: CodedBytes
    refused: dict[int, DecodeFault]
    odd: list[int]

    @property
    def record_of_member(self) -> LongArray:
        """Of each member, its record among these: [M]."""
        return owners(self.member_start)


def read_records(log: LogColumns, record: LongArray) -> GroupRecords:
    """The records of the log (none of them a tombstone) that hold a group's generation."""
    values = log.values
    data, start, end = values.data, values.start[record], values.end[record]
    counts = g.count_members(data, start, end)
    refused: dict[int, DecodeFault] = {}
    odd: list[int] = []
    again = _decoded(log, record, counts == g.UNREAD, refused, odd)
    if again:
        data, start, end = written_again(data, start, end, again)
        added = np.array(list(again), np.int64)
        counts[added] = g.count_members(data, start[added], end[added])
    read = counts != g.UNREAD
    found = _columns(data, record[read], g.group_columns(data, start[read], end[read], counts[read]), refused, odd)
    _refuse_texts(log, found)
    return found


def _decoded(
    log: LogColumns, record: LongArray, unread: BoolArray, refused: dict[int, DecodeFault], odd: list[int]
) -> dict[int, bytes]:
    """What only the careful decoder reads, by place, as bytes of a version that the columns are read from."""
    again: dict[int, bytes] = {}
    for place in np.flatnonzero(unread).tolist():
        index = int(record[place])
        try:
            _, value = decode_value(RecordKind.GROUP_METADATA, log.values[index])
        except DecodeFault as fault:
            refused[index] = fault
            continue
        assert isinstance(value, GroupMetadata)
        try:
            again[place] = _plain(value)
        except StructError:  # a text of more bytes than fit behind a short length
            odd.append(index)
    return again


def _plain(group: GroupMetadata) -> bytes:
    members = tuple(replace(member, tagged=()) for member in group.members)
    data = encode_value(RecordKind.GROUP_METADATA, g.NEWEST_PLAIN, replace(group, members=members, tagged=()))
    assert data is not None
    return data


def _columns(
    data: ByteArray, record: LongArray, c: g.GroupColumns, refused: dict[int, DecodeFault], odd: list[int]
) -> GroupRecords:
    def of_group(field: int) -> CodedTexts:
        return texts(data, c.group_at[field], c.group_size[field])

    def of_member(field: int) -> CodedTexts:
        return texts(data, c.member_at[field], c.member_size[field])

    return GroupRecords(
        record,
        c.member_start,
        c.generation,
        of_group(g.PROTOCOL_TYPE),
        of_group(g.PROTOCOL),
        of_group(g.LEADER),
        of_member(g.MEMBER_ID),
        of_member(g.INSTANCE_ID),
        of_member(g.CLIENT_ID),
        of_member(g.CLIENT_HOST),
        blobs(data, c.member_at[g.SUBSCRIPTION], c.member_size[g.SUBSCRIPTION]),
        blobs(data, c.member_at[g.ASSIGNMENT], c.member_size[g.ASSIGNMENT]),
        refused,
        odd,
    )


def _refuse_texts(log: LogColumns, found: GroupRecords) -> None:
    """Refuse the records in which a text is no UTF-8."""
    bad = np.zeros(len(found.record), bool)
    for column in (found.protocol_type, found.protocol, found.leader):
        bad |= column.are_bad
    for column in (found.member_id, found.instance_id, found.client_id, found.client_host):
        bad[found.record_of_member[column.are_bad]] = True
    for index in found.record[bad].tolist():
        try:
            decode_value(RecordKind.GROUP_METADATA, log.values[index])
        except DecodeFault as fault:
            found.refused[index] = fault
        else:
            raise AssertionError(f"the value of record {index} has a text that is no UTF-8, and decodes")
