"""A year of a fleet of 10,000 groups: ingested step by step, every recorded generation judged, and extrapolated.

python -m benchmarks.fleet_year [records a step] [steps] [groups] [--java]

Each step is a part of the log: generations of all groups, which go on where those of the step before end. After each,
one `ingest` of what is new, and of the topics as they were then: in each turn of the log they change as they did while
it was captured. After the first and the last step, one `assign` of every snapshot so far. What a year costs, at `YEAR`
generations, follows from the last step's ingest and the last assign, if neither grows with what was there before: the
ratio of last to first, a record, says whether that is so.

The captured groups are those of a test: a third have Java's client, and the assignors of all libraries are asked about
nearly half of the records. `--java` takes only groups with Java's client, as most of a fleet's are.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.fold_job import LOGS, OFFSETS_A_COPY, captured_generations, metadata_key
from benchmarks.generated_facts import invocation
from groupledger.config import AssignSettings, Config, LedgerSettings, SourceSettings, SparkSettings
from groupledger.config.loading import CAPTURES
from groupledger.engine.session import session
from groupledger.pipeline.assign import assign
from groupledger.pipeline.ingest import ingest
from groupledger.sinks.ledger_tables import LedgerLocation, init

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

YEAR = 180_000_000
GENERATIONS_A_TURN = 1_000
DAY_MS = 86_400_000
PLAIN = bytes.fromhex("0003" + "0008") + b"consumer"
"""How a value begins that a turn may give another generation: of version 3, for consumers."""
OTHER_LIBRARIES = "kpy|rdk|storm"
"""In the names of captured groups that have members of other libraries than Java's."""


def main(records: int, steps: int, groups: int, *, java: bool) -> None:
    """Print each step, and what a year would take."""
    spark = session(SparkSettings(profile="local", driver_memory="4g"), "fleet year")
    with tempfile.TemporaryDirectory() as folder:
        year = FleetYear(spark, Path(folder), records, groups, java=java)
        ingests, assigns = [], []
        for step in range(steps):
            ingests.append(year.ingest(step))
            if step in (0, steps - 1):
                assigns.append(year.assign(step))
    hours = (ingests[-1] + assigns[-1]) * YEAR / 3_600
    print(f"a record: ingest last to first {ingests[-1] / ingests[0]:.2f}, assign {assigns[-1] / assigns[0]:.2f}")
    print(f"{YEAR:,} generations: {hours:.1f} h on {spark.sparkContext.defaultParallelism} cores")


class FleetYear:
    """The log as it grows, and the ledger that follows it; all figures are seconds a record."""

    def __init__(self, spark: SparkSession, folder: Path, records: int, groups: int, *, java: bool) -> None:
        self.spark, self.folder, self.groups = spark, folder, groups
        wanted = F.substring("value", 1, len(PLAIN)) == F.lit(PLAIN)
        if java:
            wanted &= ~F.col("name").rlike(OTHER_LIBRARIES)
        self.captured = captured_generations(spark).where(wanted).persist()
        self.copies = -(-groups // self.captured.select("name").distinct().count())
        self.turns = -(-records // (self.captured.count() * self.copies))
        self.location = LedgerLocation(path=str(folder / "ledger"))
        init(spark, self.location)
        self.log, self.topics, self.so_far = "", folder / "topics.jsonl", 0

    def ingest(self, step: int) -> float:
        """Write the part of a step, and ingest it."""
        self.log = str(self.folder / f"log-{step}")
        turns = self.spark.range(step * self.turns, (step + 1) * self.turns).withColumnRenamed("id", "turn")
        self._part(turns).write.parquet(self.log)
        listed = self._listed(range(step * self.turns, (step + 1) * self.turns))
        self.topics.write_text("".join(f"{json.dumps(each)}\n" for each in listed), encoding="utf-8")
        records = self.spark.read.parquet(self.log).count()
        self.so_far += records
        began = time.perf_counter()
        ingest(self.spark, self.location, self._config(), invocation())
        return self._told(f"step {step + 1}, ingest", records, began)

    def assign(self, step: int) -> float:
        """Judge every snapshot so far."""
        began = time.perf_counter()
        done = assign(self.spark, self._config(), invocation())
        print(done.verdicts)
        return self._told(f"step {step + 1}, assign of all so far", self.so_far, began)

    def _told(self, what: str, records: int, began: float) -> float:
        took = time.perf_counter() - began
        print(f"{what}: {records:,} records in {took:.1f} s, {took / records * 1e6:.1f} us each", flush=True)
        return took / records

    def _config(self) -> Config:
        source = SourceSettings(kind="offsets-parquet", path=self.log)
        topics = SourceSettings(kind="topics-jsonl", path=str(self.topics))
        every = AssignSettings(snapshots="every")
        ledger = LedgerSettings(location=self.location.path)
        return Config(cluster_id="bench", ledger=ledger, sources=(source, topics), assign=every)

    def _listed(self, turns: range) -> Iterator[dict[str, Any]]:
        """Each captured listing again in each turn, a day later."""
        for log in LOGS:
            with gzip.open(CAPTURES / log / "topics.jsonl.gz", "rt", encoding="utf-8") as lines:
                for listed in map(json.loads, lines):
                    yield from (listed | {"ts": listed["ts"] + turn * DAY_MS} for turn in turns)

    def _part(self, turns: DataFrame) -> DataFrame:
        """Each captured group's history again in each turn, a day later, at later offsets and higher generations."""
        name = F.concat("name", F.lit("-"), F.col("id").cast("string"))
        generation = F.conv(F.hex(F.substring("value", len(PLAIN) + 1, 4)), 16, 10).cast("bigint")
        number = F.hex(generation + F.col("turn") * GENERATIONS_A_TURN)
        return (
            self.captured.crossJoin(self.spark.range(self.copies))
            .crossJoin(turns)
            .select(
                "partition",
                ((F.col("turn") * self.copies + F.col("id")) * OFFSETS_A_COPY + F.col("offset")).alias("offset"),
                (F.col("timestamp") + F.col("turn") * DAY_MS).alias("timestamp"),
                metadata_key(name).alias("key"),
                F.concat(
                    F.lit(PLAIN),
                    F.unhex(F.lpad(number, 8, "0")),
                    F.substring("value", F.lit(len(PLAIN) + 5), F.length("value")),
                ).alias("value"),
            )
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="a year of a fleet")
    parser.add_argument("records", type=int, nargs="?", default=1_000_000, help="a step")
    parser.add_argument("steps", type=int, nargs="?", default=5)
    parser.add_argument("groups", type=int, nargs="?", default=10_000)
    parser.add_argument("--java", action="store_true", help="only groups with Java's client")
    chosen = parser.parse_args()
    main(chosen.records, chosen.steps, chosen.groups, java=chosen.java)
