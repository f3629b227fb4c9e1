"""Delete rows of dead attempts, compact live ones, remove unreferenced files; safe beside running jobs.

What is removed is never a row that counts or could ever count: an attempt is first given up in `runs`, by the same
compare-and-set that a commit is made by, and only then its rows go (and those that retention names). An attempt that is
slow is not dead; one that is given up while it lives finds so at its commit, and ends with WriteConflict.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial, reduce

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.config import Config, RedactionSettings
from groupledger.core.digest import result_digest, short_digest
from groupledger.core.faults import Fault
from groupledger.core.moments import iso
from groupledger.engine.renaming import KIND, MARK, NAME, SURROGATE, closed, with_surrogates
from groupledger.pipeline.invocation import Invocation, Timings
from groupledger.pipeline.past import GROUP, due, forgetting
from groupledger.sinks import attempts, ledger_tables
from groupledger.sinks.append import DIGESTS, Written, digest_name, digests, overwrite_rows
from groupledger.sinks.ledger_tables import Aside, Lease, LedgerLocation, check_for_writing, erase, set_aside
from groupledger.sinks.location import engine_errors_as_faults
from groupledger.tables import BY_NAME, GROUP_HEADS, LOG_RECORDS, MEMBER_SNAPSHOTS, RUNS, TABLES, Table
from groupledger.tables import columns as c

MAINTAIN = "maintain"


@dataclass(frozen=True, slots=True)
class TableUpkeep:
    """What became of one table."""

    table: str
    rows_removed: int
    before: ledger_tables.TableSize
    after: ledger_tables.TableSize


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
        """Return the rows removed from all tables."""
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
    to be redacted (`pipeline.maintain`), or a redaction that was cut off is to be finished.

    Raises LedgerFault where there is no ledger; WriteConflict where another maintain holds the lease, or where others
    write all the time.
    """
    with engine_errors_as_faults(location):
        check_for_writing(spark, location, {RUNS, *tables})
        attempt = attempts.Attempt(MAINTAIN, invocation.attempt_id, MAINTAIN, {}, "", "", invocation.now())
        lease = Lease(attempt, timedelta(minutes=config.maintain.lease_minutes))
        lease.take(spark, location, invocation.now())
        work = _Work(spark, location, config, invocation, lease, tables)
        try:
            return work.done(redact=redact)
        finally:
            lease.release(spark, location)


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
        timings = Timings(self.invocation)
        with timings.stage("redact"):
            redacted = self._redact() if redact or attempts.read_commits(self.spark, self.location).redacting else 0
        with timings.stage("give up"):
            now = self.invocation.now()
            began_before = now - timedelta(hours=self.config.maintain.attempt_hours)
            count = attempts.give_up(self.spark, self.location, began_before, now)
        with timings.stage("retire"):
            stored = ledger_tables.stored(self.spark, self.location, self.tables)
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
        erasure = Erasure.of(self.spark, self.location)
        commits = attempts.read_commits(self.spark, self.location).commits
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

    def _retire(self, stored: Mapping[tuple[str, str], int]) -> None:
        """Commit which rows go for good, before any does: an ingest that needs them meanwhile ends in a conflict."""
        seen = attempts.read_commits(self.spark, self.location)
        now = self.invocation.now()
        removed = due(self.spark, self.location, self.config.maintain.retention, stored, seen, now)
        if not removed:
            return
        counts = {f"removed.{name}": sum(stored[name, each] for each in removed[name]) for name in sorted(removed)}
        counts |= forgetting(self.spark, self.location, removed.get(LOG_RECORDS.name, []))
        guards = {guard for commit in seen.commits for guard in commit.guards if LOG_RECORDS.name in removed}
        guards -= {attempts.REDACTION}
        run_id = f"{MAINTAIN}-{self.invocation.attempt_id}"
        attempt = replace(self.lease.attempt, run_id=run_id, guards=tuple(sorted(guards)))
        outcome = attempts.Outcome({}, counts, result_digest="", verdict="done", finished_at=now, removed=removed)
        attempts.commit(self.spark, self.location, attempt, seen.sequence, outcome)

    def _gone(self, stored: Mapping[tuple[str, str], int]) -> Mapping[str, Sequence[str]]:
        """Return by table the attempts whose rows are there and can never count."""
        dead = attempts.given_up(self.spark, self.location)
        removed = attempts.read_commits(self.spark, self.location).removed
        found: defaultdict[str, list[str]] = defaultdict(list)
        for table, attempt in sorted(stored):
            if attempt in dead or attempt in removed.get(table, ()):
                found[table].append(attempt)
        return found

    def _kept_up(self, table: Table, gone: Sequence[str], timings: Timings) -> TableUpkeep:
        """Remove dead rows of one table, gather its files, and vacuum it."""
        settings = self.config.maintain
        self.lease.renew(self.spark, self.location, self.invocation.now())
        before = ledger_tables.size(self.spark, self.location, table)
        with timings.stage("remove rows", f"tidying up {table.name}"):
            removed = ledger_tables.remove(self.spark, self.location, table, gone)
        with timings.stage("gather"):
            if before.files > 1:
                ledger_tables.gather(self.spark, self.location, table, settings.file_mb)
        with timings.stage("vacuum"):
            ledger_tables.vacuum(self.spark, self.location, table, settings.vacuum_hours)
        changed = removed or before.files > 1
        after = ledger_tables.size(self.spark, self.location, table) if changed else before
        return TableUpkeep(table.name, removed, before, after)


# Redaction: who the members were is replaced, in every table, by names that mean nothing and compute the same.
#
# Member ids (and instance ids, client ids, hosts) get surrogates with the same hash code and the same order in their
# group, so that a recomputed result is the same but for the names. The raw log is removed; user data is cut to the
# generation that claims rest on; texts that may quote a name are erased. Every group's history is closed: what is
# ingested later begins a new incarnation, since a member that lives on comes with its true name again.
#
#     begun   a commit that every attempt under way yields to (WriteConflict), and that no new one starts beside
#     ...     every table is overwritten once, `member_snapshots`, from which the surrogates are derived, last
#     done    a commit
#
# Cut off anywhere, it is finished by the next `maintain`: a table that was overwritten holds only surrogates, which
# stay.

BEGUN = "begun"
ERASED = "erased"
NAMES = {
    c.MEMBER_ID: c.MEMBER_ID,
    c.FROM_MEMBER_ID: c.MEMBER_ID,
    c.TO_MEMBER_ID: c.MEMBER_ID,
    c.LEADER: c.MEMBER_ID,
    c.GROUP_INSTANCE_ID: c.GROUP_INSTANCE_ID,
    c.CLIENT_ID: c.CLIENT_ID,
    c.HOST: c.HOST,
}
"""Columns that hold a name -> the column of `member_snapshots` where that name stands."""

TEXTS = (c.MESSAGE, c.EVIDENCE)
"""Columns of text in which a name may be quoted."""

BYTES = (c.KEY, c.VALUE, c.ROW)
"""Columns that hold raw input."""

_GENERATION_BYTES = 4
_SURROGATE = f"^{MARK}[0-9a-f]+-([0-9a-f]{{8}}-[0-N]{{7}}|{ERASED})$"


@dataclass(frozen=True, slots=True)
class Redaction:
    """One redaction of a ledger. `attempt` is the maintain that does it."""

    spark: SparkSession
    location: LedgerLocation
    settings: RedactionSettings
    attempt: attempts.Attempt
    buckets: int

    def done(self, now: datetime) -> int:
        """Begin, or continue one that was cut off, and commit; return how many tables were overwritten."""
        seen = attempts.read_commits(self.spark, self.location)
        if not seen.redacting:
            records = [commit.attempt_id for commit in seen.commits if LOG_RECORDS.name in commit.counts_out]
            self._commit(seen, now, records, {BEGUN: 1})
            seen = attempts.read_commits(self.spark, self.location)
        series = sum(BEGUN in commit.counts_out for commit in seen.commits)
        overwritten = self._overwrite(series)
        self._commit(attempts.read_commits(self.spark, self.location), now, [], {})
        return overwritten

    def _commit(self, seen: attempts.LedgerView, now: datetime, records: list[str], counts: Mapping[str, int]) -> None:
        """Commit that the records of these attempts go: all that counted."""
        guards = {guard for commit in seen.commits for guard in commit.guards} | {attempts.REDACTION}
        number = f"{seen.sequence + 1}"
        attempt = replace(
            self.attempt,
            run_id=f"redact-{self.attempt.attempt_id}-{number}",
            attempt_id=f"{self.attempt.attempt_id}-{number}",
            kind="redact",
            guards=tuple(sorted(guards)),
        )
        counts = {**counts, **forgetting(self.spark, self.location, records)}
        removed = {LOG_RECORDS.name: records} if counts.get(BEGUN) else {}
        outcome = attempts.Outcome({}, counts, result_digest="", verdict="done", finished_at=now, removed=removed)
        attempts.commit(self.spark, self.location, attempt, seen.sequence, outcome)

    def _overwrite(self, series: int) -> int:
        names = with_surrogates(self._names(), series, self.buckets)
        others = [table for table in TABLES if table not in (RUNS, LOG_RECORDS, MEMBER_SNAPSHOTS)]
        written = 0
        ledger_tables.remove_all(self.spark, self.location, LOG_RECORDS)
        for table in (*others, MEMBER_SNAPSHOTS):
            rows = self.location.rows(self.spark, table)
            redacted = self.redacted(table, rows, names, series)
            if redacted is not rows and ledger_tables.size(self.spark, self.location, table).files:
                rows = redacted.select(*table.columns)
                ledger_tables.persistently(partial(overwrite_rows, rows, self.location, table, F.lit(True)), table)
                written += 1
        return written

    def _names(self) -> DataFrame:
        """Return every name in the ledger that is no surrogate yet, with its group and its column."""
        members = self.location.rows(self.spark, MEMBER_SNAPSHOTS)
        pieces = [
            members.select(*GROUP, F.lit(kind).alias(KIND), F.col(kind).alias(NAME)) for kind in sorted(self._kinds())
        ]
        rows = reduce(lambda left, right: left.unionAll(right), pieces).distinct()
        return rows.where(F.col(NAME).isNotNull() & ~F.col(NAME).rlike(_SURROGATE))

    def _kinds(self) -> set[str]:
        chosen = {
            c.MEMBER_ID: self.settings.member_ids,
            c.GROUP_INSTANCE_ID: self.settings.member_ids,
            c.CLIENT_ID: self.settings.client_ids,
            c.HOST: self.settings.hosts,
        }
        return {kind for kind, wanted in chosen.items() if wanted} or {c.MEMBER_ID}

    def redacted(self, table: Table, rows: DataFrame, names: DataFrame, series: int) -> DataFrame:
        """Return the rows of a table without names; the same frame if the table has none."""
        if table is GROUP_HEADS:
            return rows.withColumn(c.STATE, closed(F.col(c.STATE)))
        kinds = self._kinds()
        for name in table.columns:
            if NAMES.get(name) in kinds:
                rows = _renamed(rows, name, names, series)
            elif name in TEXTS:
                rows = rows.withColumn(name, F.when(F.col(name).isNotNull(), ERASED))
            elif name in BYTES:
                rows = rows.withColumn(name, F.lit(None).cast(table.schema[name].dataType))
            elif name == c.USER_DATA and self.settings.user_data:
                rows = rows.withColumn(name, F.substring(name, 1, _GENERATION_BYTES))
        return rows


def may_change(table: Table) -> bool:
    """Return whether a redaction rewrites or removes rows of the table, whatever is chosen to be replaced."""
    return table is GROUP_HEADS or not {*NAMES, *TEXTS, *BYTES, c.USER_DATA}.isdisjoint(table.columns)


def _renamed(rows: DataFrame, name: str, names: DataFrame, series: int) -> DataFrame:
    """Replace a column of names; what has no surrogate, and is none, is erased."""
    own = names.where(F.col(KIND) == NAMES[name]).select(*GROUP, F.col(NAME).alias(name), SURROGATE)
    joined = rows.join(own, [*GROUP, name], "left")
    kept = F.when(F.col(name).isNull() | F.col(name).rlike(_SURROGATE), F.col(name))
    replaced: Column = F.coalesce(SURROGATE, F.lit(f"{MARK}{series:x}-{ERASED}"))
    return joined.withColumn(name, F.coalesce(kept, F.when(F.col(name).isNotNull(), replaced))).drop(SURROGATE)


# The rows of a run beside what it committed, and what of a ledger can no longer be made again.

Stored = Mapping[tuple[str, str], int]
"""(table, attempt) -> rows that are there."""


def short(
    commits: Iterable[attempts.Run], table: Table, stored: Stored, removed: Mapping[str, Set[str]]
) -> Iterator[str]:
    """Yield a line for each committed attempt with missing rows in a table that retention did not remove."""
    for commit in commits:
        expected, there = commit.counts_out.get(table.name, 0), stored.get((table.name, commit.attempt_id), 0)
        gone = commit.attempt_id in removed.get(table.name, ()) and there == 0
        if there != expected and not gone:
            yield f"{commit.attempt_id} {table.name} {there} of {expected}"


@dataclass(frozen=True, slots=True)
class Erasure:
    """`removed`: by table, attempts whose rows went for good. `redacted`: number of a redaction's last commit, or 0."""

    removed: Mapping[str, Set[str]]
    redacted: int

    @classmethod
    def of(cls, spark: SparkSession, location: LedgerLocation) -> Erasure:
        """Read it as of now."""
        seen = attempts.read_commits(spark, location)
        last = seen.last(attempts.REDACTION)
        return cls(seen.removed, 0 if last is None else last.sequence)

    def touches(self, run: attempts.Run) -> bool:
        """Return whether rows of the run went or were changed: its digest then says nothing of those that are there."""
        return run.sequence < self.redacted or any(run.attempt_id in attempts for attempts in self.removed.values())

    def require_whole(self, run: attempts.Run, short: Iterable[Table]) -> None:
        """Raise Fault RAW_ERASED if a table lacks rows of the run that were not removed on purpose."""
        lost = [table.name for table in short if run.attempt_id not in self.removed.get(table.name, ())]
        if lost:
            why = "a redaction" if run.sequence < self.redacted else "retention"
            what = (
                f"rows of run {run.run_id!r} are lost ({', '.join(lost)}), and cannot be made again: raw input erased"
            )
            raise Fault("RAW_ERASED", f"{what} by {why} (`groupledger maintain`); restore these tables from a backup")


@dataclass(frozen=True, slots=True)
class RunRows:
    """Rows by table beside what their run committed: numbers of rows, and digests."""

    run: attempts.Run
    tables: Mapping[str, Written]

    @classmethod
    def of(cls, run: attempts.Run, contents: Mapping[str, Mapping[str, Written]]) -> RunRows:
        """Choose the run's rows from the contents of tables, by table and attempt."""
        return cls(run, {name: found[run.attempt_id] for name, found in contents.items() if run.attempt_id in found})

    @property
    def by_table(self) -> bool:
        """Return whether the run committed a digest of each table."""
        return any(name.startswith(DIGESTS) for name in self.run.counts_out)

    def number(self, table: Table) -> int:
        """Return the number of rows."""
        return self.tables[table.name].rows if table.name in self.tables else 0

    def committed(self, table: Table) -> int:
        """Return the number of rows that the run committed."""
        return self.run.counts_out.get(table.name, 0)

    def digest(self, table: Table) -> int | None:
        """Return the short digest of the rows; None if there are none."""
        return short_digest(self.tables[table.name].digest) if self.number(table) else None

    def committed_digest(self, table: Table) -> int | None:
        """Return the short digest that the run committed; None if there was no row, or no digest of each table."""
        return self.run.counts_out.get(digest_name(table.name))

    def same(self, table: Table) -> bool:
        """Return whether the digests of a table are equal."""
        return self.digest(table) == self.committed_digest(table)

    @property
    def digest_of_all(self) -> str:
        """Return the digest of the rows of all tables."""
        return result_digest(digests(self.tables.values()))

    @property
    def all_same(self) -> bool:
        """Return whether it is the digest that the run committed."""
        return self.digest_of_all == self.run.result_digest
