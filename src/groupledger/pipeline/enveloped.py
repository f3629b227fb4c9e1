"""What workers gave of the tables that one pass fills, in envelopes (`engine.envelope`): counted, and ready to append.

files = files_of(spark, location, tables, attempt_id)           # None: Spark has to write
found = Enveloped.of(frame, files)                              # computes all of it
written = found.append(spark, location, tables, attempt_id)     # and releases it
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.engine.envelope import (
    COUNTS,
    DATA,
    TABLE,
    Envelope,
    FilesOfAttempt,
    NamedCount,
    counts_of,
    opened,
    sealed,
)
from groupledger.sinks import append
from groupledger.sinks.append import Written
from groupledger.sinks.attempts import MOST_MEMBERS
from groupledger.sinks.ledger_tables import LedgerLocation, folders_for_files
from groupledger.tables import BY_NAME, Table

if TYPE_CHECKING:
    import pyarrow as pa


def files_of(
    spark: SparkSession, location: LedgerLocation, tables: Collection[Table], attempt_id: str
) -> FilesOfAttempt | None:
    """Return where workers may write an attempt's rows of these tables; None: they give them to Spark."""
    folders = folders_for_files(spark, location, tables)
    return None if folders is None else FilesOfAttempt(attempt_id, folders)


@dataclass(frozen=True, slots=True)
class Enveloped:
    """Envelopes of one pass. `rows` by table; `files` has those whose rows lie in files, by table.

    `frame` has those with rows in them, in memory until they are released; None: all are in files.
    """

    rows: Counter[str]
    counts: list[NamedCount]
    files: defaultdict[str, list[Envelope]]
    frame: DataFrame | None

    @classmethod
    def of(cls, frame: DataFrame, files: FilesOfAttempt | None) -> Enveloped:
        """Compute the envelopes; `files` are those that the workers write into."""
        kept = frame if files else frame.persist()
        without_data = kept.withColumn(DATA, F.when(F.col(TABLE) == COUNTS, F.col(DATA)))
        found = cls(Counter(), [], defaultdict(list), None if files else kept)
        try:
            for envelope in map(Envelope.of_row, without_data.collect()):
                found._take(envelope)
        except BaseException:  # a later attempt in the same session must not find what this one computed
            found.release()
            raise
        return found

    @classmethod
    def in_files(cls, tables: Mapping[str, pa.Table], counts: list[NamedCount], files: FilesOfAttempt) -> Enveloped:
        """Write rows of tables into files here, as workers do."""
        found = cls(Counter(), counts, defaultdict(list), None)
        for name, rows in tables.items():
            for envelope in sealed(BY_NAME[name], rows, files):
                found._take(envelope)
        return found

    def _take(self, envelope: Envelope) -> None:
        if envelope.table == COUNTS:
            self.counts.extend(counts_of(envelope))
        else:
            self.rows[envelope.table] += envelope.rows
            if self.frame is None:
                self.files[envelope.table].append(envelope)

    def rows_of(self, table: Table) -> DataFrame | None:
        """Return the rows of a table that Spark has to append; None: there are none."""
        return None if self.frame is None or not self.rows[table.name] else opened(self.frame, table)

    def append(
        self, spark: SparkSession, location: LedgerLocation, tables: Iterable[Table], attempt_id: str
    ) -> list[Written]:
        """Append the rows of each of these tables that has any, and release them."""
        found = []
        try:
            for table in (each for each in tables if self.rows[each.name]):
                rows, expected = self.rows_of(table), self.rows[table.name]
                if rows is None:
                    written = self.append_files(spark, location, table)
                else:
                    written = append.append(location, table, rows, attempt_id)
                assert written is not None, f"{table.name}: {expected} rows in neither files nor envelopes"
                assert written.rows == expected, f"{written}; expected {expected} rows"
                found.append(written)
        finally:
            self.release()
        return found

    def append_files(self, spark: SparkSession, location: LedgerLocation, table: Table) -> Written | None:
        """Commit the files of a table; None: there are none."""
        mine = self.files.get(table.name)
        if not mine:
            return None
        sums = tuple(map(sum, zip(*(each.sums for each in mine), strict=True)))
        most_members = max((each.most_members or 0 for each in mine), default=0)
        append.add_files(spark, location, table, [file for each in mine if (file := each.file) is not None])
        return Written(table.name, self.rows[table.name], sums, {MOST_MEMBERS: most_members})

    def release(self) -> None:
        """Free the rows that are kept in memory."""
        if self.frame is not None:
            self.frame.unpersist()
