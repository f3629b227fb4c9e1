"""The history of groups as a picture: members and partitions without an owner over time, and what each rebalance moved.

The number of groups is bounded, the length of a history is not: each rebalance is a bar, whatever there are of them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.core.faults import Fault
from groupledger.core.moment import EPOCH, iso
from groupledger.core.visible_text import visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.answers.timeline import Timeline, TimelineEntry

MOST_GROUPS = 12
GROUP_INCHES, WIDTH_INCHES = 2.2, 9.0
MEMBERS, MOVED, NOBODY = "#4c78a8", "#54a24b", "#e45756"
GAP = "#8c8c8c"


def draw_timeline(timeline: Timeline) -> Figure:
    """A strip a group: the number of its members, bars of what moved, and what nobody had. Times are in UTC.

    Raises Fault: NOTHING_TO_DRAW, PICTURE_TOO_LARGE.
    """
    from matplotlib.figure import Figure

    by_group = _by_group(timeline.entries)
    if not by_group:
        raise Fault("NOTHING_TO_DRAW", "; ".join(timeline.notes) or f"no rebalance of {timeline.group}")
    if len(by_group) > MOST_GROUPS:
        text = f"{len(by_group)} groups make no readable picture; at most {MOST_GROUPS}: narrow the name or the time"
        raise Fault("PICTURE_TOO_LARGE", text)
    figure = Figure(figsize=(WIDTH_INCHES, 1.0 + GROUP_INCHES * len(by_group)), dpi=110, layout="constrained")
    strips = figure.subplots(len(by_group), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (name, entries) in zip(strips, by_group.items(), strict=True):
        _draw_group(axes, name, entries)
    strips[-1].tick_params(axis="x", labelrotation=20)
    strips[-1].set_xlabel(f"UTC, {iso(timeline.entries[0].began_at)} to {iso(timeline.entries[-1].observed_at)}")
    _explain(figure)
    return figure


def _by_group(entries: Sequence[TimelineEntry]) -> dict[str, list[TimelineEntry]]:
    def of(entry: TimelineEntry) -> tuple[str, str]:
        return entry.cluster_id, entry.group_id

    found = {key: list(some) for key, some in groupby(sorted(entries, key=of), of)}
    several = len({cluster for cluster, _ in found}) > 1
    return {f"{group} ({cluster})" if several else group: some for (cluster, group), some in found.items()}


def _draw_group(axes: Axes, name: str, entries: Sequence[TimelineEntry]) -> None:
    from matplotlib.ticker import MaxNLocator

    times = [_days(entry.observed_at) for entry in entries]
    axes.xaxis_date()
    axes.step(times, [entry.members for entry in entries], where="post", color=MEMBERS, linewidth=1.5)
    axes.plot(times, [entry.members for entry in entries], "o", color=MEMBERS, markersize=3)
    axes.vlines(times, 0, [len(entry.moved) for entry in entries], color=MOVED, linewidth=3, alpha=0.7)
    nobody = [len(entry.unowned or ()) for entry in entries]
    if any(nobody):
        axes.step(times, nobody, where="post", color=NOBODY, linewidth=1.5, linestyle="--")
    for entry in entries:
        if entry.gaps:
            axes.axvline(_days(entry.began_at), color=GAP, linewidth=1, linestyle=":")
    axes.set_title(visible(name), loc="left", fontsize=10, parse_math=False)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _days(moment: datetime) -> float:
    """Days since 1970: how matplotlib counts time."""
    return (moment - EPOCH) / timedelta(days=1)


def _explain(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    told = [
        Line2D([], [], color=MEMBERS, marker="o", markersize=3, label="members"),
        Line2D([], [], color=MOVED, linewidth=3, alpha=0.7, label="partitions that changed owner"),
        Line2D([], [], color=NOBODY, linestyle="--", label="partitions that nobody has"),
        Line2D([], [], color=GAP, linestyle=":", label="gap in the log before it"),
    ]
    figure.legend(handles=told, loc="outside lower center", ncols=len(told), fontsize=8, frameon=False)
