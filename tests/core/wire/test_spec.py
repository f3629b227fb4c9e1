"""The vendored specs are what the code believes they are."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields as dataclass_fields
from pathlib import Path

import pytest

import groupledger.core.wire.codec as spec_module
from groupledger.core.wire.codec import (
    NO_VERSIONS,
    DecodeCode,
    DecodeFault,
    Field,
    Versions,
    codec,
    load_spec,
    parse_versions,
    snake_case,
)
from groupledger.core.wire.offsets_log import RecordKind, decode_key
from groupledger.core.wire.records import SHAPES

FILES = sorted((Path(spec_module.__file__).parent / "specs").glob("*.json"))
NAMES = [file.stem for file in FILES]


@pytest.mark.parametrize("file", FILES, ids=NAMES)
def test_each_spec_keeps_its_licence_header(file):
    assert "Licensed to the Apache Software Foundation (ASF)" in file.read_text().splitlines()[0]


@pytest.mark.parametrize("name", NAMES)
def test_each_spec_loads_and_builds_at_each_version(name):
    spec = load_spec(name)
    assert spec.name == name
    for version in range(spec.versions.first, spec.versions.last + 1):
        assert codec(name, version).least >= 0
    with pytest.raises(DecodeFault) as caught:
        codec(name, spec.versions.last + 1)
    assert caught.value.code == DecodeCode.UNKNOWN_VERSION


def test_record_kinds_are_the_record_types_of_the_specs():
    by_type = {load_spec(name).type_id: name.removesuffix("Key") for name in NAMES if name.endswith("Key")}
    assert len(by_type) == len(RecordKind) - 1
    for type_id in range(40):
        key = type_id.to_bytes(2, "big") + b"\x00\x01g" + b"\x00\x01x" + bytes(4)
        kind = _kind_of(key)
        assert kind == by_type.get(type_id, "Unknown")


def _kind_of(key: bytes) -> str:
    """Keys differ in their number of fields: take away bytes until nothing is left over."""
    for length in (len(key), len(key) - 4, len(key) - 7):
        with suppress(DecodeFault):
            return decode_key(key[:length]).kind.value
    raise AssertionError(key)


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("Key")])
def test_every_key_is_at_version_0_and_starts_with_the_group(name):
    spec = load_spec(name)
    assert spec.versions == Versions(0, 0)
    assert spec.flexible == NO_VERSIONS
    assert spec.fields[0].name in ("group", "group_id")
    assert load_spec(name.removesuffix("Key") + "Value").type_id == spec.type_id


@pytest.mark.parametrize("path", SHAPES)
def test_each_shape_has_a_struct_and_as_many_fields(path):
    name, *steps = path.split(".")
    spec = load_spec(name)
    fields: tuple[Field, ...] | None = spec.fields
    for step in steps:
        fields = {field.name: field.fields for field in fields or ()}[step]
    assert fields is not None
    if SHAPES[path] is not tuple:
        tagged = ["tagged"] if spec.flexible != NO_VERSIONS else []
        own = [field.name for field in dataclass_fields(SHAPES[path])]
        assert len(own) == len(fields) + len(tagged)
        assert own[len(fields) :] == tagged
        for mine, theirs in zip(own, fields, strict=False):
            assert _words(mine) & _words(theirs.name), (mine, theirs.name)


def _words(name: str) -> set[str]:
    return {word.removesuffix("s") for word in name.split("_")}


@pytest.mark.parametrize(
    ("text", "versions"),
    [("none", NO_VERSIONS), ("0", (0, 0)), ("1-3", (1, 3)), ("2+", (2, 32767))],
)
def test_version_ranges(text, versions):
    assert parse_versions(text) == versions


def test_a_range_holds_its_ends():
    assert [version for version in range(6) if version in parse_versions("1-3")] == [1, 2, 3]
    assert 0 not in NO_VERSIONS


@pytest.mark.parametrize(
    ("kafkas", "ours"), [("groupId", "group_id"), ("RebalanceTimeoutMs", "rebalance_timeout_ms"), ("key", "key")]
)
def test_field_names(kafkas, ours):
    assert snake_case(kafkas) == ours


def test_an_unknown_spec_is_named():
    with pytest.raises(FileNotFoundError, match="Nonsense"):
        load_spec("Nonsense")
