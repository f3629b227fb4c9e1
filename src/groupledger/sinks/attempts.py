"""Attempts of a run, of which one counts: the row in `runs` that is written last and by compare-and-set.

    seen = runs.read_commits(spark, location)               # before the inputs are read
    run = runs.counted(seen, attempt)                       # not None: the run has counted already
    runs.plan(spark, location, attempt)                     # before any row of the attempt is written
    ...append...
    run = runs.commit(spark, location, attempt, seen.sequence, outcome)

Commits are numbered 1, 2, 3, ... over the whole ledger. A commit writes number n + 1 on condition that n is still the
last; if not, it looks again: what was committed meanwhile either does not concern it, and it tries the next number, or
it is the same run, which then has counted, or it shares a guard, and the work rests on inputs that are no longer the
last ones: WriteConflict.

An attempt that never committed is given up in the same way: a row `given-up` goes in on condition that the attempt has
not committed, and a commit goes in on condition that it was not given up. So no attempt is ever both.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from groupledger.core.digest import canonical, digest
from groupledger.core.faults import Fault
from groupledger.core.ledger_version import VERSION_PROPERTY, first_words
from groupledger.sinks import append
from groupledger.sinks.location import ENGINE_ERRORS, LedgerLocation, damaged, is_conflict, plain_table, unwritable
from groupledger.sinks.location import WriteConflict as WriteConflict
from groupledger.tables import RUNS, SCHEMA_VERSION
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from deltalake import DeltaTable


T = TypeVar("T")

READ = "read"
"""In `inputs` of an ingest: the first and last offset of each log partition of which it wrote records."""
REACHED = "reached"
"""In `inputs` of an ingest from running clusters: by cluster, the offset after the last one it has read or passed over
in each log partition (`offsets`), and a digest of the topics (`topics`)."""
FACTS_AS_OF = "facts_as_of"
"""In `inputs` of an assign: the number of the last commit that brought facts, as of which it computed."""
INGEST, NOTHING_NEW, CALLS = "ingest", "nothing-new", "callbacks"
"""Kinds of runs that readers tell apart: an ingest, one that found nothing new, and what derives calls and metrics."""
REDACTION = "redaction"
"""The guard of a redaction: every attempt yields to it, named or not."""
LATE_GROUPS = "late_groups"
"""The count (`counts_out`) of groups that a run folded again: where it is not 0, older facts give way to its own."""
MOST_MEMBERS = "most_members"
"""The count (`counts_out`) of members of the largest group snapshot that a run wrote."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at a run: what it reads and what computes it. `inputs` is anything JSON can say.

    `guards` name what no two attempts may commit side by side, such as `dev/log`: each ingest from a cluster's log
    starts where the one before ended.
    """

    run_id: str
    attempt_id: str
    kind: str
    inputs: Mapping[str, Any]
    config_digest: str
    code_digest: str
    started_at: datetime
    input_digest: str | None = None
    guards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an attempt reports once all its rows are written."""

    counts_in: Mapping[str, int]
    counts_out: Mapping[str, int]
    result_digest: str
    verdict: str
    finished_at: datetime
    input_digest: str | None = None
    removed: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """A committed row of `runs`.

    `inputs_json` is parsed on demand: of thousands of runs few are looked at, and only what all are asked for is kept
    beside it. `read`: by cluster and log partition, the first and last offset of the records that an ingest wrote.
    `facts_as_of`: of an assign, the last commit whose facts it knew. `removed`: by table, attempts whose rows it took.
    """

    run_id: str
    attempt_id: str
    kind: str
    sequence: int
    guards: tuple[str, ...]
    inputs_json: str
    input_digest: str | None
    config_digest: str
    code_digest: str
    counts_in: Mapping[str, int]
    counts_out: Mapping[str, int]
    result_digest: str
    verdict: str
    finished_at: datetime
    schema_version: int = SCHEMA_VERSION
    removed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    read: Mapping[str, Mapping[str, tuple[int, int]]] | None = None
    facts_as_of: int | None = None

    @property
    def inputs(self) -> Mapping[str, Any]:
        """Return what it read, as its attempt said it."""
        found: Mapping[str, Any] = json.loads(self.inputs_json)
        return found

    def reached(self, cluster_id: str) -> Mapping[str, Any]:
        """Return where the next ingest of a cluster continues; empty if this run read nothing of it itself."""
        found: Mapping[str, Any] = self.inputs.get(REACHED, {}).get(cluster_id, {})
        return found


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger at one moment: the runs that count, in the order of their commits."""

    commits: tuple[Run, ...]

    @property
    def sequence(self) -> int:
        """Return the number of the last commit; 0 if there is none."""
        return self.commits[-1].sequence if self.commits else 0

    @property
    def redacting(self) -> bool:
        """Return whether a redaction has begun and is not done."""
        last = self.last(REDACTION)
        return last is not None and bool(last.counts_out.get("begun"))

    def require_no_redaction(self) -> None:
        """Raise WriteConflict if one is under way, or was cut off."""
        if self.redacting:
            message = "a redaction is under way, or was cut off; `groupledger maintain` finishes it"
            raise WriteConflict(f"{message}, then run this again")

    @property
    def removed(self) -> dict[str, set[str]]:
        """Return by table the attempts whose rows `maintain` has removed, or is about to remove, for good."""
        found = defaultdict[str, set[str]](set)
        for run in self.commits:
            for table, attempts in run.removed.items():
                found[table].update(attempts)
        return found

    def last(self, guard: str) -> Run | None:
        """Return the last commit under a guard."""
        return next((run for run in reversed(self.commits) if guard in run.guards), None)

    def run(self, run_id: str | None) -> Run | None:
        """Return the run of this name; None: there is none that counts."""
        return next((run for run in self.commits if run.run_id == run_id), None)


def read_commits(spark: SparkSession, location: LedgerLocation) -> LedgerView:
    """Read the committed rows at once, without a shuffle: a run is a short row, and few are ever made."""
    runs = commit_log(spark, location).read(_run, COMMITTED)
    return LedgerView(tuple(sorted(runs, key=lambda run: run.sequence)))


def counted(seen: LedgerView, attempt: Attempt) -> Run | None:
    """Return the attempt's run if it is among the commits.

    Raises Fault RUN_ID_TAKEN where another command's run has the name: an orchestrator's id given to two of them.
    """
    named = seen.run(attempt.run_id)
    if named is not None and named.kind != attempt.kind:
        own = f"{attempt.kind}-{attempt.run_id}"
        message = f"run id {attempt.run_id!r} is that of a committed run of {named.kind}; expected one of its own for"
        raise Fault("RUN_ID_TAKEN", f"{message} {attempt.kind}, such as {own!r}")
    return named


def committed_runs(spark: SparkSession, location: LedgerLocation) -> DataFrame:
    """Return the rows of `runs` that count."""
    return location.rows(spark, RUNS).where(F.col(c.STATUS) == COMMITTED)


def plan(spark: SparkSession, location: LedgerLocation, attempt: Attempt) -> None:
    """Record what an attempt is about to do, before it writes any row: this identifies leftovers of a dead attempt."""
    commit_log(spark, location).append(planned_row(attempt))


def commit(spark: SparkSession, location: LedgerLocation, attempt: Attempt, since: int, outcome: Outcome) -> Run:
    """Make the attempt count, or give the attempt of the same run that counts already.

    `since` is the number the attempt saw before it read its inputs. Raises WriteConflict if a later commit shares
    a guard, or if others kept coming in between; Fault RUN_ID_TAKEN if another command's run took the name.
    """
    log, last = commit_log(spark, location), since
    for _ in range(TRIES):
        row = committed_row(attempt, last + 1, outcome)
        if log.compare_and_set(row):
            log.gather()
            return _run(row)
        seen = read_commits(spark, location)
        committed = counted(seen, attempt)
        if committed is not None:
            return committed
        _require_may_count(attempt, since, seen, given_up(spark, location))
        last = seen.sequence
    raise WriteConflict(f"run {attempt.run_id!r}: {TRIES} other commits came in between; run it again")


def _require_may_count(attempt: Attempt, since: int, seen: LedgerView, dead: set[str]) -> None:
    for guard in (*attempt.guards, REDACTION):
        commit = seen.last(guard)
        if commit is not None and commit.sequence > since:
            message = f"run {attempt.run_id!r} read {guard} as of commit {since}, and run {commit.run_id!r} committed"
            raise WriteConflict(f"{message} it as number {commit.sequence} meanwhile; run it again")
    if attempt.attempt_id in dead:
        began = f"run {attempt.run_id!r}: this attempt began {attempt.started_at:%Y-%m-%dT%H:%MZ} and was given up by"
        raise WriteConflict(f"{began} `groupledger maintain` (maintain.attempt_hours), its rows removed; run it again")


def given_up(spark: SparkSession, location: LedgerLocation) -> set[str]:
    """Return the attempts that can no longer commit."""
    return {row[c.ATTEMPT_ID] for row in commit_log(spark, location).read(itself, GIVEN_UP)}


def give_up(spark: SparkSession, location: LedgerLocation, began_before: datetime, now: datetime) -> int:
    """Give up every attempt that was planned before a moment and has not committed; return how many there were.

    An attempt that commits meanwhile is not among `given_up` afterwards. Raises WriteConflict if others keep
    committing in between.
    """
    log, count = commit_log(spark, location), 0
    for _ in range(TRIES):
        ended = {row[c.ATTEMPT_ID] for row in log.read(itself, *ENDS)}
        planned = (row for row in log.read(itself, PLANNED) if row[c.STARTED_AT].astimezone(UTC) < began_before)
        dead = [{**row, c.STATUS: GIVEN_UP, c.FINISHED_AT: now} for row in planned if row[c.ATTEMPT_ID] not in ended]
        if not dead:
            return count
        count += sum(map(log.compare_and_set, dead))
    raise WriteConflict(f"{TRIES} commits of other runs came in between; run it again")


def planned_row(attempt: Attempt) -> dict[str, Any]:
    """Return the row that is written before any other of the attempt."""
    return {
        **dict.fromkeys(RUNS.columns),
        c.RUN_ID: attempt.run_id,
        c.ATTEMPT_ID: attempt.attempt_id,
        c.KIND: attempt.kind,
        c.STATUS: PLANNED,
        c.GUARDS: list(attempt.guards),
        c.INPUTS: canonical(attempt.inputs),
        c.INPUT_DIGEST: attempt.input_digest,
        c.CONFIG_DIGEST: attempt.config_digest,
        c.CODE_DIGEST: attempt.code_digest,
        c.SCHEMA: SCHEMA_VERSION,
        c.STARTED_AT: attempt.started_at,
    }


def committed_row(attempt: Attempt, sequence: int, outcome: Outcome) -> dict[str, Any]:
    """Return the row that makes the attempt count."""
    return planned_row(attempt) | {
        c.STATUS: COMMITTED,
        c.SEQUENCE: sequence,
        c.INPUT_DIGEST: outcome.input_digest or attempt.input_digest,
        c.COUNTS_IN: dict(sorted(outcome.counts_in.items())),
        c.COUNTS_OUT: dict(sorted(outcome.counts_out.items())),
        c.RESULT_DIGEST: outcome.result_digest,
        c.VERDICT: outcome.verdict,
        c.FINISHED_AT: outcome.finished_at,
        c.REMOVED: {table: list(attempts) for table, attempts in sorted(outcome.removed.items())},
    }


def _run(row: RunRow) -> Run:
    inputs = json.loads(row[c.INPUTS])
    own = {
        c.GUARDS: tuple(row[c.GUARDS]),
        c.REMOVED: row[c.REMOVED] or {},
        c.FINISHED_AT: row[c.FINISHED_AT].astimezone(UTC),
        "inputs_json": row[c.INPUTS],
        **{name: inputs.get(name) for name in (READ, FACTS_AS_OF)},
    }
    return Run(**{each.name: row[each.name] for each in fields(Run) if each.name in RUNS.columns} | own)


# The table `runs` as a log of commits: read, appended to, and added to by compare-and-set; by delta-rs or by Spark.
#
# Spark takes a job or two for each look at a table of a few hundred rows, and the start of a run is little else.

RunRow = Mapping[str, Any]
"""A row of `runs`: a value a column; maps as dictionaries, moments with their zone."""

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
            what = f"others write {RUNS.name} all the time: {TRIES} tries were overtaken"
            raise WriteConflict(f"{what}; run it again later")

    def compare_and_set(self, row: RunRow) -> bool:
        """Add a row unless `bars` says no of any other, as of the version before; return whether it went in.

        False, too, if a writer that takes no lock was faster. Raises LedgerRefusal: LEDGER_UNWRITABLE, LEDGER_DAMAGED.
        """
        return self._inserted(row, lambda table: any(bars(row, e) for e in _made(itself, self.folder, table, ENDS)))

    def _inserted(self, row: RunRow, barred: Callable[[DeltaTable], bool]) -> bool:
        from deltalake.exceptions import DeltaError

        try:
            name = digest([row[c.ATTEMPT_ID], row[c.STATUS], row[c.SEQUENCE]])
            return append.insert_rows(self.folder, name, [_stored(row)], barred)
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
                    append.gather_rows(self.folder, rows, {c.STATUS: status})

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
        append.append_rows(self._frame(row), self.location, RUNS)

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
            done = append.run(self.spark, self.location, RUNS, f"{command} WHEN NOT MATCHED THEN INSERT *")
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
    import pyarrow as pa
    from pyarrow import parquet

    read = parquet.ParquetFile(file.path, page_checksum_verification=True, coerce_int96_timestamp_unit="us").read()
    utc = pa.timestamp("us", "UTC")  # older ledgers have Spark's int96, which has no zone
    kinds = [each.with_type(utc) if pa.types.is_timestamp(each.type) else each for each in read.schema]
    written = read.cast(pa.schema(kinds)).to_pylist()
    rows = ({name: row.get(name) for name in RUNS.columns} | {c.STATUS: file.status} for row in written)
    return tuple(row | {name: None if row[name] is None else dict(row[name]) for name in _MAPS} for row in rows)


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
