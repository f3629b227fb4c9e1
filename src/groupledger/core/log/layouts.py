"""Map the columns of a table, or the keys of a line, to the fields of a record of `__consumer_offsets`.

Names that the configuration does not give are searched among those that Spark's Kafka source and common sinks write.
A name with dots is a column of that name, or a field in a struct.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from typing import Any

from groupledger.core.faults import Fault

FIELDS = ("partition", "offset", "timestamp", "key", "value", "topic")
REQUIRED = FIELDS[:-1]
"""All except the topic: a table without a topic column holds only `__consumer_offsets`."""

_PLACED = ("kafka_{}", "_kafka_metadata_{}", "_kafka_metadata.{}", "metadata.{}")
"""Names that users commonly choose for Kafka Connect's InsertField, those of Iceberg's KafkaMetadataTransform (flat
and nested), and of the envelope of the Lenses sinks."""
_CONTENT = ("kafka_{}",)
_KNOWN = {
    field: tuple(form.format(field) for form in ("{}", *(_CONTENT if field in ("key", "value") else _PLACED)))
    for field in FIELDS
}
_ALIKE = {
    "partition": ("partition", "part"),
    "timestamp": ("timestamp", "ts", "time"),
    "value": ("value", "payload", "body", "message", "content"),
}
"""Parts of names that make a column a candidate for a field."""
VALUE_NAMES = _ALIKE["value"][1:]
_SHOWN = 30


def columns_of(given: Mapping[str, str], there: Collection[str]) -> dict[str, str]:
    """Map each field to its column: as configured, else a known name; the topic may be missing.

    Raises Fault FOREIGN_SCHEMA if a column does not exist, or if a field has no known column or several.
    """
    for field, name in given.items():
        if name not in there:
            near = difflib.get_close_matches(name, there, n=1)
            hint = f" did you mean {near[0]}?" if near else ""
            raise _foreign(f"column {name} (columns.{field}) is missing;{hint} {_listed(there)}")
    plain = all(field in there or field in given for field in REQUIRED)
    found = {field: [given[field]] if field in given else _known(field, there, plain=plain) for field in FIELDS}
    unclear = [field for field, names in found.items() if len(names) > 1 or (not names and field in REQUIRED)]
    if unclear:
        first = unclear[0]
        what = f"column {first} is {' or '.join(found[first]) or 'missing'}; {_listed(there)}"
        proposed = ", ".join(f"{field}: {_proposed(field, found[field], there)}" for field in unclear)
        raise _foreign(f"{what}; say in its source which it is: columns: {{{proposed}}}")
    return {field: names[0] for field, names in found.items() if names}


def layout_of_line(given: Mapping[str, str], line: Mapping[str, Any]) -> dict[str, str]:
    """Map fields to keys of one JSON object, as `columns_of`; a field with no known key, or several, keeps its name."""
    if "offset" in line and "partition" in line:
        return {field: given.get(field, field) for field in FIELDS}
    known = {field: _known(field, set(_names(line)), plain=False) for field in FIELDS}
    return {field: given.get(field, names[0] if len(names) == 1 else field) for field, names in known.items()}


def hint_for_line(given: Mapping[str, str], line: Mapping[str, Any]) -> str:
    """Return what to configure for a line without all fields: `columns: {timestamp: ts, value: payload}`."""
    try:
        columns_of(given, _names(line))
    except Fault as fault:
        return fault.message
    return _listed(_names(line))


def _names(line: Mapping[str, Any]) -> list[str]:
    """Return the keys of a line, and those of objects in it."""
    return [*line, *(f"{name}.{field}" for name, inner in line.items() if type(inner) is dict for field in inner)]


def value_at(line: Mapping[str, Any], name: str) -> Any:
    """Return the value of a key, or of a key in a nested object; None if absent."""
    if name in line:
        return line[name]
    for at, sign in enumerate(name):
        if sign == "." and type(inner := line.get(name[:at])) is dict:
            found = value_at(inner, name[at + 1 :])
            if found is not None:
                return found
    return None


def _known(field: str, there: Collection[str], *, plain: bool) -> list[str]:
    if plain and field in there:
        return [field]
    return [name for name in _KNOWN[field] if name in there]


def _proposed(field: str, known: list[str], there: Collection[str]) -> str:
    """Return the likeliest column, or three dots if there is none."""
    if known:
        return known[0]
    for word in _ALIKE.get(field, (field,)):
        alike = [name for name in there if word in name.rsplit(".", 1)[-1].lower()]
        if alike:
            return min(alike, key=lambda name: (len(name), name))
    return "..."


def _listed(there: Collection[str]) -> str:
    names = list(there)
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"it has {', '.join(names[:_SHOWN])}{more}" if names else "it has no columns"


def _foreign(message: str) -> Fault:
    return Fault("FOREIGN_SCHEMA", message)
