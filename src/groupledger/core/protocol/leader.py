"""What a group's leader is asked and answers (KIP-429, "Proposed Changes", step 2); `planning` finds the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.consumer import PartitionCounts
from groupledger.core.protocol.subscription import Seat
from groupledger.core.step import Form

PartitionsByMember = Mapping[str, tuple[TopicPartition, ...]]
"""Partitions by member id."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a leader is asked: members in JoinGroup order, and the topics as its own metadata has them.

    A leader on byte code before KIP-429 reads neither owned partitions nor generations, and adjusts nothing.
    """

    assignor: str
    seats: tuple[Seat, ...]
    view: PartitionCounts
    form: Form
    byte_code: ByteCode = ByteCode.KIP_792

    @property
    def reads_owned(self) -> bool:
        """Whether this leader knows that a member may keep what it owns while it joins."""
        return self.byte_code >= ByteCode.KIP_429


@dataclass(slots=True)
class MissingTopics:
    """Topics that whoever leads a group has no metadata of, and for how many assignments yet (`MissTopic`)."""

    rounds: dict[str, int] = field(default_factory=dict)

    def miss(self, topic: str, rounds: int) -> None:
        """Assign so often without it."""
        if rounds > 0:
            self.rounds[topic] = rounds

    def known(self, view: PartitionCounts) -> PartitionCounts:
        """The topics that there is metadata of."""
        return {topic: count for topic, count in view.items() if topic not in self.rounds} if self.rounds else view

    def assigned(self) -> bool:
        """Count one assignment; whether metadata of a topic came after it."""
        before, self.rounds = self.rounds, {topic: left - 1 for topic, left in self.rounds.items() if left > 1}
        return len(self.rounds) < len(before)


class ThreeSets(NamedTuple):
    """KIP-429's three exclusive sets (step 2.3), each by topic and number."""

    maybe_revoking: tuple[TopicPartition, ...] = ()
    ready_to_migrate: tuple[TopicPartition, ...] = ()
    unknown_but_owned: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The leader's answer: `assigned` goes to the members, `target` is where the assignor wants them to be.

    `failure` is what the assignor threw; then there is nothing to assign, and no member is answered.
    """

    assigned: PartitionsByMember
    target: PartitionsByMember
    sets: ThreeSets
    failure: str | None = None
