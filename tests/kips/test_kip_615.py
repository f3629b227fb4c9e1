"""KIP-615, statement by statement: the numbers are those of docs/contributing/kips.md."""

from __future__ import annotations

import pytest

from groupledger.core.protocol.compatibility import COOPERATIVE, EAGER, SUPPORTED
from groupledger.core.scenarios.solving import solve
from tests.core.assignors.test_kip615 import NAME, answers, scenario, t


def target(partitions, owned, generation=1):
    return answers(scenario({"t": partitions}, owned, generation))[0]


def test_kip_615_1_its_name_is_constrained_cooperative_sticky():
    assert NAME == "constrained-cooperative-sticky"
    assert "assignment" in solve(scenario({"t": 1}, {"a": []}))


def test_kip_615_2_it_supports_both_protocols():
    assert set(SUPPORTED[NAME]) == {COOPERATIVE, EAGER}


def test_kip_615_3_subscriptions_that_differ_are_for_another_assignor():
    mixed = scenario({"t": 1, "u": 1}, {"a": [], "b": []}, subscribed={"a": ["t"], "b": ["u"]})
    assert "use cooperative-sticky instead" in solve(mixed)["error"]


@pytest.mark.parametrize("partitions", range(12))
def test_kip_615_4_loads_are_the_floor_or_the_ceiling(partitions):
    sizes = [len(each) for each in target(partitions, {"a": [], "b": t(0, 1, 2), "c": t(4)}).values()]
    assert set(sizes) <= {partitions // 3, -(-partitions // 3)}
    assert sum(sizes) == partitions


def test_kip_615_5_the_same_assignment_comes_again_when_nothing_changed():
    first = target(7, {"a": t(1, 2), "b": t(0, 5), "c": []})
    assert target(7, first) == first


def test_kip_615_6_partitions_in_transfer_are_left_out_until_revoked():
    wanted, given = answers(scenario({"t": 4}, {"a": t(0, 1, 2, 3), "b": []}))
    assert (wanted["b"], given["b"]) == (t(2, 3), [])
    assert answers(scenario({"t": 4}, given))[1]["b"] == t(2, 3)


@pytest.mark.parametrize("left", ["s", "u"])
def test_kip_615_7_claims_outside_the_subscription_count_for_nothing(left):
    owned = {"a": [(left, 1)], "b": [("t", 0)]}
    outside = scenario({"t": 2, left: 2}, owned, subscribed={"a": ["t"], "b": ["t"]})
    assert answers(outside)[0] == {"a": t(1), "b": t(0)}
    nothing_left = scenario({"t": 2, left: 2}, {"a": [(left, 1)], "b": []}, subscribed={"a": ["t"], "b": ["t"]})
    assert answers(nothing_left)[0] == {"a": t(0), "b": t(1)}


def test_kip_615_8_claims_of_an_old_generation_count_for_nothing():
    assert target(4, {"old": t(0, 1), "new": t(2)}, {"old": 3, "new": 4})["new"][0] == ("t", 2)
    assert target(2, {"old": t(0), "new": t(0)}, {"old": 3, "new": 4}) == {"new": t(0), "old": t(1)}


def test_kip_615_9_below_the_floor_everything_owned_is_kept():
    assert target(6, {"a": t(5), "b": []})["a"][0] == ("t", 5)


def test_kip_615_10_at_the_floor_exactly_that_is_kept():
    assert target(4, {"a": t(2, 3), "b": []})["a"] == t(2, 3)


def test_kip_615_11_above_the_floor_as_many_as_the_ceiling_are_kept():
    assert target(5, {"a": t(0, 1, 2, 3, 4), "b": []})["a"] == t(0, 1, 2)


def test_kip_615_12_what_is_left_is_dealt_partition_by_partition():
    dealt = answers(scenario({"t0": 2, "t1": 1, "t2": 2}, {"a": []}))[0]["a"]
    assert dealt == [("t0", 0), ("t1", 0), ("t2", 0), ("t0", 1), ("t2", 1)]


def test_kip_615_13_unfilled_members_are_filled_by_member_id():
    assert target(4, {"b": [], "a": []}) == {"a": t(0, 1), "b": t(2, 3)}


def test_kip_615_14_if_partitions_run_out_the_first_at_the_ceiling_gives_one():
    assert target(7, {"a": t(0, 1, 2), "b": t(3, 4, 5), "c": t(6)}) == {"a": t(0, 1), "b": t(3, 4, 5), "c": t(6, 2)}


def test_kip_615_15_if_members_run_out_the_rest_goes_one_to_each():
    assert sorted(map(len, target(8, {"a": [], "b": [], "c": []}).values())) == [2, 3, 3]
