"""Tables of pandas, Polars and Arrow: computed at once in this process, with results of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.arrays import ragged
from groupledger.core.faults import Fault
from groupledger.engine.arrow_lists import Column, column, list_starts
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.bucket import assigned, result_schema
from groupledger.engine.memberships.declared import plain
from groupledger.engine.memberships.input_columns import COLUMN_TYPE
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pandas as pd

    from groupledger.engine.memberships.input_columns import AssignPlan
    from groupledger.engine.memberships.spark import SparkFrames


EXPECTED = "a DataFrame of Spark, pandas or Polars, or a table of Arrow"
ToArrow = Callable[[Any, str], pa.Table]
OfArrow = Callable[[pa.Table], Any]


def source_of(members: Any, topics: Any) -> ArrowTables | SparkFrames:
    """Return the two tables. Raises Fault: USAGE if they are of no kind, or of two; COLUMN_TYPE for mixed values."""
    kinds = [_kind(each, frame) for each, frame in ((members, "members"), (topics, "topics"))]
    if kinds[0] != kinds[1]:
        raise Fault("USAGE", f"members is of {kinds[0]}, topics of {kinds[1]}; expected both of one kind")
    if kinds[0] == "Spark":
        from groupledger.engine.memberships.spark import SparkFrames

        return SparkFrames(members, topics)
    to_arrow, of_arrow = _CONVERSIONS[kinds[0]]
    return ArrowTables(kinds[0], to_arrow(members, "members"), to_arrow(topics, "topics"), of_arrow)


def _kind(table: Any, frame: str) -> str:
    origin, name = type(table).__module__.partition(".")[0], type(table).__name__
    found = {"pyspark": "Spark", "pandas": "pandas", "polars": "Polars", "pyarrow": "Arrow"}.get(origin)
    if found is None or name != ("Table" if found == "Arrow" else "DataFrame"):
        lazy = "; collect() it" if name == "LazyFrame" else ""
        raise Fault("USAGE", f"{frame} is a {type(table).__module__}.{name}; expected {EXPECTED}{lazy}")
    return found


@dataclass(frozen=True)
class ArrowTables:
    """Members and topics as Arrow, whatever they were."""

    kind: str
    members: pa.Table
    topics: pa.Table
    of_arrow: OfArrow

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Return the columns of both."""
        return self.members.schema, self.topics.schema

    def assigned(self, plan: AssignPlan) -> ArrowResult:
        """Compute the plan now."""
        by = {name: plain(self.members.schema.field(plan.members[name]).type) for name in plan.by}
        found = [result_schema(by).empty_table(), *assigned(self.members, self.topics, plan)]
        return ArrowResult(self.kind, pa.concat_tables(found).combine_chunks(), plan.by, self.of_arrow)


@dataclass(frozen=True)
class ArrowResult:
    """The result as Arrow, which is given as the kind that it was asked for."""

    kind: str
    rows: pa.Table
    by: tuple[str, ...]
    of_arrow: OfArrow

    def whole(self) -> Any:
        """Return the rows."""
        return self.of_arrow(self.rows)

    def members(self) -> Any:
        """Return a row a member."""
        return self.of_arrow(pa.table(member_columns(self.rows, self.by)))

    def groups(self, names: Sequence[str], *, refused: bool) -> Any:
        """Return a row a group."""
        mask = self.rows[c.CODE].is_valid()
        rows = self.rows.filter(mask if refused else pc.invert(mask))
        return self.of_arrow(rows.select([*self.by, *names]).combine_chunks())

    def persisted(self) -> ArrowResult:
        """Return the result, which is there."""
        return self


def member_columns(rows: pa.Table, by: Sequence[str]) -> dict[str, Column]:
    """Return the columns of a row a member, from the result's rows."""
    lists = column(rows, d.MEMBERS_OF_GROUP)
    owner = pa.array(ragged.owners(list_starts(lists)))
    keys = {name: column(rows, name).take(owner) for name in by}
    return keys | dict(zip(d.MEMBER_NAMES, pc.list_flatten(lists).flatten(), strict=True))


def of_pandas(frame: Any, name: str) -> pa.Table:
    """Convert column by column, so that one of mixed values is named; a dict is a map, not a struct of its keys."""
    columns = {}
    for label in frame.columns:
        try:
            columns[str(label)] = _column_of(frame[label])
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
            message = f"{name}: column {label} has values that are of no one type: {error}; expected one"
            raise Fault(COLUMN_TYPE, message) from error
    return pa.table(columns)


def _column_of(values: Any) -> pa.Array:
    first = next((each for each in values if each is not None), None) if values.dtype == object else None
    if not (isinstance(first, dict | list | tuple) or hasattr(first, "tolist")):
        return pa.Array.from_pandas(values)
    plain_values = [_without_arrays(each) for each in values]
    if not any(isinstance(each, dict) for each in plain_values):
        return pa.array(plain_values, from_pandas=True)
    entries = [list(each.items()) if isinstance(each, dict) else None for each in plain_values]
    kind = pa.array([value for each in entries for _, value in each or ()]).type
    return pa.array(entries, pa.map_(pa.string(), kind))


def _without_arrays(value: Any) -> Any:
    """Return lists and dictionaries: Spark has arrays of NumPy, those without values of floats, and rows."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {key: _without_arrays(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_without_arrays(each) for each in value]
    return value


def as_pandas(table: pa.Table) -> pd.DataFrame:
    """Return plain lists and dictionaries where values are nested, and whole numbers with nulls as such."""
    import pandas as pd

    numbers = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
    flat = [name for name in table.schema.names if not pa.types.is_nested(table.schema.field(name).type)]
    frame: pd.DataFrame = table.select(flat).to_pandas(types_mapper=numbers.get)
    for at, name in enumerate(table.schema.names):
        if name not in flat:
            frame.insert(at, name, pd.Series(table[name].to_pylist(), dtype=object))
    return frame


def _as_polars(table: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(table)


_CONVERSIONS: dict[str, tuple[ToArrow, OfArrow]] = {
    "Arrow": (lambda table, _: table, lambda table: table),
    "pandas": (of_pandas, as_pandas),
    "Polars": (lambda frame, _: frame.to_arrow(), _as_polars),
}
