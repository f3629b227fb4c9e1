"""Assign: snapshots into rebalances. One assignor call a bucket of groups, one pass, all result tables.

summary = assign(spark, config, invocation)
summary.outcomes        # {"ASSIGNED": 7, "UNCHANGED": 2, "EMPTY": 1}
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from groupledger.config import AssignSettings, Config, LimitSettings, OverrideSettings
from groupledger.config.settings import JUDGED
from groupledger.core.custom.assignor_names import find_all, source_digests
from groupledger.core.custom.custom_group import CustomAssignor
from groupledger.core.digest import code_digest, digest, result_digest
from groupledger.core.log.read_plan import LogPlace, Range
from groupledger.core.rebalance.step import Form
from groupledger.core.wire.consumer_protocol import INT32_BYTES, STRAY_PREFIX
from groupledger.core.wire.offsets_log import COORDINATOR_RECORDS, RecordKind
from groupledger.engine import bucket_rows as r
from groupledger.engine.bucket_rows import SINCE, TopicCatalogue
from groupledger.engine.buckets import (
    GIANT_MEMBERS,
    GROUPS_A_BUCKET,
    apply,
    bucket_count,
    bucket_of,
    giant_bucket_of,
    parallelism,
)
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
from groupledger.pipeline.enveloped import Enveloped, files_of
from groupledger.pipeline.invocation import Invocation, Timings
from groupledger.pipeline.past import GROUP, Past, require_facts
from groupledger.sinks import attempts
from groupledger.sinks.append import digest_counts, digests
from groupledger.sinks.current import refolded, took_snapshots
from groupledger.sinks.ledger_tables import LedgerLocation, check, check_for_writing
from groupledger.sinks.location import engine_errors_as_faults
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

SETTINGS, SINCE_RUN = "settings", "since"
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
    results stand for the others (`pipeline.assign`). Where there are no such facts, the answer is that run, and
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
        committed = attempts.counted(seen, attempt)
        if committed is None and stands is not None and stands.facts_as_of == known.as_of:
            committed = stands
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
) -> tuple[attempts.Attempt, attempts.Run | None]:
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
        inputs[SINCE_RUN] = {attempts.FACTS_AS_OF: stands.facts_as_of, c.RUN_ID: stands.run_id}
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
            by_table = digests(found.append(self.spark, self.location, r.RESULTS, attempt.attempt_id))
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
        since: int | None = inputs.get(SINCE_RUN, {}).get(attempts.FACTS_AS_OF)
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
        since_run=run.inputs.get(SINCE_RUN, {}).get(c.RUN_ID),
    )


# The rows that the bucket UDF computes from: chosen snapshots, members of these and of those before; and the topics.
#
# All of it is DataFrames over current facts; nothing runs here but the reading of the topics. A row's bucket follows
# from its cluster and group alone, so that one shuffle brings a group together, and few facts need a join.

RECORDED = "recorded"
LATEST = "latest"

_PLACE = "place"
_GIANT = "giant"


@dataclass(frozen=True, slots=True)
class Facts:
    """Current rows of the fact tables."""

    groups: DataFrame
    members: DataFrame
    records: DataFrame | None = None  # of the log, where the targets of KIP-848 groups are to be judged


@dataclass(frozen=True, slots=True)
class Extent:
    """What is known of the facts before they are read: it decides which joins a run can do without.

    `most_members` of any group snapshot ever written; None: not known, so anything is possible. `shallow`: most groups
    have few snapshots, so that members of old ones are read along rather than sought out.
    """

    buckets: int
    most_members: int | None = None
    shallow: bool = False

    def may_have(self, members: int) -> bool:
        """Return whether a group of so many members may be among them."""
        return self.most_members is None or self.most_members >= members


def assign_input(facts: Facts, settings: AssignSettings, limits: LimitSettings, extent: Extent) -> DataFrame:
    """Return rows of `engine.bucket_rows.INPUT`."""
    groups = last_of_groups(facts.groups) if settings.snapshots == LATEST else facts.groups
    chosen = _with_faults(groups, limits).withColumn(r.CHOSEN, _assignor(settings))
    fit, some_unfit = chosen.where(F.col(r.FAULT_CODE).isNull()), extent.may_have(limits.max_members_per_group + 1)
    members = _members(facts.members, limits, settings)
    if some_unfit or (settings.snapshots == LATEST and not extent.shallow):
        wanted = F.explode(F.array(c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID)).alias(c.SNAPSHOT_ID)
        members = members.join(fit.select(wanted), c.SNAPSHOT_ID, "left_semi")
    parts = {r.GROUP_ROW: chosen, r.MEMBER_ROW: members}
    if facts.records is not None:
        records = _coordinated(facts.records, limits)
        parts[r.RECORD_ROW] = records.join(fit, GROUP, "left_semi") if some_unfit else records
    rows = [_rows(_in_bucket(part, facts.groups, extent), kind) for kind, part in parts.items()]
    return reduce(lambda one, other: one.unionByName(other), rows)


def catalogue(topics: DataFrame, limits: LimitSettings) -> TopicCatalogue:
    """Return the topics as they are and ever were; names over the limit are left out, so nothing is known of them."""
    named = topics.where(F.octet_length(c.TOPIC) <= limits.max_id_bytes)
    since = F.unix_micros(c.VALID_FROM).alias(SINCE)
    columns = (c.CLUSTER_ID, c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, since, c.RACKS)
    return TopicCatalogue(named.select(*columns).toArrow())


def last_of_groups(groups: DataFrame) -> DataFrame:
    """Return the last snapshot of each group: by incarnation, then position, never by clock."""
    newest = Window.partitionBy(*GROUP).orderBy(F.desc(c.INCARNATION), F.desc(c.OFFSET), F.desc(c.SNAPSHOT_ID))
    return groups.withColumn(_PLACE, F.row_number().over(newest)).where(F.col(_PLACE) == 1).drop(_PLACE)


def glob(pattern: str) -> str:
    r"""Convert a glob over group ids to an SQL LIKE pattern: `*` any text, `?` one character, all else itself."""
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")


def _assignor(settings: AssignSettings) -> Column:
    """Return the assignor to run on a group: null if none does, empty if the record names none."""
    if settings.scenario == RECORDED:
        return F.lit(None).cast("string")
    chosen = _named(settings.assignor)
    for override in reversed(settings.overrides):
        chosen = F.when(F.col(c.GROUP_ID).like(glob(override.groups)), _named(override.assignor)).otherwise(chosen)
    consumers = (F.col(c.GROUP_TYPE) == "classic") & (F.col(c.PROTOCOL_TYPE) == "consumer")
    return F.when(consumers, chosen)


def _named(assignor: str) -> Column:
    return F.coalesce(F.col(c.ASSIGNOR), F.lit("")) if assignor == RECORDED else F.lit(assignor)


def _with_faults(chosen: DataFrame, limits: LimitSettings) -> DataFrame:
    """Reject groups over a limit; their members never enter the shuffle, and long ids are cut."""
    long_id = F.octet_length(c.GROUP_ID) > limits.max_id_bytes
    crowded = F.col(c.MEMBERS) > limits.max_members_per_group
    id_words = F.format_string(
        f"group id has %d bytes; expected at most {limits.max_id_bytes} (limits.max_id_bytes)",
        F.octet_length(c.GROUP_ID),
    )
    crowd_words = F.format_string(
        f"group has %d members; expected at most {limits.max_members_per_group} (limits.max_members_per_group)",
        F.col(c.MEMBERS),
    )
    return chosen.withColumns(
        {
            r.FAULT_CODE: F.when(long_id, "ID_OVER_LIMIT").when(crowded, "MEMBERS_OVER_LIMIT"),
            r.FAULT_MESSAGE: F.when(long_id, id_words).when(crowded, crowd_words),
            c.GENERATION: F.coalesce(c.GENERATION, c.GROUP_EPOCH),
        }
    )


def _members(members: DataFrame, limits: LimitSettings, settings: AssignSettings) -> DataFrame:
    """Make a member id over the limit null; the members of a group whose id is over it stay out of the shuffle.

    Where no assignor runs no record is attributed; then of user data the beginning enters it, and only where Kafka's
    assignor may take something else from them than the client meant (`core.wire.consumer_protocol.taken`).
    """
    within = F.octet_length(c.MEMBER_ID) <= limits.max_id_bytes
    rows = members.where(F.octet_length(c.GROUP_ID) <= limits.max_id_bytes)
    rows = rows.withColumn(c.MEMBER_ID, F.when(within, F.col(c.MEMBER_ID)))
    if settings.scenario != RECORDED:
        return rows
    undated = F.coalesce(F.col(c.SUBSCRIPTION_GENERATION), F.lit(-1)) < 0
    prefixed = F.substring(c.USER_DATA, 1, len(STRAY_PREFIX)) == F.lit(STRAY_PREFIX)
    return rows.withColumn(c.USER_DATA, F.when(undated | prefixed, F.substring(c.USER_DATA, 1, INT32_BYTES)))


def coordinated(records: DataFrame) -> DataFrame:
    """Return the log records by which the targets of KIP-848 groups are judged."""
    return records.where(F.hex(F.substring(c.KEY, 1, 2)).isin(*(f"{each:04X}" for each in COORDINATOR_RECORDS)))


def _coordinated(records: DataFrame, limits: LimitSettings) -> DataFrame:
    rows = coordinated(records).where(F.octet_length(c.GROUP_ID) <= limits.max_id_bytes)
    return rows.withColumn(c.TIMESTAMP, F.unix_millis(c.TIMESTAMP))


def _in_bucket(rows: DataFrame, groups: DataFrame, extent: Extent) -> DataFrame:
    """Add the bucket; a group that ever was a giant has one of its own."""
    if not extent.may_have(GIANT_MEMBERS):
        return rows.withColumn(r.BUCKET, bucket_of(extent.buckets))
    giants = groups.where(F.col(c.MEMBERS) >= GIANT_MEMBERS).select(*GROUP).distinct()
    marked = rows.join(F.broadcast(giants.withColumn(_GIANT, F.lit(True))), GROUP, "left")
    own = F.when(F.col(_GIANT).isNotNull(), giant_bucket_of(extent.buckets))
    return marked.withColumn(r.BUCKET, F.coalesce(own, bucket_of(extent.buckets)))


def _rows(frame: DataFrame, kind: int) -> DataFrame:
    """Select one kind of rows in the schema of all: columns of other kinds are null, and every list is there."""
    own = {r.BUCKET, *r.FIELDS[kind]}

    def value(field: StructField) -> Column:
        if field.name == r.ROW_KIND:
            return F.lit(kind).cast(field.dataType)
        if field.name == r.ABSENT:
            return _absent(own).cast(field.dataType)
        if field.name == r.MOMENT and kind == r.GROUP_ROW:
            return F.unix_micros(c.OBSERVED_AT)
        if field.name in r.LISTS:
            empty = F.array().cast(field.dataType.simpleString())
            return F.coalesce(field.name, empty) if field.name in own else empty
        return F.col(field.name) if field.name in own else F.lit(None).cast(field.dataType)

    return frame.select(*(value(field).alias(field.name) for field in r.INPUT))


def _absent(own: set[str]) -> Column:
    """Set a bit for each of a row's own lists that is null."""
    bits = [F.when(F.col(name).isNull(), 1 << at).otherwise(0) for at, name in enumerate(r.LISTS) if name in own]
    return reduce(lambda one, other: one.bitwiseOR(other), bits, F.lit(0))


# Which groups an `assign` of the last snapshots has to compute: those that newer facts touch.
#
#     stands = standing(of_scenario, settings, code, seen)    # the run whose results stand for all other groups
#     given = touched_facts(past, stands.facts_as_of, judged=False)
#
# All that the result of a group's last snapshot follows from is said of that group (its snapshots, their members, the
# records of a KIP-848 group), of topics, or in the configuration. What an ingest says of a group stands under its
# attempt: the group's snapshots, the mark in its head that it was folded again, its records. Where topics changed, any
# group may have another result.

MOST_SOUGHT = 10_000
"""Touched groups up to which the driver looks for the files that have their last states; beyond, all are read."""

_NAMES = f"{c.CLUSTER_ID} string, {c.GROUP_ID} string"
_IDS = f"{c.SNAPSHOT_ID} string"
_STATE = [*GROUP, c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID, c.ATTEMPT_ID]


class TouchedFacts(NamedTuple):
    """What is known of the touched groups. `groups`: how many there are; None: more than MOST_SOUGHT."""

    facts: Facts
    groups: int | None


def standing(
    of_scenario: Sequence[attempts.Run], settings: str, code: str, seen: attempts.LedgerView
) -> attempts.Run | None:
    """Return the run whose results remain valid if no newer fact touches them; None: compute every group.

    It is the last one `of_scenario`, if that computed by the same settings and code (their digests), and if there are
    no newer facts, or since then no topic changed, nothing was redacted, and no rejection of a group was removed by
    retention.
    """
    last = of_scenario[-1] if of_scenario else None
    if last is None or last.facts_as_of is None or (last.config_digest, last.code_digest) != (settings, code):
        return None
    newer = list(_ingests(seen.commits, last.facts_as_of))
    rejecting = {commit.attempt_id for commit in of_scenario if commit.counts_out.get(QUARANTINE.name)}
    changed = any(commit.counts_out.get(TOPIC_SNAPSHOTS.name) for commit in newer) or any(
        attempts.REDACTION in commit.guards or rejecting.intersection(commit.removed.get(QUARANTINE.name, ()))
        for commit in seen.commits
        if commit.sequence > last.sequence
    )
    return None if newer and changed else last


def touched_facts(past: Past, since: int, *, judged: bool) -> TouchedFacts:
    """Return the facts that the last results of touched groups follow from: at least these, and of no other group.

    `since` is the last commit whose facts the standing results know. `judged`: the records of KIP-848 groups are facts,
    too.
    """
    new = list(_ingests(past.commits, since))
    names = _names(past, new, judged=judged)
    if took_snapshots(past.commits):  # in which order snapshots of users' own tables come is known of all of them only
        return TouchedFacts(_of(past, names, judged=judged), None)
    snapshots = past.current(GROUP_SNAPSHOTS, [commit.attempt_id for commit in new])
    last = names.join(last_of_groups(snapshots).select(*_STATE), GROUP, "left")
    states = last.limit(MOST_SOUGHT + 1).collect()
    if len(states) > MOST_SOUGHT:
        return TouchedFacts(_of(past, names, judged=judged), None)
    return TouchedFacts(_sought(past, states, judged=judged), len(states))


def _ingests(commits: Iterable[attempts.Run], since: int) -> Iterator[attempts.Run]:
    return (commit for commit in commits if commit.kind == attempts.INGEST and commit.sequence > since)


def _names(past: Past, new: Sequence[attempts.Run], *, judged: bool) -> DataFrame:
    """Return the groups with facts of these commits that a result may follow from."""
    attempts = [commit.attempt_id for commit in new]
    named = [past.rows(GROUP_SNAPSHOTS, *attempts)]
    again = [commit.attempt_id for commit in new if refolded(commit)]
    if again:  # the last snapshot of such a group may be gone, and an older one the last
        named.append(past.rows(GROUP_HEADS, *again).where(c.REFOLDED))
    if judged:
        named.append(coordinated(past.rows(LOG_RECORDS, *attempts)).where(F.col(c.GROUP_ID).isNotNull()))
    return reduce(lambda one, other: one.unionAll(other), (rows.select(*GROUP) for rows in named)).distinct()


def _of(past: Past, names: DataFrame, *, judged: bool) -> Facts:
    """Read all facts of these groups."""
    tables = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, *((LOG_RECORDS,) if judged else ()))
    return Facts(*(past.current(table).join(names, GROUP, "left_semi") for table in tables))


def _sought(past: Past, states: Sequence[Row], *, judged: bool) -> Facts:
    """Read the last snapshot of each group, the members of the attempts that wrote it or the one before, and records.

    `states`: a row of _STATE for each group; without a snapshot where the new attempts have none of it.
    """
    names = _local(past, [row[:2] for row in states], _NAMES)
    found = [row for row in states if row[c.SNAPSHOT_ID] is not None]
    if len(found) < len(states):
        others = _local(past, [row[:2] for row in states if row[c.SNAPSHOT_ID] is None], _NAMES)
        older = past.current(GROUP_SNAPSHOTS).join(others, GROUP, "left_semi")
        found += last_of_groups(older).select(*_STATE).collect()
    attempts = {row[c.ATTEMPT_ID] for row in found}
    before = {row[c.PREVIOUS_SNAPSHOT_ID]: row[c.CLUSTER_ID] for row in found if row[c.PREVIOUS_SNAPSHOT_ID]}
    chosen = _local(past, [(row[c.SNAPSHOT_ID],) for row in found], _IDS)
    return Facts(
        past.current(GROUP_SNAPSHOTS, attempts).join(chosen, c.SNAPSHOT_ID, "left_semi"),
        past.current(MEMBER_SNAPSHOTS, attempts | _writers(past, before)),
        past.current(LOG_RECORDS).join(names, GROUP, "left_semi") if judged else None,
    )


def _writers(past: Past, snapshots: dict[str, str]) -> set[str]:
    """Return the attempts that wrote these snapshots, each with its cluster.

    A snapshot stands at the offset of a record, so most are of the attempt that read it, or of one that folded groups
    again. If another wrote it (the epoch of a KIP-848 group that the end of a read cut), all are looked through.
    """
    if not snapshots:
        return set()
    wanted = _local(past, [(snapshot,) for snapshot in snapshots], _IDS)

    def writers(attempts: set[str] | None) -> dict[str, str]:
        rows = past.current(GROUP_SNAPSHOTS, attempts).join(wanted, c.SNAPSHOT_ID, "left_semi")
        return dict(map(tuple, rows.select(c.SNAPSHOT_ID, c.ATTEMPT_ID).collect()))

    readers, refolds = _readers(past, snapshots), {each.attempt_id for each in past.commits if refolded(each)}
    found = {} if readers is None else writers(readers | refolds)
    if len(found) < len(snapshots):
        found = writers(None)
    return set(found.values())


def _readers(past: Past, snapshots: dict[str, str]) -> set[str] | None:
    """Return the attempts that read the records of these snapshots; None: one does not say what it read."""
    reads = past.reads()
    if reads is None:
        return None
    offsets: defaultdict[LogPlace, list[int]] = defaultdict(list)
    for snapshot, cluster_id in snapshots.items():
        _, partition, offset = snapshot.rsplit("/", 2)
        offsets[cluster_id, int(partition)].append(int(offset))
    for found in offsets.values():
        found.sort()

    def holds_one(place: LogPlace, extent: Range) -> bool:
        at = bisect_left(offsets[place], extent[0])
        return at < len(offsets[place]) and offsets[place][at] <= extent[1]

    return {attempt for attempt, ranges in reads.items() if any(holds_one(*each) for each in ranges.items())}


def _local(past: Past, rows: list[tuple[str, ...]], schema: str) -> DataFrame:
    """Make a frame of a few rows of the driver, for a join."""
    return F.broadcast(past.spark.createDataFrame(rows, schema))
