"""Lines of text into rows: exactly one object on a line, each number within its bounds, and nothing raises."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.log.lines import LATEST_MS, OTHER_TOPIC, as_text, is_blank, listed_topic, log_record, table_row
from tests.examples import examples

RECORD = {"partition": 1, "offset": 7, "timestamp": 1795262898320, "key": "AAIAAWE=", "value": None}
LISTED = {"ts": 1795262893752, "topic": "orders", "topic_id": "6kTR4yJfQIq7HpOsWZpVHg", "partitions": 7, "racks": ["r"]}
GOOD = json.dumps(RECORD).encode()
COLUMNS = ("snapshot_id", "offset", "topics")


def parsers(line):
    """Fields and problem of the line as each parser reads it."""
    return [log_record(line), listed_topic(line), table_row(line, columns=COLUMNS)]


def code(found):
    return (found[-1] or "").partition(": ")[0]


def test_a_record_is_read_as_it_stands():
    assert log_record(GOOD) == (1, 7, 1795262898320, b"\x00\x02\x00\x01a", None, None)
    tight = json.dumps(RECORD | {"value": "AAE="}, separators=(",", ":")).encode()
    assert log_record(b"\xef\xbb\xbf \t" + tight + b" \r") == (
        1,
        7,
        1795262898320,
        b"\x00\x02\x00\x01a",
        b"\x00\x01",
        None,
    )
    without = {name: RECORD[name] for name in RECORD if name != "value"}  # as Spark writes a null
    assert log_record(json.dumps(without).encode()).problem is None


def renamed(line, **names):
    return json.dumps({names.get(name, name): value for name, value in line.items()}).encode()


def test_keys_may_have_other_names():
    as_it_stands = log_record(GOOD)
    line = renamed(RECORD, partition="p", offset="o")
    assert log_record(line, columns={"partition": "p", "offset": "o"}) == as_it_stands
    nested = json.dumps({"meta": {"at": {"p": 1, "o": 7}}, "ts": RECORD["timestamp"], "key": RECORD["key"]}).encode()
    named = {"partition": "meta.at.p", "offset": "meta.at.o", "timestamp": "ts"}
    assert log_record(nested, columns=named) == as_it_stands
    assert code(log_record(GOOD, columns={"offset": "o"})) == "BAD_OFFSET"
    assert log_record(line, {"topic": "other"}, {"partition": "p", "offset": "o"}).problem == OTHER_TOPIC


def test_known_layouts_need_no_names():
    as_it_stands = log_record(GOOD)
    assert log_record(renamed(RECORD, partition="kafka_partition", offset="kafka_offset")) == as_it_stands
    content = {name: RECORD[name] for name in ("key", "value")}
    place = {name: RECORD[name] for name in ("partition", "offset", "timestamp")} | {"topic": "__consumer_offsets"}
    assert log_record(json.dumps(content | {"headers": {}, "metadata": place}).encode()) == as_it_stands
    other = json.dumps(content | {"metadata": place | {"topic": "orders"}}).encode()
    assert log_record(other).problem == OTHER_TOPIC
    assert log_record(renamed(RECORD, offset="kafka_offset"), {"partition": 1}) == as_it_stands


FORMATTED = b'{"key":{"version":2,"data":{"group":"g"}},"value":{"version":3,"data":{"members":[]}}}'


@pytest.mark.parametrize(
    "line",
    [FORMATTED, FORMATTED + FORMATTED, FORMATTED.replace(b'"version":2', b'"type":2'), b' { "key" : {"version":'],
)
def test_what_the_console_consumers_formatter_prints_is_told_apart(line):
    """It ends no line behind a record: a whole log is one line."""
    found = log_record(line)
    assert (code(found), found[:-1]) == ("NO_POSITION", (None,) * 5)
    assert "no partition, offset and timestamp" in found.problem


@pytest.mark.parametrize(
    ("text", "millis"),
    [
        ("2026-11-21T12:08:18.320Z", 1795262898320),
        ("2026-11-21T13:08:18.320999+01:00", 1795262898320),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2026-11-21T12:08:18.320", None),
        ("1969-12-31T23:59:59.998Z", None),
        ("9999-12-31T23:59:59.999-23:59", None),
        ("1795262898320", None),
        ("", None),
    ],
)
def test_a_time_may_be_a_text_with_its_zone(text, millis):
    found = log_record(json.dumps(RECORD | {"timestamp": text}).encode())
    assert found.timestamp == millis
    assert code(found) == ("" if millis is not None else "BAD_TIMESTAMP")
    assert found.problem is None or "2026-11-21T14:00:00.000Z" in found.problem


@pytest.mark.parametrize("text", ["AAIAAWE=", "AAIAAWE", "AAIA\nAWE=\n", "AA IA AWE"])
def test_base64_may_come_in_lines_or_without_padding(text):
    assert log_record(json.dumps(RECORD | {"key": text}).encode()).key == b"\x00\x02\x00\x01a"


NO_OBJECT = [
    pytest.param(GOOD + GOOD, "text stands behind it", id="two objects"),
    pytest.param(GOOD + b" " + GOOD, "text stands behind it", id="two objects with a space between"),
    pytest.param(GOOD + b"x", "text stands behind it", id="text behind"),
    pytest.param(GOOD + b"\x00", "text stands behind it", id="a NUL behind"),
    pytest.param(GOOD + b"\x0c", "text stands behind it", id="white space that JSON has not"),
    pytest.param(b"[]", "it holds an array", id="an empty array"),
    pytest.param(b"[" + GOOD + b"]", "it holds an array", id="an array of a record"),
    pytest.param(b"[" + GOOD + b"," + GOOD + b"]", "it holds an array", id="an array of two"),
    pytest.param(b"null", "it holds null", id="null"),
    pytest.param(b"7", "it holds a number", id="a number"),
    pytest.param(b"7.5", "it holds a number", id="a fraction"),
    pytest.param(b'"a"', "it holds a text", id="a text"),
    pytest.param(b"true", "it holds true or false", id="a truth"),
    pytest.param(GOOD[:-1] + b',"offset":8}', 'the key "offset" stands in it twice', id="a key twice"),
    pytest.param(GOOD[:-1] + b',"x":{"a":1,"a":2}}', 'the key "a" stands in it twice', id="a key twice inside"),
    pytest.param(GOOD[:-1] + b',"x":NaN}', "NaN is no JSON", id="NaN"),
    pytest.param(GOOD[:-1] + b',"x":-Infinity}', "-Infinity is no JSON", id="infinity"),
    pytest.param(GOOD[:-1] + b',"x":' + b"9" * 5000 + b"}", "digits", id="5,000 digits"),
    pytest.param(b'{"a":' * 100_000, "recursion", id="brackets without end"),
    pytest.param(b"[" * 1_000_000, "recursion", id="a million brackets"),
    pytest.param(GOOD[:30], "Expecting", id="half a line"),
    pytest.param(b'{"a":"\xff"}', "utf-8", id="no UTF-8"),
    pytest.param(b"\x00" * 9, "Expecting value", id="zeros"),
    pytest.param(b"", "Expecting value", id="nothing"),
    pytest.param(GOOD.decode().encode("utf-16"), "utf-8", id="UTF-16"),
]


@pytest.mark.parametrize(("line", "words"), NO_OBJECT)
def test_a_line_is_exactly_one_object(line, words):
    for found in parsers(line):
        assert code(found) == "MALFORMED_LINE"
        assert words in found[-1]
        assert "expected exactly one object on the line" in found[-1]
        assert all(value is None for value in found[:-1])


@pytest.mark.parametrize("line", [b"", b" ", b"\r", b"\t \r", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r"])
def test_blank_lines_are_blank(line):
    assert is_blank(line)
    assert not is_blank(line + b"x")


NUMBERS = {
    "partition": [-1, 2**31, 3_000_000_000, 2**63, 10**400, 1.0, 1.5, 1e400, True, "1", None, [1], {"a": 1}],
    "offset": [-1, 2**63 - 1, 2**63, -(10**400), 1.0, False, "1", None, [], {}],
    "timestamp": [-2, LATEST_MS + 1, 9223372036854775, 9223372036854775807, 1.0, 1e3, True, "2026-11-21", None],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values])
def test_a_number_out_of_bounds_is_rejected_and_the_other_fields_are_kept(name, value):
    found = log_record(json.dumps(RECORD | {name: value}).replace("Infinity", "1e400").encode())
    assert code(found) == f"BAD_{name.upper()}"
    assert f"{name} is " in found.problem
    assert "expected " in found.problem
    assert len(found.problem or "") < 300
    left = {field: number for field, number in RECORD.items() if field in NUMBERS and field != name}
    assert {field: getattr(found, field) for field in left} == left


@pytest.mark.parametrize(
    ("name", "value"),
    [("partition", 2**31 - 1), ("partition", 0), ("offset", 2**63 - 2), ("timestamp", -1), ("timestamp", LATEST_MS)],
)
def test_the_ends_of_a_range_are_in_it(name, value):
    found = log_record(json.dumps(RECORD | {name: value}).encode())
    assert (getattr(found, name), found.problem) == (value, None)


@pytest.mark.parametrize("value", ["%%", "AAAA=", "A", "\u00e9", 7, True, ["AA=="], "\ud800"])
def test_bytes_are_base64(value):
    for name in ("key", "value"):
        assert code(log_record(json.dumps(RECORD | {name: value}).encode())) == "BAD_BASE64"


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        ("__consumer_offsets", ""), (None, ""), ("orders", OTHER_TOPIC), ("", OTHER_TOPIC),
        (7, "BAD_TOPIC"), ("\ud800", "BAD_TOPIC"), (["__consumer_offsets"], "BAD_TOPIC"),
    ],
)  # fmt: skip
def test_records_of_another_topic_are_none_of_ours(topic, expected):
    assert code(log_record(json.dumps(RECORD | {"topic": topic}).encode())) == expected
    assert code(log_record(json.dumps(RECORD | {"topic": topic, "offset": -1}).encode())) == (expected or "BAD_OFFSET")


LISTINGS = [
    pytest.param({"ts": -1}, "BAD_MOMENT", id="the moment before every listing"),
    pytest.param({"ts": 9223372036854775807}, "BAD_MOMENT", id="beyond Spark"),
    pytest.param({"ts": 9223372036854775}, "BAD_MOMENT", id="beyond Python"),
    pytest.param({"ts": True}, "BAD_MOMENT", id="a truth"),
    pytest.param({"ts": 1.0}, "BAD_MOMENT", id="a fraction"),
    pytest.param({"ts": "1"}, "BAD_MOMENT", id="a text"),
    pytest.param({"topic": ""}, "BAD_TOPIC", id="an empty name"),
    pytest.param({"topic": 5}, "BAD_TOPIC", id="a number for a name"),
    pytest.param({"topic": "\ud800"}, "BAD_TOPIC", id="half a surrogate pair"),
    pytest.param({"topic_id": 5}, "BAD_TOPIC_ID", id="a number for an id"),
    pytest.param({"partitions": 2**31}, "BAD_PARTITION_COUNT", id="too many"),
    pytest.param({"partitions": 1.5}, "BAD_PARTITION_COUNT", id="a fraction of a partition"),
    pytest.param({"racks": "r"}, "BAD_RACKS", id="a text for racks"),
    pytest.param({"racks": [1]}, "BAD_RACKS", id="numbers for racks"),
    pytest.param({"racks": [["r"], "s"]}, "BAD_RACKS", id="both forms of racks"),
    pytest.param({"racks": {"a": 1}}, "BAD_RACKS", id="an object for racks"),
]


@pytest.mark.parametrize(("changed", "expected"), LISTINGS)
def test_a_wrong_listing_still_says_that_its_topic_was_there(changed, expected):
    found = listed_topic(json.dumps(LISTED | changed).encode())
    assert code(found) == expected
    assert found.topic == (None if expected == "BAD_TOPIC" else "orders")
    assert found.ts == (None if expected == "BAD_MOMENT" else LISTED["ts"])


def test_a_listing_is_read_as_it_stands():
    assert listed_topic(json.dumps(LISTED).encode()) == (
        1795262893752, "orders", "6kTR4yJfQIq7HpOsWZpVHg", 7, None, ["r"], None
    )  # fmt: skip
    by_partition = [["a", None], ["b"]]
    assert listed_topic(json.dumps(LISTED | {"racks": by_partition}).encode())[4:] == (by_partition, None, None)
    assert listed_topic(json.dumps(LISTED | {"racks": ["a", "b"]}).encode())[4:] == (None, None, None)


def test_a_table_row_is_the_text_of_each_column():
    line = b'{"snapshot_id": "a\\"", "offset": 18446744073709551616, "topics": ["\xc3\xbc", 1.50], "else": {}}'
    assert table_row(line, columns=COLUMNS) == ('a"', "18446744073709551616", '["\u00fc", "1.50"]', None)
    assert table_row(b'{"offset": true, "topics": 1e400}', columns=COLUMNS) == (None, "true", "1e400", None)
    assert code(table_row(b'{"snapshot_id": "\\ud800"}', columns=COLUMNS)) == "BAD_VALUE"
    assert code(table_row(b'{"topics": ["\\ud800"]}', columns=COLUMNS)) == "BAD_VALUE"


def test_a_folder_gives_what_its_lines_lack():
    bare = json.dumps({name: RECORD[name] for name in RECORD if name != "partition"}).encode()
    assert log_record(bare, {"partition": 3, "date": "2026-11-21"}).partition == 3
    assert log_record(GOOD, {"partition": 3}).partition == 1
    assert code(log_record(bare, {"partition": "x"})) == "BAD_PARTITION"
    assert code(log_record(bare, {"partition": 3, "topic": "orders"})) == OTHER_TOPIC
    assert table_row(b"{}", {"offset": 7}, columns=COLUMNS) == (None, "7", None, None)


def test_a_line_is_kept_as_text():
    assert as_text(b'{"a": "\xc3\xbc\xff"}') == '{"a": "\u00fc\\xff"}'


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([2**63, -1, "\ud800", 10**400]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from([*RECORD, *LISTED, *COLUMNS])
LINES = st.dictionaries(NAMES, VALUES).map(lambda found: json.dumps(found).encode()) | st.binary()


@given(LINES, st.binary(max_size=3), st.integers(0, 60))
@settings(max_examples=examples(100), deadline=None)
def test_no_line_raises_and_what_comes_out_fits_its_column(line, behind, cut):
    for one in (line, line + behind, line[:cut]):
        record, topic, row = parsers(one)
        assert as_text(one).encode() is not None
        if record.problem is None:
            assert 0 <= record.partition < 2**31
            assert 0 <= record.offset < 2**63
            assert -1 <= record.timestamp <= LATEST_MS
        if topic.problem is None:
            assert 0 <= topic.ts <= LATEST_MS
            assert 0 <= topic.partitions < 2**31
            assert topic.topic.encode()
        for text in (*row, record.problem, topic.problem):
            assert text is None or text.encode() is not None
