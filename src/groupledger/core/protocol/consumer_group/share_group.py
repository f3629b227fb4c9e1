"""The coordinator of a share group (KIP-932), as in Kafka 4.4: members share partitions, and wait for nobody.

A heartbeat takes a member to its target at once. A partition is assigned once its share state is initialized, which the
first heartbeat that finds it starts, and of which the next one learns.

Worked example: A joins a group that has t-0 and t-1, in epoch 2, and gets nothing. Its next heartbeat makes epoch 3 and
gets both. B's first one makes epoch 4 and gets one of them, and A has the other one from its next heartbeat on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

from groupledger.core.assignors.server.server_group import TopicId
from groupledger.core.assignors.server.simple import SIMPLE
from groupledger.core.protocol.consumer_group.consumer_coordinator import ConsumerGroup, Turn
from groupledger.core.protocol.consumer_group.consumer_state import (
    GroupMember,
    HeartbeatRequest,
    HeartbeatResponse,
    MemberState,
)
from groupledger.core.protocol.consumer_group.topics_and_targets import ServerQuestion
from groupledger.core.protocol.events import GroupProtocol


@dataclass(slots=True)
class ShareGroup(ConsumerGroup):
    """One share group. `initialized`: how many partitions of a topic have a share state, the first ones of it."""

    initialized: dict[TopicId, int] = field(default_factory=dict)
    protocol: ClassVar[GroupProtocol] = GroupProtocol.SHARE
    _news: bool = False  # partitions were initialized since the last bump

    def begin(self, request: HeartbeatRequest, now_ms: int) -> Turn | HeartbeatResponse:
        """As in a consumer group; partitions that were initialized move the group on as well."""
        turn = ConsumerGroup.begin(self, request, now_ms)
        if isinstance(turn, Turn) and self._news and self.epoch == self.assignment_epoch:
            self._bump(turn)
        return turn

    def question(self, turn: Turn | None) -> ServerQuestion:
        """Ask for initialized partitions alone; they are news no longer."""
        group = self._server_group(turn)
        self._news = False
        topics = {
            name: replace(topic, partitions=min(self.initialized.get(topic.topic_id, 0), topic.partitions))
            for name, topic in self.topics.living.items()
        }
        return ServerQuestion(SIMPLE, replace(group, topics=topics))

    def finish(self, turn: Turn, now_ms: int) -> HeartbeatResponse:
        """As in a consumer group; then the share state of new partitions is initialized."""
        answer = ConsumerGroup.finish(self, turn, now_ms)
        for name in self.subscribed_topics() & self.topics.living.keys():
            topic = self.topics.living[name]
            if self.initialized.get(topic.topic_id, 0) < topic.partitions:
                self.initialized[topic.topic_id] = topic.partitions
                self._news = True
        return answer

    @property
    def has_other_topics(self) -> bool:
        """Whether the next heartbeat finds other topics, or partitions that it may assign now."""
        return self._news or self._topics_changed

    def _advance(self, turn: Turn) -> GroupMember:
        goal, member = self._goal(turn.member), turn.member
        if member.epoch == goal.epoch and not turn.subscription_changed:
            return member
        assigned = {each: goal.epoch for each in sorted(goal.target) if each.topic_id in goal.subscribed}
        previous = member.epoch if member.epoch != goal.epoch else member.previous_epoch
        return replace(
            member, epoch=goal.epoch, previous_epoch=previous, state=MemberState.STABLE, assigned=assigned, pending={}
        )

    def _says_all(self, request: HeartbeatRequest) -> bool:
        return request.topics is not None

    def _may_be_late(self, request: HeartbeatRequest, member: GroupMember) -> bool:
        return True
