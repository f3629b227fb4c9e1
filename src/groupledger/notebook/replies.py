"""Display answers in a notebook: HTML in a cell, text at a prompt, a DataFrame for more."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import html
import inspect
import io
import operator
import re
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from arro3.core import Table

from groupledger.answers.answer_columns import Column, columns_of, rows_in
from groupledger.answers.at_a_glance import Listing
from groupledger.answers.replayed import Replayed
from groupledger.answers.scope import Ranking, known_for
from groupledger.answers.timeline import Timeline
from groupledger.cli.answers import as_json, print_listing
from groupledger.cli.output import Output, in_colour, numeric, plain, worth_telling
from groupledger.core.faults import Fault
from groupledger.core.rebalance.findings import Severity
from groupledger.core.text import cell
from groupledger.report.html.page_parts import COLOURS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from os import PathLike

    import pandas as pd
    import pyarrow as pa
    from matplotlib.figure import Figure


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ReplyRows:
    """The rows of an answer for a DataFrame; the columns exist even without a row."""

    columns: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Reply(Generic[T]):
    """An answer. `value` is the answer itself, a frozen dataclass; the rest shows it. `known`: up to when.

    `rows` are those of its DataFrame; None: those that the answer's type declares.
    """

    value: T
    printed: Callable[[Output, T], object]
    rows: ReplyRows | None = None
    known: str = ""

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows of the answer; times are in UTC, lists of partitions stay tuples."""
        import pandas as pd

        rows = self.rows or rows_of(*rows_in(self.value))
        return pd.DataFrame(list(rows.values), columns=list(rows.columns))

    def to_dict(self) -> Any:
        """Return the whole answer as JSON types, as `--json` of the command gives it."""
        return plain(self.value)

    def _repr_html_(self) -> str:
        page = HtmlPage()
        self._print_all(page)
        return page.text

    def __repr__(self) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self._print_all(Output(as_json=False))
        return printed.getvalue().strip("\n")

    def _print_all(self, output: Output) -> None:
        self.printed(output, self.value)
        if self.known:
            output.line(self.known)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class PlottedReply(Reply[T]):
    """A history, a rebalance, a replay or a ranking, which can be plotted."""

    def plot(self) -> Picture:
        """Plot a history over time; of a rebalance, who had what before and after; of a replay, both courses.

        Of rankings, storms and skew have a plot. Raises Fault: NO_PLOT for another, NOTHING_TO_DRAW, PICTURE_TOO_LARGE.
        """
        from groupledger.report import pictures

        found: Any = self.value
        if isinstance(found, Timeline):
            return Picture(pictures.draw_timeline(found))
        if isinstance(found, Replayed):
            return Picture(pictures.draw_courses(found))
        if isinstance(found, Ranking):
            return Picture(pictures.draw_ranking(found))
        return Picture(pictures.draw(getattr(found, "rebalance", found)))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class ListingReply(Reply[tuple[Listing, ...]]):
    """Listings, one below the other; the DataFrame has the rows of one of them."""

    def to_dict(self) -> Any:
        """Return the rows of each listing by its title, as objects, and how many there are in all."""
        return as_json(list(self.value))


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TableReply(Reply[Table]):
    """The rows of a query."""

    def to_arrow(self) -> pa.Table:
        """Return all rows as a pyarrow table, without Arrow's view types, which other libraries may not know."""
        import pyarrow as pa

        found = pa.table(self.value)
        plain_fields = [pa.field(each.name, _plain_type(each.type), each.nullable) for each in found.schema]
        return found.cast(pa.schema(plain_fields))

    def to_pandas(self) -> pd.DataFrame:
        """Return all rows as a DataFrame."""
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_dict(self) -> Any:
        """Return all rows as JSON types."""
        from groupledger.answers.queries import rows_of

        names = self.value.schema.names
        return [plain(dict(zip(names, row, strict=True))) for row in rows_of(self.value)]


@dataclass(frozen=True, slots=True)
class Picture:
    """A plot, shown in any notebook; `figure` is matplotlib's."""

    figure: Figure

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.figure.savefig(drawn, format="png")
        return drawn.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """Write it to a file; the file name's suffix selects the format (png, svg, pdf)."""
        self.figure.savefig(path)


def questions(*others: str) -> Callable[[type[T]], type[T]]:
    """Check the arguments of a class's public methods, and word their faults for Python.

    Each reply, but of `others`, says up to when what it is about is known.
    """

    def decorated(of: type[T]) -> type[T]:
        for name, method in list(vars(of).items()):
            if inspect.isfunction(method) and not name.startswith("_"):
                setattr(of, name, _question(method, says_known=name not in others))
        return of

    return decorated


def _question(ask: Callable[..., Any], *, says_known: bool) -> Callable[..., Any]:
    signature = inspect.signature(ask)

    @functools.wraps(ask)
    def asked(*args: Any, **options: Any) -> Any:
        given = signature.bind(*args, **options)
        for name in _NUMBERS & given.arguments.keys():
            given.arguments[name] = _number(name, given.arguments[name], signature.parameters)
        for name in _TEXTS & given.arguments.keys():
            text = given.arguments[name]
            if not isinstance(text, str) and (text is not None or name in _NEEDED):
                raise Fault("USAGE", f"{name} is {text!r}; expected a text")
        with in_python():
            reply = ask(*given.args, **given.kwargs)
        if not says_known or not isinstance(reply, Reply):
            return reply
        cluster = given.arguments.get("cluster", getattr(args[0], "cluster", None))
        read = known_for(getattr(args[0], "ledger", args[0]).reader, reply.value, cluster)
        return dataclasses.replace(reply, known=read.text if read.reaches else "")

    return asked


_NEEDED = {"group_id", "partition", "query"}
_TEXTS = {*_NEEDED, "cluster", "group"}
_NUMBERS = {"generation", "incarnation", "offset", "limit"}


def _number(name: str, given: Any, beside: Iterable[str]) -> int | None:
    """Check a number of a question, and a generation that may be the latest. Raises Fault("USAGE")."""
    if (given is None and name != "limit") or (name == "generation" and isinstance(given, str) and given == "latest"):
        return None
    try:
        number = operator.index(given)
    except TypeError:
        at = " (a time is at=)" if "at" in beside else ""
        expected = f'a number, or "latest"{at}' if name == "generation" else "a whole number"
        raise Fault("USAGE", f"{name} is {given!r}; expected {expected}") from None
    if name == "limit" and number < 1:
        raise Fault("USAGE", f"limit is {number}; expected 1 or more")
    return number


_HINTS = {
    r"--ledger (\S+) names one nearby": r'gl.open("\1") opens one nearby',
    r"`groupledger show` lists": "ledger.show() lists",
    r"see show --coverage": "see ledger.coverage()",
    r"--from before --to": "begin before end",
    r"\(--(cluster|limit|wide)\)": r"(\1=)",
    r"\(--json has all\)": "(to_pandas() has all)",
}
"""What a command says to type, and what that is in Python."""


def _for_python(text: str) -> str:
    for typed, called in _HINTS.items():
        text = re.sub(typed, called, text)
    return text


@contextlib.contextmanager
def in_python() -> Iterator[None]:
    """Say in Python's words what is to be done about a fault."""
    try:
        yield
    except Fault as fault:
        raise Fault(fault.code, _for_python(fault.message)) from fault


def rows_of(kind: type[Any], values: Iterable[Any], *more: str) -> ReplyRows:
    """Turn dataclasses of one kind into rows: a column per field, property declared for frames, and name in `more`."""
    declared = (name for name, column in columns_of(kind) if column.in_frames)
    columns = (*(field.name for field in dataclasses.fields(kind)), *declared, *more)
    return ReplyRows(columns, tuple(tuple(_value(getattr(each, name)) for name in columns) for each in values))


def listing_reply(*listings: Listing, main: int = 0) -> ListingReply:
    """Build the reply of several listings; the rows are those of the `main` one."""
    chosen = listings[main]
    values = tuple(tuple(map(_value, row)) for row in chosen.rows)
    return ListingReply(listings, _print_listings, ReplyRows(chosen.columns, values))


def _print_listings(output: Output, listings: Sequence[Listing]) -> None:
    for listing in listings:
        print_listing(output, listing)


def _value(value: Any) -> Any:
    """Convert a cell of a DataFrame: values that are not plain become tuples and dicts."""
    if isinstance(value, Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _value(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return tuple(map(_value, value)) if isinstance(value, tuple) else value


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type without view types."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain_type(each.type), each.nullable) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(pa.field(kind.value_field.name, _plain_type(kind.value_type), kind.value_field.nullable))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type))
    return {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}.get(kind, kind)


# Render what a command prints as HTML and as text: the same calls, to another output.

_TITLE = "font-weight:bold;margin:0.8em 0 0.3em 0"
_LINE = "margin:0.2em 0;white-space:pre-wrap"
_TABLE = "border-collapse:collapse;margin:0.3em 0"
_CELL = "padding:0.15em 0.8em 0.15em 0;vertical-align:top;white-space:{};text-align:{}"
_GRAVE = {each: f";{COLOURS[each]}" for each in (Severity.ERROR, Severity.WARNING)}
_LONG_CELL = 48
_WRAPPED = f"normal;min-width:{_LONG_CELL // 3}em;overflow-wrap:anywhere"


class HtmlPage(Output):
    """Collects output as self-contained HTML; every text in it is escaped."""

    def __init__(self) -> None:
        super().__init__(as_json=False)
        self._parts: list[str] = []

    def line(self, text: str = "") -> None:
        """Add a line of text; empty ones matter only in a terminal."""
        if text:
            self._parts.append(f'<div style="{_LINE}">{_escaped(_for_python(text))}</div>')

    def title(self, text: str, severity: Severity = Severity.INFO) -> None:
        """Add a heading; in colour if it is about an error or a warning."""
        self._parts.append(f'<div style="{_TITLE}{_GRAVE.get(severity, "")}">{_escaped(text)}</div>')

    def table(self, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Add a table; numbers to the right, None as '-'. No rows, no table."""
        if not rows:
            return
        long = [any(len(cell(row[at])) > _LONG_CELL for row in rows) for at in range(len(columns))]
        aligned = ("right" if number else "left" for number in numeric(len(columns), rows))
        styles = [
            _CELL.format(_WRAPPED if wraps else "nowrap", side) for side, wraps in zip(aligned, long, strict=True)
        ]
        head = _row("th", columns, styles)
        body = "".join(_row("td", row, styles) for row in rows)
        table = f'<table style="{_TABLE}"><thead>{head}</thead><tbody>{body}</tbody></table>'
        self._parts.append(f'<div style="overflow-x:auto" tabindex="0">{table}</div>')

    def fitted(
        self,
        columns: Sequence[Column],
        rows: Sequence[Sequence[object]],
        *,
        wide: bool | None = None,
        stacked: int = 0,
        more: str = "",
    ) -> None:
        """Add a table with every column that is not empty: a page can be as wide as needed."""
        chosen = worth_telling(columns, rows, wide=bool(wide))
        self.table([columns[at].name for at in chosen], [[row[at] for at in chosen] for row in rows])

    @property
    def text(self) -> str:
        """Return the page."""
        return f'<div class="groupledger">{"".join(self._parts)}</div>'


def _row(tag: str, values: Sequence[object], styles: Sequence[str]) -> str:
    kinds = (tag if value != "" else "td" for value in values)  # no head is empty, for those who hear it
    cells = zip(kinds, styles, in_colour(values, _GRAVE), map(_escaped, values), strict=True)
    tds = (f'<{kind} style="{style}{grave}">{text}</{kind}>' for kind, style, grave, text in cells)
    return "".join(("<tr>", *tds, "</tr>"))


def _escaped(value: object) -> str:
    """Escape a value as in a cell of the terminal, with no markup in it."""
    return html.escape(cell(value))
