"""What a fold needs beside the new records: the heads it starts from, the topics, and for late data the old records.

A record is late where the group's last head lies at or after it. Such a group is folded again from the last head before
its first late record; what earlier attempts said of the offsets after that head is superseded (`sinks.current`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.engine.buckets import bucket_of
from groupledger.engine.folding import BUCKET, GROUP_KEY, HEAD, INPUT, KNOWN, RECORD, TOPICS
from groupledger.tables import GROUP_HEADS, LOG_RECORDS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


GROUP = [c.CLUSTER_ID, c.GROUP_ID]
FIRST, LATEST, START, LATE = "first_offset", "latest_offset", "start", "late"


@dataclass(frozen=True, slots=True)
class FoldInput:
    """Rows of `engine.folding.INPUT`, and how many groups came late."""

    rows: DataFrame
    late_groups: int


def fold_input(
    current: Callable[[Table], DataFrame], new: DataFrame, topics: DataFrame, buckets: int, *, first: bool
) -> FoldInput:
    """The rows of every bucket: `new` records (of `log_records`), heads and old records of their groups, `topics`.

    `current` gives the rows of a table that count. `first`: no ingest of these clusters was committed before, so there
    are no heads to look for.
    """
    catalogues = _catalogues(topics, new.select(c.CLUSTER_ID).distinct(), buckets)
    records = _records(new, RECORD, buckets)
    if first:
        return FoldInput(_union([records, catalogues]), 0)
    starts = _starts(current(GROUP_HEADS), new).persist()
    late = starts.where(LATE)
    late_groups = late.count()
    pieces = [records, _heads(starts, buckets), catalogues]
    if late_groups:
        pieces.append(_records(_already_read(current(LOG_RECORDS), late), KNOWN, buckets))
    return FoldInput(_union(pieces), late_groups)


def _starts(known: DataFrame, new: DataFrame) -> DataFrame:
    """For each touched group with a head: the head to start from, and whether the new records are late."""
    touched = new.where(F.col(c.GROUP_ID).isNotNull()).groupBy(*GROUP).agg(F.min(c.OFFSET).alias(FIRST))
    heads = known.join(touched, GROUP)
    before = F.when(F.col(c.OFFSET) < F.col(FIRST), F.col(c.OFFSET))
    start = F.max_by(F.struct(c.OFFSET, c.STATE, c.LOG_PARTITION), before)
    found = heads.groupBy(*GROUP, FIRST).agg(F.max(c.OFFSET).alias(LATEST), start.alias(START))
    return found.select(*GROUP, START, (F.col(FIRST) <= F.col(LATEST)).alias(LATE))


def _already_read(known: DataFrame, late: DataFrame) -> DataFrame:
    """The records of late groups after their start, as earlier ingests read them."""
    after = late.select(*GROUP, F.coalesce(F.col(START)[c.OFFSET], F.lit(-1)).alias(FIRST))
    records = known.join(F.broadcast(after), GROUP)
    return records.where(F.col(c.OFFSET) > F.col(FIRST)).select(*LOG_RECORDS.columns)


def _records(records: DataFrame, kind: str, buckets: int) -> DataFrame:
    return records.select(
        bucket_of(buckets).alias(BUCKET),
        F.lit(kind).alias(c.KIND),
        c.CLUSTER_ID,
        F.encode(c.GROUP_ID, "UTF-8").alias(GROUP_KEY),
        c.LOG_PARTITION,
        c.OFFSET,
        F.unix_millis(c.TIMESTAMP).alias(c.TIMESTAMP),
        c.KEY,
        c.VALUE,
    )


def _heads(starts: DataFrame, buckets: int) -> DataFrame:
    """A row for each group with a head; a late group that starts from the beginning has one without a state."""
    return starts.select(
        bucket_of(buckets).alias(BUCKET),
        F.lit(HEAD).alias(c.KIND),
        c.CLUSTER_ID,
        F.encode(c.GROUP_ID, "UTF-8").alias(GROUP_KEY),
        F.col(START)[c.STATE].alias(c.STATE),
        F.col(LATE).alias(c.REFOLDED),
    )


def _catalogues(topics: DataFrame, clusters: DataFrame, buckets: int) -> DataFrame:
    """All changes of a cluster's topics as one row in every bucket: the driver never holds them."""
    change = F.struct(c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, F.unix_micros(c.VALID_FROM).alias(c.VALID_FROM))
    of_clusters = topics.join(F.broadcast(clusters), c.CLUSTER_ID, "left_semi")
    one = of_clusters.groupBy(c.CLUSTER_ID).agg(F.collect_list(change).alias(TOPICS))
    numbers = topics.sparkSession.range(buckets).select(F.col("id").cast("int").alias(BUCKET))
    return one.crossJoin(F.broadcast(numbers)).select(BUCKET, F.lit(TOPICS).alias(c.KIND), c.CLUSTER_ID, F.col(TOPICS))


def _union(pieces: list[DataFrame]) -> DataFrame:
    rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), pieces)
    return rows.select(*(_typed(rows, field.name, field.dataType.simpleString()) for field in INPUT))


def _typed(rows: DataFrame, name: str, kind: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None).cast(kind).alias(name)
