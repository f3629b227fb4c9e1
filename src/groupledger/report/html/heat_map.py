"""Draw how often something happened to whom and when, as a heat map: one row each, time across."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from groupledger.answers.over_time import UNITS
from groupledger.core.length import length, stretch
from groupledger.report.html.canvas import days, label, picture, time_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from groupledger.answers.over_time import Counted
    from groupledger.report.html.canvas import Drawing

MOST_ROWS, MOST_COLUMNS = 30, 72
LOWEST = 2.1
"""Inches: the words beside the scale have room."""
LARGE = 20
"""From this many on in a cell, colours go by the logarithm."""

_NUMBERS = re.compile(r"([0-9]+)")


@dataclass(frozen=True, slots=True)
class Heat:
    """Counts by row and stretch of time; `left_off` counts the rows that had less and are not here."""

    rows: tuple[tuple[str, ...], ...]
    counts: tuple[tuple[int, ...], ...]
    begin: datetime
    width: timedelta
    left_off: int

    @property
    def end(self) -> datetime:
        """Return where the last column ends."""
        return self.begin + len(self.counts[0]) * self.width

    @property
    def greatest(self) -> int:
        """The count of the fullest cell."""
        return max(max(row) for row in self.counts)


def heat(counted: Sequence[Counted], unit: str, most_rows: int = MOST_ROWS, *, in_order: bool = False) -> Heat | None:
    """Count the rows with most, these first or `in_order` of their names; None if nothing happened.

    The columns are as many units wide as keeps them few.
    """
    if not counted:
        return None
    begin, last = min(each.at for each in counted), max(each.at for each in counted)
    one = dict(UNITS)[unit]
    width = one * math.ceil(((last - begin) / one + 1) / MOST_COLUMNS)
    columns = (last - begin) // width + 1
    totals, cells = Counter[tuple[str, ...]](), Counter[tuple[tuple[str, ...], int]]()
    for each in counted:
        totals[each.what] += each.times
        cells[each.what, (each.at - begin) // width] += each.times
    rows = sorted(totals, key=lambda what: (-totals[what], _natural(what)))
    shown = tuple(sorted(rows[:most_rows], key=_natural) if in_order else rows[:most_rows])
    counts = tuple(tuple(cells[what, column] for column in range(columns)) for what in shown)
    return Heat(shown, counts, begin, width, len(rows) - len(shown))


def _natural(what: Sequence[str]) -> list[list[str | int]]:
    """Return a sort key in which 9 comes before 10."""
    return [[int(part) if place % 2 else part for place, part in enumerate(_NUMBERS.split(each))] for each in what]


def heat_picture(of: Heat, names: Iterable[str], what: str) -> Drawing:
    """Draw the map; `names` label the rows, `what` names what is counted, such as `rebalances`."""
    labels = [label(name) for name in names]

    def draw(figure: Figure) -> None:
        from matplotlib.colors import LogNorm, Normalize

        axes = figure.subplots()
        greatest = of.greatest
        image = axes.imshow(
            [[count or math.nan for count in row] for row in of.counts],
            aspect="auto",
            interpolation="none",
            cmap="viridis_r",
            norm=LogNorm(1, greatest) if greatest >= LARGE else Normalize(0, greatest),
            extent=(days(of.begin), days(of.end), len(labels), 0),
        )
        axes.set_yticks([row + 0.5 for row in range(len(labels))], labels)
        axes.tick_params(axis="y", length=0)
        axes.set_yticks(range(len(labels)), minor=True)
        axes.grid(visible=True, axis="y", which="minor", color="#e0e0e0", linewidth=0.5)
        axes.tick_params(which="minor", length=0)
        time_axis(axes, of.begin, of.end)
        if greatest == 1:  # a scale of colours would say that there are several numbers
            return
        bar = figure.colorbar(image, ax=axes, pad=0.01, aspect=max(6, 2 * len(labels)))
        ticks = list(_round_numbers(greatest))
        bar.set_ticks(ticks, labels=[f"{tick:,}" for tick in ticks])
        bar.minorticks_off()
        bar.set_label(f"{what} in {_told(of.width)}")

    return picture(draw, max(LOWEST, 1.1 + 0.24 * len(labels)), _alt(of, labels, what), _caption(of, what))


def _round_numbers(greatest: int) -> Iterator[int]:
    """Return 1, 2, 5, 10, 20, ... up to the greatest."""
    for power in itertools.count():
        for digit in (1, 2, 5):
            if digit * 10**power > greatest:
                return
            yield digit * 10**power


def _told(width: timedelta) -> str:
    """Format a duration: `2 min`, `1 h`, `1 s`, without parts that are zero."""
    return re.sub(r"\.000(?= s$)| 0 (?:s|min|h)$", "", length(width))


def _alt(of: Heat, labels: Sequence[str], what: str) -> str:
    totals = [sum(row) for row in of.counts]
    most = ", ".join(f"{name} {total:,}" for name, total in list(zip(labels, totals, strict=True))[:5])
    return (
        f"Heat map of {what} over time, {stretch(of.begin, of.end)} UTC, {len(labels)} rows. "
        f"Most: {most}. The darkest cell has {of.greatest:,}."
    )


def _caption(of: Heat, what: str) -> str:
    left = f" {of.left_off:,} more rows with fewer are left off." if of.left_off else ""
    dark = f"the darker, the more {what}" if of.greatest > 1 else f"dark: one of the {what}"
    return f"A column is {_told(of.width)}; white: none; {dark}. A row with none is not here.{left}"
