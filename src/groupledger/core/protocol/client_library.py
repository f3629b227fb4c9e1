"""A member's client library by name and release, `java@2.3` or `librdkafka`: what it can say, list, and assign by.

Worked example: `java@2.3` is byte code before KIP-429, so it has no cooperative-sticky; without `assignors` it lists
range. A librdkafka leader that is asked for cooperative-sticky assigns by an algorithm of its own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.faults import Fault
from groupledger.core.protocol.compatibility import LIBRARIES, SUPPORTED, ByteCode, since
from groupledger.core.registry import BY_NAME, JAVA, RECORDS

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
    """What a leader of this library runs where the group's protocol is called so."""
    own = (each.name for each in RECORDS if each.library == library and each.protocol_name == assignor)
    eager = f"{library}-{assignor}"
    return next(own, eager if eager in CLIENTS_EAGER else assignor)
