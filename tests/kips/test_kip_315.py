"""KIP-315, statement by statement: the numbers are those of docs/contributing/kips.md.

Consumer D leaves, as in its tables.
"""

from __future__ import annotations

import pytest

from groupledger.core.assignors.kip315 import JoinMemory, read_memory, remember, write_epoch, write_memory
from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e
from groupledger.core.protocol.compatibility import TABLE
from groupledger.core.protocol.simulator import Script, simulate
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.test_kip315 import BEFORE, BEYOND, NOT_SUBSCRIBED, join, numbers


def of(*members, **more):
    return solve(join({member: BEFORE.get(member) for member in members}, **more))


def test_kip_315_1_a_number_of_all_topics_goes_to_one_consumer():
    assignment = of("A", "B", "C", "D")["assignment"]
    assert {member: len(pairs) for member, pairs in assignment.items()} == {"A": 6, "B": 6, "C": 4, "D": 4}
    for pairs in assignment.values():
        by_topic = {topic: {number for name, number in pairs if name == topic} for topic, _ in pairs}
        assert by_topic.keys() == {"clicks", "impressions"}
        assert len({frozenset(each) for each in by_topic.values()}) == 1


def test_kip_315_2_when_d_leaves_only_what_it_owned_moves():
    after = numbers(of("A", "B", "C"))
    kept = {member: set(BEFORE[member][1]) for member in "ABC"}
    assert all(kept[member] <= set(after[member]) for member in "ABC")
    assert {each for member in "ABC" for each in set(after[member]) - kept[member]} == {8, 9}


def test_kip_315_3_it_is_an_assignor_one_can_choose():
    """By its name, in a group's configuration: its members then get what the KIP gives them, and range does not.

    Its user data has no version.
    """
    name = "sticky-stream-join"
    assert [row.user_data_version for row in TABLE if row.assignor == name] == [0]
    joins = [e.Join(member, ("clicks", "impressions"), (name,)) for member in "abcd"]
    settled = simulate(Script({"clicks": 10, "impressions": 10}, joins))
    assert [took.assignor for each in settled for took in each.rounds] == [name] * 4
    owners = settled[-1].owners
    assert len(owners) == 20
    assert all(owners["clicks", number] == owners["impressions", number] for number in range(10))
    first = join(dict.fromkeys("ABCD"))
    assert numbers(solve(first)) == {"A": (0, 4, 8), "B": (1, 5, 9), "C": (2, 6), "D": (3, 7)}
    assert numbers(solve(first | {"assignor": "range"}))["A"] == (0, 1, 2)
    with pytest.raises(Fault, match="sticky-stream-joins"):
        solve(first | {"assignor": "sticky-stream-joins"})


def test_kip_315_4_it_is_for_equal_subscriptions_and_partition_counts():
    """Only then is everything assigned."""
    result = of("A", "B")
    assert result["unassigned"] == []
    assert sum(map(len, result["assignment"].values())) == 20
    counts = solve(join({"A": None, "B": None}, topics={"t": 4, "u": 5}))
    assert counts["unassigned"] != []
    subscriptions = solve(
        join({"A": None, "B": None}, topics={"t": 4, "u": 4}, subscribed={"A": ["t", "u"], "B": ["t"]})
    )
    assert subscriptions["unassigned"] != []


def test_kip_315_5_violations_are_handled_until_they_are_over():
    growing = solve(join({"A": (4, (0, 1)), "B": (4, (2, 3))}, topics={"t": 4, "u": 6}))
    assert {tuple(each[:2]) for each in growing["unassigned"]} == {("u", 4), ("u", 5)}
    grown = solve(join({"A": (5, (0, 1)), "B": (5, (2, 3))}, topics={"t": 6, "u": 6}))
    assert grown["unassigned"] == []
    assert {member: set(each) >= {0, 1} for member, each in numbers(grown).items()} == {"A": True, "B": False}


def test_kip_315_6_the_least_partition_count_is_what_is_assigned():
    result = solve(join({"A": None, "B": None}, topics={"t": 2, "u": 5}))
    assert {number for pairs in result["assignment"].values() for _, number in pairs} == {0, 1}
    assert [each[2] for each in result["unassigned"]] == [BEYOND] * 3


def test_kip_315_7_the_previous_assignment_comes_from_the_user_data():
    assert numbers(of("A", "B", "C", "D")) == {member: had for member, (_, had) in BEFORE.items()}


def test_kip_315_8_a_consumer_remembers_its_numbers_and_the_epoch():
    assert remember([2, 0, 2], write_epoch(7)) == JoinMemory(7, (0, 2))
    assert read_memory(write_memory(JoinMemory(7, (0, 2)))) == JoinMemory(7, (0, 2))


def test_kip_315_9_only_eligible_numbers_count_as_owned_before():
    result = solve(join({"A": (4, (0, 9)), "B": (4, (1,))}, topics={"t": 2}))
    assert numbers(result) == {"A": (0,), "B": (1,)}


def test_kip_315_10_the_higher_epoch_owned_it():
    result = solve(join({"A": (3, (0,)), "B": (4, (0,))}, topics={"t": 2}))
    assert numbers(result) == {"A": (1,), "B": (0,)}


def test_kip_315_11_what_nobody_owned_is_unowned():
    result = solve(join({"A": (4, (0,)), "B": (4, (1,))}, topics={"t": 4}))
    assert {member: set(each) for member, each in numbers(result).items()} == {"A": {0, 2}, "B": {1, 3}}


def test_kip_315_12_who_owned_something_selects_first_and_it_stays_fair():
    result = numbers(solve(join({"A": None, "B": (4, (0, 1, 2, 3))}, topics={"t": 4})))
    assert sorted(map(len, result.values())) == [2, 2]
    assert set(result["B"]) <= {0, 1, 2, 3}


def test_kip_315_13_own_numbers_first_then_unowned_then_stolen_ones():
    result = numbers(solve(join({"A": (4, (0, 1, 2)), "B": (4, (3,)), "C": None}, topics={"t": 6})))
    assert result["A"] == (0, 1)
    assert result["B"][0] == 3
    assert len(result["C"]) == 2


def test_kip_315_14_stealing_begins_with_the_longest_list():
    result = numbers(solve(join({"A": (4, (0, 1, 2, 3)), "B": (4, (4, 5)), "C": None}, topics={"t": 6})))
    assert set(result["B"]) == {4, 5}
    assert set(result["C"]) < {0, 1, 2, 3}


def test_kip_315_15_numbers_become_partitions_of_all_subscribed_topics():
    assert of("A", "B", "C", "D")["assignment"]["D"] == [
        ["clicks", 8], ["impressions", 8], ["clicks", 9], ["impressions", 9],
    ]  # fmt: skip


def test_kip_315_16_a_topic_of_one_consumer_is_assigned_to_it_in_part():
    subscribed = {"A": ["clicks", "X"], "B": ["clicks"]}
    result = solve(join({"A": None, "B": None}, {"clicks": 4, "X": 4}, subscribed))
    mine = {number for topic, number in result["assignment"]["A"] if topic == "X"}
    assert len(mine) == 2
    assert {(topic, reason) for topic, _, reason in result["unassigned"]} == {("X", NOT_SUBSCRIBED)}


def test_kip_315_17_the_next_epoch_is_one_more_than_the_highest():
    assert solve(join({"A": (3, (0,)), "B": (9, (1,)), "C": None}))["epoch"] == 10


def test_kip_315_18_the_epoch_goes_out_in_the_assignments_user_data():
    assert remember([1], write_epoch(of("A")["epoch"])).epoch == 5
