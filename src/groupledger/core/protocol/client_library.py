"""A member's client library by name and release, `java@2.3` or `librdkafka`: what it can say, list, and assign by.

Worked example: `java@2.3` is byte code before KIP-429, so it has no cooperative-sticky; without `assignors` it lists
range. A librdkafka leader that is asked for cooperative-sticky assigns by an algorithm of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.faults import Fault
from groupledger.core.protocol.compatibility import LIBRARIES, SUPPORTED, ByteCode, since
from groupledger.core.rebalance.registry import BY_NAME, JAVA, LIBRDKAFKA, RECORDS
from groupledger.core.rebalance.step import Form

BAD_CLIENT, NOT_SIMULATED = "BAD_CLIENT", "NOT_SIMULATED"
BOTH_BY_DEFAULT = (3, 0)
"""From this release on Kafka's Java client lists range and cooperative-sticky by default, before it range alone."""
RELEASES = (((3, 4), ByteCode.KIP_792), ((2, 4), ByteCode.KIP_429))
"""From which release of Kafka's Java client on a subscription says so much (KIP-792: apache/kafka pull 12748)."""
VERSION = re.compile(r"\d+\.\d+(\.\d+)*", re.ASCII)


CLIENTS_EAGER = frozenset(each.name for each in CLIENT_ASSIGNORS.values() if each.protocol in ("range", "roundrobin"))
"""Eager assignors of other libraries than Java's under Kafka's names: who is first, and the order of lists, differ."""
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


def stand_in(library: str, assignor: str) -> str | None:
    """Say that Java's algorithm answers in place of the library's own; None where it does not."""
    if library == JAVA or assignor not in BY_NAME or algorithm_of(library, assignor) != assignor:
        return None
    told = "its own algorithm is not simulated, Java's is in its place"
    return f"{library} leads under {assignor}: {told}: who gets which partition may differ"


def algorithm_of(library: str, assignor: str) -> str:
    """Return the algorithm that a leader of this library runs where the group's protocol has this name."""
    own = (each.name for each in RECORDS if each.library == library and each.protocol_name == assignor)
    eager = f"{library}-{assignor}"
    return next(own, eager if eager in CLIENTS_EAGER else assignor)


# What a client library's consumer does otherwise than Kafka's Java client, whose ways the form `as-kafka` has.
#
# Found by running them (tests/live) and by reading them: librdkafka 2.16.1, `rdkafka_cgrp.c`; kafka-python 3.0.12,
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
    return JAVAS if form is Form.KIP else OF_LIBRARY.get(library, JAVAS)
