"""What an answer cannot rest on: gaps of the recorded history, and topics that no listing knew at the time.

The first are rows of `coverage`, made by the fold. The second are derived when they are asked for, since a listing that
comes later, but was taken earlier, ends them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from groupledger.pipeline.ledger import Ledger

TOPIC_NOT_LISTED = "topic-not-listed"
GAPS = "gaps"
_NUMBER, _THEN, _FIRST, _SNAPSHOTS = "_number", "_then", "_first", "_snapshots"
_TOPICS_OF = (c.CLUSTER_ID, c.GROUP_ID, c.INCARNATION, c.OFFSET, c.SNAPSHOT_ID)


def coverage_of(ledger: Ledger, cluster: str | None = None, group_id: str | None = None) -> DataFrame:
    """Rows of `coverage` without the attempt, and of the kind TOPIC_NOT_LISTED one for each topic of an incarnation.

    Those go from the first to the last generation or epoch without a listing.
    """
    names = [name for name in COVERAGE.columns if name != c.ATTEMPT_ID]
    recorded = within(ledger.current(COVERAGE), cluster, group_id).select(names)
    missing = topics_not_listed(ledger, within(ledger.current(GROUP_SNAPSHOTS), cluster, group_id))
    first = F.min(F.struct(c.OFFSET, c.SNAPSHOT_ID)).alias(_FIRST)
    spans = (F.min(_NUMBER).alias(c.FROM_VALUE), F.max(_NUMBER).alias(c.TO_VALUE), F.count("*").alias(_SNAPSHOTS))
    found = missing.groupBy(c.CLUSTER_ID, c.GROUP_ID, c.INCARNATION, c.TOPIC).agg(first, *spans)
    reason = F.concat(
        *(F.lit("topic "), F.col(c.TOPIC), F.lit(" was in no topic listing at the time of "), F.col(_SNAPSHOTS)),
        F.lit(" snapshots: its partition count then is not known"),
    )
    derived = {c.KIND: F.lit(TOPIC_NOT_LISTED), c.REASON: reason}
    derived |= {name: F.col(f"{_FIRST}.{name}") for name in (c.OFFSET, c.SNAPSHOT_ID)}
    return recorded.unionByName(found.select(*(derived.get(name, F.col(name)).alias(name) for name in names)))


def topics_not_listed(ledger: Ledger, snapshots: DataFrame) -> DataFrame:
    """A row for each topic that a snapshot's members subscribe to, and that no listing knew at its time."""
    topics = F.explode(F.coalesce(c.SHARED_TOPICS, c.SUBSCRIBED_TOPICS)).alias(c.TOPIC)
    number = F.coalesce(c.GENERATION, c.GROUP_EPOCH).cast("bigint").alias(_NUMBER)
    wanted = snapshots.select(*_TOPICS_OF, number, F.col(c.OBSERVED_AT).alias(_THEN), topics)
    listed = ledger.current(TOPIC_SNAPSHOTS).select(c.CLUSTER_ID, c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, c.VALID_FROM)
    known = wanted.alias("w").join(
        F.broadcast(listed).alias("l"),
        (F.col(f"w.{c.CLUSTER_ID}") == F.col(f"l.{c.CLUSTER_ID}"))
        & (F.col(f"w.{c.TOPIC}") == F.col(f"l.{c.TOPIC}"))
        & (F.col(c.VALID_FROM) <= F.col(_THEN)),
        "left",
    )
    is_there = F.col(c.PARTITION_COUNT).isNotNull()
    order = F.struct(c.VALID_FROM, is_there, c.TOPIC_ID, c.PARTITION_COUNT)  # as `core.listings.change_order`
    keys = [*(f"w.{name}" for name in (*_TOPICS_OF, c.TOPIC)), _NUMBER]
    latest = known.groupBy(*keys).agg(F.max(F.when(F.col(c.VALID_FROM).isNotNull(), order)).alias("_latest"))
    return latest.where(F.col(f"_latest.{c.PARTITION_COUNT}").isNull()).drop("_latest")


def within(rows: DataFrame, cluster: str | None, group_id: str | None = None) -> DataFrame:
    """The rows of a cluster and a group; None is all."""
    rows = rows if cluster is None else rows.where(F.col(c.CLUSTER_ID) == cluster)
    return rows if group_id is None else rows.where(F.col(c.GROUP_ID) == group_id)
