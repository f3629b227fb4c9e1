"""Draw how many partitions had no owner over time, at a fixed width; even the shortest period is visible."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from groupledger.core.length import length, stretch
from groupledger.report.html.canvas import BLACK, days, picture, time_axis

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from groupledger.answers.unowned_stretches import Stretch
    from groupledger.report.html.canvas import Drawing

COLUMNS = 480


@dataclass(frozen=True, slots=True)
class UnownedCounts:
    """The most partitions without an owner at once, in each of 480 columns of time."""

    counts: tuple[int, ...]
    begin: datetime
    end: datetime

    @property
    def column(self) -> timedelta:
        """Return how long a column is."""
        return (self.end - self.begin) / COLUMNS


def unowned_counts(stretches: Iterable[Stretch], begin: datetime, end: datetime) -> UnownedCounts:
    """Count them. What ends where a column begins is not in that column; what is still so goes on to the end."""
    changes: Counter[datetime] = Counter()
    for each in stretches:
        changes[max(each.since, begin)] += 1
        changes[end if each.open_ended else min(each.until, end)] -= 1
    counts, width, now = [0] * COLUMNS, (end - begin) / COLUMNS, 0
    for since, until in pairwise(sorted(changes)):
        now += changes[since]
        first, last = int((since - begin) / width), -int(-((until - begin) / width) // 1)
        for column in range(first, min(COLUMNS, max(last, first + 1))):
            counts[column] = max(counts[column], now)
    return UnownedCounts(tuple(counts), begin, end)


def unowned_picture(of: UnownedCounts) -> Drawing:
    """Draw time across and partitions without an owner up."""

    def draw(figure: Figure) -> None:
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        axes = figure.subplots()
        begin, end = days(of.begin), days(of.end)
        edges = [begin + (end - begin) * column / COLUMNS for column in range(COLUMNS + 1)]
        axes.stairs(of.counts, edges, fill=True, color=BLACK)
        axes.set_ylim(0, 1.15 * max(1, *of.counts))
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.set_ylabel("partitions")
        time_axis(axes, of.begin, of.end)

    caption = f"A column is {length(of.column)} and shows the most that nobody had at once in it."
    return picture(draw, 1.9, _alt(of.counts, of), caption)


def _alt(counts: Sequence[int], of: UnownedCounts) -> str:
    some = sum(count > 0 for count in counts)
    return (
        f"How many partitions nobody had, {stretch(of.begin, of.end)} UTC: most at once {max(counts):,}, at the end "
        f"{counts[-1]:,}; some in {some / COLUMNS:.0%} of the time."
    )
