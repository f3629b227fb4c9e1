"""Draw the load of a group's members at the end: one bar per member, or how many members have how many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupledger.core.short_names import shortened
from groupledger.report.html.canvas import BLUE, label, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.skew import Skew
    from groupledger.report.html.canvas import Drawing

MOST_BARS = 40
MOST_BINS = 30


def load_picture(of: Skew) -> Drawing:
    """Draw one bar per member, the heaviest first; for many members, how many have how many partitions."""
    loads = [len(load.partitions) for load in of.loads]
    mean = sum(loads) / len(loads)
    few = len(loads) <= MOST_BARS

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        if few:
            short = shortened(load.member_id for load in of.loads)
            _bars(axes, [label(short[load.member_id]) for load in of.loads], loads)
            axes.axvline(mean, color="black", linestyle=":", linewidth=1)
        else:
            _histogram(axes, loads)

    caption = f"Dotted: {mean:.1f} partitions, the mean." if few else f"The mean is {mean:.1f} partitions of a member."
    return picture(draw, 0.9 + 0.21 * len(loads) if few else 3.0, _alt(of, loads), caption)


def _bars(axes: Axes, names: Sequence[str], loads: Sequence[int]) -> None:
    from matplotlib.ticker import MaxNLocator

    bars = axes.barh(range(len(loads)), loads, color=BLUE)
    axes.bar_label(bars, [f"{load:,}" for load in loads], padding=3, fontsize=8)
    axes.set_yticks(range(len(loads)), names)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, max(1, max(loads)) * 1.08)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    axes.set_xlabel("partitions")


def _histogram(axes: Axes, loads: Sequence[int]) -> None:
    from matplotlib.ticker import MaxNLocator

    least, most = min(loads), max(loads)
    width = math.ceil((most - least + 1) / MOST_BINS)
    starts = range(least, most + 1, width)
    counts = [sum(start <= load < start + width for load in loads) for start in starts]
    words = [f"{start:,}" if width == 1 else f"{start:,}-{start + width - 1:,}" for start in starts]
    bars = axes.bar(range(len(counts)), counts, 0.85, color=BLUE)
    axes.bar_label(bars, [f"{count:,}" if count else "" for count in counts], padding=2, fontsize=7)
    axes.set_xticks(range(len(counts)), words, rotation=45 if width > 1 else 0, ha="right" if width > 1 else "center")
    axes.set_xlim(-0.7, max(len(counts), 8) - 0.3)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.margins(y=0.15)
    axes.set_xlabel("partitions of a member")
    axes.set_ylabel("members")


def _alt(of: Skew, loads: Sequence[int]) -> str:
    middle = sorted(loads)[len(loads) // 2]
    return (
        f"Load of {of.members:,} members: most {of.most:,} partitions, median {middle:,}, least {of.least:,}; "
        f"{of.idle:,} have none."
    )
