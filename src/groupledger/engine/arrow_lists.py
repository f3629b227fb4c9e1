"""Arrow's nested columns as flat numpy arrays, and back: offsets and values, no Python object for a row."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import ArrayType, StructField, StructType, TimestampType

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.history.fold_rows import GroupSnapshotRow, MemberSnapshotRow, as_tuples

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.arrays.checksums import ByteArray
    from groupledger.core.arrays.ragged import Mask, MemberSlots, Slots
    from groupledger.core.history.fold_rows import Assignment
    from groupledger.core.wire.group_metadata import Spans


SnapshotRow = TypeVar("SnapshotRow", GroupSnapshotRow, MemberSnapshotRow)
Column = Any
"""A pyarrow array. Its stubs name one class a type, and these columns' types are data."""

ROOM_OF_SMALL_OFFSETS = 2**31 - 1


class WireLists(NamedTuple):
    """Rows of `array<struct<topic_id?, topic, partitions>>`: R rows, E entries (a topic with its partitions)."""

    start: LongArray  # [R+1] into entries
    topic: Column  # [E] the name, or the id where no name is known
    topic_id: Column  # [E]
    part_start: LongArray  # [E+1]
    partition: IntArray

    @property
    def partition_start(self) -> LongArray:
        """Where each row's partitions begin: [R+1]."""
        begins: LongArray = self.part_start[self.start]
        return begins


def whole(table: pa.Table) -> pa.Table:
    """Return the table in one chunk a column, with 64-bit offsets where 32 bits would not reach."""
    # Not `nbytes`: it reads offsets, and Spark before 4.2 leaves out those of nested lists without entries.
    if table.get_total_buffer_size() > ROOM_OF_SMALL_OFFSETS:
        table = table.cast(pa.schema([field.with_type(_large(field.type)) for field in table.schema]))
    return table.combine_chunks()


def _large(kind: Any) -> Any:
    if pa.types.is_string(kind):
        return pa.large_string()
    if pa.types.is_binary(kind):
        return pa.large_binary()
    if pa.types.is_list(kind):
        return pa.large_list(kind.value_field.with_type(_large(kind.value_type)))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_large(field.type)) for field in kind])
    return kind


def column(table: pa.Table, name: str) -> Column:
    """Return a column of a `whole` table as one array."""
    chunked = table.column(name)
    if chunked.num_chunks == 1:
        return chunked.chunk(0)
    return pa.concat_arrays(chunked.chunks) if chunked.num_chunks else pa.array([], chunked.type)


def tuples(table: pa.Table | pa.RecordBatch, *names: str) -> Iterator[tuple[Any, ...]]:
    """Yield what each row has in these columns, as Python's values."""
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def with_column(table: pa.Table, name: str, values: Column) -> pa.Table:
    """Return the table with other values of one type in a column."""
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field, of_type(values, field.type))


def of_type(values: Column, kind: pa.DataType) -> Column:
    """Return the values in this type; Arrow's own cast copies nested ones that have it already."""
    return values if values.type == kind else values.cast(kind)


def filled(schema: pa.Schema, values: Mapping[str, Any], length: int) -> pa.Table:
    """Return rows of a schema from columns by name, of Arrow or NumPy.

    A text or a boolean is every row's, and what is not given is null.
    """

    def column_of(name: str, kind: pa.DataType) -> Column:
        given = values.get(name)
        if given is None:
            return pa.nulls(length, kind)
        if isinstance(given, bool | str):
            return pa.repeat(pa.scalar(given, kind), length)
        return of_type(pa.array(given) if isinstance(given, np.ndarray) else given, kind)

    return pa.table([column_of(each.name, each.type) for each in schema], schema=schema)


def named(values: Column, codes: LongArray | IntArray) -> Column:
    """Return the values of these codes; null for NONE."""
    return values.take(pa.array(codes, mask=codes == NONE))


@dataclass(frozen=True, slots=True)
class ByteColumn:
    """A column of byte strings: number i is `data[start[i]:end[i]]`."""

    data: ByteArray
    start: LongArray
    end: LongArray
    is_null: Mask

    @classmethod
    def of(cls, column: Any) -> ByteColumn:
        """Return the strings of an Arrow column or array, where they are."""
        array = column if isinstance(column, pa.LargeBinaryArray) else one_array(column.cast(pa.large_binary()))
        _, bounds, data = array.buffers()
        places = np.frombuffer(bounds, np.int64) if len(array) else np.zeros(1, np.int64)
        places = places[array.offset : array.offset + len(array) + 1] if len(array) else places
        held = np.frombuffer(b"" if data is None else data, np.uint8)
        for each in (places, held):  # some buffers of Arrow can be written to: kernels are compiled for one kind
            each.flags.writeable = False
        return cls(held, places[:-1], places[1:], array.is_null().to_numpy(zero_copy_only=False))

    @property
    def spans(self) -> Spans:
        """Where they are."""
        return self.data, self.start, self.end

    def chosen(self, some: LongArray) -> Spans:
        """Where some of them are."""
        return self.data, self.start[some], self.end[some]

    def begin_with(self, prefix: bytes) -> Mask:
        """Return which of them begin with these bytes."""
        found = self.end - self.start >= len(prefix)
        for place, byte in enumerate(prefix):
            found[found] = self.data[self.start[found] + place] == byte
        return found

    def __getitem__(self, index: int) -> bytes | None:
        return None if self.is_null[index] else self.data[self.start[index] : self.end[index]].tobytes()


def one_array(chunked: Any) -> Column:
    """Return a chunked array as one."""
    array = chunked.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)


def integers(array: Column, null: int) -> NDArray[Any]:
    """Return a column of numbers, nulls replaced."""
    values: NDArray[Any] = pc.fill_null(array, null).to_numpy(zero_copy_only=False)
    return values


def valid(array: Column) -> Mask:
    """Where the column is not null."""
    mask: Mask = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def are_true(array: Column, *, null: bool = False) -> Mask:
    """Where a column of booleans is true; `null`: as what a null counts."""
    mask: Mask = pc.fill_null(array, null).to_numpy(zero_copy_only=False)
    return mask


def nulled(array: Column, missing: Mask) -> Column:
    """Return a column of lists with those in the mask null; its values stay where they are."""
    lists = pa.LargeListArray if pa.types.is_large_list(array.type) else pa.ListArray
    known = missing if array.null_count == 0 else missing | ~valid(array)
    return lists.from_arrays(array.offsets, array.values, type=array.type, mask=pa.array(known))


def list_starts(array: Column) -> LongArray:
    """Where each list begins in `pc.list_flatten(array)`: [n+1]; a null list is empty."""
    if len(array) > 0 and array.null_count == 0:
        begins = array.offsets.to_numpy(zero_copy_only=False)
        start: LongArray = (begins - begins[0]).astype(np.int64, copy=False)
        return start
    return ragged.starts(integers(pc.list_value_length(array), 0).astype(np.int64))


def wire(array: Column) -> WireLists:
    """Take a column of assignments apart."""
    entries = pc.list_flatten(array)
    fields = dict(zip((field.name for field in entries.type), entries.flatten(), strict=True))
    partitions = fields["partitions"]
    return WireLists(
        start=list_starts(array),
        topic=pc.coalesce(fields["topic"], fields["topic_id"]),
        topic_id=fields["topic_id"],
        part_start=list_starts(partitions),
        partition=pc.list_flatten(partitions).to_numpy(zero_copy_only=False),
    )


def assignments(array: Column) -> list[Assignment | None]:
    """Return a column of assignments as the rows of `core.history` have them."""
    entries = pc.list_flatten(array)
    ids, names, lists = (entries.field(name) for name in ("topic_id", "topic", "partitions"))
    numbers = pc.list_flatten(lists).to_numpy(zero_copy_only=False).tolist()
    partitions = (tuple(numbers[low:high]) for low, high in itertools.pairwise(list_starts(lists).tolist()))
    topics = list(zip(ids.to_pylist(), names.to_pylist(), partitions, strict=True))
    bounds = itertools.pairwise(list_starts(array).tolist())
    return [tuple(topics[low:high]) if known else None for (low, high), known in zip(bounds, valid(array), strict=True)]


def snapshot_rows(table: pa.Table, kind: type[SnapshotRow]) -> list[SnapshotRow]:
    """Return rows of a table of snapshots as the fold made them; None for what is not among the columns."""
    table = whole(table)
    unsaid: dict[str, Any] = dict.fromkeys(kind._fields)
    values = {name: _as_folded(column(table, name)) for name in kind._fields if name in table.schema.names}
    return [kind(**unsaid | dict(zip(values, each, strict=True))) for each in zip(*values.values(), strict=True)]


def _as_folded(array: Column) -> list[Any]:
    lists = pa.types.is_list(array.type) and pa.types.is_struct(array.type.value_type)
    if lists and array.type.value_type.get_field_index("topic_id") >= 0:  # tasks have none
        return assignments(array)
    return [as_tuples(value) for value in array.to_pylist()]


def encode(columns: Sequence[Column]) -> tuple[Column, list[IntArray]]:
    """One dictionary for several columns of strings, and each column as codes into it; null is -1."""
    encoded = [array.dictionary_encode() for array in columns]
    union = pa.concat_arrays([each.dictionary for each in encoded]).dictionary_encode()
    mapping = union.indices.to_numpy(zero_copy_only=False)
    first = np.cumsum([0, *(len(each.dictionary) for each in encoded)])
    parts = [np.append(mapping[low:high], NONE).astype(np.int32) for low, high in itertools.pairwise(first)]
    return union.dictionary, [part[integers(each.indices, -1)] for part, each in zip(parts, encoded, strict=True)]


def utf8(array: Column) -> tuple[LongArray, NDArray[np.uint8]]:
    """Offsets [n+1] and bytes of a column of strings without nulls."""
    width = np.int64 if pa.types.is_large_string(array.type) else np.int32
    _, offsets, data = array.buffers()
    if len(array) == 0 or data is None:
        return np.zeros(len(array) + 1, np.int64), np.zeros(0, np.uint8)
    begins = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
    return begins.astype(np.int64), np.frombuffer(data, np.uint8)


def wire_array(lists: MemberSlots, slots: Slots, topics: Mapping[str, Column], kind: Any) -> Column:
    """Return lists, which stand topic by topic, as a column of `array<struct<.., partitions>>`.

    `topics` holds what the other fields of an entry say of each topic row, by the field's name.
    """
    topic, member = slots.topic[lists.slot], lists.member
    begins = ragged.begins(topic, member)
    entries = np.concatenate(([0], np.cumsum(begins)))
    at = np.flatnonzero(begins)
    fields = list(kind.value_type)
    partitions = listed(np.append(at, len(topic)), pa.array(slots.partition[lists.slot]), fields[-1].type)
    rows = pa.array(topic[at])
    values = (topics[field.name].take(rows) for field in fields[:-1])
    return listed(entries[lists.start], [*values, partitions], kind)


def listed(start: LongArray | IntArray, values: Column | list[Column], kind: Any, known: Mask | None = None) -> Column:
    """Return a list column from where each list begins, and its values or the fields of them; null if not `known`."""
    if isinstance(values, list):
        fields = list(kind.value_type)
        columns = [each.cast(field.type) for each, field in zip(values, fields, strict=True)]
        values = pa.StructArray.from_arrays(columns, fields=fields)
    mask = None if known is None else pa.array(~known)
    return pa.ListArray.from_arrays(pa.array(start.astype(np.int32, copy=False)), values, type=kind, mask=mask)


# Arrow's types for Spark's, as Spark expects them back from a worker.


def arrow_schema(fields: Iterable[StructField]) -> pa.Schema:
    """Return the schema of these columns, each of which may be null."""
    return pa.schema([(field.name, arrow_type(field.dataType)) for field in fields])


def arrow_type(kind: Any) -> pa.DataType:
    """Return the Arrow type Spark expects for a Spark type; timestamps are UTC microseconds."""
    if isinstance(kind, TimestampType):
        return pa.timestamp("us", tz="UTC")
    if isinstance(kind, StructType):
        return pa.struct([pa.field(f.name, arrow_type(f.dataType), f.nullable) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType), kind.containsNull))
    return to_arrow_type(kind)
