"""Arrow to plain Python values."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from groupledger.core.moment import from_micros


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows as tuples; moments in UTC, structs and maps as dicts."""
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Moments by way of integers: pyarrow would import pandas for them."""
    if not pa.types.is_timestamp(column.type):
        found: list[Any] = column.to_pylist(maps_as_pydicts="strict")
        return found
    micros = column.cast(pa.timestamp("us", column.type.tz), safe=False).cast(pa.int64()).to_pylist()
    return [None if each is None else from_micros(each) for each in micros]
