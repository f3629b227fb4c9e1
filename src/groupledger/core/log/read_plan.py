"""Plan which offsets of a log an ingest reads: from the end of the last committed ingest to the current end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from groupledger.core.faults import Fault
from groupledger.core.moments import from_millis, millis

if TYPE_CHECKING:
    from datetime import datetime


class LogEnds(NamedTuple):
    """The log start offset of a log partition, and the offset after its last record."""

    start: int
    end: int


class OffsetRange(NamedTuple):
    """Offsets of one log partition, from `first` to before `end`."""

    partition: int
    first: int
    end: int


class LogGap(NamedTuple):
    """Offsets of a log partition that were deleted before any ingest read them: from `expected` to before `start`."""

    partition: int
    expected: int
    start: int


@dataclass(frozen=True, slots=True)
class LogPlan:
    """What an ingest reads. `reached`: the next offset in every log partition; `left`: offsets left for later.

    `behind`: the log partitions of which something is left.
    """

    stretches: tuple[OffsetRange, ...]
    gaps: tuple[LogGap, ...]
    reached: Mapping[int, int]
    left: int
    behind: tuple[int, ...] = ()

    def pieces(self, most: int) -> tuple[OffsetRange, ...]:
        """Split the ranges evenly into pieces of at most `most` offsets.

        `(0, 0, 10)` in pieces of at most 4 -> `(0, 0, 4), (0, 4, 7), (0, 7, 10)`
        """
        return tuple(piece for stretch in self.stretches for piece in _pieces(stretch, most))


def planned(before: Mapping[int, int], ends: Mapping[int, LogEnds], most: int | None) -> LogPlan:
    """Plan an ingest that continues at `before`, the offsets reached by the last committed one.

    A log partition that no ingest has read begins at its log start. At most `most` offsets are read, shared as evenly
    as possible. Raises Fault LOG_WENT_BACK if the log ends before the offset already reached.
    """
    _require_same_log(before, ends)
    gaps = [
        LogGap(partition, before[partition], start)
        for partition, (start, _) in sorted(ends.items())
        if before.get(partition, start) < start
    ]
    begins = {partition: max(start, before.get(partition, start)) for partition, (start, _) in ends.items()}
    sizes = {partition: ends[partition].end - begins[partition] for partition in ends}
    shares = _shares(sizes, most)
    reached = {partition: begins[partition] + shares[partition] for partition in sorted(ends)}
    stretches = tuple(
        OffsetRange(partition, begins[partition], end) for partition, end in reached.items() if end > begins[partition]
    )
    behind = tuple(partition for partition in reached if shares[partition] < sizes[partition])
    return LogPlan(stretches, tuple(gaps), reached, sum(sizes.values()) - sum(shares.values()), behind)


def _require_same_log(before: Mapping[int, int], ends: Mapping[int, LogEnds]) -> None:
    for partition, reached in sorted(before.items()):
        end = ends[partition].end if partition in ends else None
        if end is None or end < reached:
            now = "is not there" if end is None else f"ends at offset {end}"
            said = f"partition {partition} of __consumer_offsets {now}, and was read up to offset {reached} before"
            way_out = "the topic was made again, or records were lost; read it into a new ledger"
            raise Fault("LOG_WENT_BACK", f"{said}: {way_out}")


def _shares(sizes: Mapping[int, int], most: int | None) -> dict[int, int]:
    """Return how much of each size is taken: `{0: 2, 1: 9, 2: 9}`, at most 10 -> `{0: 2, 1: 4, 2: 4}`."""
    left = sum(sizes.values()) if most is None else most
    shares = {}
    for position, (size, partition) in enumerate(sorted((size, partition) for partition, size in sizes.items())):
        shares[partition] = min(size, -(-left // (len(sizes) - position)))
        left -= shares[partition]
    return shares


def _pieces(stretch: OffsetRange, most: int) -> list[OffsetRange]:
    partition, first, end = stretch
    number = -(-(end - first) // most)
    cuts = [first + -(-(end - first) * each // number) for each in range(number + 1)]
    return [OffsetRange(partition, *cut) for cut in pairwise(cuts)]


# Track which offsets of a log were read, from the first and last offset of each read of a log partition.
#
# Ranges overstate, never understate: offsets between first and last may not have been read. Adjacent ranges
# are merged, so a log that is read piece by piece has few.

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
        if any(
            first <= wanted[place][1] and wanted[place][0] <= last
            for place, (first, last) in read.items()
            if place in wanted
        )
    }


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


# Up to which moment a ledger knows a cluster: what ingests have read, not what they found.
#
# A group that changes nothing writes no record. That its last state still holds is known from what was read beside it:
# from an ingest that reached the end of the log, or from newer records of any kind.

KNOWN = "known"
"""In `inputs` of a run: by cluster of the ledger, what all ingests up to it have read (`KnownUpTo.as_json`)."""


@dataclass(frozen=True, slots=True)
class KnownUpTo:
    """Up to when one cluster was read.

    `end`: when the last ingest began that reached the end of the whole log. `newest`: the time of the newest record of
    any kind that was read. Of a cluster that is read itself it is known where log partitions were read to different
    points: the ingest that began at `behind` left some for later, of which the least was read up to `least`.
    """

    end: datetime | None = None
    newest: datetime | None = None
    least: datetime | None = None
    behind: datetime | None = None

    @property
    def is_behind(self) -> bool:
        """Return whether the last ingest left something of the log for later."""
        return self.behind is not None and (self.end is None or self.behind > self.end)

    @property
    def up_to(self) -> datetime | None:
        """Return "now" for the cluster: up to then all that was written is in the ledger."""
        own = self.least if self.is_behind else self.newest
        return _newest(self.end, own)

    def with_more(self, other: KnownUpTo) -> KnownUpTo:
        """Return the newest of both; what was left for later is so as of the ingest that began last."""
        end, newest = (_newest(*moments) for moments in ((self.end, other.end), (self.newest, other.newest)))
        if self.behind == other.behind:
            return KnownUpTo(end, newest, _newest(self.least, other.least), self.behind)
        last = self if self.behind == _newest(self.behind, other.behind) else other
        return KnownUpTo(end, newest, last.least, last.behind)

    def as_json(self) -> dict[str, Any]:
        """Return the moments in milliseconds since 1970."""
        moments = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: millis(moment) for name, moment in moments.items() if moment is not None}


def known_in(inputs: Mapping[str, Any]) -> dict[str, KnownUpTo]:
    """Read what a run keeps of it, by cluster; nothing if its release kept nothing."""
    return {
        cluster: KnownUpTo(**{name: from_millis(at) for name, at in moments.items()})
        for cluster, moments in inputs.get(KNOWN, {}).items()
    }


def together(known: Iterable[Mapping[str, KnownUpTo]]) -> dict[str, KnownUpTo]:
    """Merge what several runs keep, in any order."""
    found: dict[str, KnownUpTo] = {}
    for of_run in known:
        for cluster, each in of_run.items():
            found[cluster] = found[cluster].with_more(each) if cluster in found else each
    return found


def _newest(*moments: datetime | None) -> datetime | None:
    return max(filter(None, moments), default=None)
