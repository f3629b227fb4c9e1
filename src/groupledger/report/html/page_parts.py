"""The parts of pages: tables, lists and plots, each with what was left off, and links to groups."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.core.moments import iso
from groupledger.core.rebalance.findings import Severity

if TYPE_CHECKING:
    from groupledger.answers.scope import Scope
    from groupledger.report.html.charts import Drawing

INDEX = "index.html"
PAGE_NAME = re.compile(r"(?:index|group-[a-z0-9-]{1,80})\.html")
"""What our files are called: nothing else in a folder is ever removed."""
NO_ONE_OWNER = "a partition of this group may have several owners or is known by its task alone"
"""Of share and streams groups."""
_SLUG, _SENTENCE = 40, 60
COLOURS = {
    Severity.ERROR: "color: #8b0000; background: #fff0f0;",
    Severity.WARNING: "color: #6b4700; background: #fff8e6;",
    Severity.INFO: "color: #333; background: #f3f3f3;",
}
"""CSS of what is of a severity, on pages and in notebooks: legible on a light ground and on a dark one."""


@dataclass(frozen=True, slots=True)
class Link:
    """A group, and its page, if it has one."""

    text: str
    page: str | None


@dataclass(frozen=True, slots=True)
class PageTable:
    """Rows under heads; `left_off` says how many more there are and how to see them."""

    heads: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]
    left_off: str = ""

    def is_number(self, column: int) -> bool:
        """Return whether a column holds nothing but numbers."""
        return all(isinstance(row[column], int | float | None) for row in self.rows)

    @property
    def has_sentences(self) -> bool:
        """Return whether a cell is too long for a line of a phone, which then shows each row as a block of lines."""
        return any(isinstance(value, str) and len(value) > _SENTENCE for row in self.rows for value in row)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page: folded unless it is `is_open`; `brief` says what is in it, `points` are a list."""

    title: str
    brief: str
    pictures: tuple[Drawing, ...] = ()
    points: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    tables: tuple[PageTable, ...] = ()
    is_open: bool = False


def page_of(cluster: str, group: str) -> str:
    """Return the file name of a group's page: letters and digits of its name, and a digest that makes it unique."""
    digest = hashlib.sha256(f"{cluster}\0{group}".encode("utf-8", "surrogatepass")).hexdigest()[:10]
    slug = re.sub(r"[^a-z0-9]+", "-", group.lower())[:_SLUG].strip("-")
    return f"group-{slug}-{digest}.html" if slug else f"group-{digest}.html"


def some(
    rows: Sequence[Sequence[object]], heads: Sequence[str], most: int, elsewhere: str, total: int | None = None
) -> PageTable:
    """Build a table of the first rows; `elsewhere` is the command that shows the others, of a `total`."""
    shown = tuple(map(tuple, rows[:most]))
    left = (len(rows) if total is None else total) - len(shown)
    return PageTable(tuple(heads), shown, f"... and {left:,} more: {elsewhere}" if left else "")


def command(words: str, within: Scope, cluster: str | None, group: str | None = None) -> str:
    """Return the command that shows more of the same period: `groupledger audit --since ... --group pay`."""
    options = {
        "--cluster": cluster,
        "--since": None if within.since is None else iso(within.since),
        "--until": None if within.until is None else iso(within.until),
    }
    given = [f"{name} {shlex.quote(value)}" for name, value in options.items() if value is not None]
    return " ".join(["groupledger", words, *([] if group is None else [shlex.quote(group)]), *given])


def cut(text: str, most: int) -> str:
    """Return the text, or its first characters and a sign that there is more."""
    return text if len(text) <= most else f"{text[:most]}\N{HORIZONTAL ELLIPSIS}"
