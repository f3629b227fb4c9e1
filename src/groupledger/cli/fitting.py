"""Which columns of a table a terminal has room for."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass

GAP = 2
"""Blanks between two columns."""
WIDE = 10
"""Columns of this rank or a greater one are for those who ask for all."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: `rank` 0 is never left out, of the others the greatest goes first; WIDE ones are not there unasked.

    `least`: the width down to which its cells may be broken into lines; None, for what is to stay in one piece.
    """

    name: str
    rank: int = 0
    least: int | None = None


def fitting(columns: Sequence[Column], widths: Sequence[int], room: int, *, breaking: bool = True) -> list[int]:
    """The places of the columns that fit, in order; without `breaking`, cells need all their width."""
    needed = [
        width if column.least is None or not breaking else min(width, max(column.least, len(column.name)))
        for column, width in zip(columns, widths, strict=True)
    ]
    chosen = list(range(len(columns)))
    while sum(needed[at] + GAP for at in chosen) - GAP > room:
        droppable = [at for at in chosen if columns[at].rank]
        if not droppable:
            break
        chosen.remove(max(droppable, key=lambda at: (columns[at].rank, at)))
    return chosen


def worth_telling(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, wide: bool) -> list[int]:
    """The places of the columns in which something stands, without those that nobody asked for; `wide`: of all."""
    return [
        at
        for at, column in enumerate(columns)
        if wide or (column.rank < WIDE and any(row[at] is not None for row in rows))
    ]


def room() -> int | None:
    """The width of the terminal, or what COLUMNS says; None where the output goes to a file or a program."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None
