"""Hash rows as `sinks.append` does in SQL, over Arrow columns: what a worker writes has the digest that Spark gives it.

Columns that are hashed as JSON are written as Spark's `to_json` writes them, all rows at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core.ragged import starts
from groupledger.core.row_hash import IN_BYTES, IN_EIGHT_BYTES, IN_FOUR_BYTES, RowValues, add_column, seeded
from groupledger.engine.classic.log import ByteColumn
from groupledger.tables.row_digest import SEEDS, hashed_columns

if TYPE_CHECKING:
    from groupledger.tables import Table

_NO_BYTES = np.empty(0, np.uint8)
_ESCAPED = re.compile(r"\\(u[0-9a-f]{4}|.)")


def hash_sums(table: Table, rows: pa.Table) -> list[int]:
    """Return the sums of `row_digest.SUMS` over rows that have the table's columns, with or without the attempt."""
    hashes = seeded(SEEDS, len(rows))
    for number, field, as_json, later in hashed_columns(table):
        array = _whole(rows[field.name])
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
    return _ESCAPED.sub(_in_capitals, json.dumps(text, ensure_ascii=False))


def _in_capitals(escaped: re.Match[str]) -> str:
    return f"\\u{escaped[1][1:].upper()}" if len(escaped[1]) > 1 else escaped[0]


def _whole(column: Any) -> Any:
    array = column.combine_chunks()
    return array if isinstance(array, pa.Array) else pa.concat_arrays(array.chunks)
