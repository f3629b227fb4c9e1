"""Track which offsets of a log were read, from the first and last offset of each read of a log partition.

Ranges overstate, never understate: offsets between first and last may not have been read. Adjacent ranges
are merged, so a log that is read piece by piece has few.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import itemgetter

LogPlace = tuple[str, int]
"""Cluster and log partition."""
Range = tuple[int, int]
"""First and last offset."""
Ranges = Mapping[LogPlace, Range]

MOST_RANGES = 64
"""Ranges kept per log partition; beyond that, the smallest gaps between them are closed."""


def united(reads: Iterable[Ranges]) -> dict[LogPlace, tuple[Range, ...]]:
    """Unite all reads into ascending ranges that do not touch.

    `[{p: (0, 9)}, {p: (10, 19)}, {p: (40, 44)}]` -> `{p: ((0, 19), (40, 44))}`
    """
    by_place: defaultdict[LogPlace, list[Range]] = defaultdict(list)
    for read in reads:
        for place, extent in read.items():
            by_place[place].append(extent)
    return {place: _few(_joined(sorted(ranges))) for place, ranges in sorted(by_place.items())}


def overlapping(reads: Mapping[str, Ranges], wanted: Ranges) -> set[str]:
    """Return the names of reads with a range that overlaps a wanted one of the same log partition."""
    return {
        name
        for name, read in reads.items()
        if any(_meet(extent, wanted[place]) for place, extent in read.items() if place in wanted)
    }


def _meet(one: Range, other: Range) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _joined(ranges: list[Range]) -> list[Range]:
    found: list[Range] = []
    for first, last in ranges:
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def _few(ranges: list[Range]) -> tuple[Range, ...]:
    gaps = [(after[0] - before[1], at) for at, (before, after) in enumerate(pairwise(ranges))]
    kept = {at for _, at in sorted(gaps, key=itemgetter(0), reverse=True)[: MOST_RANGES - 1]}
    found: list[Range] = []
    for at, extent in enumerate(ranges):
        if found and at - 1 not in kept:
            found[-1] = (found[-1][0], extent[1])
        else:
            found.append(extent)
    return tuple(found)
