"""Choose which columns of a table fit into a terminal."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

GAP = 2
"""Blanks between two columns."""
WIDE = 10
"""Columns of this rank or above are shown only on request."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column: rank 0 is never dropped, among the others the highest goes first; WIDE ones need a request.

    `least`: the width down to which its cells may be wrapped; None if they must stay in one piece.
    """

    name: str
    rank: int = 0
    least: int | None = None


def fitting(columns: Sequence[Column], widths: Sequence[int], room: int, *, breaking: bool = True) -> list[int]:
    """Return the indices of the columns that fit, in order; without `breaking`, cells need their full width.

    A dropped column comes back, the most important first, if it fits after all with nothing wrapped.
    """
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
    for back in sorted(set(range(len(columns))) - set(chosen), key=lambda at: (columns[at].rank, at)):
        if sum(widths[at] + GAP for at in (*chosen, back)) - GAP <= room:
            chosen.append(back)
    return sorted(chosen)


def worth_telling(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, wide: bool) -> list[int]:
    """Return the indices of non-empty columns, without those shown only on request; `wide`: of all columns."""
    return [
        at
        for at, column in enumerate(columns)
        if wide or (column.rank < WIDE and any(row[at] is not None for row in rows))
    ]


NARROW = (14, 8)
"""Up to this width a column of a table stays in one piece; cells of a wider one may be wrapped down to it. If there is
still no room, the second number applies."""


def shared_widths(widths: Sequence[int], least: Sequence[int | None], room: int) -> list[int] | None:
    """Return each column's width if they fit into `room` together; None if they do not fit even so.

    `least`: the width down to which cells may be wrapped; None: not at all. Remaining room goes to the narrow columns
    first, in equal shares.
    """
    given = [width if low is None else min(width, low) for width, low in zip(widths, least, strict=True)]
    left = room - GAP * (len(widths) - 1) - sum(given)
    if left < 0:
        return None
    growing = sorted((at for at, low in enumerate(least) if low is not None), key=lambda at: (widths[at], at))
    for number, at in enumerate(growing):
        more = min(widths[at] - given[at], left // (len(growing) - number))
        given[at] += more
        left -= more
    return given


def table_widths(widths: Sequence[int], numbers: Sequence[bool], room: int) -> list[int] | None:
    """Return the widths of a table's columns if all are shown, numbers in one piece."""
    for narrow in NARROW:
        least = [None if number or width <= narrow else narrow for width, number in zip(widths, numbers, strict=True)]
        if (shared := shared_widths(widths, least, room)) is not None:
            return shared
    return None


def cell_lines(text: str, width: int) -> list[str]:
    """Wrap a cell to the width: at a blank, else after one of `,-/`, and otherwise anywhere."""
    lines = []
    while len(text) > width:
        blank, joint = text.rfind(" ", 0, width + 1), max(text.rfind(sign, 0, width) + 1 for sign in ",-/")
        cut = blank if blank > 0 else joint or width
        lines.append(text[:cut].rstrip(" "))
        text = text[cut:].lstrip(" ")
    return [*lines, text]


_LABEL = re.compile(r" *(?:- |\[ \] |[^ ]+(?: [^ ]+){0,2}:? {2,})?")
"""The indent of continuation lines: the text after `- ` or `[ ] `, or after a label and its blanks."""
_LEAST = 20
"""Characters that must remain after a label."""


def in_lines(text: str, width: int) -> list[str]:
    """Wrap text to the width, between words; a longer word stays in one piece, so that it can be copied."""
    if len(text) <= width:
        return [text]
    label = _LABEL.match(text)
    indent = 0 if label is None or width - label.end() < _LEAST else label.end()
    found = textwrap.wrap(
        text[indent:],
        width - indent,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [text[:indent] + found[0], *(" " * indent + line for line in found[1:])]


def room() -> int | None:
    """Return the terminal's width, or COLUMNS; None if the output goes to a file or a program."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None
