"""What each record of a group that its coordinator assigns is about: the type of the group, and what of it is said.

Consumer groups of KIP-848, share groups (KIP-932) and Streams groups (KIP-1071) write the same kinds of facts under
record types of their own.
"""

from __future__ import annotations

from enum import Enum, StrEnum, auto

from groupledger.core.wire.offsets_log import RecordKind


class GroupType(StrEnum):
    """Which protocol a group follows."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"


class Role(Enum):
    """What a record says of its group."""

    EPOCH = auto()
    MEMBER = auto()
    TARGET_EPOCH = auto()
    TARGET = auto()
    CURRENT = auto()
    EXPRESSION = auto()
    TOPOLOGY = auto()
    PARTITION_COUNTS = auto()


ROLES: dict[RecordKind, tuple[GroupType, Role]] = {
    RecordKind.CONSUMER_GROUP_METADATA: (GroupType.CONSUMER, Role.EPOCH),
    RecordKind.CONSUMER_GROUP_MEMBER_METADATA: (GroupType.CONSUMER, Role.MEMBER),
    RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA: (GroupType.CONSUMER, Role.TARGET_EPOCH),
    RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER: (GroupType.CONSUMER, Role.TARGET),
    RecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT: (GroupType.CONSUMER, Role.CURRENT),
    RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION: (GroupType.CONSUMER, Role.EXPRESSION),
    RecordKind.CONSUMER_GROUP_PARTITION_METADATA: (GroupType.CONSUMER, Role.PARTITION_COUNTS),
    RecordKind.SHARE_GROUP_METADATA: (GroupType.SHARE, Role.EPOCH),
    RecordKind.SHARE_GROUP_MEMBER_METADATA: (GroupType.SHARE, Role.MEMBER),
    RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_METADATA: (GroupType.SHARE, Role.TARGET_EPOCH),
    RecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER: (GroupType.SHARE, Role.TARGET),
    RecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT: (GroupType.SHARE, Role.CURRENT),
    RecordKind.STREAMS_GROUP_METADATA: (GroupType.STREAMS, Role.EPOCH),
    RecordKind.STREAMS_GROUP_MEMBER_METADATA: (GroupType.STREAMS, Role.MEMBER),
    RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA: (GroupType.STREAMS, Role.TARGET_EPOCH),
    RecordKind.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER: (GroupType.STREAMS, Role.TARGET),
    RecordKind.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT: (GroupType.STREAMS, Role.CURRENT),
    RecordKind.STREAMS_GROUP_TOPOLOGY: (GroupType.STREAMS, Role.TOPOLOGY),
}
KINDS: dict[tuple[GroupType, Role], RecordKind] = {about: kind for kind, about in ROLES.items()}
