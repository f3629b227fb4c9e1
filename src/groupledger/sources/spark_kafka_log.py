"""Read a running cluster's log through Spark's own Kafka source, so that no Python code runs per record.

Its partitions are assigned, never subscribed to: a subscription would make the reader a member of a group, and write to
the log that it reads.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import functions as F

from groupledger.core.faults import Fault
from groupledger.core.kafka_faults import kafka_fault, log_moved
from groupledger.core.lines.log_records import TOPIC
from groupledger.core.log_plan import OffsetRange
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.sources.kafka_client import Address

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


def frame(spark: SparkSession, address: Address, stretches: Sequence[OffsetRange], tasks: int) -> DataFrame:
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


def fault_of(error: str, bootstrap: str) -> Fault | None:
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
