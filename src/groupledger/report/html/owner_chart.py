"""Draw the ownership timeline: which member had each partition when; for a large group, its size and load over time."""

from __future__ import annotations

import string
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.core.text import length, shortened, stretch
from groupledger.report.html.charts import (
    BLACK,
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    Drawing,
    days,
    label,
    moves_in_time,
    picture,
    time_axis,
    whole_numbers,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.group_owners import Size
    from groupledger.answers.owners import OwnerSpan
    from groupledger.answers.queries import NamedPartition
    from groupledger.answers.timeline import TimelineEntry


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
    owners: Mapping[NamedPartition, Sequence[OwnerSpan]],
    names: Mapping[str, str],
    begin: datetime,
    end: datetime,
    named: int,
) -> OwnerMatrix:
    """Find each partition's owner for most of each column; members go by their instance id, if they have one."""
    shares = [_shares(of, names, begin, end) for of in owners.values()]
    totals = Counter[str]()
    for row in shares:
        for column in row.values():
            totals.update({name: share for name, share in column.items() if name is not None})
    members = sorted(totals, key=lambda name: (-round(totals[name], 6), name))
    codes = {name: number for number, name in enumerate(members[:named])}
    cells = tuple(tuple(_code(row.get(column, {}), codes) for column in range(COLUMNS)) for row in shares)
    short = shortened(members)
    shown = tuple(short[name] for name in members[:named])
    return OwnerMatrix(tuple(owners), shown, len(members) - len(shown), cells, begin, end)


def _shares(
    spans: Sequence[OwnerSpan], names: Mapping[str, str], begin: datetime, end: datetime
) -> dict[int, dict[str | None, float]]:
    """Return, by column, the part of it that each owner had."""
    found: dict[int, dict[str | None, float]] = defaultdict(dict)
    width = (end - begin) / COLUMNS
    for span in spans:
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


WHITE, DARK_RED = "#ffffff", "#8b0000"
FIXED = {UNKNOWN: WHITE, NOBODY: BLACK, SEVERAL: DARK_RED, OTHERS: GREY}
WORDS = {NOBODY: "nobody", SEVERAL: "several at once", OTHERS: "another member", UNKNOWN: "not known"}
LETTERS = string.ascii_uppercase
DARK = {BLUE, BLACK, DARK_RED, GREEN}
LETTER_COLUMNS = 9
"""Columns that a letter needs."""
MOST_LETTERS = 400


def owner_picture(of: OwnerMatrix, entries: Sequence[TimelineEntry] = ()) -> Drawing:
    """Draw one row per partition, a colour and a letter per member; black means no owner.

    Above them, on the same axis of time, what each rebalance moved.
    """
    colours = {**FIXED, **dict(enumerate(COLOURS))}
    seen = Counter(code for row in of.cells for code in row)

    def draw(figure: Figure) -> None:
        from matplotlib.colors import to_rgb

        heights = (1.1, 0.21 * len(of.places) + 0.3)
        upper, axes = (
            figure.subplots(2, 1, sharex=True, height_ratios=heights) if entries else (None, figure.subplots())
        )
        begin, end = days(of.begin), days(of.end)
        if upper is not None:
            moves_in_time(upper, entries, 2 * (end - begin) / COLUMNS)
        axes.imshow(
            [[to_rgb(colours[code]) for code in row] for row in of.cells],
            aspect="auto",
            interpolation="none",
            extent=(begin, end, len(of.places), 0),
        )
        axes.set_yticks(
            [row + 0.5 for row in range(len(of.places))],
            [label(f"{topic}-{number}") for topic, number in of.places],
        )
        axes.tick_params(axis="y", length=0)
        for row in range(1, len(of.places)):
            axes.axhline(row, color="white", linewidth=0.8)
        _letters(axes, of, colours, begin, (end - begin) / COLUMNS)
        time_axis(axes, of.begin, of.end)
        _legend(figure, of, colours, seen)

    height = 1.4 + 0.21 * len(of.places) + (1.3 if entries else 0)
    return picture(draw, height, _alt(of, seen), _caption(of))


def _letters(axes: Axes, of: OwnerMatrix, colours: dict[int, str], begin: float, width: float) -> None:
    runs = [(row, *run) for row in range(len(of.places)) for run in of.runs(row)]
    wide = sorted((run for run in runs if run[3] >= 0 and run[2] >= LETTER_COLUMNS), key=lambda run: (-run[2], run))
    for row, first, number, code in wide[:MOST_LETTERS]:
        colour = "white" if colours[code] in DARK else "black"
        middle = begin + (first + number / 2) * width
        axes.text(middle, row + 0.5, LETTERS[code], ha="center", va="center", color=colour, fontsize=7)


def _legend(figure: Figure, of: OwnerMatrix, colours: dict[int, str], seen: Counter[int]) -> None:
    from matplotlib.patches import Patch

    named = [(number, f"{LETTERS[number]}  {label(name)}") for number, name in enumerate(of.members)]
    fixed = [(code, words) for code, words in WORDS.items() if seen[code]]
    patches = [Patch(facecolor=colours[code], edgecolor="#888888", label=words) for code, words in (*named, *fixed)]
    figure.legend(handles=patches, loc="outside lower left", ncols=4, fontsize=8, frameon=False)


def _alt(of: OwnerMatrix, seen: Counter[int]) -> str:
    everything = sum(seen.values()) or 1
    parts = [f"{name} {seen[number] / everything:.0%}" for number, name in enumerate(of.members)]
    parts += [f"{words} {seen[code] / everything:.0%}" for code, words in WORDS.items() if seen[code]]
    return (
        f"Who had each of {len(of.places):,} partitions, {stretch(of.begin, of.end)} UTC. "
        f"Share of all partition time: {', '.join(parts)}."
    )


def _caption(of: OwnerMatrix) -> str:
    others = f" {of.others:,} more members with less share one grey." if of.others else ""
    return (
        f"A column is {length(of.column)} and shows who had the partition for most of it; what was shorter is in "
        f"the list of rebalances.{others}"
    )


def size_picture(sizes: Sequence[Size], end: datetime) -> Drawing:
    """Draw members, assigned partitions, and the load of the most and the least loaded member, over time."""

    members, assigned, most, least = (
        [getattr(each, name) for each in sizes] for name in ("members", "assigned", "most", "least")
    )

    def draw(figure: Figure) -> None:
        upper, middle, lower = figure.subplots(3, 1, sharex=True)
        times = [each.at for each in sizes] + [end]
        for axes, title, values in ((upper, "members", members), (middle, "assigned partitions", assigned)):
            axes.step(times, [*values, values[-1]], where="post", color=BLUE)
            axes.set_title(title)
        lower.fill_between(times, [*least, least[-1]], [*most, most[-1]], step="post", color=ORANGE, alpha=0.35)
        lower.step(times, [*most, most[-1]], where="post", color="#b35c00", label="most")
        lower.step(times, [*least, least[-1]], where="post", color=BLUE, linestyle="--", label="least")
        lower.set_title("partitions of the member with most and of the one with least")
        lower.legend(loc="lower right", bbox_to_anchor=(1, 1), fontsize=8, frameon=False, ncols=2)
        for axes, values in ((upper, members), (middle, assigned), (lower, most + least)):
            whole_numbers(axes, min(values), max(values))
        time_axis(lower, sizes[0].at, end)

    caption = "The axes of numbers begin near the least value, not at 0."
    return picture(draw, 5.2, " ".join(_size_words(sizes)), caption)


def _size_words(sizes: Sequence[Size]) -> Iterator[str]:
    yield f"{len(sizes):,} records of the group, {stretch(sizes[0].at, sizes[-1].at)} UTC."
    for words, name in (("Members", "members"), ("Assigned partitions", "assigned")):
        values = [getattr(each, name) for each in sizes]
        yield f"{words}: {values[0]:,} at first, {values[-1]:,} at last, between {min(values):,} and {max(values):,}."
    last = sizes[-1]
    yield f"At last the member with most has {last.most:,} partitions, the one with least {last.least:,}."
