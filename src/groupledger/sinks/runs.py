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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from groupledger.core.digest import canonical, digest
from groupledger.core.faults import Fault
from groupledger.sinks import changes
from groupledger.sinks.refusals import ENGINE_ERRORS, is_conflict
from groupledger.sinks.refusals import WriteConflict as WriteConflict
from groupledger.tables import RUNS, SCHEMA_VERSION
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.sinks.ledger import LedgerLocation

READ = "read"
"""In `inputs` of an ingest: the first and last offset of each log partition of which it wrote records."""
REACHED = "reached"
"""In `inputs` of an ingest from running clusters: by cluster, the offset after the last one it has read or passed over
in each log partition (`offsets`), and a digest of the topics (`topics`)."""
PLANNED, COMMITTED, GIVEN_UP = "planned", "committed", "given-up"
INGEST, CALLS = "ingest", "callbacks"
"""Kinds of runs that readers tell apart: those that bring facts, and those that derive calls and metrics from them."""
TRIES = 10
"""Commits of others that may come in between before this one gives up."""

_FOUND = "found"
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


_READ = (
    c.RUN_ID,
    c.ATTEMPT_ID,
    c.KIND,
    c.SEQUENCE,
    c.GUARDS,
    c.INPUTS,
    c.INPUT_DIGEST,
    c.CONFIG_DIGEST,
    c.CODE_DIGEST,
    c.COUNTS_IN,
    c.COUNTS_OUT,
    c.RESULT_DIGEST,
    c.VERDICT,
    c.SCHEMA,
)


@dataclass(frozen=True, slots=True)
class Commit:
    """A committed row of `runs` in short: what readers and later commits act on.

    `read`: by cluster and log partition, the first and last offset of the records that an ingest wrote. `reached`: by
    cluster that an ingest read itself, where the next one goes on, as JSON: of thousands of commits one is looked at.
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


_FROM_INPUTS = (READ, REACHED)
_SHORT = tuple(each.name for each in fields(Commit) if each.name not in _FROM_INPUTS)


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
            message = (
                "a redaction is under way, or was cut off; `groupledger maintain` finishes it, then run this again"
            )
            raise WriteConflict(message)

    def last(self, guard: str) -> Commit | None:
        """The last commit under a guard."""
        return next((commit for commit in reversed(self.commits) if guard in commit.guards), None)


def read_commits(spark: SparkSession, location: LedgerLocation, run_id: str | None = None) -> LedgerView:
    """One read of the committed rows, without a shuffle: a run is a short row, and few are ever made."""
    found = F.when(F.col(c.RUN_ID) == run_id, F.struct(*_READ)) if run_id else F.lit(None)
    inputs = [F.get_json_object(c.INPUTS, f"$.{name}").alias(name) for name in _FROM_INPUTS]
    rows = committed_runs(spark, location).select(*_SHORT, *inputs, found.alias(_FOUND)).collect()
    commits = sorted((_commit(row) for row in rows), key=lambda commit: commit.sequence)
    counted = next((_run(row[_FOUND]) for row in rows if row[_FOUND] is not None), None)
    return LedgerView(tuple(commits), counted)


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
    rows = committed_runs(spark, location).select(*_READ).collect()
    return tuple(sorted((_run(row) for row in rows), key=lambda run: run.sequence))


def committed_runs(spark: SparkSession, location: LedgerLocation) -> DataFrame:
    """The rows of `runs` that count."""
    return location.rows(spark, RUNS).where(F.col(c.STATUS) == COMMITTED)


def removals(spark: SparkSession, location: LedgerLocation) -> dict[str, set[str]]:
    """By table, the committed attempts whose rows `maintain` has removed, or is about to remove, for good."""
    rows = committed_runs(spark, location).where(F.size(c.REMOVED) > 0).select(c.REMOVED).collect()
    found: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        for table, attempts in row[c.REMOVED].items():
            found[table].update(attempts)
    return found


def plan(spark: SparkSession, location: LedgerLocation, attempt: Attempt) -> None:
    """Say what an attempt is about to do, before it writes any row: what is left of a dead one can be told by it."""
    changes.append_rows(runs_row(spark, attempt), location, RUNS)


def commit(spark: SparkSession, location: LedgerLocation, attempt: Attempt, since: int, outcome: Outcome) -> Run:
    """Make the attempt count, or give the attempt of the same run that counts already.

    `since` is the number the attempt saw before it read its inputs. Raises WriteConflict where a later commit shares
    a guard, or where others kept coming in between; Fault RUN_ID_TAKEN where another command's run took the name.
    """
    last = since
    for _ in range(TRIES):
        if _compare_and_set(spark, location, attempt, last + 1, outcome):
            return _as_run(attempt, last + 1, outcome)
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
    if given_up(spark, location).where(F.col(c.ATTEMPT_ID) == attempt.attempt_id).count():
        message = f"run {attempt.run_id!r}: this attempt began {attempt.started_at:%Y-%m-%dT%H:%MZ} and was given up by"
        raise WriteConflict(
            f"{message} `groupledger maintain` (maintain.attempt_hours), its rows removed; run it again"
        )


def given_up(spark: SparkSession, location: LedgerLocation) -> DataFrame:
    """The rows of `runs` of attempts that can no longer commit."""
    return location.rows(spark, RUNS).where(F.col(c.STATUS) == GIVEN_UP)


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


def _compare_and_set(
    spark: SparkSession, location: LedgerLocation, attempt: Attempt, sequence: int, outcome: Outcome
) -> bool:
    """Whether the row went in: only where no commit has this number or a later one, and none is of this run."""
    same = f"t.{c.ATTEMPT_ID} = s.{c.ATTEMPT_ID}"  # given up
    overtaken = f"t.{c.STATUS} = '{COMMITTED}' AND (t.{c.SEQUENCE} >= s.{c.SEQUENCE} OR t.{c.RUN_ID} = s.{c.RUN_ID})"
    condition = f"t.{c.STATUS} IN ('{COMMITTED}', '{GIVEN_UP}') AND ({same} OR {overtaken})"
    return (
        merged(location, runs_row(spark, attempt, sequence, outcome), f"commit_{digest(attempt.attempt_id)}", condition)
        == 1
    )


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


def runs_row(
    spark: SparkSession, attempt: Attempt, sequence: int | None = None, outcome: Outcome | None = None
) -> DataFrame:
    """The row of an attempt: `planned`, or `committed` with its number and what it has to say."""
    values = {
        c.RUN_ID: attempt.run_id,
        c.ATTEMPT_ID: attempt.attempt_id,
        c.KIND: attempt.kind,
        c.STATUS: PLANNED if outcome is None else COMMITTED,
        c.SEQUENCE: sequence,
        c.GUARDS: list(attempt.guards),
        c.INPUTS: canonical(attempt.inputs),
        c.INPUT_DIGEST: (outcome and outcome.input_digest) or attempt.input_digest,
        c.CONFIG_DIGEST: attempt.config_digest,
        c.CODE_DIGEST: attempt.code_digest,
        c.COUNTS_IN: outcome and dict(outcome.counts_in),
        c.COUNTS_OUT: outcome and dict(outcome.counts_out),
        c.RESULT_DIGEST: outcome and outcome.result_digest,
        c.VERDICT: outcome and outcome.verdict,
        c.SCHEMA: SCHEMA_VERSION,
        c.STARTED_AT: attempt.started_at,
        c.FINISHED_AT: outcome and outcome.finished_at,
        c.REMOVED: outcome and {table: list(attempts) for table, attempts in outcome.removed.items()},
    }
    return spark.createDataFrame([tuple(values[name] for name in RUNS.columns)], RUNS.schema)


def _as_run(attempt: Attempt, sequence: int, outcome: Outcome) -> Run:
    return Run(
        attempt.run_id,
        attempt.attempt_id,
        attempt.kind,
        sequence,
        attempt.guards,
        json.loads(canonical(attempt.inputs)),
        outcome.input_digest or attempt.input_digest,
        attempt.config_digest,
        attempt.code_digest,
        dict(outcome.counts_in),
        dict(outcome.counts_out),
        outcome.result_digest,
        outcome.verdict,
    )


def _commit(row: Any) -> Commit:
    values = {name: row[name] for name in _SHORT}
    read = None if row[READ] is None else json.loads(row[READ])
    return Commit(**values | {c.GUARDS: tuple(values[c.GUARDS])}, read=read, reached=row[REACHED])


def _run(row: Any) -> Run:
    values = row.asDict()
    return Run(**values | {c.GUARDS: tuple(values[c.GUARDS]), c.INPUTS: json.loads(values[c.INPUTS])})
