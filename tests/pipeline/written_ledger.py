"""A ledger whose tables hold exactly the rows a test writes down, in memory: no Delta, no commits."""

from __future__ import annotations

from datetime import UTC, datetime

from pyspark.sql.types import ArrayType, BooleanType, StringType, TimestampType

from groupledger.pipeline.ledger import Ledger
from groupledger.tables import BY_NAME


def at(minute, hour=14):
    return datetime(2026, 11, 21, hour, minute, tzinfo=UTC)


def wire(text):
    """`a:0,1 b:2` -> the wire layout of facts, without topic ids."""
    pairs = (entry.split(":") for entry in text.split())
    return [(None, topic, [int(number) for number in numbers.split(",")]) for topic, numbers in pairs]


class WrittenLedger(Ledger):
    """`WrittenLedger(spark, coverage=[{...}], ...)`: columns left out are null, or empty where they are required."""

    def __init__(self, spark, **tables):
        self.spark = spark
        self.frames = {name: _frame(spark, BY_NAME[name], tables.get(name, [])) for name in BY_NAME}

    def current(self, table):
        return self.frames[table.name]


def _frame(spark, table, rows):
    return spark.createDataFrame([tuple(_value(field, row) for field in table.schema) for row in rows], table.schema)


def _value(field, row):
    if field.name in row or field.nullable:
        return row.get(field.name)
    match field.dataType:
        case StringType():
            return ""
        case TimestampType():
            return at(0)
        case ArrayType():
            return []
        case BooleanType():
            return True
    return 0
