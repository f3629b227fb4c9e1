"""The value types of Kafka's protocol: integers, varints, text, bytes, uuids, arrays; classic and compact.

A reader takes (bytes, position) and gives (value, next position), or raises `DecodeFault`. A writer appends to a
bytearray. What a reader accepts its writer gives back byte for byte: spellings that Kafka never writes (a varint with
needless zero bytes, another negative number for null) are faults, so that no record changes on its way through.
Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482 for compact types and tagged fields.
"""

from __future__ import annotations

from binascii import a2b_base64, b2a_base64
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple

from groupledger.core.wire.faults import DecodeCode, DecodeFault, fault, truncated

ReadField = Callable[[bytes, int], tuple[Any, int]]
Writer = Callable[[Any, bytearray], None]
Count = Callable[[bytes, int], tuple[int | None, int]]

INTEGERS = {"int8": ">b", "int16": ">h", "uint16": ">H", "int32": ">i", "int64": ">q"}
INT16 = Struct(">h")
INT32 = Struct(">i")
UUID_BYTES = 16
UUID_CHARACTERS = 22


class Wire(NamedTuple):
    """How one field stands in bytes; `least` is the smallest number of bytes it can take."""

    read: ReadField
    write: Writer
    least: int


def integer(kind: str, what: str, absent: int | None = None) -> Wire:
    """A big-endian integer; the value `absent`, if given, is None in Python."""
    shape = Struct(INTEGERS[kind])
    unpack, pack, size = shape.unpack_from, shape.pack, shape.size

    def read(data: bytes, position: int) -> tuple[int, int]:
        try:
            return unpack(data, position)[0], position + size
        except StructError:
            raise truncated(what, position, size, len(data) - position) from None

    def read_optional(data: bytes, position: int) -> tuple[int | None, int]:
        value, position = read(data, position)
        return (None if value == absent else value), position

    def write(value: int | None, out: bytearray) -> None:
        out += pack(absent if value is None else value)

    return Wire(read if absent is None else read_optional, write, size)


def read_uvarint(data: bytes, position: int, what: str) -> tuple[int, int]:
    """An unsigned number below 2**32, seven bits a byte, lowest first: `b"\\xac\\x02"` -> 300."""
    value = 0
    for index in range(5):
        if position + index >= len(data):
            raise truncated(what, position, index + 1, index)
        byte = data[position + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value >= 1 << 32 or (index and not byte):
                break
            return value, position + index + 1
    got = data[position : position + 5].hex()
    raise fault(DecodeCode.BAD_VARINT, what, position, got, "a shortest varint of 32 bits")


def write_uvarint(value: int, out: bytearray) -> None:
    """Append an unsigned varint: 300 -> `b"\\xac\\x02"`."""
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _size_reader(kind: str, what: str, nullable: bool) -> Count:
    """Reads the length before text, bytes or an array: int16, int32 (null is -1) or "compact" (plus 1, null is 0)."""

    def null(position: int, after: int) -> tuple[None, int]:
        if not nullable:
            raise fault(DecodeCode.NULL_FIELD, what, position, "null", "a value")
        return None, after

    def read_compact(data: bytes, position: int) -> tuple[int | None, int]:
        length, after = read_uvarint(data, position, what)
        return (length - 1, after) if length else null(position, after)

    unpack, size = (INT16.unpack_from, 2) if kind == "int16" else (INT32.unpack_from, 4)

    def read_classic(data: bytes, position: int) -> tuple[int | None, int]:
        try:
            length: int = unpack(data, position)[0]
        except StructError:
            raise truncated(what, position, size, len(data) - position) from None
        if length < -1:
            raise fault(DecodeCode.BAD_LENGTH, what, position, f"length {length}", "0 or more, or -1 for null")
        return (length, position + size) if length >= 0 else null(position, position + size)

    return read_compact if kind == "compact" else read_classic


def _write_size(kind: str, what: str, nullable: bool, length: int | None, out: bytearray) -> None:
    if length is None and not nullable:
        raise ValueError(f"{what} is None; expected a value (the spec allows no null)")
    if kind == "compact":
        write_uvarint(0 if length is None else length + 1, out)
    else:
        out += (INT16 if kind == "int16" else INT32).pack(-1 if length is None else length)


def blob(what: str, *, nullable: bool, compact: bool) -> Wire:
    """Bytes behind their length; null is None."""
    kind = "compact" if compact else "int32"
    read_size = _size_reader(kind, what, nullable)

    def read(data: bytes, position: int) -> tuple[bytes | None, int]:
        length, start = read_size(data, position)
        if length is None:
            return None, start
        end = start + length
        if end > len(data):
            raise truncated(what, start, length, len(data) - start)
        return data[start:end], end

    def write(value: bytes | None, out: bytearray) -> None:
        _write_size(kind, what, nullable, None if value is None else len(value), out)
        out += value or b""

    return Wire(read, write, 1 if compact else 4)


def text(what: str, *, nullable: bool, compact: bool, errors: str = "strict") -> Wire:
    """UTF-8 text behind its length in bytes; null is None. `errors` as in `bytes.decode`: a fault for other bytes."""
    kind = "compact" if compact else "int16"
    read_size = _size_reader(kind, what, nullable)

    def read(data: bytes, position: int) -> tuple[str | None, int]:
        length, start = read_size(data, position)
        if length is None:
            return None, start
        end = start + length
        if end > len(data):
            raise truncated(what, start, length, len(data) - start)
        try:
            return data[start:end].decode(errors=errors), end
        except UnicodeDecodeError as error:
            got = data[start + error.start : end][:4].hex()
            raise fault(DecodeCode.BAD_UTF8, what, start + error.start, got, "UTF-8 text") from None

    def read_short(data: bytes, position: int) -> tuple[str | None, int]:
        """The common case in one step; null and faults are left to `read`."""
        start = position + INT16.size
        try:
            end = start + INT16.unpack_from(data, position)[0]
            if start <= end <= len(data):
                return data[start:end].decode(), end
        except (StructError, UnicodeDecodeError):
            pass
        return read(data, position)

    def write(value: str | None, out: bytearray) -> None:
        raw = None if value is None else value.encode()
        _write_size(kind, what, nullable, None if raw is None else len(raw), out)
        out += raw or b""

    return Wire(read if compact else read_short, write, 1 if compact else 2)


@lru_cache(maxsize=65536)
def uuid_text(raw: bytes) -> str:
    """16 bytes -> the 22 characters that Kafka prints: base64 with `-` and `_`, without padding."""
    return b2a_base64(raw, newline=False).decode().replace("+", "-").replace("/", "_")[:UUID_CHARACTERS]


def uuid_bytes(printed: str) -> bytes:
    """The inverse of `uuid_text`; ValueError for anything else."""
    try:
        raw = a2b_base64(printed.replace("-", "+").replace("_", "/") + "==")
    except ValueError:
        raw = b""
    if len(raw) != UUID_BYTES or uuid_text(raw) != printed:
        raise ValueError(f"uuid is {printed!r}; expected {UUID_CHARACTERS} characters of url-safe base64")
    return raw


def canonical_uuid(printed: str) -> str:
    """A uuid in Kafka's spelling, or `DecodeFault`; librdkafka prints `+` and `/` where Kafka prints `-` and `_`.

    For topic ids of any source, so that they are equal to those in the log.
    """
    try:
        return uuid_text(uuid_bytes(printed.rstrip("=").replace("+", "-").replace("/", "_")))
    except ValueError:
        expected = f"{UUID_CHARACTERS} characters of base64, as Kafka prints a topic id"
        raise DecodeFault(DecodeCode.BAD_UUID.value, f"uuid is {printed!r}; expected {expected}") from None


def uuid(what: str) -> Wire:
    """A uuid, in Python as Kafka prints it."""

    def read(data: bytes, position: int) -> tuple[str, int]:
        end = position + UUID_BYTES
        if end > len(data):
            raise truncated(what, position, UUID_BYTES, len(data) - position)
        return uuid_text(data[position:end]), end

    def write(value: str, out: bytearray) -> None:
        out += uuid_bytes(value)

    return Wire(read, write, UUID_BYTES)


def array(what: str, item: Wire, *, nullable: bool, compact: bool, bulk: str = "") -> Wire:
    """Items behind their count, as a tuple; null is None. `bulk` is the `struct` letter of integers read at once."""
    kind = "compact" if compact else "int32"
    read_size = _size_reader(kind, what, nullable)
    read_item, write_item, least = item

    def read_count(data: bytes, position: int) -> tuple[int | None, int]:
        count, start = read_size(data, position)
        if count is not None and count * least > len(data) - start:
            raise truncated(what, start, count * least, len(data) - start)
        return count, start

    def read(data: bytes, position: int) -> tuple[tuple[Any, ...] | None, int]:
        count, position = read_count(data, position)
        if count is None:
            return None, position
        values = []
        for _ in range(count):
            value, position = read_item(data, position)
            values.append(value)
        return tuple(values), position

    def read_bulk(data: bytes, position: int) -> tuple[tuple[int, ...] | None, int]:
        count, position = read_count(data, position)
        if count is None:
            return None, position
        return _run_of(bulk, count)(data, position), position + count * least

    def write(values: tuple[Any, ...] | None, out: bytearray) -> None:
        _write_size(kind, what, nullable, None if values is None else len(values), out)
        for value in values or ():
            write_item(value, out)

    return Wire(read_bulk if bulk else read, write, 1 if compact else 4)


@lru_cache(maxsize=1024)
def _run_of(letter: str, count: int) -> Callable[[bytes, int], tuple[int, ...]]:
    return Struct(f">{count}{letter}").unpack_from
