"""Surrogates for the names of many groups at once, and heads that no longer know any."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructField, StructType

from groupledger.core.history.head import closed_head
from groupledger.core.surrogates import surrogates
from groupledger.engine.buckets import by_group
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

KIND, NAME, SURROGATE = "kind", "name", "surrogate"
_NAMED = (c.CLUSTER_ID, c.GROUP_ID, KIND, NAME)


def with_surrogates(names: DataFrame, series: int, tasks: int) -> DataFrame:
    """Give the distinct names (cluster_id, group_id, kind, name) a surrogate each.

    Order and hash codes are kept among the names of one kind in one group, as `core.surrogates` promises; the same
    names give the same surrogates. One group's names of one kind are in a worker's memory at a time.
    """
    schema = StructType([StructField(name, StringType()) for name in (*_NAMED, SURROGATE)])

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for key, rows in groupby(_rows(batches), key=lambda row: row[:-1]):
            found = surrogates([name for *_, name in rows], series)
            columns = [*([value] * len(found) for value in key), [*found], [*found.values()]]
            yield pa.RecordBatch.from_arrays([pa.array(each, pa.string()) for each in columns], schema.names)

    return by_group(names.select(*_NAMED), tasks, KIND).mapInArrow(call, schema)


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, ...]]:
    for batch in batches:
        yield from zip(*(batch.column(name).to_pylist() for name in _NAMED), strict=True)


def closed(state: Column) -> Column:
    """Heads (`group_heads.state`) as `core.history.head.closed_head` leaves them."""
    return F.udf(_closed, "binary", useArrow=False)(state)


def _closed(state: Any) -> bytes:
    return closed_head(bytes(state))
