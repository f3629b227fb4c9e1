"""The grouped UDF: one call a hash bucket of consumer groups; a call for each group would cost more than its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.rebalance.computation import Rebalances, rebalance
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import Column as ListColumn
from groupledger.engine.arrow_lists import column, integers, named, valid, wire_array, with_column
from groupledger.engine.bucket_rows import Parts, parts_of
from groupledger.engine.envelope import (
    ENVELOPE,
    Envelope,
    FilesOfAttempt,
    as_table,
    repartition_by_id,
    sealed,
    sealed_counts,
)
from groupledger.engine.group_arrays import Calculation, DecodedBucket, decode, held_rows
from groupledger.engine.result_rows import bucket_counts, encode_results, refusals
from groupledger.tables import BY_NAME, REBALANCES
from groupledger.tables import columns as c

GROUPS_A_BUCKET = 4_000
"""Enough that the call itself costs nothing, few enough for a worker's memory."""
GROUPS_A_CORE = 1_000
"""Fewer are not worth another task."""
GIANT_MEMBERS = 5_000
"""A group with as many members gets a bucket of its own."""
GIANT_BUCKETS = 1 << 20


def bucket_of(buckets: int) -> Column:
    """Return the bucket of a row by its group; rows that name none share one a cluster."""
    return F.pmod(_group_hash(), F.lit(buckets)).cast("int")


def giant_bucket_of(buckets: int) -> Column:
    """Return a bucket of its own for the group of a row, behind those of the others."""
    return (F.pmod(_group_hash(), F.lit(GIANT_BUCKETS)) + buckets).cast("int")


def _group_hash() -> Column:
    return F.xxhash64(F.col(c.CLUSTER_ID), F.col(c.GROUP_ID))


def by_group(rows: DataFrame, tasks: int, *order: str) -> DataFrame:
    """Return the rows with one group after another in a task, each in this order.

    Groups are hashed to tasks, not to buckets first: a hash of few numbers leaves tasks without rows.
    """
    group = (c.CLUSTER_ID, c.GROUP_ID)
    return rows.repartition(tasks, *group).sortWithinPartitions(*group, *order)


def parallelism(spark: SparkSession) -> int:
    """Tasks that a shuffle of this session's makes, as it is set."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def bucket_count(groups: int, parallelism: int) -> int:
    """Buckets for so many group rows: enough work a call, and no core idle while another has much."""
    wanted = -(-groups // GROUPS_A_BUCKET)
    if wanted < parallelism:
        return max(1, min(parallelism, -(-groups // GROUPS_A_CORE)))
    return -(-wanted // parallelism) * parallelism


def compute(table: pa.Table, calculation: Calculation) -> dict[str, pa.Table]:
    """Compute one bucket: rows of `rows.INPUT` in, those of each of `rows.RESULTS` out, by name. Pure."""
    history = History(parts_of(table), carried=calculation.carried)
    found = []
    for parts in history.waves():
        decoded, result = rebalanced(parts, calculation)
        history.go_on(parts, decoded, result)
        found.append(encode_results(decoded, result, calculation))
    rows = {table.name: pa.concat_tables([each[table.name] for each in found]) for table in r.RESULTS}
    if len(rows[REBALANCES.name]) != len(history.groups):
        got = f"{len(history.groups)} groups in, {len(rows[REBALANCES.name])} outcomes out"
        raise AssertionError(f"{got}; expected as many")
    return rows


def rebalanced(parts: Parts, calculation: Calculation) -> tuple[DecodedBucket, Rebalances]:
    """Compute the rebalances of a bucket's rows, and return them with the rows as arrays."""
    decoded = decode(parts, calculation)
    return decoded, rebalance(decoded.snapshots, decoded.choice)


def enveloped(bucket: pa.Table, calculation: Calculation, files: FilesOfAttempt | None) -> list[Envelope]:
    """Compute one bucket, and give its results and counts as a worker does."""
    found = compute(bucket, calculation)
    filled = [each for name, some in found.items() if len(some) for each in sealed(BY_NAME[name], some, files)]
    return [*filled, sealed_counts(bucket_counts(bucket, found[REBALANCES.name]))]


def apply(rows: DataFrame, buckets: int, calculation: Calculation, files: FilesOfAttempt | None = None) -> DataFrame:
    """Run the calculation over all buckets into envelopes: of result tables, in `files`, and of counts.

    The explicit repartition keeps adaptive execution from merging them, and by id rather than by hash every bucket has
    a task: hashed, four buckets met in two tasks. A task has one bucket, and now and then a giant's beside it; so rows
    need no sorting in the JVM to be kept apart.
    """
    return repartition_by_id(rows, buckets, r.BUCKET).mapInArrow(_call(calculation, files), ENVELOPE)


def _call(
    calculation: Calculation, files: FilesOfAttempt | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket in buckets_of(list(batches)):
            yield from as_table(enveloped(bucket, calculation, files)).to_batches()
            pa.default_memory_pool().release_unused()  # the next bucket comes first as the JVM's bytes

    return call


def buckets_of(batches: list[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of each bucket of a task."""
    if batches:
        rows = pa.Table.from_batches(batches)
        found = sorted(pc.unique(rows.column(r.BUCKET)).to_pylist())
        for bucket in found:
            yield rows if len(found) == 1 else rows.filter(pc.equal(rows.column(r.BUCKET), bucket))


# A bucket's snapshots in waves, so that each can start from what an assignor gave at the one before.
#
# `assign.carried` asks what a group's whole history would have been under an assignor, not what one rebalance would
# have been. The snapshots that follow no other are the first wave, those that follow them the second, and so on: the
# groups of a bucket are still computed together, one snapshot of each at a time.


class History:
    """The snapshots of a bucket, computed all at once, or wave by wave where results are `carried` on.

    What is carried on is the target: partitions that a cooperative group withholds have moved by the next event. A
    rewrite of a generation runs no assignor, so its members have what they had. A group whose snapshot was rejected
    continues from what was recorded there.
    """

    def __init__(self, parts: Parts, *, carried: bool) -> None:
        """Snapshots of which an assignor is not asked start from what was recorded."""
        self._parts = parts
        self._depth = _depth(parts.groups) if carried else np.zeros(len(parts.groups), np.int64)
        self._before: pa.Table | None = None

    @property
    def groups(self) -> pa.Table:
        """All group rows."""
        return self._parts.groups

    def waves(self) -> Iterator[Parts]:
        """Yield the rows of each wave; `go_on` must have its results before the next."""
        last = int(self._depth.max(initial=0))
        if last == 0:
            yield self._parts
            return
        groups, members, records = self._parts
        owner = integers(pc.index_in(column(members, c.SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID)), NONE)
        depth = np.append(self._depth, 0)[owner]  # of no snapshot here: one before the first
        for wave in range(last + 1):
            rows = groups.take(pa.array(np.flatnonzero(self._depth == wave))).combine_chunks()
            own = members.take(pa.array(np.flatnonzero(depth == wave))).combine_chunks()
            yield Parts(rows, self._beside(rows, own), records if wave == 0 else records.slice(0, 0))

    def go_on(self, parts: Parts, decoded: DecodedBucket, result: Rebalances) -> None:
        """Keep what members have after a wave, for the next one."""
        if int(self._depth.max(initial=0)) == 0:
            return
        kind = parts.members.schema.field(c.RECORDED).type
        topics = {c.TOPIC: decoded.topic_names, c.TOPIC_ID: decoded.topic_ids}
        given = wire_array(result.target, result.slots, topics, _small(kind)).cast(kind)
        refused = np.isin(np.arange(len(decoded.groups)), list(refusals(decoded, result)))[result.party.group]
        given = pc.if_else(pa.array(refused), column(decoded.members, c.RECORDED), given)
        kept = with_column(decoded.members, c.RECORDED, given)
        computed = column(kept, c.SNAPSHOT_ID) if len(kept) else pa.array([], pa.string())
        rejected = parts.members.filter(pc.invert(pc.is_in(column(parts.members, c.SNAPSHOT_ID), value_set=computed)))
        self._before = pa.concat_tables([kept, rejected]).combine_chunks()

    def _beside(self, groups: pa.Table, own: pa.Table) -> pa.Table:
        """Return the wave's members and what those before them were given."""
        if self._before is None:
            return own
        kept = pc.is_in(column(self._before, c.SNAPSHOT_ID), value_set=column(groups, c.PREVIOUS_SNAPSHOT_ID))
        before = self._before.filter(kept)
        return pa.concat_tables([_with_rewrites(groups, own, before), before]).combine_chunks()


def _depth(groups: pa.Table) -> LongArray:
    """How many snapshots with an assignor to ask each one follows in this bucket: [G]."""
    before = integers(
        pc.index_in(column(groups, c.PREVIOUS_SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID), skip_nulls=True),
        NONE,
    ).astype(np.int64)
    follows = (before != NONE) & valid(column(groups, r.CHOSEN))
    depth: LongArray = follows.astype(np.int64)
    ancestor = np.where(follows, before, np.arange(len(groups)))
    for _ in range(len(groups).bit_length()):  # each turn looks twice as far back
        depth, ancestor = depth + depth[ancestor], ancestor[ancestor]
    return depth


def _with_rewrites(groups: pa.Table, own: pa.Table, before: pa.Table) -> pa.Table:
    """Return the wave's members; those of a rewrite have on record what the same member was given before."""
    rewritten = groups.filter(pc.fill_null(pc.equal(column(groups, c.SNAPSHOT_KIND), "rewrite"), False))
    if len(rewritten) == 0:
        return own
    rows = integers(pc.index_in(column(own, c.SNAPSHOT_ID), value_set=column(rewritten, c.SNAPSHOT_ID)), NONE)
    at = np.flatnonzero(rows != NONE)
    everyone = pa.concat_tables([own, before]).combine_chunks()
    found = held_rows(rewritten.combine_chunks(), everyone, own.take(pa.array(at)).combine_chunks(), rows[at])
    held: ListColumn = column(everyone, c.RECORDED).take(found)
    spread = np.full(len(own), NONE, np.int64)
    spread[at] = np.arange(len(at))
    return with_column(own, c.RECORDED, pc.coalesce(named(held, spread), column(own, c.RECORDED)))


def _small(kind: pa.DataType) -> pa.DataType:
    """Return the type with 32-bit offsets, as results are built."""
    entry = [pa.field(each.name, pa.string(), each.nullable) for each in list(kind.value_type)[:-1]]
    numbers = pa.list_(pa.field("element", pa.int32(), nullable=False))
    return pa.list_(pa.field("element", pa.struct([*entry, pa.field(c.PARTITIONS, numbers, False)]), nullable=False))
