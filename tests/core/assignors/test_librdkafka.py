"""librdkafka's cooperative-sticky: what differs from Java's, by hand; the captures are in tests/engine."""

from itertools import pairwise

import pytest

from groupledger.core.assignors import assign
from groupledger.core.assignors.librdkafka import Balance, _reassign
from groupledger.core.scenarios.form import encode
from groupledger.core.scenarios.solving import solve

NAME = "librdkafka-cooperative-sticky"


def group(*owned, assignor=NAME, partitions=6, generations=None, topics=None):
    """Members a, b, .. that claim these numbers of one topic."""
    members = [
        {
            "id": "abcdef"[at],
            "topics": ["t", *(topics or {}).get("abcdef"[at], ())],
            "owned": [["t", number] for number in numbers],
            "generation": generations[at] if generations else 3,
        }
        for at, numbers in enumerate(owned)
    ]
    return {"id": "g", "assignor": assignor, "topics": {"t": partitions, "u": 2}, "members": members}


def target(scenario):
    encoded = encode(scenario)
    answer = assign(scenario["assignor"], encoded.batch)
    start, numbers = answer.target.start.tolist(), answer.target.partition.tolist()
    return [sorted(numbers[low:high]) for low, high in pairwise(start)]


@pytest.mark.parametrize(
    ("scenario", "lists"),
    [
        pytest.param(group([], []), [[0, 2, 4], [1, 3, 5]], id="fresh: in turns"),
        pytest.param(group([0, 1, 2, 3, 4, 5], []), [[3, 4, 5], [0, 1, 2]], id="one joins: the highest are kept"),
        pytest.param(group([0, 2, 4], [1, 3, 5], []), [[2, 4], [3, 5], [0, 1]], id="each gives its lowest"),
        pytest.param(group([0, 1], [2, 3]), [[0, 1, 5], [2, 3, 4]], id="one left: what is free, last first"),
        pytest.param(group([0, 1, 2], [3, 4, 5]), [[0, 1, 2], [3, 4, 5]], id="nothing changed"),
        pytest.param(
            group([0, 1, 2], [0, 4, 5], generations=[3, 4]), [[1, 2, 3], [0, 4, 5]], id="the later claim wins"
        ),
        pytest.param(group([0, 1, 2], [2, 4, 5]), [[0, 1, 3], [2, 4, 5]], id="disputed: nobody's"),
        pytest.param(group([0, 9], []), [[0, 4, 2], [1, 3, 5]], id="what does not exist is dropped"),
        pytest.param(
            group([4], [0, 1, 2, 3, 4, 5], generations=[2, 3]),
            [[0, 1, 4], [2, 3, 5]],
            id="4 was another's: it goes first",
        ),
        pytest.param(
            group([4], [0, 1, 2, 3, 4, 5], [], generations=[2, 3, 3]),
            [[1, 4], [3, 5], [0, 2]],
            id="and back to that one",
        ),
        pytest.param(
            group([0, 1, 2, 3, 4, 5], [4], generations=[3, 2]),
            [[3, 4, 5], [0, 1, 2]],
            id="but the last claimant is taken for its holder: it stays",
        ),
        pytest.param(group(), [], id="nobody"),
    ],
)
def test_where_all_subscribe_alike(scenario, lists):
    assert [sorted(each) for each in lists] == target(scenario)


def test_a_partition_that_came_the_other_way_returns_instead():
    balance = Balance([{0}, {0}], {0: [0, 1]}, [[], []], {}, {}, [0, 1], True)
    for number, member in enumerate((0, 0, 1)):
        balance.give((0, number), member)
    balance.move((0, 0), 1)
    balance.move((0, 2), 0)
    assert balance.held == [[(0, 1), (0, 0)], [(0, 2)]]
    assert not any(balance.movements.values())


def test_of_several_that_came_the_other_way_the_second_returns():
    """The first is struck off the list that librdkafka points into: golden pair conflict-1-146."""
    balance = Balance([{0}, {0}], {0: [0, 1]}, [[], []], {}, {}, [0, 1], True)
    for number, member in enumerate((0, 0, 1)):
        balance.give((0, number), member)
    balance.move((0, 0), 1)
    balance.move((0, 1), 1)
    balance.move((0, 2), 0)
    assert balance.held == [[(0, 1)], [(0, 2), (0, 0)]]


@pytest.mark.parametrize(("held", "moved"), [(1, False), (3, True)])
def test_a_pass_that_moves_nothing_says_so(held, moved):
    numbers = [(0, number) for number in range(held)]
    balance = Balance([{0}, {0}], {0: [0, 1]}, [list(numbers), []], dict.fromkeys(numbers, 0), {}, [0, 1], True)
    assert _reassign(balance, numbers) is moved
    assert len(balance.held[1]) == moved


def test_java_keeps_the_lowest_of_the_same_claims():
    assert target(group([0, 1, 2, 3, 4, 5], [], assignor="cooperative-sticky")) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("owned", [([0, 1, 2, 3, 4, 5], []), ([], []), ([0, 1], [2], [])])
def test_where_subscriptions_differ_it_is_javas(owned):
    mixed = group(*owned, topics={"a": ["u"]})
    assert target(mixed) == target({**mixed, "assignor": "cooperative-sticky"})


def test_what_another_holds_is_withheld():
    asked = {"transferring": True}
    result = solve(group([0, 1, 2, 3, 4, 5], []) | asked)
    assert result["assignment"] == {"a": [["t", 3], ["t", 4], ["t", 5]], "b": []}
    assert result["transferring"] == [["t", 0, "b"], ["t", 1, "b"], ["t", 2, "b"]]
