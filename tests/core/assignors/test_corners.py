"""Corners that drawn groups seldom reach, each as kafka-clients 4.4.0 answers it: asked once through `tests.oracle`."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from groupledger.core.assignors import MESSAGES, Status, balance, general, movements, strict
from groupledger.core.assignors.balance import heaviest
from groupledger.core.assignors.group import _sort_many, walk_topics
from groupledger.core.assignors.racks import has_replica
from groupledger.core.batch import NONE
from groupledger.core.scenario import solve


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


@pytest.mark.parametrize(("moves", "moved"), [([0], False), ([3, 1, 0], True)])
def test_passes_go_on_until_one_moves_nothing_and_say_whether_any_did(monkeypatch, moves, moved):
    """Only a group in which something moved is put back: a better score may look worse where 32 bits overflow."""
    monkeypatch.setattr(balance, "_pass", lambda *_: moves.pop(0))
    holdings: Any = SimpleNamespace(size=np.zeros(2, np.int64), flag=np.zeros(8, np.int64))
    assert balance._reassign(holdings, movements.no_movements(0), False) is moved
    assert moves == []


def test_who_names_one_topic_as_often_as_there_are_topics_is_taken_to_subscribe_to_all():
    group: Any = SimpleNamespace(
        topics=2, members=2, subscription=[0, 1], subscription_start=[0, 2, 3], topics_of=[0, 0, 0]
    )
    claims: Any = SimpleNamespace(base=[0, 1, 6], total=6)
    crowd, most = general._potential(group, claims, np.array([0, 1], np.int32))
    assert (crowd.tolist(), most.tolist()) == ([3, 0], [6, 1])


def test_the_score_is_kafkas_int():
    """Of two members, one with 2**31 partitions more than the other: the difference overflows, as Java's int does."""
    holdings: Any = SimpleNamespace(active=np.ones(3, np.bool_))
    assert balance._score(holdings, np.array([0, 5, 2])) == 5 + 2 + 3
    holdings = SimpleNamespace(active=np.array([True, False, True]))
    assert balance._score(holdings, np.array([0, 7, 2**31])) == -(2**31)


def test_a_member_in_the_partitions_rack_is_looked_for_before_any_other(monkeypatch):
    """And where one is found, it does not matter that the walk to any other would have met one that takes no part."""
    monkeypatch.setattr(strict, "has_replica", lambda *_: True)
    monkeypatch.setattr(strict, "_first_lighter", lambda h, topic, slot, near: 5 if near else strict.NOBODY)
    monkeypatch.setattr(strict, "_lightest", lambda *_: 7)
    group = SimpleNamespace(member_rack=[3])
    holdings: Any = SimpleNamespace(owner=[0], previous=[], member_at=[0], base=[0], racked=True, g=group)
    assert strict._target(holdings, 0, 0) == 7
    holdings.racked = False
    assert strict._target(holdings, 0, 0) == strict.NOBODY


def test_no_rack_has_a_replica_of_a_partition_that_is_not_there():
    """Of two topics of one partition each: what follows the first one's in the arrays is the other's."""
    racks = {"rack_topic_start": [0, 1, 2], "rack_start": [0, 1, 2], "rack_code": [5, 5]}
    group: Any = SimpleNamespace(topic_partitions=[1, 1], **racks)
    assert [has_replica(group, 0, partition, 5) for partition in (-1, 0, 1)] == [False, True, False]


@pytest.mark.parametrize(("mates", "capacity"), [(7, 16), (8, 32)])
def test_a_small_table_doubles_where_a_ninth_meets_in_one_bucket(mates, capacity):
    """Partitions 16 apart share a bucket of 16; eight are in the table, `mates` of them in the bucket of the next."""
    slots = [16 * at for at in range(mates)] + [1] * (8 - mates)
    after = dict(zip(slots, [*slots[1:], NONE], strict=True))
    table = {"set_first": [0], "set_size": [8], "set_capacity": [16], "set_topic": [0], "after": after}
    moves: Any = SimpleNamespace(**table)
    movements._grow(moves, np.array([0]), np.array([0], np.int32), 0, 16 * 9)
    assert moves.set_capacity == [capacity]


def test_many_are_sorted_also_by_ranks_that_some_do_not_have():
    order = np.arange(4, dtype=np.int32)
    _sort_many(np.array([2, NONE, 0, 1], np.int32), order, 4)
    assert order.tolist() == [1, 2, 3, 0]


def test_of_the_lowest_bucket_the_earliest_addition_comes_first():
    """Partitions 16 apart share a bucket of 16."""
    base, topic_hash = np.array([0]), np.array([0], np.int32)
    moves: Any = SimpleNamespace(
        set_first=[17], set_capacity=[16], set_topic=[0], state=[0, 0, 0], after={17: 1, 1: NONE}
    )
    assert movements._place(moves, base, topic_hash, 0, 17) == movements._place(moves, base, topic_hash, 0, 1)
    assert movements._first(moves, base, topic_hash, 0) == 17


def test_topics_are_walked_of_every_list_though_members_in_turn_share_one():
    lists = {"subscription": [0, 0, 1], "subscription_start": [0, 1, 2], "topics_of": [0, 1]}
    group: Any = SimpleNamespace(topics=2, members=3, topic_hash=np.arange(2), topic_partitions=[1, 1], **lists)
    group.told = SimpleNamespace(walk=[])
    order = np.empty(2, np.int32)
    assert walk_topics(group, np.arange(3), order) == 2
    assert sorted(order.tolist()) == [0, 1]
