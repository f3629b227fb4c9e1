"""Batches of lines through a parser, without Spark: one row a line, in the types of the form."""

from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql.types import StringType, StructField, StructType

from groupledger.core.lines import listed_topic, log_record, table_row
from groupledger.sources import offsets_log, topic_listings
from groupledger.sources.lines import FOLDER, VALUE, parsed
from groupledger.sources.opening import BLANK, PROBLEM

RECORD = b'{"partition": 1, "offset": 2, "timestamp": 3, "key": "AAE=", "value": null}'
BARE = b'{"offset": 2, "timestamp": 3, "key": null}'
COLUMNS = ["snapshot_id", "topic"]
TEXTS = StructType([StructField(name, StringType()) for name in COLUMNS])
FORMS = [
    pytest.param(offsets_log.FIELDS, log_record, id="log"),
    pytest.param(topic_listings.FIELDS, listed_topic, id="listing"),
    pytest.param(TEXTS, partial(table_row, columns=COLUMNS), id="table"),
]


class Lines:
    """A frame of lines, as far as a parser asks for it."""

    def __init__(self, *lines, folder=None):
        values = [pa.array(lines, pa.binary()), pa.array([folder] * len(lines), pa.string())]
        self.batch = pa.RecordBatch.from_arrays(values, names=[VALUE, FOLDER])

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
    first, second = rows_of(Lines(BARE, RECORD, folder='{"partition":3}'), offsets_log.FIELDS, log_record)
    assert (first["partition"], second["partition"], first[PROBLEM]) == (3, 1, None)
