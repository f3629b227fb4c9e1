"""Tasks of a Streams group, and the topic partitions that its active tasks read (KIP-1071).

Task p of a subtopology reads partition p of each of its source topics that has a partition p. The topology names the
source topics but not their partition counts, so a topic that no listing counts is taken only where p must be there:
it is the subtopology's one source, or all its sources have as many partitions as one another.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from groupledger.core.history.rows import Assignment, Tasks, TopicNames
from groupledger.core.wire.offsets_log import (
    CurrentTaskIds,
    StreamsCurrentAssignment,
    StreamsTargetMember,
    StreamsTopology,
    Subtopology,
    TaskIds,
)

if TYPE_CHECKING:
    from groupledger.core.history.topics import TopicHistory

ACTIVE, STANDBY, WARMUP = "active", "standby", "warmup"
ASSIGNED, PENDING, TARGET = "assigned", "pending-revocation", "target"


class Topology(NamedTuple):
    """What a Streams group reads; `sources`: the topics of each subtopology, those that the broker makes last."""

    raw: bytes
    value: StreamsTopology
    sources: dict[str, TopicNames]

    @property
    def topics(self) -> TopicNames:
        """All topics that it reads and names."""
        return tuple(dict.fromkeys(topic for topics in self.sources.values() for topic in topics))


def read_topology(raw: bytes, value: StreamsTopology) -> Topology:
    """A topology record."""
    return Topology(raw, value, {each.subtopology_id: tuple(_counts(each)) for each in value.subtopologies})


def target_tasks(value: StreamsTargetMember) -> Tasks:
    """The tasks that a member is to get."""
    by_role = {ACTIVE: value.active, STANDBY: value.standby, WARMUP: value.warmup}
    return tuple(entry for role, tasks in by_role.items() for entry in _entries(role, TARGET, tasks))


def current_tasks(value: StreamsCurrentAssignment) -> Tasks:
    """The tasks that a member has, and those that it must give up."""
    has = {ACTIVE: value.active, STANDBY: value.standby, WARMUP: value.warmup}
    gives_up = {ACTIVE: value.active_pending, STANDBY: value.standby_pending, WARMUP: value.warmup_pending}
    return tuple(
        entry
        for state, by_role in ((ASSIGNED, has), (PENDING, gives_up))
        for role, tasks in by_role.items()
        for entry in _entries(role, state, tasks)
    )


def task_set(tasks: Tasks) -> set[tuple[str, str, int]]:
    """(role, subtopology, number) of each task, without their order or state."""
    return {(role, subtopology, number) for role, _, subtopology, numbers in tasks for number in numbers}


def partitions_of(
    tasks: Tasks, state: str, topology: Topology | None, topics: TopicHistory, timestamp_ms: int
) -> Assignment:
    """The topic partitions that the active tasks of this state read, as far as they are known; see the module."""
    if topology is None:
        return ()
    read: dict[str, list[int]] = {}
    for subtopology in topology.value.subtopologies:
        numbers = [
            number
            for role, own, name, listed in tasks
            if (role, own, name) == (ACTIVE, state, subtopology.subtopology_id)
            for number in listed
        ]
        alike = has_equal_sources(subtopology)
        for topic, enforced in _counts(subtopology).items():
            count = _count(topic, enforced, topics, timestamp_ms)
            there = numbers if count is None and alike else [each for each in numbers if each < (count or 0)]
            read.setdefault(topic, []).extend(there)
    return tuple(
        (topics.id_as_of(topic, timestamp_ms), topic, tuple(dict.fromkeys(numbers)))
        for topic, numbers in read.items()
        if numbers
    )


def has_equal_sources(subtopology: Subtopology) -> bool:
    """Whether each source topic has a partition for each task, whatever the counts are."""
    regexes = len(subtopology.source_topic_regex)
    if len(_counts(subtopology)) == 1 and not regexes:
        return True
    everything = len(subtopology.source_topics), regexes, len(subtopology.repartition_source_topics)
    return any(
        (len(set(each.source_topics)), len(set(each.source_topic_regex)), len(set(each.repartition_source_topics)))
        == everything
        for each in subtopology.copartition_groups
    )


def unresolved(topology: Topology, topics: TopicHistory, timestamp_ms: int) -> Iterator[str]:
    """In words, what its subtopologies read that the log and the listings of that time do not tell."""
    for subtopology in topology.value.subtopologies:
        if subtopology.source_topic_regex:
            yield f"topics that match {', '.join(map(repr, subtopology.source_topic_regex))}"
        if not has_equal_sources(subtopology):
            for topic, enforced in _counts(subtopology).items():
                if _count(topic, enforced, topics, timestamp_ms) is None:
                    yield f"the partitions of {topic}"


def _entries(role: str, state: str, tasks: Iterable[TaskIds | CurrentTaskIds]) -> Tasks:
    return tuple((role, state, each.subtopology_id, each.partitions) for each in tasks)


def _counts(subtopology: Subtopology) -> dict[str, int]:
    """Source topic -> the partition count that the topology enforces; 0: it enforces none."""
    internal = {each.name: each.partitions for each in subtopology.repartition_source_topics}
    return {**dict.fromkeys(subtopology.source_topics, 0), **internal}


def _count(topic: str, enforced: int, topics: TopicHistory, timestamp_ms: int) -> int | None:
    listed = topics.as_of(topic, timestamp_ms)
    return listed[1] if listed is not None else enforced or None
