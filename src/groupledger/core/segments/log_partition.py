"""Read a log partition from its segments: valid records, damage, and counts of everything else.

One pass. A batch is accepted if its checksum is correct and its offsets follow those before it and precede the next
segment's. Damage ends at the next acceptable batch, or with its segment. The end of the last segment may be torn: the
broker died while it wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedIOBase
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.lines.log_records import OFFSET_COMMIT_LEFT_OUT
from groupledger.core.segments import batches
from groupledger.core.segments.batches import (
    ATTRIBUTES,
    BASE,
    BYTES,
    CODEC,
    CONTROL,
    COUNT,
    HEADER,
    LAST_DELTA,
    MAX_TIME,
    PLAIN,
    POSITION,
    PRODUCER,
    TRANSACTIONAL,
    mark,
)
from groupledger.core.segments.damage import Damage, SegmentCode
from groupledger.core.segments.records import FoundRecords, RecordColumns, batch_records, joined_records, plain_records
from groupledger.core.segments.recovery import Torn, judge
from groupledger.core.segments.transactions import Marker, Transactions, marker
from groupledger.core.segments.window import FileWindow

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray

Decompress = Callable[[int, bytes], bytes]
"""Decompresses the records of batches, given the codec's number and bytes. ValueError for bytes not of the codec."""

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
JOINED = (1, 3, 4)
"""Codecs whose concatenated outputs decompress to their concatenated inputs."""
JOINED_BYTES = 256 << 10
MARKERS = "transaction marker"
ABORTED, UNDECIDED = "aborted transaction", "undecided transaction"
TORN_TAIL = "torn tail"
LEFT_OUT = (OFFSET_COMMIT_LEFT_OUT, MARKERS, ABORTED, UNDECIDED, TORN_TAIL)
"""What is neither damage nor a record: kinds of unused records in an account. A torn tail counts as one. A
transaction is undecided if it is open at the end of the log, or if its marker may have been lost by damage."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment file, named by its first offset, `offset`."""

    name: str
    offset: int


class LogReader:
    """Reads the segments of one log partition, in the order of their offsets.

    `entries` counts everything: records by the headers of accepted batches, and a range of damage and a torn tail as
    one each. `left_out` counts by LEFT_OUT. Both are complete once `read` has ended: entries = records given + damage
    given + left_out. `newest`: the greatest time (ms) in a header of an accepted batch; None without one.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        opened: Callable[[str], BufferedIOBase],
        decompress: Decompress,
        *,
        commits: bool,
    ) -> None:
        self.entries = 0
        self.newest: int | None = None
        self.left_out: Counter[str] = Counter()
        self._segments = sorted(segments, key=lambda segment: segment.offset)
        self._opened, self._decompress, self._commits = opened, decompress, commits
        self._transactions = Transactions()

    def read(self) -> Iterator[RecordColumns | Damage]:
        """Yield valid records, and damage. Records of a transaction follow once its marker has been read."""
        pending: Damage | None = None
        uppers = [segment.offset for segment in self._segments[1:]] + [None]
        for segment, upper in zip(self._segments, uppers, strict=True):
            for found in self._segment(segment, upper):
                if isinstance(found, Damage):
                    self._transactions.doubt()
                    both = None if pending is None else pending.and_then(found)
                    if pending is not None and both is None:
                        yield self._said(pending)
                    pending = both or found
                else:
                    yield found
        if pending is not None:
            yield self._said(pending)
        self.left_out[UNDECIDED] += self._transactions.undecided()

    def _said(self, damage: Damage) -> Damage:
        self.entries += 1
        return damage

    def _segment(self, segment: Segment, upper: int | None) -> Iterator[RecordColumns | Damage]:
        with self._opened(segment.name) as file:
            window = FileWindow(file, file.seek(0, 2))
            walk = _Walk(segment, upper, window)
            try:
                for data, table, damage in walk.stretches():
                    yield from self._batches(walk, data, table)
                    if damage is not None:
                        yield damage
            except OSError as error:
                got = f"an error of the disk ({error.strerror or error})"
                yield walk.damage(SegmentCode.READ_ERROR, window.size, got, "the bytes of the file")
            self.left_out[TORN_TAIL] += walk.torn
            self.entries += walk.torn

    def _batches(self, walk: _Walk, data: memoryview, table: LongArray) -> Iterator[RecordColumns | Damage]:
        """Yield the records of accepted batches, which begin at the walk's position."""
        if len(table):
            newest = int(table[:, MAX_TIME].max())
            self.newest = newest if self.newest is None else max(self.newest, newest)
        kinds = table[:, ATTRIBUTES] & (CODEC | TRANSACTIONAL | CONTROL)
        if kinds.any():
            yield from self._not_plain(walk, data, table, kinds)
            table = table[kinds == PLAIN]
        while len(table):
            found = plain_records(data, table, keep_commits=self._commits)
            yield from self._counted(found, table[: found.bad])
            if found.bad is None:
                return
            yield _bad_records(walk, table[found.bad], found.at)
            table = table[found.bad + 1 :]

    def _not_plain(
        self, walk: _Walk, data: memoryview, table: LongArray, kinds: LongArray
    ) -> Iterator[RecordColumns | Damage]:
        """Yield the records of batches that are compressed, transactional or control batches."""
        joined = np.isin(kinds, JOINED)
        for codec in JOINED if joined.any() else ():
            yield from self._joined(walk, data, table[kinds == codec], codec)
        for row in table[(kinds != PLAIN) & ~joined]:
            yield from self._special(walk, data, row)

    def _joined(self, walk: _Walk, data: memoryview, table: LongArray, codec: int) -> Iterator[RecordColumns | Damage]:
        """Yield the records of compressed batches, many decompressed at once; one by one if that fails."""
        parts = np.cumsum(table[:, BYTES]) // JOINED_BYTES
        for part in np.unique(parts):
            some = table[parts == part]
            try:
                payload = self._decompress(codec, b"".join(_payload(data, row) for row in some.tolist()))
                found = joined_records(payload, some, keep_commits=self._commits)
            except ValueError:
                found = None
            if found is not None:
                yield from self._counted(found, some)
                continue
            for row in some:
                yield from self._special(walk, data, row)

    def _counted(self, found: FoundRecords, table: LongArray) -> Iterator[RecordColumns]:
        self.entries += int(table[:, COUNT].sum())
        self.left_out[OFFSET_COMMIT_LEFT_OUT] += found.offset_commits
        yield from found.records

    def _special(self, walk: _Walk, data: memoryview, row: LongArray) -> Iterator[RecordColumns | Damage]:
        """Yield the records of one batch that is compressed, transactional or a control batch."""
        codec, payload = int(row[ATTRIBUTES] & CODEC), _payload(data, row.tolist())
        if codec >= len(CODECS):
            known = ", ".join(f"{number} ({name})" for number, name in enumerate(CODECS))
            yield _bad_batch(walk, row, SegmentCode.UNKNOWN_CODEC, f"codec {codec}", known)
            return
        try:
            payload = self._decompress(codec, payload) if codec and len(payload) else payload
        except ValueError as error:
            yield _bad_batch(walk, row, SegmentCode.BAD_COMPRESSION, str(error), f"bytes that {CODECS[codec]} wrote")
            return
        is_control = bool(row[ATTRIBUTES] & CONTROL)
        found = batch_records(payload, row, keep_commits=self._commits or is_control)
        if found.bad is not None:
            yield _bad_records(walk, row, found.at)
            return
        count = int(row[COUNT])
        if is_control:
            self.entries += count
            self.left_out[MARKERS] += count
            yield from self._ended(int(row[PRODUCER]), marker(found.records))
        elif row[ATTRIBUTES] & TRANSACTIONAL:
            self.entries += count
            self._transactions.hold(int(row[PRODUCER]), found.records, found.offset_commits, count)
        else:
            yield from self._counted(found, row.reshape(1, -1))

    def _ended(self, producer: int, marked: Marker | None) -> Iterator[RecordColumns]:
        if marked is None:
            return
        held = self._transactions.end(producer)
        if marked is Marker.ABORT:
            self.left_out[ABORTED] += held.count
        else:
            self.left_out[OFFSET_COMMIT_LEFT_OUT] += held.offset_commits
            yield from held.records


class _Walk:
    """The pass through one segment: the position, and which offset comes next."""

    def __init__(self, segment: Segment, upper: int | None, window: FileWindow) -> None:
        self.segment, self.is_last, self.window = segment, upper is None, window
        self.upper = batches.NO_UPPER if upper is None else upper
        self.position = 0
        self.least = segment.offset
        self.torn = 0

    def stretches(self) -> Iterator[tuple[memoryview, LongArray, Damage | None]]:
        """Yield bytes of the window, the accepted batches that come next in them, and the damage after these."""
        window, need = self.window, HEADER
        while self.position < window.size:
            failed = window.fails_to_hold(self.position, need)
            data, first = window.data, self.position - window.start
            if failed is not None and not 0 <= first <= len(data):
                raise failed
            marked = mark(data, first, window.size - window.start, self.least, self.upper)
            keep_last = window.at_end or failed is not None
            table, stop, status = _believed(data, marked, self.least, keep_last=keep_last)
            goes_on = status == batches.WHOLE or (status == batches.MORE and not window.at_end)
            need = marked[1] - stop + batches.next_size(data, marked[1]) if goes_on else HEADER
            yield data, table, None
            if len(table):
                self.least = int(table[-1, BASE] + table[-1, LAST_DELTA]) + 1
            self.position += stop - first
            if failed is not None:
                raise failed
            if goes_on:
                continue
            judged = judge(window, self.position, status, self.least, self.upper, is_last=self.is_last)
            if isinstance(judged, Torn):
                self.torn += judged.bytes > 0
                return
            damage = self.damage(judged.code, judged.end, judged.got, judged.expected)
            self.position = judged.end
            yield data[:0], table[:0], damage

    def damage(self, code: SegmentCode, end: int, got: str, expected: str) -> Damage:
        """Return the damage from the position to `end`."""
        return Damage(code, self.segment.name, self.position, end, self.least, got, expected)


def _believed(
    data: memoryview, marked: tuple[LongArray, int, int], least: int, *, keep_last: bool
) -> tuple[LongArray, int, int]:
    """Return the accepted part of what `mark` found, with the last batch left for the next window.

    The last batch is only accepted together with the next: no checksum covers base offsets, and of two that contradict
    each other, the one that does not continue the sequence is wrong.
    """
    table, stop, status = marked
    if status == batches.BACKWARD and len(table):
        last, following = table[-1], batches.base_at(data, stop)
        before = int(table[-2, BASE] + table[-2, LAST_DELTA]) + 1 if len(table) > 1 else least
        if before <= following and last[BASE] != before:
            return table[:-1], int(last[POSITION]), batches.BACKWARD
    elif status in (batches.WHOLE, batches.MORE) and len(table) and not keep_last:
        return table[:-1], int(table[-1, POSITION]), batches.MORE
    return table, stop, status


def _payload(data: memoryview, row: Sequence[int]) -> bytes:
    return bytes(data[row[POSITION] + HEADER : row[POSITION] + row[BYTES]])


def _bad_batch(walk: _Walk, row: LongArray, code: SegmentCode, got: str, expected: str) -> Damage:
    start = walk.window.start + int(row[POSITION])
    return Damage(code, walk.segment.name, start, start + int(row[BYTES]), int(row[BASE]), got, expected)


def _bad_records(walk: _Walk, row: LongArray, at: int) -> Damage:
    got = f"records that go wrong at byte {at - int(row[POSITION]) if not row[ATTRIBUTES] & CODEC else at}"
    return _bad_batch(walk, row, SegmentCode.BAD_RECORDS, got, f"{int(row[COUNT])} records, to the last byte")
