"""What the columns read, the careful decoders read alike; what these refuse, no column accepts."""

import random

import numpy as np
import pytest

from groupledger.core.wire import group_metadata as g
from groupledger.core.wire.codec import DecodeCode, DecodeFault
from groupledger.core.wire.consumer_protocol import decode_assignment, decode_subscription
from groupledger.core.wire.group_metadata import NO_VERSION, read_assignments, read_subscriptions
from groupledger.core.wire.offsets_log import RecordKind, decode_key, decode_value
from groupledger.core.wire.records import GroupMetadata
from tests.core.history.captured import log_rows
from tests.fuzz.mutations import mutated

LOG = "edge/offsets"


def rows(kind):
    return [row for of_group in log_rows(LOG).values() for row in of_group if decode_key(row.key).kind is kind]


def broken(values: list[bytes], number: int) -> list[bytes]:
    """Byte strings of the same kind, most of them with a defect."""
    dice = random.Random(number)  # noqa: S311 seeded
    return [mutated(dice.choice(values), dice.choice(values), dice) for _ in range(number)]


def decoded_or_code(decoder, data):
    """What the decoder reads, or the code of its fault."""
    try:
        return decoder(data), None
    except DecodeFault as fault:
        return None, fault.code


def spans(values: list[bytes]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    end = np.cumsum([len(value) for value in values]).astype(np.int64)
    return np.frombuffer(b"".join(values), np.uint8), end - np.array([len(value) for value in values], np.int64), end


def text(data: np.ndarray, at: int, size: int) -> str | None:
    return None if size < 0 else data[at : at + size].tobytes().decode()


def generations() -> list[bytes]:
    return [row.value for row in rows(RecordKind.GROUP_METADATA) if row.value is not None]


def test_generations_are_read_as_the_decoder_reads_them():
    values = generations()
    data, start, end = spans(values)
    counts = g.count_members(data, start, end)
    columns = g.group_columns(data, start, end, counts)
    for index, value in enumerate(values):
        _, group = decode_value(RecordKind.GROUP_METADATA, value)
        assert isinstance(group, GroupMetadata)
        assert columns.generation[index] == group.generation
        texts = [text(data, columns.group_at[field, index], columns.group_size[field, index]) for field in range(3)]
        assert texts == [group.protocol_type, group.protocol, group.leader]
        first = columns.member_start[index]
        assert counts[index] == len(group.members)
        for place, member in enumerate(group.members, first):
            at, size = columns.member_at[:, place], columns.member_size[:, place]
            names = [text(data, at[field], size[field]) for field in range(4)]
            assert names == [member.member_id, member.group_instance_id, member.client_id, member.client_host]
            blobs = [data[at[field] : at[field] + size[field]].tobytes() for field in (g.SUBSCRIPTION, g.ASSIGNMENT)]
            assert blobs == [member.subscription, member.assignment]


def test_no_generation_is_accepted_that_the_decoder_refuses():
    values = broken(generations(), 3_000)
    counts = g.count_members(*spans(values))
    accepted = 0
    for value, count in zip(values, counts, strict=True):
        decoded, code = decoded_or_code(lambda data: decode_value(RecordKind.GROUP_METADATA, data), value)
        if code is not None:
            assert count == g.UNREAD or code == DecodeCode.BAD_UTF8.value, value
            continue
        _, group = decoded
        assert count in (g.UNREAD, len(group.members))
        accepted += count != g.UNREAD
    assert 100 < accepted < 2_900


def blobs(field: str) -> list[bytes]:
    found = []
    for value in generations():
        _, group = decode_value(RecordKind.GROUP_METADATA, value)
        assert isinstance(group, GroupMetadata)
        found += [getattr(member, field) for member in group.members if group.protocol_type == "consumer"]
    return sorted(set(found))


@pytest.mark.parametrize("number", [0, 2_000])
def test_assignments_are_read_as_the_decoder_reads_them(number):
    values = broken(blobs("assignment"), number) if number else blobs("assignment")
    data, start, end = spans(values)
    lists, unread = read_assignments(data, start, end)
    for index, value in enumerate(values):
        told, code = decoded_or_code(decode_assignment, value)
        if code is not None:
            assert index in unread or code == DecodeCode.BAD_UTF8.value, value
            continue
        assert index not in unread
        assert partitions(data, lists, index) == told.partitions
    assert number or not len(unread)


def partitions(data, lists, index):
    return tuple(
        (
            text(data, lists.name_at[topic], lists.name_size[topic]),
            tuple(lists.number[lists.number_start[topic] : lists.number_start[topic + 1]].tolist()),
        )
        for topic in range(lists.start[index], lists.start[index + 1])
    )


@pytest.mark.parametrize("number", [0, 2_000])
def test_subscriptions_are_read_as_the_decoder_reads_them(number):
    values = broken(blobs("subscription"), number) if number else blobs("subscription")
    data, start, end = spans(values)
    columns, unread = read_subscriptions(data, start, end)
    for index, value in enumerate(values):
        said, code = decoded_or_code(decode_subscription, value)
        if code is not None:
            assert index in unread or code == DecodeCode.BAD_UTF8.value, value
            continue
        assert index not in unread
        version, generation = columns.version[index], columns.generation[index]
        assert (version, generation) == (
            NO_VERSION if said.version is None else said.version,
            g.NULL if said.generation is None else said.generation,
        )
        topics = range(columns.topic_start[index], columns.topic_start[index + 1])
        assert tuple(text(data, columns.topic_at[each], columns.topic_size[each]) for each in topics) == said.topics
        assert partitions(data, columns.owned, index) == said.owned
        at, size = columns.user_data_at[index], columns.user_data_size[index]
        assert (None if size < 0 else data[at : at + size].tobytes()) == said.user_data
        assert text(data, columns.rack_at[index], columns.rack_size[index]) == said.rack
    assert number or not len(unread)
