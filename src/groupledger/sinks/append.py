"""Appending rows of an attempt to a table: counted and digested in the pass that writes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from groupledger.core.digest import rows_digest, short_digest
from groupledger.sinks.changes import add_files, append_rows
from groupledger.sinks.location import LedgerLocation
from groupledger.tables import SCHEMA_VERSION, Table
from groupledger.tables import columns as c
from groupledger.tables.data_file import DataFile
from groupledger.tables.declaration import SEEDS, SUMS, hashed_columns
from groupledger.tables.sql_text import quoted

DIGESTS = "digest."
_LOW_HALF = 0xFFFFFFFF
_ROWS = "rows_written"
_HASH = "row_hash"


@dataclass(frozen=True, slots=True)
class Written:
    """What one append wrote. `digest` is free of attempt, run, clock, order and partitioning."""

    table: str
    rows: int
    sums: tuple[int, ...]
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Digest of the bag of rows."""
        return rows_digest(self.rows, self.sums)


def digests(written: Iterable[Written]) -> dict[str, str]:
    """Return the digest of an attempt's rows by table, over all appends; tables without rows are left out."""
    rows: Counter[str] = Counter()
    sums: dict[str, list[int]] = {}
    for each in written:
        rows[each.table] += each.rows
        before = sums.get(each.table, [0] * len(each.sums))
        sums[each.table] = [one + other for one, other in zip(before, each.sums, strict=True)]
    return {table: rows_digest(number, sums[table]) for table, number in rows.items() if number}


def digest_name(table: str) -> str:
    """Return the name in `counts_out` of the digest of a table's rows."""
    return DIGESTS + table


def digest_counts(by_table: Mapping[str, str]) -> dict[str, int]:
    """Return what `counts_out` keeps of `digests`: each table can be checked if the rows of another are erased."""
    return {digest_name(table): short_digest(digest) for table, digest in by_table.items()}


def stored(
    spark: SparkSession, location: LedgerLocation, table: Table, attempt_id: str | None = None
) -> dict[str, Written]:
    """Measure the rows of a table by attempt, as `append` did when it wrote them; of all attempts, or of one."""
    if attempt_id is None:
        return measured(table, location.rows(spark, table))
    return measured(table, location.rows(spark, table, [attempt_id]).where(F.col(c.ATTEMPT_ID) == attempt_id))


def measured(table: Table, rows: DataFrame) -> dict[str, Written]:
    """Measure stamped rows by attempt, as an append of them would."""
    hashed = rows.select(c.ATTEMPT_ID, *_hashes(table)).groupBy(c.ATTEMPT_ID)
    found = hashed.agg(F.count(F.lit(1)).alias(_ROWS), *_hash_sums()).collect()
    return {row[0]: Written(table.name, row[1], tuple(row[2:])) for row in found}


def append(
    location: LedgerLocation,
    table: Table,
    rows: DataFrame,
    attempt_id: str,
    metrics: Mapping[str, Column] = MappingProxyType({}),
    files: int | None = None,
) -> Written:
    """Append `rows`, stamped with the attempt, in one Delta commit; nobody sees them before `runs.commit`.

    `rows` has the table's columns by name, in any order, `attempt_id` apart; they are cast to its types. `metrics` are
    further aggregates over the table's columns, observed in the same pass. At most `files` files are written; without
    it one a partition.
    """
    stamped = stamp(table, rows, attempt_id)
    stamped = stamped if files is None else stamped.coalesce(files)
    observation = Observation()
    aggregates = [F.count(F.lit(1)).alias(_ROWS), *_hash_sums()]
    aggregates += [aggregate.alias(name) for name, aggregate in metrics.items()]
    hashed = stamped.select("*", *_hashes(table)).observe(observation, *aggregates)
    append_rows(hashed.select(*table.columns), location, table)
    seen = observation.get
    sums = tuple(seen[name] or 0 for name in SUMS)
    return Written(table.name, seen[_ROWS], sums, {name: seen[name] for name in metrics})


def append_files(
    spark: SparkSession, location: LedgerLocation, table: Table, files: Iterable[DataFile], written: Written
) -> Written:
    """Append files that stand in the table's folder, in one Delta commit; `written` says what their rows are.

    They are stamped, and were checked and hashed by who wrote them (`engine.envelope`).
    """
    add_files(spark, location, table, files)
    return written


def stamp(table: Table, rows: DataFrame, attempt_id: str, version: int = SCHEMA_VERSION) -> DataFrame:
    """Return the rows as the table has them, stamped with the attempt; `version`: that of the schema."""
    return rows.withColumn(c.ATTEMPT_ID, F.lit(attempt_id)).selectExpr(*_contract(table, version))


def _contract(table: Table, version: int = SCHEMA_VERSION) -> Iterator[str]:
    """Cast the table's columns to its types, so that the stored values are hashed; null if an older version had none.

    A type in SQL allows nulls inside, as Delta keeps it; a cast that only allows them costs nothing. `DataFrame.to`
    builds each list again, part by part: 16 us a row of `assignments`.
    """
    later = table.unknown_to(version)
    for column in table.schema:
        name = quoted(column.name)
        value = "NULL" if column.name in later else name
        yield f"cast({value} AS {column.dataType.simpleString()}) AS {name}"


def _hashes(table: Table) -> Iterator[Column]:
    """Two 64-bit hashes of each row, as columns: an aggregate would compute them again for each of its halves.

    In SQL, since each part of a Column costs calls into the JVM, and there are hundreds of parts.
    """
    terms = ", ".join(_terms(table))
    return (F.expr(f"xxhash64({seed}, {terms})").alias(f"{_HASH}_{seed}") for seed in SEEDS)


def _hash_sums() -> Iterator[Column]:
    """Sum the 32-bit halves of the row hashes: independent of order, no overflow below 2^31 rows."""
    for seed in SEEDS:
        yield F.expr(f"sum({_HASH}_{seed} & {_LOW_HALF}L)").alias(f"low_{seed}")
        yield F.expr(f"sum(shiftright({_HASH}_{seed}, 32))").alias(f"high_{seed}")


def _terms(table: Table) -> Iterator[str]:
    """List the terms of a row's hash."""
    for column in hashed_columns(table):
        name = quoted(column.field.name)
        yield f"if({name} IS NULL, NULL, {column.number})" if column.later else str(column.number)
        yield f"to_json({name}, map('ignoreNullFields', 'false'))" if column.as_json else name
