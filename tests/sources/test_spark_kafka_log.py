"""The log through Spark's own Kafka source: what is kept and counted of it, and what its errors mean."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from groupledger.core.faults import Fault
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT
from groupledger.core.log.read_plan import OffsetRange
from groupledger.sources.kafka_log import Address, fault_of_spark, spark_frame
from groupledger.sources.offsets_records import of_topic

KEYS = {0: b"\x00\x02\x00\x01g", 1: b"\x00\x01\x00\x01g", 2: b"\x00\x00\x00\x01g", 5: None, 6: b"\x00", 7: b"\x00\x03"}
"""By offset: a group, offset commits of both versions, no key, and others."""
CAUSE = "Job aborted due to stage failure\nCaused by: org.apache.kafka.common.errors."


@pytest.mark.parametrize("keeps", [False, True])
def test_offset_commits_are_kept_on_request_and_counted_if_not(spark, keeps):
    rows = [(0, offset, 1_700_000_000_123, key, b"v") for offset, key in KEYS.items()]
    schema = "partition int, offset bigint, timestamp bigint, key binary, value binary"
    found = of_topic(spark.createDataFrame(rows, schema), "host:1", "c", [0], offset_commits=keeps)
    kept = sorted((row["offset"], row["key"] and bytes(row["key"]), row["timestamp"]) for row in found.good.collect())
    moment = datetime.fromtimestamp(1_700_000_000.123, UTC).replace(tzinfo=None)
    wanted = [offset for offset in KEYS if keeps or offset not in (1, 2)]
    assert [(offset, key) for offset, key, _ in kept] == [(offset, KEYS[offset]) for offset in wanted]
    assert {time.replace(tzinfo=None) for *_, time in kept} == {moment}
    for arrived in (found.arrivals.observed(), found.arrivals.counted()):
        rest = arrived.rejected + arrived.blank + arrived.other_topic + sum(arrived.left_out.values())
        assert (arrived.entries, arrived.good, rest) == (len(KEYS), len(wanted), len(KEYS) - len(wanted))
        assert arrived.left_out == ({} if keeps else {OFFSET_COMMIT_LEFT_OUT: 2})


def test_without_its_jars_the_remedy_is_said(spark):
    with pytest.raises(Fault, match=r"engine\.jars kafka-source") as caught:
        spark_frame(spark, Address("host:1", {}, 1), [OffsetRange(0, 0, 1)], 1)
    assert caught.value.code == "READER_MISSING"


@pytest.mark.parametrize(
    ("error", "code", "says"),
    [
        (CAUSE + "SaslAuthenticationException: wrong\n\tat x", "KAFKA_REFUSED", "refused the login: wrong;"),
        (CAUSE + "SslAuthenticationException: bad chain", "KAFKA_REFUSED", "no TLS connection to host:1: bad chain"),
        (CAUSE + "TopicAuthorizationException: not you", "KAFKA_NOT_ALLOWED", "Describe and Read on the topic"),
        (CAUSE + "GroupAuthorizationException: no", "KAFKA_NOT_ALLOWED", "groups whose names begin with groupledger-"),
        (CAUSE + "TimeoutException: Timeout of 1000ms", "KAFKA_UNREACHABLE", "check the address"),
        (CAUSE + "UnknownServerException\n", "KAFKA_FAILED", "UnknownServer"),
        ("[KAFKA_DATA_LOSS.X] of __consumer_offsets-7 are gone", "LOG_MOVED", "partition 7 of __consumer_offsets"),
        (CAUSE + "OffsetOutOfRangeException: out", "LOG_MOVED", "run it again"),
        ("java.io.IOException: No space left", None, ""),
    ],
)
def test_what_an_error_means(error, code, says):
    fault = fault_of_spark(error, "host:1")
    assert (fault and fault.code) == code
    assert fault is None or (says in fault.message and "\n" not in fault.message)
