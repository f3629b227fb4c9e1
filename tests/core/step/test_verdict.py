"""Recorded against recomputed: what is equal, at which moment of the topics, and which rules a record breaks."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE
from groupledger.core.arrays.ragged import MemberSlots, Naming, Slots, Topics, number
from groupledger.core.arrays.snapshots import GREATEST, LEAST, Subscribed, TopicViews, by_topic, number_topics, select
from groupledger.core.rebalance.step import GroupMembership
from groupledger.core.rebalance.verdict import Verdict, breaches, compare, other_moments, without_unrecorded
from tests.core.step.batches import batch
from tests.examples import examples

COUNTS = np.array([4, 3])
"""Two topics of one group."""


def slots() -> Slots:
    topics = Topics(np.zeros(2, np.int64), COUNTS, np.zeros(2, bool), np.ones(2, bool))
    return number(topics, [Naming(np.zeros(0, np.int64), np.zeros(0, np.int32))])[0]


def lists(*members: list[int]) -> MemberSlots:
    return MemberSlots(ragged.starts(np.array([len(each) for each in members])), np.array([*chain(*members)], np.int64))


def party(members: int) -> GroupMembership:
    return GroupMembership(np.array([0, members]), np.array([True]))


@pytest.mark.parametrize(
    ("recorded", "answer", "exact", "equal"),
    [
        (([0, 1], [4]), ([0, 1], [4]), True, True),
        (([1, 0], [4]), ([0, 1], [4]), False, True),
        (([0, 4], [5]), ([4, 0], [5]), True, True),
        (([0], [4]), ([0, 1], [4]), False, False),
        (([0, 1], [4]), ([0], [4]), False, False),
        (([0], [1]), ([1], [0]), False, False),
        (([0, 1], [1]), ([0, 1], []), False, False),
        (([], []), ([], []), True, True),
    ],
    ids=["same", "order in a topic", "order of topics", "less", "more", "swapped", "twice", "nothing"],
)
def test_compare(recorded, answer, exact, equal):
    found = compare(party(2), slots(), lists(*recorded), lists(*answer))
    assert (bool(found.exact[0]), bool(found.equal[0])) == (exact, equal)


def subscribed(members: list[list[int]]) -> Subscribed:
    return Subscribed(batch([members], [2]))


Member = tuple[list[int], list[int]]
BREACHES: dict[str, tuple[Member, Member, list[list[int]]]] = {
    "assigned_twice": (([0, 1, 2, 3], [3, 4, 5, 6]), ([], []), [[0, 1], [0, 1]]),
    "not_subscribed": (([0, 1, 2, 3, 4], [5, 6]), ([], []), [[0], [0, 1]]),
    "left_out": (([0, 1], [2, 4, 5, 6]), ([], []), [[0, 1], [0, 1]]),
    "handed_over": (([0, 1], [2, 3, 4, 5, 6]), ([2], []), [[0, 1], [0, 1]]),
}


@pytest.mark.parametrize("name", BREACHES)
def test_each_rule_is_seen_and_seen_alone(name):
    recorded, owned, topics = BREACHES[name]
    found = breaches(slots(), subscribed(topics), lists(*owned), lists(*recorded))
    assert {field: len(each.topic) for field, each in found._asdict().items() if len(each.topic)} == {name: 1}
    assert found.groups(np.zeros(2, np.int64), 1).tolist() == [True]


def test_what_is_withheld_or_unknown_as_a_whole_is_no_breach():
    """Partition 3 is owned by the second member, so it waits; of the second topic nothing was given at all."""
    found = breaches(slots(), subscribed([[0, 1], [0, 1]]), lists([], [3]), lists([0, 1], [2]))
    assert found.groups(np.zeros(2, np.int64), 1).tolist() == [False]


def views(**changes: list[int]) -> TopicViews:
    base = {
        "now": [4, 3], "before": [2, NONE], "before_that": [1, NONE], "after": [6, NONE],
        "changed": [20, 10], "changed_before": [15, LEAST], "changed_after": [30, GREATEST],
    } | changes  # fmt: skip
    return TopicViews(**{name: np.array(values) for name, values in base.items()}, gone=np.zeros(2, bool))


@pytest.mark.parametrize(
    ("changes", "older", "oldest", "newer"),
    [
        ({}, [2, 3], [1, 3], [6, 3]),
        ({"changed": [20, 20]}, [2, NONE], [1, NONE], [6, 3]),
        ({"changed_before": [5, LEAST]}, [2, 3], [2, NONE], [6, 3]),
        ({"changed": [LEAST, LEAST], "changed_before": [LEAST, LEAST]}, [4, 3], [4, 3], [6, 3]),
        ({"changed_after": [GREATEST, GREATEST]}, [2, 3], [1, 3], [4, 3]),
    ],
    ids=["one topic twice", "both at once", "one after the other", "never changed", "nothing follows"],
)
def test_moments_around_a_snapshot(changes, older, oldest, newer):
    found = other_moments(views(**changes), np.zeros(2, np.int64), np.ones(2, bool), 1)
    assert [each.tolist() for each in found] == [older, oldest, newer]


def test_topics_of_which_nothing_was_recorded():
    assert without_unrecorded(COUNTS, slots(), lists([0], [1])).tolist() == [4, NONE]


def test_verdicts_read_as_words():
    texts = [each.text for each in Verdict]
    assert len(set(texts)) == len(texts)
    assert {"exact", "equal-sets", "topic-unknown-to-leader", "valid-different", "rewrite"} <= set(texts)
    assert all(text.startswith("cannot-tell: ") for text in texts if "cannot" in text)


GROUPS = st.lists(st.lists(st.lists(st.integers(0, 2), max_size=4), max_size=4), min_size=1, max_size=4)


@settings(max_examples=examples(100), deadline=None)
@given(GROUPS)
def test_subscriptions_as_masks(groups):
    made = batch(groups, [3] * len(groups))
    found = Subscribed(made)
    member = 0
    for index, group in enumerate(groups):
        for topics in group:
            rows = np.arange(3) + 3 * index
            assert found.names(np.full(3, member), rows).tolist() == [topic in topics for topic in range(3)]
            member += 1
        assert found.any()[3 * index : 3 * index + 3].tolist() == [
            any(topic in topics for topics in group) for topic in range(3)
        ]
        assert found.equal()[index] == (len({frozenset(topics) for topics in group}) <= 1)


@settings(max_examples=examples(100), deadline=None)
@given(GROUPS, st.randoms(use_true_random=False))
def test_a_selection_is_the_batch_of_those_groups(groups, dice):
    chosen = dice.sample(range(len(groups)), dice.randint(0, len(groups)))
    taken, member, topic = select(batch(groups, [3] * len(groups)), np.array(chosen, np.int64))
    alone = batch([groups[index] for index in chosen], [3] * len(chosen))
    assert taken.member_start.tolist() == alone.member_start.tolist()
    assert topic.tolist() == [3 * index + local for index in chosen for local in range(3)]
    assert len(member) == taken.members
    lists_of = [
        each.subscription_topic[each.subscription_start[s] : each.subscription_start[s + 1]].tolist()
        for each in (taken, alone)
        for s in each.member_subscription
    ]
    assert lists_of[: len(lists_of) // 2] == lists_of[len(lists_of) // 2 :]


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.lists(st.integers(0, 4), max_size=8), max_size=4))
def test_lists_stand_topic_by_topic(members):
    start = ragged.starts(np.array([len(each) for each in members], np.int64))
    topic = np.array([*chain(*members)], np.int64)
    order = np.empty(len(topic), np.int64)
    place = np.full(5, NONE)
    by_topic(start, topic, np.zeros(0, np.int32), place, order)
    assert (place == NONE).all()
    expected = []
    for low, each in zip(start, members, strict=False):
        first = {value: each.index(value) for value in each}
        expected += [int(low) + at for at in sorted(range(len(each)), key=lambda at: (first[each[at]], at))]
    assert order.tolist() == expected


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(*[st.lists(st.integers(0, 3), max_size=4)] * 2), min_size=1, max_size=4))
def test_topics_are_numbered_group_by_group(groups):
    """Two lists a group, back to back as list by list: each distinct topic of a group gets one row."""
    parts = [[group[which] for group in groups] for which in (0, 1)]
    sizes = [ragged.starts(np.array([len(each) for each in part])) for part in parts]
    start = np.stack([sizes[0], sizes[1] + sizes[0][-1]])
    code = np.array([*chain(*parts[0]), *chain(*parts[1])], np.int32)
    row, topic_code = np.empty(len(code), np.int64), np.empty(len(code), np.int32)
    count = number_topics(start, code, np.full(4, NONE, np.int32), np.zeros(4, np.int64), row, topic_code)
    assert topic_code[:count][row].tolist() == code.tolist()
    for index, group in enumerate(groups):
        rows = {int(each) for which in (0, 1) for each in row[start[which, index] : start[which, index + 1]]}
        assert len(rows) == len({*group[0], *group[1]})
    assert count == sum(len({*one, *other}) for one, other in groups)
