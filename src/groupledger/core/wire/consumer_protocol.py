"""Subscriptions and assignments of classic members: the embedded "consumer" protocol, v0 to v3.

As Kafka does, a version newer than the known ones is read with the fields known; what follows them is kept as `tail`
and written back. Decoded values are remembered by their bytes, as groups repeat them from record to record.
Source: ConsumerProtocolSubscription.json, ConsumerProtocolAssignment.json; KIP-429 (owned), KIP-792 (generation),
KIP-881 (rack).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple, TypeVar

from groupledger.core.wire import codec as primitives
from groupledger.core.wire.codec import INT16, INT32, DecodeFault, Memo, codec, plain_struct, truncated

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
    return _subscriptions[data]


def decode_assignment(data: bytes) -> ConsumerProtocolAssignment:
    """Decode an assignment; `DecodeFault` if the bytes are none."""
    return _assignments[data]


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
_subscriptions = Memo(lambda data: _decode(ConsumerProtocolSubscription, _SUBSCRIPTION, data))
_assignments = Memo(lambda data: _decode(ConsumerProtocolAssignment, _ASSIGNMENT, data))


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


# The bytes that sticky assignors put beside a subscription, as each client library writes them.
#
# KIP-54: the owned partitions (v0), then a generation (v1), with no version in front. Java, aiokafka and franz-go write
# that for "sticky"; librdkafka and franz-go for "cooperative-sticky" too, and librdkafka's leader echoes it in the
# assignment. kafka-python puts two bytes 0001 before it. Java's "cooperative-sticky" writes four bytes: a generation.
# The form does not follow from the bytes alone (four zero bytes are two of them), so the assignor is an argument.
#
# `decode_user_data` returns what the client meant. Kafka's own assignors read other things into some of these bytes:
# `taken` is what they take for their decision, as kafka-clients 4.4.0 answered (`tests/oracle/member_data.py`).

STICKY = "sticky"
COOPERATIVE_STICKY = "cooperative-sticky"
STRAY_PREFIX = b"\x00\x01"
NO_GENERATION = -1
INT32_BYTES = 4
REPLACEMENT = "\ufffd"


class UserDataForm(StrEnum):
    """How the user data was written."""

    NULL = "null"
    EMPTY = "empty"
    OWNED = "owned"  # KIP-54 v0
    OWNED_GENERATION = "owned_generation"  # KIP-54 v1
    PREFIXED_OWNED_GENERATION = "prefixed_owned_generation"  # the same behind kafka-python's 0001
    GENERATION = "generation"  # Java's cooperative-sticky
    OPAQUE = "opaque"  # another assignor's, or none of the above: `leftover` holds all of it


@dataclass(frozen=True, slots=True)
class UserData:
    """What was in the user data. `generation` is None where there is none or -1; `leftover` is what follows.

    A topic's name that is no UTF-8 is read with U+FFFD in it, as Java reads it; `damaged` then holds all the bytes.
    """

    form: UserDataForm
    owned: TopicPartitions = ()
    generation: int | None = None
    leftover: bytes = b""
    damaged: bytes = b""

    @property
    def states_owned(self) -> bool:
        """Whether the form has owned partitions at all, be they none."""
        return self.form in _STATES_OWNED


_STATES_OWNED = {UserDataForm.OWNED, UserDataForm.OWNED_GENERATION, UserDataForm.PREFIXED_OWNED_GENERATION}
_NULL = UserData(UserDataForm.NULL)
_EMPTY = UserData(UserDataForm.EMPTY)

_topic = primitives.text("user data topic", nullable=False, compact=False, errors="replace")
_partition = primitives.integer("int32", "user data partition")
_partitions = primitives.array("user data partitions", _partition, nullable=False, compact=False, bulk="i")
_owned = primitives.array("user data owned", plain_struct((_topic, _partitions)), nullable=False, compact=False)
_generation = primitives.integer("int32", "user data generation", NO_GENERATION)

_memos = {
    STICKY: Memo(lambda data: _whole(_decode_user_data(data, False), data)),
    COOPERATIVE_STICKY: Memo(lambda data: _whole(_decode_user_data(data, True), data)),
}


def decode_user_data(data: bytes | None, assignor: str | None) -> UserData:
    """Decode what a member under this assignor wrote; never fails, as any bytes may be another's (OPAQUE)."""
    if data is None:
        return _NULL
    if not data:
        return _EMPTY
    memo = _memos.get(assignor or "")
    return UserData(UserDataForm.OPAQUE, leftover=data) if memo is None else memo[data]


def taken(
    assignor: str | None,
    owned: Sequence[_T],
    generation: int | None,
    subscription_generation: int | None,
    user_data: bytes | None,
) -> tuple[Sequence[_T], int | None]:
    """Return what Kafka's assignor takes a member to own, by topic, and since when; None: no generation.

    Given is what the client meant: the claim and its generation. Of the user data the first four bytes suffice, which
    is all that a redaction leaves.

    "cooperative-sticky" dates a claim by the subscription; without a generation there by the first int32 of the user
    data, in any form: of KIP-54's form that is a number of topics. "sticky" knows no prefix: behind 0001 it
    finds too few bytes for the topics they announce, so the member owns nothing. A generation below -1 is a number
    like others in user data, and none in a subscription.
    """
    if assignor == STICKY:
        # Without the prefix of kafka-python the bytes begin with the number of topics of the claim.
        head = (user_data or b"")[:INT32_BYTES]
        prefixed = head.startswith(STRAY_PREFIX) and head != INT32.pack(len(owned))
        return ((), None) if prefixed else (owned, generation)
    if subscription_generation is not None and subscription_generation >= 0:
        return owned, subscription_generation
    if assignor == COOPERATIVE_STICKY and user_data is not None and len(user_data) >= INT32_BYTES:
        return owned, _generation.read(user_data, 0)[0]
    return owned, generation


def encode_user_data(user_data: UserData) -> bytes | None:
    """Encode: the inverse of `decode_user_data`."""
    form = user_data.form
    if form is UserDataForm.NULL:
        return None
    if user_data.damaged:
        return user_data.damaged
    out = bytearray(STRAY_PREFIX if form is UserDataForm.PREFIXED_OWNED_GENERATION else b"")
    if user_data.states_owned:
        _owned.write(user_data.owned, out)
    if form in _STATES_GENERATION:
        _generation.write(user_data.generation, out)
    return bytes(out + user_data.leftover)


_STATES_GENERATION = {UserDataForm.OWNED_GENERATION, UserDataForm.PREFIXED_OWNED_GENERATION, UserDataForm.GENERATION}


def _whole(user_data: UserData, data: bytes) -> UserData:
    """Keep all bytes, if they would not come back from what was read."""
    readable = all(REPLACEMENT not in topic for topic, _ in user_data.owned)
    return user_data if readable or encode_user_data(user_data) == data else replace(user_data, damaged=data)


def _decode_user_data(data: bytes, cooperative: bool) -> UserData:
    if cooperative and len(data) == _generation.least:
        return UserData(UserDataForm.GENERATION, generation=_generation.read(data, 0)[0])
    return _kip_54(data) or _prefixed(data) or UserData(UserDataForm.OPAQUE, leftover=data)


def _kip_54(data: bytes, start: int = 0) -> UserData | None:
    """v1 if four bytes are left for a generation, as Java tries it first; else v0; None if it is neither."""
    try:
        owned, end = _owned.read(data, start)
    except DecodeFault:
        return None
    if len(data) - end < _generation.least:
        return UserData(UserDataForm.OWNED, owned, None, data[end:])
    generation, end = _generation.read(data, end)
    return UserData(UserDataForm.OWNED_GENERATION, owned, generation, data[end:])


def _prefixed(data: bytes) -> UserData | None:
    """KIP-54 v1 behind kafka-python's prefix; read without it, those bytes claim 65,536 topics: no form is both."""
    if not data.startswith(STRAY_PREFIX):
        return None
    inner = _kip_54(data, len(STRAY_PREFIX))
    if inner is None or inner.form is not UserDataForm.OWNED_GENERATION:
        return None
    return UserData(UserDataForm.PREFIXED_OWNED_GENERATION, inner.owned, inner.generation, inner.leftover)


# What a classic member claims to own, and of which generation the claim is: an input of the sticky assignors.

FIRST_VERSION_WITH_OWNED = 1
"""Of the subscription (KIP-429)."""


class ClaimSource(StrEnum):
    """Where `Claim.owned` was stated."""

    SUBSCRIPTION = "subscription"
    USER_DATA = "user_data"
    NONE = "none"


class Taken(NamedTuple):
    """What Kafka's assignor takes a member to own, and of which generation; None: of none."""

    owned: TopicPartitions
    generation: int | None


@dataclass(frozen=True, slots=True)
class Claim:
    """The claim as the member sent it: topics in its order, repeats kept (`consumer_protocol.merged` joins them).

    `generation` is the one that the claim belongs to. The two it may come from are kept apart, since they can differ: a
    Java member that missed an assignment has the newer generation in its subscription and, in its user data, the one
    that the claim belongs to. A claim of nothing has a source; source NONE means that the member stated none.
    `taken` is what Kafka's assignor makes of the same bytes.
    """

    owned: TopicPartitions
    generation: int | None
    source: ClaimSource
    subscription_generation: int | None
    user_data_generation: int | None
    taken: Taken


def claim(subscription: ConsumerProtocolSubscription, assignor: str | None) -> Claim:
    """Return the member's claim under this assignor (the group's selected protocol).

    "sticky": owned and generation of the user data (KIP-54), whatever the subscription says, as Java's does. Any
    other: owned of the subscription (KIP-429, v1+), generation of the user data, which a stale claim does not renew,
    or, where it has none, of the subscription (KIP-792, v2+). A negative generation of a subscription is none.
    """
    user_data = decode_user_data(subscription.user_data, assignor)
    said, carried = _valid(subscription.generation), user_data.generation
    if assignor == STICKY:
        owned, dated = user_data.owned, carried
        source = ClaimSource.USER_DATA if user_data.states_owned else ClaimSource.NONE
    else:
        owned, dated = subscription.owned, said if carried is None else carried
        states_owned = (subscription.version or 0) >= FIRST_VERSION_WITH_OWNED
        source = ClaimSource.SUBSCRIPTION if states_owned else ClaimSource.NONE
    kept, decisive = taken(assignor, owned, dated, said, subscription.user_data)
    return Claim(owned, dated, source, said, carried, Taken(tuple(kept), decisive))


def _valid(generation: int | None) -> int | None:
    return generation if generation is not None and generation >= 0 else None
