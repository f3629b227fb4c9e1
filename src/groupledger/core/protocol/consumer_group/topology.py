"""The topology of a Streams group (KIP-1071), and what a coordinator makes of it for the topics there are.

A subtopology has as many tasks as the largest topic that it reads has partitions, and task n reads partition n of each.

Worked example: subtopology 0 reads `orders` (3 partitions) and writes the repartition topic `by-value`, which
subtopology 1 reads: `by-value` gets 3 partitions, so 1 has 3 tasks too, and each changelog of 1 has 3 partitions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.assignors.server.task_group import SubtopologyTasks, Task
from groupledger.core.custom.group import TopicPartition


@dataclass(frozen=True, slots=True)
class SubtopologyTopics:
    """The topics of one subtopology. It is stateful if it has changelog topics.

    `repartition_source_topics`: those it reads, with the partitions that it asks for; 0: as many as whoever writes it
    has tasks.
    """

    source_topics: tuple[str, ...] = ()
    repartition_source_topics: Mapping[str, int] = field(default_factory=dict)
    repartition_sink_topics: tuple[str, ...] = ()
    state_changelog_topics: tuple[str, ...] = ()

    @property
    def read(self) -> tuple[str, ...]:
        """Topics that its tasks read."""
        return (*self.source_topics, *self.repartition_source_topics)


Subtopologies = Mapping[str, SubtopologyTopics]
"""Subtopologies by id."""


class ConfiguredTopology(NamedTuple):
    """What a topology comes to. `status`: why it is not ready, in Kafka's words, and about which topics.

    `missing` are internal topics that the broker is to make, with their partitions.
    """

    tasks: Mapping[str, SubtopologyTasks]
    missing: Mapping[str, int]
    status: str | None = None

    @property
    def ready(self) -> bool:
        """Whether its tasks can be assigned."""
        return self.status is None


NOT_CONFIGURED = ConfiguredTopology({}, {}, "not configured yet")


def configure(topology: Subtopologies, counts: Mapping[str, int]) -> ConfiguredTopology:
    """How many tasks there are, with topics of these partition counts, and which internal topics are missing."""
    gone = sorted({topic for each in topology.values() for topic in each.source_topics if topic not in counts})
    if gone:
        return ConfiguredTopology({}, {}, f"MISSING_SOURCE_TOPICS: {', '.join(gone)}")
    internal = repartition_counts(topology, counts)
    known = {**internal, **counts}
    tasks = {}
    for name, each in topology.items():
        number = max((known[topic] for topic in each.read if topic in known), default=0)
        tasks[name] = SubtopologyTasks(number, bool(each.state_changelog_topics))
        internal.update(dict.fromkeys(each.state_changelog_topics, number))
    wanted = {topic for each in topology.values() for topic in (*each.read, *each.state_changelog_topics)}
    expected = {topic: count for topic, count in internal.items() if topic in wanted}
    wrong = [(topic, count) for topic, count in sorted(expected.items()) if counts.get(topic, count) != count]
    if wrong:
        told = ", ".join(f"{topic} has {counts[topic]:,} partitions, expected {count:,}" for topic, count in wrong)
        return ConfiguredTopology({}, {}, f"INCORRECTLY_PARTITIONED_TOPICS: {told}")
    missing = {topic: count for topic, count in sorted(expected.items()) if topic not in counts}
    return ConfiguredTopology(tasks, missing, f"MISSING_INTERNAL_TOPICS: {', '.join(missing)}" if missing else None)


def repartition_counts(topology: Subtopologies, counts: Mapping[str, int]) -> dict[str, int]:
    """Partitions of repartition topics; one that depends on itself alone, or that nobody writes, is left out."""
    found = {
        topic: count for each in topology.values() for topic, count in each.repartition_source_topics.items() if count
    }
    before = -1
    while before < len(found):
        before = len(found)
        for each in topology.values():
            known = [found[topic] for topic in each.repartition_source_topics if topic in found]
            known += [counts[topic] for topic in each.source_topics if topic in counts]
            if known:
                found |= {topic: max(known) for topic in each.repartition_sink_topics if topic not in found}
    return found


def partitions_of(topology: Subtopologies, task: Task, counts: Mapping[str, int]) -> list[TopicPartition]:
    """Partitions that a task reads: its number of each topic that has so many."""
    read = topology[task.subtopology].read if task.subtopology in topology else ()
    return [TopicPartition(topic, task.number) for topic in read if task.number < counts.get(topic, 0)]
