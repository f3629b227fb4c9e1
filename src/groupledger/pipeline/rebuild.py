"""Rebuild: rows that committed runs wrote and that are no longer there, made again from `log_records`.

`runs` says how many rows each attempt wrote to each table, and a digest of all of them. A table that cannot be read is
set aside and made anew, empty; then every attempt, in the order of the commits, gets its missing rows back, under its
own id: folded again for an ingest, computed again for an `assign`, derived again for `callbacks`. The digest says
whether they are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger import tables
from groupledger.core.digest import code_digest, result_digest
from groupledger.core.faults import Fault
from groupledger.pipeline.erasure import Erasure
from groupledger.pipeline.remaking import RemadeRows, Remaking
from groupledger.sinks import runs
from groupledger.sinks.append import Written, digests, measured, stamp, stored
from groupledger.sinks.aside import folder_of, move_aside
from groupledger.sinks.changes import overwrite_rows
from groupledger.sinks.ledger import check_for_writing, init, stands
from groupledger.sinks.refusals import RAW, damaged, engine_errors_as_faults
from groupledger.sinks.upkeep import STAMPED
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import Config
    from groupledger.pipeline.invocation import Invocation
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

RebuiltContents = dict[str, dict[str, Written]]
"""By table and attempt."""


@dataclass(frozen=True, slots=True)
class Remade:
    """Rows of one attempt in one table that are there again."""

    table: str
    run_id: str
    rows: int


@dataclass(frozen=True, slots=True)
class RebuildSummary:
    """What a rebuild did. `set_aside`: where the files of damaged tables are now, by table."""

    runs: int
    set_aside: Mapping[str, str]
    remade: tuple[Remade, ...]


def rebuild(spark: SparkSession, location: LedgerLocation, config: Config, invocation: Invocation) -> RebuildSummary:
    """Make the tables hold what the committed runs wrote. Done again, or after a kill, it goes on where it was.

    Raises Fault: LEDGER_MISSING; LEDGER_DAMAGED where a table cannot be read that is not made of others;
    TABLE_IN_THE_WAY, SOURCES_CHANGED, REBUILT_DIFFERENT with what to do.
    """
    with engine_errors_as_faults(location):
        check_for_writing(spark, location)
        history = runs.history(spark, location)  # before the tables: what commits after this look is not missing
        contents = {table.name: _contents(spark, location, table) for table in tables.TABLES if table.name in RAW}
        sequence = runs.read_commits(spark, location).sequence
    set_aside = {}
    for table in STAMPED:
        if table.name not in RAW:
            found = _readable(spark, location, table)
            contents[table.name] = {} if isinstance(found, Fault) else found
            if isinstance(found, Fault):
                set_aside[table.name] = str(_set_aside(location, table, invocation, sequence, found))
    with engine_errors_as_faults(location):
        init(spark, location)
        work = _Rebuild(spark, location, config, history, contents)
        return RebuildSummary(len(work.history), set_aside, tuple(work.remade()))


def _contents(spark: SparkSession, location: LedgerLocation, table: Table) -> dict[str, Written]:
    """What stands in a table by attempt; of `runs`, where nothing has a digest, only that every byte can be read."""
    if table is tables.RUNS:
        location.rows(spark, table).collect()
        return {}
    return stored(spark, location, table)


def _readable(spark: SparkSession, location: LedgerLocation, table: Table) -> dict[str, Written] | Fault:
    """What stands in the table, nothing if it is not there, or why it cannot be read. Raises the Fault of another table
    in its place, which is not touched."""
    try:
        with engine_errors_as_faults(location):
            return _contents(spark, location, table) if stands(spark, location, table) else {}
    except Fault as fault:
        if fault.code not in ("LEDGER_DAMAGED", "LEDGER_UNREADABLE"):
            raise
        return fault


def _set_aside(location: LedgerLocation, table: Table, invocation: Invocation, sequence: int, fault: Fault) -> Path:
    """Move a table's folder out of the way; `maintain` removes it once it is of no use (docs/operate/maintain.md)."""
    folder = folder_of(location, table)
    if folder is None or not folder.is_dir():
        what = f"{location.identifier(table)} is damaged and no folder of this machine: move it elsewhere or drop it"
        raise Fault("TABLE_IN_THE_WAY", f"{what}, then run `groupledger rebuild` again ({fault.message})")
    return move_aside(folder, invocation.attempt_id, sequence, invocation.now())


class _Rebuild:
    """A ledger whose tables can all be read, and what its runs say they hold."""

    def __init__(
        self,
        spark: SparkSession,
        location: LedgerLocation,
        config: Config,
        history: tuple[runs.Run, ...],
        contents: RebuiltContents,
    ) -> None:
        self.spark, self.location = spark, location
        self.history, self.contents = history, contents
        self.remaking = Remaking(spark, location, config)
        self.erasure = Erasure.of(spark, location)

    def remade(self) -> Iterator[Remade]:
        """Give every attempt its missing rows back, in the order of the commits: a fold starts from earlier heads."""
        for run in self.history:
            short = [table for table in STAMPED if self._there(run, table) != run.counts_out.get(table.name, 0)]
            if not self.remaking.wrote(run):
                continue
            if self.erasure.touches(run):
                self.erasure.require_whole(run, short)
                continue
            self._require_raw(run, short)
            if short or not self._same(run):
                rows = self.remaking.made(run)
                for table, again in self._again(run, short, rows).items():
                    yield self._overwritten(run, table, again)
                rows.release()

    def _require_raw(self, run: runs.Run, short: list[Table]) -> None:
        """Raises Fault where rows are missing that are made of nothing else: their log entry was cut, or is lost."""
        for table in short:
            if table.name in RAW:
                expected, there = run.counts_out.get(table.name, 0), self._there(run, table)
                raise damaged(table.name, f"of {expected} rows of run {run.run_id!r} {there} are there")

    def _again(self, run: runs.Run, short: list[Table], rows: RemadeRows) -> dict[Table, DataFrame]:
        """Return the rows to write, by table: those that are missing, or all if others were changed as well.

        Raises Fault("REBUILT_DIFFERENT") before anything is written if they are not the rows that the run committed.
        """
        filled = self._filled(run)
        for chosen in (short, [*short, *(table for table in filled if table not in short)]):
            made = {table: stamp(table, rows.of(table), run.attempt_id, run.schema_version) for table in chosen}
            found = {table.name: measured(table, again).get(run.attempt_id) for table, again in made.items()}
            if made and self._same(run, found):
                return made
        raise self._different(run)

    def _filled(self, run: runs.Run) -> list[Table]:
        """The tables with rows of the attempt that can be made again: some row of one is not what was written."""
        return [table for table in STAMPED if self._there(run, table) and table.name not in RAW]

    def _there(self, run: runs.Run, table: Table) -> int:
        written = self.contents[table.name].get(run.attempt_id)
        return written.rows if written else 0

    def _overwritten(self, run: runs.Run, table: Table, again: DataFrame) -> Remade:
        """One commit that takes what is left of the attempt's rows and puts all of them there."""
        mine = F.col(c.ATTEMPT_ID) == F.lit(run.attempt_id)
        overwrite_rows(again, self.location, table, mine)
        self.contents[table.name] |= stored(self.spark, self.location, table, run.attempt_id)
        return Remade(table.name, run.run_id, self._there(run, table))

    def _same(self, run: runs.Run, made: Mapping[str, Written | None] = MappingProxyType({})) -> bool:
        """Whether the rows of the attempt have the digest that it committed, some tables as they are `made` again."""
        there = {table.name: self.contents[table.name].get(run.attempt_id) for table in STAMPED}
        written = [found for found in (there | dict(made)).values() if found]
        return result_digest(digests(written)) == run.result_digest

    def _different(self, run: runs.Run) -> Fault:
        """Say why its rows cannot be made again; they are left as they are."""
        lacking = [
            f"{table.name} has {self._there(run, table):,} of {run.counts_out.get(table.name, 0):,} rows"
            for table in STAMPED
            if self._there(run, table) != run.counts_out.get(table.name, 0)
        ]
        what = f"run {run.run_id!r} ({'; '.join(lacking) or 'all rows are there, some were changed'})"
        now = code_digest()
        if run.code_digest == now:
            why = "wrote other rows than this same version makes of what it read, which was changed, too"
            way_out = "restore the ledger from a backup, or ingest the sources into a new one"
        else:
            why = (
                f"was computed by {run.code_digest}; this version, {now}, makes other rows of the same records, as "
                "what is computed changed in between: that is no further damage"
            )
            way_out = f"rebuild with {run.code_digest}, or ingest the ledger's log_records into a new ledger"
        page = "docs/operate/failures-and-recovery.md"
        return Fault("REBUILT_DIFFERENT", f"{what} {why}. Nothing of it was written; {way_out} ({page})")
