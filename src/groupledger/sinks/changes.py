"""The one way in which tables are changed: each command makes a Delta commit, on a local path under the table's lock.

Nothing else in this package runs a command that commits, or writes a frame to a table; a test of the source says so.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import AnalysisException

from groupledger.sinks.location import has_scheme, local_folder, scheme
from groupledger.sinks.locks import table_lock

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from groupledger.sinks.location import LedgerLocation
    from groupledger.tables import Table

_LOCATION = "Location"
_catalog_urls: dict[str, str] = {}
"""By the identifier of a table in a catalog: DESCRIBE takes as long as a small read."""


def run(spark: SparkSession, location: LedgerLocation, table: Table, command: str) -> list[Row]:
    """Run a command that changes a table; gives its answer."""
    with _alone(spark, location, table):
        return spark.sql(command).collect()


def append_rows(rows: DataFrame, location: LedgerLocation, table: Table) -> None:
    """Add the rows to a table."""
    with _alone(rows.sparkSession, location, table):
        rows.writeTo(location.identifier(table)).append()


def overwrite_rows(rows: DataFrame, location: LedgerLocation, table: Table, condition: Column) -> None:
    """Put the rows in the place of those that meet the condition."""
    with _alone(rows.sparkSession, location, table):
        rows.writeTo(location.identifier(table)).overwrite(condition)


def _alone(spark: SparkSession, location: LedgerLocation, table: Table) -> AbstractContextManager[None]:
    """The table's lock; nothing on other stores, whose writers Delta keeps apart, and through Spark Connect."""
    folder = local_folder(table_url(spark, location, table))
    return nullcontext() if folder is None else table_lock(spark, folder)


def table_url(spark: SparkSession, location: LedgerLocation, table: Table) -> str | None:
    """Where the table's folder is, as a URL; None where only a Spark Connect server knows, or a catalog does not."""
    jvm: Any = getattr(spark, "_jvm", None)  # a session of Spark Connect has none
    if jvm is None:
        return None
    if location.path is not None:
        return f"{_with_scheme(spark, location.path).rstrip('/')}/{table.name}"
    name = location.identifier(table)
    if name not in _catalog_urls:
        found = _described(spark, f"TABLE EXTENDED {name}")
        if found is None:  # it is about to be made
            schema = _described(spark, f"SCHEMA {location.schema}")
            return schema and f"{schema.rstrip('/')}/{table.name}"
        _catalog_urls[name] = found
    return _catalog_urls[name]


def _with_scheme(spark: SparkSession, path: str) -> str:
    """A plain path as a URL: it lies on the cluster's default file system, which is this machine's unless it is set."""
    if has_scheme(path):
        return path
    context: Any = spark._jsc
    default = context.hadoopConfiguration().get("fs.defaultFS")
    return f"{scheme(default or 'file:/')}:{Path(path).absolute()}"


def _described(spark: SparkSession, what: str) -> str | None:
    """The location that DESCRIBE gives."""
    try:
        rows = spark.sql(f"DESCRIBE {what}").collect()
    except AnalysisException:
        return None
    places = [row[1] for row in rows if row[0] == _LOCATION]
    return str(places[-1]) if places else None
