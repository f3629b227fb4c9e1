"""The one base error of groupledger, and the codes a rejected input can carry.

A fault is about the *input*: it becomes a quarantine row (one record, one group) or one line for the
person who asked. A bug of ours is any other exception and is never caught.
"""

from __future__ import annotations


class Fault(Exception):
    """An input that cannot be used: `code` for counting, `message` for a person (what, got, expected, what to do)."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type[Fault], tuple[str, str]]:
        return type(self), (self.code, self.message)
