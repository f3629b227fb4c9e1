"""The rows that the bucket UDF computes from: chosen snapshots, members of these and of those before; and the topics.

All of it is DataFrames over current facts; nothing runs here but the reading of the topics. A row's bucket follows from
its cluster and group alone, so that one shuffle brings a group together, and few facts need a join.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Row, Window
from pyspark.sql import functions as F
from pyspark.sql.types import StructField

from groupledger.config import AssignSettings, LimitSettings
from groupledger.core.log.read_plan import LogPlace, Range
from groupledger.core.wire.offsets_log import COORDINATOR_RECORDS
from groupledger.core.wire.user_data import INT32_BYTES, STRAY_PREFIX
from groupledger.engine import bucket_rows as r
from groupledger.engine.buckets import GIANT_MEMBERS, bucket_of, giant_bucket_of
from groupledger.engine.topic_catalogue import SINCE, TopicCatalogue
from groupledger.pipeline.past import GROUP, Past
from groupledger.sinks import attempts
from groupledger.sinks.current import refolded, took_snapshots
from groupledger.tables import GROUP_HEADS, GROUP_SNAPSHOTS, LOG_RECORDS, MEMBER_SNAPSHOTS, QUARANTINE, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

RECORDED = "recorded"
LATEST = "latest"

_PLACE = "place"
_GIANT = "giant"
_GROUP = [c.CLUSTER_ID, c.GROUP_ID]


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
        parts[r.RECORD_ROW] = records.join(fit, _GROUP, "left_semi") if some_unfit else records
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
    newest = Window.partitionBy(c.CLUSTER_ID, c.GROUP_ID).orderBy(
        F.desc(c.INCARNATION), F.desc(c.OFFSET), F.desc(c.SNAPSHOT_ID)
    )
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
    assignor may take something else from them than the client meant (`core.wire.user_data.taken`).
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
    giants = groups.where(F.col(c.MEMBERS) >= GIANT_MEMBERS).select(*_GROUP).distinct()
    marked = rows.join(F.broadcast(giants.withColumn(_GIANT, F.lit(True))), _GROUP, "left")
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
    of_scenario: Sequence[attempts.Commit], settings: str, code: str, seen: attempts.LedgerView
) -> attempts.Commit | None:
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


def _ingests(commits: Iterable[attempts.Commit], since: int) -> Iterator[attempts.Commit]:
    return (commit for commit in commits if commit.kind == attempts.INGEST and commit.sequence > since)


def _names(past: Past, new: Sequence[attempts.Commit], *, judged: bool) -> DataFrame:
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
