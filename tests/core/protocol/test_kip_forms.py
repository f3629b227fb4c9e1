"""Where the KIPs' texts and Kafka's code differ: form `kip` follows the text, form `as-kafka` the code."""

from __future__ import annotations

import json

import pytest

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Memory, Seat, Subscription
from groupledger.core.protocol.leader import Question, plan
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.rebalance.step import Form
from groupledger.core.scenarios.solving import NO_MEMBERS, solve, solve_lines
from tests.core.protocol.played import calls_of, owners_of, t

V0, V1, V2 = ByteCode


def asked(assignor, form, topics, **subscriptions):
    return plan(Question(assignor, tuple(Seat(*each) for each in subscriptions.items()), topics, form))


@pytest.mark.parametrize(("form", "settles"), [(Form.KIP, True), (Form.AS_KAFKA, False)])
def test_a_member_without_topics_gets_nothing_by_the_text(form, settles):
    """A pattern that matches nothing: Kafka's test for equal subscriptions passes over it where it comes first."""
    events = [
        e.Join("a", (), ("cooperative-sticky",), topic_regex="x-.*"),
        e.Join("b", ("t",), ("cooperative-sticky",)),
    ]
    last = simulate(Script({"t": 2}, events, form))[-1]
    assert last.stable is settles
    assert (last.cycle is None) is settles
    if settles:
        assert len(last.rounds) == 1
        assert owners_of(last) == {"b": ["t-0", "t-1"]}
        for name in "ab":
            assert [call.split()[0] for call in calls_of(last, name, 1)][-2:] == [
                "onAssignment",
                "onPartitionsAssigned",
            ]


@pytest.mark.parametrize("form", list(Form))
def test_a_pattern_that_matches_nothing_any_more_does_not_stop_the_group_by_the_text(form):
    events = [
        e.Join("a", (), ("cooperative-sticky",), topic_regex="x-.*"),
        e.Join("b", ("t",), ("cooperative-sticky",)),
        e.DeleteTopic("x-1"),
    ]
    last = simulate(Script({"t": 2, "x-1": 1}, events, form))[-1]
    assert last.stable is (form is Form.KIP)


@pytest.mark.parametrize("assignor", sorted({"sticky", "cooperative-sticky"}))
def test_only_kafkas_sticky_assignors_give_to_members_without_topics(assignor):
    members = [{"id": "a", "topics": []}, {"id": "b", "topics": ["t"]}]
    scenario = {"id": "g", "assignor": assignor, "topics": {"t": 2}, "members": members}
    assert solve(scenario)["assignment"]["a"] == [["t", 0]]
    assert solve(scenario, mode="safe")["assignment"] == {"a": [], "b": [["t", 0], ["t", 1]]}
    for other in sorted(ASSIGNORS.keys() - {"sticky", "cooperative-sticky", "constrained-cooperative-sticky"}):
        assert solve(scenario | {"assignor": other})["assignment"]["a"] == []


def test_members_without_topics_alone_get_nothing():
    scenario = {"id": "g", "assignor": "sticky", "topics": {"t": 2}, "members": [{"id": "a", "topics": []}]}
    assert solve(scenario, mode="safe")["assignment"] == {"a": []}


@pytest.mark.parametrize("form", list(Form))
def test_a_stale_claimant_gets_nothing_before_the_owner_revoked_it(form):
    """m7 says it owns t-1, of generation 4; m0 owns it since. The target gives it to m7 all the same."""
    m0 = Subscription(V2, ("t",), t(0, 1), 5, Memory())
    m7 = Subscription(V2, ("t",), t(1), 4, Memory())
    found = asked("cooperative-sticky", form, {"t": 2}, m0=m0, m7=m7)
    assert found.target == {"m0": t(0), "m7": t(1)}
    assert found.assigned == {"m0": t(0), "m7": ()}


def test_a_claimant_of_the_newest_generation_keeps_its_partition():
    m0 = Subscription(V2, ("t",), t(0), 5, Memory())
    m7 = Subscription(V2, ("t",), t(0), 4, Memory())
    assert asked("cooperative-sticky", Form.KIP, {"t": 1}, m0=m0, m7=m7).assigned == {"m0": t(0), "m7": ()}


@pytest.mark.parametrize(("form", "owner"), [(Form.KIP, "m2"), (Form.AS_KAFKA, "m4")])
def test_user_data_date_a_claim_of_version_1_by_the_text(form, owner):
    """Kafka dates the rival's claim by its subscription alone, which in version 1 has no generation."""
    m2 = Subscription(V1, ("t0",), t(0, topic="t0"), None, Memory((), 5))
    m4 = Subscription(V2, ("t0",), t(1, 0, topic="t0"), 3, Memory())
    assert t(0, topic="t0")[0] in asked("cooperative-sticky", form, {"t0": 2}, m2=m2, m4=m4).target[owner]


@pytest.mark.parametrize("version", [V0, V1])
@pytest.mark.parametrize(("form", "owner"), [(Form.KIP, "m2"), (Form.AS_KAFKA, "m4")])
def test_user_data_date_what_sticky_remembers_by_the_text(form, owner, version):
    m2 = Subscription(version, ("t0",), (), None, Memory(t(0, topic="t0"), 5))
    m4 = Subscription(version, ("t0",), (), None, Memory(t(1, 0, topic="t0"), 3))
    assert t(0, topic="t0")[0] in asked("sticky", form, {"t0": 2}, m2=m2, m4=m4).target[owner]


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky", "roundrobin"])
def test_solve_says_that_there_are_no_members(assignor):
    line = json.dumps({"id": "n", "assignor": assignor, "topics": {"t": 1}, "members": []})
    (answer,) = solve_lines([line])
    assert json.loads(answer) == {"id": "n", "error": NO_MEMBERS}
    assert "no members" in NO_MEMBERS
