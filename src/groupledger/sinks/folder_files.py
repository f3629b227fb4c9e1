"""Rows of a table in a folder of this machine, from the very files that have them: delta-rs says which these are.

For a table that it has not read before, Delta's own reader runs a job to learn the table's files, and in each query one
to choose among them. Both take longer than to read the rows of one ingest. What is here reads plain Parquet; where a
table needs more than that (deletion vectors, renamed columns: a higher reader version), Delta's reader has to.
"""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal_path, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession

_ELSEWHERE = re.compile("[%:]")
"""In the path of a file: encoded, or that of another table; no writer of ours makes such ones."""
_BOUNDS = f"min.{c.ATTEMPT_ID}", f"max.{c.ATTEMPT_ID}"


def rows_in_files(spark: SparkSession, folder: Path, attempts: Collection[str]) -> DataFrame | None:
    """Every row of these attempts in the table's latest version, and of others that share a file with one of them.

    None where Delta's reader has to read it, or to say what is wrong with it.
    """
    table = plain_table(folder)
    if table is None or table.metadata().partition_columns:
        return None
    names = list(_files(table, sorted(attempts)))
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    if any(_ELSEWHERE.search(name) or not (folder / name).is_file() for name in names):
        return None
    if names:
        reader = spark.read.schema(schema).option("recursiveFileLookup", "true")  # no columns from folders like `a=1`
        return reader.parquet(*(literal_path(f"file:{folder / name}") for name in names))
    none = (f"cast(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in schema)
    return spark.range(0).where("false").selectExpr(*none)  # the optimizer sees that there is nothing


def verified_rows(
    folder: Path, columns: Sequence[str], condition: Any, attempts: Collection[str] | None = None
) -> list[dict[str, Any]] | None:
    """Return the rows for which an expression of Arrow's holds; each page is held against its checksum.

    With `attempts` only files that may have rows of these are opened. None as in `rows_in_files`.
    """
    from pyarrow import ArrowException, parquet

    table = plain_table(folder)
    if table is None:
        return None
    names = table.get_add_actions()["path"].to_pylist() if attempts is None else list(_files(table, sorted(attempts)))
    if any(_ELSEWHERE.search(name) for name in names):
        return None
    places, how = [folder / name for name in names], {"filters": condition, "page_checksum_verification": True}
    try:
        return parquet.read_table(places, columns=list(columns), **how).to_pylist() if places else []
    except (OSError, ArrowException):
        return None


def plain_table(folder: Path) -> DeltaTable | None:
    """The latest version of the table in a folder; None where Delta's own reader has to read it.

    That is where its files do not say all of its rows, and where the log is damaged: an entry without a byte, which
    delta-rs passes over, too.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        if _has_empty_entry(folder / "_delta_log"):
            return None
        table = DeltaTable(str(folder))
        return table if table.protocol().min_reader_version == 1 else None
    except (DeltaError, OSError):
        return None


def _has_empty_entry(log: Path) -> bool:
    """Whether an entry without a byte stands behind the last checkpoint; no reader looks at those before it."""
    try:
        version = int(json.loads((log / "_last_checkpoint").read_bytes())["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        version = -1
    with os.scandir(log) as entries:
        later = (each for each in entries if each.name > f"{version:020}.json" and each.name.endswith(".json"))
        return any(not each.stat().st_size for each in later)


def file_sizes(folder: Path) -> list[int] | None:
    """Return the bytes of each file of the table's latest version; None where delta-rs cannot say."""
    table = plain_table(folder)
    return None if table is None else list(table.get_add_actions()["size_bytes"].to_pylist())


def has_files_to_vacuum(folder: Path, hours: int) -> bool:
    """Return whether a vacuum would remove a file, or may: where delta-rs cannot say, only a vacuum tells."""
    from deltalake.exceptions import DeltaError

    table = plain_table(folder)
    try:
        return table is None or bool(table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True))
    except (DeltaError, OSError):
        return True


def _files(table: DeltaTable, attempts: list[str]) -> Iterator[str]:
    """The files that may have rows of one of the attempts, by the statistics of their attempts."""
    added = table.get_add_actions(flatten=True)
    names = added["path"].to_pylist()
    if not set(_BOUNDS) <= set(added.column_names):
        yield from names
        return
    least, greatest = (added[name].to_pylist() for name in _BOUNDS)
    for name, low, high in zip(names, least, greatest, strict=True):
        at = 0 if low is None else bisect_left(attempts, low)
        if at < len(attempts) and (high is None or attempts[at] <= high):
            yield name
