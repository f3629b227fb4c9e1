"""Solve a Streams group given as one JSON scenario, for `solve` with `server-sticky`.

The format is that of `tests/data/parity/README.md`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from groupledger.core.assignors.server.sticky_tasks import assign_tasks
from groupledger.core.assignors.server.task_group import MemberTasks, SubtopologyTasks, Task, TaskGroup, TaskMember
from groupledger.core.scenario_form import require_task_form


def solve_tasks(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's result: the active and the standby tasks of each member, sorted.

    Raises Fault if the scenario is malformed.
    """
    require_task_form(scenario)
    targets = assign_tasks(read_tasks(scenario))
    return {
        "id": scenario.get("id"),
        "active": {member_id: _pairs(target.active) for member_id, target in targets.items()},
        "standby": {member_id: _pairs(target.standby) for member_id, target in targets.items()},
    }


def read_tasks(scenario: Mapping[str, Any]) -> TaskGroup:
    """Return the group that a scenario describes."""
    history = scenario.get("history")
    return TaskGroup(
        tuple(_member(each) for each in scenario["members"]),
        {
            name: SubtopologyTasks(fact["tasks"], fact.get("stateful", False))
            for name, fact in scenario["subtopologies"].items()
        },
        scenario.get("standby_replicas", 0),
        changes=None if history is None else tuple(int(change) for _, change in history),
        joining=scenario.get("joining"),
    )


def _member(member: Mapping[str, Any]) -> TaskMember:
    held = MemberTasks(_tasks(member.get("active")), _tasks(member.get("standby")))
    offsets = {Task(name, number): offset for name, number, offset in member.get("offsets") or ()}
    return TaskMember(member["id"], member["process_id"], held, offsets)


def _tasks(pairs: Iterable[tuple[str, int]] | None) -> tuple[Task, ...]:
    return tuple(sorted({Task(name, number) for name, number in pairs or ()}))


def _pairs(tasks: Iterable[Task]) -> list[list[Any]]:
    return [list(each) for each in tasks]
