"""Declare the client libraries, what each writes into a subscription, and the protocols that its assignors support.

KIP-429, "Compatibility". Worked example: a consumer that lists range and cooperative-sticky follows EAGER, since range
supports nothing else. `range` in version 3 with user data that is there and empty is librdkafka; with none at all it is
Java or franz-go, and nothing in the log distinguishes these two.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from groupledger.core.custom.custom_group import Protocol
from groupledger.core.faults import Fault
from groupledger.core.rebalance.registry import JAVA, LIBRDKAFKA, RECORDS
from groupledger.core.wire.consumer_protocol import NEWEST_VERSION, UserDataForm, decode_user_data

if TYPE_CHECKING:
    from groupledger.core.rebalance.step import Form

EAGER, COOPERATIVE = Protocol.EAGER, Protocol.COOPERATIVE


class ByteCode(enum.IntEnum):
    """The client library a process runs, as far as the protocol shows; the value is its subscription version."""

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
    Support("RoundRobinAssigner", 0, (EAGER,), ByteCode.BEFORE_KIP_429, "KafkaJS's"),
    Support("rack-affinity", 0, (EAGER,), ByteCode.BEFORE_KIP_429, "kafka-go's"),
)
SUPPORTED = {each.name: each.protocols for each in RECORDS} | {row.assignor: row.protocols for row in TABLE}
"""The table's protocols; of an assignor that stands in the registry alone, those of its record."""


class Hand(NamedTuple):
    """What a library writes under some assignors; `versions` are those of the subscription."""

    assignors: frozenset[str]
    versions: range
    user_data: frozenset[UserDataForm]


class Library(NamedTuple):
    """The facts about a client library; the only place for them, apart from its assignors' algorithms.

    `assignors`: the classic ones, by protocol name; `default`: those that a consumer lists if none is configured.
    `mixes`: whether one consumer may list eager and cooperative ones; None: nobody tried it here. `speaks_kip_848`:
    whether its newest release can be a member of a KIP-848 group. `hands`: the subscriptions that it writes.
    """

    name: str
    assignors: tuple[str, ...]
    default: tuple[str, ...]
    mixes: bool | None
    note: str
    hands: tuple[Hand, ...]
    speaks_kip_848: bool = False

    @property
    def cooperates(self) -> bool:
        """Whether it has a cooperative assignor for consumers."""
        return any(COOPERATIVE in SUPPORTED[each] for each in self.assignors if each != STREAMS)


STREAMS = "stream"
RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY = "range", "roundrobin", "sticky", "cooperative-sticky"
_DEALING, _STICKY, _COOPERATIVE = (frozenset(each) for each in ((RANGE, ROUNDROBIN), (STICKY,), (COOPERATIVE_STICKY,)))
_NONE, _EMPTY, _GENERATION, _PREFIXED = (
    frozenset({each})
    for each in (
        *(UserDataForm.NULL, UserDataForm.EMPTY, UserDataForm.GENERATION),
        UserDataForm.PREFIXED_OWNED_GENERATION,
    )
)
_MEMORY = frozenset({UserDataForm.OWNED, UserDataForm.OWNED_GENERATION})
_RACK = _NONE | _EMPTY | {UserDataForm.OPAQUE}
_V0, _V1, _V3, _OWNED, _ANY, _UP_TO_V2 = range(1), range(1, 2), range(3, 4), range(1, 4), range(4), range(3)

_ALL = (
    Library(
        "java",
        (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY, STREAMS),
        (RANGE, COOPERATIVE_STICKY),  # before 3.0 range alone
        True,
        "as in KIP-429",
        (
            Hand(_DEALING, _ANY, _NONE),
            Hand(_STICKY, _ANY, _NONE | _MEMORY),
            Hand(_COOPERATIVE, _OWNED, _GENERATION),
            Hand(_COOPERATIVE, _V1, _NONE),  # up to 2.8.0
        ),
        speaks_kip_848=True,
    ),
    Library(
        "librdkafka",
        (RANGE, ROUNDROBIN, COOPERATIVE_STICKY),
        (RANGE, ROUNDROBIN),
        False,
        "refuses a list of eager and cooperative assignors (librdkafka issue 4368)",
        (Hand(_DEALING, _V3, _EMPTY), Hand(_COOPERATIVE, _V3, _EMPTY | _MEMORY)),
        speaks_kip_848=True,
    ),
    Library(
        "kafka-python",
        (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY),
        (RANGE, ROUNDROBIN),
        False,
        "refuses a list of eager and cooperative assignors (KafkaConfigurationError)",
        (Hand(_DEALING, _V0, _EMPTY), Hand(_STICKY, _V0, _EMPTY | _PREFIXED), Hand(_COOPERATIVE, _V1, _EMPTY)),
    ),
    Library(
        "franz-go",
        (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY),
        (COOPERATIVE_STICKY,),
        None,
        "follows the protocol of the assignor that the group chose, not of all that it lists",
        (Hand(_DEALING, _V3, _NONE), Hand(_STICKY | _COOPERATIVE, _V3, _MEMORY)),
        speaks_kip_848=True,
    ),
    Library(
        "aiokafka",
        (RANGE, ROUNDROBIN, STICKY),
        (ROUNDROBIN,),
        None,
        "has no cooperative assignor",
        (Hand(_DEALING, _V0, _EMPTY), Hand(_STICKY, _V0, _EMPTY | _MEMORY)),
    ),
    Library(
        "sarama",
        (RANGE, ROUNDROBIN, STICKY, COOPERATIVE_STICKY),
        (RANGE,),
        True,
        "as in KIP-429",
        (
            Hand(_DEALING, _UP_TO_V2, _NONE | _EMPTY),
            Hand(_STICKY, _UP_TO_V2, _NONE | _EMPTY | _MEMORY),
            Hand(_COOPERATIVE, _UP_TO_V2, _GENERATION),
        ),
    ),
    Library(
        "kafka-go",
        (RANGE, ROUNDROBIN, "rack-affinity"),
        (RANGE, ROUNDROBIN),
        None,
        "has no cooperative assignor",
        (Hand(_DEALING, _V1, _NONE), Hand(frozenset({"rack-affinity"}), _V1, _RACK)),
    ),
    Library(
        "kafkajs",
        ("RoundRobinAssigner",),
        ("RoundRobinAssigner",),
        None,
        "has no cooperative assignor",
        (Hand(frozenset({"RoundRobinAssigner"}), _V0, _EMPTY),),
    ),
)
LIBRARIES = {each.name: each for each in _ALL}
"""Java 4.4.0, librdkafka 2.16.0, kafka-python 3.0.12, franz-go 1.22.2, aiokafka 0.14.0, Sarama 1.61.1, kafka-go 0.4.51,
KafkaJS 2.2.4, the likelier one first where several write the same bytes; an older release or a library that is not here
may write the same. Their bytes were seen, Sarama's and kafka-go's read from their sources. Java and librdkafka were run
as members of KIP-848 groups; franz-go has it as an option, the others never send a ConsumerGroupHeartbeat."""

KAFKAS_ASSIGNORS = frozenset(LIBRARIES["java"].assignors) - {STREAMS}
"""Client-side assignors that Kafka itself brings for consumers."""
SPEAK_KIP_848 = frozenset(each.name for each in _ALL if each.speaks_kip_848)


def since(assignor: str) -> ByteCode:
    """Return the byte code that first had an assignor; one that is not in the table is of another library."""
    return next((row.since for row in TABLE if row.assignor == assignor), ByteCode.BEFORE_KIP_429)


def protocol_of(supported: Iterable[Iterable[Protocol]], byte_code: ByteCode = ByteCode.KIP_792) -> Protocol:
    """Return the protocol of a consumer: the highest that all its assignors support, COOPERATIVE above EAGER."""
    common = set(Protocol).intersection(*map(set, supported))
    return COOPERATIVE if COOPERATIVE in common and byte_code >= ByteCode.KIP_429 else EAGER


JAVA_WRITER = "java"
JAVA_BY_VERSION = {0: "before 2.4", 1: "2.4-3.3", 3: "3.4.0 on"}
"""Releases of the Java client by the version of the subscriptions they write; none has 2 as its highest."""


def libraries(assignor: str | None, version: int | None, user_data: bytes | None) -> frozenset[str]:
    """Return the libraries that write this; empty: none of those that are known."""
    sent = decode_user_data(user_data, assignor)
    no_topics = sent.form is UserDataForm.GENERATION and sent.generation == 0  # no group has a generation 0 to claim of
    form = UserDataForm.OWNED if no_topics else sent.form
    return frozenset(
        library.name
        for library in LIBRARIES.values()
        for hand in library.hands
        if assignor in hand.assignors and version in hand.versions and form in hand.user_data
    )


def java_releases(assignor: str | None, version: int | None, user_data: bytes | None) -> str | None:
    """Return the releases of the Java client that write such a subscription; None if it does not write these bytes.

    Versions 0, 1 and 3 are those of the releases before 2.4, before 3.4 and since then. User data beside
    `cooperative-sticky` begin with 2.8.1; `sticky` always had some.
    """
    if JAVA_WRITER not in libraries(assignor, version, user_data):
        return None
    if version == 1 and assignor == COOPERATIVE_STICKY:
        return "2.4-2.8.0" if user_data is None else "2.8.1-3.3"
    return None if version is None else JAVA_BY_VERSION.get(version)


def is_older_java(version: int | None) -> bool:
    """Return whether a Java client that writes this version of a subscription is older than 3.5."""
    return version is not None and version < NEWEST_VERSION


def named_writers(known: Iterable[str], version: int | None) -> tuple[str, ...]:
    """Name the libraries that write a subscription of this version: `("java before 3.5", "sarama")`."""
    old = " before 3.5" if is_older_java(version) else ""
    return tuple(name + old * (name == JAVA_WRITER) for name in LIBRARIES if name in known)


# A member's client library by name and release, `java@2.3` or `librdkafka`: what it can say, list, and assign by.
#
# Worked example: `java@2.3` is byte code before KIP-429, so it has no cooperative-sticky; without `assignors` it lists
# range. A librdkafka leader that is asked for cooperative-sticky assigns by an algorithm of its own.


BAD_CLIENT, NOT_SIMULATED = "BAD_CLIENT", "NOT_SIMULATED"
BOTH_BY_DEFAULT = (3, 0)
"""From this release on Kafka's Java client lists range and cooperative-sticky by default, before it range alone."""
RELEASES = (((3, 4), ByteCode.KIP_792), ((2, 4), ByteCode.KIP_429))
"""From which release of Kafka's Java client on a subscription says so much (KIP-792: apache/kafka pull 12748)."""
VERSION = re.compile(r"\d+\.\d+(\.\d+)*", re.ASCII)


UNPLAYED = {
    "RoundRobinAssigner": "a member of KafkaJS cannot be simulated: its leader deals only the topics that it "
    "subscribes to itself, and a member drops those that it does not subscribe to; `groupledger solve` has "
    "kafkajs-roundrobin",
    "rack-affinity": "a member of kafka-go's rack-affinity cannot be simulated: its leader's answer is left to chance",
}
"""Assignors whose groups the simulator does not have, and why."""


class ClientLibrary(NamedTuple):
    """One library, the byte code of its release, and the assignors that it lists if none is configured."""

    name: str
    byte_code: ByteCode
    default: tuple[str, ...]


def read_client_library(text: str) -> ClientLibrary:
    """`java@2.3`, or `librdkafka` in its newest release; raises Fault("BAD_CLIENT")."""
    name, at, version = text.partition("@")
    if name not in LIBRARIES:
        raise Fault(BAD_CLIENT, f"client is {text!r}; expected one of {', '.join(LIBRARIES)}, or java@2.3")
    if not at:
        return ClientLibrary(name, ByteCode.KIP_792, LIBRARIES[name].default)
    if name != JAVA or VERSION.fullmatch(version) is None:
        expected = f"a release such as java@2.3: of {JAVA} alone it is known what each release says"
        raise Fault(BAD_CLIENT, f"client is {text!r}; expected {expected}")
    release = tuple(int(each) for each in version.split("."))
    code = next((code for first, code in RELEASES if release >= first), ByteCode.BEFORE_KIP_429)
    default = LIBRARIES[name].default
    return ClientLibrary(name, code, default if release >= BOTH_BY_DEFAULT else default[:1])


def require_assignors(client: ClientLibrary, assignors: tuple[str, ...], place: str) -> None:
    """Raise Fault("BAD_CLIENT") where a library lists an assignor that it does not have, or two that it cannot mix."""
    library = LIBRARIES[client.name]
    for each in assignors:
        if each in SUPPORTED and (each not in library.assignors or since(each) > client.byte_code):
            there = ", ".join(name for name in library.assignors if since(name) <= client.byte_code)
            raise Fault(BAD_CLIENT, f"{place} lists {each}, which this {client.name} does not have; expected {there}")
    cooperative = {len(SUPPORTED[each]) > 1 for each in assignors if each in SUPPORTED}
    if len(cooperative) > 1 and library.mixes is False:
        raise Fault(BAD_CLIENT, f"{place} lists eager and cooperative assignors; {client.name} {library.note}")


def require_played(assignor: str) -> None:
    """Raise Fault("NOT_SIMULATED") for an assignor whose groups the simulator does not have."""
    if assignor in UNPLAYED:
        raise Fault(NOT_SIMULATED, UNPLAYED[assignor])


# What a client library's consumer does otherwise than Kafka's Java client, whose ways the form `as-kafka` has.
#
# Found by running them (tests/live) and by reading them: librdkafka 2.16.0, `rdkafka_cgrp.c`; kafka-python 3.0.12,
# `coordinator/consumer.py`. The form `kip` has none of these.
#
# Worked example: a cooperative consumer of librdkafka that owns t-0 learns that t was deleted, and calls
# onPartitionsLost(t-0) at once. Java claims t-0 until the leader leaves it out, and then calls
# onPartitionsRevoked(t-0).

KAFKA_PYTHON = "kafka-python"


@dataclass(frozen=True, slots=True)
class Habits:
    """Where a consumer differs; the defaults are those of Java's.

    `revokes_at_first`: eager, it calls onPartitionsRevoked with nothing when it joins for the first time, too.
    `silent`: cooperative, it does not call onPartitionsAssigned where nothing was added.
    `loses_unknown`: cooperative, it calls onPartitionsLost for what it owns of topics that it has no metadata of, when
    it learns so: those of a deleted topic, and those that left its subscription where it has to ask for
    metadata of the new one first (`Subscribe.known`: it need not).
    `asks`: leading, it asks for metadata before it assigns, and so does not assign by what it knew.
    `all_join`: any member joins again when its own metadata changes, not the leader alone.
    `refreshes`: subscribed by a pattern, it fetches metadata before each JoinGroup (Java since 2.1, KAFKA-7126;
        librdkafka takes what it has, unless that is old).
    """

    revokes_at_first: bool = False
    silent: bool = False
    loses_unknown: bool = False
    asks: bool = False
    all_join: bool = False
    refreshes: bool = True


JAVAS = Habits()
OF_LIBRARY = {
    LIBRDKAFKA: Habits(loses_unknown=True, asks=True, all_join=True, refreshes=False),
    KAFKA_PYTHON: Habits(revokes_at_first=True, silent=True),
}


def habits_of(library: str, form: Form) -> Habits:
    """Those of a client library in this form."""
    from groupledger.core.rebalance.step import Form  # loads numpy, which an answer does not need

    return JAVAS if form is Form.KIP else OF_LIBRARY.get(library, JAVAS)
