"""The one way in which tables are changed: each command makes a Delta commit, on a local path under the table's lock.

Nothing else in this package runs a command that commits, or writes a frame to a table; a test of the source says so.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Row, SparkSession

from groupledger.sinks.location import LedgerLocation, absolute, local_folder, with_scheme
from groupledger.sinks.locks import table_lock
from groupledger.tables import Table
from groupledger.tables.data_file import DataFile

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LOCATION = "Location"
_catalog_urls: dict[str, str] = {}
"""By the identifier of a table in a catalog: DESCRIBE takes as long as a small read."""


def run(spark: SparkSession, location: LedgerLocation, table: Table, command: str) -> list[Row]:
    """Run a command that changes a table; return its answer."""
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


def append_once(rows: DataFrame, place: str, name: str) -> None:
    """Append the rows to the table of a user in a folder or at a URL, unless that was done under this name.

    The name is one of Delta's transactions: it stands in the commit that adds the rows, and a repeat reads nothing.
    """
    spark: Any = rows.sparkSession
    folder = None if getattr(spark, "_jvm", None) is None else local_folder(with_scheme(spark, place))
    with nullcontext() if folder is None else table_lock(spark, folder):
        rows.write.format("delta").mode("append").options(txnAppId=name, txnVersion=1).save(absolute(place))


def adds_files(spark: SparkSession) -> bool:
    """Return whether `add_files` knows this session's Delta: what it calls is no public interface."""
    jvm: Any = getattr(spark, "_jvm", None)
    try:
        return jvm is not None and _Delta(jvm).appending is not None
    except (Py4JError, AttributeError, TypeError):
        return False


def add_files(spark: SparkSession, location: LedgerLocation, table: Table, files: Iterable[DataFile]) -> None:
    """Add files that stand in the table's folder, in one version of it, through Delta's own transaction in the JVM.

    Delta has no public way to do that, but for SQL that reads and writes all rows again. What it would have asked of
    the rows, who wrote the files has asked (`engine.envelope`).
    """
    session: Any = spark
    delta = _Delta(session._jvm)
    with _alone(spark, location, table):
        log = delta.logs.forTable(session._jsparkSession, table_url(spark, location, table))
        added = [delta.actions.fromJson(json.dumps({"add": file.add_action})) for file in files]
        log.startTransaction().commit(session._jvm.PythonUtils.toSeq(added), delta.appending)


class _Delta:
    """What is called of Delta in the JVM."""

    def __init__(self, jvm: Any) -> None:
        engine = jvm.org.apache.spark
        package = engine.sql.delta
        self.jvm, self.append = jvm, engine.sql.SaveMode.Append
        self.logs = getattr(getattr(package, "DeltaLog$"), "MODULE$")
        self.actions = getattr(getattr(package.actions, "Action$"), "MODULE$")

    @property
    def appending(self) -> Any:
        """What an append of Spark's is in a table's history; of its options, which differ by version, it has none."""
        loader = self.logs.getClass().getClassLoader()
        (made, *_) = loader.loadClass("org.apache.spark.sql.delta.DeltaOperations$Write").getConstructors()
        options = [self.jvm.scala.Option.empty()] * (made.getParameterCount() - 1)
        return made.newInstance(self.jvm.PythonUtils.toArray([self.append, *options]))


def insert_rows(
    folder: Path, name: str, rows: Sequence[Mapping[str, Any]], barred: Callable[[DeltaTable], bool]
) -> bool:
    """Add rows to the table in a folder of this machine without Spark, unless its latest version bars them.

    `rows` are of one partition, and no other rows are called `name`. First a file of data is written, which nobody
    sees, then an entry of the log, under the number after that of the version that `barred` saw, or not at all. Gives
    whether they went in: False, too, where a writer that takes no lock was faster.
    """
    from deltalake import DeltaTable

    with table_lock(None, folder):
        table = DeltaTable(str(folder))
        return not barred(table) and _added(folder, name, table, rows, "append")


def gather_rows(
    folder: Path,
    read: Callable[[DeltaTable, Mapping[str, str]], Sequence[Mapping[str, Any]]],
    partition: Mapping[str, str],
) -> bool:
    """Put one file in the place of those of a partition, with the rows that `read` finds in it; whether it was done.

    As `insert_rows`: there is a version with the files before, and one with the file after it.
    """
    from deltalake import DeltaTable

    with table_lock(None, folder):
        table = DeltaTable(str(folder))
        return _added(folder, "gathered", table, read(table, partition), "overwrite")


def _added(
    folder: Path, name: str, table: DeltaTable, rows: Sequence[Mapping[str, Any]], mode: Literal["append", "overwrite"]
) -> bool:
    """Add rows of one partition to it, or put them in the place of its own, as the next version or not at all."""
    from deltalake.exceptions import CommitFailedError
    from deltalake.transaction import AddAction, CommitProperties

    columns = table.metadata().partition_columns
    path, size = _write_file(folder, f"part-{table.version() + 1:020}-{name}.parquet", table, rows)
    values = {name: rows[0][name] for name in columns}
    changed, stats = mode == "append", json.dumps({"numRecords": len(rows)})
    added = AddAction(path, size, values, int(Path(folder, path).stat().st_mtime * 1000), changed, stats)
    replaced = None if changed else [(name, "=", value) for name, value in values.items()]
    once = CommitProperties(max_commit_retries=0)
    try:
        table.create_write_transaction([added], mode, table.schema(), columns, replaced, commit_properties=once)
    except CommitFailedError:
        return False
    return True


def _write_file(folder: Path, name: str, table: DeltaTable, rows: Sequence[Mapping[str, Any]]) -> tuple[str, int]:
    """Write a file of data; its place below the folder, and its size."""
    import pyarrow as pa
    from pyarrow import parquet

    partitions = table.metadata().partition_columns
    declared = pa.schema(table.schema().to_arrow())
    fields = [field.remove_metadata() for field in declared if field.name not in partitions]
    data = pa.Table.from_pylist([{field.name: row[field.name] for field in fields} for row in rows], pa.schema(fields))
    below = Path(*(f"{name}={rows[0][name]}" for name in partitions))
    Path(folder, below).mkdir(parents=True, exist_ok=True)
    place = below / name
    parquet.write_table(data, folder / place, compression="zstd", store_schema=False, write_page_checksum=True)
    return place.as_posix(), Path(folder, place).stat().st_size


def _alone(spark: SparkSession, location: LedgerLocation, table: Table) -> AbstractContextManager[None]:
    """Hold the table's lock; do nothing on other stores, whose writers Delta keeps apart, and through Spark Connect."""
    folder = local_folder(table_url(spark, location, table))
    return nullcontext() if folder is None else table_lock(spark, folder)


def table_url(spark: SparkSession, location: LedgerLocation, table: Table) -> str | None:
    """Return the URL of the table's folder; None where only a Spark Connect server knows, or a catalog does not."""
    jvm: Any = getattr(spark, "_jvm", None)  # a session of Spark Connect has none
    if jvm is None:
        return None
    if location.path is not None:
        return f"{with_scheme(spark, location.path).rstrip('/')}/{table.name}"
    name = location.identifier(table)
    if name not in _catalog_urls:
        found = _described(spark, f"TABLE EXTENDED {name}")
        if found is None:  # it is about to be made
            schema = _described(spark, f"SCHEMA {location.schema}")
            return schema and f"{schema.rstrip('/')}/{table.name}"
        _catalog_urls[name] = found
    return _catalog_urls[name]


def _described(spark: SparkSession, what: str) -> str | None:
    """Return the location that DESCRIBE gives."""
    try:
        rows = spark.sql(f"DESCRIBE {what}").collect()
    except AnalysisException:
        return None
    places = [row[1] for row in rows if row[0] == _LOCATION]
    return str(places[-1]) if places else None
