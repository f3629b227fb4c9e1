"""How rows of the ledger's tables leave a Python worker: table by table, so that nothing wide meets the JVM.

An envelope is a row that stands for many rows of one table. They lie in a file that the worker has written into the
table's folder, or, where the ledger is no folder of this machine, in the envelope itself, as Arrow bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BinaryType, IntegerType, LongType, StringType, StructField, StructType

from groupledger.engine.arrow_types import arrow_schema
from groupledger.engine.row_hashes import hash_sums
from groupledger.engine.table_files import write_file
from groupledger.tables import columns as c
from groupledger.tables.data_file import DataFile

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row

    from groupledger.engine.table_files import FilesOfAttempt
    from groupledger.tables import Table

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
