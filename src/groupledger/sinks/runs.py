"""Attempts of a run, of which one counts: the row in `runs` that is written last and by compare-and-set.

    seen = runs.read_commits(spark, location, run_id)               # before the inputs are read
    run = runs.counted(spark, location, seen, attempt)      # not None: the run has counted already
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
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.core.digest import canonical, digest
from groupledger.core.faults import Fault
from groupledger.core.log.plan import KNOWN
from groupledger.sinks import changes
from groupledger.sinks.folder_runs import TRIES as TRIES
from groupledger.sinks.folder_runs import FolderRuns, RunRow, folder_runs, itself
from groupledger.sinks.ledger import LedgerLocation
from groupledger.sinks.refusals import ENGINE_ERRORS, is_conflict
from groupledger.sinks.refusals import WriteConflict as WriteConflict
from groupledger.tables import RUNS, SCHEMA_VERSION
from groupledger.tables import columns as c

T = TypeVar("T")

READ = "read"
"""In `inputs` of an ingest: the first and last offset of each log partition of which it wrote records."""
REACHED = "reached"
"""In `inputs` of an ingest from running clusters: by cluster, the offset after the last one it has read or passed over
in each log partition (`offsets`), and a digest of the topics (`topics`)."""
FACTS_AS_OF = "facts_as_of"
"""In `inputs` of an assign: the number of the last commit that brought facts, as of which it computed."""
PLANNED, COMMITTED, GIVEN_UP = "planned", "committed", "given-up"
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
    """What an attempt has to say once all its rows are written."""

    counts_in: Mapping[str, int]
    counts_out: Mapping[str, int]
    result_digest: str
    verdict: str
    finished_at: datetime
    input_digest: str | None = None
    removed: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Run:
    """A committed row of `runs`."""

    run_id: str
    attempt_id: str
    kind: str
    sequence: int
    guards: tuple[str, ...]
    inputs: Mapping[str, Any]
    input_digest: str | None
    config_digest: str
    code_digest: str
    counts_in: Mapping[str, int]
    counts_out: Mapping[str, int]
    result_digest: str
    verdict: str
    schema_version: int = SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed row of `runs` in short: what readers and later commits act on.

    `read`: by cluster and log partition, the first and last offset of the records that an ingest wrote. `reached`: by
    cluster that an ingest read itself, where the next one goes on, as JSON: of thousands of commits one is looked at.
    `known`: `core.log.plan`, as JSON too. `facts_as_of`: of an assign, the last commit whose facts it knew.
    `removed`: by table, attempts whose rows it took.
    """

    sequence: int
    run_id: str
    attempt_id: str
    kind: str
    guards: tuple[str, ...]
    config_digest: str
    counts_in: Mapping[str, int]
    counts_out: Mapping[str, int]
    read: Mapping[str, Mapping[str, tuple[int, int]]] | None = None
    reached: str | None = None
    known: str | None = None
    code_digest: str = ""
    facts_as_of: int | None = None
    removed: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger at one moment: its commits in their order, and the run that was asked for if it counts."""

    commits: tuple[Commit, ...]
    committed: Run | None = None

    @property
    def sequence(self) -> int:
        """Number of the last commit; 0 where there is none."""
        return self.commits[-1].sequence if self.commits else 0

    @property
    def redacting(self) -> bool:
        """Whether a redaction has begun and is not done."""
        last = self.last(REDACTION)
        return last is not None and bool(last.counts_out.get("begun"))

    def require_no_redaction(self) -> None:
        """WriteConflict where one is under way, or was cut off."""
        if self.redacting:
            message = "a redaction is under way, or was cut off; `groupledger maintain` finishes it"
            raise WriteConflict(f"{message}, then run this again")

    def last(self, guard: str) -> Commit | None:
        """The last commit under a guard."""
        return next((commit for commit in reversed(self.commits) if guard in commit.guards), None)


def read_commits(spark: SparkSession, location: LedgerLocation, run_id: str | None = None) -> LedgerView:
    """One read of the committed rows, without a shuffle: a run is a short row, and few are ever made."""
    commits = sorted(_read(_commit, spark, location, COMMITTED), key=lambda commit: commit.sequence)
    rows = _read(itself, spark, location, COMMITTED) if any(each.run_id == run_id for each in commits) else []
    return LedgerView(tuple(commits), next((_run(row) for row in rows if row[c.RUN_ID] == run_id), None))


def _read(make: Callable[[RunRow], T], spark: SparkSession, location: LedgerLocation, *statuses: str) -> list[T]:
    """What is made of each row with these statuses: read by delta-rs where it can."""
    table = folder_runs(spark, location)
    if table is not None:
        return table.read_as(make, *statuses)
    rows = location.rows(spark, RUNS).where(F.col(c.STATUS).isin(*statuses)).collect()
    return [make(row.asDict()) for row in rows]


def counted(spark: SparkSession, location: LedgerLocation, seen: LedgerView, attempt: Attempt) -> Run | None:
    """The attempt's run if it is among the commits; it is read where its id was not known before the look.

    Raises Fault RUN_ID_TAKEN where another command's run has the name: an orchestrator's id given to two of them.
    """
    named = next((commit for commit in seen.commits if commit.run_id == attempt.run_id), None)
    if named is None:
        return None
    if named.kind != attempt.kind:
        own = f"{attempt.kind}-{attempt.run_id}"
        message = f"run id {attempt.run_id!r} is that of a committed run of {named.kind}; expected one of its own for"
        raise Fault("RUN_ID_TAKEN", f"{message} {attempt.kind}, such as {own!r}")
    committed = seen.committed or read_commits(spark, location, attempt.run_id).committed
    assert committed is not None, f"run {attempt.run_id} was committed, and is no longer"
    return committed


def history(spark: SparkSession, location: LedgerLocation) -> tuple[Run, ...]:
    """Every run that counts, in the order of the commits."""
    return tuple(sorted(_read(_run, spark, location, COMMITTED), key=lambda run: run.sequence))


def committed_runs(spark: SparkSession, location: LedgerLocation) -> DataFrame:
    """The rows of `runs` that count."""
    return location.rows(spark, RUNS).where(F.col(c.STATUS) == COMMITTED)


def removals(spark: SparkSession, location: LedgerLocation) -> dict[str, set[str]]:
    """By table, the committed attempts whose rows `maintain` has removed, or is about to remove, for good."""
    found = defaultdict[str, set[str]](set)
    for row in _read(itself, spark, location, COMMITTED):
        for table, attempts in (row[c.REMOVED] or {}).items():
            found[table].update(attempts)
    return found


def committed_before(spark: SparkSession, location: LedgerLocation, moment: datetime) -> set[str]:
    """The attempts that were committed before a moment."""
    rows = committed_runs(spark, location).where(F.col(c.FINISHED_AT) < F.lit(moment)).select(c.ATTEMPT_ID)
    return {row[c.ATTEMPT_ID] for row in rows.collect()}


def plan(spark: SparkSession, location: LedgerLocation, attempt: Attempt) -> None:
    """Say what an attempt is about to do, before it writes any row: what is left of a dead one can be told by it."""
    row, table = planned_row(attempt), folder_runs(spark, location)
    if table is None:
        return changes.append_rows(runs_frame(spark, [row]), location, RUNS)
    return table.append(row)


def commit(spark: SparkSession, location: LedgerLocation, attempt: Attempt, since: int, outcome: Outcome) -> Run:
    """Make the attempt count, or give the attempt of the same run that counts already.

    `since` is the number the attempt saw before it read its inputs. Raises WriteConflict where a later commit shares
    a guard, or where others kept coming in between; Fault RUN_ID_TAKEN where another command's run took the name.
    """
    last = since
    for _ in range(TRIES):
        row = _committed_row(attempt, last + 1, outcome)
        if _compare_and_set(spark, location, row):
            return _run(row)
        seen = read_commits(spark, location, attempt.run_id)
        committed = counted(spark, location, seen, attempt)
        if committed is not None:
            return committed
        _require_unchanged(attempt, since, seen)
        _require_not_given_up(spark, location, attempt)
        last = seen.sequence
    raise WriteConflict(f"run {attempt.run_id!r}: {TRIES} other commits came in between; run it again")


def _require_unchanged(attempt: Attempt, since: int, seen: LedgerView) -> None:
    for guard in (*attempt.guards, REDACTION):
        commit = seen.last(guard)
        if commit is not None and commit.sequence > since:
            message = f"run {attempt.run_id!r} read {guard} as of commit {since}, and run {commit.run_id!r} committed"
            raise WriteConflict(f"{message} it as number {commit.sequence} meanwhile; run it again")


def _require_not_given_up(spark: SparkSession, location: LedgerLocation, attempt: Attempt) -> None:
    if attempt.attempt_id in given_up(spark, location):
        began = f"run {attempt.run_id!r}: this attempt began {attempt.started_at:%Y-%m-%dT%H:%MZ} and was given up by"
        raise WriteConflict(f"{began} `groupledger maintain` (maintain.attempt_hours), its rows removed; run it again")


def given_up(spark: SparkSession, location: LedgerLocation) -> set[str]:
    """The attempts that can no longer commit."""
    return {row[c.ATTEMPT_ID] for row in _read(itself, spark, location, GIVEN_UP)}


def give_up(spark: SparkSession, location: LedgerLocation, began_before: datetime, now: datetime) -> int:
    """Give up every attempt that was planned before a moment and has not committed; how many there were.

    An attempt that commits meanwhile is not among `given_up` afterwards. Raises WriteConflict where others keep
    committing in between.
    """
    rows = location.rows(spark, RUNS)
    planned = rows.where((F.col(c.STATUS) == PLANNED) & (F.col(c.STARTED_AT) < F.lit(began_before)))
    ended = rows.where(F.col(c.STATUS).isin(COMMITTED, GIVEN_UP)).select(c.ATTEMPT_ID)
    for _ in range(TRIES):
        dead = planned.join(ended, c.ATTEMPT_ID, "left_anti").select(*RUNS.columns).collect()
        if not dead:
            return 0
        as_ended = {c.STATUS: F.lit(GIVEN_UP), c.FINISHED_AT: F.lit(now)}
        condition = f"t.{c.STATUS} IN ('{COMMITTED}', '{GIVEN_UP}') AND t.{c.ATTEMPT_ID} = s.{c.ATTEMPT_ID}"
        frame = spark.createDataFrame(dead, RUNS.schema).withColumns(as_ended)
        count = merged(location, frame, f"given_up_{digest([row[c.ATTEMPT_ID] for row in dead])}", condition)
        if count is not None:
            return count
    raise WriteConflict(f"{TRIES} commits of other runs came in between; run it again")


def _compare_and_set(spark: SparkSession, location: LedgerLocation, row: Mapping[str, Any]) -> bool:
    """Whether the row went in: only where no commit has this number or a later one, and none is of this run.

    Nor where the attempt was given up.
    """
    table = folder_runs(spark, location)
    if table is None:
        return _set_by_spark(spark, location, row)
    if went_in := _set_by_delta_rs(table, row):
        table.gather()
    return went_in


def _set_by_delta_rs(table: FolderRuns, row: Mapping[str, Any]) -> bool:
    def bars(other: Mapping[str, Any]) -> bool:
        is_given_up, is_committed = other[c.ATTEMPT_ID] == row[c.ATTEMPT_ID], other[c.STATUS] == COMMITTED
        is_taken = is_committed and (other[c.SEQUENCE] >= row[c.SEQUENCE] or other[c.RUN_ID] == row[c.RUN_ID])
        return bool(is_given_up or is_taken)

    return table.insert(row, bars, COMMITTED, GIVEN_UP)


def _set_by_spark(spark: SparkSession, location: LedgerLocation, row: Mapping[str, Any]) -> bool:
    same = f"t.{c.ATTEMPT_ID} = s.{c.ATTEMPT_ID}"  # given up
    overtaken = f"t.{c.STATUS} = '{COMMITTED}' AND (t.{c.SEQUENCE} >= s.{c.SEQUENCE} OR t.{c.RUN_ID} = s.{c.RUN_ID})"
    condition = f"t.{c.STATUS} IN ('{COMMITTED}', '{GIVEN_UP}') AND ({same} OR {overtaken})"
    return merged(location, runs_frame(spark, [row]), f"commit_{digest(row[c.ATTEMPT_ID])}", condition) == 1


def merged(location: LedgerLocation, rows: DataFrame, name: str, condition: str, matched: str = "") -> int | None:
    """Insert the rows of `s` into `runs` (`t`) that match no row of it; how many changed, None in a conflict.

    `matched` says what becomes of rows that match.
    """
    spark, view = rows.sparkSession, f"groupledger_{name}"
    rows.createOrReplaceTempView(view)
    try:
        command = f"MERGE INTO {location.identifier(RUNS)} t USING {view} s ON {condition}{matched}"
        done = changes.run(spark, location, RUNS, f"{command} WHEN NOT MATCHED THEN INSERT *")
        return int(done[0]["num_affected_rows"])
    except ENGINE_ERRORS as error:
        if not is_conflict(error):
            raise
        return None
    finally:
        spark.catalog.dropTempView(view)


def runs_frame(spark: SparkSession, rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Rows of `runs` as a frame."""
    return spark.createDataFrame([tuple(row[name] for name in RUNS.columns) for row in rows], RUNS.schema)


def planned_row(attempt: Attempt) -> dict[str, Any]:
    """The row that is written before any other of the attempt."""
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


def _committed_row(attempt: Attempt, sequence: int, outcome: Outcome) -> dict[str, Any]:
    """The row that makes the attempt count."""
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


_SHORT = tuple(each.name for each in fields(Commit) if each.name not in (READ, REACHED, FACTS_AS_OF, KNOWN))


def _commit(row: RunRow) -> Commit:
    inputs = json.loads(row[c.INPUTS])
    reached, known = (canonical(inputs[name]) if name in inputs else None for name in (REACHED, KNOWN))
    told = {c.GUARDS: tuple(row[c.GUARDS]), c.REMOVED: row[c.REMOVED] or {}}
    more = {READ: inputs.get(READ), FACTS_AS_OF: inputs.get(FACTS_AS_OF), REACHED: reached, KNOWN: known}
    return Commit(**{name: row[name] for name in _SHORT} | told | more)


def _run(row: RunRow) -> Run:
    told = {c.GUARDS: tuple(row[c.GUARDS]), c.INPUTS: json.loads(row[c.INPUTS])}
    return Run(**{each.name: row[each.name] for each in fields(Run)} | told)
