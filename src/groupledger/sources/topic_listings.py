"""Convert listings of topics to changes of topics.

A listing is a moment (`ts`, ms) with every topic that exists then: topic, topic_id, partitions, racks. A topic missing
from a later listing was deleted by then. A name that returns with another id is another topic.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegerType, LongType, StringType, StructField, StructType

from groupledger.core.log.lines import LISTING_FIELDS, MOST_RACKED_PARTITIONS, listed_topic
from groupledger.sources.files import Files, parsed, read_text
from groupledger.sources.opening import PROBLEM, Arrivals, Rows, observed, rejections, watched_scan
from groupledger.tables import TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

MOMENT = "ts"
RACK = "rack"
FIELDS = StructType(
    [
        StructField(MOMENT, LongType()),
        StructField(c.TOPIC, StringType()),
        StructField(c.TOPIC_ID, StringType()),
        StructField(c.PARTITIONS, IntegerType()),
        StructField(c.RACKS, ArrayType(ArrayType(StringType()))),
        StructField(RACK, ArrayType(StringType())),
    ]
)
STAGE = "topics"
STATE, NEXT = "state", "next_ts"
BEFORE = -1
"""The moment of what is already known: before every listing."""


def read_json(spark: SparkSession, files: Files, cluster_id: str) -> Rows:
    """Read the listed topics, one row per moment and topic: `ts`, cluster_id, topic, and its state (null: invalid).

    A row with a wrong partition count is rejected, but still shows that the topic existed.
    """
    placed = parsed(read_text(spark, files, placed=True), FIELDS, listed_topic, files.shown)
    return of_lines(read_text(spark, files), files.path, cluster_id, placed)


def of_lines(lines: DataFrame, source: str, cluster_id: str, placed: DataFrame | None = None) -> Rows:
    """Read lines from `sources.files` as `read_json` does; `placed`: the same rows, of lines with their places."""
    assert tuple(FIELDS.names) == LISTING_FIELDS[:-1], "the parser gives the fields in this order"
    watched, watch = watched_scan(lines)
    rows = parsed(watched, FIELDS, listed_topic)
    rejected = {c.STAGE: F.lit(STAGE), c.CLUSTER_ID: F.lit(cluster_id), c.ROW: F.col(c.ROW)}
    state = F.struct(
        canonical_topic_id(F.col(c.TOPIC_ID)).alias(c.TOPIC_ID),
        F.col(c.PARTITIONS).alias(c.PARTITION_COUNT),
        _racks().alias(c.RACKS),
    )
    sorted_out = Observation()
    there = observed(rows, sorted_out).where(F.col(c.TOPIC).isNotNull() & F.col(MOMENT).isNotNull())
    listed = there.select(
        F.lit(cluster_id).alias(c.CLUSTER_ID), MOMENT, c.TOPIC, F.when(F.col(PROBLEM).isNull(), state).alias(STATE)
    )
    arrivals = Arrivals(lines, parsed(lines, FIELDS, listed_topic), True, (watch, sorted_out))
    unusable = rows if placed is None else placed
    return Rows(listed, rejections(unusable, source, rejected), (sorted_out,), arrivals)


def changes(listed: DataFrame, known: DataFrame) -> DataFrame:
    """Return rows of `topic_snapshots` (without the attempt) that `listed` adds to the already valid rows, `known`."""
    all_states = listed.unionByName(_known_before(listed, known))
    everything = all_states.groupBy(c.CLUSTER_ID, MOMENT, c.TOPIC).agg(
        F.max(STATE).alias(STATE)
    )  # picks one of two, in any order
    moments = everything.select(c.CLUSTER_ID, MOMENT).distinct()
    following = moments.withColumn(NEXT, F.lead(MOMENT).over(Window.partitionBy(c.CLUSTER_ID).orderBy(MOMENT)))
    by_topic = Window.partitionBy(c.CLUSTER_ID, c.TOPIC).orderBy(MOMENT)
    rows = (
        everything.join(F.broadcast(following), [c.CLUSTER_ID, MOMENT])
        .withColumn(STATE, F.last(STATE, ignorenulls=True).over(by_topic))
        .withColumn("before", F.when(F.lag(NEXT).over(by_topic) == F.col(MOMENT), F.lag(STATE).over(by_topic)))
        .withColumn("seen_again", F.lead(MOMENT).over(by_topic))
    )
    changed = (F.col(MOMENT) != BEFORE) & F.col(STATE).isNotNull() & ~F.col(STATE).eqNullSafe(F.col("before"))
    gone = F.col(NEXT).isNotNull() & ~F.col("seen_again").eqNullSafe(F.col(NEXT)) & F.col(STATE).isNotNull()
    found = _rows(rows.where(changed), MOMENT, F.col(STATE)[c.PARTITION_COUNT], F.col(STATE)[c.RACKS])
    deleted = _rows(rows.where(gone), NEXT, F.lit(None), F.lit(None))
    return _new(found.unionByName(deleted), known)


def _known_before(listed: DataFrame, known: DataFrame) -> DataFrame:
    """Return what was known just before the first moment of `listed`, as a listing."""
    first = listed.groupBy(c.CLUSTER_ID).agg(F.timestamp_millis(F.min(MOMENT)).alias(NEXT))
    earlier = known.join(F.broadcast(first), c.CLUSTER_ID).where(F.col(c.VALID_FROM) < F.col(NEXT))
    state = F.struct(c.TOPIC_ID, c.PARTITION_COUNT, c.RACKS)
    order = F.struct(c.VALID_FROM, F.col(c.PARTITION_COUNT).isNotNull())  # at one moment a deletion comes first
    last = earlier.groupBy(c.CLUSTER_ID, c.TOPIC).agg(F.max_by(state, order).alias(STATE))
    alive = last.where(F.col(STATE)[c.PARTITION_COUNT].isNotNull())
    return alive.select(c.CLUSTER_ID, F.lit(BEFORE).cast("long").alias(MOMENT), c.TOPIC, STATE)


def _rows(rows: DataFrame, moment: str, count: Column, racks: Column) -> DataFrame:
    kinds = {field.name: field.dataType for field in TOPIC_SNAPSHOTS.schema}
    return rows.select(
        c.CLUSTER_ID,
        F.col(STATE)[c.TOPIC_ID].alias(c.TOPIC_ID),
        c.TOPIC,
        count.cast(kinds[c.PARTITION_COUNT]).alias(c.PARTITION_COUNT),
        racks.cast(kinds[c.RACKS]).alias(c.RACKS),
        F.timestamp_millis(moment).alias(c.VALID_FROM),
    )


def _new(found: DataFrame, known: DataFrame) -> DataFrame:
    """Remove rows that are already known: reading the same listings again changes nothing."""
    names = [c.CLUSTER_ID, c.TOPIC_ID, c.TOPIC, c.PARTITION_COUNT, c.VALID_FROM]
    same = F.expr(" AND ".join(f"found.{name} <=> known.{name}" for name in names))
    return found.alias("found").join(known.alias("known"), same, "left_anti")


def canonical_topic_id(topic_id: Column) -> Column:
    """Return Kafka's own, URL-safe spelling, as `core.history.canonical_topic_id`."""
    return F.rtrim(F.translate(topic_id, "+/", "-_"), F.lit("="))


def _racks() -> Column:
    """Return racks of each partition's replicas; the one rack of a topic applies to all of its partitions."""
    count = F.col(c.PARTITIONS)
    most = F.least(count, F.lit(MOST_RACKED_PARTITIONS))  # in whatever order Spark evaluates
    each = F.when(count.between(1, MOST_RACKED_PARTITIONS), F.array_repeat(RACK, most))
    return F.coalesce(c.RACKS, F.when(F.col(RACK).isNotNull(), each))
