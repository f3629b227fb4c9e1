"""The coordinator of a Streams group (KIP-1071), as in Kafka 4.4: it assigns tasks of a topology, active and standby.

The first member of an empty group starts a delay, after which the first target is computed. Until the topology's
internal topics are there, which the broker makes after the first heartbeat, targets are empty.

Worked example: A joins a group whose topology reads t-0 and t-1, in epoch 1, and gets nothing. 3 s later the target of
epoch 2 has both tasks, and A's next heartbeat gets them. B's first one makes epoch 3 and B waits for task 1, which A
revokes with its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from groupledger.core.assignors.server.sticky_tasks import STICKY_TASKS
from groupledger.core.assignors.server.task_group import TaskGroup, TaskMember
from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.consumer_group.coordinator import ConsumerGroup, Turn
from groupledger.core.protocol.consumer_group.group_member import GroupMember
from groupledger.core.protocol.consumer_group.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupledger.core.protocol.consumer_group.settings import StreamsGroupSettings
from groupledger.core.protocol.consumer_group.targets import ServerQuestion
from groupledger.core.protocol.consumer_group.task_reconciliation import advance_tasks, blockers, holders_of
from groupledger.core.protocol.consumer_group.tasks import as_pairs, by_role
from groupledger.core.protocol.consumer_group.topic_table import TopicIdPartition, TopicIdPartitionSet
from groupledger.core.protocol.consumer_group.topology import (
    NOT_CONFIGURED,
    ConfiguredTopology,
    configure,
    partitions_of,
)
from groupledger.core.protocol.events import GroupProtocol


@dataclass(slots=True)
class StreamsGroup(ConsumerGroup):
    """One Streams group. `configured`: its topology as of the last bump. `delayed_until_ms`: of its first target."""

    configured: ConfiguredTopology = NOT_CONFIGURED
    delayed_until_ms: int | None = None
    protocol: ClassVar[GroupProtocol] = GroupProtocol.STREAMS
    _asked_ms: int | None = None  # when internal topics were found missing, which are being made since

    @property
    def of_streams(self) -> StreamsGroupSettings:
        """Its settings."""
        if not isinstance(self.settings, StreamsGroupSettings):
            raise TypeError("a Streams group without a topology; expected StreamsGroupSettings")
        return self.settings

    def begin(self, request: HeartbeatRequest, now_ms: int) -> Turn | HeartbeatResponse:
        """As in a consumer group; the first member of an empty group starts the delay."""
        turn = ConsumerGroup.begin(self, request, now_ms)
        if isinstance(turn, Turn) and not self.members and self.delayed_until_ms is None:
            delay_ms = self.of_streams.initial_rebalance_delay_ms
            self.delayed_until_ms = now_ms + delay_ms if delay_ms else None
        return turn

    def _moves_on(self, turn: Turn) -> bool:
        """Whether a member is new, or of another process: a static one that comes back may differ in all else."""
        return turn.member.process_id != turn.before.process_id

    def is_due(self, now_ms: int) -> bool:
        """As in a consumer group, once the delay is over."""
        return self.delayed_until_ms is None and ConsumerGroup.is_due(self, now_ms)

    @property
    def timer_ms(self) -> int | None:
        """When the delay is over."""
        return self.delayed_until_ms

    def end_delay(self) -> bool:
        """The delay is over; whether there is a target to be computed."""
        self.delayed_until_ms = None
        return self.epoch > self.assignment_epoch  # not so in a group that is empty by then

    def question(self, turn: Turn | None) -> ServerQuestion:
        """Ask for the tasks of the topology, none of one that is not ready."""
        members = (
            TaskMember(each.member_id, each.process_id or "", by_role(each.assigned)) for each in self._members_in(turn)
        )
        group = TaskGroup(
            tuple(members),
            self.configured.tasks if self.configured.ready else {},
            self.of_streams.num_standby_replicas,
            changes=tuple(self.changes),
            joining=self._joining(turn),
        )
        return ServerQuestion(STICKY_TASKS, group)

    def finish(self, turn: Turn, now_ms: int) -> HeartbeatResponse:
        """As in a consumer group; then internal topics that are missing are asked for."""
        answer = ConsumerGroup.finish(self, turn, now_ms)
        if self._asked_ms is None and self._missing_topics():
            self._asked_ms = now_ms
        return answer

    def make_topics(self, now_ms: int) -> bool:
        """The broker has made the internal topics that it was asked for; what is said at once is too early for that."""
        if self._asked_ms is None or now_ms <= self._asked_ms:
            return False
        self._asked_ms = None
        for name, count in self._missing_topics().items():
            self.topics.set_partitions(name, count)
        self.topics_changed()
        return True

    @property
    def has_other_topics(self) -> bool:
        """As in a consumer group; topics that are being made are others."""
        return self._asked_ms is not None or (self._topics_changed and self._metadata(None) != self._seen_topics)

    def _missing_topics(self) -> dict[str, int]:
        return {name: count for name, count in self.configured.missing.items() if name not in self.topics.living}

    def subscribed_topics(self) -> set[str]:
        """All topics that tasks read, if there are members."""
        return {name for each in self.of_streams.topology.values() for name in each.read} if self.members else set()

    def missing(self, member: GroupMember) -> TopicIdPartitionSet:
        """What a member's target has and it was not assigned."""
        return self.target(member.member_id) - member.assigned.keys()

    def blockers(self, member: GroupMember, partition: TopicIdPartition) -> set[str]:
        """Who holds the task in a way that makes the member wait for it."""
        return blockers(member, partition, holders_of(self.members.values()))

    def state_of(self, member: GroupMember) -> str:
        """What a member waits for."""
        return member.state.value.replace("PARTITIONS", "TASKS")

    def named(self, partitions: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Active tasks: subtopology and number."""
        return as_pairs(by_role(partitions).active)

    def standby(self, tasks: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Standby tasks: subtopology and number."""
        return as_pairs(by_role(tasks).standby)

    def partitions(self, owned: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Partitions that the active ones of these tasks read."""
        counts, topology = self.topics.counts, self.of_streams.topology
        return tuple(sorted({each for task in by_role(owned).active for each in partitions_of(topology, task, counts)}))

    def living_partitions(self, owned: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """The same: a task reads whatever topic has the name."""
        return self.partitions(owned)

    @property
    def status(self) -> str | None:
        """Why its topology is not ready, as the last heartbeat found it."""
        return self.configured.status if self.members else None

    @property
    def reads_what_is_there(self) -> bool:
        """Whether they do: a topic may grow by partitions that tasks read which are there already."""
        return True

    def _bump(self, turn: Turn | None) -> None:
        """As in a consumer group; who leaves lets the topology be as it was configured last."""
        if turn is None:
            self.epoch += 1
            return
        ConsumerGroup._bump(self, turn)
        self.configured = configure(self.of_streams.topology, self.topics.counts)

    def _metadata(self, turn: Turn | None) -> object:
        """Topics that the topology needs, internal ones among them."""
        topology = self.of_streams.topology.values()
        names = sorted({name for each in topology for name in (*each.read, *each.state_changelog_topics)})
        return tuple((name, self.topics.living[name]) for name in names if name in self.topics.living)

    def _advance(self, turn: Turn) -> GroupMember:
        target = self.target(turn.member.member_id)
        return advance_tasks(turn.member, self.assignment_epoch, target, turn.request.owned, self.members.values())
