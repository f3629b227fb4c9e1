"""Assign: snapshots into rebalances. One assignor call a bucket of groups, one pass, all result tables.

summary = assign(spark, config, invocation)
summary.outcomes        # {"ASSIGNED": 7, "UNCHANGED": 2, "EMPTY": 1}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import Observation
from pyspark.sql import functions as F

from groupledger import __version__
from groupledger.config import AssignSettings, LimitSettings, OverrideSettings
from groupledger.core.custom.naming import CustomAssignor, find_all, source_digests
from groupledger.core.digest import code_digest, digest, result_digest
from groupledger.core.step import Form
from groupledger.core.verdict import Verdict
from groupledger.core.wire.offsets_log import RecordKind
from groupledger.engine import rows as r
from groupledger.engine.buckets import GROUPS_A_BUCKET, apply, bucket_count, parallelism
from groupledger.engine.calculation import Calculation
from groupledger.pipeline import conservation
from groupledger.pipeline.assign_input import LATEST, RECORDED, Extent, Facts, assign_input, catalogue
from groupledger.pipeline.invocation import Timings
from groupledger.sinks import runs
from groupledger.sinks.append import append, digest_counts, digests
from groupledger.sinks.current import current
from groupledger.sinks.ledger import LedgerLocation, check
from groupledger.sinks.refusals import engine_errors_as_faults
from groupledger.tables import (
    ASSIGNMENTS,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    QUARANTINE,
    REBALANCES,
    TOPIC_SNAPSHOTS,
    VIOLATIONS,
)
from groupledger.tables import columns as c
from groupledger.tables.declaration import TOPIC_ID_PARTITIONS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.config import Config
    from groupledger.engine.topic_catalogue import TopicCatalogue
    from groupledger.pipeline.invocation import Invocation

KIND = "assign"
DONE, OVER_LIMIT = "done", "quarantine-over-limit"
OUTCOMES = ("ASSIGNED", "UNCHANGED", "EMPTY", "REJECTED", "NOT_RECOMPUTED")
SUMS = (c.MOVES, c.LEAST_MOVES, c.UNASSIGNED, c.ADDED, c.REVOKED, c.LOST)
TARGETS = RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA.value
SHALLOW = 3
"""Snapshots a group, on average over as many groups as one ingest saw, up to which none of them is sought out."""
MOST_ROUNDS = 64
"""Buckets a task slot gets at most under `latest`: empty ones cost little, crowded ones memory."""

SETTINGS = "settings"
"""In the inputs of a run: the configuration that its results follow from."""

_GROUPS = conservation.GROUPS
_DIGESTS = ("digest_1", "digest_2")
_HASH = "row_hash"


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


def assign(spark: SparkSession, config: Config, invocation: Invocation) -> AssignSummary:
    """Compute the configured scenario over the configured snapshots, and commit it as one run.

    Without a run id the run is named after what it computes: the same facts, configuration and code are the same run,
    which changes nothing when it is repeated, unless another configuration's results stand under the scenario by now.
    Raises LedgerFault where there is no ledger, WriteConflict where others keep committing in between.
    """
    location = LedgerLocation.of(config.ledger)
    with engine_errors_as_faults(location):
        return _assign(spark, location, config, invocation)


def _assign(spark: SparkSession, location: LedgerLocation, config: Config, invocation: Invocation) -> AssignSummary:
    timings = Timings(invocation.seconds)
    with timings.stage("look"):
        check(spark, location)
        seen = runs.read_commits(spark, location)
        seen.require_no_redaction()
        known = _known_facts(seen)
        custom = _custom(config)
        attempt = _attempt(config, invocation, known, custom, seen)
        committed = runs.counted(spark, location, seen, attempt)
        if committed is not None:
            return _summary(committed, config, timings, already_committed=True)
    buckets = config.buckets or _buckets(spark, config, known.snapshots)
    with timings.stage("plan"):
        runs.plan(spark, location, attempt)
    work = _Work(attempt, invocation, buckets, timings, seen, custom)
    outcome = _compute(spark, location, config, work)
    with timings.stage("commit"):
        run = runs.commit(spark, location, attempt, seen.sequence, outcome)
    return _summary(run, config, timings, already_committed=run.attempt_id != attempt.attempt_id)


def _attempt(
    config: Config, invocation: Invocation, known: _Known, custom: Mapping[str, CustomAssignor], seen: runs.LedgerView
) -> runs.Attempt:
    what = {"assign": asdict(config.assign), "limits": asdict(config.limits)}
    code = code_digest(files("groupledger"), __version__)
    if custom:
        code = digest([code, source_digests(custom)])
    inputs: dict[str, Any] = {"facts_as_of": known.as_of, "snapshots": config.assign.snapshots}
    settings = digest(what)
    guard = f"{KIND}/{config.assign.scenario}"  # results of older facts never supersede those of newer ones
    superseded = _superseded(seen, guard, settings)
    if superseded:  # back to an earlier configuration: its results count again only if they are committed again
        inputs["supersedes"] = superseded
    run_id = invocation.run_id or f"assign-{digest([inputs, what, code])[:32]}"
    return runs.Attempt(
        run_id,
        invocation.attempt_id,
        KIND,
        inputs | {SETTINGS: what},
        settings,
        code,
        invocation.now(),
        guards=(guard,),
    )


def _superseded(seen: runs.LedgerView, guard: str, settings: str) -> int:
    """The last commit of the scenario under another configuration; 0 where there is none."""
    others = (each for each in reversed(seen.commits) if each.kind == KIND and guard in each.guards)
    return next((each.sequence for each in others if each.config_digest != settings), 0)


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


def _known_facts(seen: runs.LedgerView) -> _Known:
    ingests = [commit for commit in seen.commits if commit.kind == runs.INGEST]
    groups = [commit.counts_out for commit in ingests if commit.counts_out.get(GROUP_SNAPSHOTS.name)]
    snapshots = sum(counts[GROUP_SNAPSHOTS.name] for counts in groups)
    told = [counts[runs.MOST_MEMBERS] for counts in groups if runs.MOST_MEMBERS in counts]
    return _Known(
        as_of=max((commit.sequence for commit in ingests), default=0),
        snapshots=snapshots,
        coordinated=any(name.endswith(f".{TARGETS}") for commit in ingests for name in commit.counts_in),
        most_members=max(told, default=0) if len(told) == len(groups) else None,
        shallow=snapshots <= SHALLOW * max((counts.get(GROUP_HEADS.name, 0) for counts in groups), default=0),
    )


def _judges_coordinators(config: Config) -> bool:
    """Targets of KIP-848 groups are judged where groups run the assignor they had."""
    return config.assign.assignor == RECORDED and config.assign.scenario != RECORDED


class _Work(NamedTuple):
    """What is about to be computed, and how it is watched."""

    attempt: runs.Attempt
    invocation: Invocation
    buckets: int
    timings: Timings
    seen: runs.LedgerView
    custom: Mapping[str, CustomAssignor]


class _Planned(NamedTuple):
    """What is about to be computed: `rows` of `engine.rows.INPUT` with their hash, rows of `OUTPUT`, the topics."""

    rows: DataFrame
    computed: DataFrame
    topics: TopicCatalogue


def _compute(spark: SparkSession, location: LedgerLocation, config: Config, work: _Work) -> runs.Outcome:
    """Read, compute and append; nothing counts yet."""
    with work.timings.stage("read"):
        watch = Observation()
        planned = _planned(spark, location, config, work.custom, work.buckets, work.seen, watch)
        computed = planned.computed.persist()
    try:
        files = min(work.buckets, parallelism(spark))
        received, counts, by_table = _write(location, computed, work.attempt.attempt_id, work.timings, files)
    finally:
        computed.unpersist()
    seen = _seen(planned.rows, watch, received)
    counts_in = {name: seen[name] or 0 for name in r.KINDS} | {"topic_changes": len(planned.topics.table)}
    outcomes = sum(counts.get(f"outcome.{name}", 0) for name in OUTCOMES)
    conservation.assert_conserved(counts_in, received, counts, outcomes)
    return runs.Outcome(
        counts_in=counts_in,
        counts_out=counts | digest_counts(by_table),
        result_digest=result_digest(by_table),
        verdict=OVER_LIMIT if counts[QUARANTINE.name] > config.limits.max_quarantined else DONE,
        finished_at=work.invocation.now(),
        input_digest=digest([counts_in, [seen[name] or 0 for name in _DIGESTS], planned.topics.digest]),
    )


def _custom(config: Config) -> dict[str, CustomAssignor]:
    """The configured assignors that are not ours."""
    return find_all(config.assign.custom_assignors, config.limits.custom)


def _planned(
    spark: SparkSession,
    location: LedgerLocation,
    config: Config,
    custom: Mapping[str, CustomAssignor],
    buckets: int,
    seen: runs.LedgerView,
    watch: Observation,
) -> _Planned:
    """What the facts that count as of `seen` give; nothing is computed yet."""
    known, judges = _known_facts(seen), _judges_coordinators(config)
    tables = [GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, *([LOG_RECORDS] if judges and known.coordinated else [])]
    facts = Facts(*(current(spark, location, each, seen.commits) for each in tables))
    topics = catalogue(current(spark, location, TOPIC_SNAPSHOTS, seen.commits), config.limits)
    extent = Extent(buckets, known.most_members, known.shallow)
    rows = hashed(assign_input(facts, config.assign, config.limits, extent))
    calculation = Calculation(
        config.assign.scenario,
        Form(config.assign.mode),
        config.limits.max_partitions_per_group,
        tuple(custom.values()),
        config.assign.coordinator if judges else None,
        topics,
        config.assign.carried,
    )
    watched = rows.observe(watch, *_input_metrics()).drop(_HASH)
    return _Planned(rows, apply(watched, buckets, calculation), topics)


def computed_again(
    spark: SparkSession, location: LedgerLocation, config: Config, run: runs.Run, seen: runs.LedgerView
) -> DataFrame:
    """What a committed run computed, from the facts it saw and its own settings: rows of `engine.rows.OUTPUT`."""
    facts = runs.LedgerView(tuple(commit for commit in seen.commits if commit.sequence <= run.inputs["facts_as_of"]))
    known = settings_of(run.inputs[SETTINGS], config)
    buckets = known.buckets or _buckets(spark, known, _known_facts(facts).snapshots)
    return _planned(spark, location, known, _custom(known), buckets, facts, Observation()).computed


def settings_of(inputs: Mapping[str, Any], config: Config) -> Config:
    """The configuration with what a run says of its own in place of what is configured now."""
    settings = inputs["assign"]
    overrides = tuple(OverrideSettings(**each) for each in settings["overrides"])
    return replace(
        config, assign=AssignSettings(**settings | {"overrides": overrides}), limits=LimitSettings(**inputs["limits"])
    )


def _buckets(spark: SparkSession, config: Config, snapshots: int) -> int:
    """From the number of snapshots ever written; of a long history `latest` chooses few, so its buckets are bounded."""
    tasks = parallelism(spark)
    bound = GROUPS_A_BUCKET * tasks * MOST_ROUNDS if config.assign.snapshots == LATEST else snapshots
    return bucket_count(min(snapshots, bound), tasks)


def hashed(rows: DataFrame) -> DataFrame:
    """Rows of `engine.rows.INPUT` with a hash of each (`row_hash`): its bucket apart, of all that it says."""
    return rows.select("*", F.xxhash64(*_input_terms()).alias(_HASH))


def _input_metrics() -> list[Column]:
    """Rows by kind, and an order-free digest of all of them."""
    halves = {_DIGESTS[0]: F.col(_HASH).bitwiseAND(F.lit(0xFFFFFFFF)), _DIGESTS[1]: F.shiftright(_HASH, 32)}
    kinds = [F.count_if(F.col(r.ROW_KIND) == kind).alias(name) for kind, name in enumerate(r.KINDS)]
    return kinds + [F.sum(half).alias(name) for name, half in halves.items()]


def _seen(rows: DataFrame, watch: Observation, received: Mapping[str, int]) -> Mapping[str, int | None]:
    """The metrics of the input, observed on its way into the shuffle; where they are not those of the rows that came
    out of it, counted anew: Spark adds to an observation once more what a task sees that it has to run once more."""
    seen: dict[str, int | None] = watch.get
    if all((seen[name] or 0) == number for name, number in received.items()):
        return seen
    return rows.agg(*_input_metrics()).collect()[0].asDict()


def _input_terms() -> Iterator[Column]:
    """A row as hash input. The hash passes over nulls, so a number says where each column begins, and a list of entries
    is followed by its topic ids, a dash for each that is null (joined as text: Spark would interpret a `transform`).
    """
    for position, field in enumerate(r.INPUT):
        if field.name == r.BUCKET:
            continue
        yield F.lit(position)
        yield F.col(field.name)
        if field.dataType == TOPIC_ID_PARTITIONS:
            yield F.expr(f"array_join({field.name}.{c.TOPIC_ID}, ' ', '-')")


def _write(
    location: LedgerLocation, computed: DataFrame, attempt_id: str, timings: Timings, files: int
) -> tuple[dict[str, int], dict[str, int], dict[str, str]]:
    """Append each table's rows; the first append computes them all, and says which tables have any.

    Gives the rows by kind that reached the buckets, what was counted of the results, and a digest by table.
    """
    watch = Observation()
    written = {table.name: F.count(table.name) for table in r.RESULTS}
    reached = {name: F.sum(F.col(r.RECEIVED)[kind]) for kind, name in enumerate(r.KINDS)}
    observed = computed.observe(watch, *(each.alias(name) for name, each in (written | reached).items()))
    with timings.stage("compute"):
        first = append(location, REBALANCES, r.rows_of(observed, REBALANCES), attempt_id, _result_metrics(), files)
    seen = watch.get
    counts = {name: seen[name] or 0 for name in written}
    counts |= {name: value or 0 for name, value in first.metrics.items() if value}
    with timings.stage("write"):
        others = [table for table in (ASSIGNMENTS, VIOLATIONS, QUARANTINE) if counts[table.name]]
        appended = [append(location, table, r.rows_of(computed, table), attempt_id, files=files) for table in others]
    return {name: seen[name] or 0 for name in reached}, counts, digests((first, *appended))


def _result_metrics() -> dict[str, Column]:
    outcomes = {f"outcome.{name}": F.count_if(F.col(c.OUTCOME) == name) for name in OUTCOMES}
    verdicts = {f"verdict.{each.text}": F.count_if(F.col(c.VERDICT) == each.text) for each in Verdict}
    return outcomes | verdicts | {f"sum.{name}": F.sum(name) for name in SUMS} | conservation.metrics()


def _summary(run: runs.Run, config: Config, timings: Timings, *, already_committed: bool) -> AssignSummary:
    def under(prefix: str) -> dict[str, int]:
        return {name.removeprefix(prefix): n for name, n in run.counts_out.items() if name.startswith(prefix)}

    return AssignSummary(
        run_id=run.run_id,
        attempt_id=run.attempt_id,
        scenario=config.assign.scenario,
        already_committed=already_committed,
        verdict=run.verdict,
        groups_in=run.counts_in[_GROUPS],
        outcomes=under("outcome."),
        verdicts=under("verdict."),
        sums=under("sum."),
        rows={table.name: run.counts_out.get(table.name, 0) for table in r.RESULTS},
        quarantined=run.counts_out.get(QUARANTINE.name, 0),
        result_digest=run.result_digest,
        timings=timings.by_stage,
    )
