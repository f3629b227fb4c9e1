"""Raw records to snapshots in one job: 1,000,000 GroupMetadata records, against a plain copy of the same bytes.

python -m benchmarks.fold_job [records] [runs]

The records are the captured groups' own, the whole history of each repeated under other group names. The floor reads
the same Parquet files, brings each group's records together, sorts them, and writes them to Delta: one shuffle, one
table. Ours is a whole `ingest`: it keeps the raw records too (each position once), decodes them, folds them, and fills
the fact tables. Both run in one session, in turn, after a warm-up round.
"""

from __future__ import annotations

import itertools
import shutil
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.timing import interleaved
from groupledger.config import Config, LedgerSettings, SourceSettings, SparkSettings
from groupledger.config.sample import CAPTURES
from groupledger.engine.session import session
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger import LedgerLocation, init

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LOGS = ("dev", "edge", "storm")
OFFSETS_A_COPY = 1_000


def main(records: int, runs: int) -> None:
    """Print both figures, records a second, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        bench = FoldJob(Path(folder), records)
        ours, floor = interleaved({"ingest": bench.ours, "floor": bench.floor}, runs)
        print(ours, floor, sep="\n")
        print(f"{bench.records} records: {bench.records / ours.median:.0f} a second; {ours.median / floor.median:.1f}x")
        print(f"rows of the last ingest: {bench.rows}\nits stages: {bench.timings}")


class FoldJob:
    """The generated log, and one session for both."""

    def __init__(self, folder: Path, records: int) -> None:
        self.folder, self.numbers = folder, itertools.count()
        self.spark = session(SparkSettings(profile="local", driver_memory="4g"), "fold benchmark")
        self.log = str(folder / "log")
        generated(self.spark, records).write.parquet(self.log)
        self.records = self.spark.read.parquet(self.log).count()
        self.rows: dict[str, int] = {}
        self.timings: dict[str, float] = {}

    def ours(self) -> None:
        """One ingest into a new ledger; the making of its empty tables is part of it."""
        location = LedgerLocation(path=str(self.folder / f"ledger-{next(self.numbers)}"))
        init(self.spark, location)
        source = SourceSettings(kind="offsets-parquet", path=self.log)
        config = Config(cluster_id="bench", ledger=LedgerSettings(location=location.path), sources=(source,))
        invocation = Invocation(attempt_id="bench", now=lambda: datetime.now(UTC), seconds=time.perf_counter)
        summary = ingest(self.spark, location, config, invocation)
        self.rows = dict(summary.rows)
        self.timings = {stage: round(seconds, 1) for stage, seconds in summary.timings.items()}
        shutil.rmtree(str(location.path))

    def floor(self) -> None:
        """Read, bring together by group, sort, write."""
        copy = str(self.folder / f"copy-{next(self.numbers)}")
        rows = self.spark.read.parquet(self.log)
        rows.repartition("key").sortWithinPartitions("key", "offset").write.format("delta").save(copy)
        shutil.rmtree(copy)


def generated(spark: SparkSession, records: int) -> DataFrame:
    """Records of an offsets log: captured GroupMetadata, each group's history under as many names as it takes."""
    paths = [str(CAPTURES / log / "offsets.jsonl.gz") for log in LOGS]
    captured = spark.read.json(paths).where(F.col("value").isNotNull())
    keys = captured.withColumn("key", F.unbase64("key")).where(F.hex(F.substring("key", 1, 2)) == "0002")
    group = F.substring("key", F.lit(5), F.length("key") - 4).cast("string")
    rows = keys.withColumn("name", group).persist()
    copies = -(-records // rows.count())
    name = F.concat("name", F.lit("-"), F.col("id").cast("string"))
    length = F.unhex(F.lpad(F.hex(F.length(name)), 4, "0"))
    many = rows.crossJoin(spark.range(copies)).select(
        F.lit(0).alias("partition"),
        (F.col("id") * OFFSETS_A_COPY + F.col("offset")).alias("offset"),
        "timestamp",
        F.concat(F.unhex(F.lit("0002")), length, F.encode(name, "UTF-8")).alias("key"),
        F.unbase64("value").alias("value"),
    )
    return many.limit(records)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*(numbers + [1_000_000, 3][len(numbers) :]))
