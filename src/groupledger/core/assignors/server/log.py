"""Read the targets a coordinator wrote to the log, each with the group it was computed from (KIP-848).

`follow` reads one group's records in the order of their offsets. A target was computed from the state before its
records: members in the order they joined, their targets in the order of their records, the topics of a regular
expression as it was last resolved. A member is "joining" if its first record is in the same write as the target: Kafka
then puts it after the members already in its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from groupledger.core.assignors.server.group import (
    ServerGroup,
    ServerMember,
    Topic,
    TopicId,
    TopicIdNumbers,
    is_homogeneous,
)
from groupledger.core.assignors.server.order import JOINED, LEFT, REWRITTEN
from groupledger.core.registry import DEFAULT_ASSIGNOR
from groupledger.core.wire.offsets_log import (
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    LogRecord,
    MemberMetadata,
    RecordKind,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from groupledger.core.wire.primitives import uuid_bytes

FIRST_EPOCH, FIRST_EPOCH_BEFORE_4_3 = 2, 1  # of every new group (KAFKA-20268)

Logged = tuple[int, int, LogRecord | None]
"""Offset, timestamp (ms) and record; None: its bytes do not decode."""


@dataclass(frozen=True, slots=True)
class WrittenTarget:
    """A completed target: `members` with what it was computed from, and `after`, what was written.

    `before_known`: no record it was computed from can be missing. `history_known`: the group was read from its first
    record on. Group epochs prove it: each is stored under one key, so compaction leaves no two consecutive ones.
    `unresolved`: a member subscribes by a regular expression that no record resolves: it has no topics yet, or the log
    lacks the record. `homogeneous`: as `ServerGroup` has it. `listed`: the topics that the coordinator wrote beside its
    epochs (up to Kafka 4.0). `since_4_1`: fields show that Kafka 4.1 or later wrote the epoch or its target.
    """

    epoch: int
    offset: int
    timestamp: int
    assignor: str
    members: tuple[ServerMember, ...]
    changes: tuple[int, ...]
    joining: str | None
    after: Mapping[str, TopicIdNumbers]
    before_known: bool
    history_known: bool
    unresolved: bool = False
    homogeneous: bool | None = None
    listed: Mapping[str, Topic] | None = None
    since_4_1: bool = False

    def group(self, topics: Mapping[str, Topic]) -> ServerGroup:
        """Return the group before the target, with the topics of that moment."""
        return ServerGroup(self.members, topics, self.changes, self.joining, self.homogeneous)


@dataclass(slots=True)
class _State:
    """The group after its last records; `fresh`: new targets not yet completed by a TargetAssignmentMetadata."""

    members: dict[str, MemberMetadata] = field(default_factory=dict)
    targets: dict[str, TopicIdNumbers] = field(default_factory=dict)
    fresh: dict[str, TopicIdNumbers] = field(default_factory=dict)
    expressions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    listed: Mapping[str, Topic] | None = None
    changes: list[int] = field(default_factory=list)
    newcomer: str | None = None  # its first record is in the current write
    last: tuple[int, int] = (-1, -1)  # offset and timestamp of the group's last record
    epoch: int | None = None
    begins_at: int | None = None  # the first epoch read, until its target is complete
    has_hash: bool = False  # of topics, beside the epoch
    from_birth: bool = False
    known: bool = False
    hole: bool = False  # a record could not be read: what it changed is unknown until the group is deleted


def follow(records: Iterable[Logged], default: str = DEFAULT_ASSIGNOR) -> Iterator[WrittenTarget]:
    """Yield each target that one group's records complete, in order; the records ascend by offset."""
    state = _State()
    for offset, timestamp, record in records:
        if state.last != (offset - 1, timestamp):
            state.newcomer = None
        state.last = (offset, timestamp)
        if record is None:
            state.hole = True
        elif isinstance(record.value, TargetAssignmentMetadata):
            yield _complete(state, record.value, offset, timestamp, default)
        elif isinstance(record.value, TargetAssignmentMember):
            state.fresh[str(record.key.fields["member_id"])] = _partitions(record.value)
        else:
            _settle(state)
            _apply(state, record)


def _complete(
    state: _State, target: TargetAssignmentMetadata, offset: int, timestamp: int, default: str
) -> WrittenTarget:
    if state.begins_at == FIRST_EPOCH and target.timestamp is None and state.members:
        state.from_birth = state.known = False  # of a Kafka before 4.3, whose epoch 1 is gone
    state.begins_at = None
    newcomer = state.newcomer
    regexes = [said.subscribed_regex for said in state.members.values() if said.subscribed_regex]
    written = WrittenTarget(
        target.epoch,
        offset,
        timestamp,
        _assignor(state, default),
        tuple(
            ServerMember(member, _topics(state, said), state.targets.get(member, ()), said.instance_id)
            for member, said in state.members.items()
        ),
        tuple(state.changes[:-1] if newcomer is not None else state.changes),
        newcomer,
        {member: state.fresh.get(member, state.targets.get(member, ())) for member in state.members},
        state.known and not state.hole,
        state.from_birth and not state.hole,
        any(regex not in state.expressions for regex in regexes),
        is_homogeneous((said.subscribed_topics, said.subscribed_regex) for said in state.members.values()),
        state.listed,
        state.has_hash or target.timestamp is not None,
    )
    _settle(state)
    state.known = True
    return written


def _topics(state: _State, said: MemberMetadata) -> tuple[str, ...]:
    """Return a member's topics: Kafka walks the larger of its names and its expression's, then the rest of the other.

    Of both at once, the set of all is walked here: the sets of an answer do not depend on that order.
    """
    resolved = state.expressions.get(said.subscribed_regex or "", ())
    larger = len(said.subscribed_topics) > len(resolved)
    both = (said.subscribed_topics, resolved) if larger else (resolved, said.subscribed_topics)
    return tuple(dict.fromkeys((*both[0], *both[1])))


def _settle(state: _State) -> None:
    """Accept targets written for another reason than a new epoch (a static member that came back)."""
    state.targets |= state.fresh
    state.fresh.clear()


def _apply(state: _State, record: LogRecord) -> None:
    match record.value:
        case MemberMetadata() as said:
            member = str(record.key.fields["member_id"])
            if member not in state.members:
                state.newcomer = member
                state.changes.append(JOINED)
            else:
                _rewrite(state)
            state.members[member] = said
        case CurrentMemberAssignment():
            _rewrite(state)
        case ConsumerGroupMetadata() as group:
            _reach(state, group)
        case RegularExpression() as resolved:
            state.expressions[str(record.key.fields["regular_expression"])] = resolved.topics
        case None:
            _delete(state, record)
        case _ if record.kind is RecordKind.CONSUMER_GROUP_PARTITION_METADATA:
            state.listed = _listed(cast("Mapping[str, Any]", record.value))
        case _:
            pass


def _rewrite(state: _State) -> None:
    """Note that a member was written again; a newcomer is, at the end of its own write, and what follows finds it."""
    state.newcomer = None
    if state.changes[-1:] != [REWRITTEN]:
        state.changes.append(REWRITTEN)


def _reach(state: _State, group: ConsumerGroupMetadata) -> None:
    if state.epoch is None:
        state.from_birth = state.known = group.epoch in (FIRST_EPOCH, FIRST_EPOCH_BEFORE_4_3)
        state.begins_at = group.epoch
    elif group.epoch != state.epoch + 1:
        state.from_birth = state.known = False
    state.epoch, state.has_hash = group.epoch, group.metadata_hash is not None


def _delete(state: _State, record: LogRecord) -> None:
    member = str(record.key.fields.get("member_id"))
    match record.kind:
        case RecordKind.CONSUMER_GROUP_MEMBER_METADATA if state.members.pop(member, None) is not None:
            state.changes.append(LEFT)
        case RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            state.targets.pop(member, None)
        case RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION:
            state.expressions.pop(str(record.key.fields["regular_expression"]), None)
        case RecordKind.CONSUMER_GROUP_PARTITION_METADATA:
            state.listed = None
        case RecordKind.CONSUMER_GROUP_METADATA:
            state.epoch, state.from_birth, state.known, state.hole = None, False, False, False
            state.begins_at, state.listed = None, None
            state.changes.clear()
        case _:
            pass


def _listed(value: Mapping[str, Any]) -> dict[str, Topic]:
    return {
        str(topic["topic_name"]): Topic(TopicId(uuid_bytes(topic["topic_id"])), topic["num_partitions"])
        for topic in value["topics"]
    }


def _assignor(state: _State, default: str) -> str:
    """Return the assignor that most members request, as ConsumerGroup counts; those that request none are ignored."""
    asked = Counter(said.server_assignor for said in state.members.values() if said.server_assignor)
    return asked.most_common(1)[0][0] if asked else default


def _partitions(value: TargetAssignmentMember) -> TopicIdNumbers:
    return tuple((TopicId(uuid_bytes(topic)), partitions) for topic, partitions in value.topic_partitions)
