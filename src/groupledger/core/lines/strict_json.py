"""Parse exactly one JSON object from one line: no second value, no duplicate key, no NaN, no broken UTF-8."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from groupledger.core.faults import Fault

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
