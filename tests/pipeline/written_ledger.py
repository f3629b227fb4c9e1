"""A ledger whose tables hold exactly the rows a test writes down, in memory: no Delta, no commits."""

from __future__ import annotations

from arro3.core import Table
from pyspark.sql.types import ArrayType, BooleanType, StringType, TimestampType

from groupledger.answers.queries import filled
from groupledger.pipeline.frames import LedgerFrames, in_spark
from groupledger.tables import BY_NAME
from groupledger.tables.sql_text import literal
from tests.answers.rows import at


class WrittenLedger(LedgerFrames):
    """`WrittenLedger(spark, coverage=[{...}], ...)`: columns left out are null, or empty where they are required."""

    def __init__(self, spark, **tables):
        self.spark = spark
        self.frames = {name: _frame(spark, BY_NAME[name], tables.get(name, [])) for name in BY_NAME}

    def current(self, table):
        return self.frames[table.name]

    @property
    def reader(self):
        return WrittenReader(self)


class WrittenReader:
    """Queries of `current_...` over the same rows: all of them count."""

    def __init__(self, ledger):
        self._ledger = ledger

    def query(self, sql, /, **values):
        for name, frame in self._ledger.frames.items():
            frame.createOrReplaceTempView(f"current_{name}")
        return Table.from_arrow(self._ledger.spark.sql(filled(in_spark(sql), values, literal)).toArrow())


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
