"""Draw a past rebalance: partitions across, members down, before above after, with moves highlighted."""

from __future__ import annotations

import textwrap
from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from groupledger.core.faults import Fault
from groupledger.core.moments import iso
from groupledger.core.text import shortened, visible
from groupledger.report.html.charts import ROOM, days, few_ticks, label, time_axis, top_of, whole_numbers
from groupledger.report.html.page_parts import cut

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.changed_group import WhatIf
    from groupledger.answers.explanation import MemberMove, Rebalance
    from groupledger.answers.queries import NamedPartition
    from groupledger.answers.replayed import Replayed
    from groupledger.answers.scope import Ranking
    from groupledger.answers.timeline import Timeline, TimelineEntry


EMPTY, KEPT, GIVEN_UP, GAINED, NOBODY = range(5)
COLOURS = ("#f4f4f4", "#4c78a8", "#e45756", "#54a24b", "#8c8c8c")
LEGEND = {KEPT: "stays", GIVEN_UP: "given up", GAINED: "gained", NOBODY: "assigned to nobody"}
HATCH = {KEPT: "", GIVEN_UP: "//", GAINED: ""}  # not everybody can distinguish red from green
MOST_MEMBERS, MOST_PARTITIONS = 40, 80
"""Rows and columns that a person reads one by one."""
ROW_INCHES, COLUMN_INCHES = 0.32, 0.3
BARS_WIDTH = 9.0
LONG_NAME, LETTER_INCHES = 16, 0.08
TITLE_WIDTH, LONGEST_TITLE = 80, 240
"""Characters of a title that stand beside one another on the narrowest plot."""


def draw(rebalance: Rebalance | WhatIf) -> Figure:
    """Draw who had each partition before, and to whom the coordinator recorded it after, or would give it.

    Of a large group only members that gain or lose something, and what they gain or lose; where that is too much, too,
    a bar for each of the members with most changes.
    """
    places = sorted({place for move in rebalance.members for place in (*move.held, *move.assigned)})
    members, left = rebalance.members, ""
    if len(members) > MOST_MEMBERS or len(places) > MOST_PARTITIONS:
        moved = sorted({place for move in members for place in (*move.added, *move.revoked)})
        changed = tuple(move for move in members if move.added or move.revoked)
        if len(changed) > MOST_MEMBERS or len(moved) > MOST_PARTITIONS:
            return _draw_bars(rebalance, changed)
        left = f"\nwhat moves: {len(moved):,} of {len(places):,} partitions"
        left += f", {len(changed):,} of {len(members):,} members"
        members, places = changed, moved
    longest = max((len(label(topic)) for topic, _ in places), default=0)
    width = max(8.0 if longest > LONG_NAME else 6.0, 2.6 + COLUMN_INCHES * len(places))
    rows_inches = max(3.2, 1.9 + 2 * ROW_INCHES * (len(members) + 1))
    figure = _figure(width, rows_inches + LETTER_INCHES * max(0, longest - LONG_NAME))
    upper, lower = figure.subplots(2, 1, sharex=True)
    grown = dict(getattr(rebalance, "grown_from", ()))  # partitions that are yet to be made have no owner to lack
    made = [number < grown.get(topic, number + 1) for topic, number in places]
    rows = [cells(move.held, move.assigned, places, GIVEN_UP) for move in members]
    _paint(upper, "before", members, rows, places, made)
    _paint(lower, "after", members, [cells(move.assigned, move.held, places, GAINED) for move in members], places)
    labels = [f"{label(topic)}-{partition}" for topic, partition in places]
    lower.set_xticks([column + 0.5 for column in range(len(places))], labels, rotation=90, parse_math=False)
    figure.suptitle(f"{_title(rebalance)}{left}", fontsize=10, parse_math=False)
    _explain(figure, LEGEND)
    return figure


Bars = tuple[str, str, "Sequence[int]"]
"""What they are of, their colour, and a number for each group."""


def draw_courses(found: Replayed) -> Figure:
    """Draw for each group what it gave up and handed over as it was, and would have under another assignor."""
    ways = ("happened", COLOURS[NOBODY], "as it was"), ("replayed", COLOURS[KEPT], f"under {found.assignor}")
    panels = {
        words: [
            (whose, colour, [getattr(getattr(each, way), name) for each in found.groups]) for way, colour, whose in ways
        ]
        for name, words in (("revoked", "partitions given up"), ("gained", "partitions handed over"))
    }
    return _draw_groups(found.text, found.groups, panels)


def draw_ranking(found: Ranking[Any]) -> Figure:
    """Draw a report of storms, or of skew: a bar or two for each group.

    Raises Fault: NO_PLOT for another report.
    """
    panels = {
        "Storm": {"rebalances": ["rebalances"], "rebalances in the worst hour": ["in_an_hour"]},
        "Skew": {"partitions of a member": ["most", "least"]},
    }.get(found.kind.__name__)
    if panels is None:
        raise Fault("NO_PLOT", "this report has no plot; storms and skew have one, and timeline and explain of a group")
    colours = COLOURS[KEPT], COLOURS[NOBODY]
    bars = {
        words: [
            (name, colour, [getattr(each, name) for each in found.groups])
            for name, colour in zip(names, colours, strict=False)
        ]
        for words, names in panels.items()
    }
    return _draw_groups(f"{len(found.groups):,} of {found.total:,} groups", found.groups, bars)


def _draw_groups(title: str, every: Sequence[Any], panels: Mapping[str, Sequence[Bars]]) -> Figure:
    """Draw bars for each of the first so many groups, a panel beside another."""
    groups = every[:MOST_MEMBERS]
    if not groups:
        raise Fault("NOTHING_TO_DRAW", f"there is no group to draw; {title}")
    figure = _figure(BARS_WIDTH, 1.5 + 0.42 * len(groups))
    figure.suptitle(textwrap.fill(title, TITLE_WIDTH), fontsize=10, parse_math=False)
    names = shortened(group.group_id for group in groups)
    for axes, (words, of) in zip(
        figure.subplots(1, len(panels), sharey=True, squeeze=False)[0], panels.items(), strict=True
    ):
        thick = 0.8 / len(of)
        for at, (whose, colour, numbers) in enumerate(of):
            rows = [row + (at - (len(of) - 1) / 2) * thick for row in range(len(groups))]
            bars = axes.barh(rows, numbers[: len(groups)], thick, color=colour, label=whose)
            axes.bar_label(bars, [f"{number:,}" for number in numbers[: len(groups)]], padding=2, fontsize=7)
        axes.set_yticks(range(len(groups)), [label(names[group.group_id]) for group in groups], parse_math=False)
        axes.set_ylim(len(groups) - 0.5, -0.5)
        axes.tick_params(length=0, labelsize=8)
        axes.set_xlabel(words, fontsize=8)
        axes.margins(x=0.12)
        axes.spines[["top", "right"]].set_visible(False)
    if any(len(of) > 1 for of in panels.values()):
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    return figure


def _title(rebalance: Rebalance | WhatIf) -> str:
    return f"{textwrap.fill(cut(visible(rebalance.title), LONGEST_TITLE), TITLE_WIDTH)}\n{iso(rebalance.observed_at)}"


def _draw_bars(rebalance: Rebalance | WhatIf, changed: Sequence[MemberMove]) -> Figure:
    """Draw how many partitions each member keeps, gives up and gains: those with most changes first."""
    order = sorted(changed, key=lambda move: (-len(move.added) - len(move.revoked), move.member_id))
    shown = order[:MOST_MEMBERS]
    figure = _figure(BARS_WIDTH, 1.6 + 0.22 * len(shown))
    axes, floor, rows = figure.subplots(), [0] * len(shown), range(len(shown))
    for code, numbers in (
        (KEPT, [len(move.held) - len(move.revoked) for move in shown]),
        (GIVEN_UP, [len(move.revoked) for move in shown]),
        (GAINED, [len(move.added) for move in shown]),
    ):
        axes.barh(rows, numbers, 0.8, floor, fc=COLOURS[code], ec="w", hatch=HATCH[code], label=LEGEND[code])
        floor = [low + number for low, number in zip(floor, numbers, strict=True)]
    short = shortened(_named(move) for move in shown)
    axes.set_yticks(rows, [_name(move, short) for move in shown], parse_math=False)
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.tick_params(length=0, labelsize=8)
    few_ticks(axes.xaxis, 8)
    axes.set_xlabel("partitions", fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    summary = f"{len(changed):,} of {len(rebalance.members):,} members gain or lose partitions"
    most = f", the {len(shown):,} with most are shown" if len(shown) < len(changed) else ""
    figure.suptitle(f"{_title(rebalance)}\n{summary}{most}", fontsize=10, parse_math=False)
    figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    return figure


def cells(
    here: tuple[NamedPartition, ...], there: tuple[NamedPartition, ...], places: list[NamedPartition], moved: int
) -> list[int]:
    """Return a member's row: `moved` where it has a partition here and not there, KEPT where in both, else EMPTY."""
    has, stays = set(here), set(there)
    return [(KEPT if place in stays else moved) if place in has else EMPTY for place in places]


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), dpi=110, layout="constrained")


def _paint(
    axes: Axes,
    title: str,
    members: tuple[MemberMove, ...],
    rows: list[list[int]],
    places: list[NamedPartition],
    made: list[bool] | None = None,
) -> None:
    from matplotlib.colors import ListedColormap

    owned = [any(row[column] != EMPTY for row in rows) for column in range(len(places))]
    nobody = [
        EMPTY if has or not there else NOBODY for has, there in zip(owned, made or [True] * len(places), strict=True)
    ]
    axes.pcolormesh([*rows, nobody], cmap=ListedColormap(COLOURS), vmin=0, vmax=len(COLOURS) - 1, edgecolors="white")
    short = shortened(_named(move) for move in members)
    names = [*(_name(move, short) for move in members), "(nobody)"]
    axes.set_yticks([row + 0.5 for row in range(len(rows) + 1)], names, parse_math=False)
    axes.invert_yaxis()
    axes.set_title(title, loc="left", fontsize=10)
    axes.tick_params(length=0, labelsize=8)
    axes.spines[:].set_visible(False)
    for column in range(1, len(places)):
        if places[column][0] != places[column - 1][0]:
            axes.axvline(column, color="black", linewidth=1)


def _named(move: MemberMove) -> str:
    return move.group_instance_id or move.client_id or move.member_id


def _name(move: MemberMove, short: Mapping[str, str]) -> str:
    name = label(short[_named(move)])
    return name if move.stays else f"{name} (left)"


def _explain(figure: Figure, legend: Mapping[int, str]) -> None:
    from matplotlib.patches import Patch

    patches = [Patch(color=COLOURS[code], label=words) for code, words in legend.items()]
    figure.legend(handles=patches, loc="outside lower center", ncols=len(patches), fontsize=8, frameon=False)


# Draw the history of groups: members over time, what each rebalance moved, and partitions without an owner.
#
# The number of groups is bounded, the length of a history is not: each rebalance is a bar, whatever there are of them.

MOST_GROUPS = 12
GROUP_INCHES, WIDTH_INCHES = 2.6, 9.0
MEMBERS, MOVED, UNOWNED = "#4c78a8", "#54a24b", "#e45756"
GAP = "#8c8c8c"


def draw_timeline(timeline: Timeline) -> Figure:
    """Draw two strips per group: its number of members; below it, bars of what moved, and what had no owner.

    Axes of members begin near the least number, and a bar many times as tall as all others is cut: else a group of
    1,000 members would be a flat line. Times are in UTC.

    Raises Fault: NOTHING_TO_DRAW, PICTURE_TOO_LARGE.
    """
    by_group = _by_group(timeline.entries)
    if not by_group:
        raise Fault("NOTHING_TO_DRAW", "; ".join(timeline.notes) or f"no rebalance of {timeline.group}")
    if len(by_group) > MOST_GROUPS:
        text = f"{len(by_group)} groups make no readable picture; at most {MOST_GROUPS}: narrow the name or the time"
        raise Fault("PICTURE_TOO_LARGE", text)
    figure = _figure(WIDTH_INCHES, 0.8 + GROUP_INCHES * len(by_group))
    strips = figure.subplots(2 * len(by_group), 1, sharex=True, height_ratios=[1, 2] * len(by_group))
    for number, (name, entries) in enumerate(by_group.items()):
        _draw_members(strips[2 * number], name, entries)
        _draw_partitions(strips[2 * number + 1], entries)
    first, last = min(entry.began_at for entry in timeline.entries), timeline.entries[-1].observed_at
    room = max((last - first) / 40, timedelta(seconds=1))
    time_axis(strips[-1], first - room, last + room)
    _explain_marks(figure)
    return figure


def _by_group(entries: Sequence[TimelineEntry]) -> dict[str, list[TimelineEntry]]:
    def of(entry: TimelineEntry) -> tuple[str, str]:
        return entry.cluster_id, entry.group_id

    found = {key: list(some) for key, some in groupby(sorted(entries, key=of), of)}
    several = len({cluster for cluster, _ in found}) > 1
    return {f"{group} ({cluster})" if several else group: some for (cluster, group), some in found.items()}


def _draw_members(axes: Axes, name: str, entries: Sequence[TimelineEntry]) -> None:
    times, members = [days(entry.observed_at) for entry in entries], [entry.members for entry in entries]
    axes.step(times, members, where="post", color=MEMBERS, linewidth=1.5)
    axes.plot(times, members, "o", color=MEMBERS, markersize=3)
    axes.set_title(visible(name), loc="left", fontsize=10, parse_math=False)
    whole_numbers(axes, min(members), max(members))
    _plain(axes, "members")


def _draw_partitions(axes: Axes, entries: Sequence[TimelineEntry]) -> None:
    """Draw one bar per rebalance, cut if it is many times the others, and what had no owner in between."""
    times, moved = [days(entry.observed_at) for entry in entries], [len(entry.moved) for entry in entries]
    nobody = [len(entry.unowned or ()) for entry in entries]
    top = max(top_of(moved), *nobody)
    axes.vlines(times, 0, moved, color=MOVED, linewidth=3, alpha=0.7)
    if any(nobody):
        axes.step(times, nobody, where="post", color=UNOWNED, linewidth=1.5, linestyle="--")
    for entry in entries:
        if entry.gaps:
            axes.axvline(days(entry.began_at), color=GAP, linewidth=1, linestyle=":")
    for time, number in zip(times, moved, strict=True):
        if number > top:
            axes.annotate(f"{number:,}", (time, ROOM * top), (4, -8), textcoords="offset points", fontsize=7)
    whole_numbers(axes, 0, top)
    axes.set_ylim(0, ROOM * top)
    _plain(axes, "partitions")


def _plain(axes: Axes, what: str) -> None:
    axes.set_ylabel(what, fontsize=8)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _explain_marks(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=MEMBERS, marker="o", markersize=3, label="members"),
        Line2D([], [], color=MOVED, linewidth=3, alpha=0.7, label="partitions that changed owner"),
        Line2D([], [], color=UNOWNED, linestyle="--", label="partitions that nobody has"),
        Line2D([], [], color=GAP, linestyle=":", label="gap in the log before it"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles), fontsize=8, frameon=False)
