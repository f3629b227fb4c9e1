"""Draw what each rebalance moved, with its causes below."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupledger.answers.causes import CauseKind
from groupledger.answers.generations import CLASSIC
from groupledger.report.html.canvas import BLUE, GREEN, ORANGE, picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.causes import Moved
    from groupledger.answers.timeline import TimelineEntry
    from groupledger.report.html.canvas import Drawing

CUT = 5
"""The tallest bar is cut where it is over so many times the next one: as that of a group's first state often is."""
ROOM = 1.15
"""The height of the axis, as bars of the greatest."""
KINDS = (("from member to member", BLUE, ""), ("from nobody to a member", GREEN, "//"), ("to nobody", ORANGE, "xx"))
MOST_DIGITS, MOST_TICKS = 150, 30


def moves_of(moved: Sequence[Moved]) -> tuple[int, int, int]:
    """Count partitions that went from member to member, from nobody to a member, and to nobody."""
    given = sum(each.from_member_id is None for each in moved)
    lost = sum(each.to_member_id is None for each in moved)
    return len(moved) - given - lost, given, lost


def moves_picture(entries: Sequence[TimelineEntry]) -> Drawing:
    """Draw one bar per rebalance, and a dot for each kind of cause that it had."""
    moves = [moves_of(entry.moved) for entry in entries]
    kinds = Counter(kind for entry in entries for kind in {cause.kind.value for cause in entry.causes})
    order = sorted(kinds, key=lambda kind: (-kinds[kind], kind))

    def draw(figure: Figure) -> None:
        upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=[2.2, 0.3 + 0.26 * len(order)])
        _bars(upper, moves)
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
    return picture(draw, 3.2 + 0.26 * len(order), _alt(entries, moves, kinds), caption)


def top_of(totals: Sequence[int]) -> int:
    """Return where the axis ends: at the greatest value, unless it is cut."""
    second, greatest = sorted([0, 0, *totals])[-2:]
    return max(1, second if 0 < CUT * second < greatest else greatest)


def _bars(axes: Axes, moves: Sequence[tuple[int, int, int]]) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

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
    axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.set_ylabel("partitions")
    axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=3, fontsize=8, frameon=False)
    axes.tick_params(axis="x", length=0)


def _alt(entries: Sequence[TimelineEntry], moves: Sequence[tuple[int, int, int]], kinds: Counter[str]) -> str:
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
