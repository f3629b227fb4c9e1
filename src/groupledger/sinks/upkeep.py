"""What keeps one table small and fast: rows removed, rows gathered in few files, files that are nobody's removed.

Each is one SQL command, a commit of its own that other writers may come before or after; a command that another writer
overtook is done again. On a local path the writers of a table wait for each other (`sinks.locks`). Checkpoints Delta
writes itself (`CHECKPOINT_INTERVAL`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from groupledger.sinks import changes
from groupledger.sinks.folder_files import file_sizes, has_files_to_vacuum
from groupledger.sinks.refusals import ENGINE_ERRORS, WriteConflict, is_conflict
from groupledger.sinks.runs import TRIES
from groupledger.tables import RUNS, TABLES
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

FILE_BYTES = "spark.databricks.delta.optimize.maxFileSize"
SMALL_BYTES = "spark.databricks.delta.optimize.minFileSize"
VACUUM_LOGGED = "spark.databricks.delta.vacuum.logging.enabled"
LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
LISTERS = 8
"""Tasks that list a table's folder for a vacuum. It is flat: Spark's own 10,000 tasks took a minute a table."""
STAMPED = tuple(table for table in TABLES if table is not RUNS)
"""Every table but `runs`: their rows carry the attempt that wrote them."""
NAMED = 500
"""Attempts named in one command."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableSize:
    """The files that make a table now."""

    files: int
    bytes: int


def size(spark: SparkSession, location: LedgerLocation, table: Table) -> TableSize:
    """How many files, how large together."""
    folder = location.folder(spark, table)
    sizes = None if folder is None else file_sizes(folder)
    if sizes is not None:
        return TableSize(len(sizes), sum(sizes))
    [row] = spark.sql(f"DESCRIBE DETAIL {location.identifier(table)}").collect()
    return TableSize(row["numFiles"], row["sizeInBytes"])


def stored(
    spark: SparkSession, location: LedgerLocation, tables: Iterable[Table] = STAMPED
) -> dict[tuple[str, str], int]:
    """(table, attempt) -> rows that are there, whether they count or not: one pass over one column of each table."""
    pieces = [location.rows(spark, each).select(F.lit(each.name), c.ATTEMPT_ID) for each in tables if each is not RUNS]
    if not pieces:
        return {}
    rows = reduce(lambda left, right: left.unionAll(right), pieces)
    counted = rows.groupBy(*rows.columns).count().collect()
    return {(table, attempt): number for table, attempt, number in counted}


def remove(spark: SparkSession, location: LedgerLocation, table: Table, attempts: Sequence[str]) -> int:
    """Remove the rows of these attempts from a table; how many there were. Raises WriteConflict as `persistently`."""
    removed = 0
    for first in range(0, len(attempts), NAMED):
        condition = f"{c.ATTEMPT_ID} IN ({', '.join(map(literal, attempts[first : first + NAMED]))})"
        command = f"DELETE FROM {location.identifier(table)} WHERE {condition}"  # noqa: S608 quoted, each value too
        removed += persistently(partial(_affected, spark, location, table, command), table)
    return removed


def remove_all(spark: SparkSession, location: LedgerLocation, table: Table) -> int:
    """Remove every row of a table; how many there were."""
    command = f"DELETE FROM {location.identifier(table)}"  # noqa: S608 quoted by identifier
    return persistently(partial(_affected, spark, location, table, command), table)


def _affected(spark: SparkSession, location: LedgerLocation, table: Table, command: str) -> int:
    return int(changes.run(spark, location, table, command)[0][0])


def gather(spark: SparkSession, location: LedgerLocation, table: Table, file_mb: int) -> None:
    """Bring the rows into files of this size in MiB, by the table's clustering where it has one; they stay so."""
    size_bytes = str(file_mb * 2**20)
    with settings(spark, {FILE_BYTES: size_bytes, SMALL_BYTES: size_bytes}):
        command = f"OPTIMIZE {location.identifier(table)}"
        persistently(partial(changes.run, spark, location, table, command), table)


def small_files(spark: SparkSession, location: LedgerLocation, table: Table, file_mb: int) -> int:
    """How many files of a table are below half of this size in MiB, without a query; 0 where only Spark can tell."""
    folder = location.folder(spark, table)
    sizes = None if folder is None else file_sizes(folder)
    return sum(size < file_mb * 2**19 for size in sizes or ())


def vacuum(spark: SparkSession, location: LedgerLocation, table: Table, hours: int) -> None:
    """Remove files in the table's folder that belonged to it no longer `hours` ago, or never did.

    Most of the time there are none, which Spark takes a dozen jobs to find out.
    """
    folder = location.folder(spark, table)
    if folder is not None and not has_files_to_vacuum(folder, hours):
        return
    with settings(spark, {VACUUM_LOGGED: "false", LISTING_TASKS: str(LISTERS)}):  # logged, each would be two commits
        spark.sql(f"VACUUM {location.identifier(table)} RETAIN {hours:d} HOURS").collect()


def persistently(work: Callable[[], T], table: Table) -> T:
    """Do the work until no other writer's commit comes in between. WriteConflict where one always does."""
    for _ in range(TRIES):
        try:
            return work()
        except ENGINE_ERRORS as error:
            if not is_conflict(error):
                raise
    raise WriteConflict(f"others write {table.name} all the time: {TRIES} tries were overtaken; run it again later")


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Settings of the session for a while."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)
