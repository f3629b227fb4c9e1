"""The fold of classic groups over columns: all groups of a bucket at once.

Groups that have ever had another type, records in several log partitions or several at one offset, and what the columns
cannot hold, are left to `core.history.fold_group`, one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupledger import tables
from groupledger.core.history import QuarantineRow
from groupledger.core.history.fold import BEGINNING, OTHER_GROUP, other_group
from groupledger.core.history.fold_rows import ROLES
from groupledger.core.history.head import read_classic_head
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.offsets_log import OFFSET_COMMITS, LogKey, RecordKind, commit_kind, decode_key
from groupledger.engine.classic.distinct_payloads import read_payloads, read_records
from groupledger.engine.classic.fact_tables import FactColumns, Findings, head_rows
from groupledger.engine.classic.steps import HeadOfGroup, timeline
from groupledger.engine.fold_schema import DUPLICATES, RECORDS

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import LongArray
    from groupledger.core.faults import Fault
    from groupledger.core.history import FoldSettings, TopicHistory
    from groupledger.engine.classic.record_columns import BoolArray, LogColumns


class Start(NamedTuple):
    """Where the fold of a group starts. `log_partition`: its home, where its records stand in several."""

    state: bytes | None = None
    refolded: bool = False
    log_partition: int | None = None


NO_HEAD = Start()

Starts = Mapping[tuple[str, bytes | None], Start]


@dataclass(frozen=True, slots=True)
class ClassicFacts:
    """What the columns gave: of each table columns or rows, counts by cluster and name, and the groups left over."""

    columns: dict[str, Any]
    rows: dict[str, list[tuple[Any, ...]]]
    counts: Counter[tuple[str, str]]
    left: BoolArray  # [G]


def fold_columns(
    log: LogColumns, starts: Starts, catalogues: dict[str, TopicHistory], settings: FoldSettings
) -> ClassicFacts:
    """Fold the groups that are classic ones; `left` says which are not folded."""
    fit, heads = _fitting(log, starts, catalogues)
    others = OtherRecords.read(log, fit)
    groups = np.flatnonzero(fit)
    at = {int(group): place for place, group in enumerate(groups)}
    heads = {at[group]: head for group, head in heads.items() if group in at}
    plain = np.flatnonzero(log.is_plain & fit[log.group])
    is_tombstone = log.values.is_null[plain]
    records = read_records(log, plain[~is_tombstone])
    payloads = read_payloads(log, records, catalogues)
    line = timeline(log, groups, plain[is_tombstone], others.holes(fit[log.group]), records, payloads, heads)
    odd = line.states.odd != 0
    odd[[at[int(log.group[record])] for record in records.odd]] = True
    facts = FactColumns(log, groups, records, payloads, line, ~odd)
    refused = {record: (RecordKind.GROUP_METADATA.value, fault) for record, fault in records.refused.items()}
    findings = Findings(facts, refused | others.unreadable, catalogues)
    refolded = [starts.get((log.cluster_ids[group], log.group_keys[group]), NO_HEAD).refolded for group in groups]
    left = ~fit
    left[groups[odd]] = True
    taken = RecordAccount(log, left, settings)
    return ClassicFacts(
        {
            tables.GROUP_SNAPSHOTS.name: facts.group_snapshots(),
            tables.MEMBER_SNAPSHOTS.name: facts.member_snapshots(),
            tables.OWNERSHIP_CHANGES.name: facts.ownership_changes(),
        },
        {
            tables.COVERAGE.name: list(findings.coverage()),
            tables.VIOLATIONS.name: list(findings.violations()),
            tables.GROUP_HEADS.name: list(head_rows(facts, refolded, heads)),
            tables.QUARANTINE.name: taken.quarantine(records.refused | others.faults),
        },
        taken.counts(plain[is_tombstone], records.refused, others),
        left,
    )


def _fitting(
    log: LogColumns, starts: Starts, catalogues: dict[str, TopicHistory]
) -> tuple[BoolArray, dict[int, HeadOfGroup]]:
    """Which groups stand in one log partition, each offset once, behind a classic head or none; and these heads."""
    rising = np.ones(len(log.offset), bool)
    rising[1:] = (log.offset[1:] > log.offset[:-1]) & (log.log_partition[1:] == log.log_partition[:-1])
    rising[log.group_start[:-1]] = True
    fit = np.ones(len(log.cluster_ids), bool)
    fit[log.group[~rising]] = False
    heads: dict[int, HeadOfGroup] = {}
    for group, (cluster_id, key) in enumerate(zip(log.cluster_ids, log.group_keys, strict=True)):
        first = int(log.group_start[group])
        start, home = starts.get((cluster_id, key), NO_HEAD), int(log.log_partition[first])
        fit[group] &= key is not None and catalogues[cluster_id].has_one_name_an_id
        if not fit[group]:
            continue
        if start.state is None:
            fit[group] = start.log_partition in (None, home) and log.offset[first] > BEGINNING
            continue
        head = _head(start.state)
        fit[group] = head is not None and _continues(head, (key or b"").decode(), home, int(log.offset[first]))
        if head is not None:
            heads[group] = head
    return fit, heads


def _head(state: bytes) -> HeadOfGroup | None:
    read = read_classic_head(state)
    return None if read is None else HeadOfGroup(*read)


def _continues(head: HeadOfGroup, group_id: str, home: int, offset: int) -> bool:
    state = head.state
    named = all(topic is not None for _, _, topics in head.held for _, topic, _ in topics)
    return named and state.group_id == group_id and state.log_partition == home and offset > state.offset


@dataclass(slots=True)
class OtherRecords:
    """Records whose keys are not those of their groups' generations, by record: under what they are counted, why they
    are refused, and those that are a hole, with what cannot be read."""

    is_commit: BoolArray  # [N] of all records of the log
    unused: dict[int, str] = field(default_factory=dict)
    tombstones: dict[int, str] = field(default_factory=dict)
    faults: dict[int, Fault] = field(default_factory=dict)
    unreadable: dict[int, tuple[str, Fault]] = field(default_factory=dict)

    @classmethod
    def read(cls, log: LogColumns, fit: BoolArray) -> OtherRecords:
        """Read them one by one, but for offset commits; a group with a record of another type does not fit."""
        found, keys = cls(log.keys.begin_with(OFFSET_COMMITS[-1])), dict[bytes, LogKey]()
        owner = log.group
        for record in np.flatnonzero(~log.is_plain & ~found.is_commit & fit[owner]).tolist():
            fit[owner[record]] &= found._take(log, record, int(owner[record]), keys)
        return found

    def _take(self, log: LogColumns, record: int, group: int, keys: dict[bytes, LogKey]) -> bool:
        """Whether the group may be a classic one."""
        data = log.keys[record]
        commit = commit_kind(data)
        if commit is not None:
            self._count(log, record, commit)
            return True
        try:
            key = keys.get(data or b"") or decode_key(data)
        except DecodeFault as fault:
            self.faults[record] = fault
            self.unreadable[record] = "key", fault
            return True
        keys[data or b""] = key
        expected = (log.group_keys[group] or b"").decode()
        if key.group_id is not None and key.group_id != expected:
            self.faults[record] = DecodeFault(OTHER_GROUP, other_group(key.group_id, expected))
            return True
        if key.kind is RecordKind.UNKNOWN:
            self.unused[record] = f"{key.kind.value} type {key.version}"
        elif key.kind in ROLES or key.kind is RecordKind.GROUP_METADATA:
            return False
        else:
            self._count(log, record, key.kind)
        return True

    def _count(self, log: LogColumns, record: int, kind: RecordKind) -> None:
        counted = self.tombstones if log.values.is_null[record] else self.unused
        counted[record] = kind.value

    def holes(self, taken: BoolArray) -> LongArray:
        """Those of the `taken` records that are holes."""
        holes = np.array(sorted(self.unreadable), np.int64)
        return np.asarray(holes[taken[holes]])


class RecordAccount:
    """What became of the records of the groups that are not `left`."""

    def __init__(self, log: LogColumns, left: BoolArray, settings: FoldSettings) -> None:
        self.log, self.settings = log, settings
        self.taken = ~left[log.group]

    def quarantine(self, faults: Mapping[int, Fault]) -> list[tuple[Any, ...]]:
        """Rows of `quarantine`."""
        log, owner = self.log, self.log.group
        rows: list[tuple[Any, ...]] = []
        for record in sorted(faults):
            if self.taken[record]:
                row, group, fault = log.row(record), int(owner[record]), faults[record]
                place = (log.cluster_ids[group], row.log_partition, row.offset, (log.group_keys[group] or b"").decode())
                why = (None, fault.code, fault.message, row.key, row.value, None)
                rows.append(QuarantineRow._make(("fold", self.settings.source, *place, *why)))
        return rows

    def counts(
        self, tombstones: LongArray, refused: Mapping[int, Fault], others: OtherRecords
    ) -> Counter[tuple[str, str]]:
        """How many new records became what, by cluster and name."""
        generation, commit = RecordKind.GROUP_METADATA, RecordKind.OFFSET_COMMIT
        names = (f"used.{generation}", f"tombstones.{generation}", f"unused.{commit}", f"tombstones.{commit}")
        number = {name: code for code, name in enumerate(names)}
        code = np.zeros(len(self.log.offset), np.int64)
        code[tombstones] = 1
        code[others.is_commit] = 2 + self.log.values.is_null[others.is_commit]
        named = {record: f"quarantined.{fault.code}" for record, fault in {**refused, **others.faults}.items()}
        named |= {record: f"unused.{name}" for record, name in others.unused.items()}
        named |= {record: f"tombstones.{name}" for record, name in others.tombstones.items()}
        for record, name in named.items():
            code[record] = number.setdefault(name, len(number))
        every, cluster_ids = list(number), sorted(set(self.log.cluster_ids))
        counts: Counter[tuple[str, str]] = Counter()
        for cluster_id in cluster_ids:
            counts[cluster_id, RECORDS] = counts[cluster_id, DUPLICATES] = 0
        of_cluster = np.searchsorted(cluster_ids, self.log.cluster_ids)[self.log.group] if cluster_ids else code
        kept = self.taken & ~self.log.known
        values, numbers = np.unique(of_cluster[kept] * len(every) + code[kept], return_counts=True)
        for value, rows in zip(values.tolist(), numbers.tolist(), strict=True):
            cluster_id = cluster_ids[value // len(every)]
            counts[cluster_id, every[value % len(every)]] += rows
            counts[cluster_id, RECORDS] += rows
        return counts
