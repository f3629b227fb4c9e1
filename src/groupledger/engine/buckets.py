"""The grouped UDF: one call a hash bucket of consumer groups; a call for each group would cost more than its work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from groupledger.core.step import Form
from groupledger.engine import rows as r
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

GROUPS_A_BUCKET = 4_000


@dataclass(frozen=True, slots=True)
class Calculation:
    """All that a bucket's call needs to know beside its rows: a few words, pickled with the UDF."""

    scenario: str
    form: Form


def bucket(buckets: int) -> Column:
    """The bucket of a row's group: all snapshots of a group meet in one."""
    return F.pmod(F.xxhash64(F.col(c.CLUSTER_ID), F.col(c.GROUP_ID)), F.lit(buckets)).cast("int")


def bucket_count(groups: int, parallelism: int) -> int:
    """Buckets for so many group rows: enough work a call, and no core idle."""
    wanted = -(-groups // GROUPS_A_BUCKET)
    return wanted if wanted <= 1 else -(-wanted // parallelism) * parallelism


def compute(table: pa.Table, calculation: Calculation) -> pa.Table:
    """One bucket, rows in and rows out; see `rows.INPUT` and `rows.OUTPUT`. Pure."""
    from groupledger.core.rebalance import rebalance
    from groupledger.engine.codec import decode
    from groupledger.engine.results import encode_results

    decoded = decode(table, calculation.form)
    result = rebalance(decoded.snapshots, decoded.choice)
    rows = encode_results(decoded, result, calculation.scenario, to_arrow_schema(r.OUTPUT))
    assert_accounted(decoded.groups, rows)
    return rows


def assert_accounted(groups: pa.Table, rows: pa.Table) -> None:
    """Every group in has one outcome out."""
    outcomes = len(rows) - rows.column("rebalances").null_count
    if outcomes != len(groups):
        raise AssertionError(f"{len(groups)} groups in, {outcomes} outcomes out; expected as many")


def apply(rows: DataFrame, buckets: int, calculation: Calculation) -> DataFrame:
    """Run the calculation over all buckets. The explicit repartition keeps adaptive execution from merging them."""
    return rows.repartition(buckets, r.BUCKET).groupBy(r.BUCKET).applyInArrow(_call(calculation), r.OUTPUT)


def _call(calculation: Calculation) -> Callable[[pa.Table], pa.Table]:
    def call(table: pa.Table) -> pa.Table:
        return compute(table, calculation)

    return call
