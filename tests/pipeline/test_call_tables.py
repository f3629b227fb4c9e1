"""`callbacks`: the calls of all captured groups as a run of the ledger, counted once, readable at once."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.config import Config, LedgerSettings
from groupledger.config.loading import TEMPLATE
from groupledger.core.protocol.recorded import recorded_calls
from groupledger.pipeline.call_tables import keep_calls
from groupledger.sinks.current import current
from groupledger.tables import CALLBACKS, METRICS
from groupledger.tables import columns as c
from tests.core.history.captured import folded, log_rows
from tests.pipeline.captured_facts import fill
from tests.pipeline.ledgers import invocation


@pytest.fixture(scope="module")
def ledger(spark, new_ledger, tmp_path_factory):
    return fill(spark, new_ledger(tmp_path_factory.mktemp("calls") / "ledger"), ("dev",))


@pytest.fixture(scope="module")
def expected():
    """Calls by group and name, from the log without Spark."""
    found = {group: folded("dev/offsets", group) for group in log_rows("dev/offsets")}
    return Counter(
        (group, each.call.callback.value)
        for group, rows in found.items()
        for each in recorded_calls(rows.group_snapshots, rows.member_snapshots)
    )


@pytest.mark.long
def test_a_run_keeps_every_call_once(spark, ledger, expected, monkeypatch):
    monkeypatch.setattr("groupledger.pipeline.call_tables.code_digest", lambda *_: "code")
    config = Config(cluster_id="dev", ledger=LedgerSettings(location=ledger.path))
    daily, again, hourly = (keep_calls(spark, config, invocation(), hours) for hours in (24, 24, 1))
    assert [each.already_committed for each in (daily, again, hourly)] == [False, True, False]
    assert (again.run_id, again.rows) == (daily.run_id, daily.rows)
    assert daily.rows["callbacks"] == sum(expected.values()) == hourly.rows["callbacks"]
    rows = current(spark, ledger, CALLBACKS).select(c.GROUP_ID, c.CALLBACK).collect()
    assert Counter(map(tuple, rows)) == expected
    metrics = current(spark, ledger, METRICS)
    assert metrics.count() == hourly.rows["metrics"]
    spans = metrics.selectExpr("unix_seconds(window_end) - unix_seconds(window_start)").distinct().collect()
    assert [tuple(row) for row in spans] == [(3_600,)]


@pytest.mark.long
def test_the_command_takes_the_place_of_the_run_before(spark, ledger, expected, monkeypatch):
    """Of one with the same hours, too, if others came after it."""
    monkeypatch.setattr("groupledger.cli.options.Job.spark", lambda _: spark)
    monkeypatch.setattr("groupledger.pipeline.call_tables.code_digest", lambda *_: "code")
    told = ["callbacks", "--config", str(TEMPLATE), "--set", f"ledger.location={ledger.path}", "--json"]
    done = CliRunner().invoke(main, told)
    assert done.exit_code == 0, done.output
    summary = json.loads(done.stdout)
    assert (summary["already_committed"], summary["rows"]["callbacks"]) == (False, sum(expected.values()))
    assert current(spark, ledger, METRICS).count() == summary["rows"]["metrics"]
