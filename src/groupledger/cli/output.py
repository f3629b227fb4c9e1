"""Print a command's output: tables for a person, or one JSON line for a program, never both.

All printing goes through this module: only here is foreign text made visible (`core.text`).
rich is imported when the first table is printed. Progress goes to stderr.
"""

from __future__ import annotations

import codecs
import dataclasses
import io
import os
import re
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import Enum
from threading import Timer
from typing import TYPE_CHECKING, Any

from groupledger.answers.answer_columns import WIDE, Column
from groupledger.answers.spoken import shortened_names
from groupledger.core.moments import iso
from groupledger.core.rebalance.findings import Severity
from groupledger.core.secrets import without_values
from groupledger.core.text import LONGEST, cell, json_text, shortened, visible, without_middle

if TYPE_CHECKING:
    from rich.console import Console


_COUNTED = re.compile(r"[0-9,]+|:.*")
PATIENCE = 2.0
"""Seconds after which a person wants to know what takes so long."""


class OutputClosedError(Exception):
    """The reader of the output has closed it: `groupledger solve | head -1`."""


class Output:
    """A command's output. With `as_json`, only `result` writes to stdout; `wide`: all columns, and ids in full."""

    def __init__(self, *, as_json: bool, wide: bool = False) -> None:
        self.as_json = as_json
        self.wide = wide
        self.cluster: object = None  # of all rows of a table above

    def line(self, text: str = "") -> None:
        """Print a line for a person."""
        if self.as_json:
            return
        said = visible(without_values(text))
        for each in in_lines(said, _terminal()) if sys.stdout.isatty() else (said,):
            _print(each)

    def place(self, cluster: str | None) -> str:
        """Return `(cluster dev)` for a heading, unless a line above has said that all of it is of that cluster."""
        return "" if cluster == self.cluster else f" (cluster {cluster})"

    def of_one_cluster(
        self, columns: Sequence[str], rows: Sequence[Sequence[object]]
    ) -> tuple[Sequence[str], Sequence[Sequence[object]]]:
        """Say the cluster in a line, in place of a column, if all rows are of one."""
        at = columns.index("cluster") if "cluster" in columns else None
        found = set() if at is None else {row[at] for row in rows}
        if at is None or len(found) != 1 or len(columns) == 1:
            return columns, rows
        [self.cluster] = found
        self.line(f"cluster {cell(self.cluster)}")
        return (*columns[:at], *columns[at + 1 :]), [(*row[:at], *row[at + 1 :]) for row in rows]

    def left_off(self, number: int, what: str = "more", how: str = "--limit") -> None:
        """Print how many rows are not shown, if any, and how to see them."""
        if number > 0:
            self.line(f"... and {number:,} {what.removesuffix('s') if number == 1 else what} ({how})")

    def names(self, ids: Iterable[str], what: str = "member ids") -> dict[str, str]:
        """Return how each id is shown, and print the beginning that short ones lack."""
        if self.wide:
            return self.short(ids)
        names, start = shortened_names(list(ids))
        if start:
            self.line(f"{what} begin with {start}")
        return names

    def short(self, ids: Iterable[str]) -> dict[str, str]:
        """Return how each id is shown: in short, or in full in a wide output."""
        return {name: name for name in ids} if self.wide else shortened(ids)

    def notes(self, notes: Sequence[str]) -> None:
        """Print notes, a line each."""
        for note in notes:
            self.line(f"note: {note}")

    def title(self, text: str, severity: Severity = Severity.INFO) -> None:
        """Print a heading for a person, with a blank line before it; in colour if it is about an error or a warning."""
        text = without_values(text)
        if not self.as_json and sys.stdout.isatty():
            heading = "\n" + "\n".join(in_lines(visible(text), _terminal()))
            style = f"bold {_COLOURS.get(severity, '')}"
            console(stderr=False).print(heading, style=style, markup=False, highlight=False, soft_wrap=True)
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
        wide: bool | None = None,
        stacked: int = 0,
        more: str = "--wide",
    ) -> None:
        """Print a table of as many columns as fit, and say which do not. `wide`: all of them; None: as the output is.

        Empty columns are left out. Up to `stacked` rows that do not fit are printed cell by cell. `more` says how to
        see the others.
        """
        if self.as_json or not rows:
            return
        wide = self.wide if wide is None else wide
        chosen = worth_telling(columns, rows, wide=wide)
        columns, rows = [columns[at] for at in chosen], [[row[at] for at in chosen] for row in rows]
        names = [column.name for column in columns]
        width = None if wide else room()
        rows = rows if width is None else _with_short_ids(rows)
        widths = _widths(names, rows)
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

    def rows(self, rows: Iterable[Mapping[Column, object]], **how: Any) -> None:
        """Print as `fitted` does, if there are rows; each has its cells by column."""
        if found := list(rows):
            self.fitted(list(found[0]), [list(row.values()) for row in found], **how)

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
        """Say on stderr what is being done; the yielded function announces the next step.

        A terminal shows the step, the time since it began, and how many of Spark's tasks are done. Elsewhere each step
        that lasts longer than PATIENCE is a line.
        """
        if sys.stderr.isatty():
            yield from _on_terminal(doing)
            return
        timers: list[Timer] = []
        said: set[str] = set()

        def once(text: str) -> None:
            stage = _COUNTED.sub("", text)  # page 2 of 20: the stage of page 1
            if stage not in said:
                said.add(stage)
                say(f"{text} ...")

        def announce(text: str) -> None:
            for timer in timers:
                timer.cancel()
            timers[:] = [Timer(PATIENCE, once, (text,))]
            timers[0].daemon = True
            timers[0].start()

        announce(doing)
        try:
            yield announce
        finally:
            timers[0].cancel()


def _on_terminal(doing: str) -> Iterator[Callable[[str], None]]:
    from rich.progress import Progress, SpinnerColumn, Task, TextColumn, TimeElapsedColumn
    from rich.text import Text

    class SparkTasks(TextColumn):
        """How many tasks of Spark's running stages are done."""

        def render(self, task: Task) -> Text:
            return Text(_spark_tasks(), style="dim")

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn(), SparkTasks("")
    with Progress(*columns, console=console(stderr=True), transient=True, refresh_per_second=4) as progress:
        step = progress.add_task(visible(doing), total=None)

        def announce(text: str) -> None:
            progress.reset(step, description=visible(text))

        yield announce


def _spark_tasks() -> str:
    """Return how far the jobs of this process's Spark are; nothing without one, or if it cannot be asked."""
    pyspark = sys.modules.get("pyspark")
    context = None if pyspark is None else getattr(pyspark.SparkContext, "_active_spark_context", None)
    if context is None:
        return ""
    from py4j.protocol import Py4JError

    try:
        tracker = context.statusTracker()
        found = [each for each in map(tracker.getStageInfo, tracker.getActiveStageIds()) if each is not None]
    except (Py4JError, AttributeError, OSError):  # it is ending: progress is no reason to fail
        return ""
    done, of = sum(each.numCompletedTasks for each in found), sum(each.numTasks for each in found)
    return f"{done:,} of {of:,} tasks" if of else ""


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


_LONG_ID = re.compile(rf"[^\s,;:()/]{{{LONGEST + 1},}}")


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


def _with_short_ids(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    """Return the rows without the middle of long ids, as far as they remain different: one must not hide columns."""
    ids = {each for row in rows for value in row if isinstance(value, str) for each in _LONG_ID.findall(value)}
    counted = Counter(map(without_middle, ids))
    short = {each: cut for each in ids if counted[cut := without_middle(each)] == 1}

    def shown(found: re.Match[str]) -> str:
        return short.get(found[0], found[0])

    return [[_LONG_ID.sub(shown, each) if type(each) is str else each for each in row] for row in rows]


def _widths(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[int]:
    """Return the width of the longest cell of each column, including its name."""
    return [max(len(name), *(len(cell(row[at])) for row in rows)) for at, name in enumerate(columns)]


def _print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], widths: Sequence[int] | None = None, *, wide: bool = False
) -> None:
    """Print by rich on a terminal, with cells wrapped to `widths`, if given."""
    numbers = numeric(len(columns), rows)
    columns = [cell(name) for name in columns]
    if sys.stdout.isatty() and not wide:
        _print_rich(columns, rows, numbers, widths or _widths(columns, rows))
    else:
        _print_plain([list(columns), *([cell(value) for value in row] for row in rows)], numbers)


def numeric(columns: int, rows: Sequence[Sequence[object]]) -> list[bool]:
    """Return for each column whether it has only numbers."""
    return [all(isinstance(row[at], int | float | None) for row in rows) for at in range(columns)]


def _print_rich(
    columns: Sequence[str], rows: Sequence[Sequence[object]], numbers: list[bool], widths: Sequence[int]
) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name, number in zip(columns, numbers, strict=True):
        table.add_column(Text(name), justify="right" if number else "left", overflow="fold")
    for row in rows:
        broken = ("\n".join(cell_lines(cell(value), width)) for value, width in zip(row, widths, strict=True))
        table.add_row(*map(Text, broken, in_colour(row, _COLOURS)))
    console(stderr=False).print(table)


_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow"}


def in_colour(values: Iterable[object], colours: Mapping[Severity, str]) -> list[str]:
    """Return the colour of each value that is a severity, and nothing for the others: a group may be named `error`."""
    return [colours.get(value, "") if isinstance(value, Severity) else "" for value in values]


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
        found = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {name: plain(each) for name, each in found.items() if not isinstance(each, type)}  # a ranking's kind
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


# Choose which columns of a table fit into a terminal.

GAP = 2
"""Blanks between two columns."""


def fitting(columns: Sequence[Column], widths: Sequence[int], room: int, *, breaking: bool = True) -> list[int]:
    """Return the indices of the columns that fit, in order; without `breaking`, cells need their full width.

    A dropped column comes back, the most important first, if it fits after all with nothing wrapped.
    """
    needed = [
        width if column.least is None or not breaking else min(width, max(column.least, len(column.name)))
        for column, width in zip(columns, widths, strict=True)
    ]
    chosen = list(range(len(columns)))
    while sum(needed[at] + GAP for at in chosen) - GAP > room:
        droppable = [at for at in chosen if columns[at].rank]
        if not droppable:
            break
        chosen.remove(max(droppable, key=lambda at: (columns[at].rank, at)))
    for back in sorted(set(range(len(columns))) - set(chosen), key=lambda at: (columns[at].rank, at)):
        if sum(widths[at] + GAP for at in (*chosen, back)) - GAP <= room:
            chosen.append(back)
    return sorted(chosen)


def worth_telling(columns: Sequence[Column], rows: Sequence[Sequence[object]], *, wide: bool) -> list[int]:
    """Return the indices of non-empty columns, without those shown only on request; `wide`: of all columns."""
    return [
        at
        for at, column in enumerate(columns)
        if wide or (column.rank < WIDE and any(row[at] is not None for row in rows))
    ]


NARROW = (14, 8)
"""Up to this width a column of a table stays in one piece; cells of a wider one may be wrapped down to it. If there is
still no room, the second number applies."""


def shared_widths(widths: Sequence[int], least: Sequence[int | None], room: int) -> list[int] | None:
    """Return each column's width if they fit into `room` together; None if they do not fit even so.

    `least`: the width down to which cells may be wrapped; None: not at all. Remaining room goes to the narrow columns
    first, in equal shares.
    """
    given = [width if low is None else min(width, low) for width, low in zip(widths, least, strict=True)]
    left = room - GAP * (len(widths) - 1) - sum(given)
    if left < 0:
        return None
    growing = sorted((at for at, low in enumerate(least) if low is not None), key=lambda at: (widths[at], at))
    for number, at in enumerate(growing):
        more = min(widths[at] - given[at], left // (len(growing) - number))
        given[at] += more
        left -= more
    return given


def table_widths(widths: Sequence[int], numbers: Sequence[bool], room: int) -> list[int] | None:
    """Return the widths of a table's columns if all are shown, numbers in one piece."""
    for narrow in NARROW:
        least = [None if number or width <= narrow else narrow for width, number in zip(widths, numbers, strict=True)]
        if (shared := shared_widths(widths, least, room)) is not None:
            return shared
    return None


def cell_lines(text: str, width: int) -> list[str]:
    """Wrap a cell to the width: at a blank, else after one of `,-/`, and otherwise anywhere."""
    lines = []
    while len(text) > width:
        blank, joint = text.rfind(" ", 0, width + 1), max(text.rfind(sign, 0, width) + 1 for sign in ",-/")
        cut = blank if blank > 0 else joint or width
        lines.append(text[:cut].rstrip(" "))
        text = text[cut:].lstrip(" ")
    return [*lines, text]


_LABEL = re.compile(r" *(?:- |\[ \] |[^ ]+(?: [^ ]+){0,2}:? {2,})?")
"""The indent of continuation lines: the text after `- ` or `[ ] `, or after a label and its blanks."""
_LEAST = 20
"""Characters that must remain after a label."""


def in_lines(text: str, width: int) -> list[str]:
    """Wrap text to the width, between words; a longer word stays in one piece, so that it can be copied."""
    if len(text) <= width:
        return [text]
    label = _LABEL.match(text)
    indent = 0 if label is None or width - label.end() < _LEAST else label.end()
    found = textwrap.wrap(
        text[indent:],
        width - indent,
        expand_tabs=False,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [text[:indent] + found[0], *(" " * indent + line for line in found[1:])]


def room() -> int | None:
    """Return the terminal's width, or COLUMNS; None if the output goes to a file or a program."""
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdecimal():
        return shutil.get_terminal_size().columns
    return None
