"""A grid over a bucket: the last state of each of its groups, changed, under each assignor; one row a group and cell.

Members own what was recorded for them, the change applies, and one rebalance follows. Groups without an assignor to ask
(KIP-848, share and Streams groups, other protocol types) and empty ones are no rows of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import IntegerType, StructField, StructType

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE
from groupledger.core.rebalance.computation import rebalance
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import column, integers
from groupledger.engine.bucket_rows import SCHEMA as CATALOGUE
from groupledger.engine.bucket_rows import Parts, TopicCatalogue, parts_of
from groupledger.engine.buckets import buckets_of
from groupledger.engine.group_arrays import decode
from groupledger.engine.result_rows import ResultColumns, refusals
from groupledger.tables import REBALANCES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.config.loading import ChangeSettings
    from groupledger.engine.arrow_lists import Column
    from groupledger.engine.group_arrays import Calculation


CELL = "cell"
"""Column: the number of the cell, assignors first: all changes of the first one, then of the next."""
SHOWN = (
    *(c.CLUSTER_ID, c.GROUP_ID, c.SNAPSHOT_ID, c.ASSIGNOR, c.PROTOCOL, c.OUTCOME, c.MEMBERS, c.PARTITIONS, c.MOVES),
    *(c.LEAST_MOVES, c.LEAST_MOVES_CERTAINTY, c.REVOKED, c.UNASSIGNED, c.LOAD_MIN, c.LOAD_MAX, c.FOLLOW_UP),
    *(c.FEWEST_ROUNDS, c.CODE, c.MESSAGE),
)
OUTPUT = StructType(
    [StructField(CELL, IntegerType(), nullable=False)]
    + [StructField(each.name, each.dataType) for name in SHOWN for each in REBALANCES.schema if each.name == name]
)
_AFTER = "+"
"""Behind the id of a snapshot: the state after the change."""
_RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Grid:
    """All that a bucket's call needs to know beside its rows."""

    assignors: tuple[str, ...]
    changes: tuple[ChangeSettings, ...]
    calculation: Calculation

    def call(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return the function of rows for `mapInArrow`."""

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for bucket in buckets_of(list(batches)):
                for rows in self.cells(bucket):
                    yield from rows.to_batches()

        return call

    def cells(self, table: pa.Table) -> Iterator[pa.Table]:
        """Return the rows of each cell, in the schema of `OUTPUT`."""
        before = _asked(parts_of(table))
        if len(before.groups) == 0:
            return
        custom = {each.name: each for each in self.calculation.custom}
        for number, change in enumerate(self.changes):
            after = _changed(before, change)
            topics = _topics(self.calculation.catalogue, change)
            for at, assignor in enumerate(self.assignors):
                parts = Parts(_under(after.groups, assignor), after.members, after.records)
                calculation = replace(self.calculation, topics=topics, carried=True)
                decoded = decode(parts, calculation, custom)
                result = rebalance(decoded.snapshots, decoded.choice)
                rows = ResultColumns(decoded, result, calculation, refusals(decoded, result)).rebalances()
                yield _rows(at * len(self.changes) + number, rows)


def _asked(parts: Parts) -> Parts:
    """Return the groups that an assignor is asked for, and the members of their last state."""
    peopled = pc.is_in(column(parts.groups, c.SNAPSHOT_ID), value_set=column(parts.members, c.SNAPSHOT_ID))
    groups = parts.groups.filter(pc.and_(peopled, column(parts.groups, r.CHOSEN).is_valid())).combine_chunks()
    own = pc.is_in(column(parts.members, c.SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID))
    return Parts(_nullable(groups), _nullable(parts.members.filter(own).combine_chunks()), parts.records.slice(0, 0))


def _nullable(table: pa.Table) -> pa.Table:
    """Make every column nullable: Spark says of some that they hold no null, and their replacements may."""
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


def _changed(before: Parts, change: ChangeSettings) -> Parts:
    """Return the state after the change, which follows the one before, with the members of both."""
    members = _members_after(before.members, change)
    groups, members = _subscribed(before.groups, members, change)
    was = column(groups, c.SNAPSHOT_ID)
    groups = _with(groups, c.PREVIOUS_SNAPSHOT_ID, was)
    groups = _with(groups, c.SNAPSHOT_ID, pc.binary_join_element_wise(was, _AFTER, ""))
    groups = _with(groups, c.SNAPSHOT_KIND, pa.repeat("generation", len(groups)))
    groups = _with(groups, c.MEMBERS, pa.nulls(len(groups), pa.int32()))
    now = pc.binary_join_element_wise(column(members, c.SNAPSHOT_ID), _AFTER, "")
    members = pa.concat_tables([_with(members, c.SNAPSHOT_ID, now), before.members]).combine_chunks()
    return Parts(groups.combine_chunks(), members, before.records)


def _members_after(members: pa.Table, change: ChangeSettings) -> pa.Table:
    """Those who stay, in their order, and those who join, each like one of the group in turn."""
    if change.lost_rack is not None:
        gone = pc.fill_null(pc.equal(column(members, c.RACK_ID), change.lost_rack), False)
        members = members.filter(pc.invert(gone)).combine_chunks()
    if change.members == 0 or len(members) == 0:
        return members
    members = members.sort_by([(c.SNAPSHOT_ID, "ascending"), (c.MEMBER_ORDER, "ascending"), (c.MEMBER_ID, "ascending")])
    members = members.combine_chunks()
    _, size = np.unique(integers(column(members, c.SNAPSHOT_ID).dictionary_encode().indices, NONE), return_counts=True)
    start = ragged.starts(size)
    if change.members < 0:
        place = ragged.places(start)
        return members.take(pa.array(np.flatnonzero(place < np.repeat(size + change.members, size)))).combine_chunks()
    turn = np.arange(change.members)
    model = (start[:-1, None] + turn[None, :] % size[:, None]).ravel()
    joined = members.take(pa.array(model)).combine_chunks()
    numbers = np.tile(turn, len(size))
    ids = pc.binary_join_element_wise(column(joined, c.MEMBER_ID), pa.array([f"+{each}" for each in numbers]), "")
    order = np.repeat(integers(column(members, c.MEMBER_ORDER), 0)[start[1:] - 1], change.members) + 1 + numbers
    joined = _with(_with(joined, c.MEMBER_ID, ids), c.MEMBER_ORDER, pa.array(order, pa.int32()))
    for name in (c.GROUP_INSTANCE_ID, c.CLAIMED, c.CLAIMED_GENERATION, c.RECORDED, c.TARGET, c.USER_DATA):
        joined = _with(joined, name, pa.nulls(len(joined), joined.schema.field(name).type))
    return pa.concat_tables([members, joined]).combine_chunks()


def _subscribed(groups: pa.Table, members: pa.Table, change: ChangeSettings) -> tuple[pa.Table, pa.Table]:
    """With the topic that all subscribe to, without the one that nobody does any more."""
    if change.subscribe is None and change.unsubscribe is None:
        return groups, members

    def renewed(lists: Column) -> Column:
        found = [_topics_after(each, change) for each in lists.to_pylist()]
        return pa.array(found, lists.type)

    groups = _with(groups, c.SHARED_TOPICS, renewed(column(groups, c.SHARED_TOPICS)))
    return groups, _with(members, c.TOPICS, renewed(column(members, c.TOPICS)))


def _topics_after(topics: Sequence[str] | None, change: ChangeSettings) -> list[str] | None:
    if topics is None:
        return None
    kept = [each for each in topics if each != change.unsubscribe]
    more = change.subscribe is not None and change.subscribe not in kept
    return [*kept, change.subscribe] if more and change.subscribe is not None else kept


def _topics(catalogue: TopicCatalogue, change: ChangeSettings) -> TopicCatalogue:
    """Return the topics with other counts; racks of changed topics are unknown."""
    if change.partitions is None:
        return catalogue
    rows = catalogue.table.combine_chunks()
    number = int(change.partitions[1:])
    counts = rows.column(c.PARTITION_COUNT).cast(pa.int64())
    more = pc.multiply(counts, number) if change.partitions.startswith("x") else pc.add(counts, number)
    more = pc.min_element_wise(more, np.iinfo(np.int32).max, skip_nulls=False).cast(pa.int32())
    meant = pa.repeat(True, len(rows)) if change.topic is None else pc.equal(rows.column(c.TOPIC), change.topic)
    rows = rows.set_column(
        rows.schema.get_field_index(c.PARTITION_COUNT),
        CATALOGUE.field(c.PARTITION_COUNT),
        pc.if_else(meant, more, rows.column(c.PARTITION_COUNT)),
    )
    nowhere = pa.nulls(len(rows), CATALOGUE.field(c.RACKS).type)
    return TopicCatalogue(
        rows.set_column(
            rows.schema.get_field_index(c.RACKS),
            CATALOGUE.field(c.RACKS),
            pc.if_else(meant, nowhere, rows.column(c.RACKS).combine_chunks()),
        )
    )


def _under(groups: pa.Table, assignor: str) -> pa.Table:
    return groups if assignor == _RECORDED else _with(groups, r.CHOSEN, pa.repeat(assignor, len(groups)))


def _with(table: pa.Table, name: str, values: Column) -> pa.Table:
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field.with_nullable(True), values.cast(field.type))


def _rows(cell: int, found: pa.Table) -> pa.Table:
    """Return the rows of one cell; the snapshot is the one that was changed."""
    snapshots = {c.SNAPSHOT_ID: pc.utf8_slice_codeunits(found[c.SNAPSHOT_ID], 0, -len(_AFTER))}
    numbers = pa.repeat(pa.scalar(cell, pa.int32()), len(found))
    shown = [snapshots.get(name, found[name]) for name in SHOWN]
    return pa.table([numbers, *shown], schema=to_arrow_schema(OUTPUT))
