"""What a broker of Kafka 4.4 is configured with where it concerns groups that it assigns; the defaults are its own."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.assignors.server.tasks import SubtopologyTasks, Task
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR

HEARTBEAT_INTERVAL_MS = 5_000
SESSION_TIMEOUT_MS = 45_000
ASSIGNMENT_INTERVAL_MS = 1_000
RETRY_BACKOFF_MS = 100
INITIAL_REBALANCE_DELAY_MS = 3_000


class MigrationPolicy(enum.StrEnum):
    """`group.consumer.migration.policy`: which conversions a group with members goes through."""

    BIDIRECTIONAL = "bidirectional"
    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"
    DISABLED = "disabled"

    @property
    def upgrades(self) -> bool:
        """Whether a member of the consumer protocol may join a classic group that has members."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.UPGRADE}

    @property
    def downgrades(self) -> bool:
        """Whether a group that its last member of the consumer protocol leaves becomes classic again."""
        return self in {MigrationPolicy.BIDIRECTIONAL, MigrationPolicy.DOWNGRADE}


@dataclass(frozen=True, slots=True)
class ConsumerGroupSettings:
    """`group.consumer.*` of the broker, or `consumer.*` of the group; times in milliseconds.

    `assignment_interval_ms`: the least time between two target assignments (KIP-1263). `remote_assignor`: the first of
    `group.consumer.assignors`, for a group whose members ask for none.
    """

    heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS
    session_timeout_ms: int = SESSION_TIMEOUT_MS
    assignment_interval_ms: int = ASSIGNMENT_INTERVAL_MS
    remote_assignor: str = DEFAULT_ASSIGNOR
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings(ConsumerGroupSettings):
    """`group.streams.*` of the broker, and the topology that all members of the group bring with them.

    `initial_rebalance_delay_ms`: from the first member of an empty group to its first target.
    """

    topology: Subtopologies = field(default_factory=dict)
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = INITIAL_REBALANCE_DELAY_MS


# The topology of a Streams group (KIP-1071), and what a coordinator makes of it for the topics there are.
#
# A subtopology has as many tasks as the largest topic that it reads has partitions, and task n reads partition n of
# each.
#
# Worked example: subtopology 0 reads `orders` (3 partitions) and writes the repartition topic `by-value`, which
# subtopology 1 reads: `by-value` gets 3 partitions, so 1 has 3 tasks too, and each changelog of 1 has 3 partitions.


@dataclass(frozen=True, slots=True)
class SubtopologyTopics:
    """The topics of one subtopology. It is stateful if it has changelog topics.

    `repartition_source_topics`: those it reads, with the partitions that it asks for; 0: as many as its writer
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
        found = ", ".join(f"{topic} has {counts[topic]:,} partitions, expected {count:,}" for topic, count in wrong)
        return ConfiguredTopology({}, {}, f"INCORRECTLY_PARTITIONED_TOPICS: {found}")
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
