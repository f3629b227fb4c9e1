"""A classic group's record opened to the bottom and closed again: what the tests hold against its bytes."""

from __future__ import annotations

from groupledger.core.wire.consumer_protocol import (
    decode_assignment,
    decode_subscription,
    decode_user_data,
    encode_assignment,
    encode_subscription,
    encode_user_data,
)
from groupledger.core.wire.offsets_log import LogRecord
from groupledger.core.wire.records import GroupMetadata


def open_member(protocol: str | None, subscription: bytes, assignment: bytes) -> None:
    """Decode both blobs and their user data; assert that each gives its bytes back."""
    said = decode_subscription(subscription)
    told = decode_assignment(assignment)
    assert encode_subscription(said) == subscription
    assert encode_assignment(told) == assignment
    for sent in (said.user_data, told.user_data):
        assert encode_user_data(decode_user_data(sent, protocol)) == sent


def open_members(record: LogRecord) -> int:
    """`open_member` for each member of a "consumer" group's record; how many there were."""
    value = record.value
    if not isinstance(value, GroupMetadata) or value.protocol_type != "consumer":
        return 0
    for member in value.members:
        open_member(value.protocol, member.subscription, member.assignment)
    return len(value.members)
