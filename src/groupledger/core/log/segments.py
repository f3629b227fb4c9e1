"""Read segments of a log partition from a broker's disk: record batches into records.

Format: Kafka's documentation, "Message Format" (record batches of magic 2). Pure code over bytes of files opened
elsewhere; the decompressor is an argument.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from io import BufferedIOBase
from typing import TYPE_CHECKING, NamedTuple

import google_crc32c
import numpy as np

from groupledger.core.faults import Code
from groupledger.core.log import record_batches
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT
from groupledger.core.log.record_batches import (
    ATTRIBUTES,
    BASE,
    BEFORE_LENGTH,
    BYTES,
    CHECKED_FROM,
    CODEC,
    CONTROL,
    COUNT,
    CRC_AT,
    HEADER,
    LAST_DELTA,
    LEAST_LENGTH,
    MAGIC,
    MAGIC_AT,
    MAX_TIME,
    PLAIN,
    POSITION,
    PRODUCER,
    TRANSACTIONAL,
    FoundRecords,
    RecordColumns,
    base_at,
    joined_records,
    length_at,
    mark,
    plain_records,
    size_at,
)

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import LongArray


# Read a log partition from its segments: valid records, damage, and counts of everything else.
#
# One pass. A batch is accepted if its checksum is correct and its offsets follow those before it and precede the next
# segment's. Damage ends at the next acceptable batch, or with its segment. The end of the last segment may be torn: the
# broker died while it wrote.

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
            joined = np.isin(kinds, JOINED)
            for codec in JOINED if joined.any() else ():
                yield from self._joined(walk, data, table[kinds == codec], codec)
            for row in table[(kinds != PLAIN) & ~joined]:
                yield from self._special(walk, data, row)
            table = table[kinds == PLAIN]
        while len(table):
            found = plain_records(data, table, keep_commits=self._commits)
            yield from self._counted(found, table[: found.bad])
            if found.bad is None:
                return
            yield _bad_records(walk, table[found.bad], found.at)
            table = table[found.bad + 1 :]

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
            if found is not None and found.bad is None:
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
        found = joined_records(payload, row.reshape(1, -1), keep_commits=self._commits or is_control)
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
        self.upper = record_batches.NO_UPPER if upper is None else upper
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
            continues = status == record_batches.WHOLE or (status == record_batches.MORE and not window.at_end)
            need = marked[1] - stop + record_batches.next_size(data, marked[1]) if continues else HEADER
            yield data, table, None
            if len(table):
                self.least = int(table[-1, BASE] + table[-1, LAST_DELTA]) + 1
            self.position += stop - first
            if failed is not None:
                raise failed
            if continues:
                continue
            judged = judge(window, self.position, status, self.least, self.upper, is_last=self.is_last)
            if isinstance(judged, int):
                self.torn += judged > 0
                return
            damage = self.damage(*judged)
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
    if status == record_batches.BACKWARD and len(table):
        last, following = table[-1], record_batches.base_at(data, stop)
        before = int(table[-2, BASE] + table[-2, LAST_DELTA]) + 1 if len(table) > 1 else least
        if before <= following and last[BASE] != before:
            return table[:-1], int(last[POSITION]), record_batches.BACKWARD
    elif status in (record_batches.WHOLE, record_batches.MORE) and len(table) and not keep_last:
        return table[:-1], int(table[-1, POSITION]), record_batches.MORE
    return table, stop, status


def _payload(data: memoryview, row: Sequence[int]) -> bytes:
    return bytes(data[row[POSITION] + HEADER : row[POSITION] + row[BYTES]])


def _bad_batch(walk: _Walk, row: LongArray, code: SegmentCode, got: str, expected: str) -> Damage:
    start = walk.window.start + int(row[POSITION])
    return Damage(code, walk.segment.name, start, start + int(row[BYTES]), int(row[BASE]), got, expected)


def _bad_records(walk: _Walk, row: LongArray, at: int) -> Damage:
    got = f"records that go wrong at byte {at - int(row[POSITION]) if not row[ATTRIBUTES] & CODEC else at}"
    return _bad_batch(walk, row, SegmentCode.BAD_RECORDS, got, f"{int(row[COUNT])} records, to the last byte")


# Hold records of transactions until their producer's marker: they count if it says COMMIT.
#
# Offset commits of a transaction are the only such records of `__consumer_offsets`; group state never is.


class Marker(Enum):
    """The content of a control record's key, after its int16 version."""

    ABORT = b"\x00\x00"
    COMMIT = b"\x00\x01"


@dataclass(slots=True)
class Held:
    """What one producer wrote since its last marker."""

    records: list[RecordColumns] = field(default_factory=list)
    offset_commits: int = 0
    count: int = 0


class Transactions:
    """The open transactions, by producer id."""

    def __init__(self) -> None:
        self._open: defaultdict[int, Held] = defaultdict(Held)
        self._given_up = 0

    def hold(self, producer: int, records: tuple[RecordColumns, ...], offset_commits: int, count: int) -> None:
        """Keep the records of a transactional batch of `count` records."""
        held = self._open[producer]
        held.records.extend(records)
        held.offset_commits += offset_commits
        held.count += count

    def end(self, producer: int) -> Held:
        """Return what the producer's marker decides; nothing if the log begins mid-transaction, or if it was empty."""
        return self._open.pop(producer, Held())

    def doubt(self) -> None:
        """Discard the open transactions: a marker may have been lost, so the next one may not be theirs."""
        self._given_up += sum(held.count for held in self._open.values())
        self._open.clear()

    def undecided(self) -> int:
        """Return the number of records without a marker that is certainly theirs."""
        return self._given_up + sum(held.count for held in self._open.values())


def marker(records: tuple[RecordColumns, ...]) -> Marker | None:
    """Return the marker in a control batch; None for a control record of another kind."""
    for found in records:
        for _, _, key, _ in found:
            if key is not None and key[2:4] in (Marker.ABORT.value, Marker.COMMIT.value):
                return Marker(key[2:4])
    return None


# Hold a part of a file in memory, which moves forward: never the whole of a large segment.

WINDOW = 4 << 20


class FileWindow:
    """`data` are the bytes of a file from `start` on. `size` is the file's when it was opened: a broker may append.

    The memory of `data` is reused: copy what must survive the next move.
    """

    def __init__(self, file: BufferedIOBase, size: int) -> None:
        self.size = size
        self.start = 0
        self.searched = 0  # bytes whose checksums were computed in search of a batch
        self.data = memoryview(b"")
        self._file = file
        self._memory = bytearray()

    @property
    def at_end(self) -> bool:
        """Return whether the window reaches the end of the file."""
        return self.start + len(self.data) == self.size

    def hold(self, position: int, least: int) -> int:
        """Return the index in `data` of the byte at `position`, with `least` bytes from it on, or all up to the end.

        OSError if the file has become shorter, or if the disk does not return the bytes.
        """
        least = min(least, self.size - position)
        at = position - self.start
        if at < 0 or at + least > len(self.data):
            held = bytes(self.data[at:]) if 0 <= at <= len(self.data) else b""
            wanted = min(max(WINDOW, least), self.size - position)
            try:
                self._read(held, position, wanted)
            except OSError:  # the unreadable part may be beyond what is needed
                self._read(held, position, least)
            at = 0
        if at + least > len(self.data):
            raise OSError(f"the file ends at byte {self.start + len(self.data)}, and had {self.size} bytes when opened")
        return at

    def fails_to_hold(self, position: int, least: int) -> OSError | None:
        """Do as `hold`, but return the error instead of raising it; the bytes held before stay."""
        try:
            self.hold(position, least)
        except OSError as error:
            return error
        return None

    def _read(self, held: bytes, position: int, size: int) -> None:
        """Move to `position`, with `size` bytes or as many as the file has; keep the first, `held`, if it fails."""
        if len(self._memory) < size:
            self._memory = bytearray(size)
        memory = memoryview(self._memory)
        memory[: len(held)] = held
        self.data, self.start = memory[: len(held)].toreadonly(), position
        self._file.seek(position + len(held))
        count = self._file.readinto(memory[len(held) : size])
        self.data = memory[: len(held) + count].toreadonly()

    def find(self, byte: int, at: int) -> int:
        """Return the index of the byte in `data` from `at` on; -1 if absent."""
        return self._memory.find(byte, at, len(self.data))

    def peek(self, position: int, size: int) -> bytes:
        """Return up to `size` bytes at `position`."""
        at = self.hold(position, size)
        return bytes(self.data[at : at + size])

    def written_end(self, position: int) -> int:
        """Return where, from `position` on, only zero bytes follow: allocated but not written by the broker."""
        found = position
        while position < self.size:
            at = self.hold(position, 1)
            chunk = bytes(self.data[at:])
            written = len(chunk.rstrip(b"\0"))
            found = position + written if written else found
            position += len(chunk)
        return found


# Describe damage to a segment, each kind with a code to count by and a message that names file and byte.


class SegmentCode(Code):
    """Why bytes of a segment are not records."""

    OLD_MAGIC = "OLD_MAGIC", "messages of magic 0 or 1, of before Kafka 0.11; a run of them is one row"
    BAD_MAGIC = "BAD_MAGIC", "the header of a batch names a magic that Kafka does not have"
    BAD_LENGTH = "BAD_LENGTH", "shorter than a header, longer than the rest of the file or than is held in memory"
    BAD_CRC = "BAD_CRC", "bytes that do not give the checksum of the batch"
    BAD_HEADER = "BAD_HEADER", "the checksum is right, and the numbers of the header contradict each other"
    OFFSETS_BACKWARD = "OFFSETS_BACKWARD", "offsets below those of the batch before"
    OFFSETS_BEYOND = "OFFSETS_BEYOND", "offsets as high as those of the next segment"
    BAD_RECORDS = "BAD_RECORDS", "the checksum is right, and the records are not what the header says"
    UNKNOWN_CODEC = "UNKNOWN_CODEC", "a codec that Kafka does not have"
    BAD_COMPRESSION = "BAD_COMPRESSION", "bytes that the codec did not write"
    SEGMENT_CUT = "SEGMENT_CUT", "a segment that is not the last ends within a batch"
    ZERO_BYTES = "ZERO_BYTES", "zeros where batches should be"
    READ_ERROR = "READ_ERROR", "the disk does not give the bytes; the rest of that segment is lost"


@dataclass(frozen=True, slots=True)
class Damage:
    """Bytes of a file, from `start` to before `end`, that yielded no record. `offset`: the least they may hold."""

    code: SegmentCode
    file: str
    start: int
    end: int
    offset: int
    got: str
    expected: str

    @property
    def message(self) -> str:
        """Say what is damaged, where, got, expected, and where reading continued."""
        where = f"{self.file}, bytes {self.start} to {self.end - 1}"
        return f"{where}: got {self.got}; expected {self.expected}; the records before and behind are read"

    def and_then(self, other: Damage) -> Damage | None:
        """Merge with `other` if it is the same damage at the next byte; otherwise return None."""
        if (self.code, self.file, self.end) != (other.code, other.file, other.start):
            return None
        return replace(self, end=other.end)


# Find where reading continues after bytes that are no batch, and whether they are a torn tail or damage.

MOST_CHECKED = 256 << 20
"""Bytes whose checksums a search may compute per segment: bytes forged to look like batches must not take forever."""
LEAST_ZEROS = 16
"""Zero bytes at the end of a file that show that what precedes them was cut: a batch may well end in a few."""
SECTOR = 512
"""If the file ends with the batch, a disk left the zeros, as it writes this many bytes at once."""


class Lost(NamedTuple):
    """Damage up to `end`."""

    code: SegmentCode
    end: int
    got: str
    expected: str


_CODES = {
    record_batches.MORE: SegmentCode.SEGMENT_CUT,
    record_batches.ZEROS: SegmentCode.ZERO_BYTES,
    record_batches.OLD_MAGIC: SegmentCode.OLD_MAGIC,
    record_batches.BAD_MAGIC: SegmentCode.BAD_MAGIC,
    record_batches.BAD_LENGTH: SegmentCode.BAD_LENGTH,
    record_batches.BACKWARD: SegmentCode.OFFSETS_BACKWARD,
    record_batches.BEYOND: SegmentCode.OFFSETS_BEYOND,
    record_batches.BAD_HEADER: SegmentCode.BAD_HEADER,
    record_batches.BAD_CRC: SegmentCode.BAD_CRC,
}


def judge(window: FileWindow, position: int, status: int, least: int, upper: int, *, is_last: bool) -> int | Lost:
    """Classify the bytes at `position`, where marking stopped with `status`.

    Return the damage, or, at the end of what the broker wrote, the bytes of an incomplete batch: 0 if only allocated
    bytes follow.
    """
    left = window.size - position
    header = window.peek(position, HEADER)
    if status in (record_batches.BACKWARD, record_batches.BEYOND, record_batches.BAD_HEADER) and not _is_sound(
        window, position, header
    ):
        status = record_batches.BAD_CRC
    end = _next(window, position, status, least, upper)
    if end == window.size:
        torn = _torn(window, position, status, header) if is_last else None
        if torn is not None:
            return torn
        if len(header) < HEADER or (
            status == record_batches.BAD_LENGTH and left < size_at(header, 0) <= record_batches.MOST_BYTES
        ):
            return Lost(SegmentCode.SEGMENT_CUT, end, f"the end of the file after {left} bytes", "a whole batch")
    got, expected = _described(header, status, left, least, upper)
    return Lost(_CODES[status], end, got, expected)


def _torn(window: FileWindow, position: int, status: int, header: bytes) -> int | None:
    """Return the tail's size, if the broker's death explains it: the file ends, or zeros begin, within the batch."""
    written = window.written_end(position)
    left, zeros = window.size - position, window.size - written
    if len(header) < HEADER or written == position:
        return written - position
    size = size_at(header, 0)
    if (
        status == record_batches.BAD_LENGTH
        and left <= record_batches.MOST_BYTES
        and _sum_is_right(window.peek(position, left))
    ):
        return None  # the batch is complete: its length is wrong
    missing = position + size - written
    in_zeros = missing >= LEAST_ZEROS and (size < left or written // SECTOR < (position + size - 1) // SECTOR)
    if zeros >= LEAST_ZEROS and (written - position < HEADER or in_zeros):
        return written - position
    cut = status == record_batches.BAD_LENGTH and size > left and header[MAGIC_AT] <= MAGIC
    return written - position if cut else None


def _next(window: FileWindow, position: int, status: int, least: int, upper: int) -> int:
    """Return the first position after it to continue at; the end of the file if there is none.

    If this batch's length leads to what looks like a batch, that is the next one, sound or not: bytes within a damaged
    batch that only look like a batch do not count. Otherwise it is the first sound batch, wherever it begins.
    """
    following = position
    while window.size - following >= HEADER:
        header = window.peek(following, HEADER)
        if length_at(header, 0) < record_batches.LEAST_OLD_LENGTH:
            break
        following += size_at(header, 0)
        if following >= window.size:
            if following == window.size:
                return following
            break
        header = window.peek(following, HEADER)
        if _looks_like_batch(header, 0, window.size - following, least, upper):
            return following
        if status != record_batches.OLD_MAGIC or header[MAGIC_AT : MAGIC_AT + 1] > b"\1":
            break
    return _searched(window, position + 1, least, upper)


def _is_sound(window: FileWindow, position: int, header: bytes) -> bool:
    return _sum_is_right(window.peek(position, size_at(header, 0)))


def _searched(window: FileWindow, position: int, least: int, upper: int) -> int:
    """Return the first batch from `position` on, wherever it begins, by searching for its magic."""
    while window.size - position >= HEADER:
        magic = window.find(MAGIC, window.hold(position, HEADER) + MAGIC_AT)
        start = magic - MAGIC_AT
        if magic < 0 or start + HEADER > len(window.data):
            position = max(position + 1, window.start + len(window.data) - HEADER + 1)
            continue
        position = window.start + start
        if _looks_like_batch(window.data, start, window.size - position, least, upper):
            window.searched += size_at(window.data, start)
            if window.searched > MOST_CHECKED:
                return window.size
            if _is_sound(window, position, bytes(window.data[start : start + HEADER])):
                return position
        position += 1
    return window.size


def _looks_like_batch(data: bytes | memoryview, start: int, left: int, least: int, upper: int) -> bool:
    """Return whether `start` holds a header that `mark` would accept."""
    if len(data) - start < HEADER or data[start + MAGIC_AT] != MAGIC:
        return False
    length = length_at(data, start)
    if not LEAST_LENGTH <= length <= min(left - BEFORE_LENGTH, record_batches.MOST_BYTES):
        return False
    last = int.from_bytes(data[start + 23 : start + 27], "big", signed=True)
    count = int.from_bytes(data[start + 57 : start + 61], "big", signed=True)
    base = base_at(data, start)
    return least <= base and 0 <= count <= last + 1 and base + last < min(upper, record_batches.NO_UPPER)


def _sum_is_right(batch: bytes) -> bool:
    return len(batch) >= HEADER and _said_sum(batch) == google_crc32c.value(batch[CHECKED_FROM:])


def _said_sum(data: bytes) -> int:
    return int.from_bytes(data[CRC_AT:CHECKED_FROM], "big")


def _described(header: bytes, status: int, left: int, least: int, upper: int) -> tuple[str, str]:
    """Say what was found, and what was expected."""
    base = base_at(header, 0)
    most = min(left - BEFORE_LENGTH, record_batches.MOST_BYTES)
    return {
        record_batches.ZEROS: ("zero bytes", "a record batch"),
        record_batches.OLD_MAGIC: (
            f"messages of magic {header[MAGIC_AT]}",
            f"magic {MAGIC}: batches of Kafka 0.11 or newer",
        ),
        record_batches.BAD_MAGIC: (f"magic {header[MAGIC_AT]}", f"magic {MAGIC}, as in every record batch"),
        record_batches.BAD_LENGTH: (f"length {length_at(header, 0)}", f"{LEAST_LENGTH} to {most}"),
        record_batches.BAD_CRC: ("bytes that do not give the batch's checksum", f"CRC-32C {_said_sum(header):08x}"),
        record_batches.BACKWARD: (
            f"base offset {base}, which those around it contradict",
            f"offsets that rise, from {least} on",
        ),
        record_batches.BEYOND: (f"base offset {base}", f"offsets below {upper}, where the next segment begins"),
        record_batches.BAD_HEADER: (
            "counts of records and of offsets that contradict each other",
            "as many offsets or more",
        ),
    }[status]
