"""Record batches by hand, written apart from the reader: Kafka's message format from its documentation."""

from __future__ import annotations

import struct
from collections.abc import Sequence

import google_crc32c

COMMIT, ABORT = b"\x00\x00\x00\x01", b"\x00\x00\x00\x00"
"""Keys of transaction markers."""
TRANSACTIONAL, CONTROL, LOG_APPEND_TIME = 0x10, 0x20, 0x08
Given = tuple[bytes | None, bytes | None]


def varint(number: int) -> bytes:
    """Zigzag, seven bits a byte, lowest first."""
    number = number * 2 if number >= 0 else -number * 2 - 1
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def blob(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(delta: int, key: bytes | None, value: bytes | None, time: int = 0, headers: Sequence[Given] = ()) -> bytes:
    body = b"\x00" + varint(time) + varint(delta) + blob(key) + blob(value) + varint(len(headers))
    body += b"".join(blob(name) + blob(what) for name, what in headers)
    return varint(len(body)) + body


def batch(
    base: int,
    records: Sequence[bytes],
    *,
    attributes: int = 0,
    last_delta: int | None = None,
    count: int | None = None,
    producer: int = -1,
    magic: int = 2,
    payload: bytes | None = None,
    times: tuple[int, int] = (1_000, 1_000),
    epoch: int = 0,
) -> bytes:
    """A batch; `payload` in place of the records where they are compressed."""
    count = len(records) if count is None else count
    last_delta = max(0, len(records) - 1) if last_delta is None else last_delta
    checked = struct.pack(">hiqqqhii", attributes, last_delta, *times, producer, 0, 0, count)
    checked += b"".join(records) if payload is None else payload
    sum_of_it = google_crc32c.value(checked)
    return struct.pack(">qiibI", base, len(checked) + 9, epoch, magic, sum_of_it) + checked


def old_message(offset: int, magic: int, value: bytes = b"value") -> bytes:
    """A message of magic 0 or 1; its own checksum is not looked at."""
    body = struct.pack(">IBB", 7, magic, 0) + (b"\0" * 8 if magic else b"") + struct.pack(">ii", -1, len(value)) + value
    return struct.pack(">qi", offset, len(body)) + body


def group(name: str) -> bytes:
    """The key of a group's state (type 2)."""
    return b"\x00\x02" + struct.pack(">h", len(name)) + name.encode()


def commit(name: str, partition: int = 0) -> bytes:
    """The key of a committed offset (type 1)."""
    return b"\x00\x01" + struct.pack(">h", len(name)) + name.encode() + b"\x00\x01t" + struct.pack(">i", partition)


def marker(base: int, key: bytes, producer: int) -> bytes:
    """A control batch that ends a transaction."""
    value = b"\x00\x00\x00\x00\x00\x00"
    return batch(base, [record(0, key, value)], attributes=TRANSACTIONAL | CONTROL, producer=producer)
