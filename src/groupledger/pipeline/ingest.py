"""Ingest: sources into facts. Records are kept as read, then folded group by group in one pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any

from pyspark.sql import DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F

from groupledger import tables
from groupledger.config import Config
from groupledger.core.digest import code_digest, digest, result_digest
from groupledger.core.faults import Fault
from groupledger.core.history import FoldSettings
from groupledger.core.log.read_plan import KNOWN as KNOWN_KEY
from groupledger.core.log.read_plan import KnownUpTo, known_in, together
from groupledger.core.moments import from_millis
from groupledger.core.wire.offsets_log import RecordKind
from groupledger.engine.buckets import bucket_count, parallelism
from groupledger.engine.fold_schema import FILLED, FOLDED_AGAIN
from groupledger.engine.fold_slices import fold_buckets
from groupledger.engine.renaming import ownership_changes
from groupledger.pipeline.cluster import gap_rows, last_snapshots
from groupledger.pipeline.enveloped import Enveloped, files_of
from groupledger.pipeline.few_records import FewRecords, few_records, gather
from groupledger.pipeline.fold_input import (
    COMMITS,
    FIRST_OFFSET,
    LAST_OFFSET,
    NEWEST,
    WORTH_MARKING,
    NewRecords,
    fold_input,
    touched,
)
from groupledger.pipeline.invocation import (
    BLANK,
    DUPLICATES,
    LINES,
    LISTINGS,
    OTHER_TOPIC,
    QUARANTINED,
    RECORDS,
    ROWS,
    Account,
    Invocation,
    Timings,
    accounts,
)
from groupledger.pipeline.past import (
    COPIES,
    GROUP,
    KNOWN,
    MAYBE,
    STRAY_GROUPS,
    Past,
    cluster_of,
    guard_of,
    looked_for,
    sorted_out,
)
from groupledger.pipeline.reading import Reading, read_sources, union
from groupledger.sinks import attempts
from groupledger.sinks.append import Written, append, digest_counts, digests
from groupledger.sinks.attempts import LedgerView
from groupledger.sinks.ledger_tables import LedgerLocation, check_for_writing
from groupledger.sinks.location import WriteConflict, engine_errors_as_faults, turn
from groupledger.sources import offsets_records, snapshot_tables, topic_listings
from groupledger.sources.opening import Arrivals, Arrived
from groupledger.sources.snapshot_tables import SOURCE_KIND, SnapshotRows
from groupledger.tables import GROUP_SNAPSHOTS, LOG_RECORDS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS, Table
from groupledger.tables import columns as c

NEW, ROWS_READ = "new", "rows"


@dataclass(frozen=True, slots=True)
class IngestSummary:
    """What an ingest did. `rows` counts by table; `already_committed`: this run had counted before.

    `nothing_new`: no rows were written; `run` is the last ingest of these clusters. `left`: by running cluster, the
    offsets that `max_records` left for later.
    """

    run: attempts.Run
    already_committed: bool
    timings: Mapping[str, float]
    nothing_new: bool = False
    left: Mapping[str, int] = field(default_factory=dict)

    @property
    def accounts(self) -> tuple[Account, ...]:
        """Return the account of every record, by cluster."""
        return accounts(self.run.counts_in)

    @property
    def rows(self) -> Mapping[str, int]:
        """Return the rows written by table."""
        return {each.name: self.run.counts_out[each.name] for each in tables.TABLES if each.name in self.run.counts_out}

    @property
    def quarantined(self) -> int:
        """Return the number of rejected rows of all sources; none if no run was made."""
        if self.nothing_new:
            return 0
        return self.run.counts_out.get(tables.QUARANTINE.name, 0)


def ingest(spark: SparkSession, location: LedgerLocation, config: Config, invocation: Invocation) -> IngestSummary:
    """Read every source into the ledger, as one run: all of it counts, or none.

    In a ledger on a local path, ingests of one cluster take turns. Raises Fault for a ledger or a source that cannot
    be used, before anything is written, and WriteConflict where another ingest of one of the clusters committed
    meanwhile.
    """
    folder = location.folder(spark, tables.RUNS)
    inputs = {each for source in config.sources for each in (source.bootstrap, source.cluster_id or config.cluster_id)}
    with engine_errors_as_faults(location), ExitStack() as held:
        if folder is not None and folder.exists():
            held.enter_context(turn(folder.parent, {each for each in inputs if each}))
        return _ingest(spark, location, config, invocation)


def _ingest(spark: SparkSession, location: LedgerLocation, config: Config, invocation: Invocation) -> IngestSummary:
    timings = Timings(invocation)
    with timings.stage("open", "opening the sources"):
        check_for_writing(spark, location)
        seen = attempts.read_commits(spark, location)
        seen.require_no_redaction()
        named = seen.run(invocation.run_id)
        if named is not None and named.kind == attempts.INGEST:
            return IngestSummary(named, True, timings.by_stage)
        reading = read_sources(spark, config, seen.commits, invocation, last_snapshots(spark, location))
        guards = tuple(map(guard_of, reading.clusters))
        attempt = _attempt(config, invocation, reading, guards)
    if (committed := attempts.counted(seen, attempt)) is not None:
        return IngestSummary(committed, True, timings.by_stage)
    past = Past(spark, location, seen.commits, guards, reading.stated)
    if reading.may_be_empty and all(map(seen.last, guards)):
        last = max(filter(None, map(seen.last, guards)), key=attrgetter("sequence"))
        if not reading.adds_to(last.inputs):
            with timings.stage("commit"):
                note_nothing_new(past, seen, reading, invocation)
            return IngestSummary(last, False, timings.by_stage, nothing_new=True)
    with timings.stage("gather"):
        gather(spark, location, config.maintain)
    with timings.stage("plan"):
        few = few_records(past, reading, config.limits.max_record_bytes, attempt.attempt_id)
        attempts.plan(spark, location, attempt)
    work = Work(past, config, attempt.attempt_id, few)
    reading = reading.with_frames(config.limits) if few is None else reading
    with reading.faults():
        _read(work, reading, timings)
    with timings.stage("commit", "committing"):
        attempt = replace(attempt, inputs={**attempt.inputs, "read": work.positions, **work.known(reading)})
        run = attempts.commit(spark, location, attempt, seen.sequence, work.outcome(invocation))
    return IngestSummary(run, run.attempt_id != attempt.attempt_id, timings.by_stage, left=reading.left)


def _read(work: Work, reading: Reading, timings: Timings) -> None:
    """Read and fold the sources, and write what comes of them."""
    with timings.stage("topics", "reading topic listings"):
        work.take_topics(reading)
    work.take_tables(reading)
    with timings.stage("records", "reading the records"):
        work.take_records(reading)
    with timings.stage("fold", f"folding {work.new_records:,} new records into facts"):
        folded = work.fold(into_files=True) if work.few or reading.logs else None
    with timings.stage("write", "writing the facts"):
        try:
            work.write(folded, reading)
        finally:
            if folded is not None:
                folded.release()


def _attempt(config: Config, invocation: Invocation, reading: Reading, guards: tuple[str, ...]) -> attempts.Attempt:
    """Name the run after its files and limits, unless the caller names it."""
    settings = digest({"limits": {"max_record_bytes": config.limits.max_record_bytes}})
    derived = f"ingest-{digest([reading.digest, settings])[:16]}"
    return attempts.Attempt(
        run_id=invocation.run_id or derived,
        attempt_id=invocation.attempt_id,
        kind=attempts.INGEST,
        inputs=reading.described,
        config_digest=settings,
        code_digest=code_digest(),
        started_at=invocation.now(),
        guards=guards,
    )


class Work:
    """One attempt under way: what it has counted and written so far. `few`: all of its records, if they are here."""

    def __init__(self, past: Past, config: Config, attempt_id: str, few: FewRecords | None = None) -> None:
        self.past, self.config, self.attempt_id, self.few = past, config, attempt_id, few
        self.counts: Counter[str] = Counter()
        self.positions: dict[str, dict[str, Any]] = {}
        self.newest = NewestRead()
        self.given: list[GivenRows] = []
        self.written: list[Written] = []
        self.late_groups = self.stray_groups = 0
        self.most_members = 0

    @property
    def new_records(self) -> int:
        """How many records were read so far that the ledger did not have."""
        return sum(
            number if name.endswith(f"/{RECORDS}") else -number
            for name, number in self.counts.items()
            if name.endswith((f"/{RECORDS}", f"/{DUPLICATES}"))
        )

    def take_topics(self, reading: Reading) -> None:
        """Append the changes of topics that the listings add to what is known."""
        listed = union(rows.good for rows in reading.listings)
        if listed is not None:
            listed = listed.persist()  # read once, though the changes look at it from several sides
            try:
                known = self.past.current(tables.TOPIC_SNAPSHOTS)
                self._append(tables.TOPIC_SNAPSHOTS, topic_listings.changes(listed, known))
                count_listed(listed, self.counts)
            finally:  # a later attempt in the same session must not find what this one read
                listed.unpersist()

    def take_tables(self, reading: Reading) -> None:
        """Find what is new in the users' own tables; it is written with what the fold gives."""
        for cluster_id, snapshots in reading.tables:
            self.given.extend(given(self.past.current, cluster_id, snapshots))
        changes = union(of_table(self.given, tables.TOPIC_SNAPSHOTS))
        if changes is not None:
            self._append(tables.TOPIC_SNAPSHOTS, changes)

    def take_records(self, reading: Reading) -> None:
        """Append the records that are new; count what was read, and what was read before."""
        if self.few is not None:
            return self._keep_few(self.few)
        if (records := union(rows.good for rows in reading.logs)) is None:
            return
        rows = sorted_out(self.past, records)
        left = self._take(reading, rows)[MAYBE]
        if left:
            maybe = rows.where(MAYBE).persist()
            try:
                found = self._take(reading, looked_for(self.past, maybe))[ROWS_READ]
            finally:
                maybe.unpersist()
            if found != left:
                message = f"{left} records of offsets that were read before became {found} when they were read again"
                raise Fault("SOURCES_CHANGED", f"{message}: a source changed under this ingest; run it again")

    def _take(self, reading: Reading, rows: DataFrame) -> Mapping[str, int]:
        """Append the rows that are not KNOWN, and count them; how many ROWS there are, and MAYBE known ones left out.

        Counted behind the last shuffle, in tasks that write: before it, a task that Spark has to run again would count
        once more.
        """
        watch, decided = Observation(), ~F.col(MAYBE)
        aggregates = [F.count(F.lit(1)).alias(ROWS_READ), F.count_if(MAYBE).alias(MAYBE)]
        for number, cluster_id in enumerate(reading.clusters):
            here = (F.col(c.CLUSTER_ID) == cluster_id) & decided
            aggregates.append(F.sum(F.when(here, F.col(COPIES))).alias(f"{COPIES}_{number}"))
            aggregates.append(F.count_if(here & ~F.col(KNOWN)).alias(f"{NEW}_{number}"))
        self._append(tables.LOG_RECORDS, rows.observe(watch, *aggregates).where(decided & ~F.col(KNOWN)))
        for number, cluster_id in enumerate(reading.clusters):
            read, new = (watch.get[f"{name}_{number}"] or 0 for name in (COPIES, NEW))
            self.counts[f"{cluster_id}/{RECORDS}"] += read
            self.counts[f"{cluster_id}/{DUPLICATES}"] += read - new
        return watch.get

    def fold(self, *, into_files: bool = False) -> Enveloped | None:
        """Fold the attempt's records, group by group, and count what became of each; None: there are none.

        `into_files`: the workers write the rows into files, if the ledger takes such.
        """
        if self.few is not None:
            return self._counted(self.few.folded())
        mine = self._mine(tables.LOG_RECORDS)
        appended = [written.rows for written in self.written if written.table == tables.LOG_RECORDS.name]
        # an attempt that is made again has appended nothing here, and may be large
        counts_commits = not appended or sum(appended) >= WORTH_MARKING
        extent = touched(mine, counts_commits=counts_commits).persist()
        try:
            new = self._take_positions(mine, extent, counts_commits=counts_commits)
            return self._folded(new, into_files=into_files) if new.number else None
        finally:
            extent.unpersist()

    def _folded(self, new: NewRecords, *, into_files: bool) -> Enveloped:
        given = fold_input(self.past, new, self._topics(), self.config.buckets)
        self.late_groups, self.stray_groups = given.late_groups, given.stray_groups
        for cluster_id, number in given.commits.items():
            self.counts[f"{cluster_id}/unused.{RecordKind.OFFSET_COMMIT}"] += number
        files = files_of(self.past.spark, self.past.location, FILLED, self.attempt_id) if into_files else None
        folded = self._counted(Enveloped.of(fold_buckets(given.rows, given.buckets, FoldSettings(), files), files))
        given.release()
        return folded

    def _counted(self, folded: Enveloped) -> Enveloped:
        """Count what became of the records that were folded."""
        for count in folded.counts:
            if count.name == FOLDED_AGAIN:
                self.late_groups += count.rows
            elif count.name != RECORDS:  # counted where they were read
                self.counts[f"{count.cluster_id}/{count.name}"] += count.rows
        return folded

    def _take_positions(self, mine: DataFrame, extent: DataFrame, *, counts_commits: bool) -> NewRecords:
        """Say first and last offset of each log partition that was read, and how many records are new."""
        commits = F.sum(COMMITS) if counts_commits else F.lit(0)
        ends = extent.groupBy(c.CLUSTER_ID, c.LOG_PARTITION).agg(
            F.min(FIRST_OFFSET), F.max(LAST_OFFSET), F.unix_millis(F.max(NEWEST)), F.sum(RECORDS), commits
        )
        self._note_positions(rows := sorted(ends.collect()))
        return NewRecords(mine, extent, *(sum(row[number] for row in rows) for number in (-2, -1)))

    def _note_positions(self, rows: Sequence[Sequence[Any]]) -> None:
        """Note rows of cluster, log partition, first and last offset, and the newest time (ms)."""
        self.newest.add((row[0], row[1], row[4]) for row in rows)
        for cluster_id, partition, first, last, *_ in rows:
            self.positions.setdefault(cluster_id, {})[str(partition)] = [first, last]

    def _keep_few(self, few: FewRecords) -> None:
        """Append few records, count what was read, and say which offsets."""
        kept = few.kept().append_files(self.past.spark, self.past.location, tables.LOG_RECORDS)
        self._appended(kept or Written(tables.LOG_RECORDS.name, 0, ()))
        self._note_positions(few.extents())
        self.newest.add(few.newest())
        self.counts.update(few.counts())

    def known(self, reading: Reading) -> dict[str, Any]:
        """Return up to when each cluster of the ledger is known, for `runs.inputs`."""
        before = known_before(self.past)
        self.newest.add_left_out(reading)
        states = [newest(self._mine(tables.GROUP_SNAPSHOTS), c.OBSERVED_AT)] if self.given else []
        return inputs_of([before, self.newest.known(reading), *states])

    def _topics(self) -> DataFrame:
        """Return all changes of topics that count, and those of this attempt."""
        mine = self._mine(tables.TOPIC_SNAPSHOTS)
        return self.past.current(tables.TOPIC_SNAPSHOTS).unionByName(mine)

    def write(self, folded: Enveloped | None, reading: Reading) -> None:
        """Append what the fold gave, and what could not be used."""

        def rows_of(table: tables.Table) -> list[DataFrame]:
            rows = None if folded is None else folded.rows_of(table)
            return [] if rows is None else [rows]

        gaps = gap_rows(self.past.spark, reading.described["sources"])
        for table in FILLED:
            if folded is not None:
                self._appended(folded.append_files(self.past.spark, self.past.location, table))
            if table is not tables.QUARANTINE:
                more = [gaps] if table is tables.COVERAGE and gaps is not None else []
                rows = union([*rows_of(table), *self._of_given(table), *more])
                if rows is not None:
                    self._append(table, rows)
        for piece in self.given:
            self.counts.update({f"{piece.cluster_id}/{name}": number for name, number in piece.counts()})
        unread = reading.rejected()  # counted while the good rows were read: only now is it known
        rejected = union([*rows_of(tables.QUARANTINE), *([] if unread is None else [unread])])
        if rejected is not None:
            self._append(tables.QUARANTINE, rejected)
        if unread is not None:
            count_rejected(self._mine(tables.QUARANTINE), reading, self.counts)
        count_arrivals(reading, self.counts)

    def _of_given(self, table: tables.Table) -> list[DataFrame]:
        """Return rows from users' own tables; the changes between snapshots once these are written."""
        if table is not tables.OWNERSHIP_CHANGES or not self.given:
            return of_table(self.given, table)
        groups, members = (
            self._mine(each).where(F.col(c.SNAPSHOT_ID).startswith(f"{snapshot_tables.SOURCE_KIND}/"))
            for each in (tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS)
        )
        written = sum(each.rows for each in self.written if each.table == tables.GROUP_SNAPSHOTS.name)
        return [changes_of_ownership(self.past, groups, members, written)]

    def outcome(self, invocation: Invocation) -> attempts.Outcome:
        """Return what the attempt reports. Raises AssertionError if a record is not accounted for: a bug of ours."""
        for account in accounts(self.counts):
            if not account.balanced:
                raise AssertionError(f"records of {account.cluster_id} unaccounted for: {account}")
        rows: Counter[str] = Counter()
        for written in self.written:
            rows[written.table] += written.rows
        rejected = rows[tables.QUARANTINE.name]
        over = rejected > self.config.limits.max_quarantined
        by_table = digests(self.written)
        more = {
            attempts.LATE_GROUPS: self.late_groups,
            STRAY_GROUPS: self.stray_groups,
            attempts.MOST_MEMBERS: self.most_members,
            **digest_counts(by_table),
        }
        return attempts.Outcome(
            counts_in=dict(self.counts),
            counts_out={**rows, **more},
            result_digest=result_digest(by_table),
            verdict="quarantine-over-limit" if over else "done",
            finished_at=invocation.now(),
            input_digest=by_table.get(tables.LOG_RECORDS.name),
        )

    def _mine(self, table: tables.Table) -> DataFrame:
        """Read what the attempt has written."""
        return self.past.rows(table, self.attempt_id)

    def _append(self, table: tables.Table, rows: DataFrame) -> None:
        metrics = {attempts.MOST_MEMBERS: F.max(c.MEMBERS)} if table is tables.GROUP_SNAPSHOTS else {}
        self._appended(append(self.past.location, table, rows, self.attempt_id, metrics))

    def _appended(self, written: Written | None) -> None:
        if written is not None:
            self.written.append(written)
            self.most_members = max(self.most_members, written.metrics.get(attempts.MOST_MEMBERS) or 0)


# Up to when an ingest leaves each cluster of the ledger known, for `runs` (`core.log.read_plan`).
#
# Each run keeps it of all clusters, so that a reader looks at the last runs only.

LAST_RUNS = 20
"""Runs that are merged: ingests of several clusters may overtake one another."""


def known_before(past: Past) -> dict[str, KnownUpTo]:
    """Return what was known of each cluster; of ingests that kept nothing, the records are asked once."""
    commits = past.commits
    keeping = filter(None, (known_in(run.inputs) for run in reversed(commits)))
    found = together(islice(keeping, LAST_RUNS))
    ingested = {cluster for commit in commits for guard in commit.guards if (cluster := cluster_of(guard)) is not None}
    unsaid = sorted(ingested - found.keys())
    if not unsaid:
        return found
    moments = {LOG_RECORDS: c.TIMESTAMP, GROUP_SNAPSHOTS: c.OBSERVED_AT}
    read = [newest(past.current(table), moment) for table, moment in moments.items()]
    recorded = together([dict.fromkeys(unsaid, KnownUpTo()), *read])
    return {**found, **{cluster: recorded[cluster] for cluster in unsaid}}


def newest(rows: DataFrame, moment: str) -> dict[str, KnownUpTo]:
    """Return the newest moment of rows, by cluster."""
    found = rows.groupBy(c.CLUSTER_ID).agg(F.unix_millis(F.max(moment))).collect()
    return {cluster: KnownUpTo(newest=from_millis(at)) for cluster, at in found}


class NewestRead:
    """The time of the newest record (ms) that an ingest has read of each log partition, by cluster."""

    def __init__(self) -> None:
        self._times: defaultdict[tuple[str, int], int] = defaultdict(int)

    def add(self, rows: Iterable[tuple[str, int, int]]) -> None:
        """Add rows of cluster, log partition and time."""
        for cluster, partition, time in rows:
            self._times[cluster, partition] = max(self._times[cluster, partition], time)

    def add_left_out(self, reading: Reading) -> None:
        """Add the records that sources left out, once they have been read."""
        for source in reading.sources:
            for rows in source.parts:
                if rows.newest_left_out is not None:
                    self.add((source.cluster_id, *each) for each in rows.newest_left_out().items())

    def known(self, reading: Reading) -> dict[str, KnownUpTo]:
        """Return up to when the ingest has read each cluster."""
        found = {
            cluster: KnownUpTo(newest=from_millis(time))
            for (cluster, _), time in sorted(self._times.items(), key=itemgetter(1))
        }
        return together([dict.fromkeys(reading.clusters, KnownUpTo()), found, self._of_clusters(reading)])

    def _of_clusters(self, reading: Reading) -> dict[str, KnownUpTo]:
        """Return clusters that were read themselves; if something is left of one, what was read least far."""
        found = dict(reading.known)
        for cluster, partitions in reading.behind.items():
            read = {partition: time for (of, partition), time in self._times.items() if of == cluster}
            times = [read[each] for each in partitions if each in read] or list(read.values())
            found[cluster] = replace(found[cluster], least=from_millis(min(times)) if times else None)
        return found


def inputs_of(known: Iterable[Mapping[str, KnownUpTo]]) -> dict[str, Any]:
    """Return what `inputs` of a run keep."""
    merged = together(known)
    return {KNOWN_KEY: {cluster: each.as_json() for cluster, each in sorted(merged.items())}}


def note_nothing_new(past: Past, seen: LedgerView, reading: Reading, invocation: Invocation) -> None:
    """Commit a run that says up to when nothing was new, if its sources can tell.

    It has no guard: no other run rests on it, and none has to yield to it. Where others commit all the time, the next
    ingest says it.
    """
    if not reading.known:
        return
    inputs = {"sources": [], **inputs_of([known_before(past), reading.known])}
    now = invocation.now()
    attempt = attempts.Attempt(
        run_id=f"{attempts.NOTHING_NEW}-{digest([inputs, invocation.attempt_id])[:16]}",
        attempt_id=invocation.attempt_id,
        kind=attempts.NOTHING_NEW,
        inputs=inputs,
        config_digest="",
        code_digest="",
        started_at=now,
    )
    outcome = attempts.Outcome({}, {}, "", "done", invocation.now())
    try:
        attempts.commit(past.spark, past.location, attempt, seen.sequence, outcome)
    except WriteConflict:
        return


# Users' own snapshot tables as part of an ingest: what is new of them, and what became of every row.

KNOWN_ROWS = "known"
_USABLE, _NEW = "usable", "new"
_LAST, _NEWEST, _OURS = "last", "newest", "ours"


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows of one table of one source. `new` are those the ledger does not have; to be read before `counts`."""

    cluster_id: str
    table: Table
    new: DataFrame
    watch: Observation
    derived: bool = False  # no rows of a user's: they are not in the account

    def counts(self) -> Iterator[tuple[str, int]]:
        """Count the rows without a fault by the names of `accounts`. Those that the ledger has are duplicates."""
        if self.derived:
            return
        usable, new = self.watch.get[_USABLE], self.watch.get[_NEW]
        yield "records", usable
        yield f"used.{self.table.name}", new
        yield "duplicates", usable - new


def given(current: Callable[[Table], DataFrame], cluster_id: str, tables: SnapshotRows) -> list[GivenRows]:
    """Compare the three tables of one source with the `current` ones of the ledger.

    A snapshot is its id: one that the ledger has is not taken again.
    """
    known = current(GROUP_SNAPSHOTS).select(c.SNAPSHOT_ID)
    pieces = [(GROUP_SNAPSHOTS, tables.groups), (MEMBER_SNAPSHOTS, tables.members)]
    found = [_given(cluster_id, table, _marked(_of(table, rows.good), known)) for table, rows in pieces]
    if tables.derived:
        found[0] = replace(found[0], derived=True)
    if tables.topics is not None and tables.derived:
        changes = _changes(tables.topics.good, current(TOPIC_SNAPSHOTS), tables.groups.good)
        found.append(_given(cluster_id, TOPIC_SNAPSHOTS, changes))
    elif tables.topics is not None:
        said = current(TOPIC_SNAPSHOTS).drop(c.ATTEMPT_ID)
        found.append(_given(cluster_id, TOPIC_SNAPSHOTS, _marked(_of(TOPIC_SNAPSHOTS, tables.topics.good), said)))
    return found


def _of(table: Table, rows: DataFrame) -> DataFrame:
    return rows.select(*(name for name in table.columns if name != c.ATTEMPT_ID))


def _changes(counts: DataFrame, known: DataFrame, groups: DataFrame) -> DataFrame:
    """Mark topics that say nothing else than what was known before them; the others are changes.

    A count without a moment holds from the beginning; one that differs from what is known, since the newest snapshot
    that is read.
    """
    topic = [c.CLUSTER_ID, c.TOPIC]
    of_topic = [name for name in TOPIC_SNAPSHOTS.columns if name not in (*topic, c.VALID_FROM, c.ATTEMPT_ID)]
    last = known.groupBy(*topic).agg((F.unix_micros(F.max(c.VALID_FROM)) + 1).alias(_LAST))
    newest = groups.agg(F.unix_micros(F.max(c.OBSERVED_AT)).alias(_NEWEST))
    since = F.when(F.col(_LAST).isNull(), 0).otherwise(F.greatest(_LAST, _NEWEST))
    dated = counts.join(last, topic, "left").crossJoin(F.broadcast(newest))
    dated = dated.withColumn(c.VALID_FROM, F.coalesce(c.VALID_FROM, F.timestamp_micros(since))).drop(_LAST, _NEWEST)
    rows = _of(TOPIC_SNAPSHOTS, known).withColumn(_OURS, F.lit(True))
    rows = rows.unionByName(_of(TOPIC_SNAPSHOTS, dated).withColumn(_OURS, F.lit(False)))
    before = F.lag(F.struct(*of_topic)).over(Window.partitionBy(*topic).orderBy(c.VALID_FROM, F.desc(_OURS), *of_topic))
    marked = rows.withColumn(KNOWN_ROWS, F.coalesce(before.eqNullSafe(F.struct(*of_topic)), F.lit(False)))
    return marked.where(~F.col(_OURS)).drop(_OURS)


def _given(cluster_id: str, table: Table, marked: DataFrame) -> GivenRows:
    """Count behind the join: before its shuffle, a task that Spark has to run again would count once more."""
    watch = Observation()
    usable, new = F.count(F.lit(1)).alias(_USABLE), F.count_if(~F.col(KNOWN_ROWS)).alias(_NEW)
    return GivenRows(
        cluster_id, table, marked.observe(watch, usable, new).where(~F.col(KNOWN_ROWS)).drop(KNOWN_ROWS), watch
    )


def _marked(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Mark the rows that are in `known`, by its columns, nulls equal to nulls."""
    left, right = rows.alias("given"), known.distinct().withColumn(KNOWN_ROWS, F.lit(True)).alias("said")
    same = F.expr(" AND ".join(f"given.{name} <=> said.{name}" for name in known.columns))
    return left.join(right, same, "left").select("given.*", F.col(KNOWN_ROWS).isNotNull().alias(KNOWN_ROWS))


def changes_of_ownership(past: Past, groups: DataFrame, members: DataFrame, written: int = 0) -> DataFrame:
    """Return rows of `ownership_changes` (without the attempt) of groups with a new snapshot, from all their snapshots.

    `groups` and `members` are new rows of the users' tables; they may be late, so all changes of a group are derived
    again (`tables.views`). `written`: how many snapshots this attempt has written.
    """
    touched = groups.select(*GROUP).distinct()
    old = past.current(GROUP_SNAPSHOTS).where(F.col(c.SOURCE) == SOURCE_KIND).drop(c.ATTEMPT_ID)
    every = groups.drop(c.ATTEMPT_ID).unionByName(old.join(touched, GROUP, "left_semi"))
    known = past.current(MEMBER_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID).startswith(f"{SOURCE_KIND}/"))
    old_members = known.drop(c.ATTEMPT_ID).join(touched, GROUP, "left_semi")
    most = written + sum(commit.counts_out.get(GROUP_SNAPSHOTS.name, 0) for commit in past.commits)
    cores = parallelism(past.spark)
    tasks = min(cores, bucket_count(most, cores))
    return ownership_changes(every, members.drop(c.ATTEMPT_ID).unionByName(old_members), tasks)


def of_table(pieces: Iterable[GivenRows], table: Table) -> list[DataFrame]:
    """Return the new rows of one table."""
    return [piece.new for piece in pieces if piece.table is table]


# What was there to be read, held against what came of it: physical lines and table rows, counted where they arrive.

LISTED = f"{LISTINGS}.listed"
_STAGES = (offsets_records.STAGE, snapshot_tables.STAGE, topic_listings.STAGE)


def count_arrivals(reading: Reading, counts: Counter[str]) -> None:
    """Add lines, rows, blank lines and records of other topics, as they were seen when they passed.

    A task that Spark ran again saw them again: of a cluster whose account does not add up they are counted by queries
    of their own, and only then the account is judged.
    """
    seen = {cluster_id: _of_cluster(reading, cluster_id, Arrivals.observed) for cluster_id in reading.clusters}
    for cluster_id, first in seen.items():
        counts.update(first)
        if not all(each.balanced for each in accounts(counts) if each.cluster_id == cluster_id):
            counts.subtract(first)
            counts.update(_of_cluster(reading, cluster_id, Arrivals.counted))


def count_rejected(rejected: DataFrame, reading: Reading, counts: Counter[str]) -> None:
    """Add what the sources rejected, from the rows that were written, under the cluster of its source."""
    by_stage = rejected.where(F.col(c.STAGE).isin(*_STAGES)).groupBy(c.STAGE, c.SOURCE, c.CLUSTER_ID, c.CODE).count()
    for stage, source, named, code, number in by_stage.collect():
        cluster_id = reading.cluster_of(source, named)
        if stage == topic_listings.STAGE:
            counts[f"{cluster_id}/{LISTINGS}.{code}"] += number
        else:
            counts[f"{cluster_id}/{RECORDS}"] += number
            counts[f"{cluster_id}/{QUARANTINED}.{code}"] += number


def count_listed(listed: DataFrame, counts: Counter[str]) -> None:
    """Add the usable lines of topic listings."""
    usable = listed.where(F.col(topic_listings.STATE).isNotNull())
    for cluster_id, number in usable.groupBy(c.CLUSTER_ID).count().collect():
        counts[f"{cluster_id}/{LISTED}"] += number


def _of_cluster(reading: Reading, cluster_id: str, ask: Callable[[Arrivals], Arrived]) -> Counter[str]:
    found: Counter[str] = Counter({f"{cluster_id}/{name}": 0 for name in (LINES, ROWS, BLANK)})
    for arrivals in (each for source in reading.sources if source.cluster_id == cluster_id for each in source.arrivals):
        arrived = ask(arrivals)
        found[f"{cluster_id}/{LINES if arrivals.of_lines else ROWS}"] += arrived.entries
        found[f"{cluster_id}/{BLANK}"] += arrived.blank
        for kind, number in {OTHER_TOPIC: arrived.other_topic, **arrived.left_out}.items():
            if number:
                found[f"{cluster_id}/{RECORDS}"] += number
                found[f"{cluster_id}/unused.{kind}"] += number
    return found


# Follow the sources: ingest again and again, each time as a run of its own, until stopped.
#
# Where a running cluster is read from stands in `runs` alone (decision 0099): whatever ends a follower, the next one
# continues behind the last run that was committed.

PASSING = frozenset({"KAFKA_UNREACHABLE", "KAFKA_FAILED", "LOG_MOVED", "SOURCES_CHANGED", "WRITE_CONFLICT"})
"""Faults that are worth another try: a broker that restarts, a log that is cut, another ingest that was first."""


def follow(
    once: Callable[[], IngestSummary],
    every: float,
    failures: int,
    seconds: Callable[[], float],
    stopped: Callable[[float], bool],
    failed: Callable[[Fault], None],
) -> Iterator[IngestSummary]:
    """Ingest `once` and again, `every` so many seconds from one beginning to the next; give what each ingest did.

    `failures`: so many in a row are tolerated. `stopped` waits for the rest of a turn and says whether to end. If
    `max_records` left something, or an ingest took as long as a turn, the next one follows at once. A passing fault is
    passed to `failed`, and the next turn tries again; it is raised if it is one too many in a row, as is any other.
    """
    failed_ones = 0
    while True:
        began, at_once = seconds(), False
        try:
            summary = once()
        except Fault as fault:
            failed_ones += 1
            if fault.code not in PASSING or failed_ones > failures:
                raise
            failed(fault)
        else:
            failed_ones, at_once = 0, any(summary.left.values())
            yield summary
        if stopped(0.0 if at_once else max(0.0, began + every - seconds())):
            return
