"""Whole groups in Arrow: the answer of `solve`, whatever lists members share and however the rows are sliced."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.assignors import ASSIGNORS, Status
from groupledger.core.scenario import solve
from groupledger.engine.arrow_groups import ANSWERS, GROUPS, assign_groups
from tests.core.assignors.groups import scenarios

KAFKAS = ("range", "roundrobin", "cooperative-sticky")


def row(scenario, shared=None):
    """One row; members that subscribe to just `shared` leave it to the group."""
    members = [
        {
            "member_id": member["id"],
            "group_instance_id": member["instance_id"],
            "generation": None if member["generation"] < 0 else member["generation"],
            "topics": None if member["topics"] == shared else member["topics"],
            "claimed": [{"topic": topic, "partitions": [number]} for topic, number in member["owned"]],
        }
        for member in scenario["members"]
    ]
    listing = [{"topic": topic, "partitions": count} for topic, count in scenario["topics"].items()]
    return {"subscription": shared, "topics": listing, "members": members}


def plain(answer):
    """An answer row as `solve` tells it; None for a failure."""
    if answer["status"] != Status.OK:
        return None
    return {
        member["member_id"]: [
            [owned["topic"], number] for owned in member["assigned"] for number in owned["partitions"]
        ]
        for member in answer["members"]
    }


def rows(groups):
    return pa.Table.from_pylist(groups, schema=GROUPS)


@pytest.mark.parametrize("name", KAFKAS)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_batch_of_groups_is_answered_as_each_scenario_is(name, data):
    found = data.draw(st.lists(scenarios(name), min_size=1, max_size=4))
    for scenario in found:
        for at, member in enumerate(scenario["members"]):
            member["instance_id"] = data.draw(st.sampled_from([None, f"static-{at}"]))
    shared = [data.draw(st.sampled_from([None, scenario["members"][0]["topics"]])) for scenario in found]
    answers = assign_groups(name, rows([row(*each) for each in zip(found, shared, strict=True)]))
    assert answers.schema == ANSWERS
    assert [plain(each) for each in answers.to_pylist()] == [solve(each).get("assignment") for each in found]


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
def test_no_groups_and_groups_without_members_have_answers(name):
    nobody: dict[str, object] = {"subscription": None, "topics": [], "members": []}
    assert assign_groups(name, rows([])).to_pylist() == []
    assert [each["members"] for each in assign_groups(name, rows([nobody, nobody])).to_pylist()] == [[], []]


def test_a_slice_of_a_table_is_a_table():
    member = {"member_id": "a", "group_instance_id": None, "generation": 1, "topics": ["t"], "claimed": []}
    groups = [
        {"subscription": None, "topics": [{"topic": "t", "partitions": n}], "members": [member]} for n in range(5)
    ]
    answers = assign_groups("range", rows(groups).slice(2, 2)).to_pylist()
    assert [plain(each) for each in answers] == [{"a": [["t", 0], ["t", 1]]}, {"a": [["t", 0], ["t", 1], ["t", 2]]}]


def test_a_topic_is_named_once_for_the_partitions_that_follow_one_another():
    listing = [{"topic": "t", "partitions": 2}, {"topic": "u", "partitions": 2}]
    members = [
        {"member_id": name, "group_instance_id": None, "generation": 1, "topics": ["t", "u"], "claimed": []}
        for name in "ab"
    ]
    for count, expected in ((1, {"t": [0, 1], "u": [0, 1]}), (2, {"t": [0], "u": [0]})):
        group = {"subscription": None, "topics": listing, "members": members[:count]}
        [answer] = assign_groups("range", rows([group])).to_pylist()
        first = answer["members"][0]["assigned"]
        assert first == [{"topic": topic, "partitions": numbers} for topic, numbers in expected.items()]
