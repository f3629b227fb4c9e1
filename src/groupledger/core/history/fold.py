"""One group's log records, in order of offset, folded into facts.

Folding in parts, each from the head of the one before, gives the same rows and the same last head, byte for byte, as
folding all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from itertools import chain, groupby, takewhile
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from groupledger.core.arrays.java_orders import hash_texts
from groupledger.core.faults import Fault
from groupledger.core.history import fold_rows
from groupledger.core.history.classic import delete_group, fold_classic, join_consumer_group
from groupledger.core.history.fold_rows import (
    ROLES,
    Accounts,
    Assignment,
    Folded,
    GroupHeadRow,
    GroupType,
    LogRow,
    OwnershipChangeRow,
    QuarantineRow,
    Role,
)
from groupledger.core.history.head import decode_head, encode_head
from groupledger.core.history.kip848 import FIRST_EPOCH, fold_kip848, fold_kip848_tombstone, mark_hole
from groupledger.core.history.ownership import STEP_MEMBERS, GroupState, HistoryWriter, Ownership, OwnershipChange
from groupledger.core.log.listings import TopicHistory
from groupledger.core.rebalance.findings import OFFSET_REWRITTEN
from groupledger.core.wire.codec import DecodeFault, Memo
from groupledger.core.wire.offsets_log import (
    CONTROL_RECORD,
    LogKey,
    RecordKind,
    commit_kind,
    decode_key,
    decode_value,
    is_control_record,
)
from groupledger.core.wire.records import ConsumerGroupMetadata, GroupMetadata, MemberMetadata, RecordValue

OTHER_LOG_PARTITION = "OTHER_LOG_PARTITION"
"""The code of a record that stands in another log partition than the group's others."""

OTHER_GROUP = "OTHER_GROUP"
"""The code of a record whose key names another group than the one that it was read with."""

BEGINNING = -1
"""Offset before the first record."""

_position = itemgetter(0, 1)


def _choice(row: LogRow) -> tuple[object, ...]:
    """Order records by position, then by which is chosen of those that are at one."""
    return *row[:3], row.key or b"", row.value is not None, row.value or b"", not row.known


USED = ROLES.keys() | {RecordKind.GROUP_METADATA}


@dataclass(frozen=True, slots=True)
class FoldSettings:
    """`source` names the input in quarantine rows. `step_members`: a group of more members that its coordinator assigns
    has no snapshot at each step of a member, which would be members x members rows an epoch, but only where the target
    is complete and where all members have reached it; its ownership changes are all there.
    """

    source: str = "__consumer_offsets"
    step_members: int = STEP_MEMBERS


def fold_group(
    cluster_id: str,
    rows: Sequence[LogRow],
    head: bytes | None,
    topics: TopicHistory,
    *,
    settings: FoldSettings = FoldSettings(),
    refolded: bool = False,
    group_id: str | None = None,
    log_partition: int | None = None,
) -> Folded:
    """Fold the records of one group that come after `head` (None: from the beginning), in any order of arrival.

    `log_partition` is the one that the group's records belong to, in a fold from the beginning; None: `home_of` decides
    among these records alone. Records elsewhere are quarantined. `refolded` is only written to the head: the facts
    supersede earlier ones after `head`. `counts` are of the records that are not `known`. `group_id` is the group that
    the source sorted the records by; None: the first that a key names. It is needed where no key decodes: a broken key
    that begins with a group's name is a hole in that group's history, whatever else came with it. Records of no group
    (their keys do not decode) fold to quarantine rows, and to no head. ValueError for a record at or before the head,
    which would be lost silently: start from the last head before the first such record.
    """
    return Fold(cluster_id, rows, head, topics, settings, group_id, log_partition).run(refolded)


class Fold:
    """One run of `fold_group`."""

    def __init__(
        self,
        cluster_id: str,
        rows: Sequence[LogRow],
        head: bytes | None,
        topics: TopicHistory,
        settings: FoldSettings,
        group_id: str | None,
        log_partition: int | None,
    ) -> None:
        self.settings = settings
        self.accounts = Accounts()
        self._keys = Memo(decode_key)
        self.rows = sorted(rows, key=_position)
        self.group_id: str | None = None
        self.from_offset = self.read_to = BEGINNING
        if head is None:
            self.group_id = self._first_group() if group_id is None else group_id
            home = self._home() if log_partition is None else log_partition
            state = GroupState(self.group_id or "", home)
        else:
            state = decode_head(head, topics)
            self.group_id, self.from_offset = state.group_id, state.offset
            self.read_to = state.undecided[-1].offset if state.undecided else state.offset
        self.again, state.undecided = state.undecided, ()
        self.writer = HistoryWriter(cluster_id, state, topics, settings.step_members)

    def run(self, refolded: bool) -> Folded:
        """Take each position's record once, first those that the head left undecided: what was said of them is over."""
        writer, undecided = self.writer, None
        at_place = [list(same) for _, same in groupby([*self.again, *self._own_partition()], _position)]
        rows = [self._choose(same) for same in at_place]
        conversions = Conversions(rows, self._readable_key)
        for at, row in enumerate(rows):
            change = conversions.change(writer.state, at)
            if change is TypeChange.OPEN and undecided is None:
                undecided = self._before(chain.from_iterable(at_place[at:]))
            self._take(row, change)
            writer.state.offset = row.offset
        return Folded(
            writer.group_snapshots,
            writer.member_snapshots,
            writer.ownership_changes,
            writer.coverage,
            writer.quarantine,
            writer.violations,
            self._head(undecided, refolded=refolded or bool(self.again)),
            self.accounts.close(sum(not row.known for row in self.rows)),
        )

    def _home(self) -> int:
        partitions = {row.log_partition for row in self.rows}
        if len(partitions) < 2:
            return partitions.pop() if partitions else 0
        distinct = {row._replace(known=False) for row in self.rows}
        return home_of(self.group_id, Counter(row.log_partition for row in distinct))

    def _before(self, rows: Iterable[LogRow]) -> bytes:
        """Return the head of the state from before these last records, which may have to be folded again.

        Also of those not chosen: what was said of them is said again.
        """
        state = self.writer.state
        state.undecided = tuple(sorted({row._replace(known=True) for row in rows}, key=_choice))
        head = encode_head(state)
        state.undecided = ()
        return head

    def _readable_key(self, row: LogRow) -> LogKey | None:
        if commit_kind(row.key) is not None:
            return None
        try:
            key = self._key(row.key)
        except DecodeFault:
            return None
        return key if key.group_id in (None, self.group_id) else None

    def _head(self, undecided: bytes | None, *, refolded: bool) -> GroupHeadRow | None:
        state = self.writer.state
        if self.group_id is None:
            return None
        place = (self.writer.cluster_id, self.group_id, state.log_partition, self.from_offset, state.offset)
        return GroupHeadRow(*place, state.incarnation, refolded, undecided or encode_head(state))

    def _own_partition(self) -> Iterator[LogRow]:
        """Yield the records of the group's log partition; those that name no group may come from any."""
        if self.group_id is None:
            yield from self.rows
            return
        log_partition = self.writer.state.log_partition
        for row in self.rows:
            if row.log_partition != log_partition:
                self._refuse_partition(row)
            elif row.offset <= self.read_to:
                message = f"record at offset {row.offset} is not after the head's {self.read_to}"
                raise ValueError(f"{message}; start from the last head before it")
            else:
                yield row

    def _choose(self, rows: list[LogRow]) -> LogRow:
        """Of records at one offset the one with the least timestamp, then key, then value: arrival does not matter."""
        if len(rows) == 1:
            return rows[0]
        kept, *others = sorted(rows, key=_choice)
        seen = {kept[3:5]}
        for row in others:
            if row[3:5] in seen:
                self.accounts.count(row, self.accounts.duplicates, "read twice")
                continue
            seen.add(row[3:5])
            evidence = (
                f"offset {row.offset} was read with other bytes too: kept is the record of {kept.timestamp_ms} ms, "
                f"quarantined that of {row.timestamp_ms} ms; the log was truncated and written again, or two clusters "
                "share this cluster id"
            )
            self._quarantine(row, OFFSET_REWRITTEN.recorded_as, evidence)
            if self.group_id is not None:
                self.writer.found(OFFSET_REWRITTEN, row, evidence)
        return kept

    def _take(self, row: LogRow, change: TypeChange) -> None:
        if is_control_record(row.key, row.value):
            self.accounts.count(row, self.accounts.unused, CONTROL_RECORD)
            return
        commit = commit_kind(row.key)
        if commit is not None:
            counter = self.accounts.tombstones if row.value is None else self.accounts.unused
            self.accounts.count(row, counter, commit.value)
            return
        try:
            key = self._key(row.key)
            if key.group_id is not None and key.group_id != self.group_id:
                self._quarantine(row, OTHER_GROUP, other_group(key.group_id, self.group_id))
                return
        except DecodeFault as fault:
            self._quarantine(row, fault.code, fault.message)
            self._hole(row, "key", fault)
            return
        try:
            self._fold(row, key, change)
        except DecodeFault as fault:
            self._quarantine(row, fault.code, fault.message)
            if key.kind in USED:
                self._hole(row, key.kind.value, fault)

    def _fold(self, row: LogRow, key: LogKey, change: TypeChange) -> None:
        kind, converts = key.kind, change is TypeChange.CONVERTS
        if converts and (kind is not RecordKind.GROUP_METADATA or row.value is None):
            join_consumer_group(self.writer, row)
        if kind is RecordKind.UNKNOWN:
            self.accounts.count(row, self.accounts.unused, f"{kind.value} type {key.version}")
        elif row.value is None:
            if change in (TypeChange.NONE, TypeChange.OPEN):
                self._end(row, key)
            self.accounts.count(row, self.accounts.tombstones, kind.value)
        elif kind in USED:
            _, value = decode_value(kind, row.value)
            if isinstance(value, GroupMetadata):
                fold_classic(self.writer, row, value, converts=converts)
            else:
                fold_kip848(self.writer, row, key, value)
            self.accounts.count(row, self.accounts.used, kind.value)
        else:  # no fact needs its value
            self.accounts.count(row, self.accounts.unused, kind.value)

    def _end(self, row: LogRow, key: LogKey) -> None:
        """Fold a tombstone."""
        if key.kind is RecordKind.GROUP_METADATA:
            delete_group(self.writer, row, GroupType.CLASSIC)
        elif key.kind in ROLES:
            fold_kip848_tombstone(self.writer, row, key)

    def _hole(self, row: LogRow, what: str, fault: Fault) -> None:
        if self.group_id is not None:
            mark_hole(self.writer, row, fold_rows.undecoded(what, row.offset, fault))

    def _refuse_partition(self, row: LogRow) -> None:
        message = (
            f"group {self.group_id!r} has a record in log partition {row.log_partition}; expected "
            f"{self.writer.state.log_partition}, where Kafka keeps it by the hash of its id, or most of its records "
            "are: was the record mislabelled, or are two clusters read under one cluster id? If "
            f"{row.log_partition} is right, set offsets_partitions of the source"
        )
        self._quarantine(row, OTHER_LOG_PARTITION, message)

    def _quarantine(self, row: LogRow, code: str, message: str) -> None:
        self.accounts.count(row, self.accounts.quarantined, code)
        place = (self.writer.cluster_id, row.log_partition, row.offset, self.group_id)
        rejected = QuarantineRow("fold", self.settings.source, *place, None, code, message, row.key, row.value, None)
        self.writer.quarantine.append(rejected)

    def _key(self, data: bytes | None) -> LogKey:
        return decode_key(data) if data is None else self._keys[data]

    def _first_group(self) -> str | None:
        for row in self.rows:
            try:
                group_id = self._key(row.key).group_id
            except DecodeFault:
                continue
            if group_id is not None:
                return group_id
        return None


def other_group(named: str, expected: str | None) -> str:
    """Return the message of OTHER_GROUP."""
    return f"key names group {named!r}; expected {expected!r}: the read mixed groups"


# Online conversions (KIP-848): a classic group continues as a consumer group, or back, and no member leaves it.
#
# The coordinator writes the tombstones of the one type and the records of the other as one batch, so with one
# timestamp, and counts on from the generation to the epoch. A group that was deleted begins again: its members have
# other ids, and it counts from the beginning. What distinguishes the two may be in records to come, so these are looked
# at first; where they end too early, the decision is open, and the next read makes it again (`GroupState.undecided`).

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
    key, and for that of an offset commit."""

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
        if self._continues_as(batch, members, number, at_once=at_once, tombstone=first > at):
            return TypeChange.CONVERTS
        key = self.key_of(self.rows[first])
        ends = first + len(batch) == len(self.rows)
        return TypeChange.OPEN if members and ends and key is not None and _of_consumers(key) else TypeChange.NONE

    def _continues_as(
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
            and _continues(number or 0, epoch or 0)
            and (epoch or 0) > FIRST_EPOCH
        )

    def _to_classic(self, state: GroupState, at: int) -> TypeChange:
        """Judge a classic group's record before the tombstones of the consumer group."""
        value = _value(self.key_of(self.rows[at]), self.rows[at])
        if not isinstance(value, GroupMetadata) or state.kip848 is None:
            return TypeChange.NONE
        if any(member.member_id in state.kip848.metadata for member in value.members):
            return TypeChange.CONVERTS
        number = state.number
        is_old = number is not None and number > FIRST_EPOCH and _continues(number, value.generation)
        return TypeChange.CONVERTS if is_old and value.members else TypeChange.NONE

    def _leaving(self, state: GroupState, at: int) -> TypeChange:
        """Judge a tombstone of a consumer group: a member leaves, the group is deleted, or it is converted.

        It only does that with classic members in it.
        """
        members = state.kip848.metadata.values() if state.kip848 is not None else ()
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

        Where its classic record is no longer there, a later one names who stayed: others left with the tombstones.
        """
        assert state.kip848 is not None
        begin, classic = span
        staying = {member.member_id for member in value.members} & state.kip848.metadata.keys()
        number = state.number if state.number is not None else -1
        batch = self._at_once(range(begin, classic), self.rows[classic].timestamp_ms)
        if batch:
            if staying or (value.members and _continues(number, value.generation)):
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
        """Whether the record says nothing of a group of the type that is ending, or that its records are deleted."""
        key = self.key_of(self.rows[at])
        if key is None or (key.kind not in ROLES and key.kind is not RecordKind.GROUP_METADATA):
            return True
        if self.rows[at].value is not None:
            return False
        return _of_consumers(key) or (ending is GroupType.CLASSIC and key.kind is RecordKind.GROUP_METADATA)


def _of_consumers(key: LogKey) -> bool:
    return key.kind in ROLES and ROLES[key.kind][0] is GroupType.CONSUMER


def _continues(before: int, number: int) -> bool:
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


# Partitions that changed hands between snapshots which users gave as tables: as in the fold of the log.


class HeldSnapshot(NamedTuple):
    """A snapshot of a group, by what its members held; `held` None: it does not say so of every member.

    Times may be of any unit; the changes have the same.
    """

    cluster_id: str
    group_id: str
    snapshot_id: str
    incarnation: int
    offset: int
    observed_at: int
    generation: int | None
    group_epoch: int | None
    held: dict[str, Assignment] | None


class HoldingMember(NamedTuple):
    """A member of a snapshot, by its columns of that name."""

    member_id: str
    recorded: Assignment | None
    target: Assignment | None
    pending_revocation: Assignment | None


def held_by(members: Iterable[HoldingMember]) -> dict[str, Assignment] | None:
    """Member -> what it holds: what is recorded for it, and what it has yet to give up (KIP-848).

    A member without an assignment holds nothing. None where no member has one, nor a target: the source does not say.
    """
    ordered = sorted(members, key=attrgetter("member_id"))
    if ordered and all(member.recorded is None and member.target is None for member in ordered):
        return None
    return {member.member_id: (*(member.recorded or ()), *(member.pending_revocation or ())) for member in ordered}


def held_changes(snapshots: Iterable[HeldSnapshot]) -> Iterator[OwnershipChangeRow]:
    """Yield the changes between the snapshots of one group, given in order of incarnation, offset and snapshot id.

    Since when a partition is held is not known where the snapshot before is not there, or does not say who held what.
    """
    ownership = Ownership()
    before: HeldSnapshot | None = None
    seen = False
    for snapshot in snapshots:
        if before is None or before.incarnation != snapshot.incarnation:
            if before is not None:
                yield from _rows(ownership.settle({}, None), snapshot, before.incarnation)
            seen = _is_first(snapshot)
        before = snapshot
        if snapshot.held is not None:
            changes = ownership.settle(snapshot.held, snapshot.observed_at if seen else None)
            yield from _rows(changes, snapshot, snapshot.incarnation)
        seen = snapshot.held is not None


def _is_first(snapshot: HeldSnapshot) -> bool:
    """Whether nothing can have come before in its incarnation."""
    if snapshot.generation is not None:
        return snapshot.generation <= fold_rows.FIRST_GENERATION
    return snapshot.group_epoch is not None and snapshot.group_epoch <= FIRST_EPOCH


def _rows(changes: list[OwnershipChange], snapshot: HeldSnapshot, incarnation: int) -> list[OwnershipChangeRow]:
    place = snapshot.observed_at, None, snapshot.offset, snapshot.snapshot_id
    return [change.row(snapshot.cluster_id, snapshot.group_id, incarnation, place) for change in changes]


# The log partition that a group's records belong to, where records of it stand in more than one.
#
# Kafka keeps all records of a group in one partition of `__consumer_offsets`: the hash of the group id modulo the
# number of partitions. Records elsewhere are strays: a mislabelled copy, or another cluster read under the same cluster
# id. What is decided follows from the set of records alone, so that no order and no split of them decides.

MOST_PARTITIONS = 1_000
"""The largest number of log partitions that is inferred; Kafka's default is 50."""
LEAST_WITNESSES = 3
"""Fewer groups than these agree on a number by accident."""

_POSITIVE = 0x7FFFFFFF


def log_partition_of(group_id: str, partitions: int) -> int:
    """Return the log partition of a group, as Kafka computes it: `Utils.abs(groupId.hashCode) % partitions`.

    `log_partition_of("payments", 50)` -> 13.
    """
    return int(hash_texts([group_id])[0] & _POSITIVE) % partitions


def possible_counts(witnesses: Iterable[tuple[str, int]]) -> tuple[int, ...]:
    """Return the numbers of log partitions that explain where most groups are.

    `witnesses` are (group id, log partition) of groups seen in one log partition only. All numbers that the most of
    them agree on are given; none where fewer than LEAST_WITNESSES, or not more than half of them, do.
    """
    known = sorted(set(witnesses))
    if len(known) < LEAST_WITNESSES:
        return ()
    hashes = (hash_texts([group for group, _ in known]) & _POSITIVE).astype(np.int64)
    seen = np.array([partition for _, partition in known], np.int64)
    agreeing = np.array([np.count_nonzero(hashes % number == seen) for number in range(1, MOST_PARTITIONS + 1)])
    most = int(agreeing.max())
    if most < LEAST_WITNESSES or 2 * most <= len(known):
        return ()
    return tuple(int(number) + 1 for number in np.flatnonzero(agreeing == most))


def home_of(group_id: str | None, records: Mapping[int, int], possible: Iterable[int] = ()) -> int:
    """Return the log partition a group's records belong to, of those that hold any (log partition -> distinct records).

    Where all `possible` numbers of log partitions give the same one, and the group has records there, it is that one;
    else the one with the most records, of several the lowest. A group is never left without a record.
    """
    named = {log_partition_of(group_id, number) for number in possible} if group_id is not None else set()
    if len(named) == 1 and named <= records.keys():
        return named.pop()
    return min(records, key=lambda partition: (-records[partition], partition))
