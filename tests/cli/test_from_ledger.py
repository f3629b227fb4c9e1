"""`simulate --from-ledger`: a script goes on where a recorded group stands."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from groupledger.answers.reader import LedgerReader
from groupledger.answers.recorded_history import members_now
from groupledger.cli.commands import main
from tests.answers.captured import ledger_of
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write

WAIT = {"event": "wait", "at_ms": 60_000}
JOIN = {"event": "join", "member": "m", "topics": ["a"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return ledger_of(tmp_path_factory.mktemp("ledger"), ["dev"])


@pytest.fixture
def simulated(place):
    def run(script, *words, group="rdk-roundrobin"):
        arguments = ["simulate", "--ledger", place, "--from-ledger", group, *words]
        return CliRunner().invoke(main, arguments, input=json.dumps(script))

    return run


def test_the_group_goes_on_from_its_last_generation(simulated, place):
    start, _ = members_now(LedgerReader(place), "rdk-roundrobin")
    names = [each.member for each in start.joins]
    done = simulated({"id": "x", "events": [{"event": "crash", "member": names[0], "at_ms": 60_000}]})
    assert done.exit_code == 0, done.output
    events = json.loads(done.stdout)["events"]
    assert [each.get("member") for each in events] == [*names, names[0]]
    assert [each["rounds"] for each in events[:-1]] == [[] for _ in names]
    held = [tuple(pair) for each in events[:-1] for pair in each["seat"]["assigned"]]
    assert len(held) == len(set(held)) > 0
    assert f"generation {start.generation}, {len(names)} member" in done.stderr


def stuck(**more):
    """Generation 2: m1 gave up a-2 and a-3 for m2, and nobody rebalanced again."""
    of = History("stuck").state(1, "m1 a:0,1,2,3").state(2, "m1 a:0,1 | m2", leader="m1", **more)
    for row in of.rows["group_snapshots"]:
        row |= {"protocol_type": "consumer", "assignor": "cooperative-sticky", "complete": True}
    for row in of.rows["member_snapshots"]:
        row |= {"subscription_version": 3, "recorded": row["recorded"] or [], "claimed_generation": 1}
        row |= {"user_data": bytes([0, 0, 0, 1])}
    return of


def run_stuck(folder, history, script, *words, counts=(4,)):
    place = write(folder, **rows_of(history, topic_snapshots=[listed("a", count) for count in counts]))
    arguments = ["simulate", "--ledger", place, "--from-ledger", history.group, *words]
    return CliRunner().invoke(main, arguments, input=json.dumps(script))


def test_a_stuck_group_is_asked_whether_a_restart_helps(tmp_path):
    done = run_stuck(tmp_path, stuck(), {"id": "x", "events": [{"event": "restart", "member": "m1"}]}, "--table")
    assert done.exit_code == 0, done.output
    assert done.stderr == (
        "stuck starts as recorded at 2026-11-21T14:02:00.000Z: generation 2, 2 members, 2 partitions without an owner\n"
    )
    assert "x: as recorded, unowned: a:2-3" in done.stdout
    assert "x, event 1: restart m1: 3 rounds, 6 partition-rounds unavailable" in done.stdout
    rows = [line.split()[:6] for line in done.stdout.splitlines() if re.match(r" +[0-9]", line)]
    assert rows[0] == ["1", "3", "m2", "m2", "-", "a:0-3"]


def test_a_clock_starts_from_the_same_state(tmp_path):
    script = {"id": "x", "times": {}, "events": [{"event": "wait", "at_ms": 60_000}]}
    *_, wait = json.loads(run_stuck(tmp_path, stuck(), script).stdout)["events"]
    assert (wait["rounds"], wait["unowned"]) == ([], [["a", 2], ["a", 3]])


def test_an_empty_group_has_its_generation_and_no_members(tmp_path):
    done = run_stuck(tmp_path, stuck().state(5, None), {"id": "x", "topics": {"a": 4}, "events": [JOIN]})
    assert "generation 5, no members" in done.stderr
    (event,) = json.loads(done.stdout)["events"]
    assert [took["generation"] for took in event["rounds"]] == [6]


def test_a_deleted_classic_group_has_no_epoch(tmp_path):
    ended = stuck().state(5, None, generation=None, snapshot_kind="deleted", state="Dead")
    done = run_stuck(tmp_path, ended, {"id": "x", "events": [JOIN]})
    assert done.stderr.endswith(": generation 0, no members\n")


@pytest.mark.parametrize("joins", [JOIN, JOIN | {"topics": [], "topic_regex": "a|b"}])
def test_topics_that_only_a_script_names_are_those_of_the_last_listing(tmp_path, joins):
    done = run_stuck(tmp_path, stuck().state(5, None), {"id": "x", "events": [joins]})
    (event,) = json.loads(done.stdout)["events"]
    assert [took["members"][0]["assigned"] for took in event["rounds"]] == [[["a", number] for number in range(4)]]


def test_a_consumer_group_goes_on_where_its_record_tells_all(tmp_path):
    of = History("modern", kind="consumer").state(7, "m1 a:0,1 | m2 a:2,3", complete=True)
    done = run_stuck(tmp_path, of, {"id": "x", "events": [{"event": "leave", "member": "m2"}]})
    assert done.exit_code == 0, done.output
    *_, left = json.loads(done.stdout)["events"]
    assert left["consumer_group"]["epoch"] == 8
    assert "group epoch 7, 2 members, 0 partitions without an owner" in done.stderr


@pytest.mark.parametrize(
    ("kind", "changed", "complaint"),
    [
        ("consumer", {"state": "Reconciling"}, "is at group epoch 7, Reconciling; expected a stable one"),
        ("consumer", {"complete": False}, "is at group epoch 7, Stable; expected a stable one"),
        ("share", {}, "is of type 'share'; expected a classic group of consumers"),
    ],
)
def test_a_state_that_is_not_told_in_full_is_refused(tmp_path, kind, changed, complaint):
    of = History("modern", kind=kind).state(7, "m1 a:0,1 | m2 a:2,3", **{"complete": True, **changed})
    done = run_stuck(tmp_path, of, {"id": "x", "events": []})
    assert done.exit_code == 2
    assert complaint in done.stderr


def test_an_assignment_that_cannot_be_read_is_refused(tmp_path):
    of = stuck()
    of.rows["member_snapshots"][-1]["recorded"] = None
    done = run_stuck(tmp_path, of, {"id": "x", "events": []})
    assert "the record of member 'm2' has no assignment that can be read" in done.stderr


def test_a_topic_that_no_listing_names_is_not_guessed(tmp_path):
    script = {"id": "x", "events": [{"event": "restart", "member": "m1"}]}
    done = run_stuck(tmp_path, stuck(), script, counts=())
    assert done.exit_code == 2
    assert "no topic listing names 'a', which members subscribe to" in done.stderr
    (tmp_path / "again").mkdir()
    told = run_stuck(tmp_path / "again", stuck(), {**script, "topics": {"a": 4}}, counts=())
    assert told.exit_code == 0, told.output


def test_what_the_script_says_of_topics_counts(simulated):
    done = simulated({"id": "x", "topics": {"other": 3}, "events": [WAIT]}, "--summary", "--json")
    assert json.loads(done.stdout)["comparison"]["scripts"][0]["id"] == "x"
    table = simulated({"id": "x", "events": [WAIT]}, "--compare", "range,cooperative-sticky,consumer")
    assert table.exit_code == 0
    assert "cooperative-sticky" in table.stdout


def test_what_is_no_script_is_an_error_of_its_line(simulated):
    assert simulated([1]).exit_code == 3
    assert json.loads(simulated({"events": 3}).stdout)["error"].startswith("BAD_SCRIPT: events is 3")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("simulate", "--cluster", "dev"), "--cluster and --ledger go with --from-ledger"),
        (("simulate", "--ledger", "x"), "--cluster and --ledger go with --from-ledger"),
        (("simulate", "--from-ledger", "x", "--group", "y"), "No such option: --group"),
    ],
)
def test_options_that_do_not_go_together(words, complaint):
    done = CliRunner().invoke(main, [*words])
    assert (done.exit_code, complaint in done.output) == (2, True)


def test_a_group_that_is_not_there_is_named(simulated):
    done = simulated({"id": "x", "events": []}, group="java-rnage")
    assert done.exit_code == 2
    assert "did you mean java-range" in done.stderr
