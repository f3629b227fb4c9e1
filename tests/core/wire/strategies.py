"""Hypothesis strategies that follow the specs: a value for any message at any of its versions."""

from __future__ import annotations

from dataclasses import fields as dataclass_fields
from typing import Any

from hypothesis import strategies as st

from groupledger.core.wire.codec import Field, Spec, uuid_text
from groupledger.core.wire.records import SHAPES

WIDTHS = {"int8": (8, True), "int16": (16, True), "uint16": (16, False), "int32": (32, True), "int64": (64, True)}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=6)
UNKNOWN_TAGS = st.dictionaries(st.integers(100, 2**32 - 1), st.binary(max_size=5), max_size=2)


def messages(spec: Spec, version: int) -> st.SearchStrategy[Any]:
    """Values of a message, as its codec takes and gives them."""
    return _structs(spec.fields, spec.name, version, version in spec.flexible)


def _structs(fields: tuple[Field, ...], path: str, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    values = [_fields(field, f"{path}.{field.name}", version, flexible) for field in fields]
    tagged = UNKNOWN_TAGS.map(lambda tags: tuple(sorted(tags.items()))) if flexible else st.just(())
    return st.tuples(tagged, *values).map(lambda drawn: _made(path, [field.name for field in fields], drawn))


def _made(path: str, names: list[str], drawn: tuple[Any, ...]) -> Any:
    tagged, *values = drawn
    shape = SHAPES.get(path, dict)
    if shape is tuple:
        return tuple(values)
    if shape is dict:
        return dict(zip(names, values, strict=True)) | ({"tagged": tagged} if tagged else {})
    takes_tagged = any(field.name == "tagged" for field in dataclass_fields(shape))
    return shape(*values, tagged) if takes_tagged else shape(*values)


def _fields(field: Field, path: str, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if version not in field.versions:
        return st.just(_absent(field))
    if field.is_array:
        values = st.lists(_singles(field, path, version, flexible), max_size=3).map(tuple)
    else:
        values = _singles(field, path, version, flexible)
    may_be_none = version in field.nullable or version in field.tagged
    return st.none() | values if may_be_none else values


def _absent(field: Field) -> Any:
    return () if field.is_array else None


def _singles(field: Field, path: str, version: int, flexible: bool) -> st.SearchStrategy[Any]:
    if field.fields is not None:
        return _structs(field.fields, path, version, flexible)
    if field.type in WIDTHS:
        width, signed = WIDTHS[field.type]
        low, high = (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if signed else (0, 2**width - 1)
        numbers = st.integers(low, high)
        absent_at_minus_one = field.default == "-1" and field.tag is None and not field.is_array
        return numbers.map(lambda value: None if value == -1 else value) if absent_at_minus_one else numbers
    uuids = st.binary(min_size=16, max_size=16).map(uuid_text)
    return {"string": TEXTS, "bytes": st.binary(max_size=6), "uuid": uuids}[field.type]
