"""A member's client library by name and release, `java@2.3` or `librdkafka`: what it can say, list, and assign by.

Worked example: `java@2.3` is byte code before KIP-429, so it has no cooperative-sticky. A librdkafka leader that is
asked for cooperative-sticky assigns by an algorithm of its own.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.faults import Fault
from groupledger.core.protocol.compatibility import LIBRARIES, SUPPORTED, ByteCode, since
from groupledger.core.registry import JAVA, RECORDS

BAD_CLIENT = "BAD_CLIENT"
RELEASES = (((3, 4), ByteCode.KIP_792), ((2, 4), ByteCode.KIP_429))
"""From which release of Kafka's Java client on a subscription says so much (KIP-792: apache/kafka pull 12748)."""
VERSION = re.compile(r"\d+\.\d+(\.\d+)*", re.ASCII)


CLIENTS_EAGER = frozenset(each.name for each in CLIENT_ASSIGNORS.values() if each.protocol in ("range", "roundrobin"))
"""Eager assignors of other libraries than Java's under Kafka's names: who is first, and the order of lists, differ."""


class ClientLibrary(NamedTuple):
    """One library, and the byte code of its release."""

    name: str
    byte_code: ByteCode


def read_client_library(text: str) -> ClientLibrary:
    """`java@2.3`, or `librdkafka` in its newest release; raises Fault("BAD_CLIENT")."""
    name, at, version = text.partition("@")
    if name not in LIBRARIES:
        raise Fault(BAD_CLIENT, f"client is {text!r}; expected one of {', '.join(LIBRARIES)}, or java@2.3")
    if not at:
        return ClientLibrary(name, ByteCode.KIP_792)
    if name != JAVA or VERSION.fullmatch(version) is None:
        expected = f"a release such as java@2.3: of {JAVA} alone it is known what each release says"
        raise Fault(BAD_CLIENT, f"client is {text!r}; expected {expected}")
    release = tuple(int(each) for each in version.split("."))
    return ClientLibrary(name, next((code for first, code in RELEASES if release >= first), ByteCode.BEFORE_KIP_429))


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


def algorithm_of(library: str, assignor: str) -> str:
    """What a leader of this library runs where the group's protocol is called so."""
    own = (each.name for each in RECORDS if each.library == library and each.protocol_name == assignor)
    eager = f"{library}-{assignor}"
    return next(own, eager if eager in CLIENTS_EAGER else assignor)
