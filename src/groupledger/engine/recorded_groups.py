"""The calls and metrics of many recorded groups in one Spark job: one UDF call a bucket of groups.

call_buckets(groups, members, buckets, hours=24, files=files)        # envelopes of `callbacks` and `metrics`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from groupledger.core.history.fold_rows import GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.protocol.metrics import HOUR_MS, Window, of_history
from groupledger.core.protocol.recorded import RecordedCall, recorded_calls
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import snapshot_rows
from groupledger.engine.buckets import bucket_of
from groupledger.engine.envelope import ENVELOPE, SCHEMAS, FilesOfAttempt, as_table, sealed
from groupledger.tables import CALLBACKS, METRICS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pyarrow as pa


TABLES = (CALLBACKS, METRICS)
"""The tables that one pass fills."""

_GROUP = attrgetter(c.CLUSTER_ID, c.GROUP_ID)


def call_buckets(
    groups: DataFrame, members: DataFrame, buckets: int, hours: int, files: FilesOfAttempt | None = None
) -> DataFrame:
    """Turn rows of `group_snapshots` and `member_snapshots` into envelopes of TABLES, with rows in `files`.

    Metrics are by windows of so many hours.
    """
    bucket = bucket_of(buckets).alias(r.BUCKET)
    in_millis = groups.withColumn(c.OBSERVED_AT, F.unix_millis(c.OBSERVED_AT))
    left = in_millis.select(bucket, *GroupSnapshotRow._fields).groupBy(r.BUCKET)
    right = members.select(bucket, *MemberSnapshotRow._fields).groupBy(r.BUCKET)
    return left.cogroup(right).applyInArrow(_call(hours * HOUR_MS, files), ENVELOPE)


def _call(window_ms: int, files: FilesOfAttempt | None) -> Callable[[pa.Table, pa.Table], pa.Table]:
    def call(groups: pa.Table, members: pa.Table) -> pa.Table:
        found = zip(TABLES, calls_of(groups, members, window_ms), strict=True)
        return as_table([each for table, rows in found if len(rows) for each in sealed(table, rows, files)])

    return call


def calls_of(groups: pa.Table, members: pa.Table, window_ms: int) -> tuple[pa.Table, pa.Table]:
    """Return the rows of TABLES of one bucket of snapshots, in an order that does not depend on theirs. Pure."""
    rows_by_group: dict[tuple[str, str], list[MemberSnapshotRow]] = {}
    for row in sorted(
        snapshot_rows(members, MemberSnapshotRow), key=attrgetter(c.OFFSET, c.SNAPSHOT_ID, c.MEMBER_ORDER)
    ):
        rows_by_group.setdefault(_GROUP(row), []).append(row)
    snapshots = sorted(snapshot_rows(groups, GroupSnapshotRow), key=_place)
    calls: list[dict[str, Any]] = []
    metrics: list[dict[str, Any]] = []
    for group, some in groupby(snapshots, key=_GROUP):
        of_group = list(recorded_calls(list(some), rows_by_group.get(group, [])))
        calls += map(_call_row, of_group)
        metrics += _metric_rows(of_group, window_ms)
    return _table(CALLBACKS, calls), _table(METRICS, metrics)


def _table(table: Table, rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Return rows of a table; moments are given in milliseconds, and are kept in microseconds."""
    import pyarrow as pa

    schema = SCHEMAS[table.name]
    in_ms = pa.timestamp("ms", tz="UTC")
    given = pa.schema([(each.name, in_ms if pa.types.is_timestamp(each.type) else each.type) for each in schema])
    return pa.Table.from_pylist(list(rows), schema=given).cast(schema)


def _place(row: GroupSnapshotRow) -> tuple[str, str, int, int, str]:
    """Group, then place in the log; rows of user tables have no log partition."""
    partition = -1 if row.log_partition is None else row.log_partition
    return row.cluster_id, row.group_id, partition, row.offset, row.snapshot_id


def _metric_rows(calls: Iterable[RecordedCall], window_ms: int) -> Iterator[dict[str, Any]]:
    """Yield the metrics of one group, window by window."""
    for number, some in groupby(sorted(calls, key=attrgetter("at_ms")), key=lambda each: each.at_ms // window_ms):
        window = Window(number * window_ms, (number + 1) * window_ms)
        of_window = list(some)
        for metric in of_history(of_window, window):
            yield {
                c.CLUSTER_ID: of_window[0].cluster_id,
                c.GROUP_ID: of_window[0].group_id,
                c.MEMBER_ID: metric.member,
                c.WINDOW_START: window.start_ms,
                c.WINDOW_END: window.end_ms,
                c.METRIC: metric.name,
                c.METRIC_VALUE: None if metric.value is None else float(metric.value),
                c.REASON: metric.reason,
            }


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
