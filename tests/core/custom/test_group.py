"""What custom assignors are helped with: overlaps of claims (KIP-792), the cooperative step (KIP-429)."""

from __future__ import annotations

import pytest

from groupledger.core.custom import Group, Member, Overlap, TopicPartition, cooperative_step, validate_subscription

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def member(name, owned=(), generation=None):
    return Member(name, ("t",), tuple(owned), generation)


@pytest.mark.parametrize(
    ("members", "overlaps"),
    [
        ([], ()),
        ([member("A", [T0], 4), member("B", [T1], 4)], ()),
        ([member("A", [T0, T0], 4)], ()),
        ([member("A", [T0], 4), member("B", [T0], 5)], (Overlap(T0, ("A", "B"), "B"),)),
        ([member("B", [T0], 5), member("A", [T0], 5)], (Overlap(T0, ("A", "B"), None),)),
        ([member("A", [T0]), member("B", [T0], 0)], (Overlap(T0, ("A", "B"), "B"),)),
        (
            [member("A", [T1, T0], 1), member("B", [T0, T1], 1), member("C", [T0], 2)],
            (Overlap(T0, ("A", "B", "C"), "C"), Overlap(T1, ("A", "B"), None)),
        ),
    ],
)
def test_overlaps_of_owned_partitions(members, overlaps):
    assert validate_subscription(members) == overlaps
    assert validate_subscription(members[::-1]) == overlaps


@pytest.mark.parametrize(
    ("owned", "target", "assigned"),
    [
        ({"A": [T0, T1]}, {"A": [T0], "B": [T1]}, {"A": (T0,), "B": ()}),
        ({"A": [T0]}, {"A": [T0], "B": [T1]}, {"A": (T0,), "B": (T1,)}),
        ({"A": [T0], "B": [T0]}, {"B": [T0]}, {"B": (T0,)}),
        ({}, {"B": iter([T0])}, {"B": (T0,)}),
    ],
)
def test_nothing_is_handed_over_before_it_is_revoked(owned, target, assigned):
    group = Group((member("A", owned.get("A", ())), member("B", owned.get("B", ()))), {"t": 2})
    answer = cooperative_step(group, target)
    assert answer.assigned == assigned
    assert set(answer.target) == set(target)


def test_partitions_of_a_members_topics_in_order():
    group = Group((Member("A", ("u", "t", "gone")), member("B")), {"t": 2, "u": 1})
    assert list(group.partitions("A")) == [("t", 0), ("t", 1), ("u", 0)]
    assert list(group.partitions("nobody")) == []
