"""Parse a record of `__consumer_offsets` from a line: partition, offset, timestamp (ms), base64 key and value, or null.

The names may differ (`core.log_layouts`), and the timestamp may be a date and time with its zone, as Spark writes it.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from groupledger.core.bounds import OFFSET, PARTITION, RECORD_TIME, NumberRange
from groupledger.core.faults import Fault
from groupledger.core.lines.other_tools import expected_bytes, foreign_line, is_hex, without_time
from groupledger.core.lines.strict_json import NO_VALUES, OTHER_TOPIC, got, is_text, parse_object
from groupledger.core.log_layouts import REQUIRED, VALUE_NAMES, hint_for_line, layout_of_line, value_at

TOPIC = "__consumer_offsets"
OFFSET_COMMIT_LEFT_OUT = "offset commit left out"
"""A kind of unused record: recognised by the first bytes of its key, and not read further."""
OFFSET_COMMITS = (b"\x00\x00", b"\x00\x01")
"""How the keys of offset commits begin: record types 0 and 1."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class LogLine(NamedTuple):
    """The fields of a line; a wrong or missing field is None, and `problem` describes the first defect."""

    partition: int | None
    offset: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    problem: str | None


LOG_FIELDS = LogLine._fields


def log_record(line: bytes, folder: Mapping[str, Any] = NO_VALUES, columns: Mapping[str, str] = NO_VALUES) -> LogLine:
    """Return the record of a line, or why it is none: BAD_PARTITION, BAD_OFFSET, BAD_TIMESTAMP, BAD_BASE64, BAD_TOPIC,
    NO_POSITION, OTHER_TOOL, MALFORMED_LINE.

    `columns` maps a field to the key that holds it, if it has another name.
    """
    try:
        given = found = parse_object(line, folder)
    except Fault as fault:
        return LogLine(None, None, None, None, None, foreign_line(line) or f"{fault.code}: {fault.message}")
    if columns or "offset" not in found or "partition" not in found:
        found = {field: value_at(found, name) for field, name in layout_of_line(columns, found).items()}
    problems: list[str] = []
    partition = _number(found, "partition", PARTITION, problems)
    offset = _number(found, "offset", OFFSET, problems)
    timestamp = _moment(found, "timestamp", problems)
    key, value = _bytes(found, "key", problems), _bytes(found, "value", problems)
    topic = found.get("topic")
    if topic is not None and topic != TOPIC:
        problems.insert(0, _topic_problem(topic))
    if problems or found.get("value") is None:
        problems = _explained(line, given, found, columns, problems)
    return LogLine(partition, offset, timestamp, key, value, problems[0] if problems else None)


def _explained(
    line: bytes, given: Mapping[str, Any], found: Mapping[str, Any], columns: Mapping[str, str], problems: list[str]
) -> list[str]:
    """Return the problems, the first with a hint where the line has other names for fields, or is of another tool."""
    missing = [name for name in REQUIRED if found.get(name) is None and not _is_there(given, columns.get(name, name))]
    renamed = missing == ["value"] and any(_is_there(given, name) for name in VALUE_NAMES)
    if not problems and not renamed:
        return problems  # a tombstone
    foreign = foreign_line(line)
    if foreign is not None:
        return [foreign]
    if not missing or problems[:1] == [OTHER_TOPIC]:
        return problems
    first = problems[0] if problems else "BAD_BASE64: value is missing; expected the record's bytes in base64, or null"
    return [f"{first}; {hint_for_line(columns, given)}{without_time(given)}"]


def _is_there(line: Mapping[str, Any], name: str) -> bool:
    return name in line or value_at(line, name) is not None


def _number(found: dict[str, Any], name: str, bound: NumberRange, problems: list[str]) -> int | None:
    value = found.get(name)
    if type(value) is int and bound.least <= value <= bound.most:
        return value
    problems.append(f"BAD_{name.upper()}: {name} is {got(value)}; expected {bound.words}")
    return None


def _moment(found: dict[str, Any], name: str, problems: list[str]) -> int | None:
    """Return milliseconds since 1970, given as such or as a date and time with its zone."""
    value = found.get(name)
    if type(value) is not str:
        return _number(found, name, RECORD_TIME, problems)
    millis = _from_iso(value)
    if millis is not None and RECORD_TIME.holds(millis):
        return millis
    expected = f"{RECORD_TIME.words}, or a date and time with its zone, such as 2026-11-21T14:00:00.000Z"
    problems.append(f"BAD_{name.upper()}: {name} is {got(value)}; expected {expected}")
    return None


def _from_iso(text: str) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
        return None if moment.tzinfo is None else (moment - _EPOCH) // timedelta(milliseconds=1)
    except (ValueError, OverflowError):
        return None


def _bytes(found: dict[str, Any], name: str, problems: list[str]) -> bytes | None:
    value = found.get(name)
    if value is None:
        return None
    decoded = _from_base64(value) if type(value) is str and not is_hex(value) else None
    if decoded is None:
        problems.append(f"BAD_BASE64: {name} is {got(value)}; {expected_bytes(value)}")
    return decoded


def _from_base64(text: str) -> bytes | None:
    """Decode base64 text, which may be broken into lines or lack its padding."""
    if len(text) % 4 or not text.isalnum():
        text = "".join(text.split())
        if not text.endswith("="):
            text += "=" * (-len(text) % 4)
    try:
        return binascii.a2b_base64(text, strict_mode=True) if len(text) % 4 == 0 else None
    except ValueError:
        return None


def _topic_problem(topic: Any) -> str:
    if is_text(topic):
        return OTHER_TOPIC
    return f"BAD_TOPIC: topic is {got(topic)}; expected {TOPIC}, or no topic"
