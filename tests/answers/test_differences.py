"""Two states of a group, and two results for one: who gained and lost what, and what is no answer."""

import json

import pytest
from click.testing import CliRunner

from groupledger.answers.explanation import difference, rebalance, scenario_difference
from groupledger.answers.reader import LedgerReader
from groupledger.cli import main
from groupledger.core.faults import Fault
from groupledger.core.moments import point
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import write
from tests.answers.rows import at, wire


def moving(group, kind, **of_first):
    """A group in which m is to give a:2 to n, whose first state has more in its row of m; the second hands it over."""
    history = History(group, kind=kind)
    history.state(1, "m a:0,1,2")
    history.state(2, "m a:0,1 | n", assignor="cooperative-sticky" if kind == "classic" else "uniform")
    history.rows["member_snapshots"][1] |= of_first
    history.state(3, "m a:0,1 | n a:2")
    return history


def results(offset, scenario, **targets):
    key = {"cluster_id": "dev", "group_id": "pay", "snapshot_id": f"log/dev/pay/{offset}", "scenario": scenario}
    told = {"round": 1, "moves": 1, "verdict": "exact", "assignor": scenario, "protocol": "EAGER", "outcome": "x"}
    members = [
        key | {"round": 1, "member_order": order, "member_id": name, "target": wire(held)}
        for order, (name, held) in enumerate(targets.items())
    ]
    return [key | told], members


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """`pay`: n joins, m/i restarts and later leaves; then the group is deleted and begins anew."""
    history = History("pay")
    history.state(1, "m-1/i a:0,1,2")
    history.state(2, "m-1/i a:0,1 | n a:2")
    history.state(3, "m-2/i a:0,1 | n a:2")
    history.state(4, "n a:0,1", complete=False)
    history.state(5, None, generation=5, snapshot_kind="deleted", complete=True)
    history.state(6, "o a:0", incarnation=2, generation=1, assignor="sticky")
    for row in history.rows["group_snapshots"]:
        row.setdefault("complete", True)
    baseline, base_members = results(2, "baseline", **{"m-1": "a:0,1", "n": "a:2"})
    other, other_members = results(2, "other", **{"m-1": "a:0", "n": "a:1,2"})
    elsewhere, _ = results(3, "elsewhere")
    rows = rows_of(history, topic_snapshots=[listed("a", 3)])
    rows |= {"rebalances": baseline + other + elsewhere, "assignments": base_members + other_members}
    return write(tmp_path_factory.mktemp("ledger"), **rows)


@pytest.fixture(scope="module")
def ledger(place):
    return LedgerReader(place)


def gains(found):
    return {
        each.member_id: ("+" * len(each.added) + "-" * len(each.revoked) + ("" if each.stays else " gone"))
        for each in found.members
    }


@pytest.mark.parametrize(
    ("begin", "end", "states", "changes", "members", "moved"),
    [
        ("2026-11-21T14:01Z", "2", (1, 2), ["member-joined"], {"m-1": "-", "n": "+"}, 1),
        ("2026-11-21T14:01Z", "3", (1, 3), ["member-restarted", "member-joined"], {"m-2": "-", "n": "+"}, 1),
        ("2", "3", (2, 3), ["member-restarted"], {"m-2": "", "n": ""}, 0),
        ("2", "2", (2, 2), [], {"m-1": "", "n": ""}, 0),
        ("2", "4", (2, 4), ["member-gone"], {"n": "++-", "m-1": "-- gone"}, 3),
        ("3", "5", (3, 5), ["group-deleted"], {"m-2": "-- gone", "n": "- gone"}, 3),
        ("3", None, (3, 6), ["member-joined", "member-gone", "member-gone", "assignor-changed"],
         {"o": "+", "m-2": "-- gone", "n": "- gone"}, 3),
        ("2m", "2026-11-21T14:05:30Z", (4, 5), ["group-deleted"], {"n": "-- gone"}, 2),
    ],
)  # fmt: skip
def test_what_differs_is_told(ledger, begin, end, states, changes, members, moved):
    found = difference(ledger, "pay", point(begin)[0], None if end is None else point(end)[0])
    assert (found.before.snapshot_id, found.after.snapshot_id) == tuple(f"log/dev/pay/{each}" for each in states)
    assert [each.kind.value for each in found.changes] == changes
    assert gains(found) == members
    assert len(found.moved) == moved
    assert found.records == states[1] - states[0]


def test_each_side_is_told(ledger):
    before = difference(ledger, "pay", 4).before
    assert (before.members, before.partitions, before.most, before.least) == (1, 2, 2, 2)
    assert before.unowned == (("a", 2),)
    after = difference(ledger, "pay", 4, 5).after
    assert (after.members, after.most, after.least, after.unowned) == (0, None, None, ())


@pytest.mark.parametrize(
    ("begin", "end", "said"),
    [
        (2, 2, ["both are the same record: nothing was recorded in between"]),
        (3, None, ["the group was deleted, or begun anew, in between"]),
        (3, 4, ["log/dev/pay/4 is incomplete: the log was cut there"]),
    ],
)
def test_what_limits_the_answer_is_said(ledger, begin, end, said):
    assert list(difference(ledger, "pay", begin, end).notes) == said


@pytest.mark.parametrize(
    ("begin", "end", "code", "said"),
    [
        (1, 3, "BAD_PERIOD", "generation 3 (2026-11-21T14:03:00.000Z) comes before generation 1 (2026-11-21T14:06"),
        (3, 2, "BAD_PERIOD", "generation 2 (2026-11-21T14:02:00.000Z) comes before generation 3"),
        (at(0), None, "NOT_KNOWN_YET", "at 2026-11-21T14:00:00.000Z the ledger knows nothing of pay yet: its record"),
        (9, None, "UNKNOWN_GENERATION", "group 'pay' has no generation 9"),
    ],
)
def test_what_cannot_be_compared_is_said(ledger, begin, end, code, said):
    with pytest.raises(Fault) as raised:
        difference(ledger, "pay", begin, end)
    assert (raised.value.code, raised.value.message[: len(said)]) == (code, said)


def test_two_results_for_one_state_are_compared(ledger):
    found = scenario_difference(ledger, "pay", ("baseline", "other"), 2)
    assert gains(found) == {"m-1": "-", "n": "+"}
    assert [(each.partition, each.from_member_id, each.to_member_id) for each in found.moved] == [(1, "m-1", "n")]
    assert [each.group_instance_id for each in found.members] == ["i", None]
    assert (found.before.assignor, found.after.assignor) == ("baseline", "other")


def test_a_scenario_without_a_result_is_refused(ledger):
    with pytest.raises(Fault, match="no scenario 'bsaeline' in this ledger; did you mean baseline\\?"):
        scenario_difference(ledger, "pay", ("bsaeline", "other"), 2)
    with pytest.raises(Fault, match="has no result of the scenario 'elsewhere'; it has: baseline, other"):
        scenario_difference(ledger, "pay", ("baseline", "elsewhere"), 2)


@pytest.fixture(scope="module")
def on_the_way(tmp_path_factory):
    histories = (
        moving("epochs", "consumer", pending_revocation=wire("a:2")),
        moving("rounds", "classic", claimed=wire("a:0,1,2")),
    )
    rows = rows_of(*histories, topic_snapshots=[listed("a", 3)])
    for row in rows["group_snapshots"]:
        row["complete"] = True
    return LedgerReader(write(tmp_path_factory.mktemp("ledger"), **rows))


def test_a_partition_that_its_member_is_still_to_give_up_is_not_lost(on_the_way):
    found = difference(on_the_way, "epochs", 1, 2)
    assert (gains(found), found.moved) == ({"m": "", "n": ""}, ())
    assert (found.after.partitions, found.after.most, found.after.unowned) == (3, 3, ())
    found = difference(on_the_way, "epochs", 2, 3)
    assert (gains(found), len(found.moved)) == ({"m": "-", "n": "+"}, 1)
    assert rebalance(on_the_way, "epochs", generation=2).members == difference(on_the_way, "epochs", 1, 2).members


def test_what_a_cooperative_round_withholds_is_said(on_the_way):
    found = difference(on_the_way, "rounds", 1, 2)
    assert (gains(found), found.after.unowned) == ({"m": "-", "n": ""}, (("a", 2),))
    assert found.notes == ("generation 2 withholds a:2, which a member had to give up first: the next hands it over",)
    assert difference(on_the_way, "rounds", 1, 3).notes == ()


def run(place, *words, columns="80"):
    return CliRunner(env={"COLUMNS": columns}).invoke(main, ["diff", *words, "--ledger", place])


def test_the_command_tells_it_within_eighty_columns(place):
    ran = run(place, "pay", "--from", "2", "--to", "4")
    assert ran.exit_code == 0, ran.stderr
    lines = [" ".join(line.split()) for line in ran.stdout.splitlines()]
    assert "members 2 1" in lines
    assert "m-1 gone 2 0 - a:0-1 i" in lines
    assert "n - 1 2 a:0-1 a:2 -" in lines
    assert all(len(line) <= 80 for line in ran.stdout.splitlines()[:-1] if not line.startswith("- "))


def test_the_command_gives_json(place):
    told = json.loads(run(place, "pay", "--from", "2", "--to", "3", "--json").stdout)
    assert (told["status"], told["command"]) == ("done", "diff")
    assert told["difference"]["after"]["generation"] == 3
    told = json.loads(run(place, "pay", "--scenarios", "baseline,other", "--generation", "2", "--json").stdout)
    assert [each["member_id"] for each in told["scenario_difference"]["members"]] == ["m-1", "n"]


def test_two_scenarios_are_told(place):
    ran = run(place, "pay", "--scenarios", "baseline,other", "--generation", "2")
    assert ran.exit_code == 0, ran.stderr
    assert [line.split() for line in ran.stdout.splitlines() if line.startswith("assignor")] == [
        ["assignor", "baseline", "other"]
    ]
    assert "partitions: 1 with another owner at last" in ran.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "expected --from 5 [--to 6], or --scenarios a,b"),
        (["--from", "1", "--scenarios", "a,b"], "expected --from 5 [--to 6], or --scenarios a,b"),
        (["--from", "1", "--generation", "2"], "expected --from 5 [--to 6], or --scenarios a,b"),
        (["--scenarios", "a"], "--scenarios takes two names, with a comma between them; got 'a'"),
        (["--from", "soon"], "or how long before now: 90s, 15m, 24h, 7d, 2w, or a generation: 12"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused_before_the_ledger_is_read(words, said):
    ran = run("nowhere", "pay", *words)
    assert ran.exit_code == 2
    assert said in ran.stderr
