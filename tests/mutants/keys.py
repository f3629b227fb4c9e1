"""What a mutant is known by, wherever in its file the line stands."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A change of one line of a file below the core."""

    path: str
    line: str
    old: str
    new: str
