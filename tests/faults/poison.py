"""Groups that no job should fall over: each ends with its outcome, or in quarantine with the reason; others go on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from pyspark.sql import functions as F

from benchmarks.workers import watched
from groupledger.config import AssignSettings, Config, LedgerSettings, LimitSettings, SourceSettings
from groupledger.pipeline.assign import assign
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import QUARANTINE, REBALANCES
from groupledger.tables import columns as c
from tests.faults.bench import Bench
from tests.faults.story import empty, steady

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MEMBERS, TOPICS, PARTITIONS = 2_000, 2_000, 500
CLAIMS, CROWD, LONG = 10_000_000, 100_000, 1 << 20
STRANGE = "\u0001\u2028\U0001f600\n`;-- '\"\\"
LONG_ID = "x" * LONG
EXPECTED = {
    "good": "ASSIGNED",
    STRANGE: "ASSIGNED",
    "giant": "ASSIGNED",
    LONG_ID: "ID_OVER_LIMIT",
    "long member": "ID_OVER_LIMIT",
    "claims": "CLAIMS_OVER_LIMIT",
    "crowd": "MEMBER_TWICE",
    "twice": "SNAPSHOT_TWICE",
}
"""By group id: the outcome, or the code in quarantine."""


def poison(bench: Bench) -> Iterator[tuple[str, str]]:
    """Each group with what is wrong about its end, empty where nothing is; last, the memory of the workers."""
    folder, ledger = bench.folder / "poison", bench.folder / "poisoned"
    write(bench.spark, folder)
    empty(bench.spark, ledger)
    with watched(psutil.Process()) as peak:
        quarantined = run(bench.spark, folder, ledger)
    found = ends(bench.spark, LedgerLocation(path=str(ledger)))
    for group, expected in EXPECTED.items():
        got = found.get(group, "nothing")
        yield (
            f"group {group[:20]!r} of {len(group)} characters: {got}",
            "" if got == expected else f"expected {expected}",
        )
    yield f"{quarantined} rows in quarantine; {peak}", ""


def run(spark: SparkSession, folder: Path, ledger: Path) -> int:
    """Ingest and assign; gives the number of rejected rows and groups."""
    config = Config(
        cluster_id="hostile",
        ledger=LedgerSettings(location=str(ledger)),
        sources=(SourceSettings(kind="snapshots", path=str(folder)),),
        assign=AssignSettings(assignor="cooperative-sticky"),
        limits=LimitSettings(),
    )
    place = LedgerLocation(path=str(ledger))
    read = ingest(spark, place, config, Invocation(attempt_id="poison-1", now=steady, seconds=lambda: 0.0))
    computed = assign(spark, config, Invocation(attempt_id="poison-2", now=steady, seconds=lambda: 0.0))
    assert {read.run.verdict, computed.verdict} == {"quarantine-over-limit"}, "limits.max_quarantined decides"
    return read.quarantined + computed.quarantined


def ends(spark: SparkSession, place: LedgerLocation) -> dict[str, str]:
    """The outcome of each group, or the code it was rejected with."""
    outcomes = current(spark, place, REBALANCES).select(c.GROUP_ID, F.coalesce(c.CODE, c.OUTCOME))
    codes = current(spark, place, QUARANTINE).select(c.GROUP_ID, c.CODE)
    return {row[0]: row[1] for row in outcomes.union(codes).distinct().collect()}


def write(spark: SparkSession, folder: Path) -> None:
    """The three tables, as a user would give them."""
    groups = list(EXPECTED)
    rows = [(f"s{number}", group, number) for number, group in enumerate(groups)]
    rows.append((f"s{groups.index('twice')}", "twice", 99))
    frame = spark.createDataFrame(rows, "snapshot_id string, group_id string, offset bigint")
    moment = F.timestamp_seconds(F.lit(1_795_000_000))
    shared = F.when(F.col("group_id") == "giant", _topics(TOPICS))
    frame.withColumns({"observed_at": moment, "shared_topics": shared}).write.parquet(str(folder / "group_snapshots"))
    members = [_members(spark, f"s{number}", group) for number, group in enumerate(groups)]
    whole = members[0]
    for each in members[1:]:
        whole = whole.unionByName(each)
    whole.write.parquet(str(folder / "member_snapshots"))
    topics = spark.range(TOPICS).select(F.format_string("topic-%04d", "id").alias("topic"))
    listed = topics.withColumn("partition_count", F.lit(PARTITIONS)).withColumn(
        "valid_from", F.timestamp_seconds(F.lit(1_790_000_000))
    )
    listed.write.parquet(str(folder / "topic_snapshots"))


def _members(spark: SparkSession, snapshot: str, group: str) -> DataFrame:
    number = {"giant": MEMBERS, "crowd": CROWD}.get(group, 2)
    name = {"crowd": F.lit("one name"), "long member": F.concat(F.lit(LONG_ID), F.col("id").cast("string"))}
    topics = F.lit(None).cast("array<string>") if group == "giant" else _topics(2)
    claimed = F.sequence(F.lit(0), F.lit((CLAIMS // 2 if group == "claims" else 1) - 1))
    return spark.range(number).select(
        F.lit(snapshot).alias("snapshot_id"),
        name.get(group, F.format_string("m-%06d", "id")).alias("member_id"),
        F.col("id").cast("int").alias("member_order"),
        topics.alias("topics"),
        F.array(F.struct(F.lit("topic-0000").alias("topic"), claimed.alias("partitions"))).alias("claimed"),
    )


def _topics(number: int) -> Column:
    return F.transform(F.sequence(F.lit(0), F.lit(number - 1)), lambda each: F.format_string("topic-%04d", each))
