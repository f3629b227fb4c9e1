"""Open Parquet and Delta tables in folders."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from groupledger.sources.files import Files, list_files, whole
from groupledger.sources.opening import opened
from groupledger.tables.sql_text import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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
