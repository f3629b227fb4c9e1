"""Online conversions (KIP-848): a classic group goes on as a consumer group, or back, and nobody leaves it.

The coordinator writes the tombstones of the one type and the records of the other as one batch, so with one timestamp,
and counts on from the generation to the epoch. A group that was deleted begins anew: its members have other ids, and it
counts from the beginning. What tells the two apart may lie in records to come, so these are looked at first; where they
end too early, the decision is open, and the next read makes it again (`GroupState.undecided`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import takewhile

from groupledger.core.history.modern import FIRST_EPOCH
from groupledger.core.history.roles import ROLES, GroupType, Role
from groupledger.core.history.rows import LogRow
from groupledger.core.history.writer import GroupState
from groupledger.core.wire.faults import DecodeFault
from groupledger.core.wire.offsets_log import (
    ConsumerGroupMetadata,
    GroupMetadata,
    LogKey,
    MemberMetadata,
    RecordKind,
    RecordValue,
    decode_value,
)

OF_MEMBERS = frozenset({Role.MEMBER, Role.TARGET, Role.CURRENT})


class TypeChange(Enum):
    """What a record does to the type of its group."""

    NONE = auto()
    OPEN = auto()  # nothing, as far as the records go: more of them may show that it converts the group
    CONVERTS = auto()  # from here on the group is of the other type
    PASSES = auto()  # a tombstone of a type that the group leaves, in the batch that converts it


@dataclass(slots=True)
class Conversions:
    """The conversions among the records of one fold, which asks record by record; `key_of` gives None for a broken
    key."""

    rows: Sequence[LogRow]
    key_of: Callable[[LogRow], LogKey | None]
    _passing: set[int] = field(default_factory=set)
    _converting: set[int] = field(default_factory=set)
    _looked_at: int = 0

    def change(self, state: GroupState, at: int) -> TypeChange:
        """Return what the record at that place does to a group in this state."""
        if at in self._passing or at in self._converting:
            return TypeChange.PASSES if at in self._passing else TypeChange.CONVERTS
        key, is_tombstone = self.key_of(self.rows[at]), self.rows[at].value is None
        is_classic = key is not None and key.kind is RecordKind.GROUP_METADATA
        if key is None or not (is_classic or _of_consumers(key)):
            return TypeChange.NONE
        if state.alive and state.group_type == GroupType.CONSUMER:
            if is_classic:
                return self._to_classic(state, at)
            return self._leaving(state, at) if is_tombstone and at >= self._looked_at else TypeChange.NONE
        from_classic = state.alive and state.group_type == GroupType.CLASSIC
        if is_tombstone is is_classic and (from_classic or (is_classic and not state.incarnation)):
            return self._to_consumer(state, at)
        return TypeChange.NONE

    def _to_consumer(self, state: GroupState, at: int) -> TypeChange:
        """Judge a classic group's tombstone, or a consumer group's record before that tombstone."""
        members = state.generation.members if state.generation is not None else {}
        first = at
        while first < len(self.rows) and self._is_idle(first, GroupType.CLASSIC):
            first += 1
        if first == len(self.rows):
            return TypeChange.OPEN if members else TypeChange.NONE
        batch = list(takewhile(lambda row: row.timestamp_ms == self.rows[first].timestamp_ms, self.rows[first:]))
        at_once = self.rows[at].timestamp_ms == batch[0].timestamp_ms
        number = state.number if state.alive else None
        if self._goes_on_as(batch, members, number, at_once=at_once, tombstone=first > at):
            return TypeChange.CONVERTS
        key = self.key_of(self.rows[first])
        ends = first + len(batch) == len(self.rows)
        return TypeChange.OPEN if members and ends and key is not None and _of_consumers(key) else TypeChange.NONE

    def _goes_on_as(
        self, batch: Sequence[LogRow], members: Container[str], number: int | None, *, at_once: bool, tombstone: bool
    ) -> bool:
        """Whether a batch is of a consumer group that these classic members are in, at this generation.

        A member id is proof: the coordinator gave it. So is a classic member beside the tombstone: a new consumer group
        does not begin with one. A number is where it is no new group's, and beside the tombstone if there is one.
        """
        epoch: int | None = None
        for row in batch:
            key = self.key_of(row)
            if key is None or not _of_consumers(key):
                continue
            role = ROLES[key.kind][1]
            if role in OF_MEMBERS and key.fields.get("member_id") in members:
                return True
            value = _value(key, row)
            is_classic = isinstance(value, MemberMetadata) and value.classic_member_metadata is not None
            if is_classic and tombstone and at_once:
                return True
            if isinstance(value, ConsumerGroupMetadata) and epoch is None:
                epoch = value.epoch
        return (
            (at_once or not tombstone)
            and None not in (epoch, number)
            and _goes_on(number or 0, epoch or 0)
            and (epoch or 0) > FIRST_EPOCH
        )

    def _to_classic(self, state: GroupState, at: int) -> TypeChange:
        """Judge a classic group's record before the tombstones of the consumer group."""
        value = _value(self.key_of(self.rows[at]), self.rows[at])
        if not isinstance(value, GroupMetadata) or state.modern is None:
            return TypeChange.NONE
        if any(member.member_id in state.modern.metadata for member in value.members):
            return TypeChange.CONVERTS
        number = state.number
        is_old = number is not None and number > FIRST_EPOCH and _goes_on(number, value.generation)
        return TypeChange.CONVERTS if is_old and value.members else TypeChange.NONE

    def _leaving(self, state: GroupState, at: int) -> TypeChange:
        """Judge a tombstone of a consumer group: a member leaves, the group is deleted, or it is converted.

        It only does that with classic members in it.
        """
        members = state.modern.metadata.values() if state.modern is not None else ()
        if all(member.value.classic_member_metadata is None for member in members):
            return TypeChange.NONE
        classic = at
        while classic < len(self.rows) and self._is_idle(classic, GroupType.CONSUMER):
            classic += 1
        self._looked_at = classic
        if classic == len(self.rows):
            return TypeChange.OPEN
        value = _value(self.key_of(self.rows[classic]), self.rows[classic])
        if isinstance(value, GroupMetadata):
            self._take_batch(state, (at, classic), value)
        return TypeChange.PASSES if at in self._passing else TypeChange.NONE

    def _take_batch(self, state: GroupState, span: tuple[int, int], value: GroupMetadata) -> None:
        """Find the tombstones of the batch that makes the group a classic one.

        Where its classic record is no longer there, a later one tells who stayed: others left with the tombstones.
        """
        assert state.modern is not None
        begin, classic = span
        staying = {member.member_id for member in value.members} & state.modern.metadata.keys()
        number = state.number if state.number is not None else -1
        batch = self._at_once(range(begin, classic), self.rows[classic].timestamp_ms)
        if batch:
            if staying or (value.members and _goes_on(number, value.generation)):
                self._passing |= set(batch)
                self._converting.add(classic)
            return
        ended = [at for at in range(begin, classic) if self._role(at) is Role.EPOCH]
        batch = self._at_once(range(begin, classic), self.rows[ended[-1]].timestamp_ms) if ended else []
        gone_before = {self._name(at) for at in range(begin, classic) if at not in batch}
        if staying - gone_before:
            self._passing |= {at for at in batch if self._role(at) not in OF_MEMBERS or self._name(at) in staying}
            self._converting.add(classic)

    def _at_once(self, places: range, timestamp_ms: int) -> list[int]:
        return [at for at in places if self.rows[at].timestamp_ms == timestamp_ms and self._role(at) is not None]

    def _role(self, at: int) -> Role | None:
        key = self.key_of(self.rows[at])
        return ROLES[key.kind][1] if key is not None and _of_consumers(key) else None

    def _name(self, at: int) -> str:
        key = self.key_of(self.rows[at])
        return "" if key is None else str(key.fields.get("member_id") or "")

    def _is_idle(self, at: int, ending: GroupType) -> bool:
        """Whether the record tells nothing of a group of the type that is ending, or that its records are deleted."""
        key = self.key_of(self.rows[at])
        if key is None or (key.kind not in ROLES and key.kind is not RecordKind.GROUP_METADATA):
            return True
        if self.rows[at].value is not None:
            return False
        return _of_consumers(key) or (ending is GroupType.CLASSIC and key.kind is RecordKind.GROUP_METADATA)


def _of_consumers(key: LogKey) -> bool:
    return key.kind in ROLES and ROLES[key.kind][0] is GroupType.CONSUMER


def _goes_on(before: int, number: int) -> bool:
    """Whether an epoch or generation is that of the other type, or the next."""
    return 0 <= number - before <= 1


def _value(key: LogKey | None, row: LogRow) -> RecordValue | None:
    """Decode the value of a record; None for a tombstone, and for a value that does not decode."""
    if key is None or row.value is None:
        return None
    try:
        return decode_value(key.kind, row.value)[1]
    except DecodeFault:
        return None
