"""Recognise lines that other tools print, none of which is a record: the tool, and what to read instead."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

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
_TOOLS = tuple((re.compile(pattern), code, told) for pattern, code, told in _BY_LINE)
_OF_REST_PROXY = {"topic", "key", "value", "partition", "offset"}
HEX = r"(?:0x|\\x)?00(?:[ :]?[0-9a-fA-F]{2})+"
"""Every key and value of the log begins with an int16 below 256, and so never with `00` in base64."""


def foreign_line(line: bytes) -> str | None:
    """Return the problem of a line that another tool printed; None for all others."""
    for pattern, code, told in _TOOLS:
        if pattern.match(line):
            return f"{code}: {told}"
    return None


def without_time(line: Mapping[str, Any]) -> str:
    """Return where to turn with lines that have everything but the timestamp, as a REST proxy writes them."""
    return f"; a REST proxy gives no timestamp: {CLUSTER}" if line.keys() == _OF_REST_PROXY else ""


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
        told = "not as text, in which bytes are lost (Spark: base64(key) for CAST(key AS STRING); rpk: %k{base64}"
        return f"{_BASE64}, {told} %v{{base64}}; kcat has no such format: {CLUSTER})"
    return f"{_BASE64}, or null"
