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
from datetime import UTC, datetime
from typing import Any, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.core.digest import canonical
from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import KNOWN
from groupledger.sinks.commit_log import COMMITTED as COMMITTED
from groupledger.sinks.commit_log import ENDS, GIVEN_UP, TRIES, RunRow, commit_log, itself
from groupledger.sinks.commit_log import PLANNED as PLANNED
from groupledger.sinks.location import LedgerLocation
from groupledger.sinks.spark_errors import WriteConflict as WriteConflict
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
    cluster that an ingest read itself, where the next one continues, as JSON: of thousands of commits one is looked at.
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

    def last(self, guard: str) -> Commit | None:
        """Return the last commit under a guard."""
        return next((commit for commit in reversed(self.commits) if guard in commit.guards), None)


def read_commits(spark: SparkSession, location: LedgerLocation, run_id: str | None = None) -> LedgerView:
    """Read the committed rows at once, without a shuffle: a run is a short row, and few are ever made."""
    log = commit_log(spark, location)
    commits = sorted(log.read(_commit, COMMITTED), key=lambda commit: commit.sequence)
    rows = log.read(itself, COMMITTED) if any(each.run_id == run_id for each in commits) else []
    return LedgerView(tuple(commits), next((_run(row) for row in rows if row[c.RUN_ID] == run_id), None))


def counted(spark: SparkSession, location: LedgerLocation, seen: LedgerView, attempt: Attempt) -> Run | None:
    """Return the attempt's run if it is among the commits; it is read if its id was not known before.

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
    """Return every run that counts, in the order of the commits."""
    return tuple(sorted(commit_log(spark, location).read(_run, COMMITTED), key=lambda run: run.sequence))


def committed_runs(spark: SparkSession, location: LedgerLocation) -> DataFrame:
    """Return the rows of `runs` that count."""
    return location.rows(spark, RUNS).where(F.col(c.STATUS) == COMMITTED)


def removals(spark: SparkSession, location: LedgerLocation) -> dict[str, set[str]]:
    """Return by table the committed attempts whose rows `maintain` has removed, or is about to remove, for good."""
    found = defaultdict[str, set[str]](set)
    for row in commit_log(spark, location).read(itself, COMMITTED):
        for table, attempts in (row[c.REMOVED] or {}).items():
            found[table].update(attempts)
    return found


def committed_before(spark: SparkSession, location: LedgerLocation, moment: datetime) -> set[str]:
    """Return the attempts that were committed before a moment."""
    rows = commit_log(spark, location).read(itself, COMMITTED)
    return {row[c.ATTEMPT_ID] for row in rows if row[c.FINISHED_AT].astimezone(UTC) < moment}


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
        seen = read_commits(spark, location, attempt.run_id)
        committed = counted(spark, location, seen, attempt)
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


_SHORT = tuple(each.name for each in fields(Commit) if each.name not in (READ, REACHED, FACTS_AS_OF, KNOWN))


def _commit(row: RunRow) -> Commit:
    inputs = json.loads(row[c.INPUTS])
    reached, known = (canonical(inputs[name]) if name in inputs else None for name in (REACHED, KNOWN))
    own = {c.GUARDS: tuple(row[c.GUARDS]), c.REMOVED: row[c.REMOVED] or {}}
    more = {READ: inputs.get(READ), FACTS_AS_OF: inputs.get(FACTS_AS_OF), REACHED: reached, KNOWN: known}
    return Commit(**{name: row[name] for name in _SHORT} | own | more)


def _run(row: RunRow) -> Run:
    own = {c.GUARDS: tuple(row[c.GUARDS]), c.INPUTS: json.loads(row[c.INPUTS])}
    return Run(**{each.name: row[each.name] for each in fields(Run)} | own)
