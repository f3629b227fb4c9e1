"""Ten thousand groups of fifty events each, simulated in one Spark job on two cores: every round and call to Delta.

python -m benchmarks.fleet_job [groups] [events] [rounds | clock]

The groups are the tests' own, by seed. `rounds`: up to eight members over three topics of up to twelve partitions, with
joins, crashes, zombies, static restarts, missed assignments, stale metadata, and topics that come and go. `clock`: up
to six members over two topics, with times of their own, records that arrive and are read, callbacks that take time,
pauses, hangs and partitions of the network; a third each of members of one kind, of members of several kinds, and of
the consumer protocol (KIP-848).
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from pyspark.sql import functions as F

from benchmarks.fleet import settle, simulate_fleet
from groupledger.config import SparkSettings
from groupledger.core.protocol.script import Script
from groupledger.core.protocol.script_json import write_script
from groupledger.engine.session import session
from tests.core.protocol.drawn import script
from tests.core.protocol.drawn_times import consumer_script, mixed_script, timed_script

BUCKETS = 32
SAMPLE = 90
"""Groups that are simulated in this process besides, for the processor time of an event."""
NAMED = 10
"""Events that did not settle and are named, at most."""
WITH_CLOCKS = (timed_script, mixed_script, consumer_script)


def rows_of(groups: int, events: int, kind: str) -> list[tuple[str, str]]:
    """Group and script of each of so many groups."""
    return [(f"g{seed}", json.dumps(write_script(drawn(seed, events, kind), f"g{seed}"))) for seed in range(groups)]


def drawn(seed: int, events: int, kind: str) -> Script:
    """The script of one group."""
    if kind == "rounds":
        return script(seed, events)
    return WITH_CLOCKS[seed % len(WITH_CLOCKS)](seed, events, zombies=True)


def in_process(rows: list[tuple[str, str]]) -> None:
    """Print the processor time of an event in the UDF alone."""
    import pyarrow as pa

    def played(some: list[tuple[str, str]]) -> int:
        return len(settle(pa.table({"group_id": [row[0] for row in some], "script": [row[1] for row in some]})))

    played(rows[:3])  # loads what is loaded once
    began = time.process_time()
    count = played(rows[:SAMPLE])
    print(f"in process: {(time.process_time() - began) / count * 1_000:.3f} ms of processor time an event")


def main(groups: int, events: int, kind: str) -> None:
    """Print the time of the job, written and read back, and what it found."""
    rows = rows_of(groups, events, kind)
    in_process(rows)
    spark = session(SparkSettings(profile="local", master="local[2]", driver_memory="2g"), "fleet benchmark")
    with tempfile.TemporaryDirectory() as folder:
        source, results = str(Path(folder) / "scripts"), str(Path(folder) / "settled")
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
        print(f"{groups} groups x {events} events, {kind}: {took:.1f} s, {told[0]} events", end=", ")
        print(f"{told[1]} rounds, {told[2]} calls, {told[3]} not stable; {took / told[0] * 1_000:.3f} ms an event")
        for row in settled.where(~F.col("stable")).orderBy("group_id", "event").limit(NAMED).collect():
            print(f"not stable: {row['group_id']} at event {row['event']}: {row['failure']}")


if __name__ == "__main__":
    kinds = [argument for argument in sys.argv[1:] if not argument.isdigit()] or ["rounds"]
    numbers = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    groups, events = numbers + [10_000, 50][len(numbers) :]
    main(groups, events, kinds[0])
