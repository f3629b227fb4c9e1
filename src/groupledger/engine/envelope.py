"""How rows of the ledger's tables leave a Python worker: table by table, so that nothing wide meets the JVM.

An envelope is a row that stands for many rows of one table. They lie in a file that the worker has written into the
table's folder, or, where the ledger is no folder of this machine, in the envelope itself, as Arrow bytes.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from groupledger.core.arrays.kernels import compiled, kernel, runs_compiled
from groupledger.core.arrays.ragged import starts
from groupledger.engine.arrow_lists import ByteColumn, arrow_schema, one_array
from groupledger.tables import TABLES, Table
from groupledger.tables import columns as c
from groupledger.tables.data_file import DataFile
from groupledger.tables.declaration import SEEDS, ColumnRule, OneOf, hashed_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.batch import LongArray
    from groupledger.core.arrays.checksums import ByteArray

    HashArray = NDArray[np.uint64]

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
    [StructField(c.CLUSTER_ID, StringType()), StructField("name", StringType()), StructField("rows", LongType())]
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


SCHEMAS = {table.name: arrow_schema(columns_of(table)) for table in TABLES}
"""Arrow's form of these columns, by table."""


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
# that died are removed by VACUUM as Spark's own are.

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
    """Raise ValueError at a row that Delta would refuse, in its words: `sinks.location` reads them."""
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


# Hash rows as `sinks.append` does in SQL, over Arrow columns: what a worker writes has the digest that Spark gives it.
#
# Columns that are hashed as JSON are written as Spark's `to_json` writes them, all rows at once.

FIRST_SEED = 42
"""Spark's."""
IN_FOUR_BYTES, IN_EIGHT_BYTES, IN_BYTES = range(3)
"""Kinds of values: the number `first`, or the bytes from `first` to before `end`."""

P1 = np.uint64(0x9E3779B185EBCA87)
P2 = np.uint64(0xC2B2AE3D27D4EB4F)
P3 = np.uint64(0x165667B19E3779F9)
P4 = np.uint64(0x85EBCA77C2B2AE63)
P5 = np.uint64(0x27D4EB2F165667C5)
LOW_BITS = 0xFFFFFFFF
BYTE = np.uint64(8)


class RowValues(NamedTuple):
    """What is hashed of N rows: row i has the values from `start[i]` to before `start[i + 1]`, in order.

    By its kind a value is the number `first`, or the bytes of `data` from `first` to before `end`.
    """

    start: LongArray  # [N+1]
    kind: ByteArray
    first: LongArray
    end: LongArray
    data: ByteArray


def seeded(seeds: Sequence[int], rows: int) -> HashArray:
    """Return the hashes of rows of which nothing but a seed is hashed: [seeds, rows]."""
    each = of_int(np.array(seeds, np.uint64), np.full(len(seeds), FIRST_SEED, np.uint64))
    return np.repeat(each[:, None], rows, axis=1)


def add_column(hashes: HashArray, number: int, numbered: NDArray[np.bool_], values: RowValues) -> None:
    """Add to the hashes of each row a column's number, where the row is `numbered`, and its values."""
    cells = hashes.size + int((values.end - values.first)[values.kind == IN_BYTES].sum())
    if runs_compiled(_add_column, cells):
        compiled(_add_column)(hashes, number, numbered, *values)
    else:
        _add_alike(hashes, number, numbered, values)


def _add_alike(hashes: HashArray, number: int, numbered: NDArray[np.bool_], values: RowValues) -> None:
    """As `_add_column`, interpreted: all rows at once whose values are of one kind and length."""
    hashes[:, numbered] = of_int(np.array([number], np.uint64), hashes[:, numbered])
    counts = np.diff(values.start)
    for place in range(int(counts.max(initial=0))):
        row = np.flatnonzero(counts > place)
        at = values.start[:-1][row] + place
        sizes = np.where(
            values.kind[at] == IN_BYTES, values.end[at] - values.first[at], -values.kind[at].astype(int) - 1
        )
        for size in np.unique(sizes).tolist():
            some, first = row[sizes == size], values.first[at[sizes == size]]
            if size >= 0:
                columns = values.data[first + np.arange(size)[:, None]]
                hashes[:, some] = of_bytes(columns, 0, size, hashes[:, some])
            elif size == -IN_EIGHT_BYTES - 1:
                hashes[:, some] = of_long(first.astype(np.uint64), hashes[:, some])
            else:
                hashes[:, some] = of_int((first & LOW_BITS).astype(np.uint64), hashes[:, some])


@kernel
def _add_column(
    hashes: HashArray,
    number: int,
    numbered: NDArray[np.bool_],
    start: LongArray,
    kind: ByteArray,
    first: LongArray,
    end: LongArray,
    data: ByteArray,
) -> None:
    for row in range(len(numbered)):
        for each in range(len(hashes)):
            hashed = hashes[each, row]
            if numbered[row]:
                hashed = of_int(np.uint64(number), hashed)
            for at in range(start[row], start[row + 1]):
                if kind[at] == IN_BYTES:
                    hashed = of_bytes(data, first[at], end[at], hashed)
                elif kind[at] == IN_EIGHT_BYTES:
                    hashed = of_long(np.uint64(first[at]), hashed)
                else:
                    hashed = of_int(np.uint64(first[at] & LOW_BITS), hashed)
            hashes[each, row] = hashed


@kernel
def of_int(number: Any, seed: Any) -> Any:
    """Return the hash of a number of 32 bits, without its sign."""
    return mixed(turned((seed + P5 + np.uint64(4)) ^ (number * P1), np.uint64(23)) * P2 + P3)


@kernel
def of_long(number: Any, seed: Any) -> Any:
    """Return the hash of a number of 64 bits."""
    return mixed(with_word(seed + P5 + np.uint64(8), number))


@kernel
def of_bytes(data: ByteArray, start: int, end: int, seed: Any) -> Any:
    """Return the hash of the bytes from `start` to before `end`."""
    size, at = np.uint64(end - start), start
    if end - start >= 32:
        one, two, three, four = seed + P1 + P2, seed + P2, seed, seed - P1
        while at + 32 <= end:
            one = in_lane(one, word(data, at, 8))
            two = in_lane(two, word(data, at + 8, 8))
            three = in_lane(three, word(data, at + 16, 8))
            four = in_lane(four, word(data, at + 24, 8))
            at += 32
        hashed = turned(one, np.uint64(1)) + turned(two, np.uint64(7))
        hashed = hashed + turned(three, np.uint64(12)) + turned(four, np.uint64(18))
        hashed = with_lane(with_lane(with_lane(with_lane(hashed, one), two), three), four)
    else:
        hashed = seed + P5
    hashed = hashed + size
    while at + 8 <= end:
        hashed = with_word(hashed, word(data, at, 8))
        at += 8
    if at + 4 <= end:
        hashed = turned(hashed ^ (word(data, at, 4) * P1), np.uint64(23)) * P2 + P3
        at += 4
    while at < end:
        hashed = turned(hashed ^ (np.uint64(data[at]) * P5), np.uint64(11)) * P1
        at += 1
    return mixed(hashed)


@kernel
def word(data: ByteArray, at: int, size: int) -> Any:
    """Return so many bytes as a number, low byte first."""
    number = np.uint64(0)
    for place in range(size):
        number = number | np.uint64(data[at + place]) << (np.uint64(place) * BYTE)
    return number


@kernel
def in_lane(lane: Any, number: Any) -> Any:
    """Return one of the four running sums with eight more bytes."""
    return turned(lane + number * P2, np.uint64(31)) * P1


@kernel
def with_lane(hashed: Any, lane: Any) -> Any:
    """Return the hash with one of the four sums."""
    return (hashed ^ in_lane(np.uint64(0), lane)) * P1 + P4


@kernel
def with_word(hashed: Any, number: Any) -> Any:
    """Return the hash with eight bytes beyond the last 32."""
    return turned(hashed ^ in_lane(np.uint64(0), number), np.uint64(27)) * P1 + P4


@kernel
def mixed(hashed: Any) -> Any:
    """Return the hash when all bytes are in it."""
    hashed = (hashed ^ (hashed >> np.uint64(33))) * P2
    hashed = (hashed ^ (hashed >> np.uint64(29))) * P3
    return hashed ^ (hashed >> np.uint64(32))


@kernel
def turned(number: Any, bits: Any) -> Any:
    """Return the number with its bits turned to the left."""
    return number << bits | number >> (np.uint64(64) - bits)


_NO_BYTES = np.empty(0, np.uint8)
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)")


def hash_sums(table: Table, rows: pa.Table) -> list[int]:
    """Return the sums of `row_digest.SUMS` over rows that have the table's columns, with or without the attempt."""
    hashes = seeded(SEEDS, len(rows))
    for number, field, as_json, later in hashed_columns(table):
        array = one_array(rows[field.name])
        is_valid = array.is_valid().to_numpy(zero_copy_only=False)
        numbered = is_valid if later else np.ones(len(rows), bool)
        add_column(hashes, number, numbered, values_of(json_texts(array) if as_json else array))
    signed = hashes.view(np.int64)
    return [int(half.sum()) for each in signed for half in (each & 0xFFFFFFFF, each >> 32)]


def values_of(array: Any) -> RowValues:
    """Return what is hashed of each row of an array; nothing of a null."""
    kind = array.type
    if pa.types.is_list(kind):
        inner = values_of(array.flatten())
        lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        return _fixed(inner._replace(start=inner.start[starts(lengths.astype(np.int64))]))
    if pa.types.is_struct(kind):
        return _in_turn([values_of(field) for field in array.flatten()])
    start, there = starts(array.is_valid().to_numpy(zero_copy_only=False).astype(np.int64)), array.drop_null()
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        column = ByteColumn.of(there.cast(pa.large_binary()))
        return _fixed(RowValues(start, _kinds(IN_BYTES, there), column.start, column.end, column.data))
    if pa.types.is_float64(kind):
        there = _bits(there)
    of_type = IN_FOUR_BYTES if pa.types.is_int32(kind) or pa.types.is_boolean(kind) else IN_EIGHT_BYTES
    numbers = there.cast(pa.int64()).to_numpy(zero_copy_only=False)
    return _fixed(RowValues(start, _kinds(of_type, there), numbers, numbers, _NO_BYTES))


def _kinds(kind: int, values: Any) -> Any:
    return np.full(len(values), kind, np.uint8)


def _bits(numbers: Any) -> Any:
    """Return floating-point numbers as whole ones of the same bits; there is one zero, and one NaN."""
    found = numbers.to_numpy(zero_copy_only=False) + 0.0
    return pa.array(np.where(np.isnan(found), np.nan, found).view(np.int64))


def _in_turn(parts: Sequence[RowValues]) -> RowValues:
    """Return the values of each row's first part, then those of its second, and so on."""
    lengths = [np.diff(part.start) for part in parts]
    start = starts(np.sum(lengths, axis=0))
    kind, first, end = np.empty(start[-1], np.uint8), np.empty(start[-1], np.int64), np.empty(start[-1], np.int64)
    before, bytes_before = start[:-1].copy(), 0
    for part, length in zip(parts, lengths, strict=True):
        at = np.repeat(before - part.start[:-1], length) + np.arange(part.start[-1])
        moved = np.where(part.kind == IN_BYTES, bytes_before, 0)
        kind[at], first[at], end[at] = part.kind, part.first + moved, part.end + moved
        before += length
        bytes_before += len(part.data)
    return _fixed(RowValues(start, kind, first, end, np.concatenate([part.data for part in parts])))


def _fixed(values: RowValues) -> RowValues:
    """Return the values in arrays that nobody writes to: kernels are compiled for one kind of array."""
    views: list[Any] = [array.view() for array in values]
    for each in views:
        each.flags.writeable = False
    return RowValues(*views)


def json_texts(array: Any) -> Any:
    """Return the JSON of each value, fields that are null with the others; null for a null."""
    kind = array.type
    if pa.types.is_list(kind):
        lengths = pc.list_value_length(array)
        offsets = pa.array(starts(lengths.fill_null(0).to_numpy(zero_copy_only=False)), pa.int32())
        inner = json_texts(array.flatten()).fill_null("null")
        joined = pc.binary_join(pa.ListArray.from_arrays(offsets, inner), ",")
        return pc.if_else(array.is_valid(), pc.binary_join_element_wise("[", joined, "]", ""), None)
    if pa.types.is_struct(kind):
        fields = zip(kind, array.flatten(), strict=True)
        texts = [
            text for field, values in fields for text in (f',"{field.name}":', json_texts(values).fill_null("null"))
        ]
        return pc.binary_join_element_wise("{" + texts[0][1:], *texts[1:], "}", "")
    if pa.types.is_string(kind):
        coded = array.dictionary_encode()
        return pa.array(map(_quoted, coded.dictionary.to_pylist()), pa.string()).take(coded.indices)
    if not pa.types.is_integer(kind):
        raise AssertionError(f"a list of {kind} in a table of the ledger; expected strings, whole numbers or structs")
    return array.cast(pa.string())


def _quoted(text: str) -> str:
    """Return a text as Spark writes it: as Python does, but for capitals in its escapes."""
    written = json.dumps(text, ensure_ascii=False)
    return _ESCAPED.sub(lambda found: rf"\u{found[1][1:].upper()}" if found[1][1:] else found[0], written)


# What the oldest Spark we run on lacks, made from what it has (decision 0100): all such code is here.

_WORD = 0xFFFFFFFF


def repartition_by_id(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """Rows whose `column` is i in partition i modulo `partitions`: DataFrame.repartitionById, which Spark 4.1 began.

    Spark 4.0 partitions by hash alone: for each partition it is given a number whose hash leads there.
    """
    if hasattr(rows, "repartitionById"):
        return rows.repartitionById(partitions, column)
    return by_hash(rows, partitions, column)


def by_hash(rows: DataFrame, partitions: int, column: str) -> DataFrame:
    """Return the same partitions by hashes alone."""
    keys = F.array(*map(F.lit, keys_of(partitions)))
    return rows.repartition(partitions, F.get(keys, F.pmod(F.col(column), F.lit(partitions))))


def keys_of(partitions: int) -> list[int]:
    """For each partition the least number that Spark's hash partitioning puts into it."""
    found: dict[int, int] = {}
    for key in count():
        found.setdefault(spark_hash(key) % partitions, key)
        if len(found) == partitions:
            return [found[partition] for partition in range(partitions)]
    raise AssertionError("count() does not end")


def spark_hash(number: int) -> int:
    """Spark's `hash` of an INT of 32 bits: Murmur3 with the seed 42, signed."""
    block = _rotated(number * 0xCC9E2D51, 15) * 0x1B873593
    state = (_rotated((42 ^ block) & _WORD, 13) * 5 + 0xE6546B64) & _WORD
    state ^= 4  # bytes in an INT
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        state = (state ^ state >> shift) * factor & _WORD
    state ^= state >> 16
    return state - (state >> 31 << 32)


def _rotated(number: int, by: int) -> int:
    number &= _WORD
    return (number << by | number >> (32 - by)) & _WORD
