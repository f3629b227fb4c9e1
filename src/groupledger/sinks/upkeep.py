"""What keeps one table small and fast: rows removed, rows gathered in few files, files that are nobody's removed.

Each is one SQL command, a commit of its own that other writers may come before or after; a command that another writer
overtook is done again. On a local path the writers of a table wait for each other (`sinks.locks`). Checkpoints Delta
writes itself (`CHECKPOINT_INTERVAL`).
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from pathlib import Path
from typing import TypeVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from groupledger.core.moments import iso
from groupledger.sinks import changes
from groupledger.sinks.attempts import Attempt, planned_row
from groupledger.sinks.commit_log import TRIES, SparkCommitLog
from groupledger.sinks.location import LedgerLocation, file_sizes, has_files_to_vacuum, has_scheme, local_folder
from groupledger.sinks.spark_errors import ENGINE_ERRORS, WriteConflict, is_conflict
from groupledger.tables import RUNS, TABLES, Table
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal

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
    """Return how many files there are, and their size together."""
    folder = location.folder(spark, table)
    sizes = None if folder is None else file_sizes(folder)
    if sizes is not None:
        return TableSize(len(sizes), sum(sizes))
    [row] = spark.sql(f"DESCRIBE DETAIL {location.identifier(table)}").collect()
    return TableSize(row["numFiles"], row["sizeInBytes"])


def stored(
    spark: SparkSession, location: LedgerLocation, tables: Iterable[Table] = STAMPED
) -> dict[tuple[str, str], int]:
    """Count the rows by (table, attempt), whether they count or not: one pass over one column of each table."""
    pieces = [location.rows(spark, each).select(F.lit(each.name), c.ATTEMPT_ID) for each in tables if each is not RUNS]
    if not pieces:
        return {}
    rows = reduce(lambda left, right: left.unionAll(right), pieces)
    counted = rows.groupBy(*rows.columns).count().collect()
    return {(table, attempt): number for table, attempt, number in counted}


def remove(spark: SparkSession, location: LedgerLocation, table: Table, attempts: Sequence[str]) -> int:
    """Remove the rows of these attempts from a table; return how many. Raises WriteConflict as `persistently`."""
    removed = 0
    for first in range(0, len(attempts), NAMED):
        named = ", ".join(map(literal, attempts[first : first + NAMED]))
        removed += remove_all(spark, location, table, f" WHERE {c.ATTEMPT_ID} IN ({named})")
    return removed


def remove_all(spark: SparkSession, location: LedgerLocation, table: Table, condition: str = "") -> int:
    """Remove every row of a table that meets the condition; return how many there were."""
    command = f"DELETE FROM {location.identifier(table)}{condition}"  # noqa: S608 quoted by identifier
    [(removed, *_)] = persistently(partial(changes.run, spark, location, table, command), table)
    return int(removed)


def gather(spark: SparkSession, location: LedgerLocation, table: Table, file_mb: int) -> None:
    """Bring the rows into files of this size in MiB, by the table's clustering where it has one; they stay so."""
    size_bytes = str(file_mb * 2**20)
    with settings(spark, {FILE_BYTES: size_bytes, SMALL_BYTES: size_bytes}):
        command = f"OPTIMIZE {location.identifier(table)}"
        persistently(partial(changes.run, spark, location, table, command), table)


def small_files(spark: SparkSession, location: LedgerLocation, table: Table, file_mb: int) -> int:
    """Count the files of a table below half of this size in MiB, without a query; 0 if only Spark can know."""
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
    """Change settings of the session for a while."""
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


# Folders of damaged tables that `rebuild` moved out of the way: `<ledger>/<table>.damaged-<attempt>`.
#
# Nobody reads them, and no vacuum of Delta sees them. They are kept for a person to look at, not for ever: what they
# hold is subject to retention and redaction as it was in the table. A note in each says when it was moved, and after
# which commit of the ledger.

DAMAGED = ".damaged-"
NOTE = "_set_aside.json"
_SEQUENCE, _AT = "sequence", "at"


@dataclass(frozen=True, slots=True)
class Aside:
    """One such folder. `sequence` numbers the last commit before it was moved; 0 where no note says."""

    table: str
    folder: Path
    sequence: int
    at: datetime


def folder_of(location: LedgerLocation, table: Table) -> Path | None:
    """Return the folder of a table on this machine; None if it is elsewhere, or only a catalog knows."""
    if location.path is None:
        return None
    folder = local_folder(location.path) if has_scheme(location.path) else Path(location.path)
    return None if folder is None else folder / table.name


def move_aside(folder: Path, attempt_id: str, sequence: int, now: datetime) -> Path:
    """Move a table's folder out of the way. Killed in between, the table is where it was, with a note in it."""
    note = {_SEQUENCE: sequence, _AT: now.astimezone(UTC).isoformat()}
    Path(folder, NOTE).write_text(json.dumps(note), encoding="utf-8")
    aside = folder.with_name(f"{folder.name}{DAMAGED}{attempt_id}")
    folder.rename(aside)
    return aside


def set_aside(location: LedgerLocation, table: Table) -> tuple[Aside, ...]:
    """List the folders of one table, in order of their names."""
    folder = folder_of(location, table)
    if folder is None or not folder.parent.is_dir():
        return ()
    found = (each for each in folder.parent.iterdir() if each.name.startswith(f"{table.name}{DAMAGED}"))
    return tuple(_aside(table, each) for each in sorted(found) if each.is_dir() and not each.is_symlink())


def _aside(table: Table, folder: Path) -> Aside:
    try:
        note = json.loads(Path(folder, NOTE).read_text(encoding="utf-8"))
        return Aside(table.name, folder, int(note[_SEQUENCE]), datetime.fromisoformat(note[_AT]))
    except (OSError, ValueError, KeyError, TypeError):  # of an older version, or a removal that was cut off
        return Aside(table.name, folder, 0, datetime.fromtimestamp(folder.stat().st_mtime, UTC))


def erase(aside: Aside) -> str:
    """Remove the folder with all it holds; return why it cannot be removed. Cut off, it can be repeated."""
    try:
        shutil.rmtree(aside.folder)
    except OSError as error:
        return f"cannot be removed: {error.strerror or error}"
    return ""


# A lease: a row of `runs` that keeps a second `maintain` out, taken by compare-and-set and good for a while.
#
# Nothing rests on it but work done twice: whatever a lease's holder does is safe beside any other writer.

LEASED = "leased"


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may do one kind of work, and for how long after each word. `attempt.kind` is what is leased."""

    attempt: Attempt
    length: timedelta

    def take(self, spark: SparkSession, location: LedgerLocation, now: datetime) -> None:
        """Take the lease, or say that it is still held. Raises WriteConflict where another holds it."""
        mine = planned_row(self.attempt) | {c.STATUS: LEASED, c.FINISHED_AT: now + self.length}
        same = f"t.{c.STATUS} = '{LEASED}' AND t.{c.KIND} = s.{c.KIND}"
        micros = round(now.timestamp() * 1_000_000)
        over = f"t.{c.ATTEMPT_ID} = s.{c.ATTEMPT_ID} OR t.{c.FINISHED_AT} <= timestamp_micros({micros})"
        taking = f" WHEN MATCHED AND ({over}) THEN UPDATE SET *"
        if SparkCommitLog(spark, location).merge(mine, same, taking) != 1:
            raise WriteConflict(self._refusal(spark, location))

    def renew(self, spark: SparkSession, location: LedgerLocation, now: datetime) -> None:
        """Say that it is still held, if half of its time is over."""
        if now >= self.attempt.started_at + self.length / 2:
            self.take(spark, location, now)

    def _refusal(self, spark: SparkSession, location: LedgerLocation) -> str:
        rows = location.rows(spark, RUNS).where((F.col(c.STATUS) == LEASED) & (F.col(c.KIND) == self.attempt.kind))
        holders = [(row[c.ATTEMPT_ID], row[c.FINISHED_AT]) for row in rows.collect()]
        held = "; ".join(f"attempt {holder} holds it until {iso(until)}" for holder, until in sorted(holders))
        return f"another {self.attempt.kind} is at work ({held or 'it took the lease just now'}); run it again later"

    def release(self, spark: SparkSession, location: LedgerLocation) -> None:
        """Give the lease back; nothing where another has taken it over."""
        mine = f"{c.STATUS} = '{LEASED}' AND {c.ATTEMPT_ID} = {literal(self.attempt.attempt_id)}"
        command = f"DELETE FROM {location.identifier(RUNS)} WHERE {mine}"  # noqa: S608 quoted by identifier and literal
        changes.run(spark, location, RUNS, command)
