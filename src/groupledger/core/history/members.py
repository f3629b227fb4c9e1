"""The members of a KIP-848 group as its records leave them: the last value of each key, as a coordinator holds them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.history.rows import Assignment, Topics
from groupledger.core.history.topics import TopicCatalog
from groupledger.core.history.words import Said, read_said
from groupledger.core.wire.offsets_log import (
    CurrentMemberAssignment,
    MemberMetadata,
    RegularExpression,
    TargetAssignmentMember,
)

LEFT_STATIC = -2
"""Member epoch of a static member that left and may come back (KIP-848)."""

IdPartitions = tuple[tuple[str, tuple[int, ...]], ...]


class Metadata(NamedTuple):
    """What a member subscribes to. `said`: the first subscription of a classic member, which it joined with."""

    raw: bytes
    value: MemberMetadata
    said: Said | None


class Target(NamedTuple):
    """What a member is to get."""

    raw: bytes
    partitions: Assignment


class Current(NamedTuple):
    """What a member holds: `recorded` for good, `pending` until it has given them up."""

    raw: bytes
    epoch: int
    recorded: Assignment
    pending: Assignment

    @property
    def held(self) -> Assignment:
        """All it holds: a pending partition is given to nobody else before the member acknowledges."""
        return (*self.recorded, *self.pending)


class Expression(NamedTuple):
    """The topics that a regular expression stands for."""

    raw: bytes
    topics: Topics


@dataclass(slots=True)
class ModernGroup:
    """`cut`: records are known to be missing, until all members are seen to have reached one epoch. `open`: targets of
    an epoch were seen, and its end not yet. `leaving`: members of whose tombstones the first was seen. `unsettled`:
    members that do not hold exactly their target."""

    group_epoch: int | None = None
    target_epoch: int | None = None
    cut: bool = False
    open: bool = False
    metadata: dict[str, Metadata] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    current: dict[str, Current] = field(default_factory=dict)
    expressions: dict[str, Expression] = field(default_factory=dict)
    leaving: set[str] = field(default_factory=set)
    unsettled: set[str] = field(default_factory=set)

    def present(self) -> list[str]:
        """Member ids in the order of joining; one whose assignment was deleted is on its way out."""
        return [member for member in self.metadata if member not in self.leaving]

    @property
    def is_settled(self) -> bool:
        """Whether the target is that of the group's epoch, and every member holds exactly its own."""
        return not (self.leaving or self.unsettled) and self.group_epoch == self.target_epoch

    def judge(self, member_id: str) -> None:
        """Note whether the member holds exactly its target."""
        target, current = self.targets.get(member_id), self.current.get(member_id)
        wanted = by_topic(target.partitions) if target else {}
        if current is not None and not current.pending and by_topic(current.recorded) == wanted:
            self.unsettled.discard(member_id)
        else:
            self.unsettled.add(member_id)

    def forget(self, member_id: str) -> None:
        """The member is gone: nothing of it waits any more."""
        self.leaving.discard(member_id)
        self.unsettled.discard(member_id)

    def mend(self) -> None:
        """Where every member is seen to hold its target at one epoch, nothing that was missing matters any more."""
        if not self.cut or self.open or not self.is_settled or self.group_epoch is None:
            return
        reached = (self.group_epoch, LEFT_STATIC)
        at_epoch = {member for member, current in self.current.items() if current.epoch in reached}
        if at_epoch == self.current.keys() == self.metadata.keys() >= self.targets.keys():
            self.cut = False

    def topics_of(self, member_id: str) -> Topics:
        """The subscription: names as given, then what its regular expression stood for at that time."""
        value = self.metadata[member_id].value
        expression = self.expressions.get(value.subscribed_regex or "")
        if expression is None:
            return value.subscribed_topics
        return tuple(dict.fromkeys((*value.subscribed_topics, *expression.topics)))


def read_metadata(raw: bytes, value: MemberMetadata) -> Metadata:
    """A member's record; `DecodeFault` where a classic member's subscription does not decode."""
    classic = value.classic_member_metadata
    if classic is None or not classic.supported_protocols:
        return Metadata(raw, value, None)
    preferred = classic.supported_protocols[0]
    return Metadata(raw, value, read_said(preferred.metadata, preferred.name))


def read_target(raw: bytes, value: TargetAssignmentMember, topics: TopicCatalog) -> Target:
    """A member's target, with topic names where known."""
    return Target(raw, with_names(value.topic_partitions, topics))


def read_current(raw: bytes, value: CurrentMemberAssignment, topics: TopicCatalog) -> Current:
    """What a member holds, with topic names where known."""
    recorded, pending = with_names(value.assigned, topics), with_names(value.pending_revocation, topics)
    return Current(raw, value.epoch, recorded, pending)


def read_expression(raw: bytes, value: RegularExpression) -> Expression:
    """The topics of a regular expression."""
    return Expression(raw, value.topics)


def with_names(partitions: IdPartitions, topics: TopicCatalog) -> Assignment:
    """Partitions of topic ids, with the topics' names where known."""
    return tuple((topic_id, topics.name_of(topic_id), numbers) for topic_id, numbers in partitions)


def by_topic(assignment: Assignment) -> dict[str | None, set[int]]:
    """Partitions by topic id, without their order."""
    return {topic_id: set(partitions) for topic_id, _, partitions in assignment if partitions}
