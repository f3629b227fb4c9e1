"""The records of `__consumer_offsets` as frozen types, fields in the order of Kafka's specs.

Absent is None: an integer whose default is -1 and a tagged field that was not sent are None. `tagged` keeps, as
(tag, bytes), the tagged fields that our specs do not know (KIP-482, KIP-915) and those sent as an explicit null (Kafka
does so with `classic_member_metadata`), so that the same bytes are written back.
Structs that nothing here reads (endpoints, topic configurations) are plain dicts of field name and value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Tagged = tuple[tuple[int, bytes], ...]
PartitionNumbers = tuple[int, ...]
IdPartitions = tuple[tuple[str, PartitionNumbers], ...]


@dataclass(frozen=True, slots=True)
class OffsetCommit:
    """A committed offset (type 1), of every protocol. Timestamps in ms."""

    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    topic_id: str | None
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class ClassicGroupMember:
    """A member of a classic group, in the order of the JoinGroup response; timeouts in ms.

    `subscription` is that of the selected protocol. Both blobs are the consumer protocol's only where the group's
    `protocol_type` is "consumer"; a Connect group has its own.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int | None
    session_timeout: int
    subscription: bytes
    assignment: bytes
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A generation of a classic group (type 2). `state_timestamp` in ms."""

    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    state_timestamp: int | None
    members: tuple[ClassicGroupMember, ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadata:
    """The epoch of a KIP-848 group (type 3). No hash: none was computed, or a broker before 4.1 wrote it."""

    epoch: int
    metadata_hash: int | None = None
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class ClassicProtocol:
    """A protocol that a classic member of a KIP-848 group offers, with its subscription bytes."""

    name: str
    metadata: bytes
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class ClassicMemberMetadata:
    """What a classic member brought into a KIP-848 group; the timeout in ms."""

    session_timeout: int
    supported_protocols: tuple[ClassicProtocol, ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class MemberMetadata:
    """What a member of a KIP-848 group subscribes to (type 5)."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    subscribed_regex: str | None
    rebalance_timeout: int | None
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class TargetAssignmentMetadata:
    """The epoch whose target is complete (type 6); `timestamp` in ms, from Kafka 4.3 on (KIP-1263)."""

    epoch: int
    timestamp: int | None = None
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class TopicIdPartitions:
    """Partitions of a topic id; `assignment_epochs` (where written) stand beside the partitions."""

    topic_id: str
    partitions: PartitionNumbers
    assignment_epochs: tuple[int, ...] | None = None
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class AssignedTopic:
    """Partitions of a topic id in a target assignment."""

    topic_id: str
    partitions: PartitionNumbers
    tagged: Tagged = ()


def id_partitions(topics: tuple[TopicIdPartitions, ...] | tuple[AssignedTopic, ...]) -> IdPartitions:
    """Return the (topic id, partitions) pairs alone, in the record's order."""
    return tuple((topic.topic_id, topic.partitions) for topic in topics)


@dataclass(frozen=True, slots=True)
class TargetAssignmentMember:
    """What a member of a KIP-848 group is to get (type 7)."""

    topics: tuple[AssignedTopic, ...]
    tagged: Tagged = ()

    @property
    def topic_partitions(self) -> IdPartitions:
        """(topic id, partitions) pairs."""
        return id_partitions(self.topics)


@dataclass(frozen=True, slots=True)
class CurrentMemberAssignment:
    """What a member of a KIP-848 group holds and must give up (type 8). Epoch -1: left; -2: left, static (KIP-848)."""

    epoch: int
    previous_epoch: int
    state: int
    assigned_topics: tuple[TopicIdPartitions, ...]
    pending_topics: tuple[TopicIdPartitions, ...]
    tagged: Tagged = ()

    @property
    def assigned(self) -> IdPartitions:
        """Held partitions as (topic id, partitions) pairs."""
        return id_partitions(self.assigned_topics)

    @property
    def pending_revocation(self) -> IdPartitions:
        """Partitions to be given up, as (topic id, partitions) pairs."""
        return id_partitions(self.pending_topics)


@dataclass(frozen=True, slots=True)
class RegularExpression:
    """The topics that a regular expression resolved to (type 16); the expression is in the key. `timestamp` in ms."""

    topics: tuple[str, ...]
    metadata_version: int
    timestamp: int
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class ShareMemberMetadata:
    """What a member of a share group subscribes to (type 10)."""

    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topics: tuple[str, ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class ShareCurrentAssignment:
    """What a member of a share group is given (type 14); nobody waits for anybody, so nothing is pending."""

    epoch: int
    previous_epoch: int
    state: int
    assigned_topics: tuple[AssignedTopic, ...]
    tagged: Tagged = ()

    @property
    def assigned(self) -> IdPartitions:
        """Held partitions as (topic id, partitions) pairs."""
        return id_partitions(self.assigned_topics)


@dataclass(frozen=True, slots=True)
class StreamsGroupMetadata:
    """The epoch of a Streams group (type 17)."""

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int | None = None
    last_assignment_configs: tuple[Mapping[str, object], ...] | None = None
    stored_description_topology_epoch: int | None = None
    failed_description_topology_epoch: int | None = None
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class StreamsMemberMetadata:
    """A member of a Streams group (type 19); what it reads is in the group's topology."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout: int | None
    topology_epoch: int
    process_id: str
    user_endpoint: Mapping[str, object] | None
    client_tags: tuple[Mapping[str, object], ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class TaskIds:
    """Tasks of a subtopology, by number: task p reads partition p of each source topic that has one."""

    subtopology_id: str
    partitions: PartitionNumbers
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class CurrentTaskIds:
    """Tasks that a member has; `assignment_epochs` (active tasks only) stand beside the partitions."""

    subtopology_id: str
    partitions: PartitionNumbers
    assignment_epochs: tuple[int, ...] | None = None
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class StreamsTargetMember:
    """The tasks that a member of a Streams group is to get (type 21)."""

    active: tuple[TaskIds, ...]
    standby: tuple[TaskIds, ...]
    warmup: tuple[TaskIds, ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class StreamsCurrentAssignment:
    """The tasks that a member of a Streams group has, and those that it must give up (type 22)."""

    epoch: int
    previous_epoch: int
    state: int
    active: tuple[CurrentTaskIds, ...]
    standby: tuple[CurrentTaskIds, ...]
    warmup: tuple[CurrentTaskIds, ...]
    active_pending: tuple[CurrentTaskIds, ...]
    standby_pending: tuple[CurrentTaskIds, ...]
    warmup_pending: tuple[CurrentTaskIds, ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that the broker makes for a topology; 0 partitions: as many as its subtopologies need."""

    name: str
    partitions: int
    replication_factor: int
    topic_configs: tuple[Mapping[str, object], ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class CopartitionGroup:
    """Source topics that have as many partitions as one another, by their places in the subtopology's lists."""

    source_topics: tuple[int, ...]
    source_topic_regex: tuple[int, ...]
    repartition_source_topics: tuple[int, ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class Subtopology:
    """A part of a topology whose tasks are assigned together."""

    subtopology_id: str
    source_topics: tuple[str, ...]
    source_topic_regex: tuple[str, ...]
    state_changelog_topics: tuple[InternalTopic, ...]
    repartition_sink_topics: tuple[str, ...]
    repartition_source_topics: tuple[InternalTopic, ...]
    copartition_groups: tuple[CopartitionGroup, ...]
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class StreamsTopology:
    """The topology of a Streams group (type 23)."""

    epoch: int
    subtopologies: tuple[Subtopology, ...]
    tagged: Tagged = ()


RecordValue = (
    OffsetCommit
    | GroupMetadata
    | ConsumerGroupMetadata
    | MemberMetadata
    | TargetAssignmentMetadata
    | TargetAssignmentMember
    | CurrentMemberAssignment
    | RegularExpression
    | ShareMemberMetadata
    | ShareCurrentAssignment
    | StreamsGroupMetadata
    | StreamsMemberMetadata
    | StreamsTargetMember
    | StreamsCurrentAssignment
    | StreamsTopology
    | Mapping[str, object]
    | bytes
)

SHAPES: dict[str, type] = {
    "OffsetCommitValue": OffsetCommit,
    "GroupMetadataValue": GroupMetadata,
    "GroupMetadataValue.members": ClassicGroupMember,
    "ConsumerGroupMetadataValue": ConsumerGroupMetadata,
    "ConsumerGroupMemberMetadataValue": MemberMetadata,
    "ConsumerGroupMemberMetadataValue.classic_member_metadata": ClassicMemberMetadata,
    "ConsumerGroupMemberMetadataValue.classic_member_metadata.supported_protocols": ClassicProtocol,
    "ConsumerGroupTargetAssignmentMetadataValue": TargetAssignmentMetadata,
    "ConsumerGroupTargetAssignmentMemberValue": TargetAssignmentMember,
    "ConsumerGroupTargetAssignmentMemberValue.topic_partitions": AssignedTopic,
    "ConsumerGroupCurrentMemberAssignmentValue": CurrentMemberAssignment,
    "ConsumerGroupCurrentMemberAssignmentValue.assigned_partitions": TopicIdPartitions,
    "ConsumerGroupCurrentMemberAssignmentValue.partitions_pending_revocation": TopicIdPartitions,
    "ConsumerGroupRegularExpressionValue": RegularExpression,
    "ShareGroupMetadataValue": ConsumerGroupMetadata,
    "ShareGroupMemberMetadataValue": ShareMemberMetadata,
    "ShareGroupTargetAssignmentMetadataValue": TargetAssignmentMetadata,
    "ShareGroupTargetAssignmentMemberValue": TargetAssignmentMember,
    "ShareGroupTargetAssignmentMemberValue.topic_partitions": AssignedTopic,
    "ShareGroupCurrentMemberAssignmentValue": ShareCurrentAssignment,
    "ShareGroupCurrentMemberAssignmentValue.assigned_partitions": AssignedTopic,
    "StreamsGroupMetadataValue": StreamsGroupMetadata,
    "StreamsGroupMemberMetadataValue": StreamsMemberMetadata,
    "StreamsGroupTargetAssignmentMetadataValue": TargetAssignmentMetadata,
    "StreamsGroupTargetAssignmentMemberValue": StreamsTargetMember,
    "StreamsGroupTargetAssignmentMemberValue.active_tasks": TaskIds,
    "StreamsGroupTargetAssignmentMemberValue.standby_tasks": TaskIds,
    "StreamsGroupTargetAssignmentMemberValue.warmup_tasks": TaskIds,
    "StreamsGroupCurrentMemberAssignmentValue": StreamsCurrentAssignment,
    "StreamsGroupCurrentMemberAssignmentValue.active_tasks": CurrentTaskIds,
    "StreamsGroupCurrentMemberAssignmentValue.standby_tasks": CurrentTaskIds,
    "StreamsGroupCurrentMemberAssignmentValue.warmup_tasks": CurrentTaskIds,
    "StreamsGroupCurrentMemberAssignmentValue.active_tasks_pending_revocation": CurrentTaskIds,
    "StreamsGroupCurrentMemberAssignmentValue.standby_tasks_pending_revocation": CurrentTaskIds,
    "StreamsGroupCurrentMemberAssignmentValue.warmup_tasks_pending_revocation": CurrentTaskIds,
    "StreamsGroupTopologyValue": StreamsTopology,
    "StreamsGroupTopologyValue.subtopologies": Subtopology,
    "StreamsGroupTopologyValue.subtopologies.state_changelog_topics": InternalTopic,
    "StreamsGroupTopologyValue.subtopologies.repartition_source_topics": InternalTopic,
    "StreamsGroupTopologyValue.subtopologies.copartition_groups": CopartitionGroup,
    "ConsumerProtocolSubscription": tuple,
    "ConsumerProtocolSubscription.owned_partitions": tuple,
    "ConsumerProtocolAssignment": tuple,
    "ConsumerProtocolAssignment.assigned_partitions": tuple,
}
"""Which type a struct becomes, by message and path of field names; a struct that is not here becomes a dict."""
