"""Read the targets a coordinator wrote to the log, each with the group it was computed from (KIP-848).

`follow` reads one group's records in the order of their offsets. A target was computed from the state before its
records: members in the order they joined, their targets in the order of their records. A member is "joining" if its
first record is in the same write as the target: Kafka then puts it after the members already in its table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from groupledger.core.assignors.server.group import ServerGroup, ServerMember, Topic, TopicId, TopicIdNumbers
from groupledger.core.assignors.server.order import JOINED, LEFT, REWRITTEN
from groupledger.core.wire.offsets_log import (
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    LogRecord,
    MemberMetadata,
    RecordKind,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)
from groupledger.core.wire.primitives import uuid_bytes

FIRST_EPOCH = 2  # of every new group: its first records have epoch 2
DEFAULT_ASSIGNOR = "uniform"  # the first of group.consumer.assignors, unless the broker is configured otherwise

Logged = tuple[int, int, LogRecord | None]
"""Offset, timestamp (ms) and record; None: its bytes do not decode."""


@dataclass(frozen=True, slots=True)
class WrittenTarget:
    """A completed target: `members` with what it was computed from, and `after`, what was written.

    `before_known`: no record it was computed from can be missing. `history_known`: the group was read from its first
    record on. Group epochs prove it: each is stored under one key, so compaction leaves no two consecutive ones.
    `has_regex`: a member subscribes by a regular expression, whose topics are not in `members`.
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
    has_regex: bool

    def group(self, topics: Mapping[str, Topic]) -> ServerGroup:
        """Return the group before the target, with the topics of that moment."""
        return ServerGroup(self.members, topics, self.changes, self.joining)


@dataclass(slots=True)
class _State:
    """The group after its last records; `fresh`: new targets not yet completed by a TargetAssignmentMetadata."""

    members: dict[str, MemberMetadata] = field(default_factory=dict)
    targets: dict[str, TopicIdNumbers] = field(default_factory=dict)
    fresh: dict[str, TopicIdNumbers] = field(default_factory=dict)
    changes: list[int] = field(default_factory=list)
    newcomer: str | None = None  # its first record is in the current write
    last: tuple[int, int] = (-1, -1)  # offset and timestamp of the group's last record
    epoch: int | None = None
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
            yield _complete(state, record.value.epoch, offset, timestamp, default)
        elif isinstance(record.value, TargetAssignmentMember):
            state.fresh[str(record.key.fields["member_id"])] = _partitions(record.value)
        else:
            _settle(state)
            _apply(state, record)


def _complete(state: _State, epoch: int, offset: int, timestamp: int, default: str) -> WrittenTarget:
    members = tuple(
        ServerMember(member, said.subscribed_topics, state.targets.get(member, ()), said.instance_id)
        for member, said in state.members.items()
    )
    newcomer = state.newcomer
    written = WrittenTarget(
        epoch,
        offset,
        timestamp,
        _assignor(state, default),
        members,
        tuple(state.changes[:-1] if newcomer is not None else state.changes),
        newcomer,
        {member: state.fresh.get(member, state.targets.get(member, ())) for member in state.members},
        state.known and not state.hole,
        state.from_birth and not state.hole,
        any(said.subscribed_regex for said in state.members.values()),
    )
    _settle(state)
    state.known = True
    return written


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
            _reach(state, group.epoch)
        case None:
            _delete(state, record)
        case _:
            pass


def _rewrite(state: _State) -> None:
    """Note that a member was written again; a newcomer is, at the end of its own write, and what follows finds it."""
    state.newcomer = None
    if state.changes[-1:] != [REWRITTEN]:
        state.changes.append(REWRITTEN)


def _reach(state: _State, epoch: int) -> None:
    if state.epoch is None:
        state.from_birth = state.known = epoch == FIRST_EPOCH
    elif epoch != state.epoch + 1:
        state.from_birth = state.known = False
    state.epoch = epoch


def _delete(state: _State, record: LogRecord) -> None:
    member = str(record.key.fields.get("member_id"))
    match record.kind:
        case RecordKind.CONSUMER_GROUP_MEMBER_METADATA if state.members.pop(member, None) is not None:
            state.changes.append(LEFT)
        case RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            state.targets.pop(member, None)
        case RecordKind.CONSUMER_GROUP_METADATA:
            state.epoch, state.from_birth, state.known, state.hole = None, False, False, False
            state.changes.clear()
        case _:
            pass


def _assignor(state: _State, default: str) -> str:
    """Return the assignor that most members request, as ConsumerGroup counts; those that request none are ignored."""
    asked = Counter(said.server_assignor for said in state.members.values() if said.server_assignor)
    return asked.most_common(1)[0][0] if asked else default


def _partitions(value: TargetAssignmentMember) -> TopicIdNumbers:
    return tuple((TopicId(uuid_bytes(topic)), partitions) for topic, partitions in value.topic_partitions)
