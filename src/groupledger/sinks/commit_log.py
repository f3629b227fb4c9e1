"""The table `runs` as a log of commits: read, appended to, and added to by compare-and-set; by delta-rs or by Spark.

Spark takes a job or two for each look at a table of a few hundred rows, and the start of a run is little else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupledger.core.digest import digest
from groupledger.core.ledger_version import VERSION_PROPERTY, first_words
from groupledger.sinks import changes
from groupledger.sinks.location import LedgerLocation, plain_table
from groupledger.sinks.spark_errors import ENGINE_ERRORS, WriteConflict, damaged, is_conflict, unwritable
from groupledger.tables import RUNS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from deltalake import DeltaTable

RunRow = Mapping[str, Any]
"""A row of `runs`: a value a column; maps as dictionaries, moments with their zone."""
T = TypeVar("T")

PLANNED, COMMITTED, GIVEN_UP = "planned", "committed", "given-up"
ENDS = (COMMITTED, GIVEN_UP)
"""How an attempt ends, once."""

WRITER_VERSION = 3
"""Of Delta's protocol: constraints need it, and nothing else of `runs` needs more. From 7 on features are listed."""
TRIES = 10
"""Commits of others that may come in between before this one gives up."""
MOST_FILES = 32
"""Files with rows of one status, beyond which they are made one: each commit adds a file, which takes a millisecond."""
KEPT_FILES = 3 * MOST_FILES
"""Files whose rows are remembered, which no writer changes: a run looks four times at those of thousands of runs."""

_MAPS = (c.COUNTS_IN, c.COUNTS_OUT, c.REMOVED)


@dataclass(frozen=True, slots=True)
class FolderCommitLog:
    """The log in a folder of this machine, read and added to by delta-rs: no query of a JVM's."""

    folder: Path

    def read(self, make: Callable[[RunRow], T], *statuses: str) -> list[T]:
        """Make something of each row with these statuses, in no order; of a file read before, nothing is made again.

        Raises LedgerRefusal LEDGER_DAMAGED.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            table = DeltaTable(str(self.folder))
        except (DeltaError, OSError) as error:
            raise damaged(RUNS.name, f"its log cannot be read ({first_words(error)})") from error
        return _made(make, self.folder, table, statuses)

    def append(self, row: RunRow) -> None:
        """Add a row. Raises as `compare_and_set`; WriteConflict if writers that take no lock are always faster."""
        if not any(self._inserted(row, lambda _: False) for _ in range(TRIES)):
            raise WriteConflict(
                f"others write {RUNS.name} all the time: {TRIES} tries were overtaken; run it again later"
            )

    def compare_and_set(self, row: RunRow) -> bool:
        """Add a row unless `bars` says no of any other, as of the version before; return whether it went in.

        False, too, if a writer that takes no lock was faster. Raises LedgerRefusal: LEDGER_UNWRITABLE, LEDGER_DAMAGED.
        """
        return self._inserted(row, lambda table: any(bars(row, e) for e in _made(itself, self.folder, table, ENDS)))

    def _inserted(self, row: RunRow, barred: Callable[[DeltaTable], bool]) -> bool:
        from deltalake.exceptions import DeltaError

        try:
            name = digest([row[c.ATTEMPT_ID], row[c.STATUS], row[c.SEQUENCE]])
            return changes.insert_rows(self.folder, name, [_stored(row)], barred)
        except (DeltaError, OSError) as error:
            raise unwritable(first_words(error)) from error

    def gather(self) -> None:
        """Make the files with rows of one status one, if they have become many.

        The commit before it stands, whatever becomes of this: if it fails, a later call does it.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        def rows(table: DeltaTable, partition: Mapping[str, str]) -> list[dict[str, Any]]:
            return _made(_stored, self.folder, table, partition.values())

        with suppress(DeltaError, OSError, WriteConflict):
            files = Counter(status for _, status in _files(DeltaTable(str(self.folder))))
            for status in sorted(files):
                if files[status] > MOST_FILES:
                    changes.gather_rows(self.folder, rows, {c.STATUS: status})

    def declared(self) -> tuple[StructType, str | None]:
        """Return the columns as Spark has them, and the schema version, if the table has one."""
        from deltalake import DeltaTable

        table = DeltaTable(str(self.folder))
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        return schema, table.metadata().configuration.get(VERSION_PROPERTY)


@dataclass(frozen=True, slots=True)
class SparkCommitLog:
    """The log as Spark reads and writes it, by MERGE: in any place."""

    spark: SparkSession
    location: LedgerLocation

    def read(self, make: Callable[[RunRow], T], *statuses: str) -> list[T]:
        """Make something of each row with these statuses, in no order."""
        rows = self.location.rows(self.spark, RUNS).where(F.col(c.STATUS).isin(*statuses)).collect()
        return [make(row.asDict()) for row in rows]

    def append(self, row: RunRow) -> None:
        """Add a row."""
        changes.append_rows(self._frame(row), self.location, RUNS)

    def compare_and_set(self, row: RunRow) -> bool:
        """Add a row unless `bars` says no of any other; return whether it went in. False, too, in a conflict."""
        return self.merge(row, _BARS) == 1

    def gather(self) -> None:
        """Do nothing: `maintain` gathers the files that Spark writes."""

    def merge(self, row: RunRow, condition: str, matched: str = "") -> int | None:
        """Insert the row (`s`) unless a row of `runs` (`t`) meets the condition; `matched`: what becomes of such rows.

        Return how many rows changed, None in a conflict.
        """
        view = f"groupledger_{digest([row[c.ATTEMPT_ID], row[c.STATUS]])}"
        self._frame(row).createOrReplaceTempView(view)
        try:
            command = f"MERGE INTO {self.location.identifier(RUNS)} t USING {view} s ON {condition}{matched}"
            done = changes.run(self.spark, self.location, RUNS, f"{command} WHEN NOT MATCHED THEN INSERT *")
            return int(done[0]["num_affected_rows"])
        except ENGINE_ERRORS as error:
            if not is_conflict(error):
                raise
            return None
        finally:
            self.spark.catalog.dropTempView(view)

    def _frame(self, row: RunRow) -> DataFrame:
        return self.spark.createDataFrame([tuple(row[name] for name in RUNS.columns)], RUNS.schema)


CommitLog = FolderCommitLog | SparkCommitLog


def commit_log(spark: SparkSession, location: LedgerLocation) -> CommitLog:
    """Return the log: through delta-rs if it reads and writes the table, else through Spark.

    Spark serves catalogs, object stores, Spark Connect, and tables with features that delta-rs does not know; it also
    says what is wrong with a table. Both take the same lock.
    """
    folder = location.folder(spark, RUNS)
    table = None if folder is None else plain_table(folder)
    if folder is None or table is None or table.protocol().min_writer_version > WRITER_VERSION:
        return SparkCommitLog(spark, location)
    return FolderCommitLog(folder)


def bars(row: RunRow, other: RunRow) -> bool:
    """Return whether a row that ended an attempt keeps another such row out.

    An attempt ends once. A commit needs a number above all others, and a run that no other attempt has committed.
    """
    if other[c.ATTEMPT_ID] == row[c.ATTEMPT_ID]:
        return True
    both = row[c.STATUS] == other[c.STATUS] == COMMITTED
    return both and bool(other[c.SEQUENCE] >= row[c.SEQUENCE] or other[c.RUN_ID] == row[c.RUN_ID])


_BARS = (
    f"t.{c.STATUS} IN ('{COMMITTED}', '{GIVEN_UP}') AND (t.{c.ATTEMPT_ID} = s.{c.ATTEMPT_ID} OR ("
    f"s.{c.STATUS} = '{COMMITTED}' AND t.{c.STATUS} = '{COMMITTED}' AND (t.{c.SEQUENCE} >= s.{c.SEQUENCE} OR "
    f"t.{c.RUN_ID} = s.{c.RUN_ID})))"
)
"""`bars` in SQL: of a row `t` of the table and the new row `s`."""


class _DataFile(NamedTuple):
    """A file of rows of one status; `identity` differs from that of an earlier file in its place."""

    path: Path
    status: str
    identity: tuple[int, int, int]  # inode, ns of its last change, bytes


def _made(make: Callable[[RunRow], T], folder: Path, table: DeltaTable, statuses: Collection[str]) -> list[T]:
    """Make something of each row of the table's version with these statuses."""
    import pyarrow as pa

    found: list[T] = []
    for name, status in _files(table):
        if status in statuses:
            try:
                stat = (folder / name).stat()
                identity = stat.st_ino, stat.st_mtime_ns, stat.st_size
                found += _made_of_file(make, _DataFile(folder / name, status, identity))
            except (OSError, pa.ArrowException) as error:
                raise damaged(RUNS.name, f"{folder / name} cannot be read ({first_words(error)})") from error
    return found


@lru_cache(maxsize=KEPT_FILES)
def _made_of_file(make: Callable[[RunRow], T], file: _DataFile) -> tuple[T, ...]:
    return tuple(map(make, _rows_of_file(file)))


@lru_cache(maxsize=KEPT_FILES)
def _rows_of_file(file: _DataFile) -> tuple[RunRow, ...]:
    """Read its rows; each page is compared with its checksum, which delta-rs does not do."""
    from pyarrow import parquet

    rows = parquet.ParquetFile(file.path, page_checksum_verification=True).read().to_pylist()
    return tuple(_row(row, file.status) for row in rows)


def itself(row: RunRow) -> RunRow:
    """Return the row."""
    return row


def _files(table: DeltaTable) -> list[tuple[str, str]]:
    """List the files of the table's version, each with the status of its rows."""
    added = table.get_add_actions(flatten=True)
    return list(zip(added["path"].to_pylist(), added[f"partition.{c.STATUS}"].to_pylist(), strict=True))


def _stored(row: RunRow) -> dict[str, Any]:
    """Return the row with maps as Arrow takes them."""
    return {**row, **{name: None if row[name] is None else list(row[name].items()) for name in _MAPS}}


def _row(row: Mapping[str, Any], status: str) -> dict[str, Any]:
    values: dict[str, Any] = {name: row.get(name) for name in RUNS.columns} | {c.STATUS: status}
    return values | {name: None if values[name] is None else dict(values[name]) for name in _MAPS}
