"""What a member sends with JoinGroup: the consumer protocol's subscription in its three versions, and its user data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.compatibility import ByteCode


class Memory(NamedTuple):
    """The last assignment and its generation, as the sticky assignors' user data tells it (KIP-54)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = None


NO_MEMORY = Memory()


@dataclass(frozen=True, slots=True)
class Subscription:
    """Version 0 has topics and user data; 1 adds `owned` (KIP-429), 2 the `generation` of it (KIP-792)."""

    version: ByteCode
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    memory: Memory = NO_MEMORY


@dataclass(frozen=True, slots=True)
class Seat:
    """A member as the leader sees it."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None
