"""`plan-migration --group`: a recorded group's members and topics from the ledger, its migration rehearsed."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import groupledger as gl
from groupledger.answers.reader import LedgerReader
from groupledger.answers.recorded_history import recorded_members
from groupledger.cli.commands import main
from tests.answers.captured import ledger_of
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return ledger_of(tmp_path_factory.mktemp("ledger"), ["dev"])


@pytest.fixture
def plan(place):
    return lambda *arguments: CliRunner().invoke(main, ["plan-migration", "--ledger", place, "--group", *arguments])


def test_a_group_of_the_ledger_is_rehearsed(plan):
    done = plan("java-range", "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["status"] == "safe"
    assert {(each["library"], *each["perhaps"]) for each in told["members"]} == {("java", "franz-go")}
    assert [row["member"] for row in told["steps"]] == [each["member"] for each in told["members"]] * 2
    assert {each["danger"] for row in told["steps"] for each in row["findings"]} == {"client-not-told"}


def test_what_the_log_does_not_have_is_named_by_options(plan):
    done = plan("java-range", "--client", "java", "--listed", "range,roundrobin", "--json")
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
    assert "did you mean rdk-range" in done.stderr


def test_partitions_are_those_of_the_last_listing(tmp_path):
    of = History("pay", topics=("a", "gone", "never")).state(1, "m a:0,1 | n", complete=True)
    for row in of.rows["member_snapshots"]:
        row |= {"topics": ["a", "gone", "never"], "subscription_version": 3, "client_id": row["member_id"]}
    for row in of.rows["group_snapshots"]:
        row["protocol_type"] = "consumer"
    topics = [listed("a", 7), listed("a", 5, 3), listed("gone", 4), listed("gone", None, 2), listed("a", 9, 1, "prod")]
    place = write(tmp_path, **rows_of(of, topic_snapshots=topics))
    recorded, counts = recorded_members(LedgerReader(place), "pay")
    assert counts == {"a": 5}
    assert [client.member for client in recorded.clients] == ["m", "n"]
    assert not recorded.empty_since


def test_a_notebook_rehearses_the_same(place, plan):
    told = gl.open(place).group("rdk-range", "dev").plan_migration(["range"])
    assert told.value.first_unsafe.number == 1
    printed = plan("rdk-range", "--listed", "range").stdout
    assert repr(told) in printed
    assert list(told.to_pandas()["safe"]) == [False]
    assert "Or stop the member, then start it anew" in printed


def test_a_group_of_kip_848_brings_no_assignors_to_rehearse(plan):
    done = plan("new-java-range")
    assert done.exit_code == 2
    assert "expected a classic group of consumers" in done.stderr
