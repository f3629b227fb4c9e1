"""Batches of lines through a parser, without Spark: one row a line, in the types of the form."""

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StringType, StructField, StructType

from groupledger.core.log.lines import OTHER_TOPIC, listed_topic, log_record, table_row
from groupledger.sources import offsets_records, topic_listings
from groupledger.sources.files import BLOCK, FILE, FOLDER, VALUE, parsed
from groupledger.sources.opening import BLANK, PROBLEM

RECORD = b'{"partition": 1, "offset": 2, "timestamp": 3, "key": "AAE=", "value": null}'
BARE = b'{"offset": 2, "timestamp": 3, "key": null}'
COLUMNS = ["snapshot_id", "topic"]
TEXTS = StructType([StructField(name, StringType()) for name in COLUMNS])
FORMS = [
    pytest.param(offsets_records.FIELDS, log_record, id="log"),
    pytest.param(topic_listings.FIELDS, listed_topic, id="listing"),
    pytest.param(TEXTS, partial(table_row, columns=COLUMNS), id="table"),
]


class Lines:
    """A frame of lines, as far as a parser asks for it; `places`: file and block of each line."""

    def __init__(self, *lines, folder=None, places=()):
        values = [pa.array(lines, pa.binary()), pa.array([folder] * len(lines), pa.string())]
        names = [VALUE, FOLDER]
        if places:
            names += [FILE, BLOCK]
            values += [pa.array(column) for column in zip(*places, strict=True)]
        self.batch = pa.RecordBatch.from_arrays(values, names=names)

    def mapInArrow(self, parse, schema):
        travelled = cloudpickle.loads(cloudpickle.dumps(parse))  # as it reaches a worker
        batches = list(travelled(iter([self.batch, self.batch.slice(0, 0)])))
        assert all(batch.schema.names == schema.names for batch in batches)
        return [row for batch in batches for row in batch.to_pylist()]


def rows_of(lines, fields, parser):
    rows: Any = parsed(lines, fields, parser)
    return rows


@pytest.mark.parametrize(("fields", "parser"), FORMS)
def test_every_line_is_one_row(fields, parser):
    lines = [RECORD, b"", b" \r", b"[]", RECORD * 2, b"\xff", b"x" * 1_000_000]
    rows = rows_of(Lines(*lines), fields, parser)
    assert len(rows) == len(lines)
    assert [row[PROBLEM] for row in rows[1:3]] == [BLANK, BLANK]
    assert [row[PROBLEM].partition(":")[0] for row in rows[3:]] == ["MALFORMED_LINE"] * 4
    assert [row["row"] for row in rows[3:]] == ["[]", RECORD.decode() * 2, "\\xff", "x" * 1_000_000]


def test_what_a_folder_says_stands_for_what_a_line_lacks():
    first, second = rows_of(Lines(BARE, RECORD, folder='{"partition":3}'), offsets_records.FIELDS, log_record)
    assert (first["partition"], second["partition"], first[PROBLEM]) == (3, 1, None)


@pytest.mark.parametrize(("fields", "parser"), FORMS)
def test_a_bad_line_is_told_with_its_file_and_number(fields, parser):
    places = [("file:///a%20b.jsonl", 0)] * 3 + [("s3a://lake/c.jsonl", 0), ("file:///big.jsonl", 4096)]
    rows = rows_of(Lines(b"", RECORD, b"{", b"[]", b"7", places=places), fields, parser)
    told = [row[PROBLEM].split(": ")[1] for row in rows[2:]]
    assert told == ["/a b.jsonl, line 3", "s3a://lake/c.jsonl, line 1", "/big.jsonl, line 1 behind byte 4,096"]
    assert rows[0][PROBLEM] == BLANK
    assert [row["row"] for row in rows[2:]] == ["{", "[]", "7"]


def test_a_record_of_another_topic_has_no_place():
    line = b'{"topic": "orders", "partition": 1, "offset": 2, "timestamp": 3, "key": null, "value": null}'
    (row,) = rows_of(Lines(line, places=[("file:///a.jsonl", 0)]), offsets_records.FIELDS, log_record)
    assert row[PROBLEM] == OTHER_TOPIC


def test_a_file_whose_name_holds_a_secret_is_shown_without_it():
    lines: Any = Lines(b"{", places=[("file:///in/pa%20ss/a.jsonl", 0)])
    read: Any = parsed(lines, offsets_records.FIELDS, log_record, {"/in/pa ss/a.jsonl": "/in/***/a.jsonl"})
    (row,) = read
    assert row[PROBLEM].startswith("MALFORMED_LINE: /in/***/a.jsonl, line 1: ")
