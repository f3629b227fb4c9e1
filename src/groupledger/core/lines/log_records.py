"""A record of `__consumer_offsets` from a line: partition, offset, timestamp (ms), key and value (base64, or null)."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, NamedTuple

from groupledger.core.bounds import OFFSET, PARTITION, RECORD_TIME, Bound
from groupledger.core.faults import Fault
from groupledger.core.lines.strict_json import NO_VALUES, OTHER_TOPIC, got, is_text, parse_object

TOPIC = "__consumer_offsets"
OFFSET_COMMIT_LEFT_OUT = "offset commit left out"
"""A kind of unused record: told by the first bytes of its key, and read no further."""


class LogLine(NamedTuple):
    """What a line says; a field that is wrong or missing is None, and `problem` says what is wrong first."""

    partition: int | None
    offset: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    problem: str | None


LOG_FIELDS = LogLine._fields


def log_record(line: bytes, folder: Mapping[str, Any] = NO_VALUES) -> LogLine:
    """The record of a line; BAD_PARTITION, BAD_OFFSET, BAD_TIMESTAMP, BAD_BASE64, BAD_TOPIC, MALFORMED_LINE."""
    try:
        found = parse_object(line, folder)
    except Fault as fault:
        return LogLine(None, None, None, None, None, f"{fault.code}: {fault.message}")
    problems: list[str] = []
    partition = _number(found, "partition", PARTITION, problems)
    offset = _number(found, "offset", OFFSET, problems)
    timestamp = _number(found, "timestamp", RECORD_TIME, problems)
    key, value = _bytes(found, "key", problems), _bytes(found, "value", problems)
    topic = found.get("topic")
    if topic is not None and topic != TOPIC:
        problems.insert(0, _topic_problem(topic))
    return LogLine(partition, offset, timestamp, key, value, problems[0] if problems else None)


def _number(found: dict[str, Any], name: str, bound: Bound, problems: list[str]) -> int | None:
    value = found.get(name)
    if type(value) is int and bound.least <= value <= bound.most:
        return value
    problems.append(f"BAD_{name.upper()}: {name} is {got(value)}; expected {bound.words}")
    return None


def _bytes(found: dict[str, Any], name: str, problems: list[str]) -> bytes | None:
    value = found.get(name)
    if value is None:
        return None
    decoded = _from_base64(value) if type(value) is str else None
    if decoded is None:
        problems.append(f"BAD_BASE64: {name} is {got(value)}; expected the record's bytes in base64, or null")
    return decoded


def _from_base64(text: str) -> bytes | None:
    """The bytes; the text may come in lines, or without the padding at its end."""
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
