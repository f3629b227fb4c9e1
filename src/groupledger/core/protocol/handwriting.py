"""Name the client libraries that write a subscription's bytes, by `compatibility.LIBRARIES`.

Worked example: `range` in version 3 with user data that is there and empty is librdkafka; with none at all it is Java
or franz-go, and nothing in the log tells these two apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupledger.core.protocol.compatibility import LIBRARIES
from groupledger.core.wire.consumer_protocol import NEWEST_VERSION
from groupledger.core.wire.user_data import COOPERATIVE_STICKY, UserDataForm, decode_user_data

JAVA = "java"
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
    if JAVA not in libraries(assignor, version, user_data):
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
    return tuple(name + old * (name == JAVA) for name in LIBRARIES if name in known)
