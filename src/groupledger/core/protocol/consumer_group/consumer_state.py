"""A member of a consumer group as its coordinator knows it (KIP-848, "Member state machine")."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.assignors.server.tasks import SubtopologyTasks, Task
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.consumer_group.topics_and_targets import TopicIdPartition, TopicIdPartitionSet
from groupledger.core.protocol.events import GroupProtocol
from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR

# What a broker of Kafka 4.4 is configured with where it concerns groups that it assigns; the defaults are its own.

RETRY_BACKOFF_MS = 100


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

    heartbeat_interval_ms: int = 5_000
    session_timeout_ms: int = 45_000
    assignment_interval_ms: int = 1_000
    remote_assignor: str = DEFAULT_ASSIGNOR
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


@dataclass(frozen=True, slots=True)
class StreamsGroupSettings(ConsumerGroupSettings):
    """`group.streams.*` of the broker, and the topology that all members of the group bring with them.

    `initial_rebalance_delay_ms`: from the first member of an empty group to its first target.
    """

    topology: Subtopologies = field(default_factory=dict)
    num_standby_replicas: int = 0
    initial_rebalance_delay_ms: int = 3_000


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


# A member.

LEFT_STATIC = -2
"""Member epoch of a static member that left and may come back."""


class MemberState(enum.StrEnum):
    """What the reconciliation of a member waits for."""

    STABLE = "STABLE"
    UNREVOKED_PARTITIONS = "UNREVOKED_PARTITIONS"  # for the member, which has to give up partitions
    UNRELEASED_PARTITIONS = "UNRELEASED_PARTITIONS"  # for other members, which still hold partitions of its target


@dataclass(frozen=True, slots=True)
class GroupMember:
    """One member. `assigned` and `pending` (revocation) give the epoch in which each partition was assigned (KIP-1251).

    `classic_assignors`: of a member of the classic protocol, in its order; None: one of the consumer protocol.
    `process_id`: of a Streams group's member.
    """

    member_id: str
    process: str
    topics: tuple[str, ...] = ()
    regex: str | None = None
    group_instance_id: str | None = None
    remote_assignor: str | None = None
    rebalance_timeout_ms: int = 0
    epoch: int = 0
    previous_epoch: int = 0
    state: MemberState = MemberState.STABLE
    assigned: Mapping[TopicIdPartition, int] = field(default_factory=dict)
    pending: Mapping[TopicIdPartition, int] = field(default_factory=dict)
    classic_assignors: tuple[str, ...] | None = None
    process_id: str | None = None

    @property
    def uses_classic(self) -> bool:
        """Whether it follows the classic protocol."""
        return self.classic_assignors is not None

    @property
    def held(self) -> TopicIdPartitionSet:
        """What no other member may be given: assigned, or not given up yet."""
        return frozenset([*self.assigned, *self.pending])


# A heartbeat as the simulator sends it: request, answer, and the errors that a coordinator answers with.


class Refusal(enum.StrEnum):
    """Errors of the coordinator, under Kafka's names."""

    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    UNRELEASED_INSTANCE_ID = "UNRELEASED_INSTANCE_ID"
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    UNSUPPORTED_ASSIGNOR = "UNSUPPORTED_ASSIGNOR"
    INVALID_REGULAR_EXPRESSION = "INVALID_REGULAR_EXPRESSION"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"


REJOINS = frozenset({Refusal.FENCED_MEMBER_EPOCH, Refusal.UNKNOWN_MEMBER_ID})
"""A member that is answered so has lost what it owned, and joins again with epoch 0; other errors end it."""


@dataclass(frozen=True, slots=True)
class HeartbeatRequest:
    """One heartbeat; what is None did not change since the last one. Epoch 0 joins.

    `classic_assignors`: this stands for a JoinGroup of a member of the classic protocol. `process_id`: of a Streams
    group's member.
    """

    member_id: str
    process: str
    epoch: int
    group_instance_id: str | None = None
    topics: tuple[str, ...] | None = None
    regex: str | None = None
    remote_assignor: str | None = None
    rebalance_timeout_ms: int | None = None
    owned: TopicIdPartitionSet | None = None
    classic_assignors: tuple[str, ...] | None = None
    process_id: str | None = None

    @property
    def joins(self) -> bool:
        """Whether it may make a new member: epoch 0, or a JoinGroup."""
        return self.epoch == 0 or self.classic_assignors is not None

    @property
    def full(self) -> bool:
        """Whether everything was said, so that everything is answered."""
        return self.rebalance_timeout_ms is not None and self.owned is not None


@dataclass(frozen=True, slots=True)
class HeartbeatResponse:
    """The coordinator's answer. `assigned` None: as before. `message` says what an error is about."""

    epoch: int
    assigned: TopicIdPartitionSet | None = None
    error: Refusal | None = None
    message: str = ""


# What a consumer group's coordinator did in one event, and how the group stands after it.


class Reconciled(NamedTuple):
    """A member took a new assignment: from its answer to the end of its last callback. `failed`: it fell out first."""

    member: str
    started_ms: int
    ended_ms: int
    failed: bool


class HeartbeatRow(NamedTuple):
    """A heartbeat, or a JoinGroup of a classic member, that said or was answered something new.

    `sent_epoch` and `owned` are what it said (`owned` None: nothing of it), the rest is how its coordinator left it.
    In a Streams group these are tasks, by subtopology and number, active ones but for `standby`.
    """

    at_ms: int
    member: str
    member_id: str
    sent_epoch: int
    owned: tuple[TopicPartition, ...] | None
    error: str | None
    epoch: int
    state: str | None
    assigned: tuple[TopicPartition, ...]
    pending: tuple[TopicPartition, ...]  # revocation
    group_epoch: int
    assignment_epoch: int
    standby: tuple[TopicPartition, ...] = ()  # assigned


class TargetRow(NamedTuple):
    """A target assignment: when, at which group epoch, by which assignor, and what it gives to each process."""

    at_ms: int
    epoch: int
    assignor: str
    targets: tuple[tuple[str, tuple[TopicPartition, ...]], ...]
    standby: tuple[tuple[str, tuple[TopicPartition, ...]], ...] = ()


class MemberRow(NamedTuple):
    """A member at the end of an event: `member` is its process. Epoch -2: static, and away.

    `away`: no process that runs speaks under this id, be there a younger one of the same name.
    """

    member: str
    member_id: str
    protocol: GroupProtocol
    epoch: int
    state: str
    away: bool
    target: tuple[TopicPartition, ...]
    assigned: tuple[TopicPartition, ...]
    pending: tuple[TopicPartition, ...]
    process_id: str | None = None
    standby_target: tuple[TopicPartition, ...] = ()
    standby: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Coordinated:
    """What the coordinator of a group that it assigns did in one event, and how the group stands after it.

    `status`: why the topology of a Streams group is not ready, so that nobody has a task.
    """

    epoch: int
    assignment_epoch: int
    members: tuple[MemberRow, ...]
    heartbeats: tuple[HeartbeatRow, ...]
    targets: tuple[TargetRow, ...]
    reconciled: tuple[Reconciled, ...] = ()
    protocol: GroupProtocol = GroupProtocol.CONSUMER
    status: str | None = None
