"""Ten thousand groups of fifty events each, simulated in one Spark job on two cores: every round and call to Delta.

python -m benchmarks.fleet_job [groups] [events]

The groups are the tests' own: up to eight members over three topics of up to twelve partitions, with joins, crashes,
zombies, static restarts, missed assignments, stale metadata and topics that come and go, by seed.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import functions as F

from groupledger.config import SparkSettings
from groupledger.core.protocol.story import write_script
from groupledger.engine.fleet import simulate_fleet
from groupledger.engine.session import session
from tests.core.protocol.drawn import script

BUCKETS = 32


def main(groups: int, events: int) -> None:
    """Print the time of the job, written and read back, and what it found."""
    spark = session(SparkSettings(profile="local", master="local[2]", driver_memory="2g"), "fleet benchmark")
    with tempfile.TemporaryDirectory() as folder:
        source, results = str(Path(folder) / "scripts"), str(Path(folder) / "settled")
        rows = [(f"g{seed}", json.dumps(write_script(script(seed, events), f"g{seed}"))) for seed in range(groups)]
        spark.createDataFrame(rows, ["group_id", "script"]).write.parquet(source)
        began = time.perf_counter()
        simulate_fleet(spark.read.parquet(source), BUCKETS).write.format("delta").save(results)
        took = time.perf_counter() - began
        settled = spark.read.format("delta").load(results)
        told = settled.select(
            F.count("*"),
            F.sum(F.size("rounds")),
            F.sum(F.size("calls")),
            F.sum(F.when(~F.col("stable"), 1).otherwise(0)),
        ).first()
        assert told is not None
        print(f"{groups} groups x {events} events: {took:.1f} s, {told[0]} events, {told[1]} rounds, {told[2]} calls")
        print(f"{told[3]} not stable; {took / told[0] * 1_000:.3f} ms an event")


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]]
    main(*(numbers + [10_000, 50][len(numbers) :]))
