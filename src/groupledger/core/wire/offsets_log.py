"""Records of `__consumer_offsets`: key and value bytes in, kinds and typed values out, and back.

A key is an int16 record type and that type's key at version 0; a value is an int16 version and the message at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

from groupledger.core.wire.codec import INT16, DecodeCode, DecodeFault, codec, fault, load_spec, truncated
from groupledger.core.wire.records import RecordValue


class RecordKind(StrEnum):
    """The types of record, each named as Kafka's spec of it."""

    LEGACY_OFFSET_COMMIT = "LegacyOffsetCommit"
    OFFSET_COMMIT = "OffsetCommit"
    GROUP_METADATA = "GroupMetadata"
    CONSUMER_GROUP_METADATA = "ConsumerGroupMetadata"
    CONSUMER_GROUP_PARTITION_METADATA = "ConsumerGroupPartitionMetadata"
    CONSUMER_GROUP_MEMBER_METADATA = "ConsumerGroupMemberMetadata"
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = "ConsumerGroupTargetAssignmentMetadata"
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = "ConsumerGroupTargetAssignmentMember"
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = "ConsumerGroupCurrentMemberAssignment"
    SHARE_GROUP_MEMBER_METADATA = "ShareGroupMemberMetadata"
    SHARE_GROUP_METADATA = "ShareGroupMetadata"
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = "ShareGroupTargetAssignmentMetadata"
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = "ShareGroupTargetAssignmentMember"
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = "ShareGroupCurrentMemberAssignment"
    SHARE_GROUP_STATE_PARTITION_METADATA = "ShareGroupStatePartitionMetadata"
    CONSUMER_GROUP_REGULAR_EXPRESSION = "ConsumerGroupRegularExpression"
    STREAMS_GROUP_METADATA = "StreamsGroupMetadata"
    STREAMS_GROUP_MEMBER_METADATA = "StreamsGroupMemberMetadata"
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = "StreamsGroupTargetAssignmentMetadata"
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = "StreamsGroupTargetAssignmentMember"
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = "StreamsGroupCurrentMemberAssignment"
    STREAMS_GROUP_TOPOLOGY = "StreamsGroupTopology"
    UNKNOWN = "Unknown"  # a type that no vendored spec has: of a later Kafka, or given up before 4.4 (9, 18)


_KINDS = dict(zip([*range(9), *range(10, 18), *range(19, 24)], RecordKind, strict=False))
"""Record type -> kind; a test holds it against the specs, so that no spec need be loaded to know a kind."""

COORDINATOR_RECORDS = tuple(number for number, kind in _KINDS.items() if kind.startswith("ConsumerGroup"))
"""Record types of KIP-848 groups."""


@dataclass(frozen=True, slots=True)
class LogKey:
    """What a record is about. `version` is the int16 that leads the key: Kafka's record type.

    `fields` are the key's fields after the group id (topic and partition, member_id, regular_expression). Of an
    UNKNOWN kind nothing is known but the type: no group id, and `tail` holds the bytes after it.
    """

    kind: RecordKind
    version: int
    group_id: str | None
    fields: Mapping[str, object]
    tail: bytes = b""


@dataclass(frozen=True, slots=True)
class LogRecord:
    """A key and its value. A tombstone has neither version nor value; an UNKNOWN kind's value is its bytes."""

    key: LogKey
    version: int | None
    value: RecordValue | None

    @property
    def kind(self) -> RecordKind:
        """The record's type."""
        return self.key.kind

    @property
    def group_id(self) -> str | None:
        """The group it belongs to; None where the kind is unknown."""
        return self.key.group_id


def decode(key: bytes | None, value: bytes | None) -> LogRecord:
    """Decode a record's key and value; `DecodeFault` for bytes that are not one."""
    log_key = decode_key(key)
    return LogRecord(log_key, *decode_value(log_key.kind, value))


def decode_key(data: bytes | None) -> LogKey:
    """`decode_key(b"\\x00\\x02\\x00\\x01g")` -> kind GROUP_METADATA, version 2, group_id "g", no fields."""
    if data is None:
        raise DecodeFault(DecodeCode.NO_KEY.value, "key is null; expected the bytes of a __consumer_offsets key")
    version = _leading_int16(data, "record key's type")
    if version < 0:
        raise fault(DecodeCode.BAD_KEY_TYPE, "record key", 0, f"record type {version}", "0 or more")
    kind = _KINDS.get(version)
    if kind is None:
        return LogKey(RecordKind.UNKNOWN, version, None, {}, data[2:])
    fields, end = codec(_KEY_MESSAGE[kind], 0).read(data, 2)
    if end != len(data):
        raise _trailing(data, end, _KEY_MESSAGE[kind])
    return LogKey(kind, version, fields.pop(_group_field(kind)), fields)


def decode_value(kind: RecordKind, data: bytes | None) -> tuple[int | None, RecordValue | None]:
    """Decode a value: version and content; (None, None) for a tombstone, (None, bytes) for an UNKNOWN kind."""
    if data is None or kind is RecordKind.UNKNOWN:
        return None, data
    message = _VALUE_MESSAGE[kind]
    version = _leading_int16(data, message)
    value, end = codec(message, version).read(data, 2)
    if end != len(data):
        raise _trailing(data, end, message)
    return version, value


def encode(record: LogRecord) -> tuple[bytes, bytes | None]:
    """Encode key and value: the inverse of `decode`."""
    return encode_key(record.key), encode_value(record.kind, record.version, record.value)


def encode_key(key: LogKey) -> bytes:
    """Encode a key: the inverse of `decode_key`."""
    out = bytearray(INT16.pack(key.version))
    if key.kind is RecordKind.UNKNOWN:
        return bytes(out + key.tail)
    codec(_KEY_MESSAGE[key.kind], 0).write({_group_field(key.kind): key.group_id, **key.fields}, out)
    return bytes(out)


def encode_value(kind: RecordKind, version: int | None, value: RecordValue | None) -> bytes | None:
    """Encode a value: the inverse of `decode_value`."""
    if value is None or isinstance(value, bytes):
        return value
    if version is None:
        raise ValueError(f"version of a {kind} value is None; expected the version to write")
    out = bytearray(INT16.pack(version))
    codec(_VALUE_MESSAGE[kind], version).write(value, out)
    return bytes(out)


_KEY_MESSAGE = {kind: f"{kind.value}Key" for kind in RecordKind}
_VALUE_MESSAGE = {kind: f"{kind.value}Value" for kind in RecordKind}


@cache
def _group_field(kind: RecordKind) -> str:
    """Return the name of every key's first field, the group id; it has two."""
    return load_spec(_KEY_MESSAGE[kind]).fields[0].name


def _leading_int16(data: bytes, what: str) -> int:
    if len(data) < INT16.size:
        raise truncated(what, 0, INT16.size, len(data))
    number: int = INT16.unpack_from(data)[0]
    return number


def _trailing(data: bytes, end: int, message: str) -> DecodeFault:
    return fault(DecodeCode.TRAILING_BYTES, message, end, f"{len(data) - end} more bytes", "the end")


# Records that are recognised by their bytes alone.
#
# Offset commits are most of a log: the first two bytes of the key are enough, and who needs an offset decodes the
# record. Control records are the broker's markers of a transaction's end. A consumer does not return them; tools that
# copy the log's records may. Kafka's `EndTransactionMarker` has a key of two int16, version and type, and a value of an
# int16 and an int32, version and coordinator epoch. A key of record type 0 or 1 is longer: it names a group, a topic
# and a partition.

OFFSET_COMMITS = (INT16.pack(0), INT16.pack(1))
"""How the keys of offset commits begin: record types 0 (of Kafka before 0.9) and 1."""
CONTROL_RECORD = "ControlRecord"
"""The kind under which they are counted."""
CONTROL_KEYS = (b"\x00\x00\x00\x00", b"\x00\x00\x00\x01")
"""Of version 0: ABORT and COMMIT."""
_VALUE_BYTES = 6


def is_control_record(key: bytes | None, value: bytes | None) -> bool:
    """Return whether this is the marker of a transaction that was aborted or committed."""
    return key in CONTROL_KEYS and value is not None and len(value) == _VALUE_BYTES


def commit_kind(key: bytes | None) -> RecordKind | None:
    """Return the kind of an offset commit, by its key alone; None for any other record."""
    if key is None or key in CONTROL_KEYS or not key.startswith(OFFSET_COMMITS):
        return None
    return RecordKind.OFFSET_COMMIT if key[1] else RecordKind.LEGACY_OFFSET_COMMIT
