"""Read files of lines: every physical line becomes one row, parsed by a parser of `core.lines`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from groupledger.core.lines import as_text, is_blank
from groupledger.sources.files import Files, whole
from groupledger.sources.opening import BLANK, PROBLEM, opened
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession


VALUE, FOLDER = "value", "folder"
_EMPTY = StructType([StructField(VALUE, BinaryType()), StructField(FOLDER, StringType())])


def read_text(spark: SparkSession, files: Files) -> DataFrame:
    """Read each line as bytes (only a line feed ends one), and the values of folders such as `partition=3`, as JSON."""
    if files.is_empty:
        return spark.createDataFrame([], _EMPTY)
    reader = spark.read.option("recursiveFileLookup", str(not files.is_partitioned).lower())
    rows = whole(opened(lambda: reader.text(files.place, lineSep="\n"), files.path), files)
    named = [name for name in rows.columns if name != VALUE]
    folder = F.to_json(F.struct(*named)) if named else F.lit(None).cast("string")
    return rows.select(F.col(VALUE).cast("binary"), folder.alias(FOLDER))


def given_lines(spark: SparkSession, lines: list[bytes]) -> DataFrame:
    """Return lines that are not from a file, in the form of `read_text`."""
    return spark.createDataFrame([(bytearray(line), None) for line in lines], _EMPTY)


def parsed(lines: DataFrame, fields: StructType, parser: Callable[..., tuple[Any, ...]]) -> DataFrame:
    """Parse each line into fields, its PROBLEM (null, BLANK, OTHER_TOPIC or `CODE: message`), and a bad one's text."""
    text = [StructField(name, StringType()) for name in (PROBLEM, c.ROW)]
    schema = StructType([*fields, *text])
    kinds = [to_arrow_type(field.dataType) for field in schema]
    names, blank = schema.names, (*(None for _ in fields), BLANK, None)

    def row(line: bytes, folder: dict[str, Any]) -> tuple[Any, ...]:
        if is_blank(line):
            return blank
        found = parser(line, folder)
        return (*found, None if found[-1] is None else as_text(line))

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values: dict[str | None, dict[str, Any]] = {None: {}}
        for batch in batches:
            pairs = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            rows = [
                row(line, values.get(folder) or values.setdefault(folder, _loaded(folder))) for line, folder in pairs
            ]
            columns = zip(*rows, strict=True) if rows else ((),) * len(names)
            arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    return lines.mapInArrow(parse, schema)


def _loaded(folder: str | None) -> dict[str, Any]:
    return json.loads(folder) if folder else {}
