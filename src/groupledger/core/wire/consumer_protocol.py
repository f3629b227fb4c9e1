"""Subscriptions and assignments of classic members: the embedded "consumer" protocol, v0 to v3.

As Kafka does, a version newer than the known ones is read with the fields known; what follows them is kept as `tail`
and written back. Decoded values are remembered by their bytes, as groups repeat them from record to record.
Source: ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json; KIP-429 (owned), KIP-792 (generation),
KIP-881 (rack).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from groupledger.core.wire.codec import INT16, Memo, codec, truncated

TopicPartitions = tuple[tuple[str, tuple[int, ...]], ...]
_T = TypeVar("_T")

NEWEST_VERSION = 3


@dataclass(frozen=True, slots=True)
class ConsumerProtocolSubscription:
    """What a member subscribes to and claims, exactly as sent: topics may repeat, `generation` is None where -1.

    `version` is None for no bytes at all (DescribeGroups during a rebalance). A generation below -1, which no client
    is known to send, stays as it is; `claims` takes any negative one as absent, as Kafka does.
    """

    version: int | None
    topics: tuple[str, ...] = ()
    user_data: bytes | None = None
    owned: TopicPartitions = ()
    generation: int | None = None
    rack: str | None = None
    tail: bytes = b""


@dataclass(frozen=True, slots=True)
class ConsumerProtocolAssignment:
    """What the leader gives a member, exactly as sent: a topic may stand twice (see `merged`).

    `version` is None for no bytes at all: the broker's filling for a member whom the leader left out.
    """

    version: int | None
    partitions: TopicPartitions = ()
    user_data: bytes | None = None
    tail: bytes = b""


def decode_subscription(data: bytes) -> ConsumerProtocolSubscription:
    """Decode a subscription; `DecodeFault` if the bytes are none."""
    known = _subscriptions.get(data)
    return (
        known
        if known is not None
        else _subscriptions.put(data, _decode(ConsumerProtocolSubscription, _SUBSCRIPTION, data))
    )


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Decode an assignment; `DecodeFault` if the bytes are none."""
    known = _assignments.get(data)
    return (
        known if known is not None else _assignments.put(data, _decode(ConsumerProtocolAssignment, _ASSIGNMENT, data))
    )


def encode_subscription(subscription: ConsumerProtocolSubscription) -> bytes:
    """Encode: the inverse of `decode_subscription`."""
    s = subscription
    return _encode(_SUBSCRIPTION, s.version, (s.topics, s.user_data, s.owned, s.generation, s.rack), s.tail)


def encode_assignment(assignment: ConsumerProtocolAssignment) -> bytes:
    """Encode: the inverse of `decode_assignment`."""
    return _encode(_ASSIGNMENT, assignment.version, (assignment.partitions, assignment.user_data), assignment.tail)


def merged(owned: TopicPartitions) -> TopicPartitions:
    """Each topic once, where it first stood, with all its partitions: librdkafka may write a topic twice.

    `(("a", (0,)), ("b", (1,)), ("a", (2,)))` -> `(("a", (0, 2)), ("b", (1,)))`
    """
    together: dict[str, tuple[int, ...]] = {}
    for topic, partitions in owned:
        together[topic] = together.get(topic, ()) + partitions
    return tuple(together.items())


_SUBSCRIPTION = "ConsumerProtocolSubscription"
_ASSIGNMENT = "ConsumerProtocolAssignment"
_subscriptions: Memo[ConsumerProtocolSubscription] = Memo()
_assignments: Memo[ConsumerProtocolAssignment] = Memo()


def _decode(make: Callable[..., _T], message: str, data: bytes) -> _T:
    if not data:
        return make(None)
    if len(data) < INT16.size:
        raise truncated(message, 0, INT16.size, len(data))
    version: int = INT16.unpack_from(data)[0]
    fields, end = codec(message, min(version, NEWEST_VERSION)).read(data, INT16.size)
    return make(version, *fields, data[end:])


def _encode(message: str, version: int | None, fields: tuple[object, ...], tail: bytes) -> bytes:
    if version is None:
        return b""
    out = bytearray(INT16.pack(version))
    codec(message, min(version, NEWEST_VERSION)).write(fields, out)
    return bytes(out + tail)
