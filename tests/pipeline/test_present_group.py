"""`plan-migration --group`: a recorded group's members and topics from the ledger, its migration rehearsed."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main
from groupledger.config.sample import TEMPLATE
from groupledger.tables import columns as c
from tests.pipeline.captured_facts import group_rows, member_rows, topic_rows
from tests.pipeline.written_ledger import WrittenLedger

GROUPS = ("java-range", "rdk-range")


@pytest.fixture(scope="module")
def ledger(spark):
    return WrittenLedger(
        spark,
        group_snapshots=[row for row in group_rows("dev") if row[c.GROUP_ID] in GROUPS],
        member_snapshots=[row for row in member_rows("dev") if row[c.GROUP_ID] in GROUPS],
        topic_snapshots=topic_rows("dev"),
    )


@pytest.fixture
def plan(ledger, monkeypatch):
    monkeypatch.setattr("groupledger.cli.options.Job.ledger", lambda _: ledger)
    told = ["plan-migration", "--config", str(TEMPLATE), "--group"]
    return lambda *arguments: CliRunner().invoke(main, [*told, *arguments])


def test_a_group_of_the_ledger_is_rehearsed(plan):
    done = plan("java-range", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["status"] == "safe"
    assert {(each["library"], *each["perhaps"]) for each in told["members"]} == {("java", "franz-go")}
    assert [row["member"] for row in told["steps"]] == [each["member"] for each in told["members"]] * 2
    assert {each["danger"] for row in told["steps"] for each in row["findings"]} == {"client-not-told"}


def test_what_the_log_does_not_have_is_named_by_options(plan):
    done = plan("java-range", "--client", "java", "--from", "range,roundrobin", "--json")
    told = json.loads(done.stdout)
    assert {tuple(each["assignors"]) for each in told["members"]} == {("range", "roundrobin")}
    assert [row["findings"] for row in told["steps"]] == [[]] * len(told["steps"])


def test_a_library_that_cannot_mix_is_told_by_its_hand(plan):
    done = plan("rdk-range")
    assert done.exit_code == 4
    assert "it is empty now" in done.stdout
    assert "client-cannot-mix" in done.stdout


def test_a_group_that_is_not_there_is_named(plan):
    done = plan("rdk-rnage")
    assert done.exit_code == 2
    assert "known: rdk-range" in done.stderr
