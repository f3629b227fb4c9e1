"""Derive the changes of ownership between snapshots of users' own tables, one group after another."""

from __future__ import annotations

from itertools import chain, groupby, islice, pairwise
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from groupledger.core.history import HeldSnapshot, HoldingMember, OwnershipChangeRow, held_by, held_changes
from groupledger.engine.arrow_lists import assignments, list_starts
from groupledger.engine.arrow_types import arrow_schema
from groupledger.engine.buckets import by_group
from groupledger.engine.envelope import columns_of
from groupledger.tables import OWNERSHIP_CHANGES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

HOLDERS = "holders"
OUTPUT = columns_of(OWNERSHIP_CHANGES)
TOGETHER = 100
"""Snapshots that become Python objects at once."""
CHANGES_A_BATCH = 20_000
_SNAPSHOT = tuple(name for name in HeldSnapshot._fields if name != "held")


def ownership_changes(groups: DataFrame, members: DataFrame, tasks: int) -> DataFrame:
    """Rows of `ownership_changes` (without the attempt) from all snapshots of some groups, and their members."""
    holder = F.collect_list(F.struct(*HoldingMember._fields)).alias(HOLDERS)
    held = members.groupBy(c.SNAPSHOT_ID).agg(holder)
    snapshots = groups.withColumn(c.OBSERVED_AT, F.unix_micros(c.OBSERVED_AT)).select(*_SNAPSHOT)
    rows = snapshots.join(held, c.SNAPSHOT_ID, "left").select(*_SNAPSHOT, HOLDERS)
    return by_group(rows, tasks, c.INCARNATION, c.OFFSET, c.SNAPSHOT_ID).mapInArrow(changes_of, OUTPUT)


def changes_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the changes of groups whose snapshots come in order, group after group: no group is in memory whole."""
    snapshots = chain.from_iterable(map(_snapshots, batches))
    groups = groupby(snapshots, key=lambda snapshot: (snapshot.cluster_id, snapshot.group_id))
    changes = chain.from_iterable(held_changes(own) for _, own in groups)
    while rows := list(islice(changes, CHANGES_A_BATCH)):
        columns = dict(zip(OwnershipChangeRow._fields, zip(*rows, strict=True), strict=True))  # times in microseconds
        yield pa.RecordBatch.from_pydict({name: columns[name] for name in OUTPUT.names}, schema=arrow_schema(OUTPUT))


def _snapshots(batch: pa.RecordBatch) -> Iterator[HeldSnapshot]:
    for at in range(0, batch.num_rows, TOGETHER):
        rows = batch.slice(at, TOGETHER)
        holders = rows.column(HOLDERS)
        each = pc.list_flatten(holders)
        member_ids, *lists = (each.field(name) for name in HoldingMember._fields)
        members = list(map(HoldingMember, member_ids.to_pylist(), *map(assignments, lists)))
        held = [held_by(members[low:high]) for low, high in pairwise(list_starts(holders).tolist())]
        yield from map(HeldSnapshot, *(rows.column(name).to_pylist() for name in _SNAPSHOT), held)
