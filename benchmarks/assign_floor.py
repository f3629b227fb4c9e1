"""The floor of `assign`: plain Spark brings the same members together, and writes as many rows of `assignments`.

What the members claimed and were given stands in the rows' lists, so that they are as long as ours.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.generated_facts import CLUSTER
from groupledger.tables import ASSIGNMENTS, MEMBER_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.sinks.ledger_tables import LedgerLocation

HEAP = "3g"
"""Of ours and of the floor."""
STAGE = ("read", "compute", "write")
"""What lies between the plan and the commit of an `assign`: what the floor does too."""
SHORT_TABLES = 3
"""Commits of an `assign` beside that of `assignments`: the plan, `rebalances`, and the row in `runs`."""


def copied(spark: SparkSession, facts: LedgerLocation) -> DataFrame:
    """Read, bring together by group, sort: rows of `assignments`."""
    rows = facts.rows(spark, MEMBER_SNAPSHOTS)
    kind = ASSIGNMENTS.schema[c.TARGET].dataType.simpleString()
    nothing = F.array().cast(kind)

    def listed(name: str) -> Column:
        entry = f"transform({name}, e -> struct(e.topic AS topic, e.partitions AS partitions))"
        return F.coalesce(F.expr(entry), nothing)

    claimed, recorded = listed(c.CLAIMED), listed(c.RECORDED)
    lists = {c.HELD: nothing, c.TARGET: recorded, c.ASSIGNED: recorded, c.ADDED: recorded}
    lists |= {c.REVOKED: nothing, c.AWAITING: claimed, c.LOST: nothing}
    values = {c.SCENARIO: F.lit(CLUSTER), c.ROUND: F.lit(1), c.ATTEMPT_ID: F.lit(CLUSTER), **lists}
    together = rows.repartition(c.GROUP_ID).sortWithinPartitions(c.GROUP_ID, c.MEMBER_ORDER)
    return together.select(*(values.get(name, F.col(name)).alias(name) for name in ASSIGNMENTS.columns))


def write(spark: SparkSession, facts: LedgerLocation, folder: str) -> None:
    """The copy, and as many commits of next to nothing as an `assign` makes beside it."""
    copied(spark, facts).write.format("delta").save(f"{folder}/copy")
    for number in range(SHORT_TABLES):
        spark.range(1, numPartitions=1).write.format("delta").save(f"{folder}/short-{number}")
