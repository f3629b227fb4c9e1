"""Draw matplotlib's plots for pages, as SVG that is identical for identical facts, with a text alternative."""

from __future__ import annotations

import base64
import io
import itertools
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind
from groupledger.answers.group_owners import UNITS, Counted
from groupledger.answers.queries import CLASSIC
from groupledger.answers.spoken import numbered
from groupledger.core.moments import EPOCH
from groupledger.core.text import cell, length, shortened, stretch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

    from groupledger.answers.skew import Skew
    from groupledger.answers.timeline import TimelineEntry
    from groupledger.answers.unowned import Stretch
    from groupledger.core.protocol.comparison import ConsumedSpan


WIDTH = 10.0
"""Inches of every picture."""
PIXELS_AN_INCH = 96
BLUE, ORANGE, GREEN, GREY, BLACK = "#0072b2", "#e69f00", "#009e73", "#c4c4c4", "#000000"
COLOURS = (BLUE, ORANGE, GREEN, "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
"""The colour-blind can distinguish them (Okabe and Ito); black is kept for what nobody has, grey for all others."""
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
    most_px: int = 1_040
    """The greatest width at which it is shown: the text of a narrow plot is not enlarged with it."""

    @property
    def source(self) -> str:
        """Return the `src` of an image: it embeds the plot, and nothing in it is executed."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg).decode("ascii")


def picture(draw: Callable[[Figure], None], height: float, alt: str, caption: str = "") -> Drawing:
    """Draw with `draw` on a figure of this many inches, independent of the machine's matplotlib settings."""

    def made() -> Figure:
        from matplotlib.figure import Figure

        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure)
        return figure

    return drawing(made, alt, caption)


def drawing(made: Callable[[], Figure], alt: str, caption: str = "") -> Drawing:
    """Return the figure that `made` makes, likewise."""
    from matplotlib import style

    written = io.BytesIO()
    with style.context(["default", STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+", UserWarning)  # the reader's fonts have it
        figure = made()
        figure.savefig(written, format="svg", metadata=NO_METADATA)
    return Drawing(written.getvalue(), alt, caption, round(figure.get_figwidth() * PIXELS_AN_INCH))


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
    room = max(1.0, 0.15 * (most - least))
    axes.set_ylim(max(0.0, least - room), most + room)
    _counts(axes, 4)


def few_ticks(axis: Axis, most: int) -> None:
    """Set up so many ticks at most, at whole numbers."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=most, integer=True))


def _counts(axes: Axes, ticks: int) -> None:
    few_ticks(axes.yaxis, ticks)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")


# Draw counts by name and time as a heat map: one row each, time across.

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
    """Count the rows with most, these first or `in_order` of their names; None if there is nothing to count.

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
        bar.set_label(f"{what} in {_duration(of.width)}")

    return picture(draw, max(LOWEST, 1.1 + 0.24 * len(labels)), _alt(of, labels, what), _caption(of, what))


def _round_numbers(greatest: int) -> Iterator[int]:
    """Return 1, 2, 5, 10, 20, ... up to the greatest."""
    for power in itertools.count():
        for digit in (1, 2, 5):
            if digit * 10**power > greatest:
                return
            yield digit * 10**power


def _duration(width: timedelta) -> str:
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
    return f"A column is {_duration(of.width)}; white: none; {dark}. A row with none is not here.{left}"


# Draw the load of a group's members at the end: one bar per member, or how many members have how many.

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
    alt = (
        f"Load of {of.members:,} members: most {of.most:,} partitions, median {sorted(loads)[len(loads) // 2]:,}, "
        f"least {of.least:,}; {of.idle:,} have none."
    )
    return picture(draw, 0.9 + 0.21 * len(loads) if few else 3.0, alt, caption)


def _bars(axes: Axes, names: Sequence[str], loads: Sequence[int]) -> None:
    bars = axes.barh(range(len(loads)), loads, color=BLUE)
    axes.bar_label(bars, [f"{load:,}" for load in loads], padding=3, fontsize=8)
    axes.set_yticks(range(len(loads)), names)
    axes.invert_yaxis()
    axes.tick_params(axis="y", length=0)
    axes.set_xlim(0, max(1, max(loads)) * 1.08)
    few_ticks(axes.xaxis, 8)
    axes.set_xlabel("partitions")


def _histogram(axes: Axes, loads: Sequence[int]) -> None:
    least, most = min(loads), max(loads)
    width = math.ceil((most - least + 1) / MOST_BINS)
    starts = range(least, most + 1, width)
    counts = [sum(start <= load < start + width for load in loads) for start in starts]
    words = [f"{start:,}" if width == 1 else f"{start:,}-{start + width - 1:,}" for start in starts]
    bars = axes.bar(range(len(counts)), counts, 0.85, color=BLUE)
    axes.bar_label(bars, [f"{count:,}" if count else "" for count in counts], padding=2, fontsize=7)
    axes.set_xticks(range(len(counts)), words, rotation=45 if width > 1 else 0, ha="right" if width > 1 else "center")
    axes.set_xlim(-0.7, max(len(counts), 8) - 0.3)
    _counts(axes, 5)
    axes.margins(y=0.15)
    axes.set_xlabel("partitions of a member")
    axes.set_ylabel("members")


# Draw what each rebalance moved, with its causes below.

CUT = 5
"""The tallest bar is cut where it is over so many times the next one: as that of a group's first state often is."""
ROOM = 1.15
"""The height of the axis, as bars of the greatest."""
KINDS = (("from member to member", BLUE, ""), ("from nobody to a member", GREEN, "//"), ("to nobody", ORANGE, "xx"))
GREYS = ("#222222", "#777777", "#bbbbbb")
"""Of the same kinds where colours are members."""
MOST_DIGITS, MOST_TICKS = 150, 30


Moves = tuple[int, int, int]
"""Partitions that went from member to member, from nobody to a member, and to nobody."""


def moves_of(entries: Sequence[TimelineEntry]) -> list[Moves]:
    """Count what each rebalance moved; a hand-over of two steps (KIP-429) is one move, in the second of them."""
    counted = [[0, 0, 0] for _ in entries]
    given_up: dict[tuple[str, int], tuple[int, str | None]] = {}
    for at, entry in enumerate(entries):
        for each in entry.moved:
            place = each.topic, each.partition
            earlier, whose = given_up.pop(place, (at, None))
            if each.to_member_id is None:
                given_up[place] = at, each.from_member_id
                counted[at][2] += 1
            elif each.from_member_id is not None:
                counted[at][0] += 1
            elif whose is None or whose == each.to_member_id:
                counted[at][1] += 1
            else:
                counted[earlier][2] -= 1
                counted[at][0] += 1
    return [(between, given, lost) for between, given, lost in counted]


def moves_picture(entries: Sequence[TimelineEntry]) -> Drawing:
    """Draw one bar per rebalance, and a dot for each kind of cause that it had."""
    moves = moves_of(entries)
    kinds = Counter(kind for entry in entries for kind in {cause.kind.value for cause in entry.causes})
    order = sorted(kinds, key=lambda kind: (-kinds[kind], kind))

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 0.3 + 0.26 * len(order)])
        _bars_of_moves(upper, moves)
        for row, kind in enumerate(order):
            at = [x for x, entry in enumerate(entries) if any(cause.kind.value == kind for cause in entry.causes)]
            lower.scatter(at, [row] * len(at), s=22, color="black")
        lower.set_yticks(range(len(order)), [f"{kind} ({kinds[kind]:,})" for kind in order])
        lower.set_ylim(len(order) - 0.5, -0.5)
        lower.grid(visible=True, axis="y", color="#e0e0e0", linewidth=0.5)
        lower.set_axisbelow(True)
        step = -(-len(entries) // MOST_TICKS)
        shown = range(0, len(entries), step)
        lower.set_xticks(shown, ["-" if (number := entries[x].generation) is None else str(number) for x in shown])
        counted = "generation" if entries[-1].group_type == CLASSIC else "group epoch"
        lower.set_xlabel(counted)
        lower.set_xlim(-0.7, len(entries) - 0.3)

    unknown = " not-shown: nothing that the log holds differs." if CauseKind.NOT_SHOWN in kinds else ""
    totals = [sum(each) for each in moves]
    cut = " The tallest bar is cut; the number says how tall it is." if max(totals) > top_of(totals) else ""
    caption = f"A dot: the rebalance had this cause.{unknown}{cut}"
    return picture(draw, 3.2 + 0.26 * len(order), _alt_of_moves(entries, moves, kinds), caption)


def top_of(totals: Sequence[int]) -> int:
    """Return where the axis ends: at the greatest value, unless it is cut."""
    second, greatest = sorted([0, 0, *totals])[-2:]
    return max(1, second if 0 < CUT * second < greatest else greatest)


def moves_in_time(axes: Axes, entries: Sequence[TimelineEntry], width: float) -> None:
    """Draw the moves of each rebalance at the time when it began; `width` in days."""
    at = [days(entry.began_at) for entry in entries]
    floor = [0] * len(entries)
    moves = moves_of(entries)
    for column, (words, colour) in enumerate(zip((kind for kind, *_ in KINDS), GREYS, strict=True)):
        heights = [each[column] for each in moves]
        axes.bar(at, heights, width, floor, label=words, color=colour, align="edge")
        floor = [low + height for low, height in zip(floor, heights, strict=True)]
    axes.set_ylim(0, ROOM * top_of(floor))
    axes.set_ylabel("moved")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, fontsize=8, frameon=False)


def _bars_of_moves(axes: Axes, moves: Sequence[Moves]) -> None:
    floor = [0] * len(moves)
    for column, (words, colour, hatch) in enumerate(KINDS):
        heights = [each[column] for each in moves]
        axes.bar(
            range(len(moves)), heights, 0.75, floor, label=words, color=colour, hatch=hatch, edgecolor="white"
        )  # fmt: skip
        floor = [low + height for low, height in zip(floor, heights, strict=True)]
    most = top_of(floor)
    if sum(len(f"{total:,}") for total in floor if total) <= MOST_DIGITS:
        for x, total in enumerate(floor):
            if total:
                place = x, total if total <= most else ROOM * most
                axes.annotate(f"{total:,}", place, (0, 2), textcoords="offset points", ha="center", fontsize=7)
    axes.set_ylim(0, ROOM * most)
    _counts(axes, 5)
    axes.set_ylabel("partitions")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, fontsize=8, frameon=False)
    axes.tick_params(axis="x", length=0)


def _alt_of_moves(entries: Sequence[TimelineEntry], moves: Sequence[Moves], kinds: Counter[str]) -> str:
    worst = max(range(len(entries)), key=lambda x: sum(moves[x]))
    between, given, lost = (sum(each[column] for each in moves) for column in range(3))
    why = ", ".join(
        f"{kind} in {number:,}" for kind, number in sorted(kinds.items(), key=lambda pair: (-pair[1], pair))
    )
    return (
        f"Partitions moved by each of {len(entries):,} rebalances: {between:,} from member to member, {given:,} from "
        f"nobody to a member, {lost:,} to nobody; most, {sum(moves[worst]):,}, by generation "
        f"{entries[worst].generation}. Causes: {why}."
    )


# Draw how many partitions had no owner over time, at a fixed width; even the shortest period is visible.

COLUMNS = 480


def unowned_counts(stretches: Iterable[Stretch], begin: datetime, end: datetime) -> list[int]:
    """Count the most at once in each column.

    What ends where a column begins is not in that column; what still lasts continues to the end.
    """
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
    return counts


def unowned_picture(stretches: Iterable[Stretch], begin: datetime, end: datetime) -> Drawing:
    """Draw time across and partitions without an owner up."""
    counts = unowned_counts(stretches, begin, end)

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        first, last = days(begin), days(end)
        edges = [first + (last - first) * column / COLUMNS for column in range(COLUMNS + 1)]
        axes.stairs(counts, edges, fill=True, color=BLACK)
        axes.set_ylim(0, 1.15 * max(1, *counts))
        _counts(axes, 4)
        axes.set_ylabel("partitions")
        time_axis(axes, begin, end)

    caption = f"A column is {length((end - begin) / COLUMNS)} and shows the most that nobody had at once in it."
    some = sum(count > 0 for count in counts)
    alt = (
        f"How many partitions nobody had, {stretch(begin, end)} UTC: most at once {max(counts):,}, at the end "
        f"{counts[-1]:,}; some in {some / COLUMNS:.0%} of the time."
    )
    return picture(draw, 1.9, alt, caption)


# Draw who consumed each partition of a simulated group when, and how many partitions had no owner.

MOST_PARTITIONS = 48
"""Rows of a picture; with more of them, only their number is drawn."""
SECOND_MS = 1_000
TICK = 1.2
"""Points: how wide the mark is of a member that had a partition within one millisecond."""
FromTo = tuple[int, int]


def consumption_picture(spans: Sequence[ConsumedSpan], begin_ms: int, end_ms: int, most_missed: int) -> Drawing:
    """Above, how many partitions nobody had, on an axis up to `most_missed`; below, a row a partition.

    A partition counts from when somebody first had it. Times are seconds of the script.
    """
    by_row = _within(spans, begin_ms, end_ms)
    missed = missed_partitions(spans, begin_ms, end_ms)
    rows = sorted(by_row) if len(by_row) <= MOST_PARTITIONS else []
    colours = _colours(by_row)

    def draw(figure: Figure) -> None:
        ratios = [1.0, max(0.2 * len(rows), 0.6)] if rows else [1.0]
        axes = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
        _draw_missed(axes[0], missed, end_ms, most_missed)
        if rows:
            _draw_owners(axes[1], {row: by_row[row] for row in rows}, colours, end_ms)
            _explain(figure, colours)
        axes[-1].set_xlim(begin_ms / SECOND_MS, end_ms / SECOND_MS)
        axes[-1].set_xlabel("seconds of the script")

    return picture(
        draw, 1.9 + 0.21 * len(rows), _alt_of_consumption(missed, end_ms), _caption_of_consumption(len(by_row), colours)
    )


def missed_partitions(spans: Sequence[ConsumedSpan], begin_ms: int, end_ms: int) -> list[tuple[int, int]]:
    """Count over time the partitions without an owner, of those that had one before."""
    changes: Counter[int] = Counter({begin_ms: 0})
    for owned in _covered(spans, end_ms).values():
        for (_, ended_ms), (following_ms, _) in zip(owned, [*owned[1:], (end_ms, end_ms)], strict=True):
            if ended_ms < following_ms and following_ms > begin_ms:
                changes[max(ended_ms, begin_ms)] += 1
                changes[following_ms] -= 1
    times = sorted(each for each in changes if each < end_ms)
    return list(zip(times, accumulate(changes[each] for each in times), strict=True))


def _covered(spans: Sequence[ConsumedSpan], end_ms: int) -> dict[tuple[str, int], list[FromTo]]:
    """Return when each partition had an owner, with times that overlap or meet merged."""
    found: dict[tuple[str, int], list[FromTo]] = {}
    for each in sorted(spans, key=lambda span: span.since_ms):
        until_ms = end_ms if each.until_ms is None else each.until_ms
        owned = found.setdefault((each.topic, each.partition), [])
        if owned and owned[-1][1] >= each.since_ms:
            owned[-1] = (owned[-1][0], max(owned[-1][1], until_ms))
        else:
            owned.append((each.since_ms, until_ms))
    return found


def _within(
    spans: Sequence[ConsumedSpan], begin_ms: int, end_ms: int
) -> dict[tuple[str, int], list[tuple[str, int, int]]]:
    """Return (member, from, to) of each partition, clipped to the plot; what began and ended at once is kept."""
    found: dict[tuple[str, int], list[tuple[str, int, int]]] = {}
    for each in spans:
        first_ms, last_ms = max(each.since_ms, begin_ms), end_ms if each.until_ms is None else each.until_ms
        if first_ms < last_ms or first_ms == each.since_ms == last_ms:
            found.setdefault((each.topic, each.partition), []).append((each.member, first_ms, last_ms))
    return found


def _colours(by_row: dict[tuple[str, int], list[tuple[str, int, int]]]) -> dict[str, str]:
    """Give a colour to each of the members with the most; the others share a grey."""
    had: Counter[str] = Counter()
    for name, first_ms, last_ms in (each for some in by_row.values() for each in some):
        had[name] += last_ms - first_ms
    chosen = sorted(had, key=lambda name: (-had[name], name))[: len(COLOURS)]
    return dict(zip(sorted(chosen), COLOURS, strict=False)) | dict.fromkeys(sorted(set(had) - set(chosen)), GREY)


def _draw_missed(axes: Axes, missed: Sequence[tuple[int, int]], end_ms: int, most: int) -> None:
    times = [at_ms / SECOND_MS for at_ms, _ in missed] + [end_ms / SECOND_MS]
    counts = [count for _, count in missed]
    axes.fill_between(times, [0] * len(times), [*counts, counts[-1]], step="post", color=BLACK, linewidth=0)
    axes.set_title("partitions that nobody has")
    whole_numbers(axes, 0, max(most, 1))
    axes.set_ylim(0, max(most, 1) * 1.05)


def _draw_owners(
    axes: Axes, by_row: dict[tuple[str, int], list[tuple[str, int, int]]], colours: dict[str, str], end_ms: int
) -> None:
    """Draw the owners; black where a partition has no owner but had one before; a tick for who had it for no time."""
    for row, spans in enumerate(by_row.values()):
        first_ms = min(first for _, first, _ in spans)
        axes.broken_barh([(first_ms / SECOND_MS, (end_ms - first_ms) / SECOND_MS)], (row, 0.9), facecolors=BLACK)
        bars = [(first / SECOND_MS, (last - first) / SECOND_MS) for _, first, last in spans]
        axes.broken_barh(bars, (row, 0.9), facecolors=[colours[name] for name, _, _ in spans])
        for name, first, last in spans:
            if first == last:
                axes.vlines(first / SECOND_MS, row, row + 0.9, colors=colours[name], linewidth=TICK)
    axes.set_yticks([row + 0.45 for row in range(len(by_row))], [label(f"{topic}-{at}") for topic, at in by_row])
    axes.set_ylim(len(by_row), 0)
    axes.tick_params(axis="y", length=0)


def _explain(figure: Figure, colours: dict[str, str]) -> None:
    from matplotlib.patches import Patch

    named = [(label(name), colour) for name, colour in colours.items() if colour != GREY]
    others = [("other members", GREY)] if GREY in colours.values() else []
    patches = [Patch(facecolor=colour, label=name) for name, colour in (*named, *others, ("nobody", BLACK))]
    figure.legend(handles=patches, loc="outside lower left", ncols=5, fontsize=8, frameon=False)


def _alt_of_consumption(missed: Sequence[tuple[int, int]], end_ms: int) -> str:
    most = max(count for _, count in missed)
    ends = [*(at_ms for at_ms, _ in missed[1:]), end_ms]
    waited = sum(count * (until_ms - at_ms) for (at_ms, count), until_ms in zip(missed, ends, strict=True))
    return f"At most {numbered(most, 'partition')} without a member at a time, {waited:,} partition-ms in all."


def _caption_of_consumption(partitions: int, colours: dict[str, str]) -> str:
    if partitions > MOST_PARTITIONS:
        return f"{partitions:,} partitions are too many for a row each."
    others = sum(colour == GREY for colour in colours.values())
    return f"{numbered(others, 'member')} with less share one grey." if others else ""
