"""The lower bound on moves against every balanced assignment of small groups, tried one by one."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core import ragged, step
from groupledger.core.slots import Lists, Naming, Topics, number
from groupledger.core.step import Keepable, Party

TopicPartition = tuple[int, int]


@dataclass(frozen=True)
class Holding:
    """One group: partitions of each topic, and of each member its topics and the partitions it held."""

    topics: tuple[int, ...]
    subscribed: tuple[frozenset[int], ...]
    held: tuple[frozenset[TopicPartition], ...]

    @property
    def partitions(self) -> list[TopicPartition]:
        """Those that somebody subscribes to."""
        wanted = frozenset().union(*self.subscribed)
        return [
            (topic, number) for topic, count in enumerate(self.topics) for number in range(count) if topic in wanted
        ]

    @property
    def is_exact(self) -> bool:
        claimed = [*chain(*self.held)]
        return len(set(self.subscribed)) == 1 and len(claimed) == len(set(claimed))


def bound(group: Holding, *, known: bool = True) -> int:
    wanted = frozenset().union(*group.subscribed)
    topics = Topics(
        np.zeros(len(group.topics), np.int64),
        np.array(group.topics, np.int32),
        np.zeros(len(group.topics), bool),
        np.array([topic in wanted for topic in range(len(group.topics))]),
    )
    entries = [(member, *each) for member, held in enumerate(group.held) for each in sorted(held)]
    member, topic, partition = (np.array([entry[at] for entry in entries], np.int64) for at in range(3))
    slots, (slot,) = number(topics, [Naming(topic, partition.astype(np.int32))])
    held = Lists(ragged.starts(np.array([len(each) for each in group.held])), slot)
    keepable = Keepable(
        np.array([at in group.subscribed[who] for who, at in zip(member, topic, strict=True)], bool),
        np.array([sum(at in each for each in group.subscribed) for at in range(len(group.topics))]),
        np.array([len(set(group.subscribed)) == 1]),
        np.array([known]),
    )
    return int(step.least_moves(Party(np.array([0, len(group.held)]), np.array([True])), slots, held, keepable)[0])


def is_balanced(group: Holding, owner: dict[TopicPartition, int]) -> bool:
    load = [sum(who == member for who in owner.values()) for member in range(len(group.held))]
    return all(
        load[owner[topic, number]] - load[other] <= 1
        for topic, number in owner
        for other in range(len(load))
        if topic in group.subscribed[other]
    )


def least(group: Holding) -> int:
    """The fewest moves of any balanced assignment, by trying all."""
    held = frozenset().union(*group.held)
    choices = [[who for who, names in enumerate(group.subscribed) if topic in names] for topic, _ in group.partitions]
    owners = (dict(zip(group.partitions, each, strict=True)) for each in product(*choices))
    return min(
        sum(each in held and each not in group.held[who] for each, who in owner.items())
        for owner in owners
        if is_balanced(group, owner)
    )


def one_topic(*loads: int, count: int) -> Holding:
    first = ragged.starts(np.array(loads))
    held = tuple(frozenset((0, at) for at in range(a, b)) for a, b in pairwise(first))
    return Holding((count,), (frozenset({0}),) * len(loads), held)


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
    assert bound(one_topic(*loads, count=count)) == expected


ALL = frozenset((0, at) for at in range(4))
BOTH = frozenset({0, 1})


def test_partitions_that_two_members_claim_may_stay_with_either():
    assert bound(Holding((4,), (frozenset({0}),) * 2, (ALL, ALL))) == 0


def test_subscriptions_that_differ():
    """Whoever alone subscribes to a topic keeps all of it; what its holder does not subscribe to has to go."""
    six = frozenset((0, at) for at in range(6))
    assert bound(Holding((4, 2), (frozenset({0}), BOTH), (ALL, frozenset({(1, 0), (1, 1)})))) == 1
    assert bound(Holding((6,), (frozenset({0}), frozenset()), (six, frozenset()))) == 0
    assert bound(Holding((6, 1), (frozenset({0}), frozenset({1})), (frozenset(), six | {(1, 0)}))) == 6


def test_where_the_size_of_a_topic_is_not_known_there_is_no_bound():
    assert bound(one_topic(7, 0, count=7), known=False) == step.UNBOUNDED


@st.composite
def holdings(draw) -> Holding:
    topics = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3).filter(lambda each: sum(each) <= 6)))
    names = st.frozensets(st.integers(0, len(topics) - 1))
    members = draw(st.integers(1, 3))
    everybody = draw(st.none() | names)
    subscribed = tuple(draw(names) if everybody is None else everybody for _ in range(members))
    every = [
        (topic, at) for topic, count in enumerate(topics) for at in range(count + 1)
    ]  # one that does not exist too
    if draw(st.booleans()):
        owner = [draw(st.integers(-1, members - 1)) for _ in every]
        return Holding(
            topics,
            subscribed,
            tuple(frozenset(each for each, who in zip(every, owner, strict=True) if who == m) for m in range(members)),
        )
    return Holding(topics, subscribed, tuple(draw(st.frozensets(st.sampled_from(every))) for _ in range(members)))


@settings(max_examples=600, deadline=None)
@given(holdings())
def test_it_is_never_above_the_least_and_equal_where_it_is_called_exact(group):
    found, fewest = bound(group), least(group)
    assert 0 <= found <= fewest
    if group.is_exact:
        assert found == fewest
