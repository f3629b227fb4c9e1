"""Parse lines of text into rows, strictly: a line is one record, or it is rejected with the reason.

Each parser takes the bytes of one physical line and returns the fields of a row and, last, its problem: None,
OTHER_TOPIC, or `CODE: message`. It never raises, whatever the bytes are.
"""

from __future__ import annotations

import binascii
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from groupledger.core.faults import Code, Fault, meant
from groupledger.core.moments import millis

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
# The names may differ (`core.log.lines`), and the timestamp may be a date and time with its zone, as Spark writes
# it.

TOPIC = "__consumer_offsets"
OFFSET_COMMIT_LEFT_OUT = "offset commit left out"
"""A kind of unused record: recognised by the first bytes of its key, and not read further."""


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
        return None if moment.tzinfo is None else millis(moment)
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


# Map the columns of a table, or the keys of a line, to the fields of a record of `__consumer_offsets`.
#
# Names that the configuration does not give are searched among those that Spark's Kafka source and common sinks write.
# A name with dots is a column of that name, or a field in a struct.

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
_NAMES_SHOWN = 30


def columns_of(given: Mapping[str, str], there: Collection[str]) -> dict[str, str]:
    """Map each field to its column: as configured, else a known name; the topic may be missing.

    Raises Fault FOREIGN_SCHEMA if a column does not exist, or if a field has no known column or several.
    """
    for field, name in given.items():
        if name not in there:
            raise _foreign(f"column {name} (columns.{field}) is missing; {meant(name, there)}{_listed(there)}")
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
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    return f"it has {', '.join(names[:_NAMES_SHOWN])}{more}" if names else "it has no columns"


def _foreign(message: str) -> Fault:
    return Fault("FOREIGN_SCHEMA", message)


# Declare the codes of rejected lines, rows, snapshots and groups; the decoders declare their own.
#
# The others are `wire.codec.DecodeCode` and `log.segments.SegmentCode`; docs/guides/decide/write-an-assignor.md has
# those of custom assignors. A test compares the codes with the source; docs/reference/codes.md is generated from them.


class LineCode(Code):
    """Why a line or a row of the log, or of a topic listing, cannot be used."""

    MALFORMED_LINE = "MALFORMED_LINE", "a line that is not exactly one JSON object"
    BAD_PARTITION = "BAD_PARTITION", "a partition outside its range"
    BAD_OFFSET = "BAD_OFFSET", "an offset outside its range"
    BAD_TIMESTAMP = "BAD_TIMESTAMP", "a timestamp outside its range, or no time at all"
    BAD_BASE64 = "BAD_BASE64", "a key or value that is not base64"
    BAD_TOPIC = "BAD_TOPIC", "a topic that is no text, or an empty name in a listing"
    BAD_MOMENT = "BAD_MOMENT", "the time of a topic listing is outside its range"
    BAD_PARTITION_COUNT = "BAD_PARTITION_COUNT", "the partition count of a topic is no number, or outside its range"
    BAD_TOPIC_ID = "BAD_TOPIC_ID", "the id of a topic is neither a text nor null"
    BAD_RACKS = "BAD_RACKS", "the racks of a topic are no list, or not one for each partition"
    NO_POSITION = "NO_POSITION", "a line of Kafka's group metadata formatter, which prints no partition and offset"
    OTHER_TOOL = "OTHER_TOOL", "a line that another tool printed, without the record: kafka-dump-log, for one"
    RECORD_TOO_LARGE = "RECORD_TOO_LARGE", "a record with a value above `limits.max_record_bytes`"


class SnapshotCode(Code):
    """Why a snapshot of a user's own tables cannot be used, with all its rows."""

    BAD_VALUE = "BAD_VALUE", "a value that is not of the column's type or range"
    MISSING_VALUE = "MISSING_VALUE", "a required column is null"
    NO_GROUP_ROW = "NO_GROUP_ROW", "member rows without a group row"
    NO_MEMBERS = "NO_MEMBERS", "no member row for a group that is not empty"
    MEMBER_COUNT = "MEMBER_COUNT", "another number of member rows than the group row says"
    SNAPSHOT_TWICE = "SNAPSHOT_TWICE", "a snapshot id in more than one group row"
    POSITION_TWICE = "POSITION_TWICE", "an offset in more than one snapshot of a group"
    PLACE_TWICE = "PLACE_TWICE", "two members in one place of the order"
    BAD_MEMBER_ORDER = "BAD_MEMBER_ORDER", "a place of the order below 0"
    NEGATIVE_PARTITION = "NEGATIVE_PARTITION", "a member with a partition below 0"
    CLAIMS_OVER_LIMIT = "CLAIMS_OVER_LIMIT", "members claim more partitions than `limits.max_partitions_per_group`"


class GroupCode(Code):
    """Why a group, or one record of it, is not folded or not computed."""

    OTHER_GROUP = "OTHER_GROUP", "a record whose key names another group: the read mixed groups"
    OTHER_LOG_PARTITION = "OTHER_LOG_PARTITION", "a record in another log partition than the others of its group"
    MEMBER_TWICE = "MEMBER_TWICE", "a member stands twice in a snapshot"
    ID_OVER_LIMIT = "ID_OVER_LIMIT", "a group or member id longer than `limits.max_id_bytes`"
    MEMBERS_OVER_LIMIT = "MEMBERS_OVER_LIMIT", "more members than `limits.max_members_per_group`"
    TOPIC_TWICE = "TOPIC_TWICE", "a topic stands twice among topics, with other partition counts or racks"
    PARTITIONS_OVER_LIMIT = "PARTITIONS_OVER_LIMIT", "more partitions than `limits.max_partitions_per_group`"
    NEGATIVE_PARTITION_COUNT = "NEGATIVE_PARTITION_COUNT", "a topic listing has a partition count below 0"


class ScenarioCode(Code):
    """Why a scenario of `groupledger solve` has no result; Kafka's own failures are named after its exceptions."""

    BAD_JSON = "BAD_JSON", "a line that is no JSON"
    BAD_SCENARIO = "BAD_SCENARIO", "a line that is not of the form of a scenario"
    UNKNOWN_ASSIGNOR = "UNKNOWN_ASSIGNOR", "an assignor that is neither one of ours nor a custom one that was named"
    NO_ANSWER = "NO_ANSWER", "an assignor that leaves its answer to chance, or one that is not modelled with racks"
    BAD_GROUP = "BAD_GROUP", "a group of the KIP-848 protocol that cannot be"
    BAD_USER_DATA = "BAD_USER_DATA", "user data of sticky-stream-join that are not KIP-315's"


class RecordStandsCode(Code):
    """Why a state is `NOT_RECOMPUTED`: its record is kept, and nothing is wrong with it."""

    UNKNOWN_ASSIGNOR = (
        "UNKNOWN_ASSIGNOR",
        "Kafka has no assignor of this name; `assign.overrides` can name a custom one",
    )
    NO_ASSIGNOR = "NO_ASSIGNOR", "the record names no assignor"
    OTHER_PROTOCOL_TYPE = "OTHER_PROTOCOL_TYPE", "no group of consumers, such as one of Kafka Connect"
    OTHER_GROUP_TYPE = "OTHER_GROUP_TYPE", "a share or streams group, whose assignors are not recomputed"


# Define the range of each number in a source: a row beyond it is rejected before anything computes with it.
#
# Times are in milliseconds since 1970. The latest is a day before the end of the year 9999: Python's `datetime` ends
# there, and a time zone may add a day. A record without a timestamp has -1 in Kafka: it is kept, as that moment.


@dataclass(frozen=True, slots=True)
class NumberRange:
    """A range of whole numbers, both ends included, and its description in words."""

    least: int
    most: int
    unit: str = "a whole number"

    @property
    def words(self) -> str:
        """Describe the range: `a whole number, 0 to 2147483647`."""
        return f"{self.unit}, {self.least} to {self.most}"

    def holds(self, value: object) -> bool:
        """Return whether the value is a whole number in the range; a boolean is not."""
        return type(value) is int and self.least <= value <= self.most


LATEST_MS = 253_402_214_399_999
NO_TIMESTAMP = -1

INT32 = NumberRange(-(2**31), 2**31 - 1)
PARTITION = NumberRange(0, 2**31 - 1)
PARTITION_COUNT = NumberRange(0, 2**31 - 1)
OFFSET = NumberRange(0, 2**63 - 2)  # the offset after the last one must be a number, too
RECORD_TIME = NumberRange(NO_TIMESTAMP, LATEST_MS, "milliseconds since 1970")
MOMENT = NumberRange(0, LATEST_MS, "milliseconds since 1970")

MOST_RACKED_PARTITIONS = 100_000
"""A topic with more partitions has no racks: a listing's one rack would be repeated for each partition."""
