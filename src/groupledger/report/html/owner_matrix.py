"""Build a matrix of owners of bounded size: one row per partition, one column per stretch of time."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.core.short_names import shortened

if TYPE_CHECKING:
    from groupledger.answers.group_owners import PartitionOwners
    from groupledger.answers.topic_partitions import NamedPartition

COLUMNS = 480
UNKNOWN, NOBODY, SEVERAL, OTHERS = -1, -2, -3, -4
"""Codes of a cell that is of no named member; of those, the number of the member."""
SIDE_BY_SIDE = 1.25
"""Time of owners in a column, as columns, from which on several had the partition at once."""


@dataclass(frozen=True, slots=True)
class OwnerMatrix:
    """`members` are named, those with most partition time first; `others` share one code."""

    places: tuple[NamedPartition, ...]
    members: tuple[str, ...]
    others: int
    cells: tuple[tuple[int, ...], ...]
    begin: datetime
    end: datetime

    @property
    def column(self) -> timedelta:
        """Return how long a column is."""
        return (self.end - self.begin) / COLUMNS

    def runs(self, row: int) -> Iterator[tuple[int, int, int]]:
        """Yield the first column, the number of columns, and the code of each stretch of one code."""
        start = 0
        for code, some in groupby(self.cells[row]):
            number = len(list(some))
            yield start, number, code
            start += number


def owner_matrix(
    owners: Sequence[PartitionOwners], names: Mapping[str, str], begin: datetime, end: datetime, named: int
) -> OwnerMatrix:
    """Find each partition's owner for most of each column; members go by their instance id, if they have one."""
    shares = [_shares(of, names, begin, end) for of in owners]
    totals = Counter[str]()
    for row in shares:
        for column in row.values():
            totals.update({name: share for name, share in column.items() if name is not None})
    members = sorted(totals, key=lambda name: (-round(totals[name], 6), name))
    codes = {name: number for number, name in enumerate(members[:named])}
    cells = tuple(tuple(_code(row.get(column, {}), codes) for column in range(COLUMNS)) for row in shares)
    short = shortened(members)
    places = tuple(of.place for of in owners)
    shown = tuple(short[name] for name in members[:named])
    return OwnerMatrix(places, shown, len(members) - len(shown), cells, begin, end)


def _shares(
    of: PartitionOwners, names: Mapping[str, str], begin: datetime, end: datetime
) -> dict[int, dict[str | None, float]]:
    """Return, by column, the part of it that each owner had."""
    found: dict[int, dict[str | None, float]] = defaultdict(dict)
    width = (end - begin) / COLUMNS
    for span in of.spans:
        since, until = max(span.since or begin, begin), min(span.until or end, end)
        owner = None if span.member_id is None else names.get(span.member_id, span.member_id)
        first, last = (since - begin) / width, (until - begin) / width
        for column in range(int(first), min(COLUMNS, int(last) + 1)):
            share = min(last, column + 1) - max(first, column)
            if share > 0:
                found[column][owner] = found[column].get(owner, 0.0) + share
    return found


def _code(shares: Mapping[str | None, float], codes: Mapping[str, int]) -> int:
    if not shares:
        return UNKNOWN
    if sum(share for name, share in shares.items() if name is not None) >= SIDE_BY_SIDE:
        return SEVERAL
    owner = max(shares, key=lambda name: (shares[name], name is None, name or ""))
    return NOBODY if owner is None else codes.get(owner, OTHERS)
