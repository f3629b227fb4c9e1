"""Corners that drawn groups seldom reach, each as kafka-clients 4.4.0 answers it: asked once through `tests.oracle`."""

from __future__ import annotations

from dataclasses import fields
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from groupledger.core.arrays.batch import GroupBatch
from groupledger.core.arrays.snapshots import select
from groupledger.core.assignors import MESSAGES, Status, assign
from groupledger.core.assignors.balance import heaviest
from groupledger.core.scenarios.form import encode
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.test_rejoin import together


def member(name, topics, *owned, generation=0):
    return {"id": name, "topics": topics, "owned": [list(each) for each in owned], "generation": generation}


def test_a_tree_of_members_decides_the_order_in_which_range_lists_topics_of_one_bucket():
    """Sixteen ids of one hash: the tree's root, not the first to join, has its topics written down first."""
    ids = ["".join(each) for each in product(("Aa", "BB"), repeat=4)]
    orders = [["BBBB", "AaAa"], *[["AaAa", "BBBB"]] * 15]
    members = [member(*each) for each in zip(ids, orders, strict=True)]
    scenario = {"id": "tree", "assignor": "range", "topics": {"AaAa": 16, "BBBB": 16}, "members": members}
    expected = {each: [["AaAa", number], ["BBBB", number]] for number, each in enumerate(ids)}
    assert solve(scenario)["assignment"] == expected


def test_a_subscriber_that_takes_no_part_is_asked_all_the_same_and_kafka_fails():
    """`a` has as much as it could have, u-10 of it no partition at all: it takes no part, yet subscribes to t."""
    scenario = {
        "id": "nobody",
        "assignor": "cooperative-sticky",
        "topics": {"u": 1, "t": 1},
        "members": [
            member("a", ["u", "t"], ("u", 10), generation=3),
            member("c", ["t"], generation=2),
            member("b", ["t"], generation=2),
            member("d", ["t"], ("t", 0), ("t", 3), generation=3),
        ],
    }
    assert solve(scenario)["error"] == MESSAGES[Status.NULL_POINTER]


def test_nobody_is_heavy_in_a_group_that_owns_nothing():
    """That a group is new is told by this: moves in a new group are never undone."""
    owns_nothing: Any = SimpleNamespace(size=np.zeros(2, np.int64))
    owns_some: Any = SimpleNamespace(size=np.array([1, 3, 2]))
    assert heaviest(owns_nothing) == 0
    assert heaviest(owns_some) == 3


@pytest.mark.parametrize(
    ("members", "racks", "numbers"),
    [
        pytest.param({"a": "r1", "b": "r2"}, "r1 r1 r3", [[0, 1], [2]], id="one at its quota gets what is to spare"),
        pytest.param(
            {"a": ("r3", 0, 1), "b": "r1", "c": "r2"}, "r3 r3 r1 r1", [[0, 1], [2], [3]], id="but no more than that"
        ),
        pytest.param(
            {"a": "r2", "b": "r1", "c": "r1", "d": "r2"},
            "r1 r1,r2 r1,r2 r1,r2",
            [[3], [0], [1], [2]],
            id="the turn goes on behind one that is full",
        ),
        pytest.param({"a": ("r1", 9), "b": "r2"}, "r1 r2", [[0], [1]], id="what does not exist is near nobody"),
    ],
)
def test_partitions_near_members_with_equal_subscriptions(members, racks, numbers):
    """Each member's rack and claims, and the racks of the replicas of each partition."""
    told = [(name, *([each] if isinstance(each, str) else each)) for name, each in members.items()]
    of = [{**member(name, ["t"], *(("t", number) for number in owned)), "rack": rack} for name, rack, *owned in told]
    replicas = [each.split(",") for each in racks.split()]
    scenario = {"assignor": "sticky", "topics": {"t": len(replicas)}, "members": of, "racks": {"t": replicas}}
    expected = [[["t", number] for number in mine] for mine in numbers]
    assert solve(scenario)["assignment"] == dict(zip(members, expected, strict=True))


def test_a_group_taken_out_of_a_batch_is_as_it_was_alone():
    topics = {"t": 2, "u": 3}
    groups = [
        encode({"assignor": "sticky", "topics": topics, "members": [member(name, ["t", "u"], ("t", 0), *more)]}).batch
        for name, more in (("a", ()), ("b", [("u", 1)]), ("c", ()))
    ]
    own = {each.name for each in fields(GroupBatch) if getattr(groups[0], each.name) is not None}
    for index, alone in enumerate(groups):
        cut, _, _ = select(together(groups), np.array([index]))
        assert {name: getattr(cut, name).tolist() for name in own} == {
            name: getattr(alone, name).tolist() for name in own
        }


def test_a_group_whose_order_a_tree_decides_stands_among_others():
    """Its lists are put in place afterwards; those behind it move along."""
    ids = ["".join(each) for each in product(("Aa", "BB"), repeat=4)]
    members = [member(each, ["BBBB", "AaAa"]) for each in ids]
    tree = encode({"assignor": "range", "topics": {"AaAa": 16, "BBBB": 16}, "members": members}).batch
    plain = encode({"assignor": "range", "topics": {"t": 5}, "members": [member("a", ["t"]), member("b", ["t"])]}).batch
    every = [plain, tree, plain, tree]
    alone = [assign("range", each) for each in every]
    answer = assign("range", together(every))
    assert np.diff(answer.target.start).tolist() == [size for each in alone for size in np.diff(each.target.start)]
    assert answer.target.partition.tolist() == [number for each in alone for number in each.target.partition]
