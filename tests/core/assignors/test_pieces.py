"""Pieces of the assignors by themselves: what whole groups seldom show, or only very large ones."""

from __future__ import annotations

from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from groupledger.core.arrays.batch import NONE
from groupledger.core.assignors import Status, balance, general, librdkafka, transfers
from groupledger.core.assignors.answer import lists_of
from groupledger.core.assignors.balance import STATUS, STRICT
from groupledger.core.assignors.group import _sort_many, arrays, walk_topics
from groupledger.core.assignors.kip315 import _own, eligible
from groupledger.core.assignors.range_ import has_replica
from groupledger.core.assignors.sticky import subscriptions_equal
from groupledger.core.scenarios.form import encode
from groupledger.core.scenarios.solving import solve


@pytest.mark.parametrize(("moves", "moved"), [([0], False), ([3, 1, 0], True)])
def test_passes_go_on_until_one_moves_nothing_and_say_whether_any_did(monkeypatch, moves, moved):
    """Only a group in which something moved is put back: a better score may look worse where 32 bits overflow."""
    monkeypatch.setattr(balance, "_pass", lambda *_: moves.pop(0))
    holdings: Any = SimpleNamespace(size=np.zeros(2, np.int64), flag=np.zeros(8, np.int64))
    assert balance._reassign(holdings, balance.no_movements(0), False) is moved
    assert moves == []


def test_who_names_one_topic_as_often_as_there_are_topics_is_taken_to_subscribe_to_all():
    group: Any = SimpleNamespace(
        topics=2, members=2, subscription=[0, 1], subscription_start=[0, 2, 3], topics_of=[0, 0, 0]
    )
    claims: Any = SimpleNamespace(base=[0, 1, 6], total=6)
    subscriber_count, most = general._potential(group, claims, np.array([0, 1], np.int32))
    assert (subscriber_count.tolist(), most.tolist()) == ([3, 0], [6, 1])


def test_the_score_is_kafkas_int():
    """Of two members, one with 2**31 partitions more than the other: the difference overflows, as Java's int does."""
    holdings: Any = SimpleNamespace(active=np.ones(3, np.bool_))
    assert balance._score(holdings, np.array([0, 5, 2])) == 5 + 2 + 3
    holdings = SimpleNamespace(active=np.array([True, False, True]))
    assert balance._score(holdings, np.array([0, 7, 2**31])) == -(2**31)


@pytest.mark.parametrize(
    ("lists", "equal"),
    [
        (["t", "t"], True),
        (["tu", "ut"], True),
        (["", "t", "t"], True),
        (["t", "u"], False),
        (["t", ""], False),
        (["tt", "t"], True),  # a set of one topic
        (["tt", "tt"], False),  # and a list of two
        (["tt", "u"], False),
    ],
)
def test_subscriptions_are_compared_with_the_first_non_empty_one(lists, equal):
    """As `allSubscriptionsEqual` does: by size, and by whether that set has every topic of the list."""
    start = [0, *accumulate(map(len, lists))]
    group: Any = SimpleNamespace(topics=2, subscription=[*range(len(lists))], subscription_start=start)
    group.topics_of = ["tu".index(topic) for each in lists for topic in each]
    assert subscriptions_equal(group, np.arange(len(lists), dtype=np.int32)) is equal


def test_members_that_share_a_list_with_a_topic_twice_differ_from_each_other():
    group: Any = SimpleNamespace(topics=1, subscription=[0, 0], subscription_start=[0, 2], topics_of=[0, 0])
    assert not subscriptions_equal(group, np.arange(2, dtype=np.int32))


@pytest.mark.parametrize(("sizes", "spread"), [([0, 0], 0), ([0, 3], 3), ([4, 2], 2), ([5], 0)])
def test_the_spread_of_a_group_is_of_its_active_members(sizes, spread):
    """The last member takes no part."""
    size, active = np.array([*sizes, 9]), np.array([True] * len(sizes) + [False])
    assert balance._spread(holdings(size=size, active=active)) == spread


@pytest.mark.parametrize("sizes", [[1, 1], [1, 2]])
def test_members_within_one_partition_are_balanced_whatever_else_is_held(sizes):
    """Kafka asks no further, and so does not meet a partition that nobody active holds."""
    even = holdings(size=np.array(sizes))
    assert balance._balanced(even)
    assert even.flag[STATUS] == Status.OK


def test_the_balance_check_fails_without_active_members_as_in_kafka():
    """Kafka asks for the first and the last of an empty set: NoSuchElementException."""
    nobody = holdings(active=np.zeros(2, np.bool_))
    assert not balance._balanced(nobody)
    assert nobody.flag[STATUS] == Status.NO_SUCH_ELEMENT


def test_only_topics_with_free_partitions_are_filled(monkeypatch):
    filled = []
    monkeypatch.setattr(general, "_fill_topic", lambda h, pending, topic, heap: filled.append((topic, len(heap))))
    lists = {"topics": [0, 1], "base": [0, 2, 4], "heads": [0, 2, 3], "member_at": [0, 1], "racked": False}
    general.fill(holdings(fresh=[False, False, False, True], **lists))
    assert filled == [(1, 1)]


def test_a_member_in_the_partitions_rack_is_looked_for_before_any_other(monkeypatch):
    """And where one is found, it does not matter that the walk to any other would have met one that takes no part."""
    monkeypatch.setattr(balance, "has_replica", lambda *_: True)
    monkeypatch.setattr(balance, "_first_lighter", lambda h, topic, slot, near: 5 if near else balance.NOBODY)
    monkeypatch.setattr(balance, "_lightest", lambda *_: 7)
    group = SimpleNamespace(member_rack=[3])
    holdings: Any = SimpleNamespace(owner=[0], previous=[], member_at=[0], base=[0], racked=True, g=group)
    assert balance._target(holdings, 0, 0) == 7
    holdings.racked = False
    assert balance._target(holdings, 0, 0) == balance.NOBODY


@pytest.mark.parametrize(
    ("near", "first"),
    [pytest.param(False, 1, id="a subscriber"), pytest.param(True, 4, id="near, and with two fewer")],
)
def test_members_that_cannot_take_a_partition_are_skipped(monkeypatch, near, first):
    """Walked in turn: no subscriber, one without a rack, one in another rack, one that has as many, one with fewer."""
    monkeypatch.setattr(balance, "subscribes", lambda h, place, topic: place > 0)
    monkeypatch.setattr(balance, "has_replica", lambda g, topic, partition, rack: rack == 3)
    places = {"walk": range(6), "member_at": range(6), "active": [True] * 6, "size": [0, 0, 0, 2, 0, 2]}
    group = SimpleNamespace(member_rack=[3, NONE, 4, 3, 3, NONE])
    assert balance._first_lighter(holdings(owner=[5], g=group, **places), 0, 0, near) == first


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
    balance._grow(moves, np.array([0]), np.array([0], np.int32), 0, 16 * 9)
    assert moves.set_capacity == [capacity]


@pytest.mark.parametrize(("size", "capacity"), [(11, 16), (12, 32)])
def test_a_table_doubles_past_three_quarters(size, capacity):
    after = {slot: slot + 1 if slot + 1 < size else NONE for slot in range(size)}
    table = {"set_first": [0], "set_size": [size], "set_capacity": [16], "set_topic": [0], "after": after}
    moves: Any = SimpleNamespace(**table)
    balance._grow(moves, np.array([0]), np.array([0], np.int32), 0, size)
    assert moves.set_capacity == [capacity]


@pytest.mark.parametrize(("mates", "capacity", "unsure"), [(6, 64, 0), (7, 64, 1), (7, 32, 0)])
def test_seven_entries_in_a_bucket_may_still_be_a_tree(mates, capacity, unsure):
    """Java makes a list of a tree again at two to six entries; no table below 64 has trees."""
    slots = [capacity * at for at in range(mates)]
    table = {"set_first": [0], "set_capacity": [capacity], "set_topic": [0], "state": [0, 0, 0]}
    moves: Any = SimpleNamespace(**table, after=dict(zip(slots, [*slots[1:], NONE], strict=True)))
    assert balance._first(moves, np.array([0]), np.array([0], np.int32), 0) == 0
    assert moves.state[2] == unsure


@pytest.mark.parametrize(("unsure", "status"), [(0, Status.OK), (1, Status.ORDER_NOT_EMULATED)])
def test_a_group_is_not_emulated_if_the_returning_partition_is_unknown(monkeypatch, unsure, status):
    def reassigned(h, mv, only_fresh):
        mv.state[2] = unsure

    monkeypatch.setattr(balance, "_reassign", reassigned)
    lists = {"slots": 0, "first": np.zeros(2), "after": np.zeros(2)}
    assert balance.rebalance(holdings(size=np.array([0, 2]), **lists), True) == status


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
    assert balance._place(moves, base, topic_hash, 0, 17) == balance._place(moves, base, topic_hash, 0, 1)
    assert balance._first(moves, base, topic_hash, 0) == 17


def test_topics_are_walked_of_every_list_though_members_in_turn_share_one():
    lists = {"subscription": [0, 0, 1], "subscription_start": [0, 1, 2], "topics_of": [0, 1]}
    group: Any = SimpleNamespace(topics=2, members=3, topic_hash=np.arange(2), topic_partitions=[1, 1], **lists)
    group.exact_orders = SimpleNamespace(subscriptions=[])
    order = np.empty(2, np.int32)
    assert walk_topics(group, np.arange(3, dtype=np.int32), order) == 2
    assert sorted(order.tolist()) == [0, 1]


def test_topics_without_partitions_or_metadata_are_not_walked():
    lists = {"subscription": [0], "subscription_start": [0, 3], "topics_of": [0, 1, 2]}
    group: Any = SimpleNamespace(topics=3, members=1, topic_hash=np.arange(3), topic_partitions=[0, 1, NONE], **lists)
    group.exact_orders = SimpleNamespace(subscriptions=[])
    order = np.empty(3, np.int32)
    assert walk_topics(group, np.arange(1, dtype=np.int32), order) == 1
    assert order[0] == 1


def holdings(**values) -> Any:
    """Of two members with two partitions each, one topic that both subscribe to."""
    known = {"size": np.array([2, 2]), "active": np.ones(2, np.bool_), "flag": np.zeros(8, np.int64), "topics": [0]}
    return SimpleNamespace(
        **known | {"subscriber_count": [2], "base": [0, 2], "previous": [NONE], "fresh": [True] * 2} | values
    )


@pytest.mark.parametrize(("sizes", "most_moves"), [([2, 2], 0), ([2, 3], 0), ([1, 3], 1), ([5, 2], 1)])
def test_where_no_two_differ_by_two_nothing_is_begun(monkeypatch, sizes, most_moves):
    begun: list[int] = []
    no_movements = balance.no_movements

    def noted(slots):
        begun.append(slots)
        return no_movements(slots)

    monkeypatch.setattr(balance, "no_movements", noted)
    monkeypatch.setattr(balance, "_reassign", lambda *_: False)
    lists = {"slots": 0, "first": np.zeros(2), "after": np.zeros(2)}
    assert balance.rebalance(holdings(size=np.array(sizes), **lists), True) == Status.OK
    assert len(begun) == most_moves


def test_the_subscribers_of_a_topic_are_ranked_once_for_all_its_partitions(monkeypatch):
    planted = []
    monkeypatch.setattr(balance, "_plant", lambda *_: planted.append(1))
    for name, answer in {"_least": 0, "_better": 1, "shift": 0, "_update": None}.items():
        monkeypatch.setattr(balance, name, lambda *_, answer=answer: answer)
    assert balance._pass(holdings(), balance.no_movements(0), True, np.zeros(8, np.int64), np.zeros(2, np.int32)) == 2
    assert len(planted) == 1


@pytest.mark.parametrize(("previous", "asked"), [([], []), ([NONE, 1], [0, 1])])
def test_balanced_topics_are_skipped_unless_a_partition_may_return(monkeypatch, previous, asked):
    """Nobody has two more than the topic's least subscriber; but an earlier owner may subscribe no longer."""
    looked: list[int] = []

    def stays(h, slot, least):
        looked.append(slot)
        return NONE

    monkeypatch.setattr(balance, "_least", lambda *_: 4)
    monkeypatch.setattr(balance, "_better", stays)
    even = holdings(previous=np.array(previous, np.int32))
    assert balance._pass(even, balance.no_movements(0), False, np.zeros(8, np.int64), np.zeros(2, np.int32)) == 0
    assert looked == asked


@pytest.mark.parametrize(("generations", "noted"), [((5, 1, 2), 2), ((5, 2, 1), 1), ((5, 2, 2), 2)])
def test_of_older_claims_to_a_partition_the_latest_counts_and_of_equal_ones_the_first_walked(generations, noted):
    """One partition that three members claim, the last one walked first; the first member's claim is of now."""
    group: Any = SimpleNamespace(topics=1, claim_start=[0, 1, 2, 3], claim_topic=[0, 0, 0], claim_partition=[0, 0, 0])
    claims: Any = SimpleNamespace(base=[0, 1], phantom=[], generation=generations, max_generation=5)
    holdings: Any = SimpleNamespace(previous=[NONE], walk=[2, 1, 0], member_at=[0, 1, 2], total=1)
    general._note_previous(group, claims, holdings)
    assert holdings.previous == [noted]


@pytest.mark.parametrize(("subscribed", "active", "strict"), [(True, True, 0), (False, True, 1), (True, False, 1)])
def test_an_older_claim_of_a_member_that_cannot_have_the_partition_makes_a_group_strict(
    monkeypatch, subscribed, active, strict
):
    """One partition, owned by the first member; the second claims it in an older generation."""
    monkeypatch.setattr(general, "subscribes", lambda h, place, topic: subscribed)
    lists = {"most": [2, 2], "base": [0, 1], "previous": [1], "active": [True, active]}
    one = holdings(size=np.array([1, 0]), **lists)
    group: Any = SimpleNamespace(members=2)
    general._deactivate(group, group, one)
    assert one.flag[STRICT] == strict


def test_a_strict_pass_counts_its_moves(monkeypatch):
    for name, answer in {"_target": 1, "_balanced": False, "shift": None}.items():
        monkeypatch.setattr(balance, name, lambda *_, answer=answer: answer)
    assert balance.pass_strictly(holdings(), balance.no_movements(0), True) == 2


def test_stream_join_numbers_of_each_owner_and_none_where_nobody_subscribes():
    own = _own(2, np.array([0, NONE, 0, 1], np.int32))
    assert [each.tolist() for each in own] == [[0, 2, 3], [0, 2], [2, 3]]
    nobody: Any = SimpleNamespace(members=0)
    assert eligible(nobody) == 0


def test_the_least_partition_count_is_of_every_list_though_members_in_turn_share_one():
    lists = {"subscription": [0, 0, 1], "subscription_start": [0, 1, 2], "topics_of": [0, 1]}
    group: Any = SimpleNamespace(members=3, topic_partitions=[5, 3], **lists)
    assert eligible(group) == 3


def test_without_racks_there_are_none():
    found = arrays(encode({"assignor": "range", "topics": {"t": 1}, "members": [{"id": "a", "topics": ["t"]}]}).batch)
    assert [len(each) for each in (found.rack_start, found.rack_topic_start, found.rack_code)] == [0, 0, 0]


def test_eager_members_date_nothing_in_their_subscription(monkeypatch):
    asked = []

    def noted(kernel, batch, cooperative):
        asked.append(cooperative)
        return lists_of(kernel, batch, cooperative)

    monkeypatch.setattr(transfers, "lists_of", noted)
    members = [{"id": "a", "topics": ["t"], "owned": [["t", 0], ["t", 1]]}, {"id": "b", "topics": ["t"]}]
    scenario = {"assignor": "sticky", "topics": {"t": 2}, "members": members, "transferring": True}
    assert solve(scenario)["transferring"] == [["t", 1, "b"]]
    assert asked == [False]


def three_partitions():
    """Of librdkafka's: two members of which the first has all that there is."""
    held: list[list[tuple[int, int]]] = [[(0, number) for number in range(3)], []]
    return librdkafka.Balance([{0}, {0}], {0: [0, 1]}, held, dict.fromkeys(held[0], 0), {}, [0, 1], True)


@pytest.mark.parametrize(("scores", "held"), [([2, 2], [3, 0]), ([1, 2], [2, 1])])
def test_librdkafka_puts_back_what_made_a_group_no_more_even(monkeypatch, scores, held):
    monkeypatch.setattr(librdkafka, "_reassign", lambda b, _: b.move((0, 0), 1) is None)
    monkeypatch.setattr(librdkafka, "_unevenness", lambda *_: scores.pop(0))
    balance = three_partitions()
    librdkafka._assign(balance, [3])
    assert [len(each) for each in balance.held] == held


def test_librdkafka_first_moves_what_it_handed_out_if_two_could_have_it(monkeypatch):
    passes = []
    monkeypatch.setattr(librdkafka, "_reassign", lambda _, free: passes.append(list(free)))
    librdkafka._assign(three_partitions(), [4])
    assert passes == [[(0, 3)], [(0, 0), (0, 1), (0, 2), (0, 3)]]


def test_librdkafka_moves_no_partition_of_a_topic_with_one_subscriber(monkeypatch):
    passes = []
    monkeypatch.setattr(librdkafka, "_reassign", lambda _, free: passes.append(list(free)))
    lone = librdkafka.Balance([{0}, {0, 1}], {0: [0, 1], 1: [1]}, [[], []], {}, {}, [0, 1], False)
    librdkafka._assign(lone, [2, 2])
    assert lone.held == [[(0, 0), (0, 1)], [(1, 0), (1, 1)]]
    assert passes == [[(0, 0), (0, 1)]] * 2
