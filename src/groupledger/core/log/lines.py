"""Parse lines of text into rows, strictly: a line is one record, or it is rejected with the reason.

Each parser takes the bytes of one physical line and returns the fields of a row and, last, its problem: None,
OTHER_TOPIC, or `CODE: message`. It never raises, whatever the bytes are.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any, NamedTuple

from groupledger.core.faults import Fault
from groupledger.core.log.input_codes import MOMENT, OFFSET, PARTITION, PARTITION_COUNT, RECORD_TIME, NumberRange
from groupledger.core.log.layouts import REQUIRED, VALUE_NAMES, hint_for_line, layout_of_line, value_at

# Parse exactly one JSON object from one line: no second value, no duplicate key, no NaN, no broken UTF-8.

OTHER_TOPIC = "OTHER_TOPIC"
"""The problem of a record of another topic than `__consumer_offsets`: not a fault, it is counted and left out."""

NO_VALUES: Mapping[str, Any] = MappingProxyType({})
_BOM = b"\xef\xbb\xbf"
_WHITE = b" \t\r\n"
_SHOWN = 100
_BEGINNING = 60
"""Bytes of a line that an error message quotes."""


class Fraction(str):
    """A number with a point or an exponent, as written in the line: none of our fields is one."""

    __slots__ = ()


def is_blank(line: bytes) -> bool:
    """Return whether a line holds only white space, or the byte order mark that some editors put first."""
    return not line.removeprefix(_BOM).strip(_WHITE)


def as_text(line: bytes) -> str:
    """Return the line as text; bytes that are not UTF-8 appear as \\xff."""
    return line.decode("utf-8", "backslashreplace")


def parse_object(line: bytes, folder: Mapping[str, Any] = NO_VALUES) -> dict[str, Any]:
    """Return the object of a line, with the values of its file's folder (`partition=3`) for missing keys.

    Raises Fault MALFORMED_LINE, which says what is wrong.
    """
    try:
        text = line.removeprefix(_BOM).strip(_WHITE).decode("utf-8")
        found, end = _DECODER.raw_decode(text)
    except (ValueError, RecursionError) as error:  # not JSON or UTF-8, 5,000 digits, brackets 1,000 deep
        raise malformed(str(error)[:_SHOWN], line) from None
    if end != len(text):
        raise malformed(f"text stands behind it, from character {end + 1} on", line)
    if type(found) is not dict:
        raise malformed(f"it holds {_kind(found)}", line)
    return {**folder, **found} if folder else found


def malformed(what: str, line: bytes) -> Fault:
    """Return the fault of a line that is not one JSON object, with its beginning."""
    start = as_text(line[:_BEGINNING].removeprefix(_BOM).strip(_WHITE))
    begins = f"; it begins {json.dumps(start, ensure_ascii=False)}" if start else ""
    expected = "expected exactly one object on the line"
    return Fault("MALFORMED_LINE", f"the line is not one JSON object: {what}; {expected}{begins}")


def got(value: object) -> str:
    """Return a value as an error message quotes it: JSON, cut after a hundred characters."""
    if value is None:
        return "missing"
    text = str(value) if isinstance(value, Fraction) else json.dumps(value, default=str)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"


def is_text(value: object) -> bool:
    """Return whether a value is text that UTF-8 can encode: a lone surrogate is not."""
    if type(value) is not str:
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    kinds = {list: "an array", str: "a text", bool: "true or false", int: "a number", Fraction: "a number"}
    return kinds.get(type(value), "null")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in found if names.count(name) > 1)
        raise ValueError(f"the key {got(twice)} stands in it twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_once, parse_float=Fraction, parse_constant=_refuse_constant)


# Parse a record of `__consumer_offsets` from a line: partition, offset, timestamp (ms), base64 key and value, or null.
#
# The names may differ (`core.log.layouts`), and the timestamp may be a date and time with its zone, as Spark writes
# it.

TOPIC = "__consumer_offsets"
OFFSET_COMMIT_LEFT_OUT = "offset commit left out"
"""A kind of unused record: recognised by the first bytes of its key, and not read further."""

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
        bad = f"BAD_TOPIC: topic is {got(topic)}; expected {TOPIC}, or no topic"
        problems.insert(0, OTHER_TOPIC if is_text(topic) else bad)
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
    from_proxy = given.keys() == _OF_REST_PROXY  # it has everything but the timestamp
    return [f"{first}; {hint_for_line(columns, given)}{_NO_TIMESTAMP if from_proxy else ''}"]


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


# Parse a row of a user's table from a line: each column's value as text, lists as JSON; types are checked later.


def table_row(line: bytes, folder: Mapping[str, Any] = NO_VALUES, *, columns: Sequence[str]) -> tuple[str | None, ...]:
    """Return the columns' values, then the problem: MALFORMED_LINE, or BAD_VALUE for text that UTF-8 cannot encode."""
    try:
        found = parse_object(line, folder)
    except Fault as fault:
        return (*(None for _ in columns), f"{fault.code}: {fault.message}")
    values = [_text(found.get(name)) for name in columns]
    problem = None
    for at, name in enumerate(columns):
        if values[at] is not None and not is_text(values[at]):
            problem = problem or f"BAD_VALUE: column {name} is {got(found[name])}; expected a text that UTF-8 can say"
            values[at] = None
    return (*values, problem)


def _text(value: Any) -> str | None:
    if value is None or type(value) is str:
        return value
    return str(value) if isinstance(value, Fraction) else json.dumps(value, ensure_ascii=False)


# Parse a topic from a line of a listing: ts (ms), topic, topic_id, partitions, racks.

Racks = list[list[str | None]]


class ListedTopic(NamedTuple):
    """The content of a line. `racks`: of each partition's replicas; `rack`: one that applies to all partitions.

    A line with a problem still says that the topic existed, if it has a moment and a name.
    """

    ts: int | None
    topic: str | None
    topic_id: str | None
    partitions: int | None
    racks: Racks | None
    rack: list[str | None] | None
    problem: str | None


LISTING_FIELDS = ListedTopic._fields


def listed_topic(line: bytes, folder: Mapping[str, Any] = NO_VALUES) -> ListedTopic:
    """Parse a line's topic; BAD_MOMENT, BAD_TOPIC, BAD_PARTITION_COUNT, BAD_TOPIC_ID, BAD_RACKS, MALFORMED_LINE."""
    try:
        found = parse_object(line, folder)
    except Fault as fault:
        return ListedTopic(None, None, None, None, None, None, f"{fault.code}: {fault.message}")
    ts, topic, topic_id, count, racks = (found.get(name) for name in ("ts", "topic", "topic_id", "partitions", "racks"))
    by_partition, of_topic, racks_are_good = _racks(racks)
    named = is_text(topic) and topic != ""
    problem = None
    if not MOMENT.holds(ts):
        problem = f"BAD_MOMENT: ts is {got(ts)}; expected {MOMENT.words}"
    elif not named:
        problem = f"BAD_TOPIC: topic is {got(topic)}; expected the topic's name"
    elif not PARTITION_COUNT.holds(count):
        words = f"expected {PARTITION_COUNT.words}; correct the listing"
        problem = f"BAD_PARTITION_COUNT: partition count of topic {topic} is {got(count)}; {words}"
    elif topic_id is not None and not is_text(topic_id):
        problem = f"BAD_TOPIC_ID: topic_id of topic {topic} is {got(topic_id)}; expected a text, or null"
    elif not racks_are_good:
        words = "expected a list of racks, or one for each partition"
        problem = f"BAD_RACKS: racks of topic {topic} are {got(racks)}; {words}"
    moment = ts if MOMENT.holds(ts) else None
    if problem is not None:
        return ListedTopic(moment, topic if named else None, None, None, None, None, problem)
    return ListedTopic(moment, topic, topic_id, count, by_partition, of_topic, None)


def listing_line(ts: int, topic: str, topic_id: str | None, racks: Sequence[Sequence[str | None]]) -> bytes:
    """Write the line of a topic with these racks of each partition's replicas; the inverse of `listed_topic`."""
    found: dict[str, Any] = {"ts": ts, "topic": topic, "topic_id": topic_id, "partitions": len(racks)}
    if any(rack is not None for replicas in racks for rack in replicas):
        found["racks"] = [list(replicas) for replicas in racks]
    return json.dumps(found).encode()


def _racks(racks: Any) -> tuple[Racks | None, list[str | None] | None, bool]:
    """Return racks by partition, the one rack of the topic, and whether their form is known."""
    if racks is None:
        return None, None, True
    if type(racks) is not list:
        return None, None, False
    if _are_racks(racks):
        different = list(dict.fromkeys(racks))
        return None, different if len(different) == 1 else None, True
    good = all(type(replicas) is list and _are_racks(replicas) for replicas in racks)
    return (racks, None, True) if good else (None, None, False)


def _are_racks(values: list[Any]) -> bool:
    return all(value is None or is_text(value) for value in values)


# Recognise lines that other tools print, none of which is a record: the tool, and what to read instead.

CLUSTER = "read the cluster itself (ingest --bootstrap HOST:PORT)"
_BASE64 = "expected the record's bytes in base64"
_POSITION = "prints no partition, offset and timestamp"
_BY_LINE = (
    (
        rb'\s*\{\s*"key"\s*:\s*\{\s*"(version|type)"\s*:',
        "NO_POSITION",
        f"the line is from Kafka's group metadata formatter, which {_POSITION}; expected the records themselves: "
        f"{CLUSTER}, or write key and value in base64 with their position",
    ),
    (
        rb"\S[^:]*::(?:\w+Metadata|\w*Offset\w*|NULL)\b|\[[^\]]*,\d+\]::",
        "NO_POSITION",
        f"the line is from an older kafka-console-consumer with a formatter, which {_POSITION}; expected the records "
        f"themselves: {CLUSTER}",
    ),
    (
        rb"Dumping /|Dumping \S+\.log|(?:Log s|S)tarting offset: \d|baseOffset: \d|"
        rb"\| ?offset: \d|offset: \d+ .*isvalid",
        "OTHER_TOOL",
        "the line is from kafka-dump-log; expected the segments that it was run on (kind segments), or the records as "
        "JSON lines",
    ),
    (
        rb"TOPIC +PARTITION +CURRENT-OFFSET\b|GROUP +(?:TOPIC|CONSUMER-ID|COORDINATOR|INITIATOR)\b|"
        rb"(?:Warning: )?Consumer group '.*' (?:has|is)\b|"
        rb"Error: Consumer group '|\S+ +\S+ +\d+ +(?:\d+|-) +(?:\d+|-) +(?:\d+|-) +\S+ +\S+ +\S+\s*$",
        "OTHER_TOOL",
        f"the line is from kafka-consumer-groups --describe, which shows one moment without records; {CLUSTER}, or let "
        "groupledger describe its groups (kind admin)",
    ),
    (
        rb'\[\s*\d+(?:\.\d+)?\s*,\s*"[oirmx]"\s*,\s*"|\{\s*"version"\s*:\s*[123]\s*,\s*"(?:width|term|height|timestamp)"',
        "OTHER_TOOL",
        "the line is of an asciinema recording, which has what a terminal showed; expected the records as JSON lines",
    ),
)
_TOOLS = tuple((re.compile(pattern), code, text) for pattern, code, text in _BY_LINE)
_OF_REST_PROXY = {"topic", "key", "value", "partition", "offset"}
_NO_TIMESTAMP = f"; a REST proxy gives no timestamp: {CLUSTER}"
HEX = r"(?:0x|\\x)?00(?:[ :]?[0-9a-fA-F]{2})+"
"""Every key and value of the log begins with an int16 below 256, and so never with `00` in base64."""


def foreign_line(line: bytes) -> str | None:
    """Return the problem of a line that another tool printed; None for all others."""
    for pattern, code, text in _TOOLS:
        if pattern.match(line):
            return f"{code}: {text}"
    return None


def is_hex(text: str) -> bool:
    """Return whether a text is the bytes of a key or value in hexadecimal."""
    return re.fullmatch(HEX, text) is not None


def expected_bytes(value: Any) -> str:
    """Say what was expected in place of a value that is not base64, and how a tool writes that."""
    if type(value) is not str:
        return f"{_BASE64}, or null"
    if is_hex(value):
        return f"{_BASE64}, not in hexadecimal (Spark: base64(key) for hex(key); rpk: %k{{base64}} %v{{base64}})"
    if any(sign < " " or sign > "~" for sign in value.strip()):
        lost = "not as text, in which bytes are lost (Spark: base64(key) for CAST(key AS STRING); rpk: %k{base64}"
        return f"{_BASE64}, {lost} %v{{base64}}; kcat has no such format: {CLUSTER})"
    return f"{_BASE64}, or null"
