"""Who answers queries, and their answers as plain Python values; the parts that queries are put together from."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any, Protocol, TypeVar

from arro3.core import ChunkedArray, DataType, Table

from groupledger.core.faults import Fault
from groupledger.core.log.topic_partitions import change_order
from groupledger.core.moments import from_micros, micros

K = TypeVar("K")
T = TypeVar("T")
Value = str | int | datetime
Record = dict[str, Any]
GroupKey = tuple[str, str]
"""Cluster and group."""
NUMBER = "coalesce(t.generation, t.group_epoch)"
"""What a state `t` counts for: a generation, or a group epoch where the coordinator assigns."""
MOST_ASKED = 1_000
"""Snapshots, or groups, that one query names."""
_READS = re.compile(
    r"(?:\s|--[^\n]*\n)*(?:explain\s+(?:analyze\s+|verbose\s+)*)?\(*\s*(?:select|with|values|describe|show)\b",
    re.IGNORECASE,
)
"""How a query begins that changes nothing: `EXPLAIN ANALYZE COPY` would write."""
_VALUE = re.compile(r":([a-z]\w*)")
_ODD = re.compile(r"(['\\(])")
"""What a literal has by its number: engines escape quotes in several ways, and one has another word for `unnest(`."""
_PATTERN = re.compile(r"\[(?P<itself>[*?\[])\]|[*?\\%_]")
_LEFT_TO_PYARROW = re.compile(r"\b(?:Map|Interval)\(")
"""In the name of a type whose values arro3 gives in another form, or not at all."""


class Reader(Protocol):
    """A ledger that answers queries over the views of what counts: `reader.LedgerReader`, or Spark.

    Tables are arro3's, the Arrow that delta-rs brings: to import pyarrow takes a fifth of the time of a small answer.
    """

    @property
    def place(self) -> str:
        """Where the ledger is, without secrets."""
        ...

    def query(self, sql: str, /, **values: Value) -> Table:
        """Return the rows of a query; `:name` in it stands for the value of that name."""
        ...

    def beside(self, rows: Any) -> AbstractContextManager[str]:
        """Let queries read these rows (Arrow) too: the name of their table, until the context ends."""
        ...

    def kept(self, sql: str, /) -> AbstractContextManager[str]:
        """Compute a query once, for several others: the name of the table of its rows, until the context ends."""
        ...


def records(reader: Reader, sql: str) -> list[Record]:
    """Return the rows of a query as dicts; moments in UTC, structs and maps as dicts."""
    found = reader.query(sql)
    return [dict(zip(found.schema.names, row, strict=True)) for row in rows_of(found)]


def first_of(reader: Reader, rows: str, order: str, limit: int, columns: str = "q.*") -> tuple[list[Record], int]:
    """Return the first rows `q` of a query in an order, and one more if there are more; and how many there are.

    They are counted only where there are more than `limit`: most often there are not.
    """
    found = records(reader, f"SELECT {columns} FROM ({rows}) q ORDER BY {order} LIMIT {limit + 1}")
    if len(found) <= limit:
        return found, len(found)
    return found, records(reader, f"SELECT count(*) AS n FROM ({rows}) q")[0]["n"]


def ranked(reader: Reader, rows: str, order: str, limit: int) -> tuple[list[Record], int]:
    """Return the first rows `q` of a query that has to look at all of them, and how many there are, in one query."""
    found = records(reader, f"SELECT q.*, count(*) OVER () AS total FROM ({rows}) q ORDER BY {order} LIMIT {limit}")
    return found, found[0]["total"] if found else 0


def group_of(row: Mapping[str, Any]) -> GroupKey:
    """Return the cluster and the group that a row is about."""
    return row["cluster_id"], row["group_id"]


def by_group(rows: Iterable[Record]) -> dict[GroupKey, list[Record]]:
    """Gather the rows of each group, in their order."""
    return gathered((group_of(row), row) for row in rows)


def gathered(pairs: Iterable[tuple[K, T]]) -> dict[K, list[T]]:
    """Gather what comes with each key, in order."""
    found: dict[K, list[T]] = {}
    for key, each in pairs:
        found.setdefault(key, []).append(each)
    return found


def members_of(reader: Reader, rows: Sequence[Record], columns: Iterable[str]) -> dict[str, list[Record]]:
    """Return these columns of the members of snapshots in JoinGroup order, by snapshot id."""
    named = ", ".join(f"t.{name}" for name in ("snapshot_id", "member_id", "group_instance_id", "client_id", *columns))
    found = of_each(reader, named, "current_member_snapshots", rows, "ORDER BY t.snapshot_id, t.member_order")
    return gathered((row["snapshot_id"], row) for row in found)


def from_row(kind: type[T], row: Mapping[str, Any], /, **more: Any) -> T:
    """Make a dataclass from the columns that are named as its fields, and from `more`."""
    names: tuple[str, ...] = kind.__slots__  # type: ignore[attr-defined]  # a dataclass with slots
    return kind(**{name: row[name] for name in names if name not in more}, **more)


def rows_of(table: Table, limit: int | None = None) -> list[tuple[Any, ...]]:
    """Return the rows as tuples, or the first of them; moments in UTC, structs and maps as dicts."""
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
    """Raise Fault("SQL_INVALID") for anything but a query: either engine would run statements that write."""
    if not _READS.match(sql):
        expected = "expected a query: SELECT ..., WITH ... or EXPLAIN ..."
        raise Fault("SQL_INVALID", f"got {sql.strip()[:60]!r}; {expected}")


def filled(sql: str, values: Mapping[str, Value], text: Callable[[str], str]) -> str:
    """Put the values into a query of a user, `text` as the engine writes one: neither engine takes them apart.

    delta-rs's has no parameters, and Spark's are lost in Delta's parser (Spark 4.2, Delta 4.4).
    """

    def written(found: re.Match[str]) -> str:
        value = values[found[1]]
        return text(value) if isinstance(value, str) else literal(value)

    return _VALUE.sub(written, sql) if values else sql


def literal(value: Value) -> str:
    """Write a value into a query, as every engine reads it: so queries are put together from others as they are.

    `literal("pay")` -> `'pay'`; `literal("it's")` -> `('it' || chr(39) || 's')`
    """
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value.astimezone(UTC).isoformat()}'"
    if isinstance(value, int):
        return str(value)
    parts = [f"chr({ord(part)})" if at % 2 else f"'{part}'" for at, part in enumerate(_ODD.split(value))]
    return parts[0] if len(parts) == 1 else f"({' || '.join(parts)})"


def matching(prefix: str, **wanted: Value | None) -> str:
    """Require that columns have these values; None asks for nothing.

    `matching("t.", group_id="pay", cluster_id=None)` -> `t.group_id = 'pay'`
    """
    found = (f"{prefix}{name} = {literal(value)}" for name, value in wanted.items() if value is not None)
    return " AND ".join(found) or "true"


def alike(column: str, pattern: str | None) -> str:
    """Require that a column is this text, in which `*` is any characters and `?` any one; None asks for nothing.

    In a pattern `[*]`, `[?]` and `[[]` are these characters themselves.
    """
    if pattern is None:
        return "true"
    if not is_pattern(pattern):
        return f"{column} = {literal(pattern)}"
    like = {"*": "%", "?": "_"}
    text = _PATTERN.sub(lambda found: found["itself"] or like.get(found[0], f"\\{found[0]}"), pattern)
    return f"{column} LIKE {literal(text)}"


def exactly(name: str) -> str:
    """Return the pattern that is like this one name alone."""
    return re.sub(r"([*?\[])", r"[\1]", name) if is_pattern(name) else name


def of_groups(prefix: str, cluster: str | None, group: str | None) -> str:
    """Require that columns name this cluster and a group like this one; None asks for nothing."""
    condition = matching(prefix, cluster_id=cluster)
    return condition if group is None else f"{condition} AND {alike(f'{prefix}group_id', group)}"


def is_pattern(name: str) -> bool:
    """Return whether it stands for names that are like it, not for one."""
    return "*" in name or "?" in name


def one_of(column: str, wanted: Iterable[str]) -> str:
    """Require that a column has one of these texts; there may be none."""
    texts = ", ".join(map(literal, wanted))
    return f"{column} IN ({texts})" if texts else "false"


def in_parts(rows: Sequence[T], most: int = MOST_ASKED) -> Iterator[Sequence[T]]:
    """Cut rows into parts that one query asks about."""
    return (rows[begin : begin + most] for begin in range(0, len(rows), most))


def of_snapshots(prefix: str, rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Require that a row is of one of these snapshots, some at a time; their groups keep other files unread."""
    for some in in_parts(rows):
        named = one_of(f"{prefix}snapshot_id", [row["snapshot_id"] for row in some])
        yield f"{of_their_groups(prefix, some)} AND {named}"


def of_their_groups(prefix: str, rows: Iterable[Mapping[str, Any]]) -> str:
    """Require that a row is of a group of this name that these rows are of."""
    return one_of(f"{prefix}group_id", sorted({row["group_id"] for row in rows}))


def of_each(
    reader: Reader, columns: str, view: str, rows: Sequence[Mapping[str, Any]], order: str = ""
) -> Iterator[Record]:
    """Yield rows `t` of a view that are of these snapshots; `order` holds among those of one query."""
    for which in of_snapshots("t.", rows):
        yield from records(reader, f"SELECT {columns} FROM {view} t WHERE {which} {order}")


def steps(**named: str) -> str:
    """Join queries into one: each may read those before it by name, and the last one is the result."""
    *others, (_, result) = named.items()
    return f"WITH {', '.join(f'{name} AS ({query})' for name, query in others)} {result}"


def newest(where: str, columns: str, more: str = "") -> str:
    """Select the last record `t` of each group for which a condition on `t` holds; `more`: of all these records `n`."""
    return (
        f"SELECT {columns} FROM (SELECT t.cluster_id, t.group_id, max(t.offset) AS newest{more} "
        f"FROM current_group_snapshots t WHERE {where} GROUP BY t.cluster_id, t.group_id) n "
        "JOIN current_group_snapshots t ON n.cluster_id = t.cluster_id AND n.group_id = t.group_id "
        f"AND n.newest = t.offset WHERE {where}"
    )


# Partitions as an answer names them.

NamedPartition = tuple[str, int]
BY_ID = "id:"
"""How a topic begins that goes by its id."""


def partitions(wire: Iterable[Mapping[str, Any]] | None) -> tuple[NamedPartition, ...]:
    """Turn the wire layout into sorted (topic, partition); a topic without a name goes by its id."""
    named = ((entry["topic"] or BY_ID + str(entry["topic_id"]), entry["partitions"]) for entry in wire or ())
    return tuple(sorted({(topic, number) for topic, numbers in named for number in numbers}))


def held(row: Mapping[str, Any]) -> tuple[NamedPartition, ...]:
    """Return what a member has: also what it is still to give up, until the coordinator knows that it has."""
    return partitions((*(row["recorded"] or ()), *(row.get("pending_revocation") or ())))


CLASSIC, CONSUMER, SHARE = "classic", "consumer", "share"


# The lives of a topic name: a name used again after a deletion is another topic.

TopicChangeRow = tuple[str, str | None, int | None, int]
"""Cluster, topic id, partition count or None for deleted, and since when in microseconds."""

_LISTED = "SELECT t.cluster_id, t.topic, t.topic_id, t.partition_count, t.valid_from FROM current_topic_snapshots t"


@dataclass(frozen=True, slots=True)
class TopicLife:
    """A stretch of time in which a topic had one id and one partition count. `until` is None while it lasts."""

    cluster_id: str
    topic_id: str | None
    partition_count: int
    since: datetime
    until: datetime | None


def topic_lives(reader: Reader, topic: str, cluster: str | None = None) -> tuple[TopicLife, ...]:
    """Return all that the topic listings said of the name, in order of cluster and time."""
    condition = matching("t.", topic=topic, cluster_id=cluster)
    return lives(_change(row) for row in records(reader, f"{_LISTED} WHERE {condition}"))


def lives_of(reader: Reader, clusters: list[str], topics: list[str]) -> dict[tuple[str, str], tuple[TopicLife, ...]]:
    """Return the lives of several names, by cluster and name; a name that no listing has is left out."""
    condition = f"{one_of('t.cluster_id', clusters)} AND {one_of('t.topic', topics)}"
    rows = records(reader, f"{_LISTED} WHERE {condition}")
    changes = gathered(((row["cluster_id"], row["topic"]), _change(row)) for row in rows)
    return {name: lives(of_name) for name, of_name in changes.items()}


def life_at(lives: tuple[TopicLife, ...], moment: datetime) -> TopicLife | None:
    """Return one name's life in a cluster at a moment; None if it was not listed, or deleted."""
    number = bisect_right(lives, moment, key=attrgetter("since"))
    last = lives[number - 1] if number else None
    return last if last is not None and (last.until is None or moment < last.until) else None


def _change(row: Record) -> TopicChangeRow:
    return row["cluster_id"], row["topic_id"], row["partition_count"], micros(row["valid_from"])


def lives(changes: Iterable[TopicChangeRow]) -> tuple[TopicLife, ...]:
    """Turn changes into the stretches between them."""
    ordered = sorted(changes, key=lambda change: (change[0], change_order(change[3], change[1], change[2])))
    found = []
    for index, (cluster, topic_id, count, since) in enumerate(ordered):
        later = ordered[index + 1] if index + 1 < len(ordered) and ordered[index + 1][0] == cluster else None
        if count is not None:
            until = from_micros(later[3]) if later else None
            found.append(TopicLife(cluster, topic_id, count, from_micros(since), until))
    return tuple(found)
