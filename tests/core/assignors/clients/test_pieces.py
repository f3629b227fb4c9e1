"""Pieces of the libraries' algorithms by themselves: what whole groups seldom show."""

from __future__ import annotations

import pytest

from groupledger.core.assignors.clients.client_plan import MOST_RUNS, Choices, most_runs
from groupledger.core.assignors.clients.franz_go import Cell, Rings
from groupledger.core.assignors.clients.kip54 import StickyGroup, _even, aiokafka_sticky
from groupledger.core.assignors.clients.topic_by_topic import _as_keys
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.wire.consumer_protocol import UserData, UserDataForm, encode_user_data


def partitions(text):
    """Return t0, t1, u0 of `t0 t1 u0`."""
    return [TopicPartition(each[0], int(each[1:])) for each in text.split()]


@pytest.mark.parametrize(
    ("wanted", "held", "even"),
    [
        pytest.param({"a": "t0 t1 t2", "b": "t0 t1 t2"}, {"a": "t0", "b": "t1 t2"}, True, id="1 and 2"),
        pytest.param({"a": "t0 t1 t2", "b": "t0 t1 t2"}, {"a": "", "b": "t0 t1"}, False, id="0 and 2"),
        pytest.param({"a": "t0", "b": "u0 u1 u2"}, {"a": "t0", "b": "u0 u1 u2"}, True, id="a has all that it wants"),
        pytest.param({"a": "t0 t1", "b": "t0 t1 u0 u1"}, {"a": "t1", "b": "t0 u0 u1"}, False, id="a could take t0"),
    ],
)
def test_a_group_is_even_if_no_two_differ_by_two_or_none_could_take_from_another(wanted, held, even):
    members = {member: partitions(text) for member, text in wanted.items()}
    lists = {member: partitions(text) for member, text in held.items()}
    group = StickyGroup(members, {}, lists, {}, {}, Choices(), undoes=True, ranked=set(members))
    assert _even(group) is even


@pytest.mark.parametrize(("held", "lowered"), [(1, False), (2, True)])
def test_a_search_for_rings_ends_with_the_round_that_lowers_no_price(held, lowered):
    """Giving up a partition pays only for a member that has more of a class than it came with."""
    rings = Rings([Cell(kind=0, member=0, held=held, came_with=1)], 1, [held])
    assert rings._relax(rings._levels(), [0] * 3, [None] * 3) is lowered


@pytest.mark.parametrize(("first", "owner"), [(-2, "b"), (0, "a"), (None, "a")])
def test_a_claim_without_a_generation_is_of_generation_minus_one(first, owner):
    """`b` states none: it wins against an older claim alone, as `a` joined before it."""
    members = []
    for member, generation in (("a", first), ("b", None)):
        said = UserData(UserDataForm.OWNED_GENERATION, (("t", (0,)),), generation)
        members.append(Member(member, ("t",), user_data=encode_user_data(said)))
    (plan,) = aiokafka_sticky(Group(tuple(members), {"t": 2}), None)
    assert plan.lists[owner] == (TopicPartition("t", 0),)


def test_a_javascript_object_has_its_array_indices_first():
    """An index is below 2**32 - 1 and written without signs or leading zeros (ECMA-262, `OrdinaryOwnPropertyKeys`)."""
    names = ["b", "4294967295", "10", "9", "4294967294", "01", "-1", "a"]
    assert _as_keys(names) == ["9", "10", "4294967294", "b", "4294967295", "01", "-1", "a"]


@pytest.mark.parametrize(
    ("members", "partitions", "runs"), [(1, 998, 501), (500, 499, 501), (0, 10**6, 1), (0, 0, MOST_RUNS)]
)
def test_a_larger_group_is_run_less_often(members, partitions, runs):
    """Half a million members and partitions in all runs, and one run more: a thousand may be gone through 501 times."""
    group = Group(tuple(Member(f"m{at}", ("t",)) for at in range(members)), {"t": partitions})
    assert most_runs(group) == runs
