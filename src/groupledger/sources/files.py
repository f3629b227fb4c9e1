"""Resolve a path to files: names are taken literally, folders with everything below them.

Names in a folder that begin with `_` or `.` are skipped, as Spark does (`_SUCCESS`, `.part-0.crc`). A path with files
of which none would be read is a fault: nothing is skipped silently.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from groupledger.core.log.lines import NO_VALUES, OTHER_TOPIC, as_text, is_blank
from groupledger.core.secrets import without_secrets
from groupledger.sources.opening import BLANK, PROBLEM, SourceFault, opened
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal_path, quoted

_LOCAL = re.compile(r"^(?:file:/*(?=/))?(?![a-zA-Z][\w+.-]*:/)")
_LEFT_BY_SPARK = re.compile(r"_SUCCESS|_(?:started|committed)_.*|\..*\.crc")


_NAMED = re.compile(r"reading file (\S+?)\.?(?:\s|$)|(\bfile:/\S+)")
_REASONS = {
    "EOFException": "the file ends too early: it is cut",
    "not a gzip file": "it is no gzip file, though its name says so",
    "CRC failure": "its check sum is wrong: it is damaged",
    "is not a Parquet file": "it is no Parquet file",
    "long overflow": "it has a timestamp beyond what Spark can hold",
    "FileNotFoundException": "it is gone",
    "FILE_NOT_EXIST": "it is gone",
    "No such file": "it is not there, on a machine that reads it",
    "CSV header does not conform": "its header is not that of the other files",
    "Permission denied": "permission denied",
}
"""What Spark's errors say of a file, mapped to words for a person."""


@dataclass(frozen=True, slots=True)
class Files:
    """A path as Spark needs it, and its files: (name, bytes, modification time in us)."""

    path: str
    place: str
    found: tuple[tuple[str, int, int], ...]

    @property
    def is_empty(self) -> bool:
        """Return whether the files have no content."""
        return not any(size for _, size, _ in self.found)

    @property
    def shown(self) -> dict[str, str]:
        """Return how files are named whose names hold a secret: only this process knows which do."""
        names = (plain_name(name) for name, *_ in self.found)
        return {name: masked for name in names if (masked := without_secrets(name)) != name}

    @property
    def is_partitioned(self) -> bool:
        """Return whether folders such as `date=2026-11-21` hold values of columns."""
        root = _plain(self.path).rstrip("/")
        return any("=" in folder for name, *_ in self.found for folder in _below(_plain(name), root).split("/")[:-1])


def list_files(spark: SparkSession, path: str, *, glob: bool = False) -> Files:
    """List the files of a path. Raises SourceFault: SOURCE_MISSING, SOURCE_UNREADABLE, FILES_PASSED_OVER."""
    place = path if glob else literal_path(path)
    reader = spark.read.format("binaryFile").option("recursiveFileLookup", "true")
    listed = opened(lambda: reader.load(place), path)
    named = listed.select("path", "length", F.unix_micros("modificationTime").alias(c.AT))
    found: list[tuple[str, int, int]] = sorted(
        (row["path"], row["length"], row[c.AT]) for row in opened(named.collect, path)
    )
    if not found:
        _expect_nothing(path, glob=glob)
    for name, *_ in found:
        if ":" in name.rsplit("/", 1)[-1] and name.startswith("file:"):
            words = "Hadoop cannot open a local file with a colon in its name; rename it"
            raise SourceFault("SOURCE_UNREADABLE", f"{_plain(name)}: {words}")
    return Files(path, place, tuple(found))


def whole(rows: DataFrame, files: Files) -> DataFrame:
    """Return the rows of all files. Raises SourceFault FILES_PASSED_OVER if Spark would read only some of them."""
    if files.is_partitioned:
        read = len(opened(rows.inputFiles, files.path))
        if read != len(files.found):
            words = f"of {len(files.found)} files Spark reads {read}"
            way_out = "expected all files at one depth of folders such as date=2026-11-21, or no such folders"
            raise SourceFault("FILES_PASSED_OVER", f"{files.path}: {words}; {way_out}")
    return rows


def unreadable(error: str, names: Iterable[str]) -> SourceFault | None:
    """Return the fault of the first file among `names` that an error of Spark names; None without one."""
    known = {spelt: _plain(name) for name in names for spelt in (_plain(name), unquote(_plain(name)))}
    for match in _NAMED.finditer(error):
        said = _plain(match[1] or match[2])
        name = known.get(said) or known.get(unquote(said))
        if name is not None:
            reason = next((words for sign, words in _REASONS.items() if sign in error), "Spark cannot read it")
            return SourceFault(
                "SOURCE_UNREADABLE", f"{name}: {reason}; nothing was ingested; replace the file, or leave it out"
            )
    return None


def local_path(path: str) -> Path | None:
    """Return the local path, with or without `file:`; None in another store."""
    local = _LOCAL.match(path)
    return Path(path[local.end() :]) if local else None


def _expect_nothing(path: str, *, glob: bool) -> None:
    """Raise a fault if a path that Spark finds empty contains files."""
    hidden = [path] if path.rstrip("/").rsplit("/", 1)[-1].startswith(("_", ".")) and not glob else []
    root = local_path(path)
    if root is not None and not glob:
        hidden = [str(file) for file in ([root] if root.is_file() else _files(root)) if file.stat().st_size]
    if hidden:
        words = "names that begin with _ or . are hidden to Spark; rename it, or name the files"
        raise SourceFault("FILES_PASSED_OVER", f"{path}: no file of it would be read, such as {hidden[0]}: {words}")


def _files(root: Path) -> list[Path]:
    found = (Path(folder, name) for folder, _, names in os.walk(root) for name in names)
    return sorted(file for file in found if _LEFT_BY_SPARK.fullmatch(file.name) is None)


def plain_name(name: str) -> str:
    """Return a local file's name without `file:`, and unquoted."""
    return unquote(_plain(name)) if name.startswith("file:") else name


def _plain(name: str) -> str:
    """Remove `file:` from a local file's name."""
    return re.sub(r"^file:/+", "/", name)


def _below(name: str, root: str) -> str:
    """Return the part of a name below the source's folder; all of it if the folder is spelt differently."""
    return name.split("/" + root.removeprefix("./").lstrip("/") + "/", 1)[-1]


# Open Parquet and Delta tables in folders.


class PlacedColumn(NamedTuple):
    """A column of a table or a field in a struct of it, and its type."""

    column: Column
    kind: DataType


def table_files(spark: SparkSession, path: str, kind: str, *, glob: bool = False) -> Files:
    """Return the files of a table; for a Delta table those of its current version."""
    if kind != "delta":
        return list_files(spark, path, glob=glob)
    names = opened(lambda: spark.read.format(kind).load(path).inputFiles(), path)
    return Files(path, path, tuple(sorted((name, 1, 0) for name in names)))


def open_table(spark: SparkSession, files: Files, kind: str) -> DataFrame | None:
    """Return the rows of a Parquet or Delta table; None if no Parquet file has any.

    Folders such as `date=2026-11-21` give columns, as Spark reads them; below other folders all files are read.
    Raises SourceFault FILES_PASSED_OVER if Spark would read only some files.
    """
    if kind == "delta":
        return opened(lambda: spark.read.format(kind).load(files.path), files.path)
    if files.is_empty:
        return None
    reader = spark.read.option("recursiveFileLookup", str(not files.is_partitioned).lower())
    return whole(opened(lambda: reader.format(kind).load(files.place), files.path), files)


def paths(schema: StructType) -> dict[str, PlacedColumn]:
    """Map dotted names to every column and struct field: a column `a.b` hides field b of struct a."""
    found = {field.name: PlacedColumn(F.col(quoted(field.name)), field.dataType) for field in schema}
    below = list(found.items())
    while below:
        name, outer = below.pop(0)
        if isinstance(outer.kind, StructType):
            for field in outer.kind:
                inner = PlacedColumn(outer.column.getField(field.name), field.dataType)
                if found.setdefault(f"{name}.{field.name}", inner) is inner:
                    below.append((f"{name}.{field.name}", inner))
    return found


# Read files of lines: every physical line becomes one row, parsed by a parser of `core.log.lines`.

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
    lines: DataFrame, fields: StructType, parser: Callable[..., tuple[Any, ...]], shown: Mapping[str, str] = NO_VALUES
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
