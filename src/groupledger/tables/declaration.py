"""Declare a table as a frozen value from which DDL, docs and checks derive."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pyspark.sql.types import ArrayType, DataType, IntegerType, StringType, StructField, StructType

from groupledger.tables import columns as c

FILTERED_BY = (
    *(c.CLUSTER_ID, c.GROUP_ID, c.TOPIC, c.PARTITION, c.OFFSET, c.SNAPSHOT_ID, c.ATTEMPT_ID, c.SEQUENCE),
    *(c.OBSERVED_AT, c.AT, c.TIMESTAMP),
)


class AtLeast(NamedTuple):
    """The column is not less than a number or another column; `or_null`: or it is null, which is not allowed else."""

    column: str
    least: int | str
    or_null: bool = False

    @property
    def columns(self) -> list[str]:
        """Return the columns that it is about."""
        return [name for name in (self.column, self.least) if isinstance(name, str)]

    @property
    def sql(self) -> str:
        """Return the rule in SQL."""
        value = f"coalesce({self.column}, {self.least})" if self.or_null else self.column
        return f"{value} >= {self.least}"


class OneOf(NamedTuple):
    """The column, which is never null, has one of a few words."""

    column: str
    words: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        """Return the column that it is about."""
        return [self.column]

    @property
    def sql(self) -> str:
        """Return the rule in SQL."""
        return f"{self.column} IN ({', '.join(map(repr, self.words))})"


ColumnRule = AtLeast | OneOf


@dataclass(frozen=True, slots=True)
class TableConstraint:
    """A rule for every row of a table, as SQL that is true, never null. Delta refuses a write that breaks it.

    `rules` say the same to those who check columns without SQL; there are none where only Spark writes the table.
    """

    name: str
    condition: str
    rules: tuple[ColumnRule, ...] = ()


class Added(NamedTuple):
    """A column that a later schema version added to its table."""

    column: str
    version: int


@dataclass(frozen=True, slots=True)
class Table:
    """One Delta table. `cluster_by` names the columns of liquid clustering, most selective first; a table that is
    partitioned instead names its columns in `partition_by`. `added`: columns that a later schema version brought, null
    in the rows of earlier ones; where one is null, the digest of a row is the one it had without the column.
    """

    name: str
    comment: str
    schema: StructType
    cluster_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] = ()
    checks: tuple[TableConstraint, ...] = ()
    added: tuple[Added, ...] = ()

    def unknown_to(self, version: int) -> frozenset[str]:
        """Return the columns that versions later than this one added; they are null in its rows."""
        return frozenset(each.column for each in self.added if each.version > version)

    @property
    def constraints(self) -> dict[str, str]:
        """Map the name of each constraint, unique among all tables, to its condition."""
        return {f"{self.name}_{check.name}": check.condition for check in self.checks}

    @property
    def filtered_by(self) -> list[str]:
        """Return the columns that readers filter by: only they get statistics, a good part of a small commit."""
        return [name for name in FILTERED_BY if name in self.columns]

    @property
    def columns(self) -> list[str]:
        """Return column names in order: every stage that fills this table ends in a `select` of them."""
        return list(self.schema.names)


def column(name: str, kind: DataType, comment: str, *, required: bool = False) -> StructField:
    """Declare a column with its comment; `required` columns are NOT NULL."""
    return StructField(name, kind, nullable=not required, metadata={"comment": comment})


def table(
    name: str,
    comment: str,
    *columns: StructField,
    cluster_by: tuple[str, ...] = (),
    partition_by: tuple[str, ...] = (),
    checks: tuple[TableConstraint, ...] = (),
    added: tuple[Added, ...] = (),
) -> Table:
    """Declare a table of `columns`, in this order."""
    return Table(name, comment, StructType(list(columns)), cluster_by, partition_by, checks, added)


def added_in(version: int, *columns: str) -> tuple[Added, ...]:
    """Return the columns that a schema version added."""
    return tuple(Added(column, version) for column in columns)


def rules(name: str, *some: ColumnRule) -> TableConstraint:
    """Require all of some rules."""
    return TableConstraint(name, " AND ".join(rule.sql for rule in some), some)


def counts(name: str, *columns: str, least: int = 0, or_null: bool = False) -> TableConstraint:
    """Require numbers that are at least `least`, in columns that are never null, or may be."""
    return rules(name, *(AtLeast(column, least, or_null) for column in columns))


def known(column: str, *words: str) -> TableConstraint:
    """Require one of a few words of ours, in a column that is never null."""
    return rules(column, OneOf(column, words))


INT_LIST = ArrayType(IntegerType(), containsNull=False)
STRING_LIST = ArrayType(StringType(), containsNull=False)

TOPIC_PARTITIONS = ArrayType(
    StructType(
        [StructField("topic", StringType(), nullable=False), StructField("partitions", INT_LIST, nullable=False)]
    ),
    containsNull=False,
)
"""The wire layout of results: a list of topics, each with its partitions, as on Kafka's wire (order kept)."""

TOPIC_ID_PARTITIONS = ArrayType(
    StructType(
        [
            StructField("topic_id", StringType(), nullable=True),
            StructField("topic", StringType(), nullable=True),
            StructField("partitions", INT_LIST, nullable=False),
        ]
    ),
    containsNull=False,
)
"""The wire layout of facts: with the topic's id where a source gives it; the name is null if only the id is known."""

TASKS = ArrayType(
    StructType(
        [
            StructField("role", StringType(), nullable=False),
            StructField("state", StringType(), nullable=False),
            StructField("subtopology", StringType(), nullable=False),
            StructField("partitions", INT_LIST, nullable=False),
        ]
    ),
    containsNull=False,
)
"""Tasks of a Streams group: task p of a subtopology reads partition p of each of its source topics that has one."""


# What the hash of a row of a table is made of, for all who compute it: SQL in `sinks.append`, columns in the engine.
#
# Two hashes of 64 bits are computed of each row, in halves of 32 bits that are summed up: no order is in the sums, and
# they do not overflow below 2^31 rows. Each begins with its seed; a number before each column says where it begins,
# since the hash passes over nulls.

SEEDS = (1, 2)
SUMS = tuple(f"{half}_{seed}" for seed in SEEDS for half in ("low", "high"))
"""Names of the sums of halves, in order."""
FIRST_VERSION = 1


class HashedColumn(NamedTuple):
    """A column as hash input, behind its number.

    `as_json`: its JSON is hashed, where the hash would not see what stands inside: nulls, bounds of lists. `later`: a
    later schema version added it; where it is null, its number is left out, and an old row keeps its digest.
    """

    number: int
    field: StructField
    as_json: bool
    later: bool


def hashed_columns(table: Table) -> Iterator[HashedColumn]:
    """Yield the columns of a row's hash in order: all but the attempt."""
    later = table.unknown_to(FIRST_VERSION)
    hashed = [field for field in table.schema if field.name != c.ATTEMPT_ID]
    for number, field in enumerate(hashed):
        yield HashedColumn(number, field, _is_ambiguous(field.dataType), field.name in later)


def _is_ambiguous(kind: DataType) -> bool:
    if isinstance(kind, ArrayType):
        return kind.containsNull or isinstance(kind.elementType, ArrayType) or _is_ambiguous(kind.elementType)
    if isinstance(kind, StructType):
        return any(inner.nullable or _is_ambiguous(inner.dataType) for inner in kind)
    return False
