"""Lines of other tools, as they come with tickets: each is told by its tool, and where to turn instead."""

from __future__ import annotations

import base64
import json

import pytest

from groupledger.core.log.lines import log_record

KEY, VALUE = bytes([0, 2, 0, 3]) + b"pay", bytes([0, 3, 0, 8]) + b"consumer\xff\xff"
RECORD = {"partition": 0, "offset": 5, "timestamp": 1795262400000}
TOPIC = {"topic": "__consumer_offsets"}
BASE64 = {"key": base64.b64encode(KEY).decode(), "value": base64.b64encode(VALUE).decode()}
TEXT = {"key": KEY.decode(), "value": VALUE.decode("utf-8", "replace")}
KCAT = TOPIC | {"partition": 0, "offset": 5, "tstype": "create", "ts": 1795262400000, "broker": 1}

DESCRIBED = "OTHER_TOOL: the line is from kafka-consumer-groups --describe"
DUMPED = "OTHER_TOOL: the line is from kafka-dump-log; expected the segments that it was run on (kind segments)"
CAST = "OTHER_TOOL: the line is of an asciinema recording"
FORMATTER = "NO_POSITION: the line is from Kafka's group metadata formatter"
OLD_FORMATTER = "NO_POSITION: the line is from an older kafka-console-consumer with a formatter"
BATCH = b"baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1 lastSequence: -1 producerId: -1 isControl: false"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID", DESCRIBED),
        (b"GROUP           CONSUMER-ID     HOST       CLIENT-ID       #PARTITIONS", DESCRIBED),
        (b"GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           #MEMBERS", DESCRIBED),
        (b"pay             orders          0          10              10              0  m1  /10.0.0.1  c", DESCRIBED),
        (b"pay             orders          1          4               90              86  -  -  -  ", DESCRIBED),
        (b"pay             orders          1          -               90              -  -  -  -", DESCRIBED),
        (b"Consumer group 'pay' has no active members.", DESCRIBED),
        (b"Warning: Consumer group 'pay' is rebalancing.", DESCRIBED),
        (b"TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID", DESCRIBED),
        (b"Error: Consumer group 'pay' does not exist.", DESCRIBED),
        (b"Dumping /var/kafka/__consumer_offsets-0/00000000000000000000.log", DUMPED),
        (b"Log starting offset: 0", DUMPED),
        (BATCH, DUMPED),
        (b'| offset: 0 CreateTime: 1795262400000 keySize: 9 key: {"type":"2","data":{"group":"pay"}}', DUMPED),
        (b"offset: 3 position: 120 CreateTime: 1795262400000 isvalid: true keysize: 9", DUMPED),
        (b'{"version": 2, "width": 80, "height": 24, "timestamp": 1795262400}', CAST),
        (b'{"version":3,"term":{"cols":80,"rows":24}}', CAST),
        (b'[0.248848, "o", "\\u001b[1mgroupledger"]', CAST),
        (b'{"key":{"type":2,"data":{"group":"pay"}},"value":{"version":3,"data":{}}}', FORMATTER),
        (b"pay::GroupMetadata(groupId=pay, generation=1, protocolType=Some(consumer))", OLD_FORMATTER),
        (b"[pay,orders,0]::OffsetAndMetadata(offset=4, leaderEpoch=Optional.empty, metadata=)", OLD_FORMATTER),
    ],
)  # fmt: skip
def test_a_line_of_another_tool_names_it(line, told):
    found = log_record(line)
    assert (found.key, found.value) == (None, None)
    assert str(found.problem).startswith(told)
    assert "expected " in found.problem or "read the cluster" in found.problem


def problem(line, **columns):
    return str(log_record(json.dumps(line).encode(), columns=columns).problem)


def test_lines_of_kcat_say_which_columns_to_name():
    hint = "it has topic, partition, offset, tstype, ts, broker, key, payload; say in its source which it is: columns: "
    line = KCAT | {"key": BASE64["key"], "payload": BASE64["value"]}
    assert f"{hint}{{timestamp: ts, value: payload}}" in problem(line)
    assert f"{hint}{{value: payload}}" in problem(line, timestamp="ts")  # no tombstones by mistake
    assert problem(line, timestamp="ts", value="payload") == "None"
    assert "columns.value" in problem(line, timestamp="ts", value="body")


@pytest.mark.parametrize("name", ["payload", "body", "message", "content"])
def test_a_value_under_another_name_is_no_tombstone(name):
    line = RECORD | {"key": BASE64["key"], name: BASE64["value"]}
    assert f"columns: {{value: {name}}}" in problem(line)
    assert problem(line, value=name) == "None"


def test_lines_of_a_rest_proxy_have_no_time():
    told = problem(TOPIC | BASE64 | {"partition": 0, "offset": 5})
    assert "columns: {timestamp: ...}; a REST proxy gives no timestamp: read the cluster itself" in told


@pytest.mark.parametrize("line", [RECORD | TEXT, TOPIC | RECORD | TEXT, KCAT | {"key": TEXT["key"], "payload": ""}])
def test_bytes_that_were_written_as_text_are_said_to_be_lost(line):
    told = problem(line, timestamp="ts", value="payload") if "ts" in line else problem(line)
    assert told.startswith("BAD_BASE64: key is ")
    assert "not as text, in which bytes are lost (Spark: base64(key) for CAST(key AS STRING); rpk: %k{base64}" in told


@pytest.mark.parametrize("name", ["key", "value"])
def test_hexadecimal_is_told_from_base64(name):
    raw = {"key": KEY, "value": VALUE}[name]
    for text in (raw.hex(), raw.hex().upper(), "0x" + raw.hex(), r"\x" + raw.hex(), raw.hex(" "), raw.hex(":")):
        told = problem(RECORD | BASE64 | {name: text})
        assert told.startswith(f"BAD_BASE64: {name} is ")
        assert "not in hexadecimal" in told


def test_what_is_base64_is_never_taken_for_hexadecimal():
    """Kafka's record types and versions are small: their base64 begins with A."""
    for kind in range(256):
        text = base64.b64encode(bytes([0, kind, 0, 0, 0])).decode()
        assert problem(RECORD | {"key": text, "value": None}) == "None"


def test_a_malformed_line_shows_its_beginning():
    assert str(log_record(b"what is this? " * 100).problem).endswith(
        'it begins "what is this? what is this? what is this? what is this? what"'
    )
    assert str(log_record(b'\xef\xbb\xbf  {"a": 1').problem).endswith('it begins "{\\"a\\": 1"')


def test_a_line_without_a_value_is_a_tombstone():
    assert log_record(json.dumps(RECORD | {"key": BASE64["key"]}).encode()).problem is None
