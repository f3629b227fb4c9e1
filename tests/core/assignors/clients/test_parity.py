"""List for list what other client libraries answer; where they have several answers, each recorded one is reached."""

from __future__ import annotations

import pytest

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS, promises
from groupledger.core.assignors.clients.client_plan import known_topics
from groupledger.core.scenarios.form import group_of
from tests.core.assignors.clients.golden import PARITY, pairs, recorded

UNORDERED = {"sarama-sticky", "sarama-cooperative-sticky", "kafka-go-rack-affinity"}
SEVERAL = {name for name, each in CLIENT_ASSIGNORS.items() if each.promise is not promises.nothing} - UNORDERED
SAMPLE = 5
STEPS = [pytest.param(SAMPLE, id="a sample"), pytest.param(1, id="all", marks=pytest.mark.parity)]
FRANZ_GO = {"franz-go-sticky", "franz-go-cooperative-sticky"}
ONE_ANSWER = set(CLIENT_ASSIGNORS) - UNORDERED - SEVERAL
MOST_MISSED = 0.03
"""Share of franz-go's groups with so many double claims that not all ways are tried."""
LIBRDKAFKA_DIFFERS = {"conflict-1-19"}
"""Several claims to a partition at several generations; of one more group librdkafka itself dies."""


def plans(name, scenario):
    return CLIENT_ASSIGNORS[name].plans(group_of(scenario), scenario.get("leader"))


def as_answered(scenario, plan):
    ids = [member["id"] for member in scenario["members"]]
    told = {"error": plan.failure} if plan.failure else {}
    lists = {} if plan.failure else {member: [list(pair) for pair in plan.lists.get(member, ())] for member in ids}
    absent = [] if plan.failure else sorted(set(ids) - set(plan.lists))
    return told, lists, absent


def difference(name, scenario, result):
    (plan,) = plans(name, scenario)
    result = as_leader_sends(name, scenario, result)
    told = {"error": result["error"]} if "error" in result else {}
    expected = told, result.get("assignment", {}), sorted(result.get("absent", ()))
    return as_answered(scenario, plan) != expected


def as_leader_sends(name, scenario, result):
    """librdkafka's assignors were asked without their leader, which leaves out members that name no topic."""
    if CLIENT_ASSIGNORS[name].library != "librdkafka":
        return result
    left_out = [member["id"] for member in scenario["members"] if not member["topics"]]
    if "error" in result and name != "librdkafka-cooperative-sticky":
        return {"assignment": {member: [] for member in left_out}, "absent": left_out}
    return result if "error" in result else result | {"absent": left_out}


def test_every_file_has_its_assignor():
    files = {path.name.removesuffix(".jsonl.gz").removesuffix("assigner") for path in PARITY.glob("*.gz")}
    assert files == set(CLIENT_ASSIGNORS)


@pytest.mark.parametrize("name", sorted(ONE_ANSWER - {"librdkafka-cooperative-sticky"}))
def test_one_answer_is_the_library_s_list_for_list(name):
    assert [scenario["id"] for scenario, result in pairs(name) if difference(name, scenario, result)] == []


@pytest.mark.parametrize("step", STEPS)
def test_librdkafka_cooperative_sticky_is_the_library_s_but_for_one_group(step):
    name = "librdkafka-cooperative-sticky"
    differing = {
        scenario["id"]
        for scenario, result in pairs(name, step)
        if not result.get("error", "").startswith("crash") and difference(name, scenario, result)
    }
    assert differing <= LIBRDKAFKA_DIFFERS


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", sorted(SEVERAL - FRANZ_GO))
def test_python_s_sticky_reaches_every_recorded_answer(name, step):
    for scenario, result in pairs(name, step):
        possible = plans(name, scenario)
        reached = [plan.lists for plan in possible]
        assert [answer for answer in recorded(result) if answer not in reached] == [], scenario["id"]
        assert not possible.cut
        assert len(reached) > 1 or result["distinct"] == 1, scenario["id"]


@pytest.mark.parametrize(
    ("step", "topics"), [pytest.param(SAMPLE, 3, id="a sample"), pytest.param(1, 5, id="all", marks=pytest.mark.parity)]
)
@pytest.mark.parametrize("name", sorted(FRANZ_GO))
def test_franz_go_s_sticky_reaches_every_recorded_answer_of_few_topics(name, step, topics):
    few = [pair for pair in pairs(name) if len(known_topics(group_of(pair[0]))) <= topics]
    assert len(few) > 100
    missed = 0
    for scenario, result in few[::step]:
        possible = plans(name, scenario)
        reached = [plan.lists for plan in possible]
        lacking = [answer for answer in recorded(result) if answer not in reached]
        assert not lacking or possible.cut, scenario["id"]
        missed += bool(lacking)
    assert missed <= MOST_MISSED * len(few) / step


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", sorted(UNORDERED))
def test_what_is_left_to_chance_keeps_the_promise(name, step):
    promise = CLIENT_ASSIGNORS[name].promise
    broken = [
        scenario["id"]
        for scenario, result in pairs(name, step)
        if "error" not in result
        for answer in recorded(result)
        if not promise(group_of(scenario), answer)
    ]
    assert broken == []


@pytest.mark.parametrize("name", sorted(UNORDERED))
def test_a_partition_given_twice_or_left_out_breaks_the_promise(name):
    scenario, result = next(pair for pair in pairs(name) if any(pair[1].get("assignment", {}).values()))
    group, promise = group_of(scenario), CLIENT_ASSIGNORS[name].promise
    answer = next(recorded(result))
    holder = next(member for member, mine in answer.items() if mine)
    assert not promise(group, answer | {holder: answer[holder] + answer[holder][:1]})
    claimed = {each for member in group.members for each in member.owned}
    free = [(member, each) for member, mine in answer.items() for each in mine if each not in claimed]
    for member, each in free[:1]:
        assert not promise(group, answer | {member: tuple(other for other in answer[member] if other != each)})
