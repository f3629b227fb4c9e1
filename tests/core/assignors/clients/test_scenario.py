"""Scenarios answered by the assignors of other client libraries."""

from __future__ import annotations

import json

import pytest

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.faults import Fault
from groupledger.core.scenarios.solving import solve, solve_lines


def scenario(assignor, *topics, partitions=5, **more):
    """Members a, b, .. that subscribe to these topics each."""
    members = [{"id": "abcdef"[at], "topics": list(mine)} for at, mine in enumerate(topics)]
    return {"id": "g", "assignor": assignor, "topics": {"t": partitions, "u": 2}, "members": members, **more}


def numbers(result):
    return {member: [f"{topic}{number}" for topic, number in mine] for member, mine in result["assignment"].items()}


@pytest.mark.parametrize(
    ("told", "lists"),
    [
        pytest.param(
            scenario("kafka-go-range", "t", "t"), {"a": ["t0", "t1"], "b": ["t2", "t3", "t4"]}, id="longer ones last"
        ),
        pytest.param(
            scenario("kafka-go-roundrobin", "tu", "tu", partitions=1), {"a": ["t0", "u0"], "b": ["u1"]}, id="anew"
        ),
        pytest.param(
            scenario("kafkajs-roundrobin", "t", "u", leader="b"), {"a": ["u0"], "b": ["u1"]}, id="the leader's topics"
        ),
        pytest.param(
            scenario("kafka-python-range", ["t", "t"], "t"), {"a": ["t2", "t3"], "b": ["t4"]}, id="a topic named twice"
        ),
        pytest.param(
            scenario("franz-go-range", ["t", "t"], "t"), {"a": ["t0", "t1", "t2", "t3"], "b": ["t4"]}, id="and by it"
        ),
        pytest.param(
            scenario("sarama-roundrobin", "t", "t", partitions=11),
            {"a": ["t0", "t10", "t3", "t5", "t7", "t9"], "b": ["t1", "t2", "t4", "t6", "t8"]},
            id="ten before two",
        ),
        pytest.param(scenario("aiokafka-sticky"), {}, id="nobody"),
    ],
)
def test_by_hand(told, lists):
    assert numbers(solve(told)) == lists


def test_members_without_an_assignment_are_told():
    result = solve(scenario("kafkajs-roundrobin", "t", "t", "t", partitions=1))
    assert (result["assignment"]["c"], result["absent"]) == ([], ["b", "c"])


def test_what_the_leader_fails_with_is_the_result():
    result = solve(scenario("kafka-python-roundrobin", "t", "u"))
    assert result == {"id": "g", "error": "KeyError: (None, 'a')"}


def test_several_answers_are_told():
    assert "several" not in solve(scenario("franz-go-sticky", "t", "t"))
    assert solve(scenario("franz-go-sticky", "tu", "tu", "tu"))["several"]


@pytest.mark.parametrize(
    ("told", "code", "words"),
    [
        (scenario("sarama-sticky", "t"), "NO_ANSWER", "left to chance"),
        (scenario("sarama-stick", "t"), "UNKNOWN_ASSIGNOR", "sarama-range"),
        (scenario("kafkajs-roundrobin", "t", leader="z"), "BAD_SCENARIO", "leader is 'z'"),
        (scenario("kafkajs-roundrobin", "t", leader=["a"]), "BAD_SCENARIO", "leader is"),
    ],
)
def test_what_cannot_be_answered_says_why(told, code, words):
    with pytest.raises(Fault, match=words) as raised:
        solve(told)
    assert raised.value.code == code


def test_the_error_for_an_unknown_assignor_lists_each_name_once():
    with pytest.raises(Fault) as raised:
        solve(scenario("mine", "t"))
    names = raised.value.message.partition("expected one of ")[2].split(", ")
    assert sorted(names) == sorted({*ASSIGNORS, *CLIENT_ASSIGNORS})


def test_a_line_of_solve():
    (line,) = solve_lines([json.dumps(scenario("aiokafka-roundrobin", "tu", "tu", partitions=1))])
    assert json.loads(line)["assignment"] == {"a": [["t", 0], ["u", 1]], "b": [["u", 0]]}
