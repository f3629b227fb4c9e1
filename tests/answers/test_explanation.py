"""Why a group rebalanced: each cause by what differs, and what came of it, from rows written down here."""

import json
from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from groupledger.answers import causes as compared
from groupledger.answers.causes import CauseKind, Moved, Side, moved
from groupledger.answers.explanation import explain
from groupledger.answers.reader import LedgerReader
from groupledger.cli import main
from groupledger.core.faults import Fault
from tests.answers.ledgers import write
from tests.answers.rows import at, wire


def member(name, topics=("a",), instance=None, rack=None, recorded="", **more):
    row = {"member_id": name, "group_instance_id": instance, "client_id": None, "host": None, "rack_id": rack}
    return row | {"topics": list(topics), "recorded": wire(recorded) if recorded else None} | more


def causes(before, after):
    """The causes without a listing of topics, and without what members had earlier."""
    return compared.causes(before, after, {}, ())


def side(*members, assignor="range", follow_up=False):
    return Side("log/dev/0/1", 1, at(1), assignor, frozenset({"a"}), follow_up, members)


CASES: dict[str, tuple[Any, ...]] = {
    "joined": (side(member("m1")), side(member("m1"), member("m2")), [("member-joined", "m2")]),
    "gone": (side(member("m1"), member("m2")), side(member("m1")), [("member-gone", "m2")]),
    "one for another": (
        *(
            side(member("m1")),
            side(member("m2")),
        ),
        [("member-joined", "m2"), ("member-gone", "m1")],
    ),
    "static came back": (
        *(
            side(member("s-1", instance="i")),
            side(member("s-2", instance="i")),
        ),
        [("member-restarted", "s-2")],
    ),
    "static came back elsewhere": (
        *(
            side(member("s-1", instance="i")),
            side(member("s-2", ("b",), instance="i", rack="r")),
        ),
        [("member-restarted", "s-2"), ("subscription-changed", "s-2"), ("rack-changed", "s-2")],
    ),
    "taken over by another client": (
        *(
            side(member("s-1", instance="i", client_id="x", host="/1")),
            side(member("s-2", instance="i", client_id="y", host="/2")),
        ),
        [("member-replaced", "s-2")],
    ),
    "by name": (
        side(member("z"), member("y")),
        side(member("b"), member("a")),
        [
            *(("member-joined", "a"), ("member-joined", "b"), ("member-gone", "y"), ("member-gone", "z")),
        ],
    ),
    "another instance": (
        *(
            side(member("s-1", instance="i")),
            side(member("s-2", instance="j")),
        ),
        [("member-joined", "s-2"), ("member-gone", "s-1")],
    ),
    "subscription": (side(member("m")), side(member("m", ("a", "b"))), [("subscription-changed", "m")]),
    "its order alone": (side(member("m", ("a", "b"))), side(member("m", ("b", "a"))), [("not-shown", None)]),
    "rack": (side(member("m")), side(member("m", rack="r1")), [("rack-changed", "m")]),
    "assignor": (side(member("m")), side(member("m"), assignor="sticky"), [("assignor-changed", "sticky")]),
    "emptied": (side(member("m")), side(assignor=None), [("group-emptied", None)]),
    "from empty": (side(assignor=None), side(member("m")), [("member-joined", "m")]),
    "follow-up": (side(member("m"), follow_up=True), side(member("m")), [("follow-up", None)]),
    "a follow-up that somebody joined": (
        *(
            side(member("m"), follow_up=True),
            side(member("m"), member("n")),
        ),
        [("member-joined", "n")],
    ),
    "two with one instance id": (
        *(
            side(member("s-1", instance="i")),
            side(member("s-1", instance="i"), member("s-2", instance="i")),
        ),
        [("member-joined", "s-2")],
    ),
    "nothing": (side(member("m")), side(member("m")), [("not-shown", None)]),
    "the first": (None, side(member("m")), [("group-born", None)]),
}


@pytest.mark.parametrize("case", CASES)
def test_a_cause_is_what_differs(case):
    before, after, expected = CASES[case]
    found = list(causes(before, after))
    assert [(cause.kind.value, cause.about) for cause in found] == expected
    assert all(cause.what for cause in found)


@pytest.mark.parametrize(
    ("was", "now", "said"),
    [
        (None, "uniform", []),
        ("uniform", None, []),
        (None, "range", ["the assignor changed from uniform to range"]),
    ],
)
def test_an_assignor_that_is_named_and_is_the_servers_default_is_no_other(was, now, said):
    sides = [replace(side(member("m"), assignor=name), group_type="consumer") for name in (was, now)]
    assert [each.what for each in causes(*sides) if each.kind == "assignor-changed"] == said


def test_what_a_static_member_that_came_back_does_on_another_host_is_said():
    was, now = (member(f"s-{n}", instance="i", client_id="x", host=f"/10.0.0.{n}") for n in (1, 2))
    [cause] = causes(side(was), side(now))
    assert cause.what == (
        "the static member i has a new member id, s-2 on another host (/10.0.0.2, before /10.0.0.1), before s-1: "
        "it restarted, or another process took the instance id over (the log does not say which)"
    )


@pytest.mark.parametrize(("version", "taken"), [(None, False), (3, True)])
def test_only_a_member_of_the_classic_protocol_may_have_taken_an_instance_id_over(version, taken):
    """The coordinator of a KIP-848 group refuses others an instance id (UNRELEASED_INSTANCE_ID) while it is in use."""
    was, now = (member(f"s-{n}", instance="i", client_id="x", subscription_version=version) for n in (1, 2))
    [cause] = causes(*(replace(side(each), group_type="consumer") for each in (was, now)))
    assert cause.kind is CauseKind.MEMBER_RESTARTED
    assert ("another process took the instance id over" in cause.what) is taken
    assert taken or cause.what == "the static member i came back as s-2, before s-1"


def test_a_takeover_by_another_client_names_both():
    was, now = (member(f"s-{n}", instance="i", client_id=f"client-{n}", host="/10.0.0.1") for n in (1, 2))
    [cause] = causes(side(was), side(now))
    assert cause.what == (
        "the instance id i was taken over by another client: s-2 (static, i, client client-2, host /10.0.0.1), "
        "before s-1 (static, i, client client-1, host /10.0.0.1)"
    )


@pytest.mark.parametrize(("names", "told"), [("m", "the last member went"), ("mn", "the last 2 members went")])
def test_the_last_members_are_counted_unless_there_is_one(names, told):
    [cause] = causes(side(*map(member, names)), side(assignor=None))
    assert cause.what == told


def test_what_moved_knows_a_static_member_that_came_back():
    before = [member("s-1", instance="i", recorded="a:0,1"), member("m", recorded="a:2")]
    after = [member("s-2", instance="i", recorded="a:0"), member("n", recorded="a:1,3")]
    assert list(moved(before, after)) == [Moved("a", 1, "s-2", "n"), Moved("a", 2, "m", None), Moved("a", 3, None, "n")]
    assert list(moved(before, before)) == []


KEY = {"cluster_id": "dev", "group_id": "pay"}


def snapshot(offset, generation, **more):
    said = {"offset": offset, "snapshot_id": f"log/dev/0/{offset}", "log_partition": 0, "observed_at": at(offset)}
    said |= {"group_type": "classic", "snapshot_kind": "generation", "generation": generation, "incarnation": 1}
    return KEY | said | {"assignor": "cooperative-sticky", "state": "Stable", "shared_topics": ["a"]} | more


def changed(offset, partition, before, after):
    said = {"offset": offset, "snapshot_id": f"log/dev/0/{offset}", "log_partition": 0, "at": at(offset), "topic": "a"}
    return KEY | said | {"partition": partition, "from_member_id": before, "to_member_id": after}


def of_snapshot(offset, order, name, recorded):
    return KEY | member(name, recorded=recorded) | {
        "snapshot_id": f"log/dev/0/{offset}", "offset": offset, "member_order": order, "topics": None,
    }  # fmt: skip


def result(offset, *, follow_up, **more):
    said = {"snapshot_id": f"log/dev/0/{offset}", "scenario": "baseline", "round": 1, "follow_up": follow_up} | more
    return KEY | said | {"moves": 2, "least_moves": 1, "verdict": "exact", "assignor": "x", "protocol": "COOPERATIVE"}


SCHEMA_5 = {
    "least_moves_certainty": "lower-bound",
    "fewest_rounds": 2,
    "attribution": "exact",
    "attributed_to": ["kafka-python-sticky", "aiokafka-sticky"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """One member has all partitions; another joins, which takes two generations; then one partition is given up."""
    return write(
        tmp_path_factory.mktemp("ledger"),
        group_snapshots=[
            snapshot(1, 1, members=1),
            snapshot(3, 2, members=2, previous_snapshot_id="log/dev/0/1"),
            snapshot(5, 3, members=2, previous_snapshot_id="log/dev/0/3"),
            snapshot(7, 4, members=2, previous_snapshot_id="log/dev/0/5"),
        ],
        member_snapshots=[
            of_snapshot(1, 0, "m", "a:0,1,2"),
            *(of_snapshot(3, 0, "m", "a:0,1"), of_snapshot(3, 1, "n", "")),
            *(of_snapshot(5, 0, "m", "a:0,1"), of_snapshot(5, 1, "n", "a:2")),
            *(of_snapshot(7, 0, "m", "a:0"), of_snapshot(7, 1, "n", "a:2")),
        ],
        rebalances=[
            result(1, follow_up=False),
            result(3, follow_up=True, **SCHEMA_5),
            result(5, follow_up=False, **SCHEMA_5),
        ],
        ownership_changes=[
            *(changed(1, number, None, "m") for number in (0, 1, 2)),
            changed(3, 2, "m", None),
            changed(5, 2, None, "n"),
            changed(7, 1, "m", None),
        ],
        topic_snapshots=[
            {"cluster_id": "dev", "topic": "a", "topic_id": "A", "partition_count": 3, "valid_from": at(0)}
        ],
    )


def ask(place, *arguments):
    ran = CliRunner().invoke(main, ["explain", "pay", *arguments, "--ledger", place])
    assert ran.exit_code == 0, ran.output
    return ran.stdout


def test_a_cooperative_join_takes_two_rounds_and_leaves_a_partition_with_nobody(place):
    told = json.loads(ask(place, "--generation", "2", "--json"))["explanation"]
    assert [cause["kind"] for cause in told["causes"]] == ["member-joined"]
    assert (told["rounds"], told["settled"]) == (2, 3)
    assert told["moved"] == [{"topic": "a", "partition": 2, "from_member_id": "m", "to_member_id": None}]
    assert told["unowned"] == [
        {"topic": "a", "partition": 2, "since": "2026-11-21T14:03:00.000Z", "until": "2026-11-21T14:05:00.000Z"}
    ]


def test_an_explanation_asks_few_queries(place):
    """To plan one takes 10 to 40 ms of the processor, however small the ledger is."""

    class Counting(LedgerReader):
        asked = 0

        def query(self, sql, /, **values):
            self.asked += 1
            return super().query(sql, **values)

    # Causes rest on what members had earlier and on leader epochs, attributions on what the leader wrote.
    for generation, most in ((1, 10), (2, 13), (4, 13)):
        reader = Counting(place)
        explain(reader, "pay", None, generation)
        assert reader.asked <= most


def test_the_round_that_follows_says_so(place):
    told = json.loads(ask(place, "--generation", "3", "--json"))["explanation"]
    assert [cause["kind"] for cause in told["causes"]] == ["follow-up"]
    assert told["unowned"][0]["until"] == "2026-11-21T14:05:00.000Z"
    assert told["before"]["generation"] == 2


def test_for_a_person(place):
    *lines, known = [" ".join(line.split()) for line in ask(place).splitlines() if line]
    assert known.startswith("known up to 2026-11-21T14:07:00.000Z")
    assert lines == [
        "pay, generation 4 (cooperative-sticky, cluster dev)",
        "2026-11-21T14:07:00.000Z Stable [log/dev/0/7]",
        "before: generation 3, 2 min 0 s earlier [log/dev/0/5]",
        "cause",
        "- no member, subscription, topic or assignor differs: a member joined again "
        "(the log does not say which, or why)",
        "changed hands",
        "from to partitions which",
        "m (nobody) 1 a:1",
        "nobody had",
        "since for partitions which",
        "2026-11-21T14:07:00.000Z to the end 1 a:1",
    ]


def test_for_a_person_a_computed_rebalance_says_whose_algorithm_it_was_and_how_little_would_have_done(place):
    lines = ask(place, "--generation", "2").splitlines()
    assert "moves between members that stay: 2, least: 1 or more; verdict: exact" in lines
    assert "whose algorithm: exact as kafka-python-sticky or aiokafka-sticky" in lines
    assert lines[-2] == "settled in generation 3: 2 generations, fewest: 2"


def test_for_a_person_an_invalid_record_says_which_rule_it_breaks(tmp_path):
    evidence = "a 2: assigned to nobody, though others of the topic were assigned"
    said = {"snapshot_id": "log/dev/0/1", "offset": 1, "severity": "warning", "log_partition": 0}
    findings = [KEY | said | {"code": code, "evidence": evidence} for code in ("LEFT_OUT", "CLAIM_DIFFERS")]
    results = [result(1, follow_up=False) | {"verdict": "invalid"}]
    place = write(tmp_path, group_snapshots=[snapshot(1, 1)], rebalances=results, violations=findings)
    lines = ask(place).splitlines()
    assert [line for line in lines if line.startswith("invalid")] == [f"invalid, LEFT_OUT: {evidence}"]


def test_of_several_scenarios_the_one_that_ran_the_recorded_assignor_is_told(written):
    what_if = {"attribution": "not-applicable: not-compared", "attributed_to": None}
    results = [result(1, follow_up=False, **SCHEMA_5, **{"scenario": "z"}), result(1, follow_up=False, **what_if)]
    told = explain(written(group_snapshots=[snapshot(1, 1)], rebalances=results), "pay").rebalance
    assert [each.scenario for each in told.results] == ["baseline", "z"]
    assert told.compared is told.results[1]
    ledger = written(group_snapshots=[snapshot(1, 1)], rebalances=results[1:])
    assert explain(ledger, "pay").rebalance.compared.scenario == "baseline"
    assert explain(written(group_snapshots=[snapshot(1, 1)]), "pay").rebalance.compared is None


def test_for_a_person_a_row_of_an_older_schema_version_says_that_it_does_not_know(place):
    lines = ask(place, "--generation", "1").splitlines()
    assert "moves between members that stay: 2, least: 1; verdict: exact" in lines
    assert (
        "whose algorithm: not known: an older groupledger computed this; `groupledger assign` computes it again"
        in lines
    )
    assert lines[-2] == "settled in generation 1: 1 generation"


def test_the_first_state_has_nothing_before_it(place):
    told = json.loads(ask(place, "--generation", "1", "--json"))["explanation"]
    assert (told["before"], told["causes"][0]["kind"], len(told["moved"])) == (None, "group-born", 3)


def test_what_is_not_there_is_said(written):
    ledger = written(group_snapshots=[snapshot(1, 1)])
    with pytest.raises(Fault, match="no generation 9 in this ledger; last known: 1"):
        explain(ledger, "pay", None, 9)
    with pytest.raises(Fault, match="no group 'pya' in this ledger; known: pay"):
        explain(ledger, "pya")
