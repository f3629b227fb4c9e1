"""Render what a command prints as HTML and as text: the same calls, to another output."""

from __future__ import annotations

import contextlib
import html
import io
import re
from typing import TYPE_CHECKING

from groupledger.cli.fitting import worth_telling
from groupledger.cli.output import Output, numeric
from groupledger.core.cells import cell

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from groupledger.cli.fitting import Column

_TITLE = "font-weight:bold;margin:0.8em 0 0.3em 0"
_LINE = "margin:0.2em 0;white-space:pre-wrap"
_TABLE = "border-collapse:collapse;margin:0.3em 0"
_CELL = "padding:0.15em 0.8em 0.15em 0;vertical-align:top;white-space:nowrap;text-align:{}"
_OPTION = re.compile(r"\(--(limit|wide|json has all)\)")
"""What a command says of its options, at the end of a line."""
_ARGUMENTS = {"limit": "limit=", "wide": "wide=", "json has all": "to_pandas() has all"}


class HtmlPage(Output):
    """Collects output as self-contained HTML; every text in it is escaped."""

    def __init__(self) -> None:
        super().__init__(as_json=False)
        self._parts: list[str] = []

    def line(self, text: str = "") -> None:
        """Add a line of text; empty ones matter only in a terminal."""
        if text:
            said = _OPTION.sub(lambda found: f"({_ARGUMENTS[found[1]]})", text)
            self._parts.append(f'<div style="{_LINE}">{_escaped(said)}</div>')

    def title(self, text: str) -> None:
        """Add a heading."""
        self._parts.append(f'<div style="{_TITLE}">{_escaped(text)}</div>')

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table; numbers to the right, None as '-'. No rows, no table."""
        if not rows:
            return
        styles = [_CELL.format("right" if number else "left") for number in numeric(len(columns), rows)]
        head = _row("th", columns, styles)
        body = "".join(_row("td", row, styles) for row in rows)
        table = f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{body}</tbody></table>'
        self._parts.append(f'<div style="overflow-x:auto">{table}</div>')

    def fitted(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[object]],
        *,
        wide: bool = False,
        stacked: int = 0,
        more: str = "",
    ) -> None:
        """Add a table with every column that is not empty: a page can be as wide as needed."""
        chosen = worth_telling(columns, rows, wide=wide)
        self.table([columns[at].name for at in chosen], [[row[at] for at in chosen] for row in rows])

    @property
    def text(self) -> str:
        """Return the page."""
        return f'<div class="groupledger">{"".join(self._parts)}</div>'


def as_html(tell: Callable[[Output], None]) -> str:
    """Render the output as HTML."""
    page = HtmlPage()
    tell(page)
    return page.text


def as_text(tell: Callable[[Output], None]) -> str:
    """Render the output as text, as a command prints it into a file."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        tell(Output(as_json=False))
    return printed.getvalue().strip("\n")


def _row(tag: str, values: Sequence[object], styles: Sequence[str]) -> str:
    cells = (f'<{tag} style="{style}">{_escaped(value)}</{tag}>' for value, style in zip(values, styles, strict=True))
    return f"<tr>{''.join(cells)}</tr>"


def _escaped(value: object) -> str:
    """Escape a value as in a cell of the terminal, with no markup in it."""
    return html.escape(cell(value))
