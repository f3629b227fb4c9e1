"""The table `runs` of a ledger in a folder of this machine, read and added to by delta-rs: no query of a JVM's.

Spark takes a job or two for each look at a table of a few hundred rows, and the start of a run is little else. What is
here serves where delta-rs can both read and write the table; elsewhere (catalogs, object stores, Spark Connect, tables
with features that it does not know) everything goes through Spark. Both kinds of writers take the same lock.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from groupledger.core.digest import digest
from groupledger.core.engine_words import first_words
from groupledger.core.ledger_version import VERSION_PROPERTY
from groupledger.sinks import changes
from groupledger.sinks.refusals import WriteConflict, damaged, unwritable
from groupledger.tables import RUNS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import SparkSession

    from groupledger.sinks.location import LedgerLocation

RunRow = Mapping[str, Any]
"""A row of `runs`: a value a column; maps as dictionaries, moments with their zone."""

WRITER_VERSION = 3
"""Of Delta's protocol: constraints need it, and nothing else of `runs` needs more. From 7 on features are listed."""
TRIES = 10
"""Commits of others that may come in between before this one gives up."""
MOST_FILES = 32
"""Files with rows of one status, beyond which they are made one: each commit adds a file, which takes a millisecond."""

_MAPS = (c.COUNTS_IN, c.COUNTS_OUT, c.REMOVED)


@dataclass(frozen=True, slots=True)
class FolderRuns:
    """The table in its folder."""

    folder: Path

    def read(self, *statuses: str) -> list[dict[str, Any]]:
        """The rows with these statuses, in no order. Raises LedgerRefusal LEDGER_DAMAGED."""
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        try:
            table = DeltaTable(str(self.folder))
        except (DeltaError, OSError) as error:
            raise damaged(RUNS.name, f"its log cannot be read ({first_words(error)})") from error
        return _rows(table, statuses)

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
        return self._inserted(row, lambda table: any(map(bars, _rows(table, statuses))))

    def _inserted(self, row: RunRow, barred: Callable[[DeltaTable], bool]) -> bool:
        from deltalake.exceptions import DeltaError

        try:
            name = digest([row[c.ATTEMPT_ID], row[c.STATUS], row[c.SEQUENCE]])
            maps = {each: None if row[each] is None else list(row[each].items()) for each in _MAPS}
            return changes.insert_rows(self.folder, name, [{**row, **maps}], barred)
        except (DeltaError, OSError) as error:
            raise unwritable(first_words(error)) from error

    def gather(self, status: str) -> None:
        """Make the files with rows of a status one, where they have become many.

        The commit before it stands, whatever becomes of this: if it fails, a later call does it.
        """
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError

        with suppress(DeltaError, OSError, WriteConflict):
            files = DeltaTable(str(self.folder)).get_add_actions()
            if list(files["partition"].to_pylist()).count({c.STATUS: status}) > MOST_FILES:
                changes.gather_files(self.folder, {c.STATUS: status})

    def declared(self) -> tuple[StructType, str | None]:
        """The columns as Spark has them, and the schema version, if the table says one."""
        from deltalake import DeltaTable

        table = DeltaTable(str(self.folder))
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        return schema, table.metadata().configuration.get(VERSION_PROPERTY)


def folder_runs(spark: SparkSession, location: LedgerLocation) -> FolderRuns | None:
    """The table, where delta-rs reads and writes it; None where Spark has to, or has to say what is wrong with it."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    folder = location.folder(spark, RUNS)
    if folder is None:
        return None
    try:
        protocol = DeltaTable(str(folder)).protocol()
    except (DeltaError, OSError):
        return None
    is_plain = protocol.min_reader_version == 1 and protocol.min_writer_version <= WRITER_VERSION
    return FolderRuns(folder) if is_plain else None


def _rows(table: DeltaTable, statuses: Sequence[str]) -> list[dict[str, Any]]:
    import pyarrow as pa
    from deltalake import QueryBuilder

    named = ", ".join(f"'{status}'" for status in statuses)
    query = f"SELECT * FROM runs WHERE {c.STATUS} IN ({named})"  # noqa: S608 statuses are words of ours
    try:
        found = QueryBuilder().register(RUNS.name, table).execute(query).read_all()
    except Exception as error:  # the engine has no class of its own for what it meets in files
        raise damaged(RUNS.name, f"its rows cannot be read ({first_words(error)})") from error
    rows: list[dict[str, Any]] = pa.table(found).to_pylist()
    for row in rows:
        row.update({name: None if row[name] is None else dict(row[name]) for name in _MAPS})
    return rows
