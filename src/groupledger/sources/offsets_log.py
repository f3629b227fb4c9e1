"""Records of `__consumer_offsets` from files and tables, with the group their key names.

Every source has the columns partition, offset, timestamp (ms, or a timestamp), key and value (bytes, or their base64).
A null value is a tombstone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, LongType, StringType, StructField, StructType, TimestampType

from groupledger.sources.opening import CORRUPT, PROBLEM, Rows, SourceFault, open_json, open_table, problem, split
from groupledger.tables import LOG_RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

JSON_FORM = StructType(
    [
        StructField(c.PARTITION, IntegerType()),
        StructField(c.OFFSET, LongType()),
        StructField(c.TIMESTAMP, LongType()),
        StructField(c.KEY, StringType()),
        StructField(c.VALUE, StringType()),
    ]
)
COLUMNS = JSON_FORM.names
STAGE = "decode"
_TEXT = "_{}_text"


def read_json(spark: SparkSession, path: str, cluster_id: str) -> Rows:
    """JSON lines, gzipped or not; a half-written line is rejected with its text."""
    return _records(open_json(spark, path, JSON_FORM), path, cluster_id)


def read_table(spark: SparkSession, path: str, kind: str, cluster_id: str) -> Rows:
    """A `parquet` or `delta` folder. Raises SourceFault FOREIGN_SCHEMA where a column is missing or of another type."""
    rows = open_table(spark, path, kind)
    _check(rows.schema, path)
    return _records(rows.select(*COLUMNS, F.lit(None).cast("string").alias(CORRUPT)), path, cluster_id)


def _check(schema: StructType, path: str) -> None:
    allowed = {
        c.PARTITION: ("int", "bigint"),
        c.OFFSET: ("int", "bigint"),
        c.TIMESTAMP: ("bigint", "timestamp"),
        c.KEY: ("binary", "string"),
        c.VALUE: ("binary", "string"),
    }
    for name, kinds in allowed.items():
        got = schema[name].dataType.simpleString() if name in schema.names else "missing"
        if got not in kinds:
            expected = f"expected {' or '.join(kinds)}; the columns of an offsets log are {', '.join(COLUMNS)}"
            raise SourceFault("FOREIGN_SCHEMA", f"{path}: column {name} is {got}; {expected}")


def _records(rows: DataFrame, source: str, cluster_id: str) -> Rows:
    """`log_records` without the attempt, and what is no record."""
    decoded = rows.select(
        *(F.col(name) for name in (c.PARTITION, c.OFFSET, CORRUPT)),
        _timestamp(rows.schema).alias(c.TIMESTAMP),
        *(_bytes(rows.schema, name).alias(name) for name in (c.KEY, c.VALUE)),
        *(F.col(name).alias(_TEXT.format(name)) for name in (c.KEY, c.VALUE)),
    ).withColumn(PROBLEM, _problem())
    good = {
        c.CLUSTER_ID: F.lit(cluster_id),
        c.LOG_PARTITION: F.col(c.PARTITION).cast("int"),
        c.GROUP_ID: group_id(F.col(c.KEY)),
    }
    columns = [good.get(name, F.col(name)).alias(name) for name in LOG_RECORDS.columns if name != c.ATTEMPT_ID]
    rejected = {
        c.STAGE: F.lit(STAGE),
        c.CLUSTER_ID: F.lit(cluster_id),
        c.LOG_PARTITION: F.col(c.PARTITION),
        c.OFFSET: F.col(c.OFFSET),
        c.KEY: F.col(c.KEY),
        c.VALUE: F.col(c.VALUE),
        c.ROW: F.coalesce(
            CORRUPT,
            F.to_json(F.struct(*(F.col(_TEXT.format(name)).cast("string").alias(name) for name in (c.KEY, c.VALUE)))),
        ),
    }
    return split(decoded, columns, source, rejected)


def group_id(key: Column) -> Column:
    """The group a record's key names: every type of key begins int16 type, int16 length, the group id in UTF-8."""
    length = F.conv(F.hex(F.substring(key, 3, 2)), 16, 10).cast("int")
    name = F.substring(key, F.lit(5), length)
    whole = (F.length(key) >= 4) & (F.length(name) == length)
    return F.when(whole, F.try_validate_utf8(name.cast("string")))


def _timestamp(schema: StructType) -> Column:
    if isinstance(schema[c.TIMESTAMP].dataType, TimestampType):
        return F.col(c.TIMESTAMP)
    return F.timestamp_millis(c.TIMESTAMP)


def _bytes(schema: StructType, name: str) -> Column:
    if isinstance(schema[name].dataType, BinaryType):
        return F.col(name)
    return F.try_to_binary(F.col(name), F.lit("base64"))


def _problem() -> Column:
    """The first thing wrong with a row: `CODE: message`; null where nothing is."""
    line = F.lit(
        "MALFORMED_LINE: the line is not a JSON object of an offsets record; expected partition, offset, "
        "timestamp (ms), key and value (base64)"
    )
    checks = [(F.col(CORRUPT).isNotNull(), line)]
    for name in (c.PARTITION, c.OFFSET):
        number = F.col(name)
        checks.append((number.isNull() | (number < 0), problem(f"BAD_{name.upper()}", name, number, "0 or more")))
    missing = problem("BAD_TIMESTAMP", c.TIMESTAMP, F.lit(None), "milliseconds since 1970")
    checks.append((F.col(c.TIMESTAMP).isNull(), missing))
    for name in (c.KEY, c.VALUE):
        bad = F.col(name).isNull() & F.col(_TEXT.format(name)).isNotNull()
        checks.append((bad, F.lit(f"BAD_BASE64: {name} is not base64; expected the record's bytes in base64")))
    first, *rest = checks
    chosen = F.when(*first)
    for condition, text in rest:
        chosen = chosen.when(condition, text)
    return chosen
