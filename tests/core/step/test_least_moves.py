"""The least moves against every balanced assignment of small groups, tried one by one."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from itertools import chain, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.arrays import ragged
from groupledger.core.arrays.ragged import MemberSlots, Naming, Topics, number
from groupledger.core.arrays.snapshots import Subscribed
from groupledger.core.rebalance import least_moves as moves
from groupledger.core.rebalance.least_moves import (
    Class,
    LeastMoves,
    LeastMovesCertainty,
    MoveProblem,
    Moving,
    SharedHolding,
    fewest_rounds,
    is_balanced,
    least_moves,
    most_kept,
    search,
)
from groupledger.core.rebalance.step import GroupMembership
from tests.core.step.batches import batch

EXAMPLES = int(os.environ.get("GROUPLEDGER_EXAMPLES", "100"))

TopicPartition = tuple[int, int]
Owned = tuple[frozenset[TopicPartition], ...]


@dataclass(frozen=True)
class Group:
    """Partitions of each topic, and of each member its topics, the partitions it held and those it is to have."""

    topics: tuple[int, ...]
    subscribed: tuple[frozenset[int], ...]
    held: Owned
    target: Owned = ()

    @property
    def partitions(self) -> list[TopicPartition]:
        """Those that somebody subscribes to."""
        wanted = frozenset().union(*self.subscribed)
        return [(topic, at) for topic, count in enumerate(self.topics) for at in range(count) if topic in wanted]


def moving(groups: list[Group], **unanswered: list[bool]) -> tuple[Moving, MemberSlots]:
    """All groups in one batch, and their targets."""
    first_topic = ragged.starts(np.array([len(group.topics) for group in groups]))
    made = batch(
        [[sorted(names) for names in group.subscribed] for group in groups], [len(group.topics) for group in groups]
    )
    subscribed = Subscribed(made)
    topics = Topics(
        ragged.owners(first_topic),
        np.array([*chain(*(group.topics for group in groups))], np.int32),
        np.zeros(first_topic[-1], bool),
        subscribed.any(),
    )
    held = [sorted(each) for group in groups for each in group.held]
    target = [sorted(each) for group in groups for each in group.target or ((),) * len(group.held)]
    at = [first for group, first in zip(groups, first_topic, strict=False) for _ in group.held]
    namings = [
        Naming(
            np.array([first + topic for each, first in zip(lists, at, strict=True) for topic, _ in each], np.int64),
            np.array([partition for each in lists for _, partition in each], np.int32),
        )
        for lists in (held, target)
    ]
    slots, numbered = number(topics, namings)
    owned, wanted = (
        MemberSlots(ragged.starts(np.array([len(each) for each in lists])), slot)
        for lists, slot in zip((held, target), numbered, strict=True)
    )
    party = GroupMembership(made.member_start, np.ones(len(groups), bool))
    known = np.array(unanswered.get("known", [True] * len(groups)))
    rejected = np.array(unanswered.get("rejected", [False] * len(groups)))
    return Moving(party, slots, owned, subscribed, known, rejected), wanted


def found(*groups: Group, **unanswered: list[bool]) -> list[tuple[int, str]]:
    """Least moves and how certain, of each group."""
    answer = least_moves(*moving([*groups], **unanswered))
    return [
        (int(each), LeastMovesCertainty(sure).text) for each, sure in zip(answer.least, answer.certainty, strict=True)
    ]


def every_assignment(group: Group) -> np.ndarray:
    """Each way to give every partition to a subscriber: [ways, partitions] of members."""
    choices = [[who for who, names in enumerate(group.subscribed) if topic in names] for topic, _ in group.partitions]
    return np.array([*product(*choices)], np.int64).reshape(math.prod(map(len, choices)), len(choices))


def balanced_ways(group: Group) -> np.ndarray:
    """Of all assignments, those where nobody could take a partition from a member with two or more partitions more."""
    ways = every_assignment(group)
    load = (ways[:, :, None] == np.arange(len(group.subscribed))).sum(axis=1)
    fine = np.ones(len(ways), bool)
    for at, (topic, _) in enumerate(group.partitions):
        owner = load[np.arange(len(ways)), ways[:, at]]
        for other, names in enumerate(group.subscribed):
            if topic in names:
                fine &= owner - load[:, other] < 2
    return ways[fine]


def cost(group: Group, ways: np.ndarray) -> np.ndarray:
    """Partitions that somebody held and another has, of each way."""
    moved = np.zeros(len(ways), np.int64)
    for at, each in enumerate(group.partitions):
        holders = [who for who, held in enumerate(group.held) if each in held]
        moved += ~np.isin(ways[:, at], holders) & bool(holders)
    return moved


def least(group: Group) -> int:
    """The fewest moves of any balanced assignment, by trying all."""
    return int(cost(group, balanced_ways(group)).min())


def one_topic(*loads: int, count: int) -> Group:
    first = ragged.starts(np.array(loads))
    held = tuple(frozenset((0, at) for at in range(a, b)) for a, b in pairwise(first))
    return Group((count,), (frozenset({0}),) * len(loads), held)


@pytest.mark.parametrize(
    ("loads", "count", "expected"),
    [
        ((5, 2, 0), 7, 2),
        ((4, 3), 7, 0),
        ((7,), 7, 0),
        ((7, 0), 7, 3),
        ((0, 0), 7, 0),
        ((3, 3, 0), 7, 1),
        ((3, 3, 3), 9, 0),
    ],
)
def test_of_one_topic(loads, count, expected):
    assert found(one_topic(*loads, count=count)) == [(expected, "exact")]


ALL = frozenset((0, at) for at in range(4))
SIX = frozenset((0, at) for at in range(6))
NOTHING = frozenset()
FIRST, SECOND, BOTH = frozenset({0}), frozenset({1}), frozenset({0, 1})


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (Group((4,), (FIRST,) * 2, (ALL, ALL)), 0),
        (Group((4,), (FIRST,) * 3, (ALL, ALL, NOTHING)), 1),
        (Group((4, 2), (FIRST, BOTH), (ALL, frozenset({(1, 0), (1, 1)}))), 1),
        (Group((6,), (FIRST, NOTHING), (SIX, NOTHING)), 0),
        (Group((6, 1), (FIRST, SECOND), (NOTHING, SIX | {(1, 0)})), 6),
        (Group((4, 1), (FIRST, BOTH), (ALL, NOTHING)), 1),
        (Group((4, 1), (FIRST, BOTH), (frozenset({(0, 0)}), frozenset({(0, 1), (1, 0)}))), 0),
    ],
    ids=[
        "two claim all of it",
        "two claim all of it, a third has none",
        "only one may have the other topic",
        "a member subscribes to nothing",
        "the holder no longer subscribes",
        "the new topic has one subscriber",
        "a new topic lowers nobody's load",
    ],
)
def test_other_groups(group, expected):
    assert least(group) == expected
    assert found(group) == [(expected, "exact")]


def test_a_chain_of_small_steps_is_balanced_as_kip_54_says_it():
    """Loads 3, 2, 1: nobody can take a partition from somebody with two more, although a path of two moves could."""
    chained = Group(
        (3, 2, 1),
        (frozenset({0}), frozenset({0, 1}), frozenset({1, 2})),
        (
            frozenset({(0, 0), (0, 1), (0, 2)}),
            frozenset({(1, 0), (1, 1)}),
            frozenset({(2, 0)}),
        ),
    )
    assert found(chained) == [(0, "exact")]


def part(*numbers: int, topic: int = 0) -> frozenset[TopicPartition]:
    return frozenset((topic, at) for at in numbers)


@pytest.mark.parametrize(
    ("topics", "subscribed", "target", "expected"),
    [
        ((3,), (FIRST, FIRST), (part(0, 1), part(2)), True),
        ((4,), (FIRST, FIRST), (part(0, 1, 2), part(3)), False),
        ((3, 1), (FIRST, SECOND), (part(0, 1, 2), part(0, topic=1)), True),
        ((3, 1), (FIRST, BOTH), (part(0, 1, 2), part(0, topic=1)), False),
        ((3,), (FIRST, FIRST), (part(0), part(2)), False),
        ((3,), (FIRST, FIRST), (part(0, 1), part(1, 2)), False),
        ((1, 1), (FIRST, BOTH), (part(0, topic=1), part(0)), False),
        ((1,), (FIRST, FIRST), (part(0), part(1)), False),
    ],
    ids=[
        "one apart",
        "two apart",
        "two apart, but it does not subscribe",
        "two apart, and it does",
        "one left out",
        "one twice",
        "not to its subscriber",
        "one that does not exist",
    ],
)
def test_what_is_balanced(topics, subscribed, target, expected):
    group = Group(topics, subscribed, (NOTHING,) * len(subscribed), target)
    assert is_balanced(*moving([group])).tolist() == [expected]


def test_where_there_is_no_answer_it_says_why():
    group, nobody = one_topic(7, 0, count=7), Group((1,), (), ())
    assert found(
        group, group, nobody, group, known=[False, True, True, True], rejected=[False, False, False, True]
    ) == [
        (0, "not-applicable: topic-unknown"),
        (3, "exact"),
        (0, "not-applicable: no-members"),
        (0, "not-applicable: rejected"),
    ]


def test_the_fewest_rounds():
    """Only a group whose members keep what they own needs a second rebalance, and only where something moves."""
    exact, bound, nobody = LeastMovesCertainty.EXACT, LeastMovesCertainty.LOWER_BOUND, LeastMovesCertainty.NO_MEMBERS
    fewest = LeastMoves(np.array([0, 3, 3, 1, 0]), np.array([exact, exact, exact, bound, nobody], np.int32))
    assert fewest_rounds(np.array([True, True, False, True, True]), fewest).tolist() == [1, 2, 1, 2, 0]


def test_a_group_too_large_to_solve_has_a_lower_bound():
    """Each of 200 members has a topic of its own; one more subscribes to all of them and has nothing.

    It has one of three at least, or it would have two fewer than an owner: 1 must move, in truth 2.
    """
    own = tuple(frozenset({at}) for at in range(200))
    held = tuple(frozenset((at, partition) for partition in range(3)) for at in range(200))
    assert found(Group((3,) * 200, (*own, frozenset(range(200))), (*held, NOTHING))) == [(1, "lower-bound")]


def strayed(members: int) -> tuple[Group, Owned]:
    """Each member has a topic of its own, but the first holds what the second one subscribes to; and what is wanted."""
    target = tuple(frozenset({(at, 0)}) for at in range(members))
    held = (target[0] | target[1], NOTHING, *target[2:])
    return Group((1,) * members, tuple(frozenset({at}) for at in range(members)), held), target


def test_a_bound_is_exact_where_an_assignment_is_known_that_reaches_it():
    """Of 300 members the repair finds one; of 500 it is not asked, but the target is one."""
    assert found(strayed(300)[0]) == [(1, "exact")]
    group, target = strayed(500)
    assert found(group) == [(1, "lower-bound")]
    assert found(replace(group, target=target)) == [(1, "exact")]


def test_a_search_that_is_cut_short_proves_a_bound(monkeypatch):
    """With no node to search, what the solver proved until then counts."""
    problem = MoveProblem(
        (0, 0, 1, 1, 2),
        (Class(7, (0, 1)), Class(9, (1, 2)), Class(3, (0, 1, 2))),
        (SharedHolding(0, (0,), 7), SharedHolding(1, (2,), 9)),
    )
    whole = search.__wrapped__(problem)
    assert whole.found == whole.most
    monkeypatch.setattr(moves, "MOST_NODES", 0)
    cut = search.__wrapped__(problem)
    assert cut.found <= whole.most <= cut.most


@st.composite
def owners(draw, group: Group, every: list[TopicPartition]) -> Owned:
    """Each partition with nobody or one member, or with any members."""
    members = len(group.subscribed)
    if draw(st.booleans()):
        owner = [draw(st.integers(-1, members - 1)) for _ in every]
        return tuple(
            frozenset(each for each, who in zip(every, owner, strict=True) if who == m) for m in range(members)
        )
    return tuple(draw(st.frozensets(st.sampled_from(every))) for _ in range(members))


@st.composite
def drawn(draw) -> Group:
    topics = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(lambda each: sum(each) <= 6)))
    names = st.frozensets(st.integers(0, len(topics) - 1))
    members = draw(st.integers(1, 4))
    everybody = draw(st.none() | names)
    subscribed = tuple(draw(names) if everybody is None else everybody for _ in range(members))
    group = Group(topics, subscribed, ())
    every = [(topic, at) for topic, count in enumerate(topics) for at in range(count + 1)]  # one too many
    return Group(topics, subscribed, draw(owners(group, every)), draw(owners(group, every)))


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(drawn(), min_size=1, max_size=3), st.integers(0, 2**32 - 1))
def test_they_are_the_fewest_of_all_balanced_assignments(groups, which):
    """`which` chooses the target of the last group: a balanced one must not change the answer."""
    ways = balanced_ways(groups[-1])
    way = ways[which % len(ways)]
    last = groups[-1]
    target = tuple(
        frozenset(each for each, who in zip(last.partitions, way, strict=True) if who == member)
        for member in range(len(last.held))
    )
    steered = replace(last, target=target)
    assert is_balanced(*moving([steered])).all()
    assert found(*groups, steered) == [(least(group), "exact") for group in (*groups, last)]


@settings(max_examples=EXAMPLES, deadline=None)
@given(drawn())
def test_a_target_is_balanced_if_it_is_one_of_those(group):
    taken = {
        each: [who for who, had in enumerate(group.target) if each in had] for each in chain.from_iterable(group.target)
    }
    ways = {tuple(way.tolist()) for way in balanced_ways(group)}
    whole = set(taken) == set(group.partitions) and all(len(who) == 1 for who in taken.values())
    expected = whole and tuple(taken[each][0] for each in group.partitions) in ways
    assert is_balanced(*moving([group])).tolist() == [expected]


@st.composite
def problems(draw) -> MoveProblem:
    """Larger than what can be tried one by one."""
    kinds = sorted(draw(st.lists(st.integers(0, 2), min_size=2, max_size=7)))
    several = st.lists(st.sampled_from(sorted(set(kinds))), min_size=1, max_size=3, unique=True).map(sorted)
    classes, holdings = [], []
    for at in range(draw(st.integers(1, 4))):
        subscribed = tuple(draw(several))
        who = [member for member, kind in enumerate(kinds) if kind in subscribed]
        holders = draw(st.lists(st.lists(st.sampled_from(who), min_size=1, max_size=2, unique=True), max_size=4))
        held = [SharedHolding(at, tuple(sorted(each)), draw(st.integers(1, 6))) for each in holders]
        classes.append(Class(sum(each.partitions for each in held) + draw(st.integers(1, 5)), subscribed))
        holdings += held
    return MoveProblem(tuple(kinds), tuple(classes), tuple(holdings))


@settings(max_examples=max(EXAMPLES // 5, 1), deadline=None)
@given(problems())
def test_the_solver_finds_the_same_without_the_repair(problem):
    repaired = search.__wrapped__(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves, "kept_by_repair", lambda _: None)
        alone = search.__wrapped__(problem)
    assert repaired.found == repaired.most == alone.found == alone.most


@settings(max_examples=max(EXAMPLES // 5, 1), deadline=None)
@given(problems())
def test_the_bound_of_a_large_group_is_none_too_high(problem):
    solved = search.__wrapped__(problem)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(moves, "MOST_ARCS", 0)
        bounded = most_kept(problem)
    assert bounded.found <= solved.most <= bounded.most
