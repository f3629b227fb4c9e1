"""One codec for each (message, version), built from its spec when first asked for, then a chain of closures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields as dataclass_fields
from functools import cache
from operator import attrgetter
from typing import Any

from groupledger.core.wire import primitives
from groupledger.core.wire.faults import DecodeCode, fault, truncated
from groupledger.core.wire.primitives import INTEGERS, ReadField, Wire, Writer, read_uvarint, write_uvarint
from groupledger.core.wire.records import SHAPES, Tagged
from groupledger.core.wire.spec import Field, Spec, load_spec

MakeRecord = Callable[[list[Any]], Any]
Take = Callable[[Any], Sequence[Any]]
TAGGED = "tagged"


@cache
def codec(message: str, version: int) -> Wire:
    """The codec of a message at a version that its spec knows; `DecodeFault` UNKNOWN_VERSION for another."""
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
        """A field at this version: absent, or as it stands in the bytes."""
        if self.version not in field.versions:
            return _absent(field, self.what(f"{path}.{field.name}"))
        return self.present(field, f"{path}.{field.name}")

    def present(self, field: Field, path: str) -> Wire:
        """One field's bytes: an array, a nullable struct or a single value."""
        nullable = self.version in field.nullable
        if field.is_array:
            bulk = INTEGERS[field.type][1] if field.type in INTEGERS else ""
            item = self.single(field, path, nullable=False)
            return primitives.array(self.what(path), item, nullable=nullable, compact=self.flexible, bulk=bulk)
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
            return primitives.integer(field.type, what, -1 if _means_absent(field) else None)
        if field.type == "string":
            return primitives.text(what, nullable=nullable, compact=self.flexible)
        if field.type == "bytes":
            return primitives.blob(what, nullable=nullable, compact=self.flexible)
        if field.type == "uuid":
            return primitives.uuid(what)
        raise ValueError(f"{what} is of type {field.type!r}; expected a type of the vendored specs")

    def what(self, path: str) -> str:
        """The field for a person: "GroupMetadataValue v3 members.leader"."""
        return f"{self.name} v{self.version} {path.removeprefix(self.name).lstrip('.')}".rstrip()


def _means_absent(field: Field) -> bool:
    """An integer with the default -1 is absent at -1. A tagged one is absent when it is not sent."""
    return field.default == "-1" and field.tag is None and not field.is_array


def _absent(field: Field, what: str) -> Wire:
    """A field that this version lacks: reads as its default, writes nothing, and refuses to drop a value."""
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
    return {"string": "", "bytes": b"", "uuid": primitives.uuid_text(bytes(primitives.UUID_BYTES))}[field.type]


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
    readers = tuple(wire.read for wire in wires)
    writers = tuple(wire.write for wire in wires)
    read_tagged, write_tagged = _tagged_section(known, what)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        values = []
        for reader in readers:
            value, position = reader(data, position)
            values.append(value)
        tagged, position = read_tagged(data, position)
        values += tagged
        return make(values), position

    def write(value: Any, out: bytearray) -> None:
        values = take(value)
        for writer, item in zip(writers, values, strict=False):
            writer(item, out)
        write_tagged(values[len(writers) :], out)

    return Wire(read, write, sum(wire.least for wire in wires) + 1)


def _tagged_section(known: Mapping[int, Wire], what: str) -> tuple[ReadField, Writer]:
    """Reads and writes [value of each known tag or None..., unknown tagged]; KIP-482.

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
    """A struct behind a marker byte: -1 null, 1 present; as a tagged field 0 null, 1 present."""
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
