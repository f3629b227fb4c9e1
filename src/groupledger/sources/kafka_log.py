"""Read a running cluster's log as a Spark data source: one Spark partition per range of a log partition."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import LongType, StringType, StructField, StructType

from groupledger.core.digest import digest
from groupledger.core.faults import Fault, kafka_fault, log_moved
from groupledger.core.log.lines import TOPIC
from groupledger.core.log.read_plan import OffsetRange
from groupledger.sources import offsets_records
from groupledger.sources.kafka_client import Address
from groupledger.sources.kafka_records import StretchReader
from groupledger.sources.opening import NUMBER, PROBLEM
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pyarrow as pa


FIELDS = StructType(
    [*offsets_records.FIELDS_OF_BATCHES, StructField(PROBLEM, StringType()), StructField(NUMBER, LongType())]
)
_NAME = "groupledger_kafka_log"
_MARK = "groupledger-fault "
_FAULT = re.compile(rf"{_MARK}(\[\"\w+\", \".*\"\])\s*$", re.MULTILINE)


def frame(spark: SparkSession, reader: StretchReader, stretches: Sequence[OffsetRange], cluster_id: str) -> DataFrame:
    """Return the records of these ranges and their counts (`kafka_records`), read lazily.

    The reader's settings travel inside the source, not as Spark options, which appear in plans and event logs.
    """
    name = f"{_NAME}_{digest(cluster_id)[:16]}"  # Spark lower-cases such names
    source = type("KafkaLog", (_KafkaLog,), {"label": name, "log": reader, "stretches": tuple(stretches)})
    spark.dataSource.register(source)
    return spark.read.format(name).load()


def fault_of(error: str) -> Fault | None:
    """Return the fault that ended a task, parsed from Spark's error; None for anything else."""
    found = _FAULT.search(error)
    return None if found is None else Fault(*json.loads(found[1]))


class _KafkaLog(DataSource):
    """A source whose class holds what is to be read."""

    label: str
    log: StretchReader
    stretches: tuple[OffsetRange, ...]

    @classmethod
    def name(cls) -> str:
        return cls.label

    def schema(self) -> StructType:
        return FIELDS

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema  # always FIELDS
        return _Reader(self.log, self.stretches)


class _Task(InputPartition):
    """One range."""

    def __init__(self, stretch: OffsetRange) -> None:
        super().__init__(tuple(stretch))


class _Reader(DataSourceReader):
    """Reads each range in a task of its own."""

    def __init__(self, log: StretchReader, stretches: tuple[OffsetRange, ...]) -> None:
        self._log, self._stretches = log, stretches

    def partitions(self) -> Sequence[InputPartition]:
        return [_Task(stretch) for stretch in self._stretches]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:  # Spark calls once even without partitions
            return
        try:
            yield from self._log.read(OffsetRange(*partition.value))
        except Fault as fault:
            raise RuntimeError(f"{_MARK}{json.dumps([fault.code, fault.message])}") from None


# Read a running cluster's log through Spark's own Kafka source, so that no Python code runs per record.
#
# Its partitions are assigned, never subscribed to: a subscription would make the reader a member of a group, and write
# to the log that it reads.

GROUP_PREFIX = "groupledger-reads-without-a-group"
"""Prefix of the group ids that Kafka's Java consumer requires; no such group is joined or committed to."""
_INTERNAL_TOPICS_TOO = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""Without it Spark asks an admin client, which omits internal topics: no rows, and no error."""
_NO_SOURCE = "Failed to find data source: kafka"
"""Spark's message, without an error condition, for a known source that is not on its class path."""
_LOST = re.compile(r"KAFKA_DATA_LOSS|data may have been lost|Cannot fetch (?:offset|record)|OffsetOutOfRangeException")
_ERROR = re.compile(r"org\.apache\.kafka\.common\.errors\.(\w+)Exception(?:: ?([^\n]*))?")
_PARTITION = re.compile(rf"{TOPIC}-(\d+)")
_NO_GROUP = "GroupAuthorization"
_NAMES = {
    "SaslAuthentication": "SASL_AUTHENTICATION_FAILED",
    "SslAuthentication": "_SSL",
    "TopicAuthorization": "TOPIC_AUTHORIZATION_FAILED",
    "ClusterAuthorization": "CLUSTER_AUTHORIZATION_FAILED",
    "Timeout": "_TIMED_OUT",
    "Disconnect": "_TRANSPORT",
}
"""Errors of the Java client, by librdkafka's or the protocol's names for them."""


def spark_frame(spark: SparkSession, address: Address, stretches: Sequence[OffsetRange], tasks: int) -> DataFrame:
    """Return all records of these ranges, in `tasks` tasks or more. `address` has the options of a Java client.

    Raises Fault READER_MISSING if Spark has no Kafka source.
    """
    spark.conf.set(_INTERNAL_TOPICS_TOO, "true")
    milliseconds = str(int(1000 * address.timeout_seconds))
    client = {
        **address.options,
        "bootstrap.servers": address.bootstrap,
        "isolation.level": "read_uncommitted",
        "default.api.timeout.ms": milliseconds,
        "allow.auto.create.topics": "false",
    }
    options = {
        **{f"kafka.{name}": value for name, value in client.items()},
        "assign": json.dumps({TOPIC: [each.partition for each in stretches]}),
        "startingOffsets": json.dumps({TOPIC: {str(each.partition): each.first for each in stretches}}),
        "endingOffsets": json.dumps({TOPIC: {str(each.partition): each.end for each in stretches}}),
        "failOnDataLoss": "true",
        "groupIdPrefix": GROUP_PREFIX,
        "kafkaConsumer.pollTimeoutMs": milliseconds,
        "minPartitions": str(tasks),
    }
    found = _loaded(spark, options)
    return found.select(c.PARTITION, c.OFFSET, F.unix_millis(c.TIMESTAMP).alias(c.TIMESTAMP), c.KEY, c.VALUE)


def _loaded(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    try:
        return spark.read.format("kafka").options(**options).load()
    except AnalysisException as error:
        if _NO_SOURCE not in str(error):
            raise
        way_out = (
            'give spark-submit --jars "$(python -m groupledger.engine.jars kafka-source)", or leave out reader: spark'
        )
        raise Fault("READER_MISSING", f"this Spark has no Kafka source on its class path: {way_out}") from error


def fault_of_spark(error: str, bootstrap: str) -> Fault | None:
    """Return the fault of a failed read, parsed from Spark's error; None if it is not one of Kafka's."""
    if _LOST.search(error):
        partition = _PARTITION.search(error)
        which = f"partition {partition[1]} of {TOPIC}" if partition else TOPIC
        return log_moved(f"{which} no longer has the offsets that were to be read")
    found = _ERROR.findall(error)
    if not found:
        return None
    name, text = found[-1]  # the innermost cause
    if name == _NO_GROUP:
        said = f"{bootstrap} does not allow reading {TOPIC} through Spark's Kafka source"
        way_out = f"grant Describe on groups whose names begin with {GROUP_PREFIX}, or leave out reader: spark"
        return Fault("KAFKA_NOT_ALLOWED", f"{said}: {way_out}")
    return kafka_fault(_NAMES.get(name, name), text or name, bootstrap, f"reading {TOPIC}")
