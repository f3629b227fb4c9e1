"""Print a command's output: tables for a person, or one JSON line for a program, never both.

All printing goes through this module: only here is foreign text made visible (`core.visible_text`).
rich is imported when the first table is printed. Progress goes to stderr, and only if it is a terminal.
"""

from __future__ import annotations

import codecs
import dataclasses
import io
import shutil
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Any

from groupledger.cli.fitting import (
    GAP,
    cell_lines,
    fitting,
    in_lines,
    room,
    shared_widths,
    table_widths,
    worth_telling,
)
from groupledger.core.cells import cell
from groupledger.core.moment import iso
from groupledger.core.secrets import without_values
from groupledger.core.visible_text import json_text, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from groupledger.cli.fitting import Column


class OutputClosedError(Exception):
    """The reader of the output has closed it: `groupledger solve | head -1`."""


class Output:
    """A command's output. With `as_json`, only `result` writes to stdout."""

    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json

    def line(self, text: str = "") -> None:
        """Print a line for a person."""
        if self.as_json:
            return
        said = visible(without_values(text))
        for each in in_lines(said, _terminal()) if sys.stdout.isatty() else (said,):
            _print(each)

    def title(self, text: str) -> None:
        """Print a heading for a person, with a blank line before it."""
        text = without_values(text)
        if not self.as_json and sys.stdout.isatty():
            heading = "\n" + "\n".join(in_lines(visible(text), _terminal()))
            console(stderr=False).print(heading, style="bold", markup=False, highlight=False, soft_wrap=True)
        elif not self.as_json:
            _print(f"\n{visible(text)}")

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print a table for a person; numbers right-aligned, None as '-'. No rows, no table.

        If a terminal is too narrow for it, even with wrapped cells, each cell gets a line.
        """
        if self.as_json or not rows:
            return
        named = [visible(name) for name in columns]
        if not sys.stdout.isatty():
            _print_table(named, rows)
            return
        shared = table_widths(_widths(named, rows), numeric(len(named), rows), _terminal())
        if shared is None:
            self._stacked(named, rows)
        else:
            _print_table(named, rows, shared)

    def fitted(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[object]],
        *,
        wide: bool = False,
        stacked: int = 0,
        more: str = "--wide",
    ) -> None:
        """Print a table of as many columns as fit, and say which do not. `wide`: all of them.

        Empty columns are left out. Up to `stacked` rows that do not fit are printed cell by cell. `more` tells how to
        see the others.
        """
        if self.as_json or not rows:
            return
        chosen = worth_telling(columns, rows, wide=wide)
        columns, rows = [columns[at] for at in chosen], [[row[at] for at in chosen] for row in rows]
        names = [column.name for column in columns]
        widths, width = _widths(names, rows), None if wide else room()
        if width is None:
            _print_table(names, rows, wide=wide)
            return
        breaking = sys.stdout.isatty()
        fit = fitting(columns, widths, width, breaking=breaking)
        shared = shared_widths([widths[at] for at in fit], [columns[at].least for at in fit], width)
        if (len(fit) < len(columns) and len(rows) <= stacked) or (shared is None and breaking):
            self._stacked(names, rows)
            return
        _print_table([names[at] for at in fit], [[row[at] for at in fit] for row in rows], shared)
        if len(fit) < len(columns):
            left_out = ", ".join(name for at, name in enumerate(names) if at not in fit)
            self.line(f"no room for: {left_out} ({more})")

    def _stacked(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Print each cell on a line with its column's name; a blank line between two rows."""
        widest = max(map(len, columns))
        for number, row in enumerate(rows):
            if number:
                self.line()
            for name, value in zip(columns, row, strict=True):
                if value is not None:
                    self.line(f"{name:<{widest}}  {cell(value)}")

    def result(self, value: Mapping[str, Any]) -> None:
        """Print the result as one JSON line: with `--json`, the only thing on stdout."""
        if self.as_json:
            print_json(plain(value))

    @contextmanager
    def status(self, doing: str) -> Iterator[Callable[[str], None]]:
        """Show progress on a terminal; the yielded function announces the next step."""
        if self.as_json or not sys.stderr.isatty():
            yield lambda _: None
            return
        from rich.text import Text

        with console(stderr=True).status(Text(visible(doing))) as status:
            yield lambda text: status.update(Text(visible(text)))


def say(text: str) -> None:
    """Print a line on stderr for the person who started the command; a terminal gets it wrapped between words."""
    said = visible(without_values(text))
    if sys.stderr.isatty():
        said = "\n".join(in_lines(said, _terminal()))
    print(said, file=sys.stderr, flush=True)


def say_lines(text: str) -> None:
    """Print lines on stderr unchanged: a traceback."""
    print(text, end="", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Print the value as one JSON line on stdout."""
    print_exact(json_text(value))


def print_exact(text: str) -> None:
    """Print an exact line on stdout for a program: JSON, or paths; in UTF-8 whatever the terminal's encoding."""
    if isinstance(sys.stdout, io.TextIOWrapper) and codecs.lookup(sys.stdout.encoding).name != "utf-8":
        sys.stdout.reconfigure(encoding="utf-8")
    _print(text)


def _terminal() -> int:
    return shutil.get_terminal_size().columns


def _print(text: str) -> None:
    """Print a line on stdout and flush: a program that reads it may be waiting."""
    try:
        print(text, flush=True)
    except BrokenPipeError as error:
        raise OutputClosedError from error


def console(*, stderr: bool) -> Console:
    """Return a console for the stream as it is now."""
    from rich.console import Console

    return Console(stderr=stderr)


def _widths(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[int]:
    """Return the width of the longest cell of each column, including its name."""
    return [max(len(name), *(len(cell(row[at])) for row in rows)) for at, name in enumerate(columns)]


def _print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], widths: Sequence[int] | None = None, *, wide: bool = False
) -> None:
    """Print by rich on a terminal, with cells wrapped to `widths`, if given."""
    numbers = numeric(len(columns), rows)
    columns = [cell(name) for name in columns]
    cells = [[cell(value) for value in row] for row in rows]
    if sys.stdout.isatty() and not wide:
        _print_rich(columns, cells, numbers, widths or _widths(columns, rows))
    else:
        _print_plain([list(columns), *cells], numbers)


def numeric(columns: int, rows: Sequence[Sequence[object]]) -> list[bool]:
    """Return for each column whether it has only numbers."""
    return [all(isinstance(row[at], int | float | None) for row in rows) for at in range(columns)]


def _print_rich(columns: Sequence[str], cells: list[list[str]], numbers: list[bool], widths: Sequence[int]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name, number in zip(columns, numbers, strict=True):
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in cells:
        broken = ("\n".join(cell_lines(text, width)) for text, width in zip(row, widths, strict=True))
        table.add_row(*map(Text, broken))
    console(stderr=False).print(table)


def _print_plain(lines: list[list[str]], numbers: list[bool]) -> None:
    """Print columns separated by blanks, one line per row whatever its length: for grep, and for a log file."""
    widths = [max(len(line[at]) for line in lines) for at in range(len(numbers))]
    for line in lines:
        placed = zip(line, widths, numbers, strict=True)
        _print("  ".join(text.rjust(width) if number else text.ljust(width) for text, width, number in placed).rstrip())


def mark(ok: bool) -> str:
    """Return a check mark or a cross; words if the stream cannot print them."""
    sign = "\N{CHECK MARK}" if ok else "\N{BALLOT X}"
    try:
        sign.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return "ok" if ok else "WRONG"
    return sign


def plain(value: Any) -> Any:
    """Convert the value to JSON values: dataclasses to objects, moments and bytes (in hex) to text, tuples to lists.

    Secrets in its texts are hidden.
    """
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {without_values(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, str) and not isinstance(value, Enum):
        return without_values(value)
    return value.value if isinstance(value, Enum) else value
