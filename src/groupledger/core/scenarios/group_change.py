"""Change a group's members and partitions: the rules that `what-if` of one group and the grid of all share."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TypeVar

from groupledger.core.faults import Fault
from groupledger.core.log.topic_partitions import MOST

T = TypeVar("T")

NEW = "new-"
"""What the ids of members that join begin with."""
MORE_PARTITIONS = r"x[1-9]\d{0,3}|\+[1-9]\d{0,5}"
"""A change of a topic's partitions: `x2` twice as many (to x9999), `+3` three more (to +999999)."""


def new_ids(number: int, taken: Collection[str]) -> list[str]:
    """Return `new-1`, `new-2`, ...; where a member of the group has such an id, with hyphens behind it."""
    found: list[str] = []
    for at in range(1, number + 1):
        name = f"{NEW}{at}"
        while name in taken:
            name += "-"
        found.append(name)
    return found


def in_turn(members: Sequence[T], number: int) -> list[T]:
    """Return whom each of so many new members is like: one of the group's in turn, in the order of the record."""
    return [members[at % len(members)] for at in range(number)]


def count_after(change: str, count: int) -> int:
    """Return the partitions of a topic that had `count`, after a change of the form MORE_PARTITIONS."""
    if re.fullmatch(MORE_PARTITIONS, change) is None:
        message = f"partitions change by +3 (three more) or x2 (twice as many); got {change!r}"
        raise Fault("BAD_PARTITIONS", message)
    number = int(change[1:])
    return min(count * number if change[0] == "x" else count + number, MOST)
