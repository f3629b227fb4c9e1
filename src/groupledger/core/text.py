"""Format a value for a table, on a terminal or in a page."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from typing import Any

from groupledger.core.moments import iso
from groupledger.core.secrets import without_values


def cell(value: object) -> str:
    """Return None as '-', a moment in UTC to the millisecond, True as 'yes', all on one line and without a secret."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case datetime():
            return iso(value)
        case int():
            return f"{value:,}"
        case float():
            return f"{value:.2f}"
    return visible(without_values(str(value)))


# Make foreign text safe for a terminal and exact for a program.
#
# Ids of groups, members and topics may hold anything: escape sequences, a bell, marks that change the direction of
# writing. A person sees each of them as `\x1b`, `\u202e`; JSON escapes them in its own way, so that a decoder gets the
# exact id.


def visible(text: str) -> str:
    r"""Escape invisible characters: controls, format and bidirectional marks, separators, lone surrogates.

    `"a\x1b[2J"` -> `a\x1b[2J` in plain characters. Letters of every script, and the blank, are kept.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode("ascii") for each in text)


def json_text(value: Any) -> str:
    """Return the value as one line of JSON, which escapes the same characters as `visible`, in JSON's way."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else json.dumps(each)[1:-1] for each in text)


# Shorten member ids for a person: cut the UUID in them to what distinguishes them.

_BASE64 = re.compile(r"[A-Za-z0-9_-]{22}|[A-Za-z0-9+/]{22}")
LONGEST = 40
"""Characters of an id in a table that fits a terminal."""
_UUID = re.compile(r"([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\Z")


def shortened(names: Iterable[str]) -> dict[str, str]:
    """Map each name to itself with its UUID cut to 8 digits, and a long one without its middle, if that is unique.

    `app-1-3f2504e0-4f89-11d3-9a0c-0305e82c3301` -> `app-1-3f2504e0`
    """
    distinct = set(names)
    short = {name: without_middle(_UUID.sub(r"\1", name)) for name in distinct}
    counted = Counter(short.values())
    return {name: cut if counted[cut] == 1 else name for name, cut in short.items()}


def is_opaque(member_id: str) -> bool:
    """Return whether a member id is 22 letters of base64, which name nobody: KIP-848's; librdkafka's have + and /."""
    return _BASE64.fullmatch(member_id) is not None


def without_middle(name: str) -> str:
    """Cut a name of more than LONGEST characters: its beginning and its end tell more than its middle."""
    half = (LONGEST - 3) // 2
    return name if len(name) <= LONGEST else f"{name[:half]}...{name[-half:]}"


def common_start(names: Iterable[str]) -> str:
    """Return the common start of several names, up to a `-`, `_` or `.`; empty if a name would be left empty.

    `app-1-3f2504e0`, `app-2-9a0c0305` -> `app-`
    """
    distinct = set(names)
    if len(distinct) < 2:
        return ""
    first, last = min(distinct), max(distinct)
    same = takewhile(lambda pair: pair[0] == pair[1], zip(first[:-1], last, strict=False))
    shared = "".join(sign for sign, _ in same)
    return shared[: 1 + max(shared.rfind(sign) for sign in "-_.")]


# Format lengths and periods of time for a person.


def length(of: timedelta) -> str:
    """Format a length by its two largest units: `3 d 2 h`, `4 min 10 s`, `1.250 s`."""
    seconds = of.total_seconds()
    if seconds < 60:
        return f"{seconds:.3f} s"
    parts = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
    left, words = int(seconds), list[str]()
    for size, unit in parts:
        if left >= size or words:
            words.append(f"{left // size} {unit}")
            left %= size
    return " ".join(words[:2])


def stretch(first: datetime, last: datetime) -> str:
    """Format a period to the second, in UTC, with one date if both are equal: `2026-11-21 13:46:49 - 13:51:02`."""
    begin, end = (moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S") for moment in (first, last))
    if begin == end:
        return begin
    return f"{begin} - {end[11:] if begin[:10] == end[:10] else end}"
