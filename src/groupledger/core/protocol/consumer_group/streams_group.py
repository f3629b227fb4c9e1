"""The coordinator of a Streams group (KIP-1071), as in Kafka 4.4: it assigns tasks of a topology, active and standby.

The first member of an empty group starts a delay, after which the first target is computed. Until the topology's
internal topics are there, which the broker makes after the first heartbeat, targets are empty.

Worked example: A joins a group whose topology reads t-0 and t-1, in epoch 1, and gets nothing. 3 s later the target of
epoch 2 has both tasks, and A's next heartbeat gets them. B's first one makes epoch 3 and B waits for task 1, which A
revokes with its next heartbeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from groupledger.core.assignors.server.tasks import STICKY_TASKS, TaskGroup, TaskMember
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.consumer_group.consumer_coordinator import ConsumerGroup, Turn, moved, still_owns
from groupledger.core.protocol.consumer_group.consumer_state import (
    NOT_CONFIGURED,
    ConfiguredTopology,
    GroupMember,
    HeartbeatRequest,
    HeartbeatResponse,
    MemberState,
    StreamsGroupSettings,
    configure,
    partitions_of,
)
from groupledger.core.protocol.consumer_group.topics_and_targets import (
    ServerQuestion,
    TopicIdPartition,
    TopicIdPartitionSet,
    as_pairs,
    by_role,
    is_standby,
    other_role,
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
        """End the delay; return whether a target is to be computed."""
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
        """Make the internal topics that the broker was asked for, unless it was asked at this very moment."""
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
        """Return what a member's target has and it was not assigned."""
        return self.target(member.member_id) - member.assigned.keys()

    def blockers(self, member: GroupMember, partition: TopicIdPartition) -> set[str]:
        """Who holds the task in a way that makes the member wait for it."""
        return blockers(member, partition, holders_of(self.members.values()))

    def state_of(self, member: GroupMember) -> str:
        """Return the state of a member in the words of its protocol."""
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
        """Return the same: a task reads whatever topic has the name."""
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


# One step of a Streams group's member towards its target (KIP-1071, "Reconciliation"), as in Kafka 4.4: pure.
#
# A member revokes first. Then it gets an active task once nobody else has that, and no other member of its process a
# standby of it; a standby task once its process has the task no longer. A task that only changes its role in one member
# changes it in one step: the state stays where it is.
#
# Worked example: A has the active tasks 0 and 1, B of another process is to get 1. A's heartbeat is answered to revoke
# 1, the one after that states 0 alone; then B's next one is answered 1.


def advance_tasks(
    member: GroupMember,
    epoch: int,
    target: TopicIdPartitionSet,
    stated: TopicIdPartitionSet | None,
    members: Iterable[GroupMember],
) -> GroupMember:
    """Return the member after a heartbeat in which it stated what it owns (None: it stated nothing of it).

    `members`: all of the group as they were before it, this one among them.
    """
    if member.state is MemberState.STABLE and member.epoch == epoch:
        return member
    revoked = member.state is MemberState.UNREVOKED_PARTITIONS
    if revoked and still_owns(stated, member.pending):
        return member
    holders = holders_of(members)
    kept = {each: since for each, since in member.assigned.items() if each in target}
    waiting = frozenset(each for each in target - kept.keys() if blockers(member, each, holders))
    given = target - kept.keys() - waiting
    demoted = {each for each in given if is_standby(each) and other_role(each) in member.assigned}
    promoted = {each for each in member.assigned if is_standby(each) and other_role(each) in target}
    revocation = {each: since for each, since in member.assigned.items() if each not in kept and each not in promoted}
    if revocation and still_owns(stated, revocation):
        held = {**kept, **dict.fromkeys(demoted, epoch), **_of(member, promoted)}
        now = member.epoch + revoked
        return moved(member, MemberState.UNREVOKED_PARTITIONS, now, held, revocation)
    still = _of(member, {each for each in promoted if other_role(each) not in given})
    state = MemberState.UNRELEASED_PARTITIONS if waiting else MemberState.STABLE
    return moved(member, state, epoch, {**kept, **still, **dict.fromkeys(sorted(given), epoch)}, {})


TaskHolders = Mapping[TopicIdPartition, Sequence[GroupMember]]
"""Who has each task, or has not given it up."""


def holders_of(members: Iterable[GroupMember]) -> TaskHolders:
    """All of a group, by task."""
    found: dict[TopicIdPartition, list[GroupMember]] = {}
    for member in members:
        for each in member.held:
            found.setdefault(each, []).append(member)
    return found


def blockers(member: GroupMember, task: TopicIdPartition, holders: TaskHolders) -> set[str]:
    """Who holds what a member has to wait for before it gets this task of its target: member ids.

    What the member itself still holds counts too, where it was not yet seen to have given it up.
    """
    other = other_role(task)
    found = {each.member_id for each in holders.get(task, ()) if not is_standby(task) or _same_process(each, member)}
    if other not in member.assigned:
        found |= {each.member_id for each in holders.get(other, ()) if _same_process(each, member)}
    return found


def _same_process(one: GroupMember, other: GroupMember) -> bool:
    return one.process_id == other.process_id


def _of(member: GroupMember, tasks: Iterable[TopicIdPartition]) -> dict[TopicIdPartition, int]:
    return {each: member.assigned[each] for each in sorted(tasks)}
