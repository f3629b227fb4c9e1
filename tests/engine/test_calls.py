"""Calls and metrics of a bucket: what `core.protocol` says of each group, whatever the order of the rows."""

from __future__ import annotations

from datetime import timedelta

import pyarrow as pa
import pytest

from groupledger.core.protocol.metrics import HOUR_MS
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.engine.recorded_groups import calls_of
from tests.core.history.captured import folded

GROUPS = ("java-cooperative-sticky", "java-range", "rdk-roundrobin")
DAY_MS = 24 * HOUR_MS


@pytest.fixture(scope="module")
def bucket():
    """Group rows and member rows of some groups, last first."""
    found = [folded("dev/offsets", group) for group in GROUPS]
    groups = [row._asdict() for each in found for row in each.group_snapshots]
    members = [_named(row) for each in found for row in each.member_snapshots]
    return pa.Table.from_pylist(groups[::-1]), pa.Table.from_pylist(members[::-1])


def _named(row):
    """Partitions as the table has them."""
    lists = {name: getattr(row, name) for name in ("claimed", "recorded", "target", "pending_revocation")}
    names = ("topic_id", "topic", "partitions")
    wire = {
        name: None if told is None else [dict(zip(names, each, strict=True)) for each in told]
        for name, told in lists.items()
    }
    return row._asdict() | wire


def test_every_call_of_every_group_is_there_in_order(bucket):
    rows = calls_of(bucket[0], bucket[1], DAY_MS)[0].to_pylist()
    expected = [
        (each.group_id, each.snapshot_id, each.order, each.member_id, each.call.callback.value)
        for group in sorted(GROUPS)
        for each in recorded_calls(
            folded("dev/offsets", group).group_snapshots, folded("dev/offsets", group).member_snapshots
        )
    ]
    keys = ("group_id", "snapshot_id", "call_order", "member_id", "callback")
    assert [tuple(row[key] for key in keys) for row in rows] == expected
    assert any(row["partitions"] for row in rows)


@pytest.mark.parametrize("window_ms", [DAY_MS, 5_000])
def test_windows_together_count_every_rebalance_once(bucket, window_ms):
    metrics = calls_of(bucket[0], bucket[1], window_ms)[1].to_pylist()
    for group in GROUPS:
        totals = [
            row["metric_value"]
            for row in metrics
            if (row["group_id"], row["member_id"], row["metric"]) == (group, None, "rebalance-total")
        ]
        assert sum(totals) == len([row for row in folded("dev/offsets", group).group_snapshots if row.members > 0])
    assert all((row["metric_value"] is None) == (row["reason"] is not None) for row in metrics)
    assert all(row["window_end"] - row["window_start"] == timedelta(milliseconds=window_ms) for row in metrics)


def test_no_row_depends_on_the_order_of_the_input(bucket):
    groups, members = bucket
    turned = groups.take(list(range(len(groups)))[::-1]), members.take(list(range(len(members)))[::-1])
    assert calls_of(turned[0], turned[1], DAY_MS) == calls_of(bucket[0], bucket[1], DAY_MS)
