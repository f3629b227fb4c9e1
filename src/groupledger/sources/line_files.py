"""Read files of lines: every physical line becomes one row, parsed by a parser of `core.log.lines`."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, StringType, StructField, StructType

from groupledger.core.log.lines import NO_VALUES, OTHER_TOPIC, as_text, is_blank
from groupledger.sources.files import Files, plain_name, whole
from groupledger.sources.opening import BLANK, PROBLEM, opened
from groupledger.tables import columns as c

VALUE, FOLDER = "value", "folder"
FILE, BLOCK = "file", "block"
"""Where a line comes from: the file, and the byte at which the part of it begins that a task reads."""
NO_FAULT = (None, BLANK, OTHER_TOPIC)
_EMPTY = StructType([StructField(VALUE, BinaryType()), StructField(FOLDER, StringType())])


def read_text(spark: SparkSession, files: Files, *, placed: bool = False) -> DataFrame:
    """Read each line as bytes (only a line feed ends one), and the values of folders such as `partition=3`, as JSON.

    `placed`: with FILE and BLOCK, by which `parsed` names the file and the line of what it rejects.
    """
    if files.is_empty:
        return spark.createDataFrame([], _EMPTY)
    reader = spark.read.option("recursiveFileLookup", str(not files.is_partitioned).lower())
    rows = whole(opened(lambda: reader.text(files.place, lineSep="\n"), files.path), files)
    named = [name for name in rows.columns if name != VALUE]
    folder = F.to_json(F.struct(*named)) if named else F.lit(None).cast("string")
    place = [F.col("_metadata.file_path").alias(FILE), F.col("_metadata.file_block_start").alias(BLOCK)]
    return rows.select(F.col(VALUE).cast("binary"), folder.alias(FOLDER), *(place if placed else ()))


def given_lines(spark: SparkSession, lines: list[bytes]) -> DataFrame:
    """Return lines that are not from a file, in the form of `read_text`."""
    return spark.createDataFrame([(bytearray(line), None) for line in lines], _EMPTY)


def parsed(
    lines: DataFrame,
    fields: StructType,
    parser: Callable[..., tuple[Any, ...]],
    shown: Mapping[str, str] = NO_VALUES,
) -> DataFrame:
    """Parse each line into fields, its PROBLEM (null, BLANK, OTHER_TOPIC or `CODE: message`), and a bad one's text.

    The message begins with the line's place if the lines are `placed`, under the names that are `shown` of files.
    """
    text = [StructField(name, StringType()) for name in (PROBLEM, c.ROW)]
    schema = StructType([*fields, *text])
    kinds = [to_arrow_type(field.dataType) for field in schema]
    names, blank = schema.names, (*(None for _ in fields), BLANK, None)

    def row(line: bytes, folder: dict[str, Any], place: str) -> tuple[Any, ...]:
        if is_blank(line):
            return blank
        found = parser(line, folder)
        if place and found[-1] not in NO_FAULT:
            found = (*found[:-1], found[-1].replace(": ", f": {place}: ", 1))
        return (*found, None if found[-1] is None else as_text(line))

    def parse(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        values: dict[str | None, dict[str, Any]] = {None: {}}
        lines_read: Counter[tuple[str, int]] = Counter()
        for batch in batches:
            rows = []
            for line, folder, *place in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                named = values.get(folder) or values.setdefault(folder, json.loads(folder) if folder else {})
                rows.append(row(line, named, _place(place[0], place[1], lines_read, shown) if place else ""))
            columns = zip(*rows, strict=True) if rows else ((),) * len(names)
            arrays = [pa.array(list(column), kind) for column, kind in zip(columns, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    return lines.mapInArrow(parse, schema)


def _place(file: str, block: int, lines_read: Counter[tuple[str, int]], shown: Mapping[str, str]) -> str:
    """Return the file and the number of its next line; of a large file that several tasks read, of the part of it."""
    lines_read[file, block] += 1
    number, name = lines_read[file, block], plain_name(file)
    return f"{shown.get(name, name)}, line {number:,}{f' behind byte {block:,}' if block else ''}"
