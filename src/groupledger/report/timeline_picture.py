"""Draw the history of groups: members over time, what each rebalance moved, and partitions without an owner.

The number of groups is bounded, the length of a history is not: each rebalance is a bar, whatever there are of them.
"""

from __future__ import annotations

from datetime import timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.core.faults import Fault
from groupledger.core.visible_text import visible
from groupledger.report.html.canvas import days, time_axis, whole_numbers
from groupledger.report.html.moves_chart import ROOM, top_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.timeline import Timeline, TimelineEntry

MOST_GROUPS = 12
GROUP_INCHES, WIDTH_INCHES = 2.6, 9.0
MEMBERS, MOVED, NOBODY = "#4c78a8", "#54a24b", "#e45756"
GAP = "#8c8c8c"


def draw_timeline(timeline: Timeline) -> Figure:
    """Draw two strips per group: its number of members; below it, bars of what moved, and what had no owner.

    Axes of members begin near the least number, and a bar many times as tall as all others is cut: else a group of
    1,000 members would be a flat line. Times are in UTC.

    Raises Fault: NOTHING_TO_DRAW, PICTURE_TOO_LARGE.
    """
    from matplotlib.figure import Figure

    by_group = _by_group(timeline.entries)
    if not by_group:
        raise Fault("NOTHING_TO_DRAW", "; ".join(timeline.notes) or f"no rebalance of {timeline.group}")
    if len(by_group) > MOST_GROUPS:
        text = f"{len(by_group)} groups make no readable picture; at most {MOST_GROUPS}: narrow the name or the time"
        raise Fault("PICTURE_TOO_LARGE", text)
    figure = Figure(figsize=(WIDTH_INCHES, 0.8 + GROUP_INCHES * len(by_group)), dpi=110, layout="constrained")
    strips = figure.subplots(2 * len(by_group), 1, sharex=True, height_ratios=[1, 2] * len(by_group))
    for number, (name, entries) in enumerate(by_group.items()):
        _draw_members(strips[2 * number], name, entries)
        _draw_partitions(strips[2 * number + 1], entries)
    first, last = min(entry.began_at for entry in timeline.entries), timeline.entries[-1].observed_at
    room = max((last - first) / 40, timedelta(seconds=1))
    time_axis(strips[-1], first - room, last + room)
    _explain(figure)
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
        axes.step(times, nobody, where="post", color=NOBODY, linewidth=1.5, linestyle="--")
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


def _explain(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    told = [
        Line2D([], [], color=MEMBERS, marker="o", markersize=3, label="members"),
        Line2D([], [], color=MOVED, linewidth=3, alpha=0.7, label="partitions that changed owner"),
        Line2D([], [], color=NOBODY, linestyle="--", label="partitions that nobody has"),
        Line2D([], [], color=GAP, linestyle=":", label="gap in the log before it"),
    ]
    figure.legend(handles=told, loc="outside lower center", ncols=len(told), fontsize=8, frameon=False)
