"""The changes of ownership between snapshots of users' own tables: one Arrow call a bucket of groups."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F

from groupledger.core.history import HeldSnapshot, HoldingMember, OwnershipChangeRow, as_tuples, held_by, held_changes
from groupledger.engine.arrow_types import arrow_schema
from groupledger.engine.buckets import bucket_of, parallelism
from groupledger.engine.envelope import columns_of
from groupledger.engine.fold_schema import BUCKET
from groupledger.tables import OWNERSHIP_CHANGES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

HOLDERS = "holders"
OUTPUT = columns_of(OWNERSHIP_CHANGES)
_GROUP = [c.CLUSTER_ID, c.GROUP_ID]
_SNAPSHOT = [*_GROUP, c.SNAPSHOT_ID, c.INCARNATION, c.OFFSET, c.OBSERVED_AT, c.GENERATION, c.GROUP_EPOCH]


def ownership_changes(groups: DataFrame, members: DataFrame) -> DataFrame:
    """Rows of `ownership_changes` (without the attempt) from all snapshots of some groups, and their members."""
    holder = F.collect_list(F.struct(*HoldingMember._fields)).alias(HOLDERS)
    held = members.groupBy(c.SNAPSHOT_ID).agg(holder)
    snapshots = groups.withColumn(c.OBSERVED_AT, F.unix_micros(c.OBSERVED_AT)).select(*_SNAPSHOT)
    buckets = parallelism(groups.sparkSession)
    rows = snapshots.join(held, c.SNAPSHOT_ID, "left").select(bucket_of(buckets).alias(BUCKET), *_SNAPSHOT, HOLDERS)
    return rows.groupBy(BUCKET).applyInArrow(changes_of, OUTPUT)


def changes_of(bucket: pa.Table) -> pa.Table:
    """The changes of all groups of a bucket."""
    by_group: defaultdict[tuple[str, str], list[HeldSnapshot]] = defaultdict(list)
    for row in bucket.select([*_SNAPSHOT, HOLDERS]).to_pylist():
        holders = row.pop(HOLDERS)
        by_group[row[c.CLUSTER_ID], row[c.GROUP_ID]].append(
            HeldSnapshot(**row, held=held_by(map(_holder, holders or ())))
        )
    rows = [change for _, snapshots in sorted(by_group.items()) for change in held_changes(snapshots)]
    return pa.table(_columns(rows), schema=arrow_schema(OUTPUT))


def _holder(row: dict[str, Any]) -> HoldingMember:
    return HoldingMember(*(as_tuples(row[name]) for name in HoldingMember._fields))


def _columns(rows: list[OwnershipChangeRow]) -> dict[str, list[Any]]:
    """Times in microseconds, as Arrow takes them for a timestamp."""
    values = zip(*rows, strict=True) if rows else ((),) * len(OUTPUT.names)
    return {name: list(column) for name, column in zip(OUTPUT.names, values, strict=True)}
