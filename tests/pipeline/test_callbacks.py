"""The calls of a recorded group from the ledger are those from the log, and `replay` drives a listener over them."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.config.sample import TEMPLATE
from groupledger.core.faults import Fault
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.listener import OffsetAndMetadata, RebalanceListener
from tests.core.history.captured import folded
from tests.pipeline.captured_facts import group_rows, member_rows, moment
from tests.pipeline.written_ledger import WrittenLedger

GROUP = "java-cooperative-sticky"


class Committing(RebalanceListener):
    def on_partitions_assigned(self, partitions, consumer):
        consumer.pause(partitions)

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(1) for each in partitions})


class Greedy(Committing):
    """Seeks what it does not have."""

    def on_partitions_revoked(self, partitions, consumer):
        consumer.seek(("nowhere", 0), 1)


@pytest.fixture(scope="module")
def ledger(spark):
    groups = [row for row in group_rows("dev") if row["group_id"] == GROUP]
    members = [row for row in member_rows("dev") if row["group_id"] == GROUP]
    return WrittenLedger(spark, group_snapshots=groups, member_snapshots=members)


@pytest.fixture
def replay(ledger, monkeypatch):
    monkeypatch.setattr("groupledger.cli.options.Job.ledger", lambda _: ledger)
    told = ["--group", GROUP, "--config", str(TEMPLATE), "--json"]
    return lambda listener: CliRunner().invoke(main, ["replay", "--listener", f"{__name__}:{listener}", *told])


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


def test_a_listener_is_replayed(replay, ledger):
    done = replay("Committing")
    told = json.loads(done.stdout)
    assert done.exit_code == 0
    assert told["calls"] == len(ledger.group(GROUP).callbacks())
    assert told["did"]["pause"] > told["did"]["commit"] > 0
    assert told["errors"] == []


def test_what_a_listener_does_wrong_is_told_and_exits_with_4(replay):
    done = replay("Greedy")
    errors = json.loads(done.stdout)["errors"]
    assert done.exit_code == 4
    assert {error["did"] for error in errors} == {"seek", "raised IllegalStateError"}
    assert all("nowhere-0" in error["error"] for error in errors)
