"""The table `runs` of a ledger in a folder of this machine, read and added to by delta-rs: no query of a JVM's.

Spark takes a job or two for each look at a table of a few hundred rows, and the start of a run is little else. What is
here serves where delta-rs can both read and write the table; elsewhere (catalogs, object stores, Spark Connect, tables
with features that it does not know) everything goes through Spark. Both kinds of writers take the same lock.
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

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from groupledger.core.digest import digest
from groupledger.core.ledger import VERSION_PROPERTY, first_words
from groupledger.sinks import changes
from groupledger.sinks.location import LedgerLocation, plain_table
from groupledger.sinks.refusals import WriteConflict, damaged, unwritable
from groupledger.tables import RUNS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from deltalake import DeltaTable

RunRow = Mapping[str, Any]
"""A row of `runs`: a value a column; maps as dictionaries, moments with their zone."""
T = TypeVar("T")

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
class FolderRuns:
    """The table in its folder."""

    folder: Path

    def read(self, *statuses: str) -> list[RunRow]:
        """The rows with these statuses, in no order. Raises LedgerRefusal LEDGER_DAMAGED."""
        return self.read_as(itself, *statuses)

    def read_as(self, make: Callable[[RunRow], T], *statuses: str) -> list[T]:
        """What is made of each row with these statuses; of a file that was read before, nothing is made again."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            table = DeltaTable(str(self.folder))
        except (DeltaError, OSError) as error:
            raise damaged(RUNS.name, f"its log cannot be read ({first_words(error)})") from error
        return _made(make, self.folder, table, statuses)

    def append(self, row: RunRow) -> None:
        """Add a row. Raises as `insert`; WriteConflict where writers that take no lock are always faster."""
        if not any(self._inserted(row, lambda _: False) for _ in range(TRIES)):
            raise WriteConflict(
                f"others write {RUNS.name} all the time: {TRIES} tries were overtaken; run it again later"
            )

    def insert(self, row: RunRow, bars: Callable[[RunRow], bool], *statuses: str) -> bool:
        """Add a row unless one of the rows with these statuses bars it, as of the version before; whether it went in.

        False, too, where a writer that takes no lock was faster. Raises LedgerRefusal: LEDGER_UNWRITABLE,
        LEDGER_DAMAGED.
        """
        return self._inserted(row, lambda table: any(map(bars, _made(itself, self.folder, table, statuses))))

    def _inserted(self, row: RunRow, barred: Callable[[DeltaTable], bool]) -> bool:
        from deltalake.exceptions import DeltaError

        try:
            name = digest([row[c.ATTEMPT_ID], row[c.STATUS], row[c.SEQUENCE]])
            return changes.insert_rows(self.folder, name, [_stored(row)], barred)
        except (DeltaError, OSError) as error:
            raise unwritable(first_words(error)) from error

    def gather(self) -> None:
        """Make the files with rows of one status one, where they have become many.

        The commit before it stands, whatever becomes of this: if it fails, a later call does it.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        with suppress(DeltaError, OSError, WriteConflict):
            files = Counter(status for _, status in _files(DeltaTable(str(self.folder))))
            for status in sorted(files):
                if files[status] > MOST_FILES:
                    changes.gather_rows(self.folder, self._read_anew, {c.STATUS: status})

    def _read_anew(self, table: DeltaTable, partition: Mapping[str, str]) -> list[dict[str, Any]]:
        return _made(_stored, self.folder, table, partition.values())

    def declared(self) -> tuple[StructType, str | None]:
        """The columns as Spark has them, and the schema version, if the table says one."""
        from deltalake import DeltaTable

        table = DeltaTable(str(self.folder))
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        return schema, table.metadata().configuration.get(VERSION_PROPERTY)


def folder_runs(spark: SparkSession, location: LedgerLocation) -> FolderRuns | None:
    """The table, where delta-rs reads and writes it; None where Spark has to, or has to say what is wrong with it."""
    folder = location.folder(spark, RUNS)
    table = None if folder is None else plain_table(folder)
    if folder is None or table is None or table.protocol().min_writer_version > WRITER_VERSION:
        return None
    return FolderRuns(folder)


class _DataFile(NamedTuple):
    """A file of rows of one status, told from one that stood in its place before."""

    path: Path
    status: str
    identity: tuple[int, int, int]  # inode, ns of its last change, bytes


def _made(make: Callable[[RunRow], T], folder: Path, table: DeltaTable, statuses: Collection[str]) -> list[T]:
    """What is made of each row of the table's version with these statuses."""
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
    """Its rows, each page held against its checksum, which delta-rs does not do."""
    from pyarrow import parquet

    rows = parquet.ParquetFile(file.path, page_checksum_verification=True).read().to_pylist()
    return tuple(_row(row, file.status) for row in rows)


def itself(row: RunRow) -> RunRow:
    """Return the row."""
    return row


def _files(table: DeltaTable) -> list[tuple[str, str]]:
    """The files of the table's version, each with the status of its rows."""
    added = table.get_add_actions(flatten=True)
    return list(zip(added["path"].to_pylist(), added[f"partition.{c.STATUS}"].to_pylist(), strict=True))


def _stored(row: RunRow) -> dict[str, Any]:
    """The row with maps as Arrow takes them."""
    return {**row, **{name: None if row[name] is None else list(row[name].items()) for name in _MAPS}}


def _row(row: Mapping[str, Any], status: str) -> dict[str, Any]:
    values: dict[str, Any] = {name: row.get(name) for name in RUNS.columns} | {c.STATUS: status}
    return values | {name: None if values[name] is None else dict(values[name]) for name in _MAPS}
