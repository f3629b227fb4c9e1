"""Records of a cluster that are few enough to be read without tasks: what comes of them is what Spark gives."""

from __future__ import annotations

import pyarrow as pa
import pytest

from groupledger.core.log.read_plan import OffsetRange
from groupledger.sources import kafka_log, offsets_records
from groupledger.sources.kafka_log import BATCH, Address, StretchReader
from groupledger.sources.offsets_records import named_group, without_spark

KEYS = [
    None,
    b"",
    b"\x00\x02\x00",
    b"\x00\x02\x00\x00",
    b"\x00\x02\x00\x01g",
    b"\x00\x02\x00\x02g",
    b"\x00\x02\x00\x01gmore",
    b"\x00\x02\x00\x02\xc3\xa9",
    b"\x00\x02\x00\x02\xc3g",
    b"\x00\x02\x00\x03\xed\xa0\x80",
    b"\x00\x02\xff\xffg",
    b"\x00\x00\x00\x00",
    b"\x00\x00\x00\x01",
    b"\x00\x00\x00\x01a",
]
TIMES = [-1, 0, 1_795_262_400_123]
VALUES = [None, b"", b"v"]


def stretches(keys=KEYS, times=TIMES, values=VALUES):
    cycle = [
        (3, at, times[at % len(times)], key, values[at % len(values)], at % 3 or None, None, None)
        for at, key in enumerate(keys * 2)
    ]
    counts = (3, None, None, None, None, None, "ENTRIES", 99)
    rows = [dict(zip(BATCH.names, row, strict=True)) for row in [*cycle, counts]]
    return pa.Table.from_pylist(rows, BATCH)


def test_records_are_those_of_spark(spark):
    found = stretches()
    frame = spark.createDataFrame(found, kafka_log.FIELDS)
    rows = offsets_records.of_stretches(frame, "h:1", "c", [3]).good
    ours = without_spark(found, "c", 1_000)
    assert ours.column_names == rows.columns
    expected = [row.asDict() for row in rows.collect()]
    assert [{**each, "timestamp": each["timestamp"].replace(tzinfo=None)} for each in ours.to_pylist()] == expected
    assert [each["group_id"] for each in expected] == list(map(named_group, KEYS * 2))
    assert len({name for name in map(named_group, KEYS) if name is not None}) == 4


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ({"times": [-2]}, 1_000),
        ({"times": [2**62]}, 1_000),
        ({"values": [b"v" * 20]}, 19),
    ],
)
def test_a_record_that_cannot_be_used_is_for_spark(given, most):
    assert without_spark(stretches(**given), "c", most) is None


class Large(StretchReader):
    """Three records of 12 MiB each."""

    def read(self, *_):
        for at in range(3):
            batch = {"partition": 0, "offset": at, "value": b"v" * (12 << 20)}
            yield pa.RecordBatch.from_pylist([dict.fromkeys(BATCH.names) | batch], BATCH)


@pytest.mark.parametrize(
    ("stretches", "rows"), [((), 0), ((OffsetRange(0, 0, 3),), None), ((OffsetRange(0, 0, 30_000),), None)]
)
def test_many_are_left_to_tasks(stretches, rows):
    found = Large(Address("h:1", {}, 30), False).few(*stretches)
    assert (None if found is None else len(found)) == rows
