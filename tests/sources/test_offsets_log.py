"""The offsets log from files and tables: every record, and what is none."""

import base64
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from pyspark.sql import functions as F

from groupledger.config.loading import CAPTURES
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT
from groupledger.sources import offsets_records
from groupledger.sources.files import list_files, table_files
from groupledger.sources.offsets_records import group_id
from groupledger.sources.opening import SourceFault
from groupledger.tables import LOG_RECORDS, QUARANTINE
from groupledger.tables import columns as c

FIELDS = ("partition", "offset")
RECORDS = {"dev": 428, "edge": 988, "compacted": 63, "storm": 38}
LINE = {"partition": 1, "offset": 7, "timestamp": 1795262898320, "key": "AAIAAWE=", "value": None}


def read_json(spark, path, cluster_id):
    return offsets_records.read_json(spark, list_files(spark, path), cluster_id)


def read_table(spark, path, kind, cluster_id, **columns):
    return offsets_records.read_table(spark, table_files(spark, path, kind), kind, cluster_id, columns)


def capture(name):
    with gzip.open(CAPTURES / name / "offsets.jsonl.gz", "rt") as file:
        return [json.loads(line) for line in file]


def as_read(rows):
    return [record for record, _ in with_groups(rows)]


def with_groups(rows):
    """Return the records that were read in order, each with its group."""
    columns = (c.LOG_PARTITION, c.OFFSET, F.unix_millis(c.TIMESTAMP), c.KEY, c.VALUE, c.GROUP_ID)
    found = rows.good.select(*columns).collect()
    return sorted(((p, o, t, bytes(k), None if v is None else bytes(v)), group) for p, o, t, k, v, group in found)


def as_written(lines):
    return sorted(
        (
            line["partition"],
            line["offset"],
            line["timestamp"],
            base64.b64decode(line["key"]),
            None if line["value"] is None else base64.b64decode(line["value"]),
        )
        for line in lines
    )


@pytest.mark.parametrize("name", RECORDS)
def test_every_captured_record_is_read_as_it_is(spark, name):
    rows = read_json(spark, str(CAPTURES / name / "offsets.jsonl.gz"), "dev")
    assert rows.good.columns == [column for column in LOG_RECORDS.columns if column != c.ATTEMPT_ID]
    lines = capture(name)
    assert len(lines) == RECORDS[name]
    found = with_groups(rows)
    assert [record for record, _ in found] == as_written(lines)
    assert (rows.rejections(), rows.rejected.count()) == (0, 0)
    for (_, _, _, key, _), group in found:
        assert group == key[4 : 4 + int.from_bytes(key[2:4])].decode()


@pytest.mark.parametrize("kind", ["parquet", "delta"])
@pytest.mark.parametrize("binary", [True, False], ids=["bytes", "base64"])
def test_tables_give_the_same_records(spark, tmp_path, kind, binary):
    lines = capture("storm")
    kinds = {"partition": pa.int32(), "offset": pa.int64()}
    moment, data = (pa.timestamp("us", "UTC"), pa.binary()) if binary else (pa.int64(), pa.string())
    kinds |= {"timestamp": moment, "key": data, "value": data}
    columns = {name: [line[name] for line in lines] for name in kinds}
    if binary:
        columns["timestamp"] = [1_000 * millis for millis in columns["timestamp"]]
        for name in ("key", "value"):
            columns[name] = [text and base64.b64decode(text) for text in columns[name]]
    write(pa.table({name: pa.array(columns[name], kind) for name, kind in kinds.items()}), tmp_path / "log", kind)
    found = read_table(spark, str(tmp_path / "log"), kind, "dev")
    assert as_read(found) == as_written(lines)
    assert found.rejected.count() == 0


def write(table, folder, kind):
    """Write the table as one file, without a job of Spark."""
    if kind == "delta":
        write_deltalake(str(folder), table)
    else:
        folder.mkdir()
        pq.write_table(table, folder / "part-0.parquet")


def storm_as(spark, *columns):
    rows = spark.createDataFrame(
        capture("storm"), "partition int, offset bigint, timestamp bigint, key string, value string"
    )
    return rows.withColumns({name: F.unbase64(name) for name in (c.KEY, c.VALUE)}).selectExpr(*columns)


SPARK = (
    "key",
    "value",
    "'__consumer_offsets' AS topic",
    "partition",
    "offset",
    "timestamp_millis(timestamp) AS timestamp",
)
PLACE = "named_struct('offset', offset, 'partition', partition, 'timestamp', timestamp, 'topic', '__consumer_offsets')"
NTZ = "cast(timestamp_millis(timestamp) AS timestamp_ntz)"
LAYOUTS = [
    pytest.param((*SPARK, "0 AS timestampType", "array('h') AS headers"), {}, id="Spark's Kafka source"),
    pytest.param(
        ("key", "value", *(f"{name} AS kafka_{name}" for name in FIELDS[:2]), f"{NTZ} AS kafka_timestamp"),
        {},
        id="Connect",
    ),
    pytest.param(("key", "value", "map('a', 1) AS headers", f"{PLACE} AS metadata"), {}, id="envelope"),
    pytest.param(
        ("struct(partition AS p, key AS `k.y`) AS a", "offset AS `my off`", f"{NTZ} AS t", "base64(value) AS `v``w`"),
        {"partition": "a.p", "key": "a.k.y", "offset": "my off", "timestamp": "t", "value": "v`w"},
        id="of one's own",
    ),
]


@pytest.mark.parametrize(("columns", "named"), LAYOUTS)
def test_tables_of_other_layouts_give_the_same_records(spark, tmp_path, columns, named):
    path = str(tmp_path / "log")
    storm_as(spark, *columns).write.parquet(path)
    kept = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = read_table(spark, path, "parquet", "dev", **named)
        assert as_read(found) == as_written(capture("storm"))
    finally:
        spark.conf.set("spark.sql.session.timeZone", kept)
    assert found.rejected.count() == 0


def test_lines_that_spark_wrote_of_its_own_layout_are_read(spark, tmp_path):
    path = str(tmp_path / "log")
    storm_as(spark, *SPARK).write.json(path)
    assert as_read(read_json(spark, path, "dev")) == as_written(capture("storm"))


def names(cases):
    return [case.id for case in cases]


BAD = [
    pytest.param('{"partition":0,"offset":3,"timest', "MALFORMED_LINE", id="half a line"),
    pytest.param("not json", "MALFORMED_LINE", id="no json"),
    pytest.param(json.dumps(LINE | {"offset": "x"}), "BAD_OFFSET", id="a number that is text"),
    pytest.param(json.dumps(LINE | {"offset": None}), "BAD_OFFSET", id="no offset"),
    pytest.param(json.dumps(LINE | {"offset": -4}), "BAD_OFFSET", id="negative offset"),
    pytest.param(json.dumps(LINE | {"partition": -1}), "BAD_PARTITION", id="negative partition"),
    pytest.param(json.dumps(LINE | {"timestamp": None}), "BAD_TIMESTAMP", id="no timestamp"),
    pytest.param(json.dumps(LINE | {"key": "%%"}), "BAD_BASE64", id="key"),
    pytest.param(json.dumps(LINE | {"value": "AAAA="}), "BAD_BASE64", id="value"),
]


@pytest.fixture(scope="module")
def bad_lines(spark, tmp_path_factory):
    """What is read of one file with all BAD lines, each between two good ones: rows, path, good offsets, rejected."""
    file = tmp_path_factory.mktemp("bad") / "log.jsonl"
    lines = []
    for place, case in enumerate(BAD):
        before, after = (json.dumps(LINE | {"offset": offset}) for offset in neighbours(place))
        lines += [before, str(case.values[0]), after]
    file.write_text("\n".join(lines) + "\n")
    rows = read_json(spark, str(file), "dev")
    offsets = [record[1] for record in as_read(rows)]
    rejected = rows.rejected.collect()
    return rows, str(file), offsets, rejected


def neighbours(place):
    return 100 + 2 * place, 101 + 2 * place


@pytest.mark.parametrize(("place", "line", "code"), [(at, *case.values) for at, case in enumerate(BAD)], ids=names(BAD))
def test_a_bad_line_is_kept_and_its_neighbours_are_read(bad_lines, place, line, code):
    _, file, offsets, all_rejected = bad_lines
    assert [offset for offset in offsets if offset in neighbours(place)] == [*neighbours(place)]
    [rejected] = [row for row in all_rejected if row[c.ROW] == line]
    assert (rejected[c.CODE], rejected[c.STAGE], rejected[c.SOURCE]) == (code, "decode", file)
    assert "expected" in rejected[c.MESSAGE]


def test_bad_lines_are_counted_beside_good_ones(bad_lines):
    rows, _, offsets, rejected = bad_lines
    assert offsets == [offset for place in range(len(BAD)) for offset in neighbours(place)]
    assert rows.rejections() == len(rejected) == len(BAD)
    assert rows.rejected.columns == [column for column in QUARANTINE.columns if column != c.ATTEMPT_ID]
    arrived = rows.arrivals.observed()
    assert (arrived.entries, arrived.good, arrived.rejected, arrived.blank) == (3 * len(BAD), 2 * len(BAD), len(BAD), 0)
    assert arrived == rows.arrivals.counted()


KEYS = [
    pytest.param(b"\x00\x02\x00\x01a", "a", id="group metadata"),
    pytest.param(b"\x00\x01\x00\x01a\x00\x01t\x00\x00\x00\x00", "a", id="a commit goes on after the group"),
    pytest.param(b"\x00\x63\x00\x03\xc3\xbcx", "\u00fcx", id="an unknown type, a name in UTF-8"),
    pytest.param(b"\x00\x02\x00\x00", "", id="an empty name"),
    pytest.param(b"\x00\x02\x00\x02a", None, id="cut"),
    pytest.param(b"\x00\x02\xff\xffa", None, id="negative length"),
    pytest.param(b"\x00\x02\x00", None, id="no length"),
    pytest.param(b"", None, id="empty"),
    pytest.param(b"\x00\x02\x00\x01\xff", None, id="no UTF-8"),
    pytest.param(None, None, id="no key"),
]


@pytest.fixture(scope="module")
def groups_of_keys(spark):
    """The groups of KEYS, by place."""
    keys = [(at, case.values[0]) for at, case in enumerate(KEYS)]
    rows = spark.createDataFrame(keys, "at int, key binary")
    return dict(rows.select("at", group_id(F.col("key"))).collect())


@pytest.mark.parametrize(("at", "expected"), [(at, case.values[1]) for at, case in enumerate(KEYS)], ids=names(KEYS))
def test_the_group_of_a_key(groups_of_keys, at, expected):
    assert groups_of_keys[at] == expected


def test_a_record_without_a_group_still_flows(spark, tmp_path):
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps(LINE | {"key": "AAI="}) + "\n" + json.dumps(LINE | {"key": None}) + "\n")
    rows = read_json(spark, str(file), "dev").good.collect()
    assert [row[c.GROUP_ID] for row in rows] == [None, None]


@pytest.mark.parametrize("kind", ["json", "parquet", "delta"])
def test_what_is_not_there_is_named(spark, tmp_path, kind):
    path = str(tmp_path / "nothing")
    with pytest.raises(SourceFault, match="nothing") as caught:
        read_json(spark, path, "dev") if kind == "json" else read_table(spark, path, kind, "dev")
    assert caught.value.code == "SOURCE_MISSING"


FOREIGN = [
    pytest.param("partition int, offset bigint, timestamp bigint, key binary", "column value is missing", id="missing"),
    pytest.param(
        "partition int, offset string, timestamp bigint, key binary, value binary", "column offset is string", id="type"
    ),
    pytest.param(
        "partition int, metadata struct<offset: string>, timestamp bigint, key binary, value binary",
        "column metadata.offset (offset) is string; expected tinyint or",
        id="type of a field",
    ),
    pytest.param(
        "partition int, my_offset bigint, timestamp bigint, key binary, value binary",
        "say in its source which it is: columns: {offset: my_offset}",
        id="another name",
    ),
]


@pytest.mark.parametrize(("schema", "words"), FOREIGN)
def test_a_foreign_table_is_named(spark, tmp_path, schema, words):
    spark.createDataFrame([], schema).write.parquet(str(tmp_path / "log"))
    with pytest.raises(SourceFault, match="log") as caught:
        read_table(spark, str(tmp_path / "log"), "parquet", "dev")
    assert caught.value.code == "FOREIGN_SCHEMA"
    assert words in caught.value.message


@pytest.mark.parametrize("kind", ["jsonl", "bytes", "base64"])
def test_offset_commits_are_left_out_on_request_and_counted(spark, tmp_path, kind):
    """All but one whose row is rejected; a key that is null, short or of another type stays."""
    keys = {
        0: b"\0\1\0\1g",
        1: b"\0\0\0\1g",
        2: b"\0\2\0\1g",
        3: None,
        4: b"\0",
        5: b"\0\3",
        6: b"\1\0",
        -1: b"\0\1\0\1g",
    }
    lines = [
        {
            "partition": 3,
            "offset": offset,
            "timestamp": 1_700_000_000_000,
            "key": key and base64.b64encode(key).decode(),
        }
        for offset, key in keys.items()
    ]
    path = tmp_path / "log"
    if kind == "jsonl":
        path.write_text("".join(f"{json.dumps({**line, 'value': None})}\n" for line in lines), encoding="utf-8")
        rows = offsets_records.read_json(spark, list_files(spark, str(path)), "dev", offset_commits=False)
    else:
        given = spark.createDataFrame(lines, "partition int, offset bigint, timestamp bigint, key string")
        key = F.unbase64("key") if kind == "bytes" else F.col("key")
        given.withColumns({"key": key, "value": F.lit(None).cast("binary")}).write.parquet(str(path))
        files = table_files(spark, str(path), "parquet")
        rows = offsets_records.read_table(spark, files, "parquet", "dev", offset_commits=False)
    assert sorted(row[c.OFFSET] for row in rows.good.select(c.OFFSET).collect()) == [2, 3, 4, 5, 6]
    assert (rows.rejections(), [row[c.CODE] for row in rows.rejected.collect()]) == (1, ["BAD_OFFSET"])
    for arrived in (rows.arrivals.observed(), rows.arrivals.counted()):
        rest = arrived.blank + arrived.other_topic + sum(arrived.left_out.values())
        assert (arrived.entries, arrived.good, arrived.rejected, rest) == (8, 5, 1, 2)
        assert arrived.left_out == {OFFSET_COMMIT_LEFT_OUT: 2}
