"""The value types alone: where each ends, byte by byte."""

from __future__ import annotations

import pytest

from groupledger.core.log.listings import canonical_topic_id
from groupledger.core.wire import codec
from groupledger.core.wire.codec import array, integer, read_uvarint, uuid_text, write_uvarint


@pytest.mark.parametrize(
    ("kind", "text", "values"),
    [
        ("int8", "02 01 ff", (1, -1)),
        ("int16", "02 0001 ffff", (1, -1)),
        ("uint16", "02 0001 ffff", (1, 65535)),
        ("int32", "02 00000001 ffffffff", (1, -1)),
        ("int64", "02 0000000000000001 ffffffffffffffff", (1, -1)),
        ("int16", "00", ()),
    ],
)
@pytest.mark.parametrize("at_once", [True, False])
def test_integers_read_at_once_are_those_read_one_by_one(kind, text, values, at_once):
    data = bytes.fromhex("000000" + text)
    bulk = codec.INTEGERS[kind][1] if at_once else ""
    wire = array("numbers", integer(kind, "number"), nullable=False, compact=False, bulk=bulk)
    assert wire.read(data + b"next", 0) == (values, len(data))
    out = bytearray()
    wire.write(values, out)
    assert out == data


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**31, "8080808008"), (2**32 - 1, "ffffffff0f")],
)
def test_varints(value, text):
    out = bytearray()
    write_uvarint(value, out)
    assert out.hex() == text
    assert read_uvarint(b"x" + bytes(out) + b"\x00", 1, "varint") == (value, 1 + len(out))


@pytest.mark.parametrize(
    ("printed", "kafkas"),
    [
        ("V1YOFAs/SRGmS1V4W0hINg", "V1YOFAs_SRGmS1V4W0hINg"),  # as captures' topic listings (librdkafka) have it
        ("V1YOFAs_SRGmS1V4W0hINg", "V1YOFAs_SRGmS1V4W0hINg"),
        ("+/8AAAAAAAAAAAAAAAAAAA==", "-_8AAAAAAAAAAAAAAAAAAA"),
    ],
)
def test_a_uuid_has_one_spelling(printed, kafkas):
    assert canonical_topic_id(printed) == kafkas
    assert uuid_text(codec.uuid_bytes(kafkas)) == kafkas


@pytest.mark.parametrize("printed", ["", "short", "V1YOFAs_SRGmS1V4W0hIN", "V1YOFAs_SRGmS1V4W0hINgg", "\u00e9" * 22])
def test_what_is_no_uuid_is_refused(printed):
    with pytest.raises(ValueError, match="uuid is"):
        codec.uuid_bytes(printed)
