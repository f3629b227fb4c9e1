"""Draw matplotlib's plots for pages, as SVG that is identical for identical facts, with a text alternative."""

from __future__ import annotations

import base64
import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from groupledger.core.cells import cell
from groupledger.core.moment import EPOCH

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 10.0
"""Inches of every picture."""
BLUE, ORANGE, GREEN, GREY, BLACK = "#0072b2", "#e69f00", "#009e73", "#c4c4c4", "#000000"
COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""Told apart by the colour-blind (Okabe and Ito); black is kept for what nobody has, grey for all others."""
LONGEST_NAME = 40
STYLE = {
    "svg.fonttype": "none",  # letters stay letters: the reader's fonts have the scripts that ours lack
    "svg.hashsalt": "groupledger",
    "text.parse_math": False,
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.6,
}
NO_METADATA = {"Date": None, "Creator": None}


@dataclass(frozen=True, slots=True)
class Drawing:
    """An SVG, its text alternative, and what a reader has to know to read it."""

    svg: bytes
    alt: str
    caption: str

    @property
    def source(self) -> str:
        """Return the `src` of an image: it embeds the plot, and nothing in it is executed."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode("ascii")


def picture(draw: Callable[[Figure], None], height: float, alt: str, caption: str = "") -> Drawing:
    """Draw with `draw` on a figure of this many inches, independent of the machine's matplotlib settings."""
    from matplotlib import style
    from matplotlib.figure import Figure

    written = io.BytesIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)  # the reader's fonts have it
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure)
        figure.savefig(written, format="svg", metadata=NO_METADATA)
    return Drawing(written.getvalue(), alt, caption)


def label(name: str) -> str:
    """Shorten a name to fit a plot: the middle of a long one is left out."""
    text = cell(name)
    half = LONGEST_NAME // 2
    return text if len(text) <= LONGEST_NAME else f"{text[: half - 1]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def days(at: datetime) -> float:
    """Convert a time to matplotlib's days."""
    return (at - EPOCH) / timedelta(days=1)


def time_axis(axes: Axes, begin: datetime, end: datetime) -> None:
    """Set up a time axis in UTC, with the date shown once."""
    from matplotlib import dates

    axes.set_xlim(days(begin), days(end))
    locator = dates.AutoDateLocator(minticks=4, maxticks=9)  # type: ignore[no-untyped-call]  # matplotlib.dates has none
    formatter = dates.ConciseDateFormatter(  # type: ignore[no-untyped-call]
        locator,
        formats=["%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M", "%H:%M:%S.%f"],
        zero_formats=["", "%Y", "%Y-%m", "%m-%d", "%H:%M", "%H:%M"],
        offset_formats=["", "%Y", "%Y-%m", "%Y-%m-%d UTC", "%Y-%m-%d UTC", "%Y-%m-%d UTC"],
    )
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(formatter)


def whole_numbers(axes: Axes, least: float, most: float) -> None:
    """Set up an axis of counts that begins near the smallest, with few ticks."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    room = max(1.0, 0.15 * (most - least))
    axes.set_ylim(max(0.0, least - room), most + room)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
