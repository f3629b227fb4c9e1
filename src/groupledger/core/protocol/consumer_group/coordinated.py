"""What a consumer group's coordinator did in one event, and how the group stands after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.events import GroupProtocol


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
