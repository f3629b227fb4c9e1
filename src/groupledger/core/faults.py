"""Define groupledger's one base error, and the codes of rejected input.

A fault is about the *input*: it becomes a quarantine row (one record, one group) or one line for the person who
asked. A bug of ours is any other exception and is never caught.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from enum import StrEnum

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


def expected_one_of(got: str, known: Iterable[str]) -> str:
    """Return what a message says is expected, after the names that look like the one it got."""
    names = list(known)
    near = ", ".join(difflib.get_close_matches(got, names, n=3))
    return f"did you mean {near}? " * bool(near) + f"expected one of {', '.join(names)}"


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
