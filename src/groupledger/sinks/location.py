"""Where a ledger is: a folder of tables, or a schema of Spark's catalogs; and what a path or a URL says."""

from __future__ import annotations

import json
import os
import re
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from groupledger.config import LedgerSettings
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.tables import Table
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal_path, quoted

if TYPE_CHECKING:
    from deltalake import DeltaTable


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)(?://(?P<host>[^/]*))?")


class LedgerFault(Fault):
    """There is no ledger at the place, or one that this version cannot use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLocation:
    """Where the tables are: a folder with one folder a table, or a `schema` or `catalog.schema` of Spark's catalogs."""

    path: str | None = None
    catalog: str | None = None
    shared: bool = False  # a local path that is a mount of all machines

    def __post_init__(self) -> None:
        if (self.path is None) == (self.catalog is None):
            message = f"a ledger is at a path or in a catalog; got path {self.path!r} and catalog {self.catalog!r}"
            raise LedgerFault("BAD_LOCATION", message)

    @classmethod
    def of(cls, settings: LedgerSettings) -> LedgerLocation:
        """Return the place that a configuration names."""
        return cls(path=settings.location, catalog=settings.catalog, shared=settings.shared)

    def __str__(self) -> str:
        return without_secrets(self.path) if self.path is not None else str(self.catalog)

    def identifier(self, table: Table) -> str:
        """Return the table's name in SQL, every part quoted."""
        if self.path is not None:
            return f"delta.{quoted(absolute(self.path).rstrip('/') + '/' + table.name)}"
        return f"{self.schema}.{quoted(table.name)}"

    @property
    def schema(self) -> str:
        """Return the catalog's schema in SQL, every part quoted."""
        return ".".join(quoted(part) for part in str(self.catalog).split("."))

    def rows(self, spark: SparkSession, table: Table, attempts: Collection[str] | None = None) -> DataFrame:
        """Read every row of a table, those of dead attempts too. Readers want `sinks.current.current`.

        With `attempts` every row of these: files that have none of them are passed over.
        """
        folder = None if attempts is None else self.folder(spark, table)
        found = None if folder is None or attempts is None else rows_in_files(spark, folder, attempts)
        return spark.table(self.identifier(table)) if found is None else found

    def folder(self, spark: SparkSession, table: Table) -> Path | None:
        """Return the table's folder as delta-rs takes it, if the ledger is one of this machine; else None.

        None, too, through Spark Connect, which has no JVM here, and where the path has a percent sign, which delta-rs
        takes for the code of another one.
        """
        if self.path is None or "%" in self.path or getattr(spark, "_jvm", None) is None:
            return None
        return local_folder(f"{with_scheme(spark, self.path).rstrip('/')}/{table.name}")


def absolute(path: str) -> str:
    """Return a folder as Spark's SQL takes it, which knows no working directory; URLs as they are."""
    return path if has_scheme(path) else str(Path(path).absolute())


def has_scheme(path: str) -> bool:
    """Return whether a path is a URL, which names its store."""
    return _SCHEME.match(path) is not None


def scheme(url: str) -> str:
    """Return the kind of store in lower case: `"s3a://bucket/ledger"` -> `"s3a"`; empty for a plain path."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def with_scheme(spark: SparkSession, path: str) -> str:
    """Return a plain path as a URL: on the cluster's default file system, which is this machine's unless it is set."""
    if has_scheme(path):
        return path
    context: Any = spark._jsc
    default = context.hadoopConfiguration().get("fs.defaultFS")
    return f"{scheme(default or 'file:/')}:{Path(path).absolute()}"


def local_folder(url: str | None) -> Path | None:
    """Return the folder of this machine that a `file:` URL names; None for other stores and for none.

    >>> local_folder("file:///data/ledger"), local_folder("s3a://bucket/ledger")
    (PosixPath('/data/ledger'), None)
    """
    found = _SCHEME.match(url or "")
    return Path(found.string[found.end() :]) if found and found[1] == "file" and not found["host"] else None


# Rows of a table in a folder of this machine, from the very files that have them: delta-rs says which these are.
#
# For a table that it has not read before, Delta's own reader runs a job to learn the table's files, and in each query
# one
# to choose among them. Both take longer than to read the rows of one ingest. What is here reads plain Parquet; where a
# table needs more than that (deletion vectors, renamed columns: a higher reader version), Delta's reader has to.

_ELSEWHERE = re.compile("[%:]")
"""In the path of a file: encoded, or that of another table; no writer of ours makes such ones."""
_BOUNDS = f"min.{c.ATTEMPT_ID}", f"max.{c.ATTEMPT_ID}"


def rows_in_files(spark: SparkSession, folder: Path, attempts: Collection[str]) -> DataFrame | None:
    """Read every row of these attempts in the table's latest version, and of others that share a file with one.

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
    """Open the latest version of the table in a folder; None if Delta's own reader has to read it.

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
    """Return whether there is an entry without a byte after the last checkpoint; no reader looks at those before it."""
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
    """Return whether a vacuum would remove a file, or may: delta-rs cannot always say."""
    from deltalake.exceptions import DeltaError

    table = plain_table(folder)
    try:
        return table is None or bool(table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True))
    except (DeltaError, OSError):
        return True


def _files(table: DeltaTable, attempts: list[str]) -> Iterator[str]:
    """List the files that may have rows of one of the attempts, by their statistics."""
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
