"""A member of a consumer group as its coordinator knows it (KIP-848, "Member state machine")."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from groupledger.core.protocol.consumer_group.topic_table import TopicIdPartition, TopicIdPartitionSet

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
