"""Draw who consumed each partition of a simulated group when, and how many partitions had no owner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from groupledger.answers.spoken import numbered
from groupledger.report.html.canvas import BLACK, COLOURS, GREY, label, picture, whole_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from groupledger.core.protocol.comparison import ConsumedSpan
    from groupledger.report.html.canvas import Drawing

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
    told = _within(spans, begin_ms, end_ms)
    missed = missed_partitions(spans, begin_ms, end_ms)
    rows = sorted(told) if len(told) <= MOST_PARTITIONS else []
    colours = _colours(told)

    def draw(figure: Figure) -> None:
        ratios = [1.0, max(0.2 * len(rows), 0.6)] if rows else [1.0]
        axes = figure.subplots(len(ratios), 1, sharex=True, height_ratios=ratios, squeeze=False)[:, 0]
        _draw_missed(axes[0], missed, end_ms, most_missed)
        if rows:
            _draw_owners(axes[1], {row: told[row] for row in rows}, colours, end_ms)
            _explain(figure, colours)
        axes[-1].set_xlim(begin_ms / SECOND_MS, end_ms / SECOND_MS)
        axes[-1].set_xlabel("seconds of the script")

    return picture(draw, 1.9 + 0.21 * len(rows), _alt(missed, end_ms), _caption(len(told), colours))


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


def _colours(told: dict[tuple[str, int], list[tuple[str, int, int]]]) -> dict[str, str]:
    """Give a colour to each of the members with the most; the others share a grey."""
    had: Counter[str] = Counter()
    for name, first_ms, last_ms in (each for some in told.values() for each in some):
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
    axes: Axes, told: dict[tuple[str, int], list[tuple[str, int, int]]], colours: dict[str, str], end_ms: int
) -> None:
    """Draw the owners; black where a partition has no owner but had one before; a tick for who had it for no time."""
    for row, spans in enumerate(told.values()):
        first_ms = min(first for _, first, _ in spans)
        axes.broken_barh([(first_ms / SECOND_MS, (end_ms - first_ms) / SECOND_MS)], (row, 0.9), facecolors=BLACK)
        bars = [(first / SECOND_MS, (last - first) / SECOND_MS) for _, first, last in spans]
        axes.broken_barh(bars, (row, 0.9), facecolors=[colours[name] for name, _, _ in spans])
        for name, first, last in spans:
            if first == last:
                axes.vlines(first / SECOND_MS, row, row + 0.9, colors=colours[name], linewidth=TICK)
    axes.set_yticks([row + 0.45 for row in range(len(told))], [label(f"{topic}-{at}") for topic, at in told])
    axes.set_ylim(len(told), 0)
    axes.tick_params(axis="y", length=0)


def _explain(figure: Figure, colours: dict[str, str]) -> None:
    from matplotlib.patches import Patch

    named = [(label(name), colour) for name, colour in colours.items() if colour != GREY]
    others = [("other members", GREY)] if GREY in colours.values() else []
    patches = [Patch(facecolor=colour, label=name) for name, colour in (*named, *others, ("nobody", BLACK))]
    figure.legend(handles=patches, loc="outside lower left", ncols=5, fontsize=8, frameon=False)


def _alt(missed: Sequence[tuple[int, int]], end_ms: int) -> str:
    most = max(count for _, count in missed)
    ends = [*(at_ms for at_ms, _ in missed[1:]), end_ms]
    waited = sum(count * (until_ms - at_ms) for (at_ms, count), until_ms in zip(missed, ends, strict=True))
    return f"At most {numbered(most, 'partition')} without a member at a time, {waited:,} partition-ms in all."


def _caption(partitions: int, colours: dict[str, str]) -> str:
    if partitions > MOST_PARTITIONS:
        return f"{partitions:,} partitions are too many for a row each."
    others = sum(colour == GREY for colour in colours.values())
    return f"{numbered(others, 'member')} with less share one grey." if others else ""
