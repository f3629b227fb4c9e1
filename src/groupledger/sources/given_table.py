"""Read one table of a user, in the types of its declaration.

Parquet and Delta have types: a column of another kind is a fault of the whole table. JSON and CSV are read as text
(lists as JSON text): a value that does not fit is a fault of its row. CSV names its columns in a header; each line of
JSON names them in its keys, so that a missing required one is a fault of the line.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    IntegralType,
    LongType,
    MapType,
    NullType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from groupledger.core.bounds import MOMENT
from groupledger.core.lines import table_row
from groupledger.sources.bounded import moment
from groupledger.sources.files import Files, whole
from groupledger.sources.lines import parsed, read_text
from groupledger.sources.opening import BLANK, CORRUPT, PROBLEM, Arrivals, SourceFault, opened
from groupledger.sources.tables import open_table, table_files
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.tables.given import GivenForm

_LIST_FIELDS = {c.TOPIC_ID, c.TOPIC, c.PARTITIONS}
_GOT = "_got_{}"
_LINE = "_line_problem"


@dataclass(frozen=True, slots=True)
class GivenTable:
    """One table of a user: `rows` have every column that a user may provide, ROW (their text) and PROBLEM.

    `arrivals` counts them; `files` are the files read.
    """

    rows: DataFrame
    arrivals: Arrivals
    files: Files


def read_given(
    spark: SparkSession, folder: str, form: GivenForm, kind: str, *, optional: bool = False, glob: bool = False
) -> GivenTable | None:
    """Read the table `<folder>/<name>`, or `<name>.<kind>`; None if it is optional and missing.

    Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FILES_PASSED_OVER, or FOREIGN_SCHEMA with table, column, got
    and expected.
    """
    try:
        files = _find(spark, f"{folder.rstrip('/')}/{form.table.name}", kind, glob=glob)
    except SourceFault as fault:
        if optional and fault.code == "SOURCE_MISSING":
            return None
        raise
    return (
        of_lines(read_text(spark, files, placed=True), files, form)
        if kind == "json"
        else of_frame(opened_frame(spark, files, form, kind), form, files, folder)
    )


def is_given(spark: SparkSession, folder: str, form: GivenForm, kind: str, *, glob: bool = False) -> bool:
    """Return whether `read_given` finds the table."""
    try:
        _find(spark, f"{folder.rstrip('/')}/{form.table.name}", kind, glob=glob)
    except SourceFault as fault:
        return fault.code != "SOURCE_MISSING"
    return True


def of_lines(lines: DataFrame, files: Files, form: GivenForm) -> GivenTable:
    """Read a table of lines from `read_text`."""
    texts = StructType([StructField(name, StringType()) for name in form.columns])
    raw = parsed(lines, texts, partial(table_row, columns=form.columns), files.shown)
    raw = raw.withColumnRenamed(PROBLEM, _LINE)
    told = raw.where(F.col(_LINE).isNull() | (F.col(_LINE) != BLANK))
    rows = _typed(told, form, F.coalesce(c.ROW, F.to_json(F.struct(*form.columns))))
    return GivenTable(rows, Arrivals(lines, raw.select(F.col(_LINE).alias(PROBLEM)), of_lines=True), files)


def opened_frame(spark: SparkSession, files: Files, form: GivenForm, kind: str) -> DataFrame:
    """Return the rows of a table of columns as they are; those of CSV are texts."""
    raw = _csv(spark, files) if kind == "csv" else open_table(spark, files, kind)
    if raw is not None:
        return raw
    declared = [StructField(name, form.table.schema[name].dataType) for name in form.columns]
    return spark.createDataFrame([], StructType(declared))


def of_frame(
    raw: DataFrame, form: GivenForm, files: Files, folder: str, shapes: Mapping[str, str] = MappingProxyType({})
) -> GivenTable:
    """Read the rows of a frame. `shapes`: of columns that may have several types, these in words."""
    _check(raw.schema, form, folder, shapes, textual=CORRUPT in raw.columns)
    line, text = F.lit(None).cast("string"), F.to_json(F.struct(*_named(form, raw)))
    if CORRUPT in raw.columns:
        words = "MALFORMED_LINE: the line has other columns than the header; expected the columns that the header names"
        line, text = F.when(F.col(CORRUPT).isNotNull(), F.lit(words)), F.coalesce(CORRUPT, text)
    rows = _typed(raw.withColumn(_LINE, line), form, text)
    arrived = raw.select(F.lit(None).cast("string").alias(PROBLEM))  # blank lines of CSV are not rows
    return GivenTable(rows, Arrivals(raw, arrived, of_lines=False), files)


def _named(form: GivenForm, raw: DataFrame) -> list[str]:
    return [name for name in form.columns if name in raw.columns]


def _find(spark: SparkSession, path: str, kind: str, *, glob: bool) -> Files:
    """Return the files at the first of the two places that has any."""
    try:
        return table_files(spark, path, kind, glob=glob)
    except SourceFault as fault:
        if fault.code != "SOURCE_MISSING":
            raise
        try:
            return table_files(spark, f"{path}.{kind}", kind, glob=glob)
        except SourceFault as second:
            raise (fault if second.code == "SOURCE_MISSING" else second) from None


def _csv(spark: SparkSession, files: Files) -> DataFrame | None:
    if files.is_empty:
        return None
    reader = spark.read.options(header=True, escape='"', columnNameOfCorruptRecord=CORRUPT, enforceSchema=False)
    reader = reader.option("recursiveFileLookup", str(not files.is_partitioned).lower()).format("csv")
    names = opened(lambda: reader.load(files.place), files.path).drop(CORRUPT).columns
    texts = StructType([StructField(name, StringType()) for name in [*names, CORRUPT]])
    return whole(opened(lambda: reader.schema(texts).load(files.place), files.path), files)


def _check(schema: StructType, form: GivenForm, folder: str, shapes: Mapping[str, str], *, textual: bool) -> None:
    for name in form.columns:
        expected = form.table.schema[name].dataType
        if name not in schema.names:
            if name in form.required:
                raise _foreign(form, folder, name, "missing", expected.simpleString())
        elif not textual and not _fits(schema[name].dataType, expected):
            words = shapes.get(name, expected.simpleString())
            raise _foreign(form, folder, name, schema[name].dataType.simpleString(), words)


def _foreign(form: GivenForm, folder: str, name: str, got: str, expected: str) -> SourceFault:
    message = f"table {form.table.name} in {folder}: column {name} is {got}, expected {expected}"
    return SourceFault("FOREIGN_SCHEMA", f"{message}; docs/operate/your-own-snapshots.md says which columns it has")


def _fits(got: DataType, expected: DataType) -> bool:
    """Return whether values of one type can be read as the other."""
    if isinstance(got, NullType):
        return True
    if isinstance(expected, ArrayType):
        return isinstance(got, ArrayType) and _fits(got.elementType, expected.elementType)
    if isinstance(expected, StructType):
        names = set(got.names) if isinstance(got, StructType) else set()
        return c.PARTITIONS in names and len(names & _LIST_FIELDS) > 1
    if isinstance(expected, TimestampType):
        return isinstance(got, TimestampType | TimestampNTZType | IntegralType)
    if isinstance(expected, IntegralType):
        return isinstance(got, IntegralType)
    if isinstance(expected, BinaryType):
        return isinstance(got, BinaryType | StringType)
    return isinstance(got, type(expected))


def _typed(raw: DataFrame, form: GivenForm, text: Column) -> DataFrame:
    """Return every column of the form in its type, null for values that do not fit, and the row's problem."""
    given = _named(form, raw)
    columns = [_converted(raw, form, name).alias(name) for name in form.columns]
    kept = [F.col(name).alias(_GOT.format(name)) for name in given]
    rows = raw.select(*columns, *kept, F.col(_LINE), text.alias(c.ROW))
    return rows.select(*form.columns, c.ROW, _problem(form, given).alias(PROBLEM))


def _converted(raw: DataFrame, form: GivenForm, name: str) -> Column:
    expected = form.table.schema[name].dataType
    if name not in raw.columns:
        return F.lit(None).cast(expected)
    return _as(F.col(name), raw.schema[name].dataType, expected)


def _as(value: Column, got: DataType, expected: DataType) -> Column:
    """Convert the value to the expected type; null if it does not fit."""
    if isinstance(expected, TimestampType):
        return _moment(value, got)
    if got.simpleString() == expected.simpleString():
        return value
    if isinstance(expected, ArrayType) and isinstance(got, StringType):
        return F.when(F.try_parse_json(value).isNotNull(), F.from_json(value, expected))  # it ignores trailing text
    if isinstance(expected, ArrayType | StructType) or isinstance(got, ArrayType | StructType | MapType):
        return _nested(value, got, expected)
    if isinstance(expected, IntegralType) and not isinstance(got, IntegralType | StringType):
        return F.lit(None).cast(expected)  # a cast would silently truncate 1.5 to 1
    if isinstance(expected, BinaryType) and isinstance(got, StringType):
        return F.try_to_binary(value, F.lit("base64"))
    if isinstance(expected, StringType | BooleanType | IntegralType):
        return value.try_cast(expected)
    return value.cast(expected)


def _nested(value: Column, got: DataType, expected: DataType) -> Column:
    """Convert a list, or a struct by field names: element by element, since a list may have millions of elements."""
    if isinstance(got, ArrayType) and isinstance(expected, ArrayType):
        inner = (got.elementType, expected.elementType)
        return F.transform(value, lambda part: _as(part, *inner))
    if isinstance(got, StructType) and isinstance(expected, StructType):
        fields = [_field(value, got, field).alias(field.name) for field in expected]
        return F.when(value.isNotNull(), F.struct(*fields))
    return F.lit(None).cast(expected)


def _field(value: Column, got: StructType, expected: StructField) -> Column:
    if expected.name not in got.names:
        return F.lit(None).cast(expected.dataType)
    return _as(value[expected.name], got[expected.name].dataType, expected.dataType)


def _moment(value: Column, got: DataType) -> Column:
    """Convert a timestamp, milliseconds since 1970, or the text of either; null outside the valid range."""
    if not isinstance(got, StringType):
        return moment(value, got, MOMENT)
    millis = moment(value.try_cast("bigint"), LongType(), MOMENT)
    return F.coalesce(millis, moment(value.try_cast("timestamp"), TimestampType(), MOMENT))


def _problem(form: GivenForm, given: list[str]) -> Column:
    """Return the first problem of a row: `CODE: message`; null if there is none."""
    chosen = F.when(F.col(_LINE).isNotNull(), F.col(_LINE))
    for name in given:
        got, kind = F.col(_GOT.format(name)), form.table.schema[name].dataType
        wrong = got.isNotNull() & (F.col(name).isNull() | _has_holes(F.col(name), kind))
        text = [F.lit(f"BAD_VALUE: column {name} is "), F.substring(_as_text(got), 1, 100)]
        chosen = chosen.when(wrong, F.concat(*text, F.lit(f"; expected {kind.simpleString()}")))
    for name in form.required:
        if name != c.PARTITION_COUNT:  # null there: the topic was deleted
            chosen = chosen.when(F.col(name).isNull(), F.lit(f"MISSING_VALUE: {name} is missing; every row needs one"))
    return chosen


def _as_text(value: Column) -> Column:
    return F.to_json(F.struct(value.alias("got")))


def _has_holes(value: Column, kind: DataType) -> Column:
    """Return whether a list has a null that its declaration does not allow."""
    if not isinstance(kind, ArrayType):
        return F.lit(False)
    if isinstance(kind.elementType, StructType):
        return F.exists(value, lambda topic: _has_null(topic[c.PARTITIONS]))
    if isinstance(kind.elementType, ArrayType):
        return F.exists(value, _has_null)
    return _has_null(value)


def _has_null(values: Column) -> Column:
    return values.isNull() | F.exists(values, lambda value: value.isNull())
