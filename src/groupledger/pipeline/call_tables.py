"""The tables `callbacks` and `metrics`: what members were called for in all recorded history, as one run.

summary = keep_calls(spark, config, invocation, hours=24)
summary.rows            # {"callbacks": 1204, "metrics": 4102}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from groupledger.config import Config
from groupledger.core.digest import code_digest, digest, result_digest
from groupledger.engine.buckets import bucket_count, parallelism
from groupledger.engine.envelope import FilesOfAttempt
from groupledger.engine.recorded_groups import TABLES, call_buckets
from groupledger.pipeline.enveloped import Enveloped, files_of
from groupledger.pipeline.invocation import Invocation, Timings
from groupledger.pipeline.past import require_facts
from groupledger.sinks import attempts
from groupledger.sinks.append import digest_counts, digests
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation, check_for_writing
from groupledger.sinks.location import engine_errors_as_faults
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, RUNS


@dataclass(frozen=True, slots=True)
class CallsSummary:
    """What a run did; `rows` by table."""

    run_id: str
    attempt_id: str
    already_committed: bool
    rows: Mapping[str, int]
    result_digest: str
    timings: Mapping[str, float]


def keep_calls(spark: SparkSession, config: Config, invocation: Invocation, hours: int) -> CallsSummary:
    """Derive the calls of all classic groups, and their metrics by windows of so many hours, and commit them.

    Readers then see this run's rows and no earlier run's (`sinks.current`). Where they see those of the same facts,
    code and hours already, nothing is done. Raises LedgerFault where there is no ledger, or one without these tables;
    WriteConflict where another such run committed meanwhile.
    """
    location = LedgerLocation.of(config.ledger)
    with engine_errors_as_faults(location):
        return _keep_calls(spark, location, config, invocation, hours)


def _keep_calls(
    spark: SparkSession, location: LedgerLocation, config: Config, invocation: Invocation, hours: int
) -> CallsSummary:
    timings = Timings(invocation)
    with timings.stage("look"):
        check_for_writing(spark, location, (*TABLES, RUNS))
        seen = attempts.read_commits(spark, location)
        seen.require_no_redaction()
        require_facts(seen, location)
        attempt = _attempt(invocation, seen, hours)
        committed = attempts.counted(seen, attempt)
        if committed is not None:
            return _summary(committed, timings, already_committed=True)
    with timings.stage("plan"):
        attempts.plan(spark, location, attempt)
    with timings.stage("compute"):
        files = files_of(spark, location, TABLES, attempt.attempt_id)
        found = Enveloped.of(computed(spark, location, config, seen, hours, files), files)
    with timings.stage("write"):
        by_table = digests(found.append(spark, location, TABLES, attempt.attempt_id))
    counts = {table.name: found.rows[table.name] for table in TABLES} | digest_counts(by_table)
    outcome = attempts.Outcome({}, counts, result_digest(by_table), "done", invocation.now())
    with timings.stage("commit"):
        run = attempts.commit(spark, location, attempt, seen.sequence, outcome)
    return _summary(run, timings, already_committed=run.attempt_id != attempt.attempt_id)


def computed(
    spark: SparkSession,
    location: LedgerLocation,
    config: Config,
    seen: attempts.LedgerView,
    hours: int,
    files: FilesOfAttempt | None = None,
) -> DataFrame:
    """Envelopes of TABLES from the facts that count as of `seen`, rows in `files`; nothing is computed yet."""
    groups, members = (current(spark, location, each, seen.commits) for each in (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS))
    snapshots = sum(commit.counts_out.get(GROUP_SNAPSHOTS.name, 0) for commit in seen.commits)
    buckets = config.buckets or bucket_count(snapshots, parallelism(spark))
    return call_buckets(groups, members, buckets, hours, files)


def _attempt(invocation: Invocation, seen: attempts.LedgerView, hours: int) -> attempts.Attempt:
    """Name the run after its input and the commits before it: one replaced by others can come again."""
    facts = [commit.sequence for commit in seen.commits if commit.kind == attempts.INGEST]
    inputs = {"facts_as_of": max(facts, default=0), "hours": hours}
    code = code_digest()
    name = f"{attempts.CALLS}-{digest([inputs, code])[:32]}"
    last = seen.last(attempts.CALLS)
    again = last is not None and last.run_id.startswith(name)
    run_id = invocation.run_id or (last.run_id if last and again else f"{name}-{seen.sequence}")
    return attempts.Attempt(
        run_id,
        invocation.attempt_id,
        attempts.CALLS,
        inputs,
        config_digest=digest({"hours": hours}),
        code_digest=code,
        started_at=invocation.now(),
        guards=(attempts.CALLS,),
    )


def _summary(run: attempts.Run, timings: Timings, *, already_committed: bool) -> CallsSummary:
    rows = {table.name: run.counts_out.get(table.name, 0) for table in TABLES}
    return CallsSummary(run.run_id, run.attempt_id, already_committed, rows, run.result_digest, timings.by_stage)
