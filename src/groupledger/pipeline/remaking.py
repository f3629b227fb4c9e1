"""What a committed run wrote, made again: records folded, facts computed, histories of groups derived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from groupledger import tables
from groupledger.config import SourceSettings
from groupledger.config.settings import TABLE
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.engine import calls
from groupledger.engine.fold_schema import FILLED
from groupledger.engine.rows import RESULTS
from groupledger.pipeline import assign, call_tables, ingest
from groupledger.pipeline.cluster import SINCE, gap_rows
from groupledger.pipeline.enveloped import Enveloped
from groupledger.pipeline.growing import READ_AT
from groupledger.pipeline.past import Past
from groupledger.pipeline.reading import read_sources, stated_partitions, union
from groupledger.pipeline.snapshot_ingest import changes_of_ownership, given, of_table
from groupledger.sinks import runs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import Config
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table


class Remaking:
    """Runs of one ledger, made again one by one. Nothing is written."""

    def __init__(self, spark: SparkSession, location: LedgerLocation, config: Config) -> None:
        """A run says of itself what it was made with; `config` has what it must not say, such as paths with secrets."""
        self.spark, self.location, self.config = spark, location, config
        self.commits = runs.read_commits(spark, location).commits

    def wrote(self, run: runs.Run) -> bool:
        """Whether runs of its kind write rows that are made of others: a `maintain` does not."""
        return run.kind in self._kinds

    def made(self, run: runs.Run) -> RemadeRows:
        """The rows that the run wrote. Raises Fault: REBUILT_DIFFERENT, SOURCES_CHANGED where there is no way."""
        return self._kinds[run.kind](run)

    @property
    def _kinds(self) -> Mapping[str, Callable[[runs.Run], RemadeRows]]:
        return {assign.KIND: self._computed, runs.INGEST: self._folded, runs.CALLS: self._called}

    def _called(self, run: runs.Run) -> RemadeRows:
        """The calls of all history, as of the commits that the run saw."""
        seen = runs.LedgerView(self._before(run))
        computed = call_tables.computed(self.spark, self.location, self.config, seen, run.inputs["hours"])
        return RemadeRows.cut(Enveloped.of(computed, None), calls.TABLES)

    def _computed(self, run: runs.Run) -> RemadeRows:
        if assign.SETTINGS not in run.inputs:
            what = f"run {run.run_id!r} does not say with which settings it computed"
            raise Fault("REBUILT_DIFFERENT", f"{what}: run `groupledger assign` with them again under another run id")
        seen = runs.LedgerView(self._before(run))
        computed = assign.computed_again(self.spark, self.location, self.config, run, seen)
        return RemadeRows.cut(Enveloped.of(computed, None), RESULTS)

    def _folded(self, run: runs.Run) -> RemadeRows:
        """What the attempt's records fold to, and what of its sources never became a record."""
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

    def _from_sources(self, run: runs.Run, work: ingest.Work) -> Iterator[tuple[Table, DataFrame]]:
        """Rows that are not kept raw: rejected lines, and users' own tables. Their sources must be as they were."""
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

    def _before(self, run: runs.Run) -> tuple[runs.Commit, ...]:
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
        """The rows of these tables that lie in envelopes."""
        by_table = {table.name: rows for table in tables if (rows := found.rows_of(table)) is not None}
        return cls({name: [rows] for name, rows in by_table.items()}, found)

    def has(self, table: Table) -> bool:
        """Whether there may be rows of a table."""
        return bool(self.by_table.get(table.name))

    def of(self, table: Table) -> DataFrame:
        """All rows of one table. Raises Fault where there is nothing they could be made of."""
        rows = union(self.by_table.get(table.name, []))
        if rows is None:
            raise Fault("REBUILT_DIFFERENT", f"rows of {table.name} are missing that are made of nothing in the ledger")
        return rows

    def release(self) -> None:
        """They are written."""
        if self.kept is not None:
            self.kept.release()


def _source(described: Mapping[str, Any], configured: Iterable[SourceSettings]) -> SourceSettings:
    """What a run read, by the true path if that holds a secret: the run does not say it, the configuration does."""
    names = ("kind", "path", "cluster_id", "format", "offsets_partitions", "columns", "glob", "offset_commits")
    masked = described["path"]
    path = next((each.place for each in configured if without_secrets(each.place) == masked), masked)
    place = "table" if described["kind"] == TABLE else "path"
    return SourceSettings(**{name: described[name] for name in names if name in described} | {place: path})
