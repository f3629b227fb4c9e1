"""Where a ledger is: a folder of tables, or a schema of Spark's catalogs; and what a path or a URL says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.sinks.folder_files import rows_in_files
from groupledger.tables.sql_text import quoted

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark.sql import DataFrame, SparkSession

    from groupledger.config import LedgerSettings
    from groupledger.tables import Table

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
        """The place that a configuration names."""
        return cls(path=settings.location, catalog=settings.catalog, shared=settings.shared)

    def __str__(self) -> str:
        return without_secrets(self.path) if self.path is not None else str(self.catalog)

    def identifier(self, table: Table) -> str:
        """The table's name in SQL, every part quoted."""
        if self.path is not None:
            return f"delta.{quoted(absolute(self.path).rstrip('/') + '/' + table.name)}"
        return f"{self.schema}.{quoted(table.name)}"

    @property
    def schema(self) -> str:
        """The catalog's schema in SQL, every part quoted."""
        return ".".join(quoted(part) for part in str(self.catalog).split("."))

    def rows(self, spark: SparkSession, table: Table, attempts: Collection[str] | None = None) -> DataFrame:
        """Every row of a table, those of dead attempts too. Readers want `sinks.current.current`.

        With `attempts` every row of these: files that have none of them are passed over.
        """
        folder = None if attempts is None else self.folder(spark, table)
        found = None if folder is None or attempts is None else rows_in_files(spark, folder, attempts)
        return spark.table(self.identifier(table)) if found is None else found

    def folder(self, spark: SparkSession, table: Table) -> Path | None:
        """The table's folder as delta-rs takes it, where the ledger is one of this machine; else None.

        None, too, through Spark Connect, which has no JVM here, and where the path has a percent sign, which delta-rs
        takes for the code of another one.
        """
        if self.path is None or "%" in self.path or getattr(spark, "_jvm", None) is None:
            return None
        return local_folder(f"{with_scheme(spark, self.path).rstrip('/')}/{table.name}")


def absolute(path: str) -> str:
    """A folder as Spark's SQL takes it, which knows no working directory; URLs as they are."""
    return path if has_scheme(path) else str(Path(path).absolute())


def has_scheme(path: str) -> bool:
    """Whether a path is a URL, which says itself on which store it lies."""
    return _SCHEME.match(path) is not None


def scheme(url: str) -> str:
    """The kind of store in lower case: `"s3a://bucket/ledger"` -> `"s3a"`; empty for a plain path."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def with_scheme(spark: SparkSession, path: str) -> str:
    """A plain path as a URL: it lies on the cluster's default file system, which is this machine's unless it is set."""
    if has_scheme(path):
        return path
    context: Any = spark._jsc
    default = context.hadoopConfiguration().get("fs.defaultFS")
    return f"{scheme(default or 'file:/')}:{Path(path).absolute()}"


def local_folder(url: str | None) -> Path | None:
    """The folder of this machine that a `file:` URL names; None for other stores and for none.

    >>> local_folder("file:///data/ledger"), local_folder("s3a://bucket/ledger")
    (PosixPath('/data/ledger'), None)
    """
    found = _SCHEME.match(url or "")
    return Path(found.string[found.end() :]) if found and found[1] == "file" and not found["host"] else None
