"""Plan which offsets of a log an ingest reads: from the end of the last committed ingest to the current end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from groupledger.core.faults import Fault


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
