"""Which client library wrote a subscription, as far as its bytes tell: each leaves a hand of its own in the log.

Worked example: `range` in version 3 with user data that is there and empty is librdkafka; with none at all it is Java
or franz-go, and nothing in the log tells these two apart.
"""

from __future__ import annotations

from typing import NamedTuple

from groupledger.core.wire.user_data import COOPERATIVE_STICKY, UserDataForm, decode_user_data

JAVA = "java"
JAVA_BY_VERSION = {0: "before 2.4", 1: "2.4-3.3", 3: "3.4.0 on"}
"""Releases of the Java client by the version of the subscriptions they write; none has 2 as its highest."""


class Hand(NamedTuple):
    """What a library writes under some assignors; `versions` are those of the subscription."""

    library: str
    assignors: frozenset[str]
    versions: range
    user_data: frozenset[UserDataForm]


_UNREMEMBERING = frozenset({"range", "roundrobin"})
_STICKY = frozenset({"sticky"})
_COOPERATIVE = frozenset({"cooperative-sticky"})
_NONE, _EMPTY, _GENERATION = (
    frozenset({each}) for each in (UserDataForm.NULL, UserDataForm.EMPTY, UserDataForm.GENERATION)
)
_MEMORY = frozenset({UserDataForm.OWNED, UserDataForm.OWNED_GENERATION})
_PREFIXED = frozenset({UserDataForm.PREFIXED_OWNED_GENERATION})
_V0, _V1, _V3, _OWNED, _ANY, _UP_TO_V2 = range(1), range(1, 2), range(3, 4), range(1, 4), range(4), range(3)

HANDS = (
    Hand("java", _UNREMEMBERING, _ANY, _NONE),
    Hand("java", _STICKY, _ANY, _NONE | _MEMORY),
    Hand("java", _COOPERATIVE, _OWNED, _GENERATION),
    Hand("java", _COOPERATIVE, _V1, _NONE),  # up to 2.8.0
    Hand("librdkafka", _UNREMEMBERING, _V3, _EMPTY),
    Hand("librdkafka", _COOPERATIVE, _V3, _EMPTY | _MEMORY),
    Hand("kafka-python", _UNREMEMBERING, _V0, _EMPTY),
    Hand("kafka-python", _STICKY, _V0, _EMPTY | _PREFIXED),
    Hand("kafka-python", _COOPERATIVE, _V1, _EMPTY),
    Hand("aiokafka", _UNREMEMBERING, _V0, _EMPTY),
    Hand("aiokafka", _STICKY, _V0, _EMPTY | _MEMORY),
    Hand("franz-go", _UNREMEMBERING, _V3, _NONE),
    Hand("franz-go", _STICKY | _COOPERATIVE, _V3, _MEMORY),
    Hand("kafkajs", frozenset({"RoundRobinAssigner"}), _V0, _EMPTY),
    Hand("sarama", _UNREMEMBERING, _UP_TO_V2, _NONE | _EMPTY),
    Hand("sarama", _STICKY, _UP_TO_V2, _NONE | _EMPTY | _MEMORY),
    Hand("sarama", _COOPERATIVE, _UP_TO_V2, _GENERATION),
    Hand("kafka-go", _UNREMEMBERING, _V1, _NONE),
    Hand("kafka-go", frozenset({"rack-affinity"}), _V1, _NONE | _EMPTY | frozenset({UserDataForm.OPAQUE})),
)
"""As seen of the versions that `compatibility.LIBRARIES` names; a library that is not here, or an older one, may write
the same. Sarama's and kafka-go's are read from their sources."""


def libraries(assignor: str | None, version: int | None, user_data: bytes | None) -> frozenset[str]:
    """The libraries that write this; none: not one of those we know."""
    sent = decode_user_data(user_data, assignor)
    no_topics = sent.form is UserDataForm.GENERATION and sent.generation == 0  # no group has a generation 0 to claim of
    form = UserDataForm.OWNED if no_topics else sent.form
    return frozenset(
        hand.library
        for hand in HANDS
        if assignor in hand.assignors and version in hand.versions and form in hand.user_data
    )


def java_releases(assignor: str | None, version: int | None, user_data: bytes | None) -> str | None:
    """Return the releases of the Java client that write such a subscription; None if it does not write these bytes.

    Versions 0, 1 and 3 are those of the releases before 2.4, before 3.4 and since then. User data beside
    `cooperative-sticky` begin with 2.8.1; `sticky` always had some.
    """
    if JAVA not in libraries(assignor, version, user_data):
        return None
    if version == 1 and assignor == COOPERATIVE_STICKY:
        return "2.4-2.8.0" if user_data is None else "2.8.1-3.3"
    return None if version is None else JAVA_BY_VERSION.get(version)
