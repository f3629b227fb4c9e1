"""Segments in memory, and what the reader says of them."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch

from groupledger.core.log import segments
from groupledger.core.log.record_batches import RecordColumns
from groupledger.core.log.segments import Damage, LogReader, Segment
from groupledger.sources.segment_files import decompressed


@dataclass(frozen=True)
class Read:
    """The records by offset, the damage, and the counts."""

    records: list[tuple[int, int, bytes | None, bytes | None]]
    damage: list[Damage]
    entries: int
    left_out: dict[str, int]
    epochs: dict[int, int]
    """The leader epoch of each record, by offset."""

    @property
    def codes(self) -> list[str]:
        return [each.code.value for each in self.damage]

    @property
    def offsets(self) -> list[int]:
        return [offset for offset, *_ in self.records]


def name(offset: int) -> str:
    return f"{offset:020}.log"


def read(files: Mapping[str, bytes], *, commits: bool = True) -> Read:
    """All of a log partition; AssertionError where an entry is not accounted for."""
    segments = [Segment(each, int(each[:20])) for each in files]
    reader = LogReader(segments, lambda each: io.BytesIO(files[each]), decompressed, commits=commits)
    found = list(reader.read())
    damage = [each for each in found if isinstance(each, Damage)]
    records = sorted((row for each in found if isinstance(each, RecordColumns) for row in each), key=lambda row: row[0])
    left_out = {kind: number for kind, number in reader.left_out.items() if number}
    assert reader.entries == len(records) + len(damage) + sum(left_out.values())
    for each in damage:
        assert 0 <= each.start < each.end <= len(files[each.file])
    columns = [each for each in found if isinstance(each, RecordColumns)]
    epochs = {
        at: epoch for each in columns for at, epoch in zip(each.offsets.tolist(), each.epochs.tolist(), strict=True)
    }
    return Read(records, damage, reader.entries, left_out, epochs)


@contextmanager
def windows_of(size: int) -> Iterator[None]:
    """So few bytes at once that batches lie across the ends of windows."""
    with patch.object(segments, "WINDOW", size):
        yield
