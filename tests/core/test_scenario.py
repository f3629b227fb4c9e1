"""Scenarios in, results out: one line each, whatever the line."""

from __future__ import annotations

import base64
import json
import struct

import pytest

from groupledger.core.scenarios.solving import solve, solve_lines

GOOD = {
    "id": "good",
    "assignor": "range",
    "topics": {"orders": 3},
    "members": [{"id": "a", "topics": ["orders"]}, {"id": "b", "topics": ["orders"]}],
}


def test_a_line_gives_a_line():
    answers = [json.loads(line) for line in solve_lines([json.dumps(GOOD), "{half", "[]", json.dumps(GOOD)])]
    assert [answer["id"] for answer in answers] == ["good", None, None, "good"]
    assert answers[0]["assignment"] == {"a": [["orders", 0], ["orders", 1]], "b": [["orders", 2]]}
    assert answers[0] == answers[3]
    assert [answer.get("line") for answer in answers] == [None, 2, 3, None]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"assignor": "weighted"}, ("weighted", "cooperative-sticky")),
        ({"topics": {"orders": -1}}, ("topics.orders", "-1")),
        ({"members": [GOOD["members"][0]] * 2}, ("'a'", "twice")),
        ({"members": [{"id": "a"}]}, ("members.0.topics", "list")),
        ({"transfering": True}, ("a key is 'transfering'", "transferring")),
        (
            {"assignor": "cooperative-sticky", "members": [{"id": "a", "topics": [], "ownd": []}]},
            ("a key of members.0 is 'ownd'", "owned"),
        ),
        ({"transferring": "no"}, ("transferring is 'no'", "true or false")),
        ({"assignor": "server-range", "topics": {"t": {"partition": 1}}}, ("a key of topics.t is 'partition'",)),
        ({"assignor": "server-uniform", "members": [{"owned": []}]}, ("a key of members.0 is 'owned'", "assigned")),
        ({"assignor": "server-sticky"}, ("a key is 'topics'", "subtopologies")),
    ],
)
def test_a_bad_scenario_says_what_and_where(change, words):
    (answer,) = (json.loads(line) for line in solve_lines([json.dumps(GOOD | change)]))
    assert answer["line"] == 1
    for word in words:
        assert word in answer["error"]


def sticky(user_data, generation=-1):
    """Two members; the second one's claim is all in its user data."""
    members = [{"id": "a", "topics": ["orders"]}, {"id": "b", "topics": ["orders"], "generation": generation}]
    members[1]["user_data"] = base64.b64encode(user_data).decode()
    return GOOD | {"assignor": "sticky", "members": members}


CLAIM = struct.pack(">ih6sii", 1, 6, b"orders", 1, 0)


@pytest.mark.parametrize(
    ("user_data", "mine"),
    [
        (CLAIM + struct.pack(">i", 4), [["orders", 0], ["orders", 2]]),  # v1: a generation
        (CLAIM, [["orders", 0], ["orders", 2]]),  # v0: none
        (CLAIM[:-1], [["orders", 1]]),  # cut short: claims nothing, as Kafka reads it
        (b"", [["orders", 1]]),
        (struct.pack(">i", -1), [["orders", 1]]),
        (struct.pack(">ih6si", 1, 6, b"orders", -1), [["orders", 1]]),
    ],
)
def test_sticky_claims_are_in_the_user_data(user_data, mine):
    assert solve(sticky(user_data))["assignment"]["b"] == mine


def test_kafkas_failures_are_results():
    assert solve(GOOD | {"assignor": "sticky", "members": []}) == {
        "id": "good",
        "error": "ArithmeticException: / by zero",
    }
