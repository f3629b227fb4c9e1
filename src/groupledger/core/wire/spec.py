"""Kafka's message specs as data: which fields a message has in which version. Loaded one by one, when first used.

The JSON files in `specs/` are Kafka's own (see NOTICE); what their keys mean is told in the README beside them in
Kafka's source tree (clients/src/main/resources/common/message/README.md).
"""

from __future__ import annotations

import json
import pkgutil
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

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
    """The vendored spec of this name: `load_spec("GroupMetadataValue").versions` -> `Versions(0, 4)`."""
    raw = pkgutil.get_data(__package__, f"specs/{name}.json")
    if raw is None:
        raise FileNotFoundError(f"spec {name!r} is not among the vendored ones")
    message = json.loads(_without_comments(raw.decode()))
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


def _without_comments(text: str) -> str:
    """The specs comment on lines of their own only."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("//"))


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
