"""Who answers queries, and their answers as plain Python values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

from arro3.core import DataType

from groupledger.core.faults import Fault
from groupledger.core.moments import from_micros

if TYPE_CHECKING:
    from collections.abc import Iterable

    from arro3.core import ChunkedArray, Table


Value = str | int | datetime
Record = dict[str, Any]
GroupKey = tuple[str, str]
"""Cluster and group."""
_READS = re.compile(
    r"(?:\s|--[^\n]*\n)*(?:explain\s+(?:analyze\s+|verbose\s+)*)?\(*\s*(?:select|with|values|describe|show)\b",
    re.IGNORECASE,
)
"""How a query begins that changes nothing: `EXPLAIN ANALYZE COPY` would write."""
_VALUE = re.compile(r":([a-z]\w*)")
_PATTERN = re.compile(r"\[(?P<itself>[*?\[])\]|[*?\\%_]")
_LEFT_TO_PYARROW = re.compile(r"\b(?:Map|Interval)\(")
"""In the name of a type whose values arro3 gives in another form, or not at all."""


class Reader(Protocol):
    """A ledger that answers queries over the views of what counts: `reader.LedgerReader`, or Spark.

    Tables are arro3's, the Arrow that delta-rs brings: to import pyarrow takes a fifth of the time of a small answer.
    """

    def query(self, sql: str, /, **values: Value) -> Table:
        """The rows of a query; `:name` in it stands for the value of that name."""
        ...

    def kept(self, sql: str, /, **values: Value) -> AbstractContextManager[str]:
        """Work out a query once, for several others: the name of the table of its rows, until the context ends."""
        ...


def records(reader: Reader, sql: str, **values: Value) -> list[Record]:
    """The rows of a query as dicts; moments in UTC, structs and maps as dicts."""
    found = reader.query(sql, **values)
    return [dict(zip(found.schema.names, row, strict=True)) for row in rows_of(found)]


def rows_of(table: Table, limit: int | None = None) -> list[tuple[Any, ...]]:
    """The rows as tuples, or the first of them; moments in UTC, structs and maps as dicts."""
    if limit is not None:
        table = table.slice(0, min(limit, table.num_rows))
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: ChunkedArray) -> list[Any]:
    kind = column.type
    is_moment: bool = bool(DataType.is_timestamp(kind))  # its stub's `bool` is the type of that name
    if is_moment:
        micros: Any = column.cast(DataType.timestamp("us", tz=kind.tz)).cast(DataType.int64()).to_pylist()
        return [None if each is None else from_micros(each) for each in micros]
    found: Any
    if _LEFT_TO_PYARROW.search(str(kind)):
        import pyarrow as pa

        found = pa.chunked_array(column).to_pylist(maps_as_pydicts="strict")
    else:
        found = column.to_pylist()
    return list(found)


def require_query(sql: str) -> None:
    """Raise Fault("SQL_INVALID") for what is no query: either engine would run statements that write."""
    if not _READS.match(sql):
        expected = "expected a query: SELECT ..., WITH ... or EXPLAIN ..."
        raise Fault("SQL_INVALID", f"got {sql.strip()[:60]!r}; {expected}")


def filled(sql: str, values: Mapping[str, Value], text: Callable[[str], str]) -> str:
    """The query with its values in place, `text` as the engine writes one: neither engine takes them apart.

    delta-rs's has no parameters, and Spark's are lost in Delta's parser (Spark 4.2, Delta 4.4).
    """
    return _VALUE.sub(lambda found: _literal(values[found[1]], text), sql) if values else sql


def _literal(value: Value, text: Callable[[str], str]) -> str:
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(UTC).isoformat()}'"
    return str(value) if isinstance(value, int) else text(value)


def matching(prefix: str, **wanted: Value | None) -> tuple[str, dict[str, Value]]:
    """A condition that columns have these values, and the values; None asks for nothing.

    `matching("t.", group_id="pay", cluster_id=None)` -> `("t.group_id = :group_id", {"group_id": "pay"})`
    """
    values = {name: value for name, value in wanted.items() if value is not None}
    return " AND ".join(f"{prefix}{name} = :{name}" for name in values) or "true", values


def alike(column: str, name: str, pattern: str | None) -> tuple[str, dict[str, Value]]:
    """A condition that a column is this text, in which `*` is any characters and `?` any one; None asks for nothing.

    In a pattern `[*]`, `[?]` and `[[]` are these characters themselves.
    """
    if pattern is None:
        return "true", {}
    if not is_pattern(pattern):
        return f"{column} = :{name}", {name: pattern}
    return f"{column} LIKE :{name}", {name: _PATTERN.sub(_like, pattern)}


def _like(found: re.Match[str]) -> str:
    """A part of a pattern as SQL has it."""
    return found["itself"] or {"*": "%", "?": "_"}.get(found[0], f"\\{found[0]}")


def exactly(name: str) -> str:
    """The pattern that is like this one name alone."""
    return re.sub(r"([*?\[])", r"[\1]", name) if is_pattern(name) else name


def is_pattern(name: str) -> bool:
    """Whether it stands for names that are like it, not for one."""
    return "*" in name or "?" in name


def one_of(column: str, name: str, wanted: list[str]) -> tuple[str, dict[str, Value]]:
    """A condition that a column has one of these texts, and the values; there may be none."""
    values: dict[str, Value] = {f"{name}_{number}": value for number, value in enumerate(wanted)}
    return (f"{column} IN ({', '.join(f':{each}' for each in values)})" if values else "false"), values


# Partitions as an answer names them.

NamedPartition = tuple[str, int]
BY_ID = "id:"
"""How a topic begins that goes by its id."""


def partitions(wire: Iterable[Mapping[str, Any]] | None) -> tuple[NamedPartition, ...]:
    """The wire layout -> sorted (topic, partition); a topic without a name goes by its id."""
    named = ((entry["topic"] or BY_ID + str(entry["topic_id"]), entry["partitions"]) for entry in wire or ())
    return tuple(sorted({(topic, number) for topic, numbers in named for number in numbers}))


def held(row: Mapping[str, Any]) -> tuple[NamedPartition, ...]:
    """Return what a member has: also what it is still to give up, until the coordinator knows that it has."""
    return partitions((*(row["recorded"] or ()), *(row.get("pending_revocation") or ())))
