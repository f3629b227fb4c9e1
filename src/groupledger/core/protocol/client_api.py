"""The calls a rebalance makes into an application and its assignor, under Kafka's own names."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.compatibility import ByteCode

PartitionSet = frozenset[TopicPartition]
NOTHING: PartitionSet = frozenset()


class Callback(enum.StrEnum):
    """What is called, in the order in which one rebalance calls it (KIP-429, "Semantics")."""

    LOST = "onPartitionsLost"
    REVOKED = "onPartitionsRevoked"
    USER_DATA = "subscriptionUserData"
    ASSIGN = "assign"
    ON_ASSIGNMENT = "onAssignment"
    ASSIGNED = "onPartitionsAssigned"


LISTENER = frozenset({Callback.LOST, Callback.REVOKED, Callback.ASSIGNED})
"""Calls of the rebalance listener; the others are the assignor's."""


class Call(NamedTuple):
    """One call with its argument: `topics` of USER_DATA and ASSIGN, `partitions` of all but USER_DATA.

    ASSIGN gets what all members say they own, ON_ASSIGNMENT the member's whole assignment.
    """

    callback: Callback
    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()


def call(callback: Callback, partitions: Iterable[TopicPartition]) -> Call:
    """Return a call about partitions, by topic and number."""
    return Call(callback, tuple(sorted(partitions)))


# The times of a group's clients and of their coordinator, in milliseconds: Kafka's settings under their own names.
#
# Worked example: `Times(of={"slow": MemberTimes(processing_ms=20_000)})` is a group with Kafka's defaults in which one
# member works for twenty seconds on what each of its polls gives it.

AUTO_COMMIT_MS = 5_000
"""`auto.commit.interval.ms`, where nobody says anything."""


@dataclass(frozen=True, slots=True)
class MemberTimes:
    """Of one member. `rebalance_timeout_ms` is `max.poll.interval.ms`, which a client also sends as that.

    `round_trip_ms`: from a request to its answer, half of it each way. `processing_ms`: from one poll to the next,
    while the member owns something.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    round_trip_ms: int = 0
    processing_ms: int = 0

    @property
    def to_broker_ms(self) -> int:
        """How long a request is on its way."""
        return self.round_trip_ms // 2

    @property
    def from_broker_ms(self) -> int:
        """How long an answer is on its way."""
        return self.round_trip_ms - self.to_broker_ms

    def last_heartbeat_ms(self, since_ms: int, now_ms: int) -> int:
        """When the last heartbeat that was sent until now reaches the coordinator; the first is sent at `since_ms`."""
        return now_ms - (now_ms - since_ms) % self.heartbeat_interval_ms + self.to_broker_ms


@dataclass(frozen=True, slots=True)
class Times:
    """Of a group: `of` are members, by name of the process, that differ from `each`.

    `records_per_second` arrive in each partition (None: nobody counts records). `auto_commit_interval_ms`: 0 is
    `enable.auto.commit=false`; None is Kafka's default, or false where a listener commits.
    """

    each: MemberTimes = field(default_factory=MemberTimes)
    of: Mapping[str, MemberTimes] = field(default_factory=dict)
    initial_rebalance_delay_ms: int = 3_000
    records_per_second: int | None = None
    auto_commit_interval_ms: int | None = None

    def member(self, name: str) -> MemberTimes:
        """Of the process of this name."""
        return self.of.get(name, self.each)


def member_times(times: Times | None, name: str, rebalance_timeout_ms: int) -> MemberTimes:
    """Return the times of a process; without times of a group, Kafka's defaults with the timeout that it states."""
    return MemberTimes(rebalance_timeout_ms=rebalance_timeout_ms) if times is None else times.member(name)


# What a member sends with JoinGroup: the consumer protocol's subscription in its three versions, and its user data.


class Memory(NamedTuple):
    """The last assignment and its generation, as the sticky assignors' user data records it (KIP-54)."""

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
