"""What every assignor promises in mode `safe`, whatever members claim; `make properties` draws 10,000 groups each."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.assignors import ASSIGNORS, assign
from groupledger.core.scenarios.form import encode
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.groups import scenarios

EXAMPLES = int(os.environ.get("GROUPLEDGER_EXAMPLES", "60"))
COOPERATIVE = ("cooperative-sticky", "constrained-cooperative-sticky", "librdkafka-cooperative-sticky")
STREAM_JOIN = "sticky-stream-join"
BY_TOPIC = ("range", STREAM_JOIN)
"""Assignors that promise it of each topic, not of all partitions together."""
UNBALANCED: tuple[str, ...] = ()
"""Assignors that do not promise that members' counts differ by one at most."""
KEEPING = ("sticky", *COOPERATIVE)
ORDER_OF_MEMBERS_COUNTS = ("sticky", "cooperative-sticky")  # as in Kafka: ids that share a bucket of its map


@st.composite
def groups(draw, assignor):
    """A group for the assignor: the constrained one refuses those whose subscriptions differ."""
    scenario = draw(scenarios(assignor))
    if assignor == "constrained-cooperative-sticky":
        for member in scenario["members"]:
            member["topics"] = scenario["members"][0]["topics"]
    return scenario


def target_of(scenario):
    """{member: [(topic, partition), ..]}: where the group is to be once everything is given back."""
    encoded = encode(scenario)
    answer = assign(scenario["assignor"], encoded.batch, mode="safe")
    topics = [encoded.topics[topic] for topic in answer.target.topic.tolist()]
    flat = list(zip(topics, answer.target.partition.tolist(), strict=True))
    start = answer.target.start.tolist()
    return {m["id"]: flat[start[at] : start[at + 1]] for at, m in enumerate(scenario["members"])}


def rejoined(scenario, given_now, generation):
    """The same group, in which each member claims what it was given."""
    members = [
        {**member, "owned": [list(each) for each in given_now[member["id"]]], "generation": generation}
        for member in scenario["members"]
    ]
    return {**scenario, "members": members}


def sets(lists):
    return {member: sorted(map(tuple, each)) for member, each in lists.items()}


def require_each_partition_once(scenario, target, left_out):
    subscribed = {topic for member in scenario["members"] for topic in member["topics"]}
    wanted = sorted((t, p) for t in subscribed for p in range(scenario["topics"][t]))
    assert sorted([*(each for owned in target.values() for each in owned), *left_out]) == wanted
    for member in scenario["members"]:
        assert {topic for topic, _ in target[member["id"]]} <= set(member["topics"])


def require_balance(scenario, target):
    """Counts differ by one at most: of each topic for range, of all for the others, where subscriptions are equal."""
    if len(subscriptions(scenario)) > 1:
        return
    topics = scenario["topics"] if scenario["assignor"] in BY_TOPIC else (None,)
    for topic in topics:
        sizes = [sum(topic in (None, each) for each, _ in owned) for owned in target.values()]
        assert max(sizes) - min(sizes) <= 1


def require_no_early_hand_over(scenario, given_now):
    for member in scenario["members"]:
        claimed = {tuple(claim) for claim in member["owned"]}
        for other in scenario["members"]:
            if other is not member:
                gained = {tuple(each) for each in given_now[other["id"]]} - {tuple(each) for each in other["owned"]}
                assert not gained & claimed


def subscriptions(scenario):
    return {tuple(sorted(set(member["topics"]))) for member in scenario["members"]}


def next_round(scenario, given_now, generation):
    """The group rejoins with what it was given: what it gets now, and whether that is its whole target."""
    again = rejoined(scenario, given_now, generation)
    given_then = solve(again, mode="safe")["assignment"]
    return given_then, sets(given_then) == sets(target_of(again))


def require_it_settles(scenario, target, given_now):
    """All is given by the second round, and the next changes nothing. Where subscriptions differ, the target stays."""
    second, done = next_round(scenario, given_now, 8)
    assert done
    if len(subscriptions(scenario)) > 1:
        assert sets(second) == sets(target)
    assert sets(next_round(scenario, second, 9)[0]) == sets(second)


def require_order_is_no_matter(scenario, random):
    """Other orders of rows: topics always; members where Kafka's own answer does not hang on theirs."""
    names = list(scenario["topics"])
    random.shuffle(names)
    shuffled = {**scenario, "topics": {name: scenario["topics"][name] for name in names}}
    assert solve(shuffled, mode="safe") == solve(scenario, mode="safe")
    if scenario["assignor"] not in ORDER_OF_MEMBERS_COUNTS:
        members = list(scenario["members"])
        random.shuffle(members)
        assert sets(target_of({**scenario, "members": members})) == sets(target_of(scenario))


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_what_is_promised_is_kept(assignor):
    @settings(max_examples=EXAMPLES, deadline=None)
    @given(groups(assignor), st.randoms(use_true_random=False))
    def keeps_its_promises(scenario, random):
        result = solve(scenario, mode="safe")
        target = target_of(scenario)
        left_out = [(topic, partition) for topic, partition, _ in result.get("unassigned", ())]
        require_each_partition_once(scenario, target, left_out)
        if assignor not in UNBALANCED:
            require_balance(scenario, target)
        require_order_is_no_matter(scenario, random)
        if assignor in KEEPING:
            again = target_of(rejoined(scenario, target, 9))
            assert sets(again) == sets(target)
        if assignor in COOPERATIVE:
            require_no_early_hand_over(scenario, result["assignment"])
            require_it_settles(scenario, target, result["assignment"])

    keeps_its_promises()
