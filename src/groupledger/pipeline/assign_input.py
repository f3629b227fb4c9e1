"""The rows that the bucket UDF computes from: chosen snapshots, members of these and of those before, topics.

All of it is DataFrames over current facts; nothing runs here. A group's rows carry its bucket through every join, so
that one shuffle brings them together.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as F

from groupledger.core.wire.offsets_log import COORDINATOR_RECORDS
from groupledger.engine import rows as r
from groupledger.engine.buckets import bucket_of
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

    from groupledger.config import AssignSettings, LimitSettings

RECORDED = "recorded"
LATEST = "latest"

_TOPICS_BEFORE = "topics_before"
_UNTIL = "until"
_SINCE = "since"
_PLACE = "place"
_SNAPSHOT, _VERSION = "snapshot", "version"
_GROUP = [c.CLUSTER_ID, c.GROUP_ID]
_LOG = [*_GROUP, c.LOG_PARTITION]
_BEGINNING, _END = -(2**62), 2**62


@dataclass(frozen=True, slots=True)
class Facts:
    """Current rows of the fact tables."""

    groups: DataFrame
    members: DataFrame
    topics: DataFrame
    records: DataFrame | None = None  # of the log, where the targets of KIP-848 groups are to be judged


def assign_input(facts: Facts, settings: AssignSettings, limits: LimitSettings, buckets: int) -> DataFrame:
    """Rows of `engine.rows.INPUT`."""
    chosen = _with_faults(chosen_snapshots(facts.groups, settings), limits)
    chosen = chosen.withColumn(r.BUCKET, bucket_of(buckets)).withColumn(r.CHOSEN, _assignor(settings))
    fit = chosen.where(F.col(r.FAULT_CODE).isNull())
    parts = [
        _rows(chosen, r.GROUP_ROW),
        _rows(_members(facts, fit, limits, settings), r.MEMBER_ROW),
        _rows(_topics(facts, fit, limits), r.TOPIC_ROW),
    ]
    if facts.records is not None:
        parts += _coordinated(facts.topics, facts.records, fit, limits)
    return reduce(lambda one, other: one.unionByName(other), parts)


def chosen_snapshots(groups: DataFrame, settings: AssignSettings) -> DataFrame:
    """Every snapshot, or the last of each group: by incarnation, then position, never by clock."""
    if settings.snapshots != LATEST:
        return groups
    newest = Window.partitionBy(c.CLUSTER_ID, c.GROUP_ID).orderBy(
        F.desc(c.INCARNATION), F.desc(c.OFFSET), F.desc(c.SNAPSHOT_ID)
    )
    return groups.withColumn(_PLACE, F.row_number().over(newest)).where(F.col(_PLACE) == 1).drop(_PLACE)


def glob(pattern: str) -> str:
    r"""A glob over group ids as an SQL LIKE pattern: `*` any text, `?` one character, all else itself."""
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")


def _assignor(settings: AssignSettings) -> Column:
    """The assignor to run on a group: null where none does, empty where the record names none."""
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
    """Groups over a limit are rejected here; their members never enter the shuffle, and long ids are cut."""
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


def _members(facts: Facts, fit: DataFrame, limits: LimitSettings, settings: AssignSettings) -> DataFrame:
    """Members of the chosen snapshots and of those before them, once a bucket. An id over the limit becomes null.

    User data enters the shuffle for custom assignors alone.
    """
    before = fit.where(F.col(c.PREVIOUS_SNAPSHOT_ID).isNotNull())
    wanted = fit.select(c.SNAPSHOT_ID, r.BUCKET).union(
        before.select(F.col(c.PREVIOUS_SNAPSHOT_ID).alias(c.SNAPSHOT_ID), r.BUCKET)
    )
    rows = facts.members.join(wanted.distinct(), c.SNAPSHOT_ID)
    within = F.octet_length(c.MEMBER_ID) <= limits.max_id_bytes
    rows = rows.withColumn(c.MEMBER_ID, F.when(within, F.col(c.MEMBER_ID)))
    undated = F.when(F.col(c.SUBSCRIPTION_GENERATION).isNull(), F.substring(c.USER_DATA, 1, r.INT32_BYTES))
    return rows if settings.custom_assignors else rows.withColumn(c.USER_DATA, undated)


def _topics(facts: Facts, fit: DataFrame, limits: LimitSettings) -> DataFrame:
    """Of each topic that a chosen snapshot or the one before subscribes to: what listings say around its time."""
    topics = F.coalesce(F.col(c.SHARED_TOPICS), F.col(c.SUBSCRIBED_TOPICS), F.array().cast("array<string>"))
    earlier = facts.groups.select(F.col(c.SNAPSHOT_ID).alias(c.PREVIOUS_SNAPSHOT_ID), topics.alias(_TOPICS_BEFORE))
    named = F.array_union(topics, F.coalesce(F.col(_TOPICS_BEFORE), F.array().cast("array<string>")))
    snapshots = fit.join(earlier, c.PREVIOUS_SNAPSHOT_ID, "left").select(
        r.BUCKET,
        c.SNAPSHOT_ID,
        c.CLUSTER_ID,
        c.GROUP_ID,
        F.unix_micros(c.OBSERVED_AT).alias(c.OBSERVED_AT),
        F.explode(named).alias(c.TOPIC),
    )
    snapshots = snapshots.where(F.octet_length(c.TOPIC) <= limits.max_id_bytes).alias(_SNAPSHOT)
    versions = topic_versions(facts.topics).alias(_VERSION)
    same = [F.col(f"{_SNAPSHOT}.{name}") == F.col(f"{_VERSION}.{name}") for name in (c.CLUSTER_ID, c.TOPIC)]
    at = F.col(c.OBSERVED_AT)
    then = (at >= F.col(_SINCE)) & (at < F.col(_UNTIL))
    keys = [F.col(f"{_SNAPSHOT}.{name}") for name in (r.BUCKET, c.SNAPSHOT_ID, c.CLUSTER_ID, c.GROUP_ID, c.TOPIC)]
    values = [F.col(f"{_VERSION}.{field.name}") for field in r.TOPIC_FIELDS if field.name != c.TOPIC]
    return snapshots.join(versions, reduce(and_, [*same, then])).select(*keys, *values)


def _coordinated(topics: DataFrame, records: DataFrame, fit: DataFrame, limits: LimitSettings) -> list[DataFrame]:
    """What the targets of KIP-848 groups are judged by: the groups' log records, the changes of their topics."""
    modern = fit.where(F.col(c.GROUP_TYPE) == "consumer")
    logs = modern.select(r.BUCKET, *_LOG).distinct()
    written = F.hex(F.substring(c.KEY, 1, 2)).isin(*(f"{each:04X}" for each in COORDINATOR_RECORDS))
    own = records.where(written).join(logs, _LOG).withColumn(c.TIMESTAMP, F.unix_millis(c.TIMESTAMP))
    named = F.explode(F.coalesce(c.SHARED_TOPICS, c.SUBSCRIBED_TOPICS)).alias(c.TOPIC)
    subscribed = modern.select(r.BUCKET, *_GROUP, named).distinct()
    subscribed = subscribed.where(F.octet_length(c.TOPIC) <= limits.max_id_bytes)
    changes = topics.select(
        c.CLUSTER_ID,
        c.TOPIC,
        c.TOPIC_ID,
        F.col(c.PARTITION_COUNT).alias(r.COUNT_NOW),
        F.unix_micros(c.VALID_FROM).alias(r.CHANGED),
    )
    listed = subscribed.join(changes, [c.CLUSTER_ID, c.TOPIC])
    return [_rows(own, r.RECORD_ROW), _rows(listed, r.CHANGE_ROW)]


def topic_versions(topics: DataFrame) -> DataFrame:
    """The stretches of each topic name's life with what was before and after, and the time before it was listed.

    At one moment a deletion comes before a creation: a topic made again within one listing.
    """
    order = Window.partitionBy(c.CLUSTER_ID, c.TOPIC).orderBy(c.VALID_FROM, F.col(c.PARTITION_COUNT).isNotNull())
    since = F.unix_micros(c.VALID_FROM)
    listed = topics.withColumns(
        {
            r.LISTED: F.lit(True),
            _SINCE: since,
            _UNTIL: F.coalesce(F.lead(since).over(order), F.lit(_END)),
            r.COUNT_NOW: F.col(c.PARTITION_COUNT),
            r.COUNT_BEFORE: F.lag(c.PARTITION_COUNT, 1).over(order),
            r.COUNT_BEFORE_THAT: F.lag(c.PARTITION_COUNT, 2).over(order),
            r.COUNT_AFTER: F.lead(c.PARTITION_COUNT).over(order),
            r.CHANGED: since,
            r.CHANGED_BEFORE: F.lag(since).over(order),
            r.CHANGED_AFTER: F.lead(since).over(order),
            _PLACE: F.row_number().over(order),
        }
    )
    nothing = F.lit(None)
    unlisted = listed.where(F.col(_PLACE) == 1).withColumns(
        {
            r.LISTED: F.lit(False),
            _UNTIL: F.col(_SINCE),
            _SINCE: F.lit(_BEGINNING),
            r.COUNT_AFTER: F.col(c.PARTITION_COUNT),
            r.CHANGED_AFTER: since,
            **{name: nothing.cast("int") for name in (r.COUNT_NOW, r.COUNT_BEFORE, r.COUNT_BEFORE_THAT)},
            **{name: nothing.cast("bigint") for name in (r.CHANGED, r.CHANGED_BEFORE)},
            c.TOPIC_ID: nothing.cast("string"),
            c.RACKS: nothing.cast("array<array<string>>"),
        }
    )
    return listed.unionByName(unlisted)


def _rows(frame: DataFrame, kind: int) -> DataFrame:
    """Rows of one kind in the schema of all: the columns of the other kinds are null."""
    own = {r.BUCKET, *r.FIELDS[kind]}

    def value(field: StructField) -> Column:
        if field.name == r.ROW_KIND:
            return F.lit(kind).cast(field.dataType)
        return F.col(field.name) if field.name in own else F.lit(None).cast(field.dataType)

    return frame.select(*(value(field).alias(field.name) for field in r.INPUT))
