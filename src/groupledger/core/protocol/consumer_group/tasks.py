"""Tasks of a Streams group in the form in which coordinators and members name partitions: an id, and a number.

The id stands for a subtopology and a role, so that the active task and a standby task of one number are two things.
"""

from __future__ import annotations

from collections.abc import Iterable

from groupledger.core.assignors.server.group import TopicId, TopicIdNumbers
from groupledger.core.assignors.server.task_group import MemberTasks, Task
from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.consumer_group.topic_table import TopicIdPartition

_ACTIVE, _STANDBY = b"a", b"s"


def active(task: Task) -> TopicIdPartition:
    """The active task."""
    return TopicIdPartition(TopicId(_ACTIVE + task.subtopology.encode("utf-8", "surrogatepass")), task.number)


def standby(task: Task) -> TopicIdPartition:
    """A standby task."""
    return TopicIdPartition(TopicId(_STANDBY + task.subtopology.encode("utf-8", "surrogatepass")), task.number)


def is_standby(named: TopicIdPartition) -> bool:
    """Whether it is a standby task."""
    return named.topic_id.startswith(_STANDBY)


def task_of(named: TopicIdPartition) -> Task:
    """Which task it is, in whatever role."""
    return Task(named.topic_id[1:].decode("utf-8", "surrogatepass"), named.number)


def other_role(named: TopicIdPartition) -> TopicIdPartition:
    """The same task in the other role."""
    return active(task_of(named)) if is_standby(named) else standby(task_of(named))


def by_role(named: Iterable[TopicIdPartition]) -> MemberTasks:
    """Tasks by role, sorted."""
    some = list(named)
    return MemberTasks(
        tuple(sorted(task_of(each) for each in some if not is_standby(each))),
        tuple(sorted(task_of(each) for each in some if is_standby(each))),
    )


def as_record(target: MemberTasks) -> TopicIdNumbers:
    """A target in the form in which groups keep targets."""
    numbers: dict[TopicId, list[int]] = {}
    for each in (*map(active, target.active), *map(standby, target.standby)):
        numbers.setdefault(each.topic_id, []).append(each.number)
    return tuple((task_id, tuple(some)) for task_id, some in numbers.items())


def as_pairs(tasks: Iterable[Task]) -> tuple[TopicPartition, ...]:
    """Tasks as a result shows them: subtopology and number."""
    return tuple(TopicPartition(*each) for each in tasks)
