"""One codec for each (message, version), built from its spec when first asked for, then a chain of closures."""

from __future__ import annotations

import json
import pkgutil
import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cache, lru_cache
from operator import attrgetter
from struct import Struct
from struct import error as StructError
from typing import Any, NamedTuple, TypeVar

from groupledger.core.faults import Code, Fault
from groupledger.core.wire.records import SHAPES, Tagged

NEWEST = 32767
"""The last version of an open range such as "2+"."""


class Versions(NamedTuple):
    """A closed range of versions; empty if `first > last`."""

    first: int
    last: int

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last


NO_VERSIONS = Versions(0, -1)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a message or struct. `type` is the item's type where `is_array`; `fields` are a struct's own."""

    name: str
    type: str
    is_array: bool
    versions: Versions
    nullable: Versions
    tagged: Versions
    tag: int | None
    default: str | None
    fields: tuple[Field, ...] | None


@dataclass(frozen=True, slots=True)
class Spec:
    """One message: its record type (None outside of the offsets log), versions and fields."""

    name: str
    type_id: int | None
    versions: Versions
    flexible: Versions
    fields: tuple[Field, ...]


@cache
def load_spec(name: str) -> Spec:
    """Return the vendored spec of this name: `load_spec("GroupMetadataValue").versions` -> `Versions(0, 4)`."""
    raw = pkgutil.get_data(__package__, f"specs/{name}.json")
    if raw is None:
        raise FileNotFoundError(f"spec {name!r} is not among the vendored ones")
    lines = raw.decode().splitlines()
    message = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    structs = {struct["name"]: struct["fields"] for struct in message.get("commonStructs", ())}
    return Spec(
        name=message["name"],
        type_id=message.get("apiKey"),
        versions=parse_versions(message["validVersions"]),
        flexible=parse_versions(message["flexibleVersions"]),
        fields=_fields(message["fields"], structs),
    )


def parse_versions(text: str) -> Versions:
    """`"0-4"`, `"3"`, `"2+"` or `"none"` as a range."""
    if text == "none":
        return NO_VERSIONS
    if text.endswith("+"):
        return Versions(int(text[:-1]), NEWEST)
    first, _, last = text.partition("-")
    return Versions(int(first), int(last or first))


def snake_case(name: str) -> str:
    """Kafka's field names in Python's spelling: `"RebalanceTimeoutMs"` -> `"rebalance_timeout_ms"`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _fields(raw: list[dict[str, Any]], structs: dict[str, Any]) -> tuple[Field, ...]:
    return tuple(_field(field, structs) for field in raw)


def _field(raw: dict[str, Any], structs: dict[str, Any]) -> Field:
    item = raw["type"].removeprefix("[]")
    own = raw.get("fields", structs.get(item))
    default = raw.get("default", "")
    return Field(
        name=snake_case(raw["name"]),
        type=item,
        is_array=raw["type"].startswith("[]"),
        versions=parse_versions(raw["versions"]) if "versions" in raw else parse_versions(raw["taggedVersions"]),
        nullable=parse_versions(raw.get("nullableVersions", "none")),
        tagged=parse_versions(raw.get("taggedVersions", "none")),
        tag=raw.get("tag"),
        default=None if default in (None, "null") else str(default),
        fields=None if own is None else _fields(own, structs),
    )


MakeRecord = Callable[[list[Any]], Any]
Take = Callable[[Any], Sequence[Any]]
TAGGED = "tagged"


@cache
def codec(message: str, version: int) -> Wire:
    """Return the codec of a message at a version that its spec knows; `DecodeFault` UNKNOWN_VERSION for another."""
    spec = load_spec(message)
    if version not in spec.versions:
        expected = f"{spec.versions.first} to {spec.versions.last} (a newer Kafka, or not this record at all)"
        raise fault(DecodeCode.UNKNOWN_VERSION, message, 0, f"version {version}", expected)
    return _Builder(spec, version).struct(spec.fields, message)


class _Builder:
    """Builds the closures of one message at one version; `path` names a field as in `SHAPES`."""

    def __init__(self, spec: Spec, version: int) -> None:
        self.name = spec.name
        self.version = version
        self.flexible = version in spec.flexible

    def struct(self, fields: tuple[Field, ...], path: str) -> Wire:
        """Fields in a row, then (flexible versions) the tagged section."""
        tagged = [field for field in fields if self.version in field.tagged]
        plain = [field for field in fields if field not in tagged]
        if tuple(plain + tagged) != fields:
            raise ValueError(f"spec of {path}: a tagged field before a plain one; expected tagged fields last")
        wires = [self.field(field, path) for field in plain]
        known = {field.tag: self.present(field, f"{path}.{field.name}") for field in tagged if field.tag is not None}
        make, take = _shape(path, [field.name for field in fields], self.flexible)
        if not self.flexible:
            return plain_struct(wires, make, take)
        return _flexible_struct(wires, known, make, take, self.what(path))

    def field(self, field: Field, path: str) -> Wire:
        """Return a field at this version: absent, or as it stands in the bytes."""
        if self.version not in field.versions:
            return _absent(field, self.what(f"{path}.{field.name}"))
        return self.present(field, f"{path}.{field.name}")

    def present(self, field: Field, path: str) -> Wire:
        """One field's bytes: an array, a nullable struct or a single value."""
        nullable = self.version in field.nullable
        if field.is_array:
            bulk = INTEGERS[field.type][1] if field.type in INTEGERS else ""
            item = self.single(field, path, nullable=False)
            return array(self.what(path), item, nullable=nullable, compact=self.flexible, bulk=bulk)
        wire = self.single(field, path, nullable=nullable)
        if field.fields is not None and nullable:
            return _nullable_struct(wire, self.what(path), tagged=self.version in field.tagged)
        return wire

    def single(self, field: Field, path: str, *, nullable: bool) -> Wire:
        """One value of the field's (or item's) type."""
        what = self.what(path)
        if field.fields is not None:
            return self.struct(field.fields, path)
        if field.type in INTEGERS:
            return integer(field.type, what, -1 if _means_absent(field) else None)
        if field.type == "string":
            return text(what, nullable=nullable, compact=self.flexible)
        if field.type == "bytes":
            return blob(what, nullable=nullable, compact=self.flexible)
        if field.type == "uuid":
            return uuid(what)
        raise ValueError(f"{what} is of type {field.type!r}; expected a type of the vendored specs")

    def what(self, path: str) -> str:
        """Return the field for a person: "GroupMetadataValue v3 members.leader"."""
        return f"{self.name} v{self.version} {path.removeprefix(self.name).lstrip('.')}".rstrip()


def _means_absent(field: Field) -> bool:
    """Whether -1 means absent: of an integer with that default. A tagged one is absent when it is not sent."""
    return field.default == "-1" and field.tag is None and not field.is_array


def _absent(field: Field, what: str) -> Wire:
    """Return a field that this version lacks: it reads as its default, and refuses to drop a value."""
    default = _default(field)

    def read(_: bytes, position: int) -> tuple[Any, int]:
        return default, position

    def write(value: Any, _: bytearray) -> None:
        if value != default:
            raise ValueError(f"{what} is {value!r}; expected {default!r}: this version has no such field")

    return Wire(read, write, 0)


def _default(field: Field) -> Any:
    if field.is_array:
        return ()
    if field.default is None or field.tag is not None or field.fields is not None or _means_absent(field):
        return None
    if field.type in INTEGERS:
        return int(field.default or 0)
    return {"string": "", "bytes": b"", "uuid": uuid_text(bytes(UUID_BYTES))}[field.type]


def _shape(path: str, names: list[str], flexible: bool) -> tuple[MakeRecord, Take]:
    """How a struct's values become its Python type and are taken out again; `flexible` adds the unknown tagged."""
    shape = SHAPES.get(path, dict)
    if shape is tuple:
        return tuple, tuple
    if shape is not dict:
        attributes = [field.name for field in dataclass_fields(shape)][: len(names) + flexible]
        return lambda values: shape(*values), attrgetter(*attributes) if len(attributes) > 1 else _only(attributes[0])
    if not flexible:
        return lambda values: dict(zip(names, values, strict=True)), lambda value: [value[name] for name in names]
    return _make_dict(names), lambda value: [*(value[name] for name in names), value.get(TAGGED, ())]


def _only(name: str) -> Take:
    get = attrgetter(name)
    return lambda value: (get(value),)


def _make_dict(names: list[str]) -> MakeRecord:
    def make(values: list[Any]) -> dict[str, Any]:
        fields = dict(zip(names, values, strict=False))
        if values[-1]:
            fields[TAGGED] = values[-1]
        return fields

    return make


def plain_struct(wires: Sequence[Wire], make: MakeRecord = tuple, take: Take = tuple) -> Wire:
    """Fields in a row, nothing between them; a tuple unless `make` and `take` say otherwise."""
    readers = tuple(wire.read for wire in wires)
    writers = tuple(wire.write for wire in wires)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        values = []
        for reader in readers:
            value, position = reader(data, position)
            values.append(value)
        return make(values), position

    def write(value: Any, out: bytearray) -> None:
        for writer, item in zip(writers, take(value), strict=True):
            writer(item, out)

    return Wire(read, write, sum(wire.least for wire in wires))


def _flexible_struct(wires: list[Wire], known: dict[int, Wire], make: MakeRecord, take: Take, what: str) -> Wire:
    plain = plain_struct(wires, list, list)
    read_tagged, write_tagged = _tagged_section(known, what)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        values, position = plain.read(data, position)
        tagged, position = read_tagged(data, position)
        return make(values + tagged), position

    def write(value: Any, out: bytearray) -> None:
        values = take(value)
        plain.write(values[: len(wires)], out)
        write_tagged(values[len(wires) :], out)

    return Wire(read, write, plain.least + 1)


def _tagged_section(known: Mapping[int, Wire], what: str) -> tuple[ReadField, Writer]:
    """Read and write [value of each known tag or None..., unknown tagged]; KIP-482.

    A known tag that was sent as null is kept among the unknown ones, so that it is not written as absent.
    """
    tags = sorted(known)
    nothing: list[Any] = [*(None for _ in tags), ()]

    def read(data: bytes, position: int) -> tuple[list[Any], int]:
        if position < len(data) and not data[position]:
            return nothing, position + 1
        values: dict[int, Any] = {}
        unknown: list[tuple[int, bytes]] = []
        for tag, start, end in _tagged_spans(data, position, what):
            position = end
            value = _read_span(known[tag], data, start, end, what) if tag in known else None
            if value is None:
                unknown.append((tag, data[start:end]))
            values[tag] = value
        return [*(values.get(tag) for tag in tags), tuple(unknown)], position

    def write(values: Sequence[Any], out: bytearray) -> None:
        unknown: Tagged = values[len(tags)]
        sent = dict(unknown)
        for tag, value in zip(tags, values, strict=False):
            if value is not None:
                sent[tag] = _written(known[tag], value)
        write_uvarint(len(sent), out)
        for tag in sorted(sent):
            write_uvarint(tag, out)
            write_uvarint(len(sent[tag]), out)
            out += sent[tag]

    return read, write


def _tagged_spans(data: bytes, position: int, what: str) -> list[tuple[int, int, int]]:
    """(tag, start, end) of each tagged field of the section at `position`."""
    count, position = read_uvarint(data, position, what)
    if 2 * count > len(data) - position:
        raise truncated(what, position, 2 * count, len(data) - position)
    spans = []
    last = -1
    for _ in range(count):
        tag, start = read_uvarint(data, position, what)
        if tag <= last:
            raise fault(DecodeCode.BAD_TAG, what, position, f"tag {tag}", f"a tag above {last}")
        size, start = read_uvarint(data, start, what)
        if size > len(data) - start:
            raise truncated(what, start, size, len(data) - start)
        last, position = tag, start + size
        spans.append((tag, start, position))
    return spans


def _read_span(wire: Wire, data: bytes, start: int, end: int, what: str) -> Any:
    value, stop = wire.read(data, start)
    if stop != end:
        raise fault(DecodeCode.BAD_LENGTH, what, start, f"a tagged field of {stop - start} bytes", f"{end - start}")
    return value


def _written(wire: Wire, value: Any) -> bytes:
    out = bytearray()
    wire.write(value, out)
    return bytes(out)


def _nullable_struct(wire: Wire, what: str, *, tagged: bool) -> Wire:
    """Return a struct behind a marker byte: -1 null, 1 present; as a tagged field 0 null, 1 present."""
    null = b"\x00" if tagged else b"\xff"

    def read(data: bytes, position: int) -> tuple[Any, int]:
        marker = data[position : position + 1]
        if marker == null:
            return None, position + 1
        if not marker:
            raise truncated(what, position, 1, 0)
        if marker != b"\x01":
            raise fault(DecodeCode.BAD_MARKER, what, position, marker.hex(), f"{null.hex()} (null) or 01 (present)")
        return wire.read(data, position + 1)

    def write(value: Any, out: bytearray) -> None:
        out += null if value is None else b"\x01"
        if value is not None:
            wire.write(value, out)

    return Wire(read, write, 1)


# The value types of Kafka's protocol: integers, varints, text, bytes, uuids, arrays; classic and compact.
#
# A reader takes (bytes, position) and gives (value, next position), or raises `DecodeFault`. A writer appends to a
# bytearray. What a reader accepts its writer gives back byte for byte: spellings that Kafka never writes (a varint with
# needless zero bytes, another negative number for null) are faults, so that no record changes on its way through.
# Source: Kafka protocol guide, "Protocol Primitive Types"; KIP-482 for compact types and tagged fields.

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
    """Return a big-endian integer; the value `absent`, if given, is None in Python."""
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
    """Read an unsigned number below 2**32, seven bits a byte, lowest first: `b"\\xac\\x02"` -> 300."""
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
    """Read the length of text, bytes or an array: int16, int32 (null is -1) or "compact" (plus 1, null is 0)."""

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
    return _sized("compact" if compact else "int32", what, nullable)


def _sized(kind: str, what: str, nullable: bool) -> Wire:
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

    return Wire(read, write, {"compact": 1, "int16": 2, "int32": 4}[kind])


def text(what: str, *, nullable: bool, compact: bool, errors: str = "strict") -> Wire:
    """UTF-8 text behind its length in bytes; null is None. `errors` as in `bytes.decode`: a fault for other bytes."""
    raw = _sized("compact" if compact else "int16", what, nullable)

    def read(data: bytes, position: int) -> tuple[str | None, int]:
        value, end = raw.read(data, position)
        if value is None:
            return None, end
        try:
            return value.decode(errors=errors), end
        except UnicodeDecodeError as error:
            at = end - len(value) + error.start
            raise fault(DecodeCode.BAD_UTF8, what, at, data[at:end][:4].hex(), "UTF-8 text") from None

    def read_short(data: bytes, position: int) -> tuple[str | None, int]:
        """Read the common case in one step; leave null and faults to `read`."""
        start = position + INT16.size
        try:
            end = start + INT16.unpack_from(data, position)[0]
            if start <= end <= len(data):
                return data[start:end].decode(), end
        except (StructError, UnicodeDecodeError):
            pass
        return read(data, position)

    def write(value: str | None, out: bytearray) -> None:
        raw.write(None if value is None else value.encode(), out)

    return Wire(read if compact else read_short, write, raw.least)


@lru_cache(maxsize=65536)
def uuid_text(raw: bytes) -> str:
    """16 bytes -> the 22 characters that Kafka prints: base64 with `-` and `_`, without padding."""
    return b2a_base64(raw, newline=False).decode().replace("+", "-").replace("/", "_")[:UUID_CHARACTERS]


def uuid_bytes(printed: str) -> bytes:
    """Return the 16 bytes of a printed uuid; ValueError for anything else."""
    try:
        raw = a2b_base64(printed.replace("-", "+").replace("_", "/") + "==")
    except ValueError:
        raw = b""
    if len(raw) != UUID_BYTES or uuid_text(raw) != printed:
        raise ValueError(f"uuid is {printed!r}; expected {UUID_CHARACTERS} characters of url-safe base64")
    return raw


def uuid(what: str) -> Wire:
    """Return a uuid, in Python as Kafka prints it."""

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


# Decoded values remembered by their bytes, within a limit.

MEMO_LIMIT_BYTES = 2 << 20
_T = TypeVar("_T")


class Memo(dict[bytes, _T]):
    """Values by the bytes that they are made of; starts over when the bytes kept exceed the limit.

    Values must be immutable. One whose bytes are a large part of the limit is made each time.
    """

    def __init__(self, make: Callable[[bytes], _T], limit_bytes: int = MEMO_LIMIT_BYTES) -> None:
        super().__init__()
        self.make = make
        self.limit_bytes = limit_bytes
        self.kept_bytes = 0

    def __missing__(self, data: bytes) -> _T:
        value = self.make(data)
        if len(data) > self.limit_bytes // 16:
            return value
        self.kept_bytes += len(data)
        if self.kept_bytes > self.limit_bytes:
            self.clear()
            self.kept_bytes = len(data)
        self[data] = value
        return value


# What can be wrong with bytes, each with a code to count by and a message that names the byte.


class DecodeCode(Code):
    """Why bytes did not decode."""

    TRUNCATED = "TRUNCATED", "the bytes end before the field does, or a length says more than is left"
    BAD_LENGTH = "BAD_LENGTH", "a negative length that does not mean null, or a tagged field of another size than said"
    BAD_UTF8 = "BAD_UTF8", "a text that is no UTF-8"
    BAD_VARINT = "BAD_VARINT", "a variable-length number of more than 32 bits, or longer than it need be"
    BAD_TAG = "BAD_TAG", "tags that do not rise"
    BAD_MARKER = "BAD_MARKER", 'the byte before a nullable struct is neither "null" nor "present"'
    NULL_FIELD = "NULL_FIELD", "null where the format allows none"
    UNKNOWN_VERSION = "UNKNOWN_VERSION", "a version of the record that Kafka 4.4 does not have"
    BAD_KEY_TYPE = "BAD_KEY_TYPE", "a negative record type"
    NO_KEY = "NO_KEY", "a record without a key"
    BAD_PARTITION = "BAD_PARTITION", "a negative partition in an assignment"
    TRAILING_BYTES = "TRAILING_BYTES", "bytes left over where the version is known"


class DecodeFault(Fault):
    """Bytes that are not what they should be. The caller keeps the bytes; the message says where they went wrong."""


def fault(code: DecodeCode, what: str, position: int, got: str, expected: str) -> DecodeFault:
    """`fault(BAD_UTF8, "GroupMetadataValue v3 leader", 17, ...)` -> a fault that says what, where, got, expected."""
    return DecodeFault(code.value, f"{what}, byte {position}: got {got}; expected {expected}")


def truncated(what: str, position: int, needed: int, left: int) -> DecodeFault:
    """Return the fault of a field at `position` that needs `needed` bytes of which `left` are left."""
    return fault(DecodeCode.TRUNCATED, what, position, f"{left} bytes", f"{needed} or more (cut, or a wrong length)")


def require_partitions(assigned: Iterable[tuple[str, tuple[int, ...]]]) -> None:
    """Nothing where no partition is negative; else a `DecodeFault`: nobody can hold what is assigned there."""
    for topic, numbers in assigned:
        if numbers and min(numbers) < 0:
            message = f"assigned partition of {topic!r}: got {min(numbers)}; expected 0 or more"
            raise DecodeFault(DecodeCode.BAD_PARTITION.value, message)
