"""Raw records to snapshots in one job: 1,000,000 GroupMetadata records, against a plain copy of the same bytes.

python -m benchmarks.fold_job [records] [runs] [percent of offset commits]

The records are the captured groups' own, the whole history of each repeated under other group names. The floor reads
the same Parquet files, brings each group's records together, sorts them, and writes them to Delta: one shuffle, one
table. Ours is a whole `ingest`: it keeps the raw records too (each position once), decodes them, folds them, and fills
the fact tables. A second floor appends as many rows to as many tables: those of an ingest, read from Parquet, to the
tables of a new ledger. All run in one session, in turn, after a warm-up round.

With a share of offset commits, the log is mixed as a real one is: these groups commit, and a few records among the
commits are their generations. Then another ingest leaves the commits out (`offset_commits: false`), and a third floor
reads the same files and counts the records by kind.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from benchmarks.timing import interleaved
from groupledger.config import Config, LedgerSettings, SourceSettings, SparkSettings
from groupledger.config.loading import CAPTURES
from groupledger.engine.session import session
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger_tables import LedgerLocation, init
from groupledger.tables import RUNS, TABLES

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

    from groupledger.tables import Table

LOGS = {"dev": 0, "edge": 100, "storm": 200}
"""Captured logs, and by how much the numbers of their log partitions are shifted: a position has one record."""
WITHOUT_COMMITS = "ingest without commits"
OFFSETS_A_COPY = 1_000
APART = 1_000
"""Offsets from one generation to the next among offset commits."""


def main(records: int, runs: int, percent: int) -> None:
    """Print the figures, records a second, and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        bench = FoldJob(Path(folder), records, percent)
        jobs = {"ingest": bench.ours, "plain copy": bench.floor, "same rows": bench.same_rows}
        ingests = ["ingest"]
        if percent:
            jobs |= {WITHOUT_COMMITS: bench.without_commits, "count by kind": bench.count}
            ingests.append(WITHOUT_COMMITS)
        found = {each.name: each for each in interleaved(jobs, runs)}
        print(*found.values(), sep="\n")
        for name in ingests:
            ours = found[name]
            floors = [each for each in found.values() if each.name not in ingests]
            ratios = ", ".join(f"{ours.median / floor.median:.1f}x {floor.name}" for floor in floors)
            print(f"{name}, {bench.records} records: {bench.records / ours.median:.0f} a second; {ratios}")
            print(f"rows of the last one: {bench.rows[name]}\nits stages: {bench.timings[name]}")


class FoldJob:
    """The generated log, and one session for all."""

    def __init__(self, folder: Path, records: int, percent: int = 0) -> None:
        self.folder, self.numbers = folder, itertools.count()
        self.spark = session(SparkSettings(profile="local", driver_memory="4g"), "fold benchmark")
        self.log = str(folder / "log")
        log = generated(self.spark, records) if not percent else mixed(self.spark, records, percent)
        log.write.parquet(self.log)
        self.records = self.spark.read.parquet(self.log).count()
        self.rows: dict[str, dict[str, int]] = {}
        self.filled: list[Table] = []
        self.timings: dict[str, dict[str, float]] = {}

    def ours(self) -> None:
        """One ingest into a new ledger; the making of its empty tables is part of it."""
        self._ingest("ingest", offset_commits=True)

    def without_commits(self) -> None:
        """As `ours`, of a log whose offset commits are not asked for."""
        self._ingest(WITHOUT_COMMITS, offset_commits=False)

    def _ingest(self, name: str, *, offset_commits: bool) -> None:
        location = self._ledger()
        source = SourceSettings(kind="offsets-parquet", path=self.log, offset_commits=offset_commits)
        config = Config(cluster_id="bench", ledger=LedgerSettings(location=location.path), sources=(source,))
        invocation = Invocation(attempt_id="bench", now=lambda: datetime.now(UTC), seconds=time.perf_counter)
        summary = ingest(self.spark, location, config, invocation)
        self.rows[name] = dict(summary.rows)
        self.timings[name] = {stage: round(seconds, 1) for stage, seconds in summary.timings.items()}
        if not self.filled:  # in the warm-up round
            self.filled = [table for table in TABLES if table is not RUNS and summary.rows.get(table.name)]
            for table in self.filled:
                location.rows(self.spark, table).write.parquet(f"{self.folder}/rows/{table.name}")
        shutil.rmtree(str(location.path))

    def _ledger(self) -> LedgerLocation:
        location = LedgerLocation(path=str(self.folder / f"ledger-{next(self.numbers)}"))
        init(self.spark, location)
        return location

    def same_rows(self) -> None:
        """Append the rows of an ingest to the tables of a new ledger, a table after the other."""
        location = self._ledger()
        for table in self.filled:
            self.spark.read.parquet(f"{self.folder}/rows/{table.name}").writeTo(location.identifier(table)).append()
        shutil.rmtree(str(location.path))

    def floor(self) -> None:
        """Read, bring together by group, sort, write."""
        copy = str(self.folder / f"copy-{next(self.numbers)}")
        rows = self.spark.read.parquet(self.log)
        rows.repartition("key").sortWithinPartitions("key", "offset").write.format("delta").save(copy)
        shutil.rmtree(copy)

    def count(self) -> None:
        """Read, and count by the type that each key begins with."""
        self.spark.read.parquet(self.log).groupBy(F.substring("key", 1, 2)).count().collect()


def mixed(spark: SparkSession, records: int, percent: int) -> DataFrame:
    """As `generated`, with so many offset commits of the same groups among them, each at an offset of its own."""
    others = generated(spark, max(1, records * (100 - percent) // 100)).withColumn("offset", F.col("offset") * APART)
    groups = others.select("partition", F.substring("key", F.lit(3), F.length("key") - 2).alias("group")).distinct()
    numbered = groups.withColumn("number", F.row_number().over(Window.orderBy("group")) - 1).persist()
    numbers = spark.range(records * percent // 100).withColumn("number", F.col("id") % numbered.count())
    topic = F.concat(F.lit("topic-"), F.col("number").cast("string"))
    commits = numbers.join(F.broadcast(numbered), "number").select(
        "partition",
        F.expr(f"id DIV {APART - 1} * {APART} + id % {APART - 1} + 1").alias("offset"),
        (F.lit(1_700_000_000_000) + F.col("id")).alias("timestamp"),
        F.concat(_bytes("0001"), "group", _text(topic), _number(F.col("id") % 12, 4)).alias("key"),
        F.concat(_bytes("0003"), _number(F.col("id"), 8), _bytes("00000005" + "0000" + "0000018bcfe56800")).alias(
            "value"
        ),
    )
    return others.unionByName(commits)


def generated(spark: SparkSession, records: int) -> DataFrame:
    """Records of an offsets log: captured GroupMetadata, each group's history under as many names as it takes."""
    rows = captured_generations(spark).persist()
    copies = -(-records // rows.count())
    name = F.concat("name", F.lit("-"), F.col("id").cast("string"))
    many = rows.crossJoin(spark.range(copies)).select(
        "partition",
        (F.col("id") * OFFSETS_A_COPY + F.col("offset")).alias("offset"),
        "timestamp",
        metadata_key(name).alias("key"),
        "value",
    )
    return many.limit(records)


def captured_generations(spark: SparkSession) -> DataFrame:
    """The captured GroupMetadata records: partition (shifted), offset, timestamp, name of the group, value."""
    logs = (
        spark.read.json(str(CAPTURES / log / "offsets.jsonl.gz")).withColumn("partition", F.col("partition") + shift)
        for log, shift in LOGS.items()
    )
    captured = reduce(DataFrame.unionByName, logs).where(F.col("value").isNotNull())
    keys = captured.withColumn("key", F.unbase64("key")).where(F.hex(F.substring("key", 1, 2)) == "0002")
    group = F.substring("key", F.lit(5), F.length("key") - 4).cast("string")
    return keys.select("partition", "offset", "timestamp", group.alias("name"), F.unbase64("value").alias("value"))


def metadata_key(group: Column) -> Column:
    """The key of the GroupMetadata records of a group."""
    return F.concat(_bytes("0002"), _text(group))


def _text(text: Column) -> Column:
    """A text as Kafka writes it, behind its length."""
    return F.concat(_number(F.octet_length(text), 2), F.encode(text, "UTF-8"))


def _number(number: Column, size: int) -> Column:
    return F.unhex(F.lpad(F.hex(number), 2 * size, "0"))


def _bytes(digits: str) -> Column:
    return F.unhex(F.lit(digits))


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*(numbers + [1_000_000, 3, 0][len(numbers) :]))
