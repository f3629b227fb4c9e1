"""Assign: snapshots into rebalances. One assignor call a bucket of groups, one pass, all result tables.

summary = assign(spark, config, invocation)
summary.outcomes        # {"ASSIGNED": 7, "UNCHANGED": 2, "EMPTY": 1}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

from groupledger.config import AssignSettings, Config, LimitSettings, OverrideSettings
from groupledger.config.settings import JUDGED
from groupledger.core.custom.assignor_names import CustomAssignor, find_all, source_digests
from groupledger.core.digest import code_digest, digest, result_digest
from groupledger.core.rebalance.step import Form
from groupledger.core.wire.offsets_log import RecordKind
from groupledger.engine import bucket_rows as r
from groupledger.engine.buckets import GROUPS_A_BUCKET, apply, bucket_count, parallelism
from groupledger.engine.envelope import FilesOfAttempt
from groupledger.engine.group_arrays import Calculation
from groupledger.engine.result_rows import (
    BEYOND,
    EACH_SIDE,
    MEMBERS_OUT,
    MISSING,
    OUTCOME,
    OUTCOMES,
    REASONS,
    RECEIVED,
    REJECTED,
    SUM,
    VERDICT,
)
from groupledger.engine.topic_catalogue import TopicCatalogue
from groupledger.pipeline.assign_input import (
    LATEST,
    RECORDED,
    Extent,
    Facts,
    assign_input,
    catalogue,
    standing,
    touched_facts,
)
from groupledger.pipeline.enveloped import Enveloped, files_of
from groupledger.pipeline.invocation import Invocation, Timings
from groupledger.pipeline.past import Past, require_facts
from groupledger.sinks import attempts
from groupledger.sinks.append import digest_counts, digests
from groupledger.sinks.ledger_tables import LedgerLocation, check, check_for_writing
from groupledger.sinks.spark_errors import engine_errors_as_faults
from groupledger.tables import (
    ASSIGNMENTS,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    QUARANTINE,
    TOPIC_SNAPSHOTS,
)
from groupledger.tables import columns as c
from groupledger.tables.declaration import TOPIC_ID_PARTITIONS

DIGESTS = ("digest_1", "digest_2")
HASH = "row_hash"


def hashed(rows: DataFrame) -> DataFrame:
    """Add a hash (`row_hash`) of all columns but the bucket to rows of `engine.bucket_rows.INPUT`.

    The hash passes over nulls, so a number says where each column begins, and a list of entries is followed by its
    topic ids, a dash for each that is null (joined as text: Spark would interpret a `transform`).
    """
    terms: list[Column] = []
    for position, field in enumerate(r.INPUT):
        if field.name != r.BUCKET:
            terms += [F.lit(position), F.col(field.name)]
            if field.dataType == TOPIC_ID_PARTITIONS:
                terms.append(F.expr(f"array_join({field.name}.{c.TOPIC_ID}, ' ', '-')"))
    return rows.select("*", F.xxhash64(*terms).alias(HASH))


def input_metrics() -> list[Column]:
    """Count the rows by kind, and digest all of them in any order."""
    halves = {DIGESTS[0]: F.col(HASH).bitwiseAND(F.lit(0xFFFFFFFF)), DIGESTS[1]: F.shiftright(HASH, 32)}
    kinds = [F.count_if(F.col(r.ROW_KIND) == kind).alias(name) for kind, name in enumerate(r.KINDS)]
    return kinds + [F.sum(half).alias(name) for name, half in halves.items()]


def seen_input(rows: DataFrame, watch: Observation, received: Mapping[str, int]) -> Mapping[str, int | None]:
    """Return the metrics of the input, observed before the shuffle; a retried task is observed twice: recount then."""
    seen: dict[str, int | None] = watch.get
    if all((seen[name] or 0) == number for name, number in received.items()):
        return seen
    return rows.agg(*input_metrics()).collect()[0].asDict()


# What goes in comes out: the equations that every run of `assign` must satisfy, and records both sides of.
#
# - Rows in, by kind, are the rows that reached the assignors; groups in are outcomes out.
# - Members of the groups that got an outcome are rows of `assignments`; those of a rejected group are its quarantine
# row.
# - Partitions of subscribed topics, and those assigned beyond them (the record may know a topic better than the
# listings,
#   or name two owners), are kept, added or unassigned; every unassigned one has its reason.
#
# A run that cannot say so is a bug of ours: it ends in an AssertionError, and nothing of it counts.

GROUPS = "groups"


def assert_conserved(
    counts_in: Mapping[str, int], received: Mapping[str, int], counts_out: Mapping[str, int], outcomes: int
) -> None:
    """Raise AssertionError with both sides of an equation that does not hold.

    `counts_in` counts the rows by kind as they were read, `received` as they came out of the shuffle.
    """

    def out(name: str) -> int:
        return counts_out.get(name, 0)

    def total(name: str) -> int:
        return out(f"{SUM}{name}")

    partitions, kept, added, unassigned = map(total, EACH_SIDE)
    equations = (
        *((f"{kind} read, {kind} received", counts_in[kind], number) for kind, number in received.items()),
        ("groups in, outcomes out", counts_in[GROUPS], outcomes),
        ("groups rejected, rows of quarantine", out(f"{OUTCOME}{REJECTED}"), out(QUARANTINE.name)),
        ("members with an outcome, rows of assignments", total(MEMBERS_OUT), out(ASSIGNMENTS.name)),
        ("partitions beyond what is assigned or unassigned, none", total(MISSING), 0),
        (
            "partitions and those beyond, kept + added + unassigned",
            partitions + total(BEYOND),
            kept + added + unassigned,
        ),
        ("partitions unassigned, those with a reason", unassigned, total(REASONS)),
    )
    for what, left, right in equations:
        if left != right:
            raise AssertionError(f"{what}: {left} and {right}; expected as many")


KIND = "assign"
DONE, OVER_LIMIT = "done", "quarantine-over-limit"
TARGETS = RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA.value
SHALLOW = 3
"""Up to this many snapshots per group, read all members instead of joining."""
MOST_ROUNDS = 64
"""Buckets a task slot gets at most under `latest`: empty ones cost little, crowded ones memory."""

SETTINGS, SINCE = "settings", "since"
"""In the inputs of a run: the configuration that its results follow from; the run whose results stand for groups that
were not computed, where there is one."""


@dataclass(frozen=True, slots=True)
class AssignSummary:
    """What a run of `assign` did. `outcomes` adds up to `groups_in`; `verdicts` likewise."""

    run_id: str
    attempt_id: str
    scenario: str
    already_committed: bool
    verdict: str  # done, or quarantine-over-limit
    groups_in: int
    outcomes: Mapping[str, int]
    verdicts: Mapping[str, int]
    sums: Mapping[str, int]  # moves, least moves, unassigned, added, revoked, lost: over all groups
    rows: Mapping[str, int]  # rows written, by table
    quarantined: int
    result_digest: str
    timings: Mapping[str, float]  # seconds by stage
    since_run: str | None = None  # whose results stand for groups that nothing newer touched; null: all were computed


def assign(spark: SparkSession, config: Config, invocation: Invocation, *, whole: bool = False) -> AssignSummary:
    """Compute the configured scenario over the configured snapshots, and commit it as one run.

    Of the last snapshots, those of groups are computed that facts touch which the scenario's last run did not know; its
    results stand for the others (`pipeline.assign_input`). Where there are no such facts, the answer is that run, and
    nothing is committed. `whole`: compute every group.

    Without a run id the run is named after what it computes: the same groups, facts, configuration and code are the
    same run, which changes nothing when it is repeated, unless the results of another configuration or code stand under
    the scenario by now.
    Raises LedgerFault where there is no ledger, WriteConflict where others keep committing in between.
    """
    location = LedgerLocation.of(config.ledger)
    with engine_errors_as_faults(location):
        return _assign(spark, location, config, invocation, whole=whole)


def envelopes_of(spark: SparkSession, config: Config) -> DataFrame:
    """Return what the configuration would commit of all facts, in envelopes; nothing is written. Raises as `assign`."""
    location = LedgerLocation.of(config.ledger)
    check(spark, location)
    seen = attempts.read_commits(spark, location)
    seen.require_no_redaction()
    require_facts(seen, location)
    custom = find_all(config.assign.custom_assignors, config.limits.custom)
    return _Work(spark, location, config, custom, seen).planned({}, Observation())[1]


def _assign(
    spark: SparkSession, location: LedgerLocation, config: Config, invocation: Invocation, *, whole: bool
) -> AssignSummary:
    timings = Timings(invocation)
    with timings.stage("look"):
        check_for_writing(spark, location)
        seen = attempts.read_commits(spark, location)
        seen.require_no_redaction()
        require_facts(seen, location)
        known = _known_facts(seen)
        custom = find_all(config.assign.custom_assignors, config.limits.custom)
        attempt, stands = _attempt(config, invocation, known, custom, seen, whole=whole)
        committed = attempts.counted(spark, location, seen, attempt)
        if committed is None and stands is not None and stands.facts_as_of == known.as_of:
            committed = attempts.read_commits(spark, location, stands.run_id).committed
            assert committed is not None, f"run {stands.run_id} was committed, and is no longer"
        if committed is not None:
            return _summary(committed, config, timings, already_committed=True)
    with timings.stage("plan"):
        attempts.plan(spark, location, attempt)
    work = _Work(spark, location, config, custom, seen)
    outcome = work.outcome(attempt, invocation, timings)
    with timings.stage("commit", "committing"):
        run = attempts.commit(spark, location, attempt, seen.sequence, outcome)
    return _summary(run, config, timings, already_committed=run.attempt_id != attempt.attempt_id)


def _attempt(
    config: Config,
    invocation: Invocation,
    known: _Known,
    custom: Mapping[str, CustomAssignor],
    seen: attempts.LedgerView,
    *,
    whole: bool,
) -> tuple[attempts.Attempt, attempts.Commit | None]:
    """Return the attempt, and the run whose results remain valid for other groups; None: it computes all."""
    what = {"assign": asdict(config.assign), "limits": asdict(config.limits)}
    code = code_digest()
    if custom:
        code = digest([code, source_digests(custom)])
    settings = digest(what)
    inputs: dict[str, Any] = {attempts.FACTS_AS_OF: known.as_of, "snapshots": config.assign.snapshots}
    guard = f"{KIND}/{config.assign.scenario}"  # results of older facts never supersede those of newer ones
    of_scenario = [each for each in seen.commits if each.kind == KIND and guard in each.guards]
    others = [each.sequence for each in of_scenario if (each.config_digest, each.code_digest) != (settings, code)]
    if others:  # back to earlier settings or code: their results count again only if they are committed again
        inputs["supersedes"] = others[-1]
    stands = None if whole or config.assign.snapshots != LATEST else standing(of_scenario, settings, code, seen)
    if stands is not None:
        inputs[SINCE] = {attempts.FACTS_AS_OF: stands.facts_as_of, c.RUN_ID: stands.run_id}
    run_id = invocation.run_id or f"assign-{digest([inputs, what, code])[:32]}"
    inputs[SETTINGS], now = what, invocation.now()
    return attempts.Attempt(run_id, invocation.attempt_id, KIND, inputs, settings, code, now, guards=(guard,)), stands


class _Known(NamedTuple):
    """What `runs` says of the facts: number of the last commit that brought any (0: none), snapshots ever written.

    `coordinated`: records of KIP-848 groups were read; where none were, none are looked for. The others are of
    `assign_input.Extent`.
    """

    as_of: int
    snapshots: int
    coordinated: bool
    most_members: int | None
    shallow: bool


def _known_facts(seen: attempts.LedgerView) -> _Known:
    ingests = [commit for commit in seen.commits if commit.kind == attempts.INGEST]
    groups = [commit.counts_out for commit in ingests if commit.counts_out.get(GROUP_SNAPSHOTS.name)]
    snapshots = sum(counts[GROUP_SNAPSHOTS.name] for counts in groups)
    largest = [counts[attempts.MOST_MEMBERS] for counts in groups if attempts.MOST_MEMBERS in counts]
    return _Known(
        as_of=max((commit.sequence for commit in ingests), default=0),
        snapshots=snapshots,
        coordinated=any(name.endswith(f".{TARGETS}") for commit in ingests for name in commit.counts_in),
        most_members=max(largest, default=0) if len(largest) == len(groups) else None,
        shallow=snapshots <= SHALLOW * max((counts.get(GROUP_HEADS.name, 0) for counts in groups), default=0),
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """What is configured to be computed of the facts that count as of `seen`."""

    spark: SparkSession
    location: LedgerLocation
    config: Config
    custom: Mapping[str, CustomAssignor]
    seen: attempts.LedgerView

    def outcome(self, attempt: attempts.Attempt, invocation: Invocation, timings: Timings) -> attempts.Outcome:
        """Read, compute and append; nothing counts yet."""
        with timings.stage("read"):
            watch = Observation()
            files = files_of(self.spark, self.location, r.RESULTS, attempt.attempt_id)
            rows, computed, topics = self.planned(attempt.inputs, watch, files)
        states = f"{_known_facts(self.seen).snapshots:,} recorded states"
        with timings.stage("compute", f"computing {self.config.assign.scenario}: {states}"):
            found = Enveloped.of(computed, files)
        with timings.stage("write", "writing the results"):
            try:
                by_table = digests(found.append(self.spark, self.location, r.RESULTS, attempt.attempt_id))
            finally:
                found.release()
        received, counts = _counted(found)
        seen = seen_input(rows, watch, received)
        counts_in = {name: seen[name] or 0 for name in r.KINDS} | {"topic_changes": len(topics.table)}
        outcomes = sum(counts.get(f"{OUTCOME}{name}", 0) for name in OUTCOMES)
        assert_conserved(counts_in, received, counts, outcomes)
        return attempts.Outcome(
            counts_in=counts_in,
            counts_out=counts | digest_counts(by_table),
            result_digest=result_digest(by_table),
            verdict=OVER_LIMIT if counts[QUARANTINE.name] > self.config.limits.max_quarantined else DONE,
            finished_at=invocation.now(),
            input_digest=digest([counts_in, [seen[name] or 0 for name in DIGESTS], topics.digest]),
        )

    def planned(
        self, inputs: Mapping[str, Any], watch: Observation, files: FilesOfAttempt | None = None
    ) -> tuple[DataFrame, DataFrame, TopicCatalogue]:
        """Return rows of `engine.bucket_rows.INPUT` with their hash, envelopes and topics; none is computed yet.

        With `since` in the inputs of the run: of groups that facts touch after it.
        """
        config, known, groups = self.config, _known_facts(self.seen), None
        # targets of KIP-848 groups are judged if groups run the assignor that they had
        judges = config.assign.assignor == RECORDED and config.assign.scenario != RECORDED
        past = Past(self.spark, self.location, self.seen.commits, ())
        since: int | None = inputs.get(SINCE, {}).get(attempts.FACTS_AS_OF)
        if since is None:
            tables = [GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, *([LOG_RECORDS] if judges and known.coordinated else [])]
            facts = Facts(*map(past.current, tables))
        else:
            facts, groups = touched_facts(past, since, judged=judges and known.coordinated)
        topics = catalogue(past.current(TOPIC_SNAPSHOTS), config.limits)
        buckets = config.buckets or _buckets(self.spark, config, known.snapshots if groups is None else groups)
        extent = Extent(buckets, known.most_members, known.shallow and since is None)
        rows = hashed(assign_input(facts, config.assign, config.limits, extent))
        calculation = Calculation(
            config.assign.scenario,
            Form(config.assign.mode),
            config.limits.max_partitions_per_group,
            tuple(self.custom.values()),
            config.assign.coordinator if judges else None,
            topics,
            config.assign.attribute and config.assign.scenario in JUDGED,
            config.assign.carried,
        )
        watched = rows.observe(watch, *input_metrics()).drop(HASH)
        return rows, apply(watched, buckets, calculation, files), topics


def computed_again(
    spark: SparkSession, location: LedgerLocation, config: Config, run: attempts.Run, seen: attempts.LedgerView
) -> DataFrame:
    """Compute again what a committed run did, from the facts it saw and by its own settings, as envelopes with rows."""
    facts = attempts.LedgerView(
        tuple(commit for commit in seen.commits if commit.sequence <= run.inputs[attempts.FACTS_AS_OF])
    )
    settings, limits = (run.inputs[SETTINGS][name] for name in ("assign", "limits"))
    overrides = tuple(OverrideSettings(**each) for each in settings["overrides"])
    chosen = AssignSettings(**settings | {"overrides": overrides})
    known = replace(config, assign=chosen, limits=LimitSettings(**limits))
    custom = find_all(known.assign.custom_assignors, known.limits.custom)
    _, computed, _ = _Work(spark, location, known, custom, facts).planned(run.inputs, Observation())
    return computed


def _buckets(spark: SparkSession, config: Config, snapshots: int) -> int:
    """Choose by the number of snapshots ever written; `latest` chooses few of a long history, so it has a bound."""
    tasks = parallelism(spark)
    bound = GROUPS_A_BUCKET * tasks * MOST_ROUNDS if config.assign.snapshots == LATEST else snapshots
    return bucket_count(min(snapshots, bound), tasks)


def _counted(found: Enveloped) -> tuple[dict[str, int], dict[str, int]]:
    """Return the rows by kind that reached the buckets, and what was counted of the results."""
    counts = Counter({table.name: found.rows[table.name] for table in r.RESULTS})
    received = Counter({f"{RECEIVED}{name}": 0 for name in r.KINDS})
    for _, name, number in found.counts:
        (received if name.startswith(RECEIVED) else counts)[name] += number
    return {name.removeprefix(RECEIVED): number for name, number in received.items()}, dict(counts)


def _summary(run: attempts.Run, config: Config, timings: Timings, *, already_committed: bool) -> AssignSummary:
    def under(prefix: str) -> dict[str, int]:
        return {name.removeprefix(prefix): n for name, n in run.counts_out.items() if name.startswith(prefix)}

    return AssignSummary(
        run_id=run.run_id,
        attempt_id=run.attempt_id,
        scenario=config.assign.scenario,
        already_committed=already_committed,
        verdict=run.verdict,
        groups_in=run.counts_in[GROUPS],
        outcomes=under(OUTCOME),
        verdicts=under(VERDICT),
        sums=under(SUM),
        rows={table.name: run.counts_out.get(table.name, 0) for table in r.RESULTS},
        quarantined=run.counts_out.get(QUARANTINE.name, 0),
        result_digest=run.result_digest,
        timings=timings.by_stage,
        since_run=run.inputs.get(SINCE, {}).get(c.RUN_ID),
    )
