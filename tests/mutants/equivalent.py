"""Mutants that are no other program, each with the reason: what survives them is no gap in the tests."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A change of one line of a file below the core, wherever the line stands."""

    path: str
    line: str
    old: str
    new: str


EQUIVALENT: dict[Key, str] = {}
