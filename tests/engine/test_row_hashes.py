"""What workers hash is what Spark hashes: of every table that they write, over texts, lists and nulls of all kinds."""

import math
import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    TimestampType,
)

from groupledger.engine import envelope
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.bucket_rows import RESULTS
from groupledger.engine.envelope import columns_of, hash_sums, json_texts
from groupledger.engine.fold_schema import FILLED
from groupledger.engine.recorded_groups import TABLES as CALL_TABLES
from groupledger.sinks.append import measured, stamp
from groupledger.tables import MEMBER_SNAPSHOTS
from groupledger.tables import columns as c

WRITTEN = list(dict.fromkeys((*FILLED, *RESULTS, *CALL_TABLES)))
ROWS = 400
TEXTS = [
    "",
    "a",
    "orders",
    "payments-größe",
    "\U0001f600 x",
    'say "no"',
    "back\\slash",
    "\\u00ab",
    "\x00\x1f\x7f\n\t",
    "é" * 40,
]
MOMENT = datetime(2026, 11, 25, tzinfo=UTC)


def value(kind, dice, *, nullable):
    """Any value of a type, null one time in four."""
    if nullable and dice.random() < 0.25:
        return None
    if isinstance(kind, ArrayType):
        return [value(kind.elementType, dice, nullable=kind.containsNull) for _ in range(dice.choice([0, 1, 1, 2, 5]))]
    if isinstance(kind, StringType):
        return dice.choice(TEXTS) + dice.choice(["", "x" * dice.randrange(90)])
    if isinstance(kind, BinaryType):
        return dice.randbytes(dice.randrange(80))
    if isinstance(kind, BooleanType):
        return dice.random() < 0.5
    if isinstance(kind, IntegerType | LongType):
        bits = 31 if isinstance(kind, IntegerType) else 63
        return dice.choice([0, 1, -1, 2**bits - 1, -(2**bits), dice.randrange(1_000)])
    if isinstance(kind, DoubleType):
        return dice.choice([0.0, -0.0, 1.5, -1e300, math.nan, math.inf, dice.random()])
    if isinstance(kind, TimestampType):
        return MOMENT + timedelta(microseconds=dice.randrange(-(10**15), 10**15))
    return {field.name: value(field.dataType, dice, nullable=field.nullable) for field in kind}


def rows_of(table, number=ROWS):
    dice = random.Random(table.name)  # noqa: S311 seeded
    fields = columns_of(table)
    rows = [{f.name: value(f.dataType, dice, nullable=f.nullable) for f in fields} for _ in range(number)]
    return pa.Table.from_pylist(rows, arrow_schema(fields))


@pytest.mark.spark
@pytest.mark.parametrize("table", WRITTEN, ids=lambda table: table.name)
def test_workers_hash_rows_as_spark_does(spark, table, monkeypatch):
    rows = rows_of(table)
    (found,) = measured(table, stamp(table, spark.createDataFrame(rows), "attempt")).values()
    for kernels in ("numba", "python"):
        monkeypatch.setenv("GROUPLEDGER_KERNELS", kernels)
        assert (found.rows, list(found.sums)) == (ROWS, hash_sums(table, rows)), kernels
        some = pa.Table.from_pylist(rows[100:107].to_pylist(), rows.schema)
        assert hash_sums(table, rows.slice(100, 7)) == hash_sums(table, some), kernels


@pytest.mark.spark
def test_json_is_what_spark_writes(spark):
    rows = rows_of(MEMBER_SNAPSHOTS)
    as_spark_does = F.to_json(c.RECORDED, {"ignoreNullFields": "false"})
    expected = [row[0] for row in spark.createDataFrame(rows).coalesce(1).select(as_spark_does).collect()]
    assert json_texts(rows[c.RECORDED].combine_chunks()).to_pylist() == expected


def test_order_does_not_count_and_every_column_does():
    rows = rows_of(MEMBER_SNAPSHOTS, 20)
    sums = hash_sums(MEMBER_SNAPSHOTS, rows)
    assert hash_sums(MEMBER_SNAPSHOTS, rows.take(list(reversed(range(20))))) == sums
    for name in rows.column_names:
        moved = rows[name].take([*range(1, 20), 0])
        other = rows.set_column(rows.column_names.index(name), name, moved)
        assert (hash_sums(MEMBER_SNAPSHOTS, other) == sums) == (moved == rows[name]), name


def test_no_rows_have_sums_of_zero():
    assert hash_sums(MEMBER_SNAPSHOTS, rows_of(MEMBER_SNAPSHOTS, 0)) == [0, 0, 0, 0]


def test_the_hash_is_xxh64():
    """Values of the reference implementation: xxhsum -H1 of these texts."""
    import numpy as np

    expected = {
        b"": 0xEF46DB3751D8E999,
        b"a": 0xD24EC4F1A98C6E5B,
        b"abc": 0x44BC2CF5AD770999,
        b"Nobody inspects the spammish repetition": 0xFBCEA83C8A378BF1,
    }
    columns = {text: np.frombuffer(text, np.uint8)[:, None] for text in expected}
    found = {text: int(envelope.of_bytes(columns[text], 0, len(text), np.zeros(1, np.uint64))[0]) for text in expected}
    assert found == expected
