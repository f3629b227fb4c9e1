"""Represent a Streams group (KIP-1071) as a task assignor sees it: members of processes, and tasks to assign."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.faults import Fault
from groupledger.core.input_codes import ScenarioCode


class Task(NamedTuple):
    """One task: Kafka writes it `subtopology_number`."""

    subtopology: str
    number: int


class SubtopologyTasks(NamedTuple):
    """How many tasks a subtopology has; stateful ones have a changelog, and so may have standby tasks."""

    tasks: int
    stateful: bool = False


class MemberTasks(NamedTuple):
    """Tasks of one member by role, each list sorted."""

    active: tuple[Task, ...] = ()
    standby: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True)
class TaskMember:
    """A member before the assignment: one thread of a process. `held`: its current assignment, not its target.

    `offsets`: of tasks whose state is on its disk, the sum of changelog offsets that it reported.
    """

    member_id: str
    process_id: str
    held: MemberTasks = field(default_factory=MemberTasks)
    offsets: Mapping[Task, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskGroup:
    """A group before its new assignment; `members`, `changes` and `joining` as in `group.ServerGroup`.

    Fault BAD_GROUP for a group that cannot exist.
    """

    members: tuple[TaskMember, ...]
    subtopologies: Mapping[str, SubtopologyTasks]
    standby_replicas: int = 0
    changes: tuple[int, ...] | None = None
    joining: str | None = None

    def __post_init__(self) -> None:
        """Check what the result could not report later."""
        _require(self.standby_replicas >= 0, f"standby_replicas is {self.standby_replicas}", "0 or more")
        for name, of in self.subtopologies.items():
            _require(of.tasks >= 0, f"subtopology {name!r} has {of.tasks} tasks", "0 or more")


def _require(fine: bool, what: str, expected: str) -> None:
    if not fine:
        raise Fault(ScenarioCode.BAD_GROUP, f"{what}; expected {expected}: correct the group or leave it out")
