"""The records of `__consumer_offsets` as frozen types, fields in the order of Kafka's specs.

Absent is None: an integer whose default is -1 and a tagged field that was not sent are None. `tagged` keeps, as
(tag, bytes), the tagged fields that our specs do not know (KIP-482, KIP-915) and those sent as an explicit null (Kafka
does so with `classic_member_metadata`), so that the same bytes are written back.
The records that nothing here folds (share groups, streams groups) are plain dicts of field name and value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Tagged = tuple[tuple[int, bytes], ...]
Partitions = tuple[int, ...]
IdPartitions = tuple[tuple[str, Partitions], ...]


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
class GroupMember:
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
    members: tuple[GroupMember, ...]
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
    partitions: Partitions
    assignment_epochs: tuple[int, ...] | None = None
    tagged: Tagged = ()


def id_partitions(topics: tuple[TopicIdPartitions, ...]) -> IdPartitions:
    """The (topic id, partitions) pairs alone, in the record's order."""
    return tuple((topic.topic_id, topic.partitions) for topic in topics)


@dataclass(frozen=True, slots=True)
class AssignedTopic:
    """Partitions of a topic id in a target assignment."""

    topic_id: str
    partitions: Partitions
    tagged: Tagged = ()


@dataclass(frozen=True, slots=True)
class TargetAssignmentMember:
    """What a member of a KIP-848 group is to get (type 7)."""

    topics: tuple[AssignedTopic, ...]
    tagged: Tagged = ()

    @property
    def topic_partitions(self) -> IdPartitions:
        """(topic id, partitions) pairs."""
        return tuple((topic.topic_id, topic.partitions) for topic in self.topics)


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


Value = (
    OffsetCommit
    | GroupMetadata
    | ConsumerGroupMetadata
    | MemberMetadata
    | TargetAssignmentMetadata
    | TargetAssignmentMember
    | CurrentMemberAssignment
    | RegularExpression
    | Mapping[str, object]
    | bytes
)

SHAPES: dict[str, type] = {
    "OffsetCommitValue": OffsetCommit,
    "GroupMetadataValue": GroupMetadata,
    "GroupMetadataValue.members": GroupMember,
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
    "ConsumerProtocolSubscription": tuple,
    "ConsumerProtocolSubscription.owned_partitions": tuple,
    "ConsumerProtocolAssignment": tuple,
    "ConsumerProtocolAssignment.assigned_partitions": tuple,
}
"""Which type a struct becomes, by message and path of field names; a struct that is not here becomes a dict."""
