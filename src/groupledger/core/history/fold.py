"""One group's log records, in order of offset, folded into facts.

Folding in parts, each from the head of the one before, gives the same rows and the same last head, byte for byte, as
folding all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from groupledger.core.faults import Fault
from groupledger.core.findings import OFFSET_REWRITTEN
from groupledger.core.history import gaps
from groupledger.core.history.accounts import Accounts
from groupledger.core.history.classic import delete_classic, fold_classic, join_consumer_group
from groupledger.core.history.conversions import Conversions, TypeChange
from groupledger.core.history.head import decode_head, encode_head
from groupledger.core.history.home import home_of
from groupledger.core.history.modern import fold_modern, fold_modern_tombstone, mark_hole, unfinished
from groupledger.core.history.roles import ROLES
from groupledger.core.history.rows import Folded, GroupHeadRow, LogRow, QuarantineRow
from groupledger.core.history.topics import TopicHistory
from groupledger.core.history.writer import STEP_MEMBERS, GroupState, HistoryWriter
from groupledger.core.wire.control_records import CONTROL_RECORD, is_control_record
from groupledger.core.wire.faults import DecodeFault
from groupledger.core.wire.memo import Memo
from groupledger.core.wire.offsets_log import GroupMetadata, LogKey, RecordKind, decode_key, decode_value

OTHER_LOG_PARTITION = "OTHER_LOG_PARTITION"
"""The code of a record that stands in another log partition than the group's others."""

OTHER_GROUP = "OTHER_GROUP"
"""The code of a record whose key names another group than the one that it was read with."""

BEGINNING = -1
"""Offset before the first record."""

_position = itemgetter(0, 1)

USED = ROLES.keys() | {RecordKind.GROUP_METADATA}


@dataclass(frozen=True, slots=True)
class FoldSettings:
    """`source` names the input in quarantine rows. `check_unused`: decode also the values that no fact needs (offset
    commits, the states of share partitions), so that broken ones are quarantined. `step_members`: a group of more
    members that its coordinator assigns has no snapshot at each step of a member, which would be members x members rows
    an epoch, but only where the target is complete and where all members have reached it; its ownership changes are all
    there.
    """

    source: str = "__consumer_offsets"
    check_unused: bool = True
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
    which would be lost silently: `start_of_refold` says which head to start from.
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
        self._keys: Memo[LogKey] = Memo()
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
        rows = [*self.again, *self._one_a_position()]
        conversions = Conversions(rows, self._readable_key)
        for at, row in enumerate(rows):
            change = conversions.change(writer.state, at)
            if change is TypeChange.OPEN and undecided is None:
                undecided = self._before(rows[at:])
            self._take(row, change)
            writer.state.offset = row.offset
        cut = unfinished(writer, rows[-1]) if rows else None
        return Folded(
            writer.group_snapshots,
            writer.member_snapshots,
            writer.ownership_changes,
            writer.coverage,
            writer.quarantine,
            writer.violations,
            self._head(undecided, refolded=refolded or bool(self.again)),
            self.accounts.close(sum(not row.known for row in self.rows)),
            cut,
        )

    def _home(self) -> int:
        partitions = {row.log_partition for row in self.rows}
        if len(partitions) < 2:
            return partitions.pop() if partitions else 0
        distinct = {row._replace(known=False) for row in self.rows}
        return home_of(self.group_id, Counter(row.log_partition for row in distinct))

    def _before(self, rows: Sequence[LogRow]) -> bytes:
        """Return the head of the state from before these last records, which may have to be folded again."""
        state = self.writer.state
        state.undecided = tuple(rows)
        head = encode_head(state)
        state.undecided = ()
        return head

    def _readable_key(self, row: LogRow) -> LogKey | None:
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

    def _one_a_position(self) -> Iterator[LogRow]:
        """The records of the group's log partition, one for each offset."""
        same: list[LogRow] = []
        for row in self._own_partition():
            if same and row[:2] != same[0][:2]:
                yield self._choose(same)
                same = [row]
            else:
                same.append(row)
        if same:
            yield self._choose(same)

    def _own_partition(self) -> Iterator[LogRow]:
        """The records of the group's log partition; those that name no group may come from any."""
        if self.group_id is None:
            yield from self.rows
            return
        log_partition = self.writer.state.log_partition
        for row in self.rows:
            if row.log_partition != log_partition:
                self._refuse_partition(row)
            elif row.offset <= self.read_to:
                message = f"record at offset {row.offset} is not after the head's {self.read_to}"
                raise ValueError(f"{message}; start from the head that start_of_refold names")
            else:
                yield row

    def _choose(self, rows: list[LogRow]) -> LogRow:
        """Of records at one offset the one with the least timestamp, then key, then value: arrival does not matter."""
        if len(rows) == 1:
            return rows[0]
        kept, *others = sorted(rows, key=_content)
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
                fold_modern(self.writer, row, key, value)
            self.accounts.count(row, self.accounts.used, kind.value)
        else:
            if self.settings.check_unused:
                decode_value(kind, row.value)
            self.accounts.count(row, self.accounts.unused, kind.value)

    def _end(self, row: LogRow, key: LogKey) -> None:
        """Fold a tombstone."""
        if key.kind is RecordKind.GROUP_METADATA:
            delete_classic(self.writer, row)
        elif key.kind in ROLES:
            fold_modern_tombstone(self.writer, row, key)

    def _hole(self, row: LogRow, what: str, fault: Fault) -> None:
        if self.group_id is not None:
            mark_hole(self.writer, row, gaps.undecoded(what, row.offset, fault))

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
        known = None if data is None else self._keys.get(data)
        if known is None:
            known = decode_key(data)
            self._keys.put(data or b"", known)
        return known

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
    """The message of OTHER_GROUP."""
    return f"key names group {named!r}; expected {expected!r}: the read mixed groups"


def _content(row: LogRow) -> tuple[int, bytes, bool, bytes, bool]:
    return row.timestamp_ms, row.key or b"", row.value is not None, row.value or b"", not row.known
