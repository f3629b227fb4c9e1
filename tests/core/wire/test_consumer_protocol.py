"""Subscriptions and assignments: each version's fields, null against empty, newer versions, repeated topics."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.wire.codec import DecodeCode, DecodeFault, Memo
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
    merged,
)
from groupledger.core.wire.offsets_log import decode
from groupledger.core.wire.records import GroupMetadata
from tests.core.wire.captured import log
from tests.core.wire.strategies import TEXTS

TOPIC_A = "00000001 000161"
OWNED_A1 = "00000001 000161 00000001 00000001"

NUMBERS = st.integers(-(2**31), 2**31 - 1)
BLOBS = st.none() | st.binary(max_size=6)
OWNED = st.lists(st.tuples(TEXTS, st.lists(NUMBERS, max_size=3).map(tuple)), max_size=3).map(tuple)
GENERATIONS = NUMBERS.map(lambda number: None if number == -1 else number)


@pytest.mark.parametrize(
    ("text", "subscription"),
    [
        ("", ConsumerProtocolSubscription(None)),
        (f"0000 {TOPIC_A} ffffffff", ConsumerProtocolSubscription(0, ("a",))),
        (f"0000 {TOPIC_A} 00000000", ConsumerProtocolSubscription(0, ("a",), b"")),
        (f"0001 {TOPIC_A} ffffffff {OWNED_A1}", ConsumerProtocolSubscription(1, ("a",), None, (("a", (1,)),))),
        (f"0002 {TOPIC_A} ffffffff 00000000 ffffffff", ConsumerProtocolSubscription(2, ("a",))),
        (f"0002 {TOPIC_A} ffffffff 00000000 00000000", ConsumerProtocolSubscription(2, ("a",), generation=0)),
        (f"0003 {TOPIC_A} ffffffff 00000000 00000004 ffff", ConsumerProtocolSubscription(3, ("a",), generation=4)),
        (
            f"0003 {TOPIC_A} ffffffff 00000000 00000004 0000",
            ConsumerProtocolSubscription(3, ("a",), generation=4, rack=""),
        ),
        (
            f"0003 {TOPIC_A} ffffffff 00000000 fffffffe 000172",
            ConsumerProtocolSubscription(3, ("a",), generation=-2, rack="r"),
        ),
        # newer than known: the known fields, then the rest as it is
        (
            f"0004 {TOPIC_A} ffffffff 00000000 00000004 ffff beef",
            ConsumerProtocolSubscription(4, ("a",), generation=4, tail=b"\xbe\xef"),
        ),
        (f"7fff {TOPIC_A} ffffffff 00000000 00000004 ffff", ConsumerProtocolSubscription(32767, ("a",), generation=4)),
        # more bytes than the version has: Kafka reads past them
        (f"0000 {TOPIC_A} ffffffff 00000000", ConsumerProtocolSubscription(0, ("a",), tail=bytes(4))),
    ],
)
def test_subscriptions_as_clients_write_them(text, subscription):
    data = bytes.fromhex(text)
    assert decode_subscription(data) == subscription
    assert encode_subscription(subscription) == data


@pytest.mark.parametrize(
    ("text", "assignment"),
    [
        ("", ConsumerProtocolAssignment(None)),
        (f"0000 {OWNED_A1} ffffffff", ConsumerProtocolAssignment(0, (("a", (1,)),))),
        (f"0003 {OWNED_A1} 00000000", ConsumerProtocolAssignment(3, (("a", (1,)),), b"")),
        ("0001 00000000 00000001 aa", ConsumerProtocolAssignment(1, (), b"\xaa")),
        ("0009 00000000 ffffffff 01", ConsumerProtocolAssignment(9, (), None, b"\x01")),
    ],
)
def test_assignments_as_leaders_write_them(text, assignment):
    data = bytes.fromhex(text)
    assert decode_assignment(data) == assignment
    assert encode_assignment(assignment) == data


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("00", DecodeCode.TRUNCATED),
        ("ffff", DecodeCode.UNKNOWN_VERSION),
        ("0003", DecodeCode.TRUNCATED),
        (f"0001 {TOPIC_A} ffffffff", DecodeCode.TRUNCATED),
        (f"0000 {TOPIC_A} fffffffe", DecodeCode.BAD_LENGTH),
        ("0000 ffffffff ffffffff", DecodeCode.NULL_FIELD),
        ("0000 7fffffff ffffffff", DecodeCode.TRUNCATED),
        ("0000 00000001 0001ff ffffffff", DecodeCode.BAD_UTF8),
    ],
)
def test_bytes_that_are_no_subscription_fault_each_time(text, code):
    for _ in range(2):  # a memo must not make a fault a value
        with pytest.raises(DecodeFault) as caught:
            decode_subscription(bytes.fromhex(text))
        assert caught.value.code == code


@settings(deadline=None)
@given(
    version=st.integers(3, 32767),
    topics=st.lists(TEXTS, max_size=3).map(tuple),
    user_data=BLOBS,
    owned=OWNED,
    generation=GENERATIONS,
    rack=st.none() | TEXTS,
    tail=st.binary(max_size=5),
)
def test_any_subscription_comes_back(version, topics, user_data, owned, generation, rack, tail):
    subscription = ConsumerProtocolSubscription(version, topics, user_data, owned, generation, rack, tail)
    assert decode_subscription(encode_subscription(subscription)) == subscription


@settings(deadline=None)
@given(version=st.integers(0, 32767), partitions=OWNED, user_data=BLOBS, tail=st.binary(max_size=5))
def test_any_assignment_comes_back(version, partitions, user_data, tail):
    assignment = ConsumerProtocolAssignment(version, partitions, user_data, tail)
    assert decode_assignment(encode_assignment(assignment)) == assignment


@pytest.mark.parametrize(
    ("subscription", "message"),
    [
        (ConsumerProtocolSubscription(0, (), owned=(("a", (1,)),)), "owned_partitions"),
        (ConsumerProtocolSubscription(1, (), generation=3), "generation_id is 3"),
        (ConsumerProtocolSubscription(2, (), rack=""), "rack_id is ''"),
    ],
)
def test_a_version_is_not_written_without_what_it_lacks(subscription, message):
    with pytest.raises(ValueError, match=message):
        encode_subscription(subscription)


def test_a_topic_written_twice_is_merged_only_when_asked():
    data = bytes.fromhex(
        "0000 00000003 000161 00000001 00000000 000162 00000001 00000001 000161 00000001 00000002 ffffffff"
    )
    assignment = decode_assignment(data)
    assert assignment.partitions == (("a", (0,)), ("b", (1,)), ("a", (2,)))
    assert merged(assignment.partitions) == (("a", (0, 2)), ("b", (1,)))
    assert encode_assignment(assignment) == data


@given(owned=OWNED)
def test_merging_loses_no_partition_and_is_done_once(owned):
    joined = merged(owned)
    flat = [(topic, partition) for topic, partitions in owned for partition in partitions]
    assert sorted((topic, partition) for topic, partitions in joined for partition in partitions) == sorted(flat)
    assert [topic for topic, _ in joined] == list(dict.fromkeys(topic for topic, _ in owned))
    assert merged(joined) == joined


def test_the_storm_has_topics_written_twice():
    groups = [decode(key, value).value for key, value in log("storm/offsets")]
    told = [
        decode_assignment(member.assignment).partitions
        for group in groups
        if isinstance(group, GroupMetadata)
        for member in group.members
    ]
    assert any(len(merged(partitions)) < len(partitions) for partitions in told)


def test_a_memo_starts_anew_at_its_limit():
    memo = Memo(lambda data: int.from_bytes(data, "big"), limit_bytes=160)
    for number in range(100):
        assert memo[number.to_bytes(8, "big")] == number
        assert 8 * len(memo) == memo.kept_bytes <= 160
    assert memo.get((99).to_bytes(8, "big")) == 99
    assert memo[bytes(10) + b"\7"] == 7
    assert bytes(10) + b"\7" not in memo
