"""The calls and metrics of many recorded groups in one Spark job: one UDF call a bucket of groups.

computed = call_buckets(groups, members, buckets, hours=24)
rows_of(computed, CALLBACKS)        # as the table declares them, but for the attempt
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow, as_tuples
from groupledger.core.protocol.metrics import HOUR_MS, Metric, Window, of_history
from groupledger.core.protocol.recorded import RecordedCall, recorded_calls
from groupledger.engine import rows as r
from groupledger.engine.buckets import bucket_of
from groupledger.tables import CALLBACKS, METRICS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame


R = TypeVar("R", GroupSnapshotRow, MemberSnapshotRow)

_MOMENTS = (c.OBSERVED_AT, c.WINDOW_START, c.WINDOW_END)
_GROUP = attrgetter(c.CLUSTER_ID, c.GROUP_ID)


def _in_millis(table: Table) -> StructType:
    """A table's columns without the attempt; moments in milliseconds."""
    kept = [field for field in table.schema if field.name != c.ATTEMPT_ID]
    return StructType(
        [
            StructField(each.name, LongType() if isinstance(each.dataType, TimestampType) else each.dataType)
            for each in kept
        ]
    )


OUTPUT = StructType([StructField(table.name, _in_millis(table)) for table in (CALLBACKS, METRICS)])
"""A row of one table in the struct column of its name, the other null: one pass fills both."""


def call_buckets(groups: DataFrame, members: DataFrame, buckets: int, hours: int) -> DataFrame:
    """Rows of OUTPUT from rows of `group_snapshots` and `member_snapshots`; metrics by windows of so many hours."""
    bucket = bucket_of(buckets).alias(r.BUCKET)
    in_millis = groups.withColumn(c.OBSERVED_AT, F.unix_millis(c.OBSERVED_AT))
    left = in_millis.select(bucket, *GroupSnapshotRow._fields).groupBy(r.BUCKET)
    right = members.select(bucket, *MemberSnapshotRow._fields).groupBy(r.BUCKET)
    return left.cogroup(right).applyInArrow(_call(hours * HOUR_MS), OUTPUT)


def _call(window_ms: int) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def call(groups: pa.Table, members: pa.Table) -> pa.Table:
        return calls_of(groups, members, window_ms)

    return call


def rows_of(computed: DataFrame, table: Table) -> DataFrame:
    """The rows of one table among rows of OUTPUT."""
    rows = r.rows_of(computed, table)
    return rows.withColumns({name: F.timestamp_millis(name) for name in _MOMENTS if name in table.columns})


def calls_of(groups: pa.Table, members: pa.Table, window_ms: int) -> pa.Table:
    """One bucket: snapshots in, calls and metrics out, in an order that does not depend on theirs. Pure."""
    import pyarrow as pa

    rows_by_group: dict[tuple[str, str], list[MemberSnapshotRow]] = {}
    for row in sorted(_rows(members, MemberSnapshotRow), key=attrgetter(c.OFFSET, c.SNAPSHOT_ID, c.MEMBER_ORDER)):
        rows_by_group.setdefault(_GROUP(row), []).append(row)
    snapshots = sorted(_rows(groups, GroupSnapshotRow), key=_place)
    filled = [
        row
        for group, some in groupby(snapshots, key=_GROUP)
        for row in _of_group(list(some), rows_by_group.get(group, []), window_ms)
    ]
    return pa.Table.from_pylist(filled, schema=to_arrow_schema(OUTPUT))


def _place(row: GroupSnapshotRow) -> tuple[str, str, int, int, str]:
    """Group, then place in the log; what a table told has no log partition."""
    partition = -1 if row.log_partition is None else row.log_partition
    return row.cluster_id, row.group_id, partition, row.offset, row.snapshot_id


def _rows(table: pa.Table, kind: type[R]) -> Iterator[R]:
    """The table's rows as the fold has them, lists as tuples."""
    columns = [table.column(name).to_pylist() for name in kind._fields]
    for values in zip(*columns, strict=True):
        yield kind(*map(as_tuples, values))


def _of_group(
    snapshots: list[GroupSnapshotRow], members: list[MemberSnapshotRow], window_ms: int
) -> Iterator[dict[str, Any]]:
    """Rows of one group: its calls, then its metrics window by window."""
    calls = list(recorded_calls(snapshots, members))
    for each in calls:
        yield {CALLBACKS.name: _call_row(each)}
    for number, some in groupby(sorted(calls, key=attrgetter("at_ms")), key=lambda each: each.at_ms // window_ms):
        window = Window(number * window_ms, (number + 1) * window_ms)
        told = list(some)
        for metric in of_history(told, window):
            yield {METRICS.name: _metric_row(told[0], window, metric)}


def _call_row(each: RecordedCall) -> dict[str, Any]:
    return {
        c.SNAPSHOT_ID: each.snapshot_id,
        c.CLUSTER_ID: each.cluster_id,
        c.GROUP_ID: each.group_id,
        c.GENERATION: each.generation,
        c.OBSERVED_AT: each.at_ms,
        c.CALL_ORDER: each.order,
        c.MEMBER_ID: each.member_id,
        c.CLIENT_ID: each.client_id,
        c.CALLBACK: each.call.callback.value,
        c.PARTITIONS: r.by_topic(each.call.partitions),
        c.TOPICS: list(each.call.topics),
        c.CERTAINTY: each.certainty.value,
    }


def _metric_row(one: RecordedCall, window: Window, metric: Metric) -> dict[str, Any]:
    """A metric of the group that `one` call is of."""
    return {
        c.CLUSTER_ID: one.cluster_id,
        c.GROUP_ID: one.group_id,
        c.MEMBER_ID: metric.member,
        c.WINDOW_START: window.start_ms,
        c.WINDOW_END: window.end_ms,
        c.METRIC: metric.name,
        c.METRIC_VALUE: None if metric.value is None else float(metric.value),
        c.REASON: metric.reason,
    }
