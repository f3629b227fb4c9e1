"""Find where reading continues after bytes that are no batch, and whether they are a torn tail or damage."""

from __future__ import annotations

from dataclasses import dataclass

import google_crc32c

from groupledger.core.segments import batches
from groupledger.core.segments.batches import (
    BEFORE_LENGTH,
    CHECKED_FROM,
    CRC_AT,
    HEADER,
    LEAST_LENGTH,
    MAGIC,
    MAGIC_AT,
    base_at,
    length_at,
    size_at,
)
from groupledger.core.segments.damage import SegmentCode
from groupledger.core.segments.window import FileWindow

MOST_CHECKED = 256 << 20
"""Bytes whose checksums a search may compute per segment: bytes forged to look like batches must not take forever."""
LEAST_ZEROS = 16
"""Zero bytes at the end of a file that show that what precedes them was cut: a batch may well end in a few."""
SECTOR = 512
"""If the file ends with the batch, a disk left the zeros, as it writes this many bytes at once."""


@dataclass(frozen=True, slots=True)
class Torn:
    """The end of what the broker wrote: `bytes` of an incomplete batch; 0 if only allocated bytes follow."""

    bytes: int


@dataclass(frozen=True, slots=True)
class Lost:
    """Damage up to `end`."""

    code: SegmentCode
    end: int
    got: str
    expected: str


_CODES = {
    batches.MORE: SegmentCode.SEGMENT_CUT,
    batches.ZEROS: SegmentCode.ZERO_BYTES,
    batches.OLD_MAGIC: SegmentCode.OLD_MAGIC,
    batches.BAD_MAGIC: SegmentCode.BAD_MAGIC,
    batches.BAD_LENGTH: SegmentCode.BAD_LENGTH,
    batches.BACKWARD: SegmentCode.OFFSETS_BACKWARD,
    batches.BEYOND: SegmentCode.OFFSETS_BEYOND,
    batches.BAD_HEADER: SegmentCode.BAD_HEADER,
    batches.BAD_CRC: SegmentCode.BAD_CRC,
}


def judge(window: FileWindow, position: int, status: int, least: int, upper: int, *, is_last: bool) -> Torn | Lost:
    """Classify the bytes at `position`, where marking stopped with `status`."""
    left = window.size - position
    header = window.peek(position, HEADER)
    if status in (batches.BACKWARD, batches.BEYOND, batches.BAD_HEADER) and not _is_sound(window, position, header):
        status = batches.BAD_CRC
    end = _next(window, position, status, least, upper)
    if end == window.size:
        torn = _torn(window, position, status, header) if is_last else None
        if torn is not None:
            return torn
        if len(header) < HEADER or (status == batches.BAD_LENGTH and left < size_at(header, 0) <= batches.MOST_BYTES):
            return Lost(SegmentCode.SEGMENT_CUT, end, f"the end of the file after {left} bytes", "a whole batch")
    got, expected = _described(header, status, left, least, upper)
    return Lost(_CODES[status], end, got, expected)


def _torn(window: FileWindow, position: int, status: int, header: bytes) -> Torn | None:
    """Return the tail, if the broker's death explains it: the file ends, or zeros begin, within the batch."""
    written = window.written_end(position)
    left, zeros = window.size - position, window.size - written
    if len(header) < HEADER or written == position:
        return Torn(written - position)
    size = size_at(header, 0)
    if status == batches.BAD_LENGTH and left <= batches.MOST_BYTES and _sum_is_right(window.peek(position, left)):
        return None  # the batch is complete: its length is wrong
    missing = position + size - written
    in_zeros = missing >= LEAST_ZEROS and (size < left or written // SECTOR < (position + size - 1) // SECTOR)
    if zeros >= LEAST_ZEROS and (written - position < HEADER or in_zeros):
        return Torn(written - position)
    cut = status == batches.BAD_LENGTH and size > left and header[MAGIC_AT] <= MAGIC
    return Torn(written - position) if cut else None


def _next(window: FileWindow, position: int, status: int, least: int, upper: int) -> int:
    """Return the first position after it to continue at; the end of the file if there is none.

    If this batch's length leads to what looks like a batch, that is the next one, sound or not: bytes within a damaged
    batch that only look like a batch do not count. Otherwise it is the first sound batch, wherever it begins.
    """
    following = position
    while window.size - following >= HEADER:
        header = window.peek(following, HEADER)
        if length_at(header, 0) < batches.LEAST_OLD_LENGTH:
            break
        following += size_at(header, 0)
        if following >= window.size:
            if following == window.size:
                return following
            break
        header = window.peek(following, HEADER)
        if _looks_like_batch(header, 0, window.size - following, least, upper):
            return following
        if status != batches.OLD_MAGIC or header[MAGIC_AT : MAGIC_AT + 1] > b"\1":
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
    if not LEAST_LENGTH <= length <= min(left - BEFORE_LENGTH, batches.MOST_BYTES):
        return False
    last = int.from_bytes(data[start + 23 : start + 27], "big", signed=True)
    count = int.from_bytes(data[start + 57 : start + 61], "big", signed=True)
    base = base_at(data, start)
    return least <= base and 0 <= count <= last + 1 and base + last < min(upper, batches.NO_UPPER)


def _sum_is_right(batch: bytes) -> bool:
    return len(batch) >= HEADER and _said_sum(batch) == google_crc32c.value(batch[CHECKED_FROM:])


def _said_sum(data: bytes) -> int:
    return int.from_bytes(data[CRC_AT:CHECKED_FROM], "big")


def _described(header: bytes, status: int, left: int, least: int, upper: int) -> tuple[str, str]:
    """Say what was found, and what was expected."""
    base = base_at(header, 0)
    most = min(left - BEFORE_LENGTH, batches.MOST_BYTES)
    return {
        batches.ZEROS: ("zero bytes", "a record batch"),
        batches.OLD_MAGIC: (f"messages of magic {header[MAGIC_AT]}", f"magic {MAGIC}: batches of Kafka 0.11 or newer"),
        batches.BAD_MAGIC: (f"magic {header[MAGIC_AT]}", f"magic {MAGIC}, as in every record batch"),
        batches.BAD_LENGTH: (f"length {length_at(header, 0)}", f"{LEAST_LENGTH} to {most}"),
        batches.BAD_CRC: ("bytes that do not give the batch's checksum", f"CRC-32C {_said_sum(header):08x}"),
        batches.BACKWARD: (
            f"base offset {base}, which those around it contradict",
            f"offsets that rise, from {least} on",
        ),
        batches.BEYOND: (f"base offset {base}", f"offsets below {upper}, where the next segment begins"),
        batches.BAD_HEADER: ("counts of records and of offsets that contradict each other", "as many offsets or more"),
    }[status]
