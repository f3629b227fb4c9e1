"""Declare the columns of an answer once, beside the fields of its type: terminal, notebook and pages derive from it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
_COLUMN, _ROWS = "column", "rows"
WHEN = "when (UTC)"
WIDE = 10
"""Columns of this rank or above are shown only on request."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, and how its cells are made of the field that it is declared for.

    In a terminal that is too narrow, the column of the highest `rank` is dropped first (0: never; WIDE: shown only on
    request); `least`: the width down to which its cells may be wrapped, None if they must stay in one piece. Columns
    stand in order of `place`, then of declaration. `text` makes a cell of a value that is not None; a `named` cell is a
    member id, shown short. An `optional` column is left out without a value. A `detail` is a column on pages alone, and
    a line below the table elsewhere; without `on_pages` it is no column there. A property is one of a DataFrame only if
    it is declared to be `in_frames`; fields always are. `sql`: the expression that a query of the type selects for it.
    """

    name: str
    rank: int = 0
    least: int | None = None
    place: int = 0
    text: Callable[[Any], object] | None = None
    named: bool = False
    optional: bool = False
    detail: bool = False
    on_pages: bool = True
    in_frames: bool = False
    sql: str | None = None

    def cell(self, value: Any, names: Mapping[str, str]) -> object:
        """Return what a table shows of a value."""
        if value is None:
            return None
        return names.get(value, value) if self.named else value if self.text is None else self.text(value)


def differing(name: str, values: Collection[object], least: int) -> Column:
    """Return a column that is always shown if these values differ, else only on request."""
    return Column(name, 0 if len(set(values)) > 1 else WIDE, least)


def shown(name: str, **how: Any) -> dict[str, Any]:
    """Declare the column of a field of a dataclass, as its metadata."""
    return {_COLUMN: Column(name, **how)}


def computed(name: str, **how: Any) -> Callable[[F], F]:
    """Declare the column of a property, below `@property`."""

    def declared(get: F) -> F:
        get.__dict__[_COLUMN] = Column(name, **how)
        return get

    return declared


def listed(kind: type[Any]) -> dict[str, Any]:
    """Declare the field of an answer that holds its rows, dataclasses of this kind, as its metadata."""
    return {_ROWS: kind}


GROUP = shown("group", place=-3)
CLUSTER = shown("cluster", place=-2)
"""The first two columns of a row that is about a group."""


def columns_of(kind: type[Any]) -> tuple[tuple[str, Column], ...]:
    """Return the declared columns with the name of their field or property, in order."""
    declared = [(each.name, each.metadata[_COLUMN]) for each in fields(kind) if _COLUMN in each.metadata]
    members = [each for base in reversed(kind.__mro__) for each in vars(base).items()]
    getters = [(name, vars(member.fget)) for name, member in members if isinstance(member, property)]
    declared += [(name, of[_COLUMN]) for name, of in getters if _COLUMN in of]
    return tuple(sorted(declared, key=lambda each: each[1].place))


def table(
    kind: type[Any], values: Iterable[Any], names: Mapping[str, str] | None = None, *, page: bool = False
) -> tuple[list[str], list[list[object]]]:
    """Return the heads and the rows of a table of such values; `names`: the short form of member ids."""
    found = list(values)
    shown = [
        (name, each)
        for name, each in columns_of(kind)
        if (each.on_pages if page else not each.detail)
        and not (each.optional and all(getattr(value, name) is None for value in found))
    ]
    rows = [[each.cell(getattr(value, name), names or {}) for name, each in shown] for value in found]
    return [each.name for _, each in shown], rows


def details(value: Any) -> Iterable[tuple[str, object]]:
    """Yield the name and the text of each detail of a value that has any."""
    for name, each in columns_of(type(value)):
        if each.detail and getattr(value, name):
            yield each.name, each.cell(getattr(value, name), {})


def rows_in(answer: Any) -> tuple[type[Any], tuple[Any, ...]]:
    """Return the kind of an answer's rows, and the rows; a ranking has both."""
    if hasattr(answer, "kind"):
        return answer.kind, answer.groups
    [(name, kind)] = [(each.name, each.metadata[_ROWS]) for each in fields(answer) if _ROWS in each.metadata]
    return kind, getattr(answer, name)


def selected(kind: type[Any]) -> dict[str, str]:
    """Return the SQL expressions that are declared, by the name of the field."""
    return {name: each.sql for name, each in columns_of(kind) if each.sql is not None}
