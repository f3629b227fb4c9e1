"""One step of a Streams group's member: recorded pairs of Kafka's own CurrentAssignmentBuilder, and cases by name."""

from collections import Counter

import pytest

from groupledger.core.assignors.server.tasks import Task
from groupledger.core.protocol.consumer_group.consumer_state import GroupMember, MemberState
from groupledger.core.protocol.consumer_group.streams_group import advance_tasks
from groupledger.core.protocol.consumer_group.topics_and_targets import active, by_role, other_role, standby, task_of
from tests.core.assignors.golden import gold
from tests.core.protocol.task_steps import solve_step


def test_all_recorded_steps_are_equal():
    recorded = gold("task-steps")
    assert len(recorded) == 1_000
    for pair in recorded:
        assert solve_step(pair["step"]) == pair["result"], pair["step"]


def test_the_recorded_steps_are_of_many_kinds():
    recorded = gold("task-steps")
    states = Counter((pair["step"]["member"]["state"], pair["result"]["state"]) for pair in recorded)
    assert len(states) == 9, "from each state to each"
    assert min(states.values()) > 5
    changed = Counter(kind for pair in recorded for kind in changes_of_role(pair))
    assert min(changed["promoted"], changed["waits to be promoted"], changed["demoted"]) > 20, changed


def changes_of_role(pair):
    """What became of tasks that change their role in the member."""
    before, target, after = pair["step"]["member"]["assigned"], pair["step"]["target"], pair["result"]["assigned"]
    had = {role: {tuple(each[:2]) for each in before[role]} for role in before}
    has = {role: {tuple(each[:2]) for each in after[role]} for role in after}
    for each in had["standby"] & {tuple(task) for task in target["active"]}:
        yield "promoted" if each in has["active"] else "waits to be promoted"
    yield from ["demoted"] * len(had["active"] & {tuple(task) for task in target["standby"]} & has["standby"])


ZERO = Task("0", 0)


def member(name, process, epoch=2, state=MemberState.STABLE, assigned=(), pending=()):
    return GroupMember(
        name,
        name,
        process_id=process,
        epoch=epoch,
        state=state,
        assigned=dict.fromkeys(assigned, 2),
        pending=dict.fromkeys(pending, 2),
    )


def step(mine, target, *others, owned=frozenset(), epoch=3):
    now = advance_tasks(mine, epoch, frozenset(target), owned, [mine, *others])
    return now.state.value.removesuffix("_PARTITIONS"), now.epoch, set(now.assigned), set(now.pending)


@pytest.mark.parametrize("process", ["p", "q"])
def test_an_active_task_waits_for_its_holder_wherever_that_is(process):
    holder = member("b", process, pending=[active(ZERO)])
    assert step(member("a", "p"), [active(ZERO)], holder) == ("UNRELEASED", 3, set(), set())
    assert step(member("a", "p"), [active(ZERO)], member("b", process)) == ("STABLE", 3, {active(ZERO)}, set())


@pytest.mark.parametrize(("process", "state"), [("p", "UNRELEASED"), ("q", "STABLE")])
@pytest.mark.parametrize("held", [active, standby])
def test_a_standby_task_waits_for_its_own_process_alone(process, state, held):
    holder = member("b", process, assigned=[held(ZERO)])
    given = {standby(ZERO)} if state == "STABLE" else set()
    assert step(member("a", "p"), [standby(ZERO)], holder) == (state, 3, given, set())


def test_an_active_task_waits_for_a_standby_of_another_member_of_its_process():
    holder = member("b", "p", assigned=[standby(ZERO)])
    assert step(member("a", "p"), [active(ZERO)], holder)[0] == "UNRELEASED"
    mine = member("a", "p", assigned=[standby(ZERO)])
    assert step(mine, [active(ZERO)]) == ("STABLE", 3, {active(ZERO)}, set())


def test_an_active_task_becomes_a_standby_while_it_is_given_up():
    mine = member("a", "p", assigned=[active(ZERO)])
    assert step(mine, [standby(ZERO)], owned=None) == ("UNREVOKED", 2, {standby(ZERO)}, {active(ZERO)})


def test_who_has_to_revoke_again_is_one_epoch_further():
    first, second = active(ZERO), active(Task("0", 1))
    mine = member("a", "p", state=MemberState.UNREVOKED_PARTITIONS, assigned=[second], pending=[first])
    assert step(mine, [], owned=None) == ("UNREVOKED", 2, {second}, {first})
    assert step(mine, [], owned=frozenset({second}), epoch=4) == ("UNREVOKED", 3, set(), {second})


def test_roles_and_names_of_tasks():
    odd = Task("caf\u00e9\ud800", 3)
    assert task_of(active(odd)) == task_of(standby(odd)) == odd
    assert other_role(other_role(active(odd))) == active(odd)
    assert by_role([standby(odd), active(ZERO)]) == ((ZERO,), (odd,))
