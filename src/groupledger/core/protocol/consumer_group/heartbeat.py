"""A heartbeat as the simulator sends it: request, answer, and the errors that a coordinator answers with."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from groupledger.core.protocol.consumer_group.topic_table import TopicIdPartitionSet


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
