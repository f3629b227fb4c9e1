"""Which column of a table is which field of a record of the log."""

import pytest

from groupledger.core.faults import Fault
from groupledger.core.log.lines import FIELDS, columns_of, layout_of_line, value_at

PLAIN = ["partition", "offset", "timestamp", "key", "value"]
SPARK = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers"]
LAYOUTS = [
    pytest.param(PLAIN, {name: name for name in PLAIN}, id="plain"),
    pytest.param(SPARK, {name: name for name in FIELDS}, id="Spark's Kafka source"),
    pytest.param(
        ["key", "value", "kafka_topic", "kafka_partition", "kafka_offset", "kafka_timestamp"],
        {
            **{name: f"kafka_{name}" for name in ("partition", "offset", "timestamp", "topic")},
            **{"key": "key", "value": "value"},
        },
        id="InsertField",
    ),
    pytest.param(
        ["key", "value", "topic", "timestamp", "kafka_partition", "kafka_offset"],
        {
            **{name: name for name in ("timestamp", "key", "value", "topic")},
            **{"partition": "kafka_partition", "offset": "kafka_offset"},
        },
        id="InsertField behind Archive",
    ),
    pytest.param(
        ["key", "value", *(f"_kafka_metadata_{name}" for name in ("topic", "partition", "offset", "timestamp"))],
        {
            **{name: f"_kafka_metadata_{name}" for name in ("partition", "offset", "timestamp", "topic")},
            **{"key": "key", "value": "value"},
        },
        id="Iceberg's KafkaMetadataTransform",
    ),
    pytest.param(
        [
            "key",
            "value",
            "headers",
            "metadata",
            *(f"metadata.{n}" for n in ("offset", "partition", "timestamp", "topic")),
        ],
        {
            **{name: f"metadata.{name}" for name in ("partition", "offset", "timestamp", "topic")},
            **{"key": "key", "value": "value"},
        },
        id="the envelope of Lenses",
    ),
    pytest.param(
        [*PLAIN, "kafka_offset", "metadata.offset", "kafka_topic"],
        {name: name for name in PLAIN} | {"topic": "kafka_topic"},
        id="our names count where all of them are there",
    ),
]


@pytest.mark.parametrize(("there", "expected"), LAYOUTS)
def test_a_known_layout_needs_no_mapping(there, expected):
    assert columns_of({}, there) == expected
    assert columns_of({}, list(reversed(there))) == expected


def test_what_is_said_counts_before_what_is_recognised():
    there = ["kafka_offset", "o.ff", "kafka_partition", "ts", "key", "value", "kafka_topic", "about"]
    found = columns_of({"offset": "o.ff", "timestamp": "ts", "topic": "about"}, there)
    assert (found["offset"], found["timestamp"], found["topic"]) == ("o.ff", "ts", "about")
    assert (found["partition"], found["key"]) == ("kafka_partition", "key")


UNKNOWN = [
    pytest.param(
        {},
        ["kafka_part", "KAFKA_OFFSET", "event_ts", "k", "payload"],
        [
            *("column partition is missing", "kafka_part, KAFKA_OFFSET", "columns: {partition: kafka_part,"),
            *("offset: KAFKA_OFFSET", "timestamp: event_ts", "key: ...", "value: payload}"),
        ],
        id="nothing is recognised",
    ),
    pytest.param(
        {},
        ["partition", "kafka_offset", "metadata.offset", "timestamp", "key", "value"],
        ["column offset is kafka_offset or metadata.offset", "columns: {offset: kafka_offset}"],
        id="two are",
    ),
    pytest.param(
        {},
        ["kafka_partition", "offset", "timestamp", "key", "value", "kafka_topic", "metadata.topic"],
        ["column topic is kafka_topic or metadata.topic"],
        id="two topics",
    ),
    pytest.param(
        {"offset": "kafka_ofset"},
        [*PLAIN, "kafka_offset"],
        ["column kafka_ofset (columns.offset) is missing", "did you mean kafka_offset?", "it has partition, offset"],
        id="a slip of the pen",
    ),
    pytest.param({}, [], ["column partition is missing", "it has no columns"], id="no columns"),
    pytest.param({}, [f"c{n}" for n in range(100)], ["c0, c1, ", "and 70 more"], id="many columns"),
]


@pytest.mark.parametrize(("given", "there", "words"), UNKNOWN)
def test_what_cannot_be_told_is_asked_for(given, there, words):
    with pytest.raises(Fault) as caught:
        columns_of(given, there)
    assert caught.value.code == "FOREIGN_SCHEMA"
    for each in words:
        assert each in caught.value.message


def test_a_line_says_its_layout_itself():
    envelope = {"key": "a", "metadata": {"partition": 1, "offset": 7, "timestamp": 5, "topic": "t"}, "headers": {}}
    assert layout_of_line({}, envelope)["offset"] == "metadata.offset"
    assert layout_of_line({}, {"partition": 1, "offset": 7})["timestamp"] == "timestamp"
    assert layout_of_line({}, {})["offset"] == "offset"
    assert layout_of_line({"offset": "a.b"}, {"partition": 1, "offset": 7})["offset"] == "a.b"
    two = layout_of_line({}, {"kafka_offset": 1, "metadata": {"offset": 2}, "kafka_partition": 3})
    assert (two["offset"], two["partition"]) == ("offset", "kafka_partition")  # which of the two is not said


def test_a_name_with_a_dot_is_a_key_or_a_way_down():
    assert value_at({"a.b": 1, "a": {"b": 2}}, "a.b") == 1
    assert value_at({"a": {"b": {"c": 2}}}, "a.b.c") == 2
    assert value_at({"a": {"b.c": 2}}, "a.b.c") == 2
    assert value_at({"a": [1]}, "a.b") is None
    assert value_at({}, "a") is None
