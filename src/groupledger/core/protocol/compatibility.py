"""Which protocol an assignor supports, hence which one a consumer follows (KIP-429, "Compatibility").

Worked example: a consumer that lists range and cooperative-sticky follows EAGER, since range supports nothing else.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from groupledger.core.custom.group import Protocol

EAGER, COOPERATIVE = Protocol.EAGER, Protocol.COOPERATIVE


class ByteCode(enum.IntEnum):
    """The client library a process runs, as far as the protocol can tell; the value is its subscription version."""

    BEFORE_KIP_429 = 0  # topics and user data: can neither say nor read who owns what
    KIP_429 = 1  # says what it owns
    KIP_792 = 2  # says of which generation that is


class Support(NamedTuple):
    """One assignor of the table."""

    assignor: str
    user_data_version: int
    protocols: tuple[Protocol, ...]
    since: ByteCode
    note: str


TABLE = (
    Support("range", 0, (EAGER,), ByteCode.BEFORE_KIP_429, "the default; not sticky, so never cooperative"),
    Support("roundrobin", 0, (EAGER,), ByteCode.BEFORE_KIP_429, "not sticky, so never cooperative"),
    Support("sticky", 0, (EAGER,), ByteCode.BEFORE_KIP_429, "eager for ever, so that nobody upgrades by accident"),
    Support("cooperative-sticky", 0, (EAGER, COOPERATIVE), ByteCode.KIP_429, "meant to be the default from 3.0"),
    Support("stream", 4, (EAGER, COOPERATIVE), ByteCode.BEFORE_KIP_429, "Streams' own; UPGRADE_FROM keeps it eager"),
    Support("constrained-cooperative-sticky", 0, (EAGER, COOPERATIVE), ByteCode.KIP_429, "KIP-615"),
    Support("librdkafka-cooperative-sticky", 1, (EAGER, COOPERATIVE), ByteCode.KIP_429, "another algorithm"),
    Support("sticky-stream-join", 0, (EAGER,), ByteCode.BEFORE_KIP_429, "KIP-315, older than KIP-429"),
)
SUPPORTED = {row.assignor: row.protocols for row in TABLE}


class Library(NamedTuple):
    """A client library: the classic assignors it has, and whether one consumer may list eager and cooperative ones."""

    name: str
    assignors: tuple[str, ...]
    mixes: bool | None  # None: nobody tried it here
    note: str


LIBRARIES = {
    each.name: each
    for each in (
        Library("java", ("range", "roundrobin", "sticky", "cooperative-sticky", "stream"), True, "as in KIP-429"),
        Library(
            "librdkafka",
            ("range", "roundrobin", "cooperative-sticky"),
            False,
            "refuses a list of eager and cooperative assignors (librdkafka issue 4368)",
        ),
        Library("kafka-python", ("range", "roundrobin", "sticky", "cooperative-sticky"), None, "states no generation"),
        Library("franz-go", ("range", "roundrobin", "sticky", "cooperative-sticky"), None, ""),
        Library("aiokafka", ("range", "roundrobin", "sticky"), None, "has no cooperative assignor"),
        Library("kafkajs", ("RoundRobinAssigner",), None, "has no cooperative assignor"),
    )
}
"""Found by running them: Java 4.4.0, librdkafka 2.16.1, kafka-python 3.0.12, franz-go 1.22.2, aiokafka 0.14."""

STREAMS = "stream"
KAFKAS_ASSIGNORS = frozenset(LIBRARIES["java"].assignors) - {STREAMS}
"""Client-side assignors that Kafka itself brings for consumers."""
SPEAK_KIP_848 = frozenset({"java", "librdkafka", "franz-go"})
"""Libraries whose newest releases can be members of a KIP-848 group. Java and librdkafka were run as such; franz-go
1.22.2 has it as an option. kafka-python 3.0.12, aiokafka 0.14.0, Sarama 1.61.1, kafka-go 0.4.51 and KafkaJS 2.2.4 never
send a ConsumerGroupHeartbeat."""


def since(assignor: str) -> ByteCode:
    """The byte code that first had it; what is not in the table is some other library's own, and as old as that."""
    return next((row.since for row in TABLE if row.assignor == assignor), ByteCode.BEFORE_KIP_429)


def protocol_of(supported: Iterable[Iterable[Protocol]], byte_code: ByteCode = ByteCode.KIP_792) -> Protocol:
    """The protocol a consumer follows: the highest that all its assignors support, COOPERATIVE above EAGER."""
    common = set(Protocol).intersection(*map(set, supported))
    return COOPERATIVE if COOPERATIVE in common and byte_code >= ByteCode.KIP_429 else EAGER
