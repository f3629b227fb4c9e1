"""Parse a row of a user's table from a line: each column's value as text, lists as JSON; types are checked later."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from groupledger.core.faults import Fault
from groupledger.core.lines.strict_json import NO_VALUES, Fraction, got, is_text, parse_object


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
