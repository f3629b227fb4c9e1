"""Opening Parquet and Delta tables as they lie in their folders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from groupledger.sources.files import Files, list_files, whole
from groupledger.sources.opening import opened

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def table_files(spark: SparkSession, path: str, kind: str, *, glob: bool = False) -> Files:
    """The files of a table; of a Delta table those of its present version."""
    if kind != "delta":
        return list_files(spark, path, glob=glob)
    names = opened(lambda: spark.read.format(kind).load(path).inputFiles(), path)
    return Files(path, path, tuple(sorted((name, 1, 0) for name in names)))


def open_table(spark: SparkSession, files: Files, kind: str) -> DataFrame | None:
    """The rows of a Parquet or Delta table; None where Parquet has no file that holds any.

    Folders such as `date=2026-11-21` give columns, as Spark reads them; below other folders all files are read.
    Raises SourceFault FILES_PASSED_OVER where Spark would read some files only.
    """
    if kind == "delta":
        return opened(lambda: spark.read.format(kind).load(files.path), files.path)
    if files.is_empty:
        return None
    reader = spark.read.option("recursiveFileLookup", str(not files.is_partitioned).lower())
    return whole(opened(lambda: reader.format(kind).load(files.place), files.path), files)
