"""Surrogates for the names of many groups at once, and heads that no longer know any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from groupledger.core.history.head import closed_head
from groupledger.core.surrogates import surrogates
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KIND, NAME, SURROGATE = "kind", "name", "surrogate"
_BUCKET = "bucket"
_SCHEMA = f"{c.CLUSTER_ID} string, {c.GROUP_ID} string, {KIND} string, {NAME} string, {SURROGATE} string"


def with_surrogates(names: DataFrame, series: int, buckets: int) -> DataFrame:
    """The distinct names (cluster_id, group_id, kind, name) with a surrogate each.

    Order and hash codes are kept among the names of one kind in one group, as `core.surrogates` promises; the same
    names give the same surrogates. All names of a bucket of groups are in one worker's memory.
    """
    bucket = F.pmod(F.xxhash64(c.CLUSTER_ID, c.GROUP_ID), F.lit(buckets)).cast("int")

    def call(table: pa.Table) -> pa.Table:
        return _renamed(table, series)

    return names.withColumn(_BUCKET, bucket).groupBy(_BUCKET).applyInArrow(call, _SCHEMA)


def _renamed(table: pa.Table, series: int) -> pa.Table:
    by_group: dict[tuple[str, str, str], list[str]] = {}
    places = [table.column(name).to_pylist() for name in (c.CLUSTER_ID, c.GROUP_ID, KIND)]
    for *place, name in zip(*places, table.column(NAME).to_pylist(), strict=True):
        by_group.setdefault((place[0], place[1], place[2]), []).append(name)
    rows: list[dict[str, Any]] = []
    for (cluster_id, group_id, kind), names in by_group.items():
        known = {c.CLUSTER_ID: cluster_id, c.GROUP_ID: group_id, KIND: kind}
        rows += [{**known, NAME: name, SURROGATE: other} for name, other in surrogates(names, series).items()]
    columns = [c.CLUSTER_ID, c.GROUP_ID, KIND, NAME, SURROGATE]
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in columns]))


def closed(state: Column) -> Column:
    """Heads (`group_heads.state`) as `core.history.head.closed_head` leaves them."""
    return F.udf(_closed, "binary", useArrow=False)(state)


def _closed(state: Any) -> bytes:
    return closed_head(bytes(state))
