"""Plain groups, done in fewer steps: the same lists as by the longer way, and whatever is odd takes that way."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.assignors import Path, assign, constrained, sticky
from groupledger.core.scenarios.form import encode
from tests.examples import examples

TOPICS = {"t0": 5, "t1": 1, "t10": 7, "none": 0}


class Plainly:
    """Assigns in the interpreter, and notes of each group whether it was plain."""

    def __init__(self, monkeypatch):
        monkeypatch.setenv("GROUPLEDGER_KERNELS", "python")
        self.monkeypatch = monkeypatch
        self.done = []

    def __call__(self, name, scenario, *, shortly=True):
        self.monkeypatch.setattr(sticky, "plain", self.watched if shortly else lambda *_: False)
        answer = assign(name, encode(scenario).batch)
        return (
            [
                column.tolist()
                for each in (answer.assigned, answer.target)
                for column in (each.start, each.topic, each.partition)
            ],
            answer.status.tolist(),
            answer.path.tolist(),
        )

    def watched(self, desk, group):
        self.done.append(constrained.plain(desk, group))
        return self.done[-1]


@pytest.fixture
def plainly(monkeypatch):
    return Plainly(monkeypatch)


def group(owned, topics=tuple(TOPICS), counts=None, **more):
    """A group of one subscription; `owned` by member id."""
    members = [
        {"id": name, "topics": list(topics), "owned": [list(each) for each in mine], "generation": 3, **more}
        for name, mine in owned.items()
    ]
    return {"id": "g", "assignor": "cooperative-sticky", "topics": counts or TOPICS, "members": members}


@st.composite
def agreeing(draw):
    """Claims that do not contradict one another, each member's in any order; some partitions are nobody's."""
    names = draw(st.lists(st.sampled_from(["a", "b", "B", "consumer-1", "consumer-10", "z"]), min_size=1, unique=True))
    owned = {name: [] for name in names}
    every = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
    for each in draw(st.permutations(every)):
        owner = draw(st.sampled_from([*names, names[0], None]))
        if owner is not None:
            owned[owner].append(each)
    if draw(st.booleans()):
        owned[names[0]].append(("unheard-of", 3))
    return group(owned, draw(st.permutations(list(TOPICS))))


@pytest.mark.parametrize("name", ["sticky", "cooperative-sticky"])
def test_a_plain_group_is_assigned_as_by_the_longer_way(name, plainly):
    @settings(max_examples=examples(100), deadline=None)
    @given(agreeing())
    def alike(scenario):
        assert plainly(name, scenario) == plainly(name, scenario, shortly=False)

    alike()
    assert len(plainly.done) >= 100
    assert all(plainly.done)


ODD = {
    "two claim the same": group({"a": [("t0", 0)], "b": [("t0", 0)]}),
    "one claims the same twice": group({"a": [("t0", 0), ("t0", 0)], "b": []}),
    "a partition that is not there": group({"a": [("t0", 5)], "b": []}),
    "a negative one": group({"a": [("t0", -1)], "b": []}),
    "of a topic without partitions, harmless": group({"a": [("none", 0)], "b": []}),
    "a topic is named twice": group({"a": [], "b": []}, ["t0", "t1", "t0"]),
    "no members": group({}),
    "many keep one more, and a hash map says who": group({"a": [("t0", 0)], "b": [("t0", 1)]}, ["t0"], {"t0": 3}),
}


@pytest.mark.parametrize("odd", ODD)
def test_what_is_odd_is_assigned_as_by_the_longer_way(odd, plainly):
    assert plainly("cooperative-sticky", ODD[odd]) == plainly("cooperative-sticky", ODD[odd], shortly=False)
    assert plainly.done == [odd.endswith(("harmless", "who"))]


@pytest.mark.parametrize("order", [["t1", "t0"], ["t0"], ["t0", "t10"]])
def test_lists_of_other_topics_or_another_order_are_not_plain(order, plainly):
    scenario = group({"a": [], "b": []}, ["t0", "t1"])
    scenario["members"][1]["topics"] = order
    _, _, path = plainly("cooperative-sticky", scenario)
    assert plainly.done == [False]
    assert path == [Path.CONSTRAINED if sorted(order) == ["t0", "t1"] else Path.GENERAL]


FREE = [0, 1, 31, 32, 63, 64, 65, 96, 99]
"""At the borders of words, and within: who is free is told by a bit each."""


@pytest.mark.parametrize("free", [*([each] for each in FREE), FREE, []])
def test_what_is_free_is_found_wherever_it_stands(free, plainly):
    held = [("t", number) for number in range(100) if number not in free]
    scenario = group({"a": held[::2], "b": held[1::2]}, ["t"], {"t": 100})
    assert plainly("cooperative-sticky", scenario) == plainly("cooperative-sticky", scenario, shortly=False)
    assert plainly.done == [True]


@pytest.mark.parametrize(("racks", "done"), [(["r1", "r2"], False), ([None, None], True)])
def test_racks_are_left_to_the_longer_way(racks, done, plainly):
    scenario = group({"a": [], "b": []}, ["t0"]) | {"racks": {"t0": [["r1"], ["r2"], ["r1"], ["r2"], ["r2"]]}}
    for each, rack in zip(scenario["members"], racks, strict=True):
        each["rack"] = rack
    plainly("cooperative-sticky", scenario)
    assert plainly.done == [done]


def test_what_others_must_give_back_is_withheld(plainly):
    lists, _, _ = plainly(
        "cooperative-sticky", group({"a": [("t0", at) for at in range(4)], "b": []}, ["t0"], {"t0": 4})
    )
    assigned, target = ([*pairwise(start)] for start in (lists[0], lists[3]))
    assert (assigned, target) == ([(0, 2), (2, 2)], [(0, 2), (2, 4)])
    assert lists[5] == [0, 1, 2, 3]
