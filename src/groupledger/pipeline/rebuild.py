"""Rebuild: rows that committed runs wrote and that are no longer there, made again from `log_records`.

`runs` says how many rows each attempt wrote to each table, and a digest of all of them. A table that cannot be read is
set aside and made again, empty; then every attempt, in the order of the commits, gets its missing rows back, under its
own id: folded again for an ingest, computed again for an `assign`, derived again for `callbacks`. The digest says
whether they are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger import tables
from groupledger.config import Config, SourceSettings
from groupledger.config.settings import TABLE
from groupledger.core.digest import code_digest
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.engine import recorded_groups
from groupledger.engine.bucket_rows import RESULTS
from groupledger.engine.fold_schema import FILLED
from groupledger.pipeline import assign, call_tables, ingest
from groupledger.pipeline.cluster import SINCE, gap_rows
from groupledger.pipeline.enveloped import Enveloped
from groupledger.pipeline.ingest import changes_of_ownership, given, of_table
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import Erasure, RunRows
from groupledger.pipeline.past import Past
from groupledger.pipeline.reading import READ_AT, read_sources, stated_partitions, union
from groupledger.sinks import attempts
from groupledger.sinks.append import Written, measured, overwrite_rows, stamp, stored
from groupledger.sinks.ledger_tables import (
    STAMPED,
    LedgerLocation,
    check,
    check_for_writing,
    folder_of,
    init,
    move_aside,
    stands,
)
from groupledger.sinks.location import RAW, damaged, engine_errors_as_faults
from groupledger.tables import Table
from groupledger.tables import columns as c

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
    """Make the tables hold what the committed runs wrote. Done again, or after a kill, it continues where it was.

    Raises Fault: LEDGER_MISSING; LEDGER_DAMAGED where a table cannot be read that is not made of others;
    TABLE_IN_THE_WAY, SOURCES_CHANGED, REBUILT_DIFFERENT with what to do.
    """
    with engine_errors_as_faults(location):
        check_for_writing(spark, location)
        seen = attempts.read_commits(spark, location)  # before the tables: what commits later is not missing
        contents = {table.name: _contents(spark, location, table) for table in tables.TABLES if table.name in RAW}
        sequence = attempts.read_commits(spark, location).sequence
    set_aside = {}
    for table in STAMPED:
        if table.name not in RAW:
            found = _readable(spark, location, table)
            contents[table.name] = {} if isinstance(found, Fault) else found
            if isinstance(found, Fault):
                set_aside[table.name] = str(_set_aside(location, table, invocation, sequence, found))
    with engine_errors_as_faults(location):
        init(spark, location)
        remade = tuple(_remade(Remaking(spark, location, config), seen.commits, contents))
        return RebuildSummary(len(seen.commits), set_aside, remade)


def _contents(spark: SparkSession, location: LedgerLocation, table: Table) -> dict[str, Written]:
    """Measure a table by attempt; of `runs`, which has no digests, only read every byte."""
    if table is tables.RUNS:
        location.rows(spark, table).collect()
        return {}
    return stored(spark, location, table)


def _readable(spark: SparkSession, location: LedgerLocation, table: Table) -> dict[str, Written] | Fault:
    """Measure the table, empty if it is not there, or return why it cannot be read.

    Raises the Fault of another table in its place, which is not touched.
    """
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


def _remade(remaking: Remaking, history: Iterable[attempts.Run], contents: RebuiltContents) -> Iterator[Remade]:
    """Give every attempt its missing rows back, in the order of the commits: a fold starts from earlier heads."""
    spark, location = remaking.spark, remaking.location
    erasure = Erasure.of(spark, location)
    for run in history:
        there = RunRows.of(run, contents)
        short = [table for table in STAMPED if there.number(table) != there.committed(table)]
        if not remaking.wrote(run):
            continue
        if erasure.touches(run):
            erasure.require_whole(run, short)
            continue
        for table in short:
            if table.name in RAW:  # made of nothing else: its log entry was cut, or is lost
                rows = f"of {there.committed(table)} rows of run {run.run_id!r} {there.number(table)}"
                raise damaged(table.name, f"{rows} are there")
        if short or not there.all_same:
            made = remaking.made(run)
            for table, again in _again(there, short, made).items():
                overwrite_rows(again, location, table, F.col(c.ATTEMPT_ID) == F.lit(run.attempt_id))
                contents[table.name] |= stored(spark, location, table, run.attempt_id)
                yield Remade(table.name, run.run_id, RunRows.of(run, contents).number(table))
            made.release()


def _again(there: RunRows, short: list[Table], rows: RemadeRows) -> dict[Table, DataFrame]:
    """Return the rows to write, by table: those that are missing, or all if others were changed as well.

    Raises Fault("REBUILT_DIFFERENT") before anything is written if they are not the rows that the run committed.
    """
    run = there.run
    filled = [table for table in STAMPED if there.number(table) and table.name not in RAW]
    for chosen in (short, [*short, *(table for table in filled if table not in short)]):
        made = {table: stamp(table, rows.of(table), run.attempt_id, run.schema_version) for table in chosen}
        found = {table.name: measured(table, again).get(run.attempt_id) for table, again in made.items()}
        both = {name: each for name, each in {**there.tables, **found}.items() if each is not None}
        if made and RunRows(run, both).all_same:
            return made
    raise _different(there)


def _different(there: RunRows) -> Fault:
    """Say why the rows of a run cannot be made again; they are left as they are."""
    run, now = there.run, code_digest()
    lacking = [
        f"{table.name} has {there.number(table):,} of {there.committed(table):,} rows"
        for table in STAMPED
        if there.number(table) != there.committed(table)
    ]
    what = f"run {run.run_id!r} ({'; '.join(lacking) or 'all rows are there, some were changed'})"
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


# What a committed run wrote, made again: records folded, facts computed, histories of groups derived.


class Remaking:
    """Runs of one ledger, made again one by one. Nothing is written."""

    def __init__(self, spark: SparkSession, location: LedgerLocation, config: Config) -> None:
        """Make runs by their own settings; `config` has what a run must not say, such as paths with secrets."""
        self.spark, self.location, self.config = spark, location, config
        self.commits = attempts.read_commits(spark, location).commits

    def wrote(self, run: attempts.Run) -> bool:
        """Return whether runs of its kind write rows that are made of others: a `maintain` does not."""
        return run.kind in self._kinds

    def made(self, run: attempts.Run) -> RemadeRows:
        """Make the rows that the run wrote. Raises Fault: REBUILT_DIFFERENT, SOURCES_CHANGED if that is impossible."""
        return self._kinds[run.kind](run)

    @property
    def _kinds(self) -> Mapping[str, Callable[[attempts.Run], RemadeRows]]:
        return {assign.KIND: self._computed, attempts.INGEST: self._folded, attempts.CALLS: self._called}

    def _called(self, run: attempts.Run) -> RemadeRows:
        """Derive the calls of all history, as of the commits that the run saw."""
        seen = attempts.LedgerView(self._before(run))
        computed = call_tables.computed(self.spark, self.location, self.config, seen, run.inputs["hours"])
        return RemadeRows.cut(Enveloped.of(computed, None), recorded_groups.TABLES)

    def _computed(self, run: attempts.Run) -> RemadeRows:
        if assign.SETTINGS not in run.inputs:
            what = f"run {run.run_id!r} does not say with which settings it computed"
            raise Fault("REBUILT_DIFFERENT", f"{what}: run `groupledger assign` with them again under another run id")
        seen = attempts.LedgerView(self._before(run))
        computed = assign.computed_again(self.spark, self.location, self.config, run, seen)
        return RemadeRows.cut(Enveloped.of(computed, None), RESULTS)

    def _folded(self, run: attempts.Run) -> RemadeRows:
        """Fold the attempt's records, and add what of its sources never became a record."""
        before = self._before(run)
        past = Past(self.spark, self.location, before, run.guards, stated_partitions(run.inputs["sources"]))
        work = ingest.Work(past, self.config, run.attempt_id)
        folded = work.fold()
        made = RemadeRows({}, None) if folded is None else RemadeRows.cut(folded, FILLED)
        gaps = gap_rows(self.spark, run.inputs["sources"])
        if gaps is not None:
            made.by_table.setdefault(tables.COVERAGE.name, []).append(gaps)
        given = {} if folded is None else folded.rows
        short = {name for name, number in run.counts_out.items() if number != given.get(name, 0)} & _NOT_FROM_RECORDS
        if short:
            for table, more in self._from_sources(run, work):
                made.by_table.setdefault(table.name, []).append(more)
        return made

    def _from_sources(self, run: attempts.Run, work: ingest.Work) -> Iterator[tuple[Table, DataFrame]]:
        """Yield rows that are not kept raw: rejected lines, and users' own tables. Their sources must be unchanged."""
        passing = [each["path"] for each in run.inputs["sources"] if SINCE in each or READ_AT in each]
        if passing:
            what = f"run {run.run_id!r} read what was new in {', '.join(passing)}; what it rejected of it is kept"
            raise Fault("SOURCES_CHANGED", f"{what} nowhere else: restore quarantine from a backup")
        sources = tuple(_source(each, self.config.sources) for each in run.inputs["sources"])
        reading = read_sources(self.spark, replace(self.config, sources=sources))
        if reading.described["sources"] != run.inputs["sources"]:
            what = f"run {run.run_id!r} read sources that have changed since; rows of them are kept nowhere else"
            raise Fault(
                "SOURCES_CHANGED", f"{what}: bring back {', '.join(each.place for each in sources)} as they were"
            )
        taken = [
            piece for cluster, snapshots in reading.tables for piece in given(work.past.current, cluster, snapshots)
        ]
        for table in (tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS):
            for rows in of_table(taken, table):
                yield table, rows
        groups, members = (union(of_table(taken, table)) for table in (tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS))
        if groups is not None and members is not None:
            yield tables.OWNERSHIP_CHANGES, changes_of_ownership(work.past, groups, members)
        parts = [part for _, snapshots in reading.tables for part in snapshots.parts()]
        rejected = union(rows.rejected for rows in [*reading.logs, *reading.listings, *parts])
        if rejected is not None:
            yield tables.QUARANTINE, rejected

    def _before(self, run: attempts.Run) -> tuple[attempts.Run, ...]:
        return tuple(commit for commit in self.commits if commit.sequence < run.sequence)


_NOT_FROM_RECORDS = {
    table.name
    for table in (tables.QUARANTINE, tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS, tables.OWNERSHIP_CHANGES)
}


@dataclass(frozen=True, slots=True)
class RemadeRows:
    """Rows that an attempt wrote, by table; `kept` is what they are cut from, in memory until released."""

    by_table: dict[str, list[DataFrame]]
    kept: Enveloped | None

    @classmethod
    def cut(cls, found: Enveloped, tables: Iterable[Table]) -> RemadeRows:
        """Take the rows of these tables out of envelopes."""
        by_table = {table.name: rows for table in tables if (rows := found.rows_of(table)) is not None}
        return cls({name: [rows] for name, rows in by_table.items()}, found)

    def of(self, table: Table) -> DataFrame:
        """Return all rows of one table. Raises Fault if there is nothing they could be made of."""
        rows = union(self.by_table.get(table.name, []))
        if rows is None:
            raise Fault("REBUILT_DIFFERENT", f"rows of {table.name} are missing that are made of nothing in the ledger")
        return rows

    def release(self) -> None:
        """Free the rows that are kept in memory."""
        if self.kept is not None:
            self.kept.release()


def _source(described: Mapping[str, Any], configured: Iterable[SourceSettings]) -> SourceSettings:
    """Return what a run read, by the true path if that holds a secret: the configuration has it, not the run."""
    names = ("kind", "path", "cluster_id", "format", "offsets_partitions", "columns", "glob", "offset_commits")
    masked = described["path"]
    path = next((each.place for each in configured if without_secrets(each.place) == masked), masked)
    place = "table" if described["kind"] == TABLE else "path"
    return SourceSettings(**{name: described[name] for name in names if name in described} | {place: path})


# `groupledger verify`: a run of long ago made again from what it was made of, and held against what it committed.

KNOWN_SHOWN = 10


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """Rows of the run in one table: as many as it committed, and as many as come out now.

    `same`: their digests are equal; None where the run kept one digest of all its tables and none of this one.
    """

    table: str
    committed: int
    made: int
    same: bool | None


@dataclass(frozen=True, slots=True)
class Verification:
    """A run made again. `code_then` is the code that the run was made by."""

    run_id: str
    kind: str
    sequence: int
    code_then: str
    tables: tuple[VerifiedTable, ...]
    same: bool


def verify(spark: SparkSession, location: LedgerLocation, config: Config, run_id: str) -> Verification:
    """Make a committed run again, as of the commits that it saw, and compare the digests. Nothing is written.

    Raises Fault: UNKNOWN_RUN; NOTHING_TO_VERIFY for a run that computes nothing; RAW_ERASED where retention or a
    redaction took what it was made of; SOURCES_CHANGED, REBUILT_DIFFERENT where there is no way to make it again.
    """
    with engine_errors_as_faults(location):
        check(spark, location)
        runs = attempts.read_commits(spark, location).commits
        require_run([each.run_id for each in runs], run_id)
        run = next(each for each in reversed(runs) if each.run_id == run_id)  # the last one of that name
        remaking = Remaking(spark, location, config)
        if not remaking.wrote(run):
            raise Fault("NOTHING_TO_VERIFY", f"run {run_id!r} is a {run.kind}: it computes no rows of its own")
        erasure = Erasure.of(spark, location)
        if erasure.touches(run):
            why = "a redaction changed" if run.sequence < erasure.redacted else "retention removed"
            raise Fault("RAW_ERASED", f"{why} rows of run {run_id!r}: what it wrote can no longer be compared")
        rows = remaking.made(run)
        try:
            return _compared(spark, location, run, rows)
        finally:
            rows.release()


def require_run(committed: Sequence[str], run_id: str) -> None:
    """Raise Fault UNKNOWN_RUN if no committed run has the name; they are in the order of their commits."""
    if run_id not in committed:
        known = ", ".join(reversed(committed[-KNOWN_SHOWN:]))
        raise Fault("UNKNOWN_RUN", f"no committed run is called {run_id!r}; the latest: {known or 'none'}")


def _compared(spark: SparkSession, location: LedgerLocation, run: attempts.Run, rows: RemadeRows) -> Verification:
    """Compare the rows of the tables that follow from others; raw records are what all of it is made of."""
    derived = [table for table in STAMPED if table.name not in RAW]
    made = RunRows(run, {table.name: found for table in derived if (found := _measured(table, run, rows))})
    compared = tuple(
        VerifiedTable(
            table.name, made.committed(table), made.number(table), made.same(table) if made.by_table else None
        )
        for table in derived
        if made.committed(table) or made.number(table)
    )
    if made.by_table:
        same = all(each.same for each in compared)
    else:  # one digest of everything, of the raw rows as they are in their tables
        raw = {table.name: stored(spark, location, table, run.attempt_id) for table in STAMPED if table.name in RAW}
        same = RunRows(run, {**made.tables, **RunRows.of(run, raw).tables}).all_same
    return Verification(run.run_id, run.kind, run.sequence, run.code_digest, compared, same)


def _measured(table: Table, run: attempts.Run, rows: RemadeRows) -> Written | None:
    """Measure the rows of one table as an append would; None if there are none."""
    if not rows.by_table.get(table.name):
        return None
    return measured(table, stamp(table, rows.of(table), run.attempt_id, run.schema_version)).get(run.attempt_id)
