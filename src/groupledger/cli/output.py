"""What a command prints: tables for a person, or one JSON line for a program. Never both.

rich is imported when the first table is printed. Progress goes to stderr, and only where a person is watching.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from groupledger.core.moment import iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Console

PLAIN_WIDTH = 400
"""Columns of output that is not a terminal's: a line of a table must stay one line for grep."""


class Output:
    """Where a command's words go. With `as_json`, only `result` writes to stdout."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def line(self, text: str = "") -> None:
        """A line for a person."""
        if not self.as_json:
            console(stderr=False).print(text, markup=False, highlight=False, soft_wrap=True)

    def title(self, text: str) -> None:
        """A heading for a person."""
        if not self.as_json:
            console(stderr=False).print(f"\n{text}", style="bold", markup=False, highlight=False, soft_wrap=True)

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """A table for a person; numbers to the right, None as '-'. No rows, no table."""
        if not self.as_json and rows:
            _print_table(columns, rows)

    def result(self, value: Mapping[str, Any]) -> None:
        """The result as one JSON line: the only thing on stdout under `--json`."""
        if self.as_json:
            print(json.dumps(plain(value), ensure_ascii=False), flush=True)  # noqa: T201 - this is the output

    @contextmanager
    def status(self, doing: str) -> Iterator[Callable[[str], None]]:
        """Show what is going on while it goes on, on a terminal; what is yielded says what comes next."""
        if self.as_json or not sys.stderr.isatty():
            yield lambda _: None
            return
        with console(stderr=True).status(doing) as status:
            yield status.update


def console(*, stderr: bool) -> Console:
    """A console for the stream as it is now: plain and wide where nobody is watching."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(file=stream) if stream.isatty() else Console(file=stream, width=PLAIN_WIDTH, color_system=None)


def _print_table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    from rich import box
    from rich.table import Table

    on_terminal = sys.stdout.isatty()
    table = Table(box=box.SIMPLE_HEAD if on_terminal else None, pad_edge=False, header_style="bold")
    for index, name in enumerate(columns):
        number = all(isinstance(row[index], int | float | None) for row in rows)
        table.add_column(name, justify="right" if number else "left", no_wrap=not on_terminal)
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    console(stderr=False).print(table, markup=False)


def cell(value: object) -> Any:
    """A value in a table: None as '-', a moment in UTC to the millisecond, True as 'yes'."""
    from rich.text import Text

    match value:
        case None:
            return Text("-", style="dim")
        case bool():
            return Text("yes" if value else "no")
        case datetime():
            return Text(iso(value))
        case int():
            return Text(f"{value:,}")
        case float():
            return Text(f"{value:.2f}")
    return Text(str(value))


def mark(ok: bool) -> str:
    """A check mark or a cross; words where the stream cannot print them."""
    sign = "\N{CHECK MARK}" if ok else "\N{BALLOT X}"
    try:
        sign.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "ok" if ok else "WRONG"
    return sign


def plain(value: Any) -> Any:
    """The same value in what JSON has: dataclasses as objects, moments as text, tuples as lists."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return iso(value)
    return value.value if isinstance(value, Enum) else value
