"""The grouped UDF: one call a hash bucket of consumer groups; a call for each group would cost more than its work."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.engine import rows as r
from groupledger.engine.envelope import ENVELOPE, Envelope, as_table, sealed, sealed_counts
from groupledger.engine.older_spark import repartition_by_id
from groupledger.tables import BY_NAME, REBALANCES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.core.rebalance import Rebalances
    from groupledger.engine.bucket_parts import Parts
    from groupledger.engine.calculation import Calculation
    from groupledger.engine.codec import DecodedBucket
    from groupledger.engine.table_files import FilesOfAttempt

GROUPS_A_BUCKET = 4_000
"""Enough that the call itself costs nothing, few enough for a worker's memory."""
GROUPS_A_CORE = 1_000
"""Fewer are not worth another task."""
GIANT_MEMBERS = 5_000
"""A group with as many members gets a bucket of its own."""
GIANT_BUCKETS = 1 << 20


def bucket_of(buckets: int) -> Column:
    """The bucket of a row by its group; rows that name none share one a cluster."""
    return F.pmod(_group_hash(), F.lit(buckets)).cast("int")


def giant_bucket_of(buckets: int) -> Column:
    """A bucket of its own for the group of a row, behind those of the others."""
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
    import pyarrow as pa

    from groupledger.engine.bucket_parts import parts_of
    from groupledger.engine.carried import History
    from groupledger.engine.results import encode_results

    history = History(parts_of(table), carried=calculation.carried)
    found = []
    for parts in history.waves():
        decoded, result = rebalanced(parts, calculation)
        history.go_on(parts, decoded, result)
        found.append(encode_results(decoded, result, calculation))
    rows = {table.name: pa.concat_tables([each[table.name] for each in found]) for table in r.RESULTS}
    assert_accounted(history.groups, rows[REBALANCES.name])
    return rows


def rebalanced(parts: Parts, calculation: Calculation) -> tuple[DecodedBucket, Rebalances]:
    """Compute the rebalances of a bucket's rows, and return them with the rows as arrays."""
    from groupledger.core.rebalance import rebalance
    from groupledger.engine.codec import decode

    decoded = decode(parts, calculation, {each.name: each for each in calculation.custom})
    return decoded, rebalance(decoded.snapshots, decoded.choice)


def assert_accounted(groups: pa.Table, rebalances: pa.Table) -> None:
    """Every group in has one outcome out."""
    if len(rebalances) != len(groups):
        raise AssertionError(f"{len(groups)} groups in, {len(rebalances)} outcomes out; expected as many")


def enveloped(bucket: pa.Table, calculation: Calculation, files: FilesOfAttempt | None) -> list[Envelope]:
    """Compute one bucket, and give its results and counts as a worker does."""
    from groupledger.engine.result_counts import bucket_counts

    found = compute(bucket, calculation)
    filled = [each for name, some in found.items() if len(some) for each in sealed(BY_NAME[name], some, files)]
    return [*filled, sealed_counts(bucket_counts(bucket, found[REBALANCES.name]))]


def apply(rows: DataFrame, buckets: int, calculation: Calculation, files: FilesOfAttempt | None = None) -> DataFrame:
    """Run the calculation over all buckets into envelopes: of result tables, in `files`, and of counts.

    The explicit repartition keeps adaptive execution from merging them, and by id rather than by hash every bucket has
    a task: hashed, four buckets met in two tasks. A task has one bucket, and now and then a giant's beside it; so rows
    need no sorting in the JVM to be told apart.
    """
    return repartition_by_id(rows, buckets, r.BUCKET).mapInArrow(_call(calculation, files), ENVELOPE)


def _call(
    calculation: Calculation, files: FilesOfAttempt | None
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    import pyarrow as pa

    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for bucket in buckets_of(list(batches)):
            yield from as_table(enveloped(bucket, calculation, files)).to_batches()
            pa.default_memory_pool().release_unused()  # the next bucket comes first as the JVM's bytes

    return call


def buckets_of(batches: list[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows of each bucket of a task."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if batches:
        rows = pa.Table.from_batches(batches)
        found = sorted(pc.unique(rows.column(r.BUCKET)).to_pylist())
        for bucket in found:
            yield rows if len(found) == 1 else rows.filter(pc.equal(rows.column(r.BUCKET), bucket))
