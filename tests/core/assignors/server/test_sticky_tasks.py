"""Streams groups: every recorded pair of Kafka's own `sticky` task assignor, and what the assignor promises."""

from collections import Counter

import pytest

from groupledger.core.assignors.server.tasks import (
    MemberTasks,
    SubtopologyTasks,
    Task,
    TaskGroup,
    TaskMember,
    assign_tasks,
)
from groupledger.core.faults import Fault
from groupledger.core.scenarios.solving import read_tasks, solve_server_group
from tests.core.assignors.golden import gold
from tests.core.assignors.server.task_scenarios import task_chains


def test_all_recorded_targets_are_equal():
    """Targets are compared as sets by role: Kafka sorts a target's tasks before it writes its record."""
    recorded = gold("server-sticky")
    assert len(recorded) > 300
    for pair in recorded:
        assert solve_server_group(pair["scenario"]) == pair["result"], pair["scenario"]["id"]


def test_the_recorded_groups_are_of_many_kinds():
    groups = [read_tasks(pair["scenario"]) for pair in gold("server-sticky")]
    standby = [each for each in groups if each.standby_replicas]
    threads = [max(Counter(one.process_id for one in each.members).values()) for each in groups]
    assert len(standby) > 100
    assert sum(each > 1 for each in threads) > 100
    assert sum(any(one.offsets for one in each.members) for each in groups) > 30
    assert sum(each.joining is not None for each in groups) > 100
    assert sum(-1 in (each.changes or ()) for each in groups) > 100


def group(members, tasks, replicas=0, held=None):
    """Members as `name@process`, a stateful subtopology 0."""
    split = [each.split("@") for each in members]
    had = held or {}
    seated = tuple(TaskMember(name, process, had.get(name, MemberTasks())) for name, process in split)
    return TaskGroup(seated, {"0": SubtopologyTasks(tasks, stateful=True)}, replicas)


def numbers(tasks):
    return [each.number for each in tasks]


def test_tasks_stay_and_the_rest_goes_to_who_has_less():
    first = assign_tasks(group(["a@p"], 4))
    assert numbers(first["a"].active) == [0, 1, 2, 3]
    then = assign_tasks(group(["a@p", "b@q"], 4, held=first))
    assert {name: numbers(target.active) for name, target in then.items()} == {"a": [0, 1], "b": [2, 3]}


def test_processes_count_and_not_members_alone():
    """A process of three threads gets three times what a process of one gets."""
    found = assign_tasks(group(["a@p", "b@p", "c@p", "d@q"], 4))
    assert {name: len(target.active) for name, target in found.items()} == dict.fromkeys("abcd", 1)
    found = assign_tasks(group(["a@p", "b@p", "c@p", "d@q"], 8))
    assert sum(len(found[name].active) for name in "abc") == 6


def test_a_standby_task_is_never_on_the_process_of_its_active_one():
    found = assign_tasks(group(["a@p", "b@p", "c@q"], 6, replicas=2))
    of_process = {"p": [*found["a"].active, *found["b"].active], "q": list(found["c"].active)}
    standby = {"p": [*found["a"].standby, *found["b"].standby], "q": list(found["c"].standby)}
    assert sorted(standby["p"]) == sorted(of_process["q"])
    assert sorted(standby["q"]) == sorted(of_process["p"])


def test_a_group_of_one_process_has_no_standby_tasks():
    found = assign_tasks(group(["a@p", "b@p"], 4, replicas=1))
    assert [target.standby for target in found.values()] == [(), ()]


def test_the_holder_of_the_standby_takes_over():
    held = {
        "b": MemberTasks(standby=(Task("0", 2), Task("0", 3))),
        "c": MemberTasks(standby=(Task("0", 0), Task("0", 1))),
    }
    found = assign_tasks(group(["b@q", "c@r"], 4, replicas=1, held=held))
    assert {name: numbers(target.active) for name, target in found.items()} == {"b": [2, 3], "c": [0, 1]}
    assert {name: numbers(target.standby) for name, target in found.items()} == {"b": [0, 1], "c": [2, 3]}


@pytest.mark.parametrize("seed", range(4))
def test_every_task_is_active_once_and_no_process_has_it_twice(seed):
    for scenario in task_chains(seed + 100, 20, rounds=3):
        group = read_tasks(scenario)
        found = assign_tasks(group)
        active = [task for target in found.values() for task in target.active]
        tasks = [Task(name, at) for name, of in group.subtopologies.items() for at in range(of.tasks)]
        assert sorted(active) == sorted(tasks)
        process = {each.member_id: each.process_id for each in group.members}
        had = Counter(
            (process[name], task) for name, target in found.items() for task in {*target.active, *target.standby}
        )
        assert set(had.values()) <= {1}, scenario["id"]


def test_a_group_without_members_has_no_targets():
    assert assign_tasks(group([], 4)) == {}


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"subtopologies": None}, "subtopologies is nothing; expected an object"),
        ({"subtopologies": {"0": {}}}, "subtopologies.0.tasks is nothing"),
        ({"subtopologies": {"0": {"tasks": 1, "stateful": "yes"}}}, "subtopologies.0.stateful is 'yes'"),
        ({"standby_replicas": -1}, "standby_replicas is -1"),
        ({"members": [{"id": "a"}]}, "members.0.process_id is nothing; expected a text"),
        ({"members": [{"id": "a", "process_id": "p"}] * 2}, "the id 'a' twice"),
        ({"members": [{"id": "a", "process_id": "p", "active": [["0"]]}]}, "expected [subtopology, number]"),
        ({"members": [{"id": "a", "process_id": "p", "offsets": [["0", 1]]}]}, "[subtopology, number, offset]"),
        ({"joining": "x"}, "joining is 'x'; expected the id of a member"),
    ],
)
def test_a_malformed_scenario_says_where(change, complaint):
    fine = {"assignor": "server-sticky", "subtopologies": {"0": {"tasks": 2}}, "members": []}
    with pytest.raises(Fault) as told:
        solve_server_group({**fine, **change})
    assert told.value.code == "BAD_SCENARIO"
    assert complaint in told.value.message
