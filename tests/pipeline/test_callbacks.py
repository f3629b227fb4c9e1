"""The calls of a recorded group from the ledger are those from the log."""

from __future__ import annotations

import pytest

from groupledger.core.faults import Fault
from groupledger.core.protocol.recorded import recorded_calls
from tests.core.history.captured import folded
from tests.pipeline.captured_facts import group_rows, member_rows, moment
from tests.pipeline.written_ledger import WrittenLedger

GROUP = "java-cooperative-sticky"


@pytest.fixture(scope="module")
def ledger(spark):
    groups = [row for row in group_rows("dev") if row["group_id"] == GROUP]
    members = [row for row in member_rows("dev") if row["group_id"] == GROUP]
    return WrittenLedger(spark, group_snapshots=groups, member_snapshots=members)


def test_calls_from_the_ledger_are_those_from_the_log(ledger):
    rows = folded("dev/offsets", GROUP)
    expected = recorded_calls(rows.group_snapshots, rows.member_snapshots)
    found = ledger.group(GROUP).callbacks()
    assert [each[3:] for each in found] == [each[3:] for each in expected]
    with pytest.raises(Fault, match="no group 'nobody'"):
        ledger.group("nobody").callbacks()


def test_metrics_over_a_window(ledger):
    rows = [row.observed_at for row in folded("dev/offsets", GROUP).group_snapshots if row.members > 0]
    found = ledger.group(GROUP).metrics(moment(min(rows)), moment(max(rows) + 1))
    metrics = {(row.member, row.name): row for row in found}
    assert metrics[None, "rebalance-total"].value == len(rows)
    assert metrics[None, "rebalance-latency-avg"].value is None
    assert "the log" in metrics[None, "rebalance-latency-avg"].reason
