"""Records made by hand, for the histories that no capture has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import count

from groupledger.core.history import Folded, GroupHeadRow, LogRow, TopicChange, TopicHistory, fold_group
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    encode_assignment,
    encode_subscription,
)
from groupledger.core.wire.offsets_log import LogKey, RecordKind, encode_key, encode_value
from groupledger.core.wire.records import (
    AssignedTopic,
    ClassicGroupMember,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    CurrentTaskIds,
    GroupMetadata,
    MemberMetadata,
    OffsetCommit,
    RecordValue,
    RegularExpression,
    ShareCurrentAssignment,
    ShareMemberMetadata,
    StreamsCurrentAssignment,
    StreamsGroupMetadata,
    StreamsMemberMetadata,
    StreamsTargetMember,
    StreamsTopology,
    Subtopology,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
    TaskIds,
    TopicIdPartitions,
)

GROUP = "payments"
CLICKS = "V1YOFAs_SRGmS1V4W0hINg"
GROW = "y5UtV25JQb2GKdG4vimCbQ"
TOPICS = TopicHistory([TopicChange("clicks", CLICKS, 6, None, 0), TopicChange("grow", GROW, 2, None, 0)])

Partitions = dict[str, tuple[int, ...]]
TYPES = {
    RecordKind.OFFSET_COMMIT: 1,
    RecordKind.GROUP_METADATA: 2,
    RecordKind.CONSUMER_GROUP_METADATA: 3,
    RecordKind.CONSUMER_GROUP_PARTITION_METADATA: 4,
    RecordKind.CONSUMER_GROUP_MEMBER_METADATA: 5,
    RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: 6,
    RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: 7,
    RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: 8,
    RecordKind.SHARE_GROUP_MEMBER_METADATA: 10,
    RecordKind.SHARE_GROUP_METADATA: 11,
    RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: 12,
    RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: 13,
    RecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: 14,
    RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION: 16,
    RecordKind.STREAMS_GROUP_METADATA: 17,
    RecordKind.STREAMS_GROUP_MEMBER_METADATA: 19,
    RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: 20,
    RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: 21,
    RecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: 22,
    RecordKind.STREAMS_GROUP_TOPOLOGY: 23,
}


class Log:
    """A group's log, written record by record: offsets from 0, a second between two records."""

    def __init__(self, group: str = GROUP) -> None:
        self.group = group
        self.rows: list[LogRow] = []
        self._offsets = count()
        self._batch_at: int | None = None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """What is written meanwhile is one batch: it has one timestamp."""
        self._batch_at = 1_000 * len(self.rows)
        yield
        self._batch_at = None

    def put(self, kind: RecordKind, value: RecordValue | None, version: int = 0, /, **key: object) -> LogRow:
        """Append a record; no value is a tombstone."""
        offset = next(self._offsets)
        name = encode_key(LogKey(kind, TYPES[kind], self.group, key))
        data = None if value is None else encode_value(kind, version, value)
        at = 1_000 * offset if self._batch_at is None else self._batch_at
        self.rows.append(LogRow(3, offset, at, name, data))
        return self.rows[-1]

    def fold(self, head: bytes | None = None, topics: TopicHistory = TOPICS) -> Folded:
        """Fold what was written."""
        return fold_group("eu-1", self.rows, head, topics)

    def classic(
        self,
        generation: int,
        members: Iterable[ClassicGroupMember] = (),
        protocol: str = "range",
        kind: str = "consumer",
    ) -> LogRow:
        """A generation of a classic group."""
        group = GroupMetadata(kind, generation, protocol, None, None, tuple(members))
        return self.put(RecordKind.GROUP_METADATA, group, 3)

    def broken(self, kind: RecordKind = RecordKind.GROUP_METADATA, **key: object) -> LogRow:
        """A record whose value was cut short."""
        self.put(kind, None, **key)
        self.rows[-1] = self.rows[-1]._replace(value=b"\x00")
        return self.rows[-1]

    def commit(self, partition: int, offset: int | None, topic: str = "clicks") -> LogRow:
        """A committed offset; None deletes it."""
        value = None if offset is None else OffsetCommit(offset, None, "", 0, None, CLICKS)
        return self.put(RecordKind.OFFSET_COMMIT, value, 4, topic=topic, partition=partition)

    def deleted(self) -> LogRow:
        """The tombstone of a classic group."""
        return self.put(RecordKind.GROUP_METADATA, None)

    def epoch(self, epoch: int | None) -> LogRow:
        """A group epoch; None deletes the group."""
        value = None if epoch is None else ConsumerGroupMetadata(epoch)
        return self.put(RecordKind.CONSUMER_GROUP_METADATA, value)

    def joined(
        self,
        member: str,
        topics: tuple[str, ...] = ("clicks",),
        regex: str | None = None,
        classic: ConsumerProtocolSubscription | None = None,
        assignor: str | None = None,
        instance: str | None = None,
    ) -> LogRow:
        """A member's subscription."""
        protocols = () if classic is None else (ClassicProtocol("range", encode_subscription(classic)),)
        inside = None if classic is None else ClassicMemberMetadata(10_000, protocols)
        value = MemberMetadata(instance, None, member, "/h", topics, regex, 300_000, assignor, inside)
        return self.put(RecordKind.CONSUMER_GROUP_MEMBER_METADATA, value, member_id=member)

    def partition_counts(self, **counts: int) -> LogRow:
        """The partitions of the group's topics, as brokers of before Kafka 4.1 write them ahead of an epoch."""
        topics = [
            {"topic_id": CLICKS, "topic_name": topic, "num_partitions": count, "partition_metadata": ()}
            for topic, count in counts.items()
        ]
        return self.put(RecordKind.CONSUMER_GROUP_PARTITION_METADATA, {"topics": tuple(topics)})

    def expression(self, regex: str, topics: tuple[str, ...]) -> LogRow:
        """What a regular expression resolved to."""
        value = RegularExpression(topics, 1, 0)
        return self.put(RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION, value, regular_expression=regex)

    def target(self, member: str, partitions: Partitions) -> LogRow:
        """What a member is to get."""
        value = TargetAssignmentMember(tuple(AssignedTopic(*item) for item in partitions.items()))
        return self.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, value, member_id=member)

    def target_epoch(self, epoch: int) -> LogRow:
        """The end of an epoch's target."""
        return self.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, TargetAssignmentMetadata(epoch))

    def current(self, member: str, epoch: int, held: Partitions, pending: Partitions | None = None) -> LogRow:
        """What a member holds, and must give up."""
        value = CurrentMemberAssignment(epoch, epoch, 0, _topics(held), _topics(pending or {}))
        return self.put(RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, value, member_id=member)

    def left(self, member: str) -> None:
        """The three tombstones of a member, in the broker's order."""
        self.put(RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, None, member_id=member)
        self.put(RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, None, member_id=member)
        self.put(RecordKind.CONSUMER_GROUP_MEMBER_METADATA, None, member_id=member)

    def step(self, epoch: int, targets: dict[str, Partitions]) -> None:
        """A whole epoch: group epoch, targets, their end, and every member at once where it should be."""
        self.epoch(epoch)
        for member, partitions in targets.items():
            self.target(member, partitions)
        self.target_epoch(epoch)
        for member, partitions in targets.items():
            self.current(member, epoch, partitions)


class ShareLog(Log):
    """A share group's log."""

    def epoch(self, epoch: int | None) -> LogRow:
        """A group epoch; None deletes the group."""
        return self.put(RecordKind.SHARE_GROUP_METADATA, None if epoch is None else ConsumerGroupMetadata(epoch, 0))

    def share_joined(self, member: str, *topics: str) -> LogRow:
        """A member's subscription."""
        value = ShareMemberMetadata(None, member, "/h", topics or ("clicks",))
        return self.put(RecordKind.SHARE_GROUP_MEMBER_METADATA, value, member_id=member)

    def target(self, member: str, partitions: Partitions) -> LogRow:
        """What a member is to get."""
        value = TargetAssignmentMember(tuple(AssignedTopic(*item) for item in partitions.items()))
        return self.put(RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, value, member_id=member)

    def target_epoch(self, epoch: int) -> LogRow:
        """The end of an epoch's target."""
        return self.put(RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA, TargetAssignmentMetadata(epoch))

    def current(self, member: str, epoch: int, held: Partitions, pending: Partitions | None = None) -> LogRow:
        """What a member is given."""
        assert not pending, "nothing is pending in a share group"
        value = ShareCurrentAssignment(epoch, epoch, 0, tuple(AssignedTopic(*item) for item in held.items()))
        return self.put(RecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, value, member_id=member)

    def left(self, member: str) -> None:
        """The three tombstones of a member, in the broker's order."""
        self.put(RecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, None, member_id=member)
        self.put(RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER, None, member_id=member)
        self.put(RecordKind.SHARE_GROUP_MEMBER_METADATA, None, member_id=member)


Tasks = dict[str, tuple[int, ...]]


class StreamsLog(Log):
    """A Streams group's log; what a member holds or is to get are tasks by subtopology."""

    def epoch(self, epoch: int | None) -> LogRow:
        """A group epoch; None deletes the group."""
        return self.put(RecordKind.STREAMS_GROUP_METADATA, None if epoch is None else StreamsGroupMetadata(epoch, 0))

    def streams_joined(self, member: str) -> LogRow:
        """A member."""
        value = StreamsMemberMetadata(None, None, member, "/h", 300_000, 0, "process", None, ())
        return self.put(RecordKind.STREAMS_GROUP_MEMBER_METADATA, value, member_id=member)

    def topology(self, *subtopologies: Subtopology, epoch: int = 0) -> LogRow:
        """What the group reads."""
        return self.put(RecordKind.STREAMS_GROUP_TOPOLOGY, StreamsTopology(epoch, subtopologies))

    def tasks_target(self, member: str, active: Tasks, standby: Tasks | None = None) -> LogRow:
        """What a member is to get."""
        has, stands_by = (tuple(TaskIds(*item) for item in (tasks or {}).items()) for tasks in (active, standby))
        value = StreamsTargetMember(has, stands_by, ())
        return self.put(RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, value, member_id=member)

    def target_epoch(self, epoch: int) -> LogRow:
        """The end of an epoch's target."""
        return self.put(RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA, TargetAssignmentMetadata(epoch))

    def tasks_current(
        self, member: str, epoch: int, active: Tasks, standby: Tasks | None = None, pending: Tasks | None = None
    ) -> LogRow:
        """The tasks that a member has, and the active ones that it must give up."""
        roles = (active, standby, pending)
        has, stands_by, gives_up = (tuple(CurrentTaskIds(*item) for item in (tasks or {}).items()) for tasks in roles)
        state = 2 if pending else 1
        value = StreamsCurrentAssignment(epoch, epoch, state, has, stands_by, (), gives_up, (), ())
        return self.put(RecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, value, member_id=member)

    def left(self, member: str) -> None:
        """The three tombstones of a member, in the broker's order."""
        self.put(RecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, None, member_id=member)
        self.put(RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, None, member_id=member)
        self.put(RecordKind.STREAMS_GROUP_MEMBER_METADATA, None, member_id=member)


def subtopology(name: str, *topics: str, regex: tuple[str, ...] = ()) -> Subtopology:
    """A part of a topology that reads these topics."""
    return Subtopology(name, topics, regex, (), (), (), ())


def head_of(fold: Folded) -> GroupHeadRow:
    """The head of a fold that has one."""
    assert fold.head is not None
    return fold.head


def member(
    member_id: str,
    partitions: Partitions,
    *,
    topics: tuple[str, ...] = ("clicks", "grow"),
    instance: str | None = None,
    owned: Partitions | None = None,
    generation: int | None = None,
    assignment: bytes | None = None,
) -> ClassicGroupMember:
    """A classic member with its subscription (v3) and its assignment."""
    said = ConsumerProtocolSubscription(3, topics, None, tuple((owned or {}).items()), generation)
    told = (
        encode_assignment(ConsumerProtocolAssignment(3, tuple(partitions.items())))
        if assignment is None
        else assignment
    )
    return ClassicGroupMember(member_id, instance, member_id, "/h", 300_000, 10_000, encode_subscription(said), told)


def _topics(partitions: Partitions) -> tuple[TopicIdPartitions, ...]:
    return tuple(TopicIdPartitions(topic, numbers) for topic, numbers in partitions.items())
