"""`simulate --from-ledger`: a script goes on where a recorded group stands."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from groupledger.answers.reader import LedgerReader
from groupledger.answers.recorded_members import recorded_members
from groupledger.cli.commands import main
from tests.answers.captured import ledger_of

CRASH = {"event": "wait", "at_ms": 60_000}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return ledger_of(tmp_path_factory.mktemp("ledger"), ["dev"])


@pytest.fixture
def simulated(place):
    def run(script, *words, group="java-range"):
        arguments = ["simulate", "--ledger", place, "--from-ledger", group, *words]
        return CliRunner().invoke(main, arguments, input=json.dumps(script))

    return run


def test_the_members_of_the_group_join_first_over_its_topics(simulated, place):
    recorded, counts = recorded_members(LedgerReader(place), "java-range")
    names = [each.member for each in recorded.clients]
    done = simulated({"id": "x", "events": [{"event": "crash", "member": names[0], "at_ms": 60_000}]})
    assert done.exit_code == 0, done.output
    events = json.loads(done.stdout)["events"]
    assert [each.get("member") for each in events] == [*names, names[0]]
    (took,) = events[len(names) - 1]["rounds"]
    assert took["assignor"] == "range"
    given = [tuple(pair) for row in took["members"] for pair in row["assigned"]]
    assert len(given) == len(set(given)) == sum(counts.values())


def test_what_the_script_says_of_topics_counts(simulated):
    done = simulated({"id": "x", "topics": {"other": 3}, "events": [CRASH]}, "--summary", "--json")
    assert json.loads(done.stdout)["comparison"]["scripts"][0]["id"] == "x"
    table = simulated({"id": "x", "events": [CRASH]}, "--compare", "range,cooperative-sticky,consumer")
    assert table.exit_code == 0
    assert "cooperative-sticky" in table.stdout


def test_what_is_no_script_is_an_error_of_its_line(simulated):
    assert simulated([1]).exit_code == 3
    assert json.loads(simulated({"events": 3}).stdout)["error"].startswith("BAD_SCRIPT: events is 3")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("simulate", "--cluster", "dev"), "--cluster goes with --grid and --from-ledger only"),
        (("simulate", "--from-ledger", "x", "--group", "y"), "--group goes with --grid only"),
        (("simulate", "--from-ledger", "x", "--grid", "g.yaml"), "--from-ledger goes with scripts, not with --grid"),
    ],
)
def test_options_that_do_not_go_together(words, complaint):
    done = CliRunner().invoke(main, [*words])
    assert (done.exit_code, complaint in done.output) == (2, True)


def test_a_group_that_is_not_there_is_named(simulated):
    done = simulated({"id": "x", "events": []}, group="java-rnage")
    assert done.exit_code == 2
    assert "known: java-range" in done.stderr
