"""The broker's side alone: who leads, which assignor is chosen, what becomes of seats."""

from __future__ import annotations

from itertools import permutations

import pytest

from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import Coordinator, Registered, choose_assignor
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import Subscription
from groupledger.core.protocol.simulator import Script, simulate

SENT = Subscription(ByteCode.KIP_792, ("t",))


def seated(*ids, instances=()):
    coordinator = Coordinator()
    for each in ids:
        instance = f"i-{each}" if each in instances else None
        coordinator.seat(Registered(each[0], each, ("range",), SENT, instance))
    return coordinator


def walked(coordinator):
    return [each.member_id for each in coordinator.members_in_join_order()]


@pytest.mark.parametrize("order", list(permutations(["a-1", "b-1", "c-1"])))
def test_the_first_to_be_seated_leads_whoever_stands_first_in_the_response(order):
    coordinator = seated(*order)
    coordinator.start_generation(order)
    assert walked(coordinator) == ["a-1", "c-1", "b-1"]  # by hash, whatever the order
    assert coordinator.leader == order[0]


def test_the_leader_leads_on_for_as_many_generations_as_it_joins():
    coordinator = seated("a-1", "b-1", "c-1")
    for generation in (1, 2, 3):
        coordinator.start_generation(["c-1", "b-1", "a-1"])
        assert (coordinator.generation, coordinator.leader) == (generation, "a-1")
    coordinator.start_generation(["b-1", "a-1"])
    assert coordinator.leader == "a-1"


def test_a_leader_that_leaves_is_followed_by_one_of_those_who_were_there():
    """Not by a newcomer, though it stands before them in the response."""
    coordinator = seated("b-1", "c-1")
    coordinator.remove("b-1")
    assert (coordinator.leader, coordinator.rebalancing) == ("c-1", True)
    coordinator.seat(Registered("a", "a-1", ("range",), SENT, None))
    coordinator.start_generation(["a-1", "c-1"])
    assert walked(coordinator) == ["a-1", "c-1"]
    assert coordinator.leader == "c-1"
    coordinator.remove("c-1")
    coordinator.remove("a-1")
    assert coordinator.leader is None


def test_one_that_is_not_the_leader_leaves_and_nothing_else_changes():
    coordinator = seated("a-1", "b-1")
    coordinator.remove("nobody")
    assert (coordinator.leader, coordinator.rebalancing) == ("a-1", False)
    coordinator.remove("b-1")
    assert (coordinator.leader, coordinator.rebalancing, walked(coordinator)) == ("a-1", True, ["a-1"])


def test_a_static_leader_that_is_away_is_followed_by_the_first_of_those_that_joined():
    coordinator = seated("a-1", "b-1", "c-1", instances=("a-1",))
    coordinator.start_generation(["a-1", "b-1", "c-1"])
    coordinator.start_generation(["b-1"])
    assert coordinator.leader == "b-1"
    assert sorted(walked(coordinator)) == ["a-1", "b-1", "c-1"]


@pytest.mark.parametrize(("first", "then"), [("a", "c"), ("c", "a")])
def test_a_group_keeps_its_leader_through_every_round(first, then):
    """The leader decides by its own view of the topics, so who leads is seen in what is assigned."""
    stale = [e.FreezeMetadata(first), e.SetPartitions("t", 9)]
    settled = simulate(Script({"t": 4}, [e.Join(first, ("t",)), e.Join(then, ("t",)), *stale, e.Join("b", ("t",))]))
    assert {took.leader for each in settled for took in each.rounds} == {first}
    assert len(settled[-1].owners) == 4
    assert len(settled[-1].unowned) == 5


RANGE, STICKY, COOPERATIVE = "range", "sticky", "cooperative-sticky"
VOTES = {
    "the only one in common": ([(RANGE, STICKY), (STICKY, COOPERATIVE)], STICKY),
    "the first that all have, not the first of all": ([(COOPERATIVE, RANGE, STICKY), (RANGE, STICKY)], RANGE),
    "most votes": ([(STICKY, RANGE), (RANGE, STICKY), (RANGE, STICKY)], RANGE),
    "most votes for another": ([(STICKY, RANGE), (RANGE, STICKY), (STICKY, RANGE)], STICKY),
    "of equals, the first of a Java hash map": ([(RANGE, STICKY), (STICKY, RANGE)], STICKY),
    "the same of others": ([(COOPERATIVE, RANGE), (RANGE, COOPERATIVE)], RANGE),
    "nothing in common": ([(RANGE,), (STICKY,)], None),
    "nobody": ([], None),
}


@pytest.mark.parametrize(("listed", "chosen"), VOTES.values(), ids=VOTES.keys())
def test_the_assignor_that_is_chosen(listed, chosen):
    assert [choose_assignor(list(each)) for each in permutations(listed)] == [chosen] * len(list(permutations(listed)))


def test_nobody_has_an_assignment_yet_of_a_generation_that_begins():
    coordinator = seated("a-1")
    coordinator.given = {"a-1": ()}
    coordinator.start_generation(["a-1"])
    assert coordinator.given == {}


def test_member_ids_that_are_told_come_before_numbered_ones():
    coordinator = Coordinator(known_ids={"a": ("first", "second")})
    assert [coordinator.new_member_id("a") for _ in range(3)] == ["first", "second", "a-3"]
    assert coordinator.new_member_id("b") == "b-1"
