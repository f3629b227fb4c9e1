"""Appending rows of an attempt to a table: counted and digested in the pass that writes them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql import functions as F

from groupledger.core.digest import rows_digest, short_digest
from groupledger.sinks.location import LedgerLocation, absolute, local_folder, table_lock, with_scheme
from groupledger.tables import SCHEMA_VERSION, Table
from groupledger.tables import columns as c
from groupledger.tables.data_file import DataFile
from groupledger.tables.declaration import SEEDS, SUMS, hashed_columns
from groupledger.tables.sql_text import quoted

if TYPE_CHECKING:
    from deltalake import DeltaTable


DIGESTS = "digest."
_LOW_HALF = 0xFFFFFFFF
_ROWS = "rows_written"
_HASH = "row_hash"


@dataclass(frozen=True, slots=True)
class Written:
    """What one append wrote. `digest` is free of attempt, run, clock, order and partitioning."""

    table: str
    rows: int
    sums: tuple[int, ...]
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """Digest of the bag of rows."""
        return rows_digest(self.rows, self.sums)


def digests(written: Iterable[Written]) -> dict[str, str]:
    """Return the digest of an attempt's rows by table, over all appends; tables without rows are left out."""
    rows: Counter[str] = Counter()
    sums: dict[str, list[int]] = {}
    for each in written:
        rows[each.table] += each.rows
        before = sums.get(each.table, [0] * len(each.sums))
        sums[each.table] = [one + other for one, other in zip(before, each.sums, strict=True)]
    return {table: rows_digest(number, sums[table]) for table, number in rows.items() if number}


def digest_name(table: str) -> str:
    """Return the name in `counts_out` of the digest of a table's rows."""
    return DIGESTS + table


def digest_counts(by_table: Mapping[str, str]) -> dict[str, int]:
    """Return what `counts_out` keeps of `digests`: each table can be checked if the rows of another are erased."""
    return {digest_name(table): short_digest(digest) for table, digest in by_table.items()}


def stored(
    spark: SparkSession, location: LedgerLocation, table: Table, attempt_id: str | None = None
) -> dict[str, Written]:
    """Measure the rows of a table by attempt, as `append` did when it wrote them; of all attempts, or of one."""
    if attempt_id is None:
        return measured(table, location.rows(spark, table))
    return measured(table, location.rows(spark, table, [attempt_id]).where(F.col(c.ATTEMPT_ID) == attempt_id))


def measured(table: Table, rows: DataFrame) -> dict[str, Written]:
    """Measure stamped rows by attempt, as an append of them would."""
    hashed = rows.select(c.ATTEMPT_ID, *_hashes(table)).groupBy(c.ATTEMPT_ID)
    found = hashed.agg(F.count(F.lit(1)).alias(_ROWS), *_hash_sums()).collect()
    return {row[0]: Written(table.name, row[1], tuple(row[2:])) for row in found}


def append(
    location: LedgerLocation,
    table: Table,
    rows: DataFrame,
    attempt_id: str,
    metrics: Mapping[str, Column] = MappingProxyType({}),
    files: int | None = None,
) -> Written:
    """Append `rows`, stamped with the attempt, in one Delta commit; nobody sees them before `runs.commit`.

    `rows` has the table's columns by name, in any order, `attempt_id` apart; they are cast to its types. `metrics` are
    further aggregates over the table's columns, observed in the same pass. At most `files` files are written; without
    it one a partition.
    """
    stamped = stamp(table, rows, attempt_id)
    stamped = stamped if files is None else stamped.coalesce(files)
    observation = Observation()
    aggregates = [F.count(F.lit(1)).alias(_ROWS), *_hash_sums()]
    aggregates += [aggregate.alias(name) for name, aggregate in metrics.items()]
    hashed = stamped.select("*", *_hashes(table)).observe(observation, *aggregates)
    append_rows(hashed.select(*table.columns), location, table)
    seen = observation.get
    sums = tuple(seen[name] or 0 for name in SUMS)
    return Written(table.name, seen[_ROWS], sums, {name: seen[name] for name in metrics})


def stamp(table: Table, rows: DataFrame, attempt_id: str, version: int = SCHEMA_VERSION) -> DataFrame:
    """Return the rows as the table has them, stamped with the attempt; `version`: that of the schema."""
    return rows.withColumn(c.ATTEMPT_ID, F.lit(attempt_id)).selectExpr(*_contract(table, version))


def _contract(table: Table, version: int = SCHEMA_VERSION) -> Iterator[str]:
    """Cast the table's columns to its types, so that the stored values are hashed; null if an older version had none.

    A type in SQL allows nulls inside, as Delta keeps it; a cast that only allows them costs nothing. `DataFrame.to`
    builds each list again, part by part: 16 us a row of `assignments`.
    """
    later = table.unknown_to(version)
    for column in table.schema:
        name = quoted(column.name)
        value = "NULL" if column.name in later else name
        yield f"cast({value} AS {column.dataType.simpleString()}) AS {name}"


def _hashes(table: Table) -> Iterator[Column]:
    """Two 64-bit hashes of each row, as columns: an aggregate would compute them again for each of its halves.

    In SQL, since each part of a Column costs calls into the JVM, and there are hundreds of parts.
    """
    terms = ", ".join(_terms(table))
    return (F.expr(f"xxhash64({seed}, {terms})").alias(f"{_HASH}_{seed}") for seed in SEEDS)


def _hash_sums() -> Iterator[Column]:
    """Sum the 32-bit halves of the row hashes: independent of order, no overflow below 2^31 rows."""
    for seed in SEEDS:
        yield F.expr(f"sum({_HASH}_{seed} & {_LOW_HALF}L)").alias(f"low_{seed}")
        yield F.expr(f"sum(shiftright({_HASH}_{seed}, 32))").alias(f"high_{seed}")


def _terms(table: Table) -> Iterator[str]:
    """List the terms of a row's hash."""
    for column in hashed_columns(table):
        name = quoted(column.field.name)
        yield f"if({name} IS NULL, NULL, {column.number})" if column.later else str(column.number)
        yield f"to_json({name}, map('ignoreNullFields', 'false'))" if column.as_json else name


# The one way in which tables are changed: each command makes a Delta commit, on a local path under the table's lock.
#
# Nothing else in this package runs a command that commits, or writes a frame to a table; a test of the source says so.

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
    the rows, who wrote the files has asked (`engine.envelope`): they are stamped, checked and hashed.
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
