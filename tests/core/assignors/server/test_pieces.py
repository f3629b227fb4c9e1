"""Pieces of the coordinator's assignors by themselves: what whole groups seldom show, or only very large ones."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from groupledger.core.assignors.server import iteration_orders, server_range, uniform
from groupledger.core.assignors.server.iteration_orders import group_at
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId, encode
from groupledger.core.assignors.server.uniform import balancer, next_most, topic_is_level


def test_a_topic_is_level_where_no_two_seats_differ_by_two():
    seats = np.array([0, 1, 2], np.int32)
    for sizes, level in (([1, 2, 2], True), ([1, 1, 3], False), ([4, 4, 4], True)):
        size = np.array(sizes)
        assert topic_is_level(balancer(seats, size), size) is level


def test_balancing_ends_after_kafkas_maximum_of_rounds(monkeypatch):
    """`MAX_ITERATION_COUNT` of UniformHeterogeneousAssignmentBuilder is 16; topics of one subscriber are not asked."""
    asked: list[int] = []

    def moves_one(plan, topic, log, used):
        asked.append(topic)
        return used + 1

    monkeypatch.setattr(uniform, "_level", moves_one)
    plan: Any = SimpleNamespace(seat_start=[0, 2, 3, 5], owner_start=[0, 1, 2, 3])
    _, used = uniform._even_out(plan, np.arange(3, dtype=np.int32), np.empty((100, 3), np.int32), 0)
    assert asked == [0, 2] * 16
    assert used == 32


def test_topics_are_evened_out_until_none_has_moved_since_its_last_turn(monkeypatch):
    """Of three, the second moves in the first round and the first in the second; then the others have their turn."""
    moves = [0, 1, 0, 1, 0, 0]
    monkeypatch.setattr(uniform, "_level", lambda plan, topic, log, used: used + moves.pop(0))
    plan: Any = SimpleNamespace(seat_start=[0, 2, 4, 6], owner_start=[0, 1, 2, 3])
    assert uniform._even_out(plan, np.arange(3, dtype=np.int32), np.empty((8, 3), np.int32), 0)[1] == 2
    assert moves == []


def test_the_most_loaded_seats_give_in_turn_until_none_is_left():
    size = np.array([2, 2], np.int64)
    both = balancer(np.array([0, 1], np.int32), size)
    given = []
    for _ in range(4):
        given.append(next_most(both, size))
        size[given[-1]] -= 1
    assert given == [1, 0, 1, 0]
    one = balancer(np.array([0], np.int32), np.array([3]))
    assert next_most(one, np.array([3])) == 0


@pytest.mark.parametrize(("shares", "order"), [([1] * 8 + [0], [*range(8)]), ([1] * 9, [1, 2, 4, 6, 8, 0, 3, 5, 7])])
def test_range_leaves_topics_without_a_share_out_of_a_members_map(shares, order):
    """Its map has 16 buckets, all topics are in one of them, and the ninth put would double the map."""
    id_hash = np.array([16, 0, 32, 48, 64, 80, 96, 112, 128], np.int32)
    quota, none, topic = np.array(shares, np.int32), np.zeros(9, np.int32), np.empty(9, np.int32)
    group: Any = SimpleNamespace(id_hash=id_hash)
    dealt = server_range.Shares(quota, none.copy(), none.copy(), none.copy())
    assert server_range._write(group, dealt, np.arange(9, dtype=np.int32), 16, 0, topic, np.empty(9, np.int32))
    assert topic[: len(order)].tolist() == order


def test_topics_without_partitions_are_in_no_bucket_and_not_walked():
    arrays = {"topic": np.array([0, 1]), "size": np.array([0, 1]), "high": np.zeros(2, np.int64)}
    slots: Any = SimpleNamespace(**arrays)
    id_hash = np.zeros(2, np.int32)
    assert iteration_orders._chains(id_hash, slots, 2, 16).tolist() == [1, *[0] * 15]
    assert iteration_orders._walk_map(id_hash, slots, 2, 16).tolist() == [1]


def test_a_group_of_a_batch_has_its_own_topics():
    ids = {name: Topic(TopicId(name.encode() * 16), 2) for name in "tuv"}
    groups = [
        ServerGroup((ServerMember("m", tuple(names)),), {name: ids[name] for name in names}) for names in ("tu", "v")
    ]
    batch, _ = encode(groups)
    assert [group_at(batch, index).topics for index in range(2)] == [2, 1]


def test_topics_that_a_write_kept_are_walked_too_unless_emptied():
    slots: Any = SimpleNamespace(topic=np.array([0, 1]), size=np.array([0, 1]), high=np.ones(2, np.int64))
    assert iteration_orders._walk_map(np.zeros(2, np.int32), slots, 2, 16).tolist() == [1]
