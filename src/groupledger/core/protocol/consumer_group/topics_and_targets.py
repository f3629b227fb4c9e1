"""The topics of a simulated cluster by name and by id: a topic that is deleted and made again is another topic."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.arrays.ragged import part
from groupledger.core.assignors.server.server_batch import assign, failure
from groupledger.core.assignors.server.server_group import (
    UUID_BYTES,
    ServerGroup,
    Topic,
    TopicId,
    TopicIdNumbers,
    encode,
)
from groupledger.core.assignors.server.simple import SIMPLE, assign_simple
from groupledger.core.assignors.server.tasks import MemberTasks, Task, TaskGroup, assign_tasks
from groupledger.core.custom.custom_group import TopicPartition


class TopicIdPartition(NamedTuple):
    """A partition as the coordinator and its members name it."""

    topic_id: TopicId
    number: int


TopicIdPartitionSet = frozenset[TopicIdPartition]
NO_PARTITIONS: TopicIdPartitionSet = frozenset()


def flat(record: Iterable[tuple[TopicId, Iterable[int]]]) -> TopicIdPartitionSet:
    """Partitions of a record, in which they stand under topic ids."""
    return frozenset(TopicIdPartition(topic_id, number) for topic_id, numbers in record for number in numbers)


@dataclass(slots=True)
class TopicTable:
    """Topics that exist, and the names of all that did.

    `known_ids`: ids that topics had in reality, in order; others are made from the name and its number. They decide
    ties of the assignor `uniform`, as in Kafka. `created` counts topics that were made.
    """

    living: dict[str, Topic] = field(default_factory=dict)
    known_ids: Mapping[str, Sequence[TopicId]] = field(default_factory=dict)
    created: int = 0
    _names: dict[TopicId, str] = field(default_factory=dict)
    _made: Counter[str] = field(default_factory=Counter)

    def become(self, counts: Mapping[str, int]) -> None:
        """Have these topics, and no others."""
        for name in self.living.keys() - counts.keys():
            self.delete(name)
        for name, count in counts.items():
            self.set_partitions(name, count)

    @property
    def counts(self) -> dict[str, int]:
        """Partition counts by name."""
        return {name: topic.partitions for name, topic in self.living.items()}

    def set_partitions(self, name: str, count: int) -> None:
        """Make a topic, or give it another number of partitions."""
        if name not in self.living:
            self.created += 1
            self._made[name] += 1
        topic_id = self.living[name].topic_id if name in self.living else self._new_id(name)
        self._names[topic_id] = name
        self.living[name] = Topic(topic_id, count)

    def delete(self, name: str) -> None:
        """Delete a topic, if it exists."""
        self.living.pop(name, None)

    def named(self, partitions: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Partitions by name, sorted; a topic keeps its name when it is gone."""
        return tuple(sorted({TopicPartition(self._names[topic_id], number) for topic_id, number in partitions}))

    def identified(self, partitions: Iterable[TopicPartition]) -> TopicIdPartitionSet:
        """Partitions of existing topics by id; others are left out."""
        found = ((self.living.get(each.topic), each.partition) for each in partitions)
        return frozenset(TopicIdPartition(topic.topic_id, number) for topic, number in found if topic is not None)

    def ids(self, names: Iterable[str]) -> frozenset[TopicId]:
        """Ids of those of the topics that exist."""
        return frozenset(self.living[name].topic_id for name in names if name in self.living)

    def _new_id(self, name: str) -> TopicId:
        number = self._made[name]
        known = self.known_ids.get(name, ())
        if number <= len(known):
            return known[number - 1]
        return TopicId(hashlib.sha256(f"{name}#{number}".encode("utf-8", "surrogatepass")).digest()[:UUID_BYTES])


# The target assignment of a group: what its coordinator asks the server-side assignor, for many at once.


class ServerQuestion(NamedTuple):
    """A group before its next assignment, and the assignor that most of its members ask for."""

    assignor: str
    group: ServerGroup | TaskGroup


class Targets(NamedTuple):
    """The new target of each member, in the order of its record; `failure` is what the assignor threw."""

    of: Mapping[str, TopicIdNumbers]
    failure: str | None = None


def find_targets(questions: Sequence[ServerQuestion]) -> list[Targets]:
    """One answer for each question; assignors of consumer groups are called once for all groups that use them."""
    answers: dict[int, Targets] = {}
    batches: dict[str, dict[int, ServerGroup]] = {}
    for place, (assignor, group) in enumerate(questions):
        if isinstance(group, TaskGroup):
            answers[place] = Targets({each: as_record(target) for each, target in assign_tasks(group).items()})
        elif assignor == SIMPLE:
            answers[place] = Targets(assign_simple(group))
        else:
            batches.setdefault(assignor, {})[place] = group
    for assignor, groups in sorted(batches.items()):
        answers |= dict(zip(groups, _assign(assignor, list(groups.values())), strict=True))
    return [answers[place] for place in range(len(questions))]


def _assign(assignor: str, groups: Sequence[ServerGroup]) -> list[Targets]:
    batch, _ = encode(groups)
    result = assign(assignor, batch)
    found, member = [], 0
    for at, group in enumerate(groups):
        thrown = failure(batch, result, at)
        ids = [topic.topic_id for _, topic in sorted(group.topics.items())]
        targets: dict[str, TopicIdNumbers] = {}
        for each in group.members:
            mine = part(result.assigned.start, member)
            topics, numbers = result.assigned.topic[mine].tolist(), result.assigned.partition[mine].tolist()
            targets[each.member_id] = _record(ids, topics, numbers)
            member += 1
        found.append(Targets({} if thrown else targets, thrown))
    return found


def _record(ids: Sequence[TopicId], topics: Sequence[int], numbers: Sequence[int]) -> TopicIdNumbers:
    """Partitions under their topics, in the order in which the assignor has them."""
    record: list[tuple[TopicId, list[int]]] = []
    for topic, number in zip(topics, numbers, strict=True):
        if not record or record[-1][0] != ids[topic]:
            record.append((ids[topic], []))
        record[-1][1].append(number)
    return tuple((topic_id, tuple(some)) for topic_id, some in record)


# Tasks of a Streams group in the form in which coordinators and members name partitions: an id, and a number.
#
# The id stands for a subtopology and a role, so that the active task and a standby task of one number are two things.

_ACTIVE, _STANDBY = b"a", b"s"


def active(task: Task) -> TopicIdPartition:
    """Return the active task."""
    return TopicIdPartition(TopicId(_ACTIVE + task.subtopology.encode("utf-8", "surrogatepass")), task.number)


def standby(task: Task) -> TopicIdPartition:
    """Return a standby task."""
    return TopicIdPartition(TopicId(_STANDBY + task.subtopology.encode("utf-8", "surrogatepass")), task.number)


def is_standby(named: TopicIdPartition) -> bool:
    """Whether it is a standby task."""
    return named.topic_id.startswith(_STANDBY)


def task_of(named: TopicIdPartition) -> Task:
    """Which task it is, in whatever role."""
    return Task(named.topic_id[1:].decode("utf-8", "surrogatepass"), named.number)


def other_role(named: TopicIdPartition) -> TopicIdPartition:
    """Return the same task in the other role."""
    return active(task_of(named)) if is_standby(named) else standby(task_of(named))


def by_role(named: Iterable[TopicIdPartition]) -> MemberTasks:
    """Tasks by role, sorted."""
    some = list(named)
    return MemberTasks(
        tuple(sorted(task_of(each) for each in some if not is_standby(each))),
        tuple(sorted(task_of(each) for each in some if is_standby(each))),
    )


def as_record(target: MemberTasks) -> TopicIdNumbers:
    """Return a target in the form in which groups keep targets."""
    numbers: dict[TopicId, list[int]] = {}
    for each in (*map(active, target.active), *map(standby, target.standby)):
        numbers.setdefault(each.topic_id, []).append(each.number)
    return tuple((task_id, tuple(some)) for task_id, some in numbers.items())


def as_pairs(tasks: Iterable[Task]) -> tuple[TopicPartition, ...]:
    """Tasks as a result shows them: subtopology and number."""
    return tuple(TopicPartition(*each) for each in tasks)
