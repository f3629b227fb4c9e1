"""The codecs against bytes written by hand from Kafka's rules, and against themselves over all values."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.wire.codec import DecodeCode, DecodeFault, codec, load_spec
from groupledger.core.wire.offsets_log import (
    LogKey,
    LogRecord,
    RecordKind,
    decode,
    decode_key,
    decode_value,
    encode,
    encode_key,
    encode_value,
)
from groupledger.core.wire.records import (
    ClassicMemberMetadata,
    ConsumerGroupMetadata,
    GroupMetadata,
    MemberMetadata,
    OffsetCommit,
    StreamsGroupMetadata,
    StreamsMemberMetadata,
)
from tests.core.wire.strategies import messages
from tests.core.wire.test_spec import NAMES
from tests.examples import examples

EVERY_CODEC = [(name, v) for name in NAMES for v in range(load_spec(name).versions.last + 1)]

MEMBER = RecordKind.CONSUMER_GROUP_MEMBER_METADATA
EPOCH = RecordKind.CONSUMER_GROUP_METADATA
COMMIT = RecordKind.OFFSET_COMMIT
CLASSIC = RecordKind.GROUP_METADATA
STREAMS_MEMBER = RecordKind.STREAMS_GROUP_MEMBER_METADATA

MEMBER_PLAIN = "0000 00 00 0263 0268 01 00 ffffffff 00"
"""v0: no instance, no rack, client "c", host "h", no topics, no regex, no timeout, no assignor; tags come next."""


@pytest.mark.parametrize(("name", "version"), EVERY_CODEC)
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_what_is_written_is_read_back(name, version, data):
    value = data.draw(messages(load_spec(name), version))
    wire = codec(name, version)
    out = bytearray(b"before")
    wire.write(value, out)
    read, end = wire.read(bytes(out) + b"after", len("before"))
    assert read == value
    assert end == len(out)
    assert len(out) - len("before") >= wire.least


@pytest.mark.parametrize(("name", "version"), EVERY_CODEC)
@settings(max_examples=examples(10), deadline=None)
@given(data=st.data())
def test_a_prefix_is_a_fault(name, version, data):
    out = bytearray()
    codec(name, version).write(data.draw(messages(load_spec(name), version)), out)
    cut = data.draw(st.integers(0, len(out) - 1))
    with pytest.raises(DecodeFault):
        codec(name, version).read(bytes(out[:cut]), 0)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        # nothing tagged, a known tag, an explicit default (0), an unknown tag (KIP-915)
        (EPOCH, "0000 00000007 00", ConsumerGroupMetadata(7)),
        (EPOCH, "0000 00000007 01 00 08 00000000000000ff", ConsumerGroupMetadata(7, 255)),
        (EPOCH, "0000 00000007 01 00 08 0000000000000000", ConsumerGroupMetadata(7, 0)),
        (
            EPOCH,
            "0000 00000007 02 00 08 0000000000000001 ac02 02 abcd",
            ConsumerGroupMetadata(7, 1, ((300, b"\xab\xcd"),)),
        ),
        # a tagged number is None when it was not sent, whatever its default (here -1)
        (
            RecordKind.STREAMS_GROUP_METADATA,
            "0000 00000007 0000000000000001 02 00 04 ffffffff 02 04 fffffffe",
            StreamsGroupMetadata(7, 1, -1, None, -2),
        ),
        # a nullable struct in a tagged field: size, then 01 and the struct, or 00 for null (as Kafka writes it)
        (
            MEMBER,
            MEMBER_PLAIN + "01 00 07 01 00000005 01 00",
            MemberMetadata(None, None, "c", "h", (), None, None, None, ClassicMemberMetadata(5, ())),
        ),
        (
            MEMBER,
            MEMBER_PLAIN + "01 00 01 00",
            MemberMetadata(None, None, "c", "h", (), None, None, None, None, ((0, b"\x00"),)),
        ),
        # a nullable struct elsewhere: ff or 01
        (
            STREAMS_MEMBER,
            "0000 00 00 0263 0268 ffffffff 00000001 0270 ff 01 00",
            StreamsMemberMetadata(None, None, "c", "h", None, 1, "p", None, ()),
        ),
        (
            STREAMS_MEMBER,
            "0000 01 00 0263 0268 ffffffff 00000001 0270 01 0261 ffff 00 01 00",
            StreamsMemberMetadata("", None, "c", "h", None, 1, "p", {"host": "a", "port": 65535}, ()),
        ),
        # a field that exists in one version only, a field that older versions lack, a tagged uuid
        (COMMIT, "0001 0000000000000009 0000 0000000000000001 0000000000000002", OffsetCommit(9, None, "", 1, 2, None)),
        (COMMIT, "0003 0000000000000009 ffffffff 0000 0000000000000001", OffsetCommit(9, None, "", 1, None, None)),
        (COMMIT, "0004 0000000000000009 00000000 01 0000000000000001 00", OffsetCommit(9, 0, "", 1, None, None)),
        (
            COMMIT,
            "0004 0000000000000009 00000000 01 0000000000000001 01 00 10 fbff0000000000000000000000000000",
            OffsetCommit(9, 0, "", 1, None, "-_8AAAAAAAAAAAAAAAAAAA"),
        ),
        # null and empty are two things
        (CLASSIC, "0003 0000 00000000 ffff ffff ffffffffffffffff 00000000", GroupMetadata("", 0, None, None, None, ())),
        (CLASSIC, "0003 0000 00000000 0000 0000 0000000000000000 00000000", GroupMetadata("", 0, "", "", 0, ())),
        (CLASSIC, "0004 01 00000000 00 01 0000000000000000 01 00", GroupMetadata("", 0, None, "", 0, ())),
    ],
)
def test_values_as_kafka_writes_them(kind, text, value):
    data = bytes.fromhex(text)
    version, read = decode_value(kind, data)
    assert read == value
    assert version == int.from_bytes(data[:2], "big")
    assert encode_value(kind, version, read) == data


@pytest.mark.parametrize(
    ("kind", "text", "code", "message"),
    [
        (CLASSIC, "", DecodeCode.TRUNCATED, "byte 0: got 0 bytes; expected 2"),
        (CLASSIC, "00", DecodeCode.TRUNCATED, "got 1 bytes"),
        (CLASSIC, "0003 0005 6162", DecodeCode.TRUNCATED, "v3 protocol_type, byte 4: got 2 bytes; expected 5"),
        (CLASSIC, "0003 fffe", DecodeCode.BAD_LENGTH, "length -2"),
        (CLASSIC, "0003 ffff", DecodeCode.NULL_FIELD, "protocol_type, byte 2: got null"),
        (CLASSIC, "0003 0002 c328", DecodeCode.BAD_UTF8, "byte 4: got c328"),
        (CLASSIC, "0005 0000", DecodeCode.UNKNOWN_VERSION, "got version 5; expected 0 to 4"),
        (CLASSIC, "ffff 0000", DecodeCode.UNKNOWN_VERSION, "got version -1"),
        (CLASSIC, "0003 0000 00000000 ffff ffff ffffffffffffffff ffffffff", DecodeCode.NULL_FIELD, "members"),
        (CLASSIC, "0003 0000 00000000 ffff ffff ffffffffffffffff 7fffffff", DecodeCode.TRUNCATED, "members"),
        (CLASSIC, "0003 0000 00000000 ffff ffff ffffffffffffffff 00000000 00", DecodeCode.TRAILING_BYTES, "byte 24"),
        (EPOCH, "0000 00000007", DecodeCode.TRUNCATED, "byte 6"),
        (EPOCH, "0000 00000007 8000", DecodeCode.BAD_VARINT, "8000"),
        (EPOCH, "0000 00000007 ffffffff7f", DecodeCode.BAD_VARINT, "ffffffff7f"),
        (EPOCH, "0000 00000007 ffffffffff01", DecodeCode.BAD_VARINT, "ffffffffff"),
        (EPOCH, "0000 00000007 ffffffff0f 00", DecodeCode.TRUNCATED, "got 1 bytes"),
        (EPOCH, "0000 00000007 01 00 07 00000000000000", DecodeCode.TRUNCATED, "metadata_hash"),
        (EPOCH, "0000 00000007 01 00 09 000000000000000000", DecodeCode.BAD_LENGTH, "tagged field of 8 bytes"),
        (EPOCH, "0000 00000007 01 05 09 00", DecodeCode.TRUNCATED, "got 1 bytes; expected 9"),
        (EPOCH, "0000 00000007 02 05 00 05 00", DecodeCode.BAD_TAG, "tag 5; expected a tag above 5"),
        (EPOCH, "0000 00000007 02 05 00 04 00", DecodeCode.BAD_TAG, "tag 4; expected a tag above 5"),
        (MEMBER, MEMBER_PLAIN + "01 00 01 ff", DecodeCode.BAD_MARKER, "got ff; expected 00 (null) or 01"),
        (STREAMS_MEMBER, "0000 00 00 0263 0268 ffffffff 00000001 0270 00", DecodeCode.BAD_MARKER, "expected ff (null)"),
        (STREAMS_MEMBER, "0000 00 00 0263 0268 ffffffff 00000001 0270", DecodeCode.TRUNCATED, "user_endpoint"),
        (RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION, "0000 ffffffff0f", DecodeCode.TRUNCATED, "topics"),
        (RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION, "0000 00", DecodeCode.NULL_FIELD, "topics"),
    ],
)
def test_bytes_that_are_no_value_fault_with_code_and_position(kind, text, code, message):
    with pytest.raises(DecodeFault) as caught:
        decode_value(kind, bytes.fromhex(text))
    assert caught.value.code == code
    assert message in caught.value.message


@pytest.mark.parametrize(
    ("key", "code"),
    [
        (None, DecodeCode.NO_KEY),
        (b"", DecodeCode.TRUNCATED),
        (b"\x00", DecodeCode.TRUNCATED),
        (b"\xff\xff", DecodeCode.BAD_KEY_TYPE),
        (b"\x00\x02\x00\x02g", DecodeCode.TRUNCATED),
        (b"\x00\x02\x00\x01gg", DecodeCode.TRAILING_BYTES),
        (b"\x00\x02\xff\xff", DecodeCode.NULL_FIELD),
    ],
)
def test_bytes_that_are_no_key_fault_with_a_code(key, code):
    with pytest.raises(DecodeFault) as caught:
        decode(key, None)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("0001 000167 000174 00000003", LogKey(COMMIT, 1, "g", {"topic": "t", "partition": 3})),
        ("0002 0000", LogKey(CLASSIC, 2, "", {})),
        ("0008 000167 00016d", LogKey(RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, 8, "g", {"member_id": "m"})),
        (
            "0010 000167 00022e2a",
            LogKey(RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION, 16, "g", {"regular_expression": ".*"}),
        ),
        ("0018 beef", LogKey(RecordKind.UNKNOWN, 24, None, {}, b"\xbe\xef")),
    ],
)
def test_keys_as_kafka_writes_them(text, key):
    data = bytes.fromhex(text)
    assert decode_key(data) == key
    assert encode_key(key) == data


def test_a_record_of_an_unknown_kind_keeps_its_bytes():
    record = decode(b"\x00\x09later", b"anything")
    assert record == LogRecord(LogKey(RecordKind.UNKNOWN, 9, None, {}, b"later"), None, b"anything")
    assert encode(record) == (b"\x00\x09later", b"anything")


def test_a_tombstone_has_no_value():
    record = decode(b"\x00\x02\x00\x01g", None)
    assert record.value is None
    assert (record.kind, record.group_id, record.version) == (CLASSIC, "g", None)
    assert encode(record) == (b"\x00\x02\x00\x01g", None)


@pytest.mark.parametrize(
    ("version", "value", "message"),
    [
        (None, OffsetCommit(1, None, "", 1, None, None), "version of a OffsetCommit value is None"),
        (0, OffsetCommit(1, 4, "", 1, None, None), "leader_epoch is 4"),
        (3, OffsetCommit(1, 4, "", 1, None, "AAAAAAAAAAAAAAAAAAAAAA"), "topic_id is 'AAAA"),
        (4, OffsetCommit(1, 4, "", 1, None, "not a uuid"), "uuid is 'not a uuid'"),
        (4, OffsetCommit(1, 4, "", 1, None, "AAAAAAAAAAAAAAAAAAAAAB"), "uuid is 'AAAA.*B'"),
        (4, OffsetCommit(1, 4, "", 1, None, "AAAAAAAAAAAA AAAAAAAAAA"), "uuid is 'AAAA"),
    ],
)
def test_what_cannot_be_written_is_refused_not_dropped(version, value, message):
    with pytest.raises(ValueError, match=message):
        encode_value(COMMIT, version, value)


def test_null_is_not_written_where_the_spec_allows_none():
    with pytest.raises(ValueError, match="group is None"):
        encode_key(LogKey(CLASSIC, 2, None, {}))


def test_a_fault_survives_the_way_back_from_a_worker():
    with pytest.raises(DecodeFault) as caught:
        decode(None, None)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own bytes
    assert (type(again), again.code, again.message) == (DecodeFault, caught.value.code, caught.value.message)
