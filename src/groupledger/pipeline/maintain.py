"""Maintain: rows that count for nobody go, rows that count come together, files that are nobody's go. Safe beside jobs.

What is removed is never a row that counts or could ever count: an attempt is first given up in `runs`, by the same
compare-and-set that a commit is made by, and only then its rows go (and those that retention names). An attempt that is
slow is not dead; one that is given up while it lives finds so at its commit, and ends with WriteConflict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from groupledger.core.moment import iso
from groupledger.pipeline.erasure import Erasure, short
from groupledger.pipeline.invocation import Timings
from groupledger.pipeline.redaction import Redaction
from groupledger.pipeline.retention import due, forgetting
from groupledger.sinks import runs, upkeep
from groupledger.sinks.aside import Aside, erase, set_aside
from groupledger.sinks.leases import Lease
from groupledger.sinks.ledger import check_for_writing
from groupledger.sinks.refusals import engine_errors_as_faults
from groupledger.tables import BY_NAME, LOG_RECORDS, RUNS, TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from groupledger.config import Config
    from groupledger.pipeline.invocation import Invocation
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

KIND = "maintain"


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What became of one table."""

    table: str
    rows_removed: int
    before: upkeep.TableSize
    after: upkeep.TableSize


@dataclass(frozen=True, slots=True)
class AsideUpkeep:
    """What became of a folder that `rebuild` moved aside. `kept` says why it is still there; empty: it went."""

    folder: str
    kept: str


@dataclass(frozen=True, slots=True)
class MaintainSummary:
    """What a maintain did. `given_up` counts attempts that it found dead; rows of earlier ones may be removed too."""

    attempt_id: str
    given_up: int
    redacted: int  # tables overwritten
    tables: tuple[TableUpkeep, ...]
    set_aside: tuple[AsideUpkeep, ...]
    timings: Mapping[str, float]

    @property
    def rows_removed(self) -> int:
        """Of all tables."""
        return sum(each.rows_removed for each in self.tables)


def maintain(
    spark: SparkSession,
    location: LedgerLocation,
    config: Config,
    invocation: Invocation,
    tables: Sequence[Table] = TABLES,
    *,
    redact: bool = False,
) -> MaintainSummary:
    """Tidy up these tables, under a lease. What readers see is the same before, meanwhile and after, unless names are
    to be redacted (`pipeline.redaction`), or a redaction that was cut off is to be finished.

    Raises LedgerFault where there is no ledger; WriteConflict where another maintain holds the lease, or where others
    write all the time.
    """
    with engine_errors_as_faults(location):
        check_for_writing(spark, location, {RUNS, *tables})
        lease = _lease(config, invocation)
        lease.take(spark, location, invocation.now())
        work = _Work(spark, location, config, invocation, lease, tables)
        try:
            return work.done(redact=redact)
        finally:
            lease.release(spark, location)


def _lease(config: Config, invocation: Invocation) -> Lease:
    attempt = runs.Attempt(
        KIND, invocation.attempt_id, KIND, {}, config_digest="", code_digest="", started_at=invocation.now()
    )
    return Lease(attempt, timedelta(minutes=config.maintain.lease_minutes))


@dataclass(frozen=True, slots=True)
class _Work:
    """One maintain under way."""

    spark: SparkSession
    location: LedgerLocation
    config: Config
    invocation: Invocation
    lease: Lease
    tables: Sequence[Table]

    def done(self, *, redact: bool) -> MaintainSummary:
        timings = Timings(self.invocation.seconds)
        with timings.stage("redact"):
            redacted = self._redact() if redact or runs.read_commits(self.spark, self.location).redacting else 0
        with timings.stage("give up"):
            count = self._give_up()
        with timings.stage("retire"):
            stored = upkeep.stored(self.spark, self.location, self.tables)
            self._retire(stored)
            gone = self._gone(stored)
        kept_up = tuple(self._kept_up(table, gone.get(table.name, ()), timings) for table in self.tables)
        with timings.stage("set aside"):
            asides = tuple(self._set_aside(stored))
        return MaintainSummary(self.invocation.attempt_id, count, redacted, kept_up, asides, timings.by_stage)

    def _set_aside(self, stored: Mapping[tuple[str, str], int]) -> Iterator[AsideUpkeep]:
        """Remove the folders of damaged tables that are of no use any more; say of the others why they stay."""
        found = [aside for table in TABLES for aside in set_aside(self.location, table)]
        if not found:
            return
        erasure, commits = Erasure.of(self.spark, self.location), runs.read_commits(self.spark, self.location).commits
        for aside in found:
            redacted = aside.sequence < erasure.redacted  # since it was moved: what it holds may name somebody
            if redacted or BY_NAME[aside.table] in self.tables:
                lost = short(commits, BY_NAME[aside.table], stored, erasure.removed)
                kept = "" if redacted else self._why_kept(aside, lost)
                yield AsideUpkeep(str(aside.folder), kept or erase(aside))

    def _why_kept(self, aside: Aside, lost: Iterator[str]) -> str:
        hours = self.config.maintain.vacuum_hours
        for line in lost:
            return f"{aside.table} lacks rows ({line}): run `groupledger rebuild`"
        is_young = aside.at > self.invocation.now() - timedelta(hours=hours)
        return f"moved there {iso(aside.at)}, it stays for {hours} hours" if is_young else ""

    def _redact(self) -> int:
        attempt, settings = self.lease.attempt, self.config.redaction
        buckets = self.config.buckets or int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)
        return Redaction(self.spark, self.location, settings, attempt, buckets).done(self.invocation.now())

    def _give_up(self) -> int:
        now = self.invocation.now()
        began_before = now - timedelta(hours=self.config.maintain.attempt_hours)
        return runs.give_up(self.spark, self.location, began_before, now)

    def _retire(self, stored: Mapping[tuple[str, str], int]) -> None:
        """Commit which rows go for good, before any does: an ingest that needs them meanwhile ends in a conflict."""
        seen = runs.read_commits(self.spark, self.location)
        now = self.invocation.now()
        removed = due(self.spark, self.location, self.config.maintain.retention, stored, seen, now)
        if not removed:
            return
        counts = {f"removed.{name}": sum(stored[name, each] for each in removed[name]) for name in sorted(removed)}
        counts |= forgetting(self.spark, self.location, removed.get(LOG_RECORDS.name, []))
        guards = {guard for commit in seen.commits for guard in commit.guards if LOG_RECORDS.name in removed}
        guards -= {runs.REDACTION}
        run_id = f"{KIND}-{self.invocation.attempt_id}"
        attempt = replace(self.lease.attempt, run_id=run_id, guards=tuple(sorted(guards)))
        outcome = runs.Outcome({}, counts, result_digest="", verdict="done", finished_at=now, removed=removed)
        runs.commit(self.spark, self.location, attempt, seen.sequence, outcome)

    def _gone(self, stored: Mapping[tuple[str, str], int]) -> Mapping[str, Sequence[str]]:
        """By table, the attempts whose rows are there and count for nobody, now and for ever."""
        dead, removed = runs.given_up(self.spark, self.location), runs.removals(self.spark, self.location)
        found: defaultdict[str, list[str]] = defaultdict(list)
        for table, attempt in sorted(stored):
            if attempt in dead or attempt in removed.get(table, ()):
                found[table].append(attempt)
        return found

    def _kept_up(self, table: Table, gone: Sequence[str], timings: Timings) -> TableUpkeep:
        """One table."""
        settings = self.config.maintain
        self.lease.renew(self.spark, self.location, self.invocation.now())
        before = upkeep.size(self.spark, self.location, table)
        with timings.stage("remove rows"):
            removed = upkeep.remove(self.spark, self.location, table, gone)
        with timings.stage("gather"):
            if before.files > 1:
                upkeep.gather(self.spark, self.location, table, settings.file_mb)
        with timings.stage("vacuum"):
            upkeep.vacuum(self.spark, self.location, table, settings.vacuum_hours)
        changed = removed or before.files > 1
        after = upkeep.size(self.spark, self.location, table) if changed else before
        return TableUpkeep(table.name, removed, before, after)
