"""What a script must be like; each check raises Fault("BAD_SCRIPT"), which says where the script is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from groupledger.core.faults import Fault

BAD_SCRIPT = "BAD_SCRIPT"
MOST_PARTITIONS = 100_000
"""Of a topic."""
MOST_MS = 2**31 - 1
"""Of a time that Kafka keeps in an int."""


def require(holds: bool, place: str, got: Any, expected: str) -> None:
    """Anything at all."""
    if not holds:
        shown = "nothing" if got is None else repr(got)[:80]
        raise Fault(BAD_SCRIPT, f"{place} is {shown}; expected {expected}")


def require_whole(value: Any, place: str, most: int, least: int = 0) -> None:
    """A whole number within bounds."""
    found = type(value) is int and least <= value <= most
    require(found, place, value, f"a whole number from {least:,} to {most:,}")


def require_one_of(value: Any, names: Iterable[str], place: str) -> None:
    """One of these texts."""
    known = list(names)
    require(isinstance(value, str) and value in known, place, value, "one of " + ", ".join(known))
