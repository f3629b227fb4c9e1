"""How rows of the ledger's tables leave a Python worker: table by table, so that nothing wide meets the JVM.

An envelope is a row that stands for many rows of one table. They lie in a file that the worker has written into the
table's folder, or, where the ledger is no folder of this machine, in the envelope itself, as Arrow bytes.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.row_hashes import hash_sums
from groupledger.tables import columns as c
from groupledger.tables.data_file import DataFile
from groupledger.tables.declaration import OneOf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row
    from pyspark.sql.types import DataType

    from groupledger.tables import Table
    from groupledger.tables.declaration import ColumnRule


TABLE, ROWS, DATA = "table", "rows", "data"
COUNTS = "counts"
"""The table of an envelope with counts: no table of the ledger, but what a worker has to say of its bucket."""

ENVELOPE = StructType(
    [
        StructField(TABLE, StringType(), nullable=False),
        StructField(ROWS, LongType(), nullable=False),
        StructField(DATA, BinaryType()),
        StructField("sums", ArrayType(LongType())),
        StructField("most_members", IntegerType()),
        StructField(
            "file",
            StructType(
                [
                    StructField("name", StringType()),
                    StructField("size", LongType()),
                    StructField("modified_ms", LongType()),
                    StructField("statistics", StringType()),
                ]
            ),
        ),
    ]
)
"""`data`: the rows, as a stream of Arrow's. Of a `file` (`tables.data_file.DataFile`) instead: sums of the hashes of
its rows (`row_digest.SUMS`), and the most members of a row, where rows have a number of them."""

COUNT = StructType(
    [
        StructField(c.CLUSTER_ID, StringType()),
        StructField("name", StringType()),
        StructField("rows", LongType()),
    ]
)

MOST_BYTES = 1 << 28
"""Of the rows of one envelope, as many a row as on average: a row of Spark's holds 2 GiB at most."""


class Envelope(NamedTuple):
    """A row of ENVELOPE."""

    table: str
    rows: int
    data: bytes | None = None
    sums: Sequence[int] = ()
    most_members: int | None = None
    file: DataFile | None = None

    @classmethod
    def of_row(cls, row: Row) -> Envelope:
        """Return the envelope as it came from Spark."""
        table, rows, data, sums, most_members, file = row
        return cls(table, rows, data, tuple(sums or ()), most_members, None if file is None else DataFile(*file))


class NamedCount(NamedTuple):
    """A row of COUNT: how many of what is named, in a cluster or in all of them."""

    cluster_id: str | None
    name: str
    rows: int


def columns_of(table: Table) -> StructType:
    """Return the columns of a table that a worker fills: all but the attempt."""
    return StructType([field for field in table.schema if field.name != c.ATTEMPT_ID])


def sealed(table: Table, rows: pa.Table, files: FilesOfAttempt | None) -> Iterator[Envelope]:
    """Yield envelopes with the rows, of which there are some; `files`: in a file each."""
    most = max(1, MOST_BYTES * len(rows) // max(1, rows.nbytes))
    for start in range(0, len(rows), most):
        some = rows.slice(start, most)
        if files is None:
            yield Envelope(table.name, len(some), as_bytes(some))
        else:
            members = pc.max(some[c.MEMBERS]).as_py() if c.MEMBERS in table.columns else None
            file = write_file(table, some, files)
            yield Envelope(table.name, len(some), None, hash_sums(table, some), members, file)


def as_table(envelopes: list[Envelope]) -> pa.Table:
    """Return the envelopes as a worker gives them to Spark."""
    schema = arrow_schema(ENVELOPE)
    columns = [[each[number] for each in envelopes] for number in range(len(schema))]
    return pa.table([pa.array(column, kind) for column, kind in zip(columns, schema.types, strict=True)], schema=schema)


def as_bytes(rows: pa.Table) -> bytes:
    """Return rows as a stream of Arrow's, compressed."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as stream:
        stream.write_table(rows)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def opened(envelopes: DataFrame, table: Table) -> DataFrame:
    """Return the rows of a table that lie in envelopes, with all its columns but the attempt."""
    mine = envelopes.where(F.col(TABLE) == table.name).select(DATA)
    return mine.mapInArrow(_rows, columns_of(table))


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for data in batch.column(0):
            yield from pa.ipc.open_stream(data.as_buffer())


def sealed_counts(counts: Sequence[NamedCount]) -> Envelope:
    """Return an envelope with counts."""
    schema = arrow_schema(COUNT)
    columns = [pa.array(values, kind) for values, kind in zip(zip(*counts, strict=True), schema.types, strict=False)]
    rows = pa.table(columns, schema=schema) if columns else schema.empty_table()
    return Envelope(COUNTS, len(counts), as_bytes(rows))


def counts_of(envelope: Envelope) -> list[NamedCount]:
    """Return the counts of an envelope."""
    rows = pa.ipc.open_stream(envelope.data).read_all()
    return list(map(NamedCount, *(column.to_pylist() for column in rows.columns)))


# Parquet files of the ledger's tables, written by workers: rows leave a worker once, and a commit takes the files in.
#
# A file has what a writer of the table owes it: no row breaks a constraint, none lacks a required value, and there are
# statistics of the columns that readers filter by. Until it is committed nobody sees it, and the files of an attempt
# that
# died are removed by VACUUM as Spark's own are.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class FilesOfAttempt:
    """Where an attempt's files go: the folder of each table."""

    attempt_id: str
    folders: Mapping[str, str]


def write_file(table: Table, rows: pa.Table, attempt: FilesOfAttempt) -> DataFile:
    """Write rows, which have the table's columns but the attempt, into a new file of the table.

    Raises ValueError where a row breaks a constraint, in the words of Delta, or lacks a required value.
    """
    from pyarrow import parquet

    _require(table, rows)
    stamp = pa.repeat(pa.scalar(attempt.attempt_id, pa.string()), len(rows))
    columns = {name: stamp if name == c.ATTEMPT_ID else rows[name] for name in table.columns}
    place = Path(attempt.folders[table.name], f"part-{os.urandom(16).hex()}.parquet")
    written: list[Any] = []
    schema = arrow_schema(table.schema)
    options = {"compression": "zstd", "store_schema": False, "write_page_checksum": True}
    with parquet.ParquetWriter(str(place), schema, metadata_collector=written, **options) as writer:
        writer.write_table(pa.table(columns, schema=schema))
    state = place.stat()
    return DataFile(place.name, state.st_size, state.st_mtime_ns // 1_000_000, json.dumps(_statistics(table, *written)))


def _require(table: Table, rows: pa.Table) -> None:
    """Raise ValueError at a row that Delta would refuse, in its words: `sinks.spark_errors` reads them."""
    for field in table.schema:
        if not field.nullable and field.name != c.ATTEMPT_ID and rows[field.name].null_count:
            raise ValueError(f"NOT NULL constraint violated for column: {table.name}.{field.name}")
    for check in table.checks:
        for rule in check.rules:
            broken = rows.filter(_breaks(rows, rule))
            if len(broken):
                values = (f"\n - {name} : {broken[name][0].as_py()}" for name in rule.columns)
                what = f"CHECK constraint {table.name}_{check.name} ({check.condition})"
                raise ValueError(f"{what} violated by row with values:{''.join(values)}")


def _breaks(rows: pa.Table, rule: ColumnRule) -> Any:
    """Whether each row breaks a rule."""
    column = rows[rule.column]
    if isinstance(rule, OneOf):
        return pc.invert(pc.is_in(column, value_set=pa.array(rule.words, pa.string())))
    return pc.less(column, rows[rule.least] if isinstance(rule.least, str) else rule.least).fill_null(False)


def _statistics(table: Table, metadata: Any) -> dict[str, Any]:
    """Return what Delta's log says of a file: its rows, and bounds and nulls of the columns that readers filter by."""
    numbers = {metadata.schema.column(number).path: number for number in range(metadata.num_columns)}
    least, greatest, nulls = {}, {}, {}
    row_groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for name in table.filtered_by:
        groups = [each.column(numbers[name]).statistics for each in row_groups]
        nulls[name] = sum(each.null_count for each in groups)
        kind = table.schema[name].dataType
        bounds = [bound for each in groups if each.has_min_max for bound in (each.min_raw, each.max_raw)]
        if len(bounds) == 2 * sum(each.num_values > 0 for each in groups) > 0:
            limits = [_as_in_the_log(bound, kind) for bound in (min(bounds), max(bounds))]
            if None not in limits:
                least[name], greatest[name] = limits
    return {"numRecords": metadata.num_rows, "minValues": least, "maxValues": greatest, "nullCount": nulls}


def _as_in_the_log(bound: Any, kind: DataType) -> Any:
    """Return a bound as Delta's log has it: times in milliseconds, cut; None where a time is beyond the year 9999."""
    if isinstance(bound, bytes):
        return bound.decode()
    if not isinstance(kind, TimestampType):
        return bound
    try:
        moment = _EPOCH + timedelta(milliseconds=bound // 1_000)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
