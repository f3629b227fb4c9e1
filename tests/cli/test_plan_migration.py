"""`groupledger plan-migration` as a person and as a program see it."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.cli.commands import main


def run(*arguments):
    return CliRunner().invoke(main, ["plan-migration", *arguments])


def test_a_safe_migration_is_a_checklist():
    done = run("--listed", "range", "--client", "java=2")
    assert done.exit_code == 0
    assert "[ ] Bounce 1: list range, cooperative-sticky; one member after the other: java-1, java-2" in done.output
    assert "[ ] Bounce 2: list cooperative-sticky alone" in done.output


@pytest.mark.parametrize(
    ("arguments", "danger"),
    [
        (("--listed", "range", "--single-bounce"), "no-common-assignor"),
        (("--listed", "range", "--client", "librdkafka=2"), "client-cannot-mix"),
        (("--listed", "range", "--client", "java=5", "--client", "librdkafka=1"), "client-cannot-mix"),
        (("--listed", "stream"), "streams-assignor"),
        (("--listed", "cooperative-sticky,range", "--before-2.4"), "client-lacks-assignor"),
        (("--listed", "stream", "--assignor", "stream", "--before-2.4", "--single-bounce"), "old-leader"),
    ],
)
def test_an_unsafe_one_says_where_to_stop_and_exits_with_4(arguments, danger):
    done = run(*arguments)
    assert done.exit_code == 4
    assert "[ ] STOP before step 1" in done.output
    assert danger in done.output
    told = json.loads(run(*arguments, "--json").stdout)
    assert told["status"] == "unsafe"
    assert told["first_unsafe"] == {"step": 1, "danger": danger}


def test_json_has_a_row_for_each_step():
    told = json.loads(run("--listed", "sticky", "--client", "java=1", "--client", "franz-go=1", "--json").stdout)
    assert told["status"] == "safe"
    assert [(row["step"], row["member"]) for row in told["steps"]] == [
        (1, "java-1"),
        (2, "franz-go-1"),
        (3, "java-1"),
        (4, "franz-go-1"),
    ]
    assert told["steps"][2]["protocols"] == {"java-1": "COOPERATIVE", "franz-go-1": "EAGER"}


@pytest.mark.parametrize("client", ["java", "java=0", "java=x", "java=9999"])
def test_a_client_that_cannot_be_counted_is_a_usage_error(client):
    done = run("--listed", "range", "--client", client)
    assert done.exit_code == 2
    assert "BAD_CLIENT" in done.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "expected GROUP"),
        (("--listed", "range", "--cluster", "eu"), "there is no GROUP"),
        (("payments", "--client", "java=3"), "with GROUP expected one LIBRARY"),
        (("--listed", "cooperative-sticky"), "there is nothing to migrate"),
    ],
)
def test_what_does_not_go_together_is_a_usage_error(arguments, told):
    done = run(*arguments)
    assert done.exit_code == 2
    assert told in done.stderr


@pytest.mark.parametrize(("client", "exit_code", "told"), [
    ("sarama", 0, "[ ] Bounce 1: list range, cooperative-sticky; one member after the other: sarama-1, sarama-2"),
    ("kafka-go", 4, "kafka-go has no cooperative assignor, only range, roundrobin, rack-affinity; what is left: "),
    ("kafkajs", 4, "kafkajs has no cooperative assignor, only RoundRobinAssigner; what is left: members of another"),
    ("franz-go", 0, "[ ] First, client-not-tried: nobody here tried whether franz-go takes such a list (it follows"),
])  # fmt: skip
def test_each_client_of_case_38(client, exit_code, told):
    done = run("--listed", "range", "--client", f"{client}=2")
    assert (done.exit_code, done.output.count(told)) == (exit_code, 1)
    assert ("docs/reference/codes.md" in done.output) == (client == "franz-go")


@pytest.mark.parametrize(("clients", "listed"), [
    (("sarama=2",), ["range"]), (("kafkajs=1",), ["RoundRobinAssigner"]), (("java@2.3=1", "java=1"), ["range"]),
    (("kafka-go=1", "librdkafka=1"), ["range", "roundrobin"]),
])  # fmt: skip
def test_without_from_members_list_what_their_library_lists(clients, listed):
    options = [part for each in clients for part in ("--client", each)]
    assert json.loads(run(*options, "--json").stdout)["members"][0]["assignors"] == listed


def test_defaults_with_nothing_in_common_are_refused():
    done = run("--client", "aiokafka=1", "--client", "sarama=1")
    assert done.exit_code == 2
    assert "(aiokafka: roundrobin; sarama: range); give --listed" in done.stderr


def test_assignors_may_stand_apart_and_a_long_line_is_cut():
    done = run("--listed", "range, roundrobin", "--client", "java=20")
    assert done.exit_code == 0
    assert "list range, roundrobin, cooperative-sticky" in done.stdout
    assert "java-11, and 9 more" in done.stdout


def test_a_hundred_members_are_planned_by_their_kinds():
    told = json.loads(run("--listed", "range", "--client", "java=60", "--client", "franz-go=40", "--json").stdout)
    assert (told["status"], len(told["members"])) == ("safe", 100)
    assert told["played"] <= 40
    bounced = [member for step in told["steps"] for member in (step["member"], *step["alike"])]
    assert sorted(bounced) == sorted(2 * [each["member"] for each in told["members"]])
    assert [step["step"] for step in told["steps"]][-1] == 200
    table = run("--listed", "range", "--client", "java=100").stdout
    assert "members were played, some of each kind" in table
    assert "all 100 are back" in table
    assert "java-39 and 60 alike" in table


def test_stopping_all_is_told_with_what_it_costs():
    arguments = ("--listed", "range", "--client", "java=5", "--client", "librdkafka=1")
    way = "[ ] Or stop all 6 members, then start them anew (list cooperative-sticky alone): rehearsed, safe"
    assert f"{way}, under cooperative-sticky; 18 partitions without an owner meanwhile" in run(*arguments).output
    told = json.loads(run(*arguments, "--json").stdout)["stop_all"]
    assert (told["assignor"], told["unavailable"], told["findings"]) == ("cooperative-sticky", 18, [])
    assert json.loads(run("--listed", "range", "--json").stdout)["stop_all"] is None


def test_each_member_may_run_a_release_of_its_own():
    """One single bounce: the member on old byte code leads, and cannot read what the bounced one keeps."""
    told = json.loads(run("--listed", "range", "--client", "java@2.3=1", "--client", "java=1", "--json").stdout)
    assert [each["member"] for each in told["members"]] == ["java@2.3-1", "java-1"]
    done = run("--listed", "cooperative-sticky", "--assignor", "range", "--client", "java@2.3=1", "--client", "java=1")
    assert done.exit_code == 4
    assert "client-lacks-assignor: java@2.3-1" in done.stdout
    assert run("--listed", "range", "--client", "java@x=1").exit_code == 2
