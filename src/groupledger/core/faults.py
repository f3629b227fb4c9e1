"""Define groupledger's one base error, and the codes of rejected input.

A fault is about the *input*: it becomes a quarantine row (one record, one group) or one line for the person who
asked. A bug of ours is any other exception and is never caught.
"""

from __future__ import annotations

import difflib
import importlib
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from enum import StrEnum
from typing import Any

from groupledger.core.secrets import without_secrets


class Code(StrEnum):
    """A code that rejected input can carry, with its meaning: `NAME = "NAME", "what was found"`."""

    what: str

    def __new__(cls, code: str, what: str) -> Code:
        """Make the member: its value is only the code."""
        member = str.__new__(cls, code)
        member._value_ = code
        member.what = what
        return member


def expected_one_of(got: str, known: Iterable[str], most: int = 100) -> str:
    """Return what a message says is expected, after the names that look like the one it got."""
    names = list(known)
    some = f"expected one of {', '.join(names[:most])}{', ...' if len(names) > most else ''}"
    return meant(got, names, 3) + (some if names else "none is known")


def resembling(got: str, known: Iterable[str], most: int = 1) -> list[str]:
    """Return the names that look like this one, or else those that begin with it."""
    names = list(known)
    return difflib.get_close_matches(got, names, most) or [one for one in names if got and one.startswith(got)][:most]


def meant(got: str, known: Iterable[str], most: int = 1) -> str:
    """Return `did you mean a, b? ` for a message, or nothing if no name resembles this one."""
    near = ", ".join(resembling(got, known, most))
    return f"did you mean {near}? " if near else ""


class Fault(Exception):
    """An unusable input: `code` for counting, `message` for a person (what, got, expected, what to do).

    A message holds no secret: one in the input appears as `***`.
    """

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = without_secrets(message)
        super().__init__(self.message)

    def __reduce__(self) -> tuple[type[Fault], tuple[str, str]]:
        return type(self), (self.code, self.message)


# Explain a Kafka client's errors to a person: one line, with what to do.

LOGIN = frozenset({"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"})
TLS = frozenset({"_SSL"})
RIGHTS = frozenset(
    {"TOPIC_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED", "DELEGATION_TOKEN_AUTHORIZATION_FAILED"}
)
"""Without group errors: librdkafka looks for the coordinator of the group that its consumer never joins."""
PASSING = frozenset({"_ALL_BROKERS_DOWN", "GROUP_AUTHORIZATION_FAILED"})
"""Errors that do not say why no broker answers."""
UNSETTLED = frozenset(
    {
        *("UNKNOWN_LEADER_EPOCH", "FENCED_LEADER_EPOCH", "NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE"),
        *(
            "OFFSET_NOT_AVAILABLE",
            "REPLICA_NOT_AVAILABLE",
            "BROKER_NOT_AVAILABLE",
            "NOT_CONTROLLER",
            "NETWORK_EXCEPTION",
        ),
        *("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "_TRANSPORT", "_WAIT_COORD"),
    }
)
"""Errors of a cluster whose broker has just started, or whose leader has just changed: it answers on retry."""
LOST = "_AUTO_OFFSET_RESET"
"""Error of a read that begins at offsets that are gone from the log."""
_NO_ANSWER = frozenset({"_TRANSPORT", "_TIMED_OUT", "_ALL_BROKERS_DOWN", "_RESOLVE", "_TIMED_OUT_QUEUE", "_WAIT_COORD"})
_HANDSHAKE = re.compile(r"SSL handshake failed|SSL routines::(?!unexpected eof)")
"""A handshake that fails the same way each time; librdkafka names it _SSL or _TRANSPORT, by which thread sees it first.

A broker that goes down in a handshake is an unexpected end of file, which passes.
"""
_AFTER = re.compile(r"\s*\((?:after|\d+ identical) (?:[^()]|\([^()]*\))*\)")
_PREFIX = re.compile(r"^(?:(?:sasl_)?(?:plaintext|ssl)://)?\S+/(?:bootstrap|\d+): ")
_NOBODY = re.compile(r"(?:\w+://)?(\S+)/bootstrap: (?:Connect to .* failed: Connection refused|Failed to resolve )")
RIGHTS_ENOUGH = "Describe and Read on the topic __consumer_offsets, and Describe on all topics"


def is_hopeless(name: str, text: str) -> bool:
    """Return whether no retry fixes an error: sending a wrong password again may lock the account."""
    return name in LOGIN | TLS | RIGHTS or _HANDSHAKE.search(text) is not None


def refusing(texts: Iterable[str]) -> set[str]:
    """Return the bootstrap addresses that refuse connections, or cannot be resolved, by these errors."""
    return {found[1] for text in texts if (found := _NOBODY.match(text))}


def kafka_fault(name: str, text: str, bootstrap: str, doing: str) -> Fault:
    """Return the fault for an error, by librdkafka's or the protocol's name of it.

    KAFKA_REFUSED (login or TLS), KAFKA_NOT_ALLOWED (a right is missing), KAFKA_UNREACHABLE, KAFKA_FAILED.
    """
    said = _words(text)
    if name in LOGIN:
        way_out = "check the options security.protocol and sasl.*"
        return Fault("KAFKA_REFUSED", f"{bootstrap} refused the login: {said}; {way_out}")
    if name in TLS or _HANDSHAKE.search(said):
        way_out = "check the options security.protocol and ssl.*"
        return Fault("KAFKA_REFUSED", f"no TLS connection to {bootstrap}: {said}; {way_out}")
    if name in RIGHTS:
        way_out = f"enough is {RIGHTS_ENOUGH}; `groupledger doctor --bootstrap` says what is missing"
        return Fault("KAFKA_NOT_ALLOWED", f"{bootstrap} does not allow {doing}: {said}; {way_out}")
    if name in _NO_ANSWER:
        return unreachable(bootstrap, said, doing, None)
    return Fault("KAFKA_FAILED", f"{doing} failed at {bootstrap}: {said}")


def log_moved(said: str) -> Fault:
    """Return the fault of a read at the log start, which has moved since the read was planned."""
    return Fault("LOG_MOVED", f"{said}: the log start moved on, or the log was cut; run it again")


def unreachable(bootstrap: str, said: str | None, doing: str, seconds: float | None) -> Fault:
    """Return the fault of a cluster that did not answer, with the last known reason."""
    within = "" if seconds is None else f" within {seconds:g} s (timeout_seconds)"
    reason = f": {_words(said)}" if said else ""
    way_out = "check the address, the port, the network, and the option security.protocol"
    return Fault("KAFKA_UNREACHABLE", f"no answer from {bootstrap} to {doing}{within}{reason}; {way_out}")


def _words(said: str) -> str:
    """Return what librdkafka says of a broker, without its address, durations and repeat counts."""
    return _PREFIX.sub("", _AFTER.sub("", " ".join(said.split())))


# Import code that is not ours when it is needed: users' own by the name `module:name`, and client libraries.
#
# A name comes from configuration or a command, never from data.

MODULE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
"""The form of `module:name`."""
CURRENT_FOLDER = ""
"""As `sys.path` names it, whatever folder that is."""
RAISED = (Exception, SystemExit)
"""What users' code may raise; sys.exit() in it must not end a command as if it had succeeded."""


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send what users' code prints to stderr: stdout has a command's results, which a program may read."""
    with redirect_stdout(sys.stderr):
        yield


def imported(name: str, code: str, expected: str) -> Any:
    """Return the object named `module:name`, looking in the current folder last, so that it hides nothing.

    Raises Fault(code), which says what failed and what was `expected`.
    """
    module, _, attribute = name.partition(":")
    if CURRENT_FOLDER not in sys.path:
        sys.path.append(CURRENT_FOLDER)
    try:
        with prints_to_stderr():
            return getattr(importlib.import_module(module), attribute)
    except RAISED as error:  # a foreign module may fail in any way during its import
        reason = f"{type(error).__name__}: {error}"
        raise Fault(code, f"cannot import {name}: {reason}; expected {expected}") from error


def client_module(name: str, package: str, extra: str | None = None) -> Any:
    """Return a client library, imported now. Raises Fault("CLIENT_MISSING") if it is not installed.

    `extra`: the extra of groupledger that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        wanted = package if extra is None else f"'groupledger[{extra}]'"
        raise Fault("CLIENT_MISSING", f"{package} is not installed; expected `pip install {wanted}`") from error
