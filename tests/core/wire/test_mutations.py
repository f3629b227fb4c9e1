"""Broken bytes: each record decodes or has a fault with a code; its neighbours are none the worse."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.wire.codec import DecodeCode, DecodeFault
from groupledger.core.wire.consumer_protocol import (
    COOPERATIVE_STICKY,
    STICKY,
    UserDataForm,
    decode_assignment,
    decode_subscription,
    decode_user_data,
    encode_assignment,
    encode_subscription,
    encode_user_data,
)
from groupledger.core.wire.offsets_log import RecordKind, decode, decode_key, decode_value, encode, encode_value
from groupledger.core.wire.records import GroupMetadata
from tests.core.wire.captured import Bytes, every_log
from tests.core.wire.nested import open_members
from tests.core.wire.plain_reader import meant

MUTANTS = 1000


def is_unheard_of(record_type: int) -> bool:
    """Whether no vendored spec has it: 9 and 18 were given up before Kafka 4.4, and 23 is its last."""
    return record_type in (9, 18) or record_type > 23


def flip(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << dice.randrange(8)]) + data[at + 1 :]


def cut(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def grow(data: bytes, dice: random.Random) -> bytes:
    at = dice.randrange(len(data) + 1)
    return data[:at] + dice.randbytes(dice.randint(1, 8)) + data[at:]


def mutants(seed: int) -> Iterator[tuple[Bytes, Bytes]]:
    """(a mutated record, the good one after it), `MUTANTS` times; three of four are values."""
    dice = random.Random(seed)  # noqa: S311 - a seeded die, not a secret
    good = [(key, value) for key, value in every_log() if value]
    for _ in range(MUTANTS):
        at = dice.randrange(len(good) - 1)
        key, value = good[at]
        change = dice.choice((flip, cut, grow))
        mutated = (change(key, dice), value) if dice.random() < 0.25 else (key, change(value, dice))
        yield mutated, good[at + 1]


def is_opened(kind: RecordKind, version: int | None, value: object, data: bytes | None) -> bool:
    """Whether a value that decoded was read by its spec, not handed back as it came."""
    if data is None or kind is RecordKind.UNKNOWN:
        return (version, value) == (None, data)
    return version == int.from_bytes(data[:2], "big") and not isinstance(value, bytes | None)


def outcome(broken: Bytes) -> str:
    """DECODED if the record opens to the bottom and closes to the same bytes, else its fault's code."""
    try:
        record = decode(*broken)
        assert encode(record) == broken
        assert (record.kind is RecordKind.UNKNOWN) is is_unheard_of(record.key.version)
        assert is_opened(record.kind, record.version, record.value, broken[1])
        open_members(record)
    except DecodeFault as fault:
        return fault.code if all(word in fault.message for word in (", byte ", "got", "expected")) else "DUMB MESSAGE"
    return "DECODED"


def test_a_thousand_broken_records_among_good_ones():
    outcomes: Counter[str] = Counter()
    members = 0
    for broken, neighbour in mutants(seed=20):
        outcomes[outcome(broken)] += 1
        record = decode(*neighbour)
        assert is_opened(record.kind, record.version, record.value, neighbour[1])
        members += open_members(record)
        assert encode(record) == neighbour
    assert outcomes.total() == MUTANTS
    assert members > 400
    assert outcomes["DECODED"] > 100
    assert outcomes[DecodeCode.TRUNCATED] > 300
    assert outcomes.keys() <= {"DECODED", *DecodeCode}
    assert {DecodeCode.TRAILING_BYTES, DecodeCode.BAD_UTF8, DecodeCode.UNKNOWN_VERSION} < outcomes.keys()


@settings(deadline=None, max_examples=30)
@given(data=st.binary(max_size=60))
@pytest.mark.parametrize("kind", RecordKind)
def test_any_bytes_as_a_value_decode_and_come_back_or_fault(kind, data):
    assert _comes_back_or_faults(lambda: _value_again(kind, data), data)


@settings(deadline=None, max_examples=30)
@given(body=st.binary(max_size=60), version=st.integers(0, 4))
@pytest.mark.parametrize("kind", RecordKind)
def test_any_body_of_a_known_version_decodes_and_comes_back_or_faults(kind, version, body):
    data = version.to_bytes(2, "big") + body
    assert _comes_back_or_faults(lambda: _value_again(kind, data), data)


@settings(deadline=None)
@given(data=st.binary(max_size=40), version=st.integers(-1, 5))
def test_any_bytes_as_an_embedded_message_decode_and_come_back_or_fault(version, data):
    data = version.to_bytes(2, "big", signed=True) + data
    assert _comes_back_or_faults(lambda: encode_subscription(decode_subscription(data)), data)
    assert _comes_back_or_faults(lambda: encode_assignment(decode_assignment(data)), data)


@settings(deadline=None)
@given(data=st.binary(max_size=40), assignor=st.sampled_from((STICKY, COOPERATIVE_STICKY, "range", None)))
def test_any_user_data_comes_back(data, assignor):
    assert encode_user_data(decode_user_data(data, assignor)) == data
    assert decode_user_data(data, assignor) == meant(assignor, data)


def sent_user_data():
    """(assignor, user data) of the sticky members of all logs."""
    values = [decode(*each).value for each in every_log()]
    groups = [each for each in values if isinstance(each, GroupMetadata)]
    sticky = [each for each in groups if each.protocol in (STICKY, COOPERATIVE_STICKY)]
    told = [(group.protocol, decode_subscription(each.subscription)) for group in sticky for each in group.members]
    return [(assignor, said.user_data) for assignor, said in told if said.user_data]


def test_user_data_whole_and_broken_says_what_its_bytes_say():
    dice = random.Random(21)  # noqa: S311 - a seeded die, not a secret
    good = sent_user_data()
    forms: Counter[UserDataForm] = Counter()
    for _ in range(MUTANTS):
        assignor, data = dice.choice(good)
        broken = dice.choice((flip, cut, grow))(data, dice)
        assert decode_user_data(data, assignor) == meant(assignor, data)
        assert decode_user_data(broken, assignor) == meant(assignor, broken)
        forms[decode_user_data(broken, assignor).form] += 1
    assert len(good) > 300
    assert forms.keys() == {*UserDataForm} - {UserDataForm.NULL}
    assert forms[UserDataForm.OWNED_GENERATION] > 150


@settings(deadline=None)
@given(type_id=st.integers(-3, 40), data=st.binary(max_size=40))
def test_any_key_decodes_and_comes_back_or_faults(type_id, data):
    key = type_id.to_bytes(2, "big", signed=True) + data
    assert _comes_back_or_faults(lambda: encode(decode(key, None))[0], key)
    if type_id >= 0:
        assert (_kind_or_none(key) is RecordKind.UNKNOWN) is is_unheard_of(type_id)


def _kind_or_none(key):
    try:
        return decode_key(key).kind
    except DecodeFault:
        return None


def _value_again(kind, data):
    version, value = decode_value(kind, data)
    assert is_opened(kind, version, value, data)
    return encode_value(kind, version, value)


def _comes_back_or_faults(round_trip, data):
    try:
        return round_trip() == data
    except DecodeFault as fault:
        return fault.code in set(DecodeCode)
