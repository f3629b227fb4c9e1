"""Read records of `__consumer_offsets` from files and tables, with the group that their key names.

Every source has the columns partition, offset, timestamp (ms, or a timestamp), key and value (bytes, or their base64),
by these names or by others (`core.log.lines`). A null value is a tombstone. If there is a column topic, records of
other topics are counted and left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, IntegerType, LongType, StructField, StructType

from groupledger.core.faults import Fault
from groupledger.core.log.lines import (
    HEX,
    LOG_FIELDS,
    NO_VALUES,
    OFFSET,
    OFFSET_COMMIT_LEFT_OUT,
    PARTITION,
    RECORD_TIME,
    TOPIC,
    columns_of,
    log_record,
)
from groupledger.core.wire.offsets_log import CONTROL_KEYS, OFFSET_COMMITS
from groupledger.sources.files import Files, open_table, parsed, paths, read_text
from groupledger.sources.opening import (
    ENTRIES,
    PROBLEM,
    Arrivals,
    Rows,
    SourceFault,
    each_row,
    problem,
    split,
    tallied,
    watched_scan,
    watched_times,
)
from groupledger.sources.snapshot_tables import moment, within
from groupledger.tables import LOG_RECORDS
from groupledger.tables import columns as c

FIELDS = StructType(
    [
        StructField(c.PARTITION, IntegerType()),
        StructField(c.OFFSET, LongType()),
        StructField(c.TIMESTAMP, LongType()),
        StructField(c.KEY, BinaryType()),
        StructField(c.VALUE, BinaryType()),
    ]
)
COLUMNS = FIELDS.names
FIELDS_OF_BATCHES = StructType([*FIELDS, StructField(c.LEADER_EPOCH, IntegerType())])
"""Of the sources that read record batches: files, tables and Spark's own Kafka source have no leader epochs."""
STAGE = "decode"
_GOT = "_got_{}"
_NAME_AT = 4
_NUMBERS = ("tinyint", "smallint", "int", "bigint")
_ALLOWED = {
    c.PARTITION: _NUMBERS,
    c.OFFSET: _NUMBERS,
    c.TIMESTAMP: ("bigint", "timestamp", "timestamp_ntz"),
    c.KEY: ("binary", "string"),
    c.VALUE: ("binary", "string"),
    c.TOPIC: ("string",),
}


def read_json(
    spark: SparkSession,
    files: Files,
    cluster_id: str,
    columns: Mapping[str, str] = NO_VALUES,
    *,
    offset_commits: bool = True,
) -> Rows:
    """Read JSON lines, gzipped or not; an invalid line is rejected with its text. `columns`: keys by field.

    `offset_commits`: whether records of offset commits are kept; otherwise they are counted and left out.
    """
    assert tuple(COLUMNS) == LOG_FIELDS[:-1], "the parser gives the fields in this order"
    lines = read_text(spark, files)

    def typed(scan: DataFrame) -> DataFrame:
        rows = parsed(scan, FIELDS, partial(log_record, columns=dict(columns)), files.shown)
        rows = rows.withColumn(c.TIMESTAMP, moment(F.col(c.TIMESTAMP), LongType(), RECORD_TIME))
        return rows if offset_commits else _without_commits(rows)

    rows = accounted(lines, typed, files.path, cluster_id, of_lines=True)
    rejected = records(typed(read_text(spark, files, placed=True)), files.path, cluster_id).rejected
    newest = None if offset_commits else partial(_newest_left_out, typed(lines))
    return replace(rows, rejected=rejected, newest_left_out=newest)


def read_table(
    spark: SparkSession,
    files: Files,
    kind: str,
    cluster_id: str,
    columns: Mapping[str, str] = NO_VALUES,
    *,
    offset_commits: bool = True,
) -> Rows:
    """Read a `parquet` or `delta` folder; `columns` by field, if they have other names. Raises as `of_table`."""
    there = open_table(spark, files, kind)
    found = spark.createDataFrame([], FIELDS) if there is None else there
    return of_table(found, files.path, cluster_id, columns, offset_commits=offset_commits)


def of_table(
    found: DataFrame,
    source: str,
    cluster_id: str,
    columns: Mapping[str, str] = NO_VALUES,
    *,
    offset_commits: bool = True,
) -> Rows:
    """Return the rows of a table; those of offset commits as `read_json` does.

    Those of other topics are counted by a separate query that reads only the topic column: if they are in files of
    their own, no other column of these files is read.

    Raises SourceFault FOREIGN_SCHEMA where a column is missing or of another type.
    """
    there, others = paths(found.schema), None
    names = fields_of(found.schema, source, columns)
    given = found.select(*(there[name].column.alias(field) for field, name in names.items()))
    if c.TOPIC in given.columns:
        is_ours = F.col(c.TOPIC).isNull() | (F.col(c.TOPIC) == TOPIC)
        others = given.where(~is_ours).select(c.TOPIC)
        given = given.where(is_ours)
    given = given.select(*COLUMNS)

    def typed(scan: DataFrame) -> DataFrame:
        return _typed(scan) if offset_commits else _without_commits(_typed(scan))

    newest = None if offset_commits else partial(_newest_left_out, typed(given))
    return replace(accounted(given, typed, source, cluster_id, others=others), newest_left_out=newest)


def fields_of(schema: StructType, source: str, columns: Mapping[str, str] = NO_VALUES) -> dict[str, str]:
    """Map each field to the table's column for it. Raises SourceFault FOREIGN_SCHEMA."""
    there = paths(schema)
    try:
        names = columns_of(columns, list(there))
    except Fault as fault:
        raise SourceFault(fault.code, f"{source}: {fault.message}") from None
    for field, name in names.items():
        got, allowed = there[name].kind.simpleString(), _ALLOWED[field]
        if got not in allowed:
            said = name if name == field else f"{name} ({field})"
            expected = f"expected {' or '.join(allowed)}; the columns of an offsets log are {', '.join(COLUMNS)}"
            raise SourceFault("FOREIGN_SCHEMA", f"{source}: column {said} is {got}; {expected}")
    return names


def of_stretches(stretches: DataFrame, source: str, cluster_id: str, partitions: Iterable[int]) -> Rows:
    """Return what `kafka_log.frame` reads of a cluster: its records, and counts of what it consumed and left out."""
    times, newest = watched_times(stretches, partitions, F.col(PROBLEM) == ENTRIES)
    rows = _of_cluster(times, F.col(PROBLEM).isNull(), tallied(OFFSET_COMMIT_LEFT_OUT), source, cluster_id)
    return replace(rows, newest_left_out=newest)


def without_spark(stretches: pa.Table, cluster_id: str, most_bytes: int) -> pa.Table | None:
    """Return the records of rows of `kafka_records.BATCH` as `of_stretches` gives them.

    None if there is one that cannot be used, or is larger than `most_bytes`.
    """
    found = stretches.filter(pc.is_null(stretches[PROBLEM]))
    key, value, time = (found[name] for name in (c.KEY, c.VALUE, c.TIMESTAMP))
    sizes = [pc.binary_length(each).fill_null(0) for each in (key, value)]
    in_time = pc.and_(pc.greater_equal(time, RECORD_TIME.least), pc.less_equal(time, RECORD_TIME.most))
    usable = pc.and_(pc.less_equal(pc.add(*sizes), most_bytes), in_time)
    if pc.any(pc.invert(usable)).as_py():
        return None
    columns = {
        c.CLUSTER_ID: pa.array([cluster_id] * len(found), pa.string()),
        c.LOG_PARTITION: found[c.PARTITION],
        c.OFFSET: found[c.OFFSET],
        c.TIMESTAMP: time.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
        c.GROUP_ID: pa.array(map(named_group, key.to_pylist()), pa.string()),
        c.KEY: key,
        c.VALUE: pc.if_else(pc.greater(sizes[1], 0), value, None),
        c.LEADER_EPOCH: found[c.LEADER_EPOCH],
    }
    return pa.table({name: columns[name] for name in LOG_RECORDS.columns if name != c.ATTEMPT_ID})


def of_topic(
    found: DataFrame, source: str, cluster_id: str, partitions: Iterable[int], *, offset_commits: bool
) -> Rows:
    """Return what `spark_kafka_log.frame` reads of a cluster: all its records; offset commits only if requested."""
    is_kept = F.lit(True) if offset_commits else ~_is_commit()
    times, newest = watched_times(found, partitions, ~is_kept)
    rows = _of_cluster(times, is_kept, each_row({OFFSET_COMMIT_LEFT_OUT: ~is_kept}), source, cluster_id)
    return replace(rows, newest_left_out=newest)


def _of_cluster(found: DataFrame, is_kept: Column, counts: Mapping[str, Column], source: str, cluster_id: str) -> Rows:
    def kept(frame: DataFrame) -> DataFrame:
        return _typed(frame.where(is_kept))

    return accounted(found, kept, source, cluster_id, counts=counts)


def _is_commit() -> Column:
    """Return whether the key begins as that of an offset commit, and is not that of a control record."""
    begins = F.substring(c.KEY, 1, 2).isin(*map(F.lit, OFFSET_COMMITS))
    return F.coalesce(begins & ~F.col(c.KEY).isin(*map(F.lit, CONTROL_KEYS)), F.lit(False))


def _without_commits(rows: DataFrame) -> DataFrame:
    """Mark offset commits among rows with PROBLEM, but for those that have one already."""
    left_out = F.when(_is_commit(), F.lit(OFFSET_COMMIT_LEFT_OUT))
    return rows.withColumn(PROBLEM, F.coalesce(PROBLEM, left_out))


def _newest_left_out(rows: DataFrame) -> dict[int, int]:
    """Return by log partition the time (ms) of the newest offset commit that is left out, with a query of its own."""
    left_out = rows.where(F.col(PROBLEM) == OFFSET_COMMIT_LEFT_OUT).groupBy(c.PARTITION)
    return dict(left_out.agg(F.unix_millis(F.max(c.TIMESTAMP))).collect())


def _typed(given: DataFrame) -> DataFrame:
    """Convert the rows of a table to the types of FIELDS, null for values that do not fit, with their problem."""
    schema = given.schema
    values = {
        c.PARTITION: within(F.col(c.PARTITION).cast("bigint"), PARTITION).cast("int"),
        c.OFFSET: within(F.col(c.OFFSET).cast("bigint"), OFFSET),
        c.TIMESTAMP: moment(F.col(c.TIMESTAMP), schema[c.TIMESTAMP].dataType, RECORD_TIME),
        **{name: _bytes(schema, name) for name in (c.KEY, c.VALUE)},
    }
    got = [_as_text(schema, name).alias(_GOT.format(name)) for name in COLUMNS]
    epochs = [name for name in given.columns if name == c.LEADER_EPOCH]
    rows = given.select(*(value.alias(name) for name, value in values.items()), *got, *epochs)
    row = F.to_json(F.struct(*(F.col(_GOT.format(name)).alias(name) for name in COLUMNS)))
    return rows.select(*COLUMNS, *epochs, _problem().alias(PROBLEM), row.alias(c.ROW))


def accounted(
    scan: DataFrame,
    typed: Callable[[DataFrame], DataFrame],
    source: str,
    cluster_id: str,
    *,
    of_lines: bool = False,
    counts: Mapping[str, Column] | None = None,
    others: DataFrame | None = None,
) -> Rows:
    """Return the `records` of a scan as `typed` gives them, with both ends counted as in `Arrivals`."""
    watched, watch = watched_scan(scan, counts)
    rows = records(typed(watched), source, cluster_id)
    return replace(rows, arrivals=Arrivals(scan, typed(scan), of_lines, (watch, rows.watches[0]), counts, others))


def records(rows: DataFrame, source: str, cluster_id: str) -> Rows:
    """Split rows of FIELDS with PROBLEM and `row` into `log_records` without the attempt, and rejected rows."""
    good = {
        c.CLUSTER_ID: F.lit(cluster_id),
        c.LOG_PARTITION: F.col(c.PARTITION),
        c.GROUP_ID: group_id(F.col(c.KEY)),
        c.LEADER_EPOCH: F.col(c.LEADER_EPOCH) if c.LEADER_EPOCH in rows.columns else F.lit(None).cast("int"),
        c.VALUE: F.when(F.length(c.VALUE) > 0, F.col(c.VALUE)),  # kcat and rpk write a tombstone as an empty text
    }
    columns = [good.get(name, F.col(name)).alias(name) for name in LOG_RECORDS.columns if name != c.ATTEMPT_ID]
    rejected = {
        c.STAGE: F.lit(STAGE),
        c.CLUSTER_ID: F.lit(cluster_id),
        c.LOG_PARTITION: F.col(c.PARTITION),
        **{name: F.col(name) for name in (c.OFFSET, c.KEY, c.VALUE, c.ROW)},
    }
    return split(rows, columns, source, rejected)


def group_id(key: Column) -> Column:
    """Return the group in a record's key: every type of key begins int16 type, int16 length, the group id in UTF-8."""
    length = F.conv(F.hex(F.substring(key, 3, 2)), 16, 10).cast("int")
    name = F.substring(key, F.lit(5), length)
    whole = (F.length(key) >= 4) & (F.length(name) == length)
    is_marker = key.isin(*map(F.lit, CONTROL_KEYS))
    return F.when(whole & ~is_marker, F.try_validate_utf8(name.cast("string")))


def named_group(key: bytes | None) -> str | None:
    """Return the group in a record's key, as `group_id` does."""
    if key is None or len(key) < _NAME_AT or key in CONTROL_KEYS:
        return None
    name = key[_NAME_AT : _NAME_AT + int.from_bytes(key[2:_NAME_AT], "big")]
    try:
        return name.decode() if len(name) == int.from_bytes(key[2:_NAME_AT], "big") else None
    except UnicodeDecodeError:
        return None


def _bytes(schema: StructType, name: str) -> Column:
    if isinstance(schema[name].dataType, BinaryType):
        return F.col(name)
    return F.when(~F.col(name).rlike(f"^(?:{HEX})$"), F.try_to_binary(F.col(name), F.lit("base64")))


def _as_text(schema: StructType, name: str) -> Column:
    return F.base64(name) if isinstance(schema[name].dataType, BinaryType) else F.col(name).cast("string")


def _problem() -> Column:
    """Return the first problem of a row, as `CODE: message`; null if there is none."""
    problems = []
    for name, bound in ((c.PARTITION, PARTITION), (c.OFFSET, OFFSET), (c.TIMESTAMP, RECORD_TIME)):
        text = problem(f"BAD_{name.upper()}", name, F.col(_GOT.format(name)), bound.words)
        problems.append(F.when(F.col(name).isNull(), text))
    for name in (c.KEY, c.VALUE):
        bad = F.col(name).isNull() & F.col(_GOT.format(name)).isNotNull()
        got = F.col(_GOT.format(name))
        how = F.when(got.rlike(f"^(?:{HEX})$"), F.lit("hexadecimal")).otherwise(F.lit("not base64"))
        text = F.concat(F.lit(f"BAD_BASE64: {name} is "), how, F.lit("; expected the record's bytes in base64"))
        problems.append(F.when(bad, text))
    return F.coalesce(*problems)
