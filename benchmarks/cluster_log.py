"""The log of a running cluster, by both readers, against a bare consumer and a bare count: 99 % committed offsets.

python -m benchmarks.cluster_log [records] [records a batch] [runs] [--without-spark]

A broker of the tests, on this machine, with a log of one partition. `confluent-kafka`: a loop that consumes and keeps
nothing, and the reader in one process, with the same settings of the client. `spark`: a count of what Spark's Kafka
source gives, and the rows of the reader, brought to a sink that writes nothing. Each pair reads the same offsets, in
turns. Peak memory of the first reader is that of a new process. The broker takes its part of the same processors, so
the first pair is also compared by what it takes of the processor itself.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.timing import Timed, interleaved
from groupledger.config import SparkSettings
from groupledger.core.log.lines import TOPIC
from groupledger.core.log.read_plan import OffsetRange
from groupledger.engine.session import session
from groupledger.sources import kafka_log
from groupledger.sources.kafka_log import CONSUMER, Address, StretchReader
from groupledger.sources.offsets_records import of_topic
from groupledger.sources.opening import NUMBER
from tests.kafka.groups import ends
from tests.live.broker import broker
from tests.segments.hand import commit, group

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

A_STATE_IN = 100
"""One record in so many is a group's state."""
WRITES_THE_LOG = "__admin_client"
"""The one client id from which a broker takes records of an internal topic."""
SECONDS = 120
OPTIONS = {
    "kafka.isolation.level": "read_uncommitted",
    "kafka.default.api.timeout.ms": str(SECONDS * 1_000),
    "kafkaConsumer.pollTimeoutMs": str(SECONDS * 1_000),
    "failOnDataLoss": "true",
    "groupIdPrefix": kafka_log.GROUP_PREFIX,
    "minPartitions": "2",
}


def main(records: int, a_batch: int, runs: int, *, with_spark: bool) -> None:
    """Print the figures, records a second, and the ratios."""
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder)) as bootstrap:
        fill(bootstrap, records, a_batch)
        (end,) = ends(bootstrap)
        address, stretch = Address(bootstrap, {}, SECONDS), OffsetRange(0, end - records, end)
        print(f"{records:,} records, {a_batch} a batch, {A_STATE_IN - 1} % committed offsets", flush=True)
        things = {"bare consumer": lambda: consumed(address, stretch), "reader": lambda: read(address, stretch)}
        tell(interleaved(things, runs), records)
        print("seconds of the processor, of this process with the client's threads, again in turns:")
        tell(interleaved(things, runs, warm_up=0, clock=time.process_time), records)
        with ProcessPoolExecutor(1, get_context("spawn")) as fresh:
            print(f"peak memory {fresh.submit(peak, address, stretch).result():,.0f} MiB", flush=True)
        if with_spark:
            with spark_session() as spark:
                counts = {
                    "bare Spark count": lambda: counted(spark, address, stretch),
                    "reader: spark": lambda: read_by_spark(spark, address, stretch),
                }
                tell(interleaved(counts, runs), records)


def tell(pair: list[Timed], records: int) -> None:
    """A floor and what is held against it."""
    floor, ours = pair
    print(floor, ours, sep="\n")
    for each in pair:
        print(f"{each.name}: {records / each.median:,.0f} records/s")
    print(f"{ours.name} / {floor.name}: {floor.median / ours.median:.2f}x", flush=True)


def fill(bootstrap: str, records: int, a_batch: int) -> None:
    """Write so many records to the log, the same each time, and no other client's group."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(TOPIC, 1, 1)])[TOPIC].result(SECONDS)
    settings = {"client.id": WRITES_THE_LOG, "batch.num.messages": a_batch, "linger.ms": 1_000, "acks": "1"}
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.kbytes": 65_536, **settings})
    rng = random.Random(1)  # noqa: S311 the same log each time
    commits = [(commit(f"group-{at // 10}", at % 10), rng.randbytes(24)) for at in range(10_000)]
    states = [(group(f"group-{at}"), rng.randbytes(600)) for at in range(1_000)]
    for at in range(records):
        of_group, number = divmod(at, A_STATE_IN)
        key, value = commits[at % 10_000] if number else states[of_group % 1_000]
        while True:
            try:
                producer.produce(TOPIC, value, key, partition=0)
                break
            except BufferError:
                producer.poll(0.1)
    left = producer.flush(SECONDS)
    assert not left, f"{left} records were not taken"


def consumed(address: Address, stretch: OffsetRange) -> None:
    """The records, by a client with the same settings; nothing of them is looked at but the last offset."""
    consumer = address.client("Consumer", **CONSUMER)
    consumer.assign([TopicPartition(TOPIC, stretch.partition, stretch.first)])
    left = stretch.end - stretch.first
    while left:
        messages = consumer.consume(min(10_000, left), 0.2)
        left = stretch.end - messages[-1].offset() - 1 if messages else left
    consumer.close()


def read(address: Address, stretch: OffsetRange) -> None:
    """The rows of the reader, as a task makes them. AssertionError where one is missing."""
    total = rows = 0
    for found in StretchReader(address, offset_commits=False).read(stretch):
        numbers = found.column(NUMBER).drop_null()
        total += numbers[0].as_py() if len(numbers) else 0
        rows += found.num_rows - len(numbers)
    assert total == stretch.end - stretch.first
    assert rows == (total + A_STATE_IN - 1) // A_STATE_IN


def peak(address: Address, stretch: OffsetRange) -> float:
    """The most memory, in MiB, of a process that has read the stretch once and done nothing else."""
    read(address, stretch)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """A session with Spark's Kafka source, which can read the log."""
    spark = session(SparkSettings(profile="small"), "cluster log", jar_sets=("kafka-source",))
    spark.conf.set("spark.sql.streaming.kafka.useDeprecatedOffsetFetching", "true")
    try:
        yield spark
    finally:
        spark.stop()


def counted(spark: SparkSession, address: Address, stretch: OffsetRange) -> None:
    """A count of the same offsets."""
    options = {
        **OPTIONS,
        "kafka.bootstrap.servers": address.bootstrap,
        "assign": json.dumps({TOPIC: [stretch.partition]}),
        "startingOffsets": json.dumps({TOPIC: {str(stretch.partition): stretch.first}}),
        "endingOffsets": json.dumps({TOPIC: {str(stretch.partition): stretch.end}}),
    }
    assert spark.read.format("kafka").options(**options).load().count() == stretch.end - stretch.first


def read_by_spark(spark: SparkSession, address: Address, stretch: OffsetRange) -> None:
    """The rows of the reader, without committed offsets, to a sink that writes nothing."""
    found = kafka_log.spark_frame(spark, address, [stretch], int(OPTIONS["minPartitions"]))
    of_topic(found, "bench", "bench", [stretch.partition], offset_commits=False).good.write.format("noop").mode(
        "overwrite"
    ).save()


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("records", type=int, nargs="?", default=10_000_000)
    arguments.add_argument("a_batch", type=int, nargs="?", default=100)
    arguments.add_argument("runs", type=int, nargs="?", default=3)
    arguments.add_argument("--without-spark", action="store_true")
    given = arguments.parse_args()
    main(given.records, given.a_batch, given.runs, with_spark=not given.without_spark)
