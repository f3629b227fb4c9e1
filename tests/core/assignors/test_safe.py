"""Mode `safe`: whatever is claimed, each partition goes to exactly one subscriber, and nothing is handed over early."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.arrays.batch import NONE
from groupledger.core.assignors import Doubt, Path, Status, assign, doubts
from groupledger.core.assignors.safe import generations
from groupledger.core.assignors.server.server_group import ServerStatus
from groupledger.core.rebalance.step import Reason
from groupledger.core.scenarios.form import encode
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.groups import scenarios
from tests.examples import examples

EVERY = ("range", "roundrobin", "sticky", "cooperative-sticky")
any_scenario = st.sampled_from(EVERY).flatmap(scenarios)


def target_of(scenario):
    encoded = encode(scenario)
    answer = assign(scenario["assignor"], encoded.batch, mode="safe")
    start = answer.target.start
    return {
        member["id"]: [
            (encoded.topics[topic], int(partition))
            for topic, partition in zip(
                answer.target.topic[start[at] : start[at + 1]],
                answer.target.partition[start[at] : start[at + 1]],
                strict=True,
            )
        ]
        for at, member in enumerate(scenario["members"])
    }


@settings(max_examples=examples(100), deadline=None)
@given(any_scenario)
def test_each_partition_goes_to_exactly_one_subscriber(scenario):
    target = target_of(scenario)
    subscribed = {topic for member in scenario["members"] for topic in member["topics"]}
    expected = sorted((t, p) for t in subscribed for p in range(scenario["topics"][t]))
    assert sorted(each for owned in target.values() for each in owned) == expected
    for member in scenario["members"]:
        assert {topic for topic, _ in target[member["id"]]} <= set(member["topics"])


@settings(max_examples=examples(100), deadline=None)
@given(scenarios("cooperative-sticky"))
def test_nothing_is_given_while_another_member_claims_it(scenario):
    given_now = solve(scenario, mode="safe")["assignment"]
    for member in scenario["members"]:
        claimed = {tuple(claim) for claim in member["owned"]}
        for other in scenario["members"]:
            if other is not member:
                gained = {tuple(each) for each in given_now[other["id"]]} - {tuple(c) for c in other["owned"]}
                assert not gained & claimed


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(("sticky", "cooperative-sticky")).flatmap(scenarios))
def test_what_was_assigned_stays_when_nothing_changed(scenario):
    first = target_of(scenario)
    for member in scenario["members"]:
        member["owned"] = [list(each) for each in first[member["id"]]]
        member["generation"] = 9
    again = target_of(scenario)
    assert {m: sorted(owned) for m, owned in again.items()} == {m: sorted(owned) for m, owned in first.items()}


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(("range", "roundrobin")).flatmap(scenarios), st.randoms(use_true_random=False))
def test_the_order_of_members_changes_no_set(scenario, random):
    before = target_of(scenario)
    random.shuffle(scenario["members"])
    after = target_of(scenario)
    assert {m: sorted(owned) for m, owned in after.items()} == {m: sorted(owned) for m, owned in before.items()}


def claims(*members):
    """A cooperative group of members (generation, claims) over orders-0..2, each subscribed to it."""
    return {
        "id": "claims",
        "assignor": "cooperative-sticky",
        "topics": {"orders": 3, "clicks": 1},
        "members": [
            {"id": f"m{at}", "topics": ["orders"] if at else ["orders", "clicks"], "owned": owned, "generation": dated}
            for at, (dated, owned) in enumerate(members)
        ],
    }


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([(5, [["orders", 0]]), (5, [["orders", 1]])], [Doubt.NONE, Doubt.NONE]),
        ([(5, [["orders", 3]]), (5, [["orders", -1]])], [Doubt.NO_SUCH_PARTITION] * 2),
        ([(5, []), (5, [["clicks", 0]])], [Doubt.NOT_SUBSCRIBED]),
        ([(5, [["orders", 0], ["orders", 0]]), (5, [])], [Doubt.NONE, Doubt.REPEATED]),
        ([(4, [["orders", 0]]), (5, [["orders", 0]])], [Doubt.OLDER, Doubt.NONE]),
        ([(5, [["orders", 0]]), (5, [["orders", 0]])], [Doubt.DISPUTED] * 2),
        ([(5, [["orders", 0]]), (5, [["orders", 0]]), (4, [["orders", 0]])], [Doubt.DISPUTED] * 2 + [Doubt.OLDER]),
    ],
)
def test_a_claim_that_cannot_be_true_says_why(members, expected):
    assert doubts(encode(claims(*members)).batch, cooperative=True).tolist() == expected


@pytest.mark.parametrize("outcomes", [Doubt, Path, Reason, ServerStatus, Status])
def test_no_two_outcomes_share_a_number(outcomes):
    assert [each.name for each in outcomes] == list(outcomes.__members__)


@pytest.mark.parametrize("assignor", EVERY)
def test_a_group_without_members_has_an_empty_assignment(assignor):
    scenario = {"id": "empty", "assignor": assignor, "topics": {"orders": 3}, "members": []}
    assert solve(scenario, mode="safe")["assignment"] == {}


def test_an_eager_group_is_given_all_at_once():
    """Its members have given everything up when they join: what they say of `sticky` is what they had."""
    members = [{"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1], ["t", 2]]}, {"id": "b", "topics": ["t"]}]
    result = solve({"assignor": "sticky", "topics": {"t": 4}, "members": members}, mode="safe")
    assert result["assignment"] == {"a": [["t", 0], ["t", 1]], "b": [["t", 2], ["t", 3]]}


def test_only_cooperative_members_date_their_claims_in_the_subscription():
    """KIP-792: generation in the subscription; without one, and when eager, that of the user data."""
    batch: Any = SimpleNamespace(subscription_generation=np.array([NONE, 4]), claim_generation=np.array([7, 8]))
    assert generations(batch, cooperative=True).tolist() == [7, 4]
    assert generations(batch, cooperative=False).tolist() == [7, 8]
