"""`groupledger.assign` over DataFrames, written to Parquet, against the same DataFrames shuffled by group and written.

python -m benchmarks.own_tables [groups] [runs] [giant]

Groups have five members and 30 partitions of three topics; in half of them one member is new. `giant`: partitions of
the topic of one more group, of 100 members. One session of Spark's own settings, in turn, after a warm-up round.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import groupledger as gl
from benchmarks.timing import interleaved
from benchmarks.workers import peak_mebibytes
from groupledger.config import SparkSettings
from groupledger.engine.session import session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TOPICS = ("orders", "payments", "refunds")
MEMBERS, PARTITIONS = 5, 10
OWNED = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))
FILES = 4
AS_SPARK_IS = {"spark.sql.adaptive.coalescePartitions.enabled": "true", "spark.sql.shuffle.partitions": "200"}


def crowd(groups: int) -> pa.Table:
    """Members of so many groups."""
    group = np.repeat(np.arange(groups), MEMBERS)
    member = np.tile(np.arange(MEMBERS), groups)
    kinds = [_owned(number, of) for of in (MEMBERS, MEMBERS - 1) for number in range(MEMBERS)]
    return pa.table(
        {
            "group_id": pa.array([f"group-{number}" for number in range(groups)]).take(pa.array(group)),
            "member_id": pa.array([f"consumer-{number}-0123456789abcdef" for number in range(MEMBERS)]).take(
                pa.array(member)
            ),
            "topics": pa.array([list(TOPICS)], pa.list_(pa.string())).take(pa.array(np.zeros(len(group), np.int64))),
            "owned": pa.array(kinds, OWNED).take(pa.array(member + MEMBERS * (group % 2))),
        }
    )


def _owned(member: int, of: int) -> list[dict[str, object]]:
    """What one of so many members has of every topic."""
    if member >= of:
        return []
    return [
        {"topic": topic, "partitions": [n for n in range(PARTITIONS) if (n + PARTITIONS * at) % of == member]}
        for at, topic in enumerate(TOPICS)
    ]


def giant(partitions: int) -> tuple[pa.Table, pa.Table]:
    """The members and the topic of a group with so many partitions, all owned by half of its members."""
    members, half = 100, 50
    owned = [
        [{"topic": "giant", "partitions": list(range(n, partitions, half))}] if n < half else [] for n in range(members)
    ]
    rows = {
        "group_id": ["giant"] * members,
        "member_id": [f"m{number:03}" for number in range(members)],
        "topics": [["giant"]] * members,
        "owned": pa.array(owned, OWNED),
    }
    return pa.table(rows), pa.table({"topic": ["giant"], "partitions": pa.array([partitions], pa.int32())})


def main(groups: int, runs: int, giants: int) -> None:
    """Print each figure and the ratio."""
    members = crowd(groups)
    topics = pa.table({"topic": list(TOPICS), "partitions": pa.array([PARTITIONS] * len(TOPICS), pa.int32())})
    if giants:
        more = giant(giants)
        members, topics = pa.concat_tables([members, more[0]]), pa.concat_tables([topics, more[1]])
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        settings = SparkSettings(profile="local", master="local[2]", driver_memory="3g", conf=AS_SPARK_IS)
        spark = session(settings, "benchmark of own tables")
        (place / "members").mkdir()
        size = -(-len(members) // FILES)
        for number in range(FILES):
            pq.write_table(members.slice(number * size, size), place / "members" / f"{number}.parquet")
        pq.write_table(topics, place / "topics.parquet")
        mine, known = (spark.read.parquet(str(place / name)) for name in ("members", "topics.parquet"))

        def write(frame: DataFrame, name: str) -> None:
            frame.write.mode("overwrite").parquet(str(place / name))

        ours, floor = interleaved(
            {
                "assign": lambda: write(gl.assign(mine, known).members, "assigned"),
                "shuffled by group and written": lambda: write(mine.repartition("group_id"), "floor"),
            },
            runs,
        )
        print(ours, floor, sep="\n")
        print(f"{ours.median / floor.median:.2f}x; peak memory of a Python worker: {peak_mebibytes():.0f} MiB")


if __name__ == "__main__":
    main(*(int(word) for word in [*sys.argv[1:], *("100000", "3", "0")[len(sys.argv) - 1 :]]))
