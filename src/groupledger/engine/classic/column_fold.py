"""The fold of classic groups over columns: all groups of a bucket at once.

Groups that have ever had another type, records in several log partitions or several at one offset, and what the columns
cannot hold, are left to `core.history.fold_group`, one at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger import tables
from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.arrays.ragged import owners, places, starts
from groupledger.core.history import (
    CoverageRow,
    FindingRow,
    FoldSettings,
    GroupHeadRow,
    QuarantineRow,
    TopicHistory,
    fold_rows,
)
from groupledger.core.history.classic import (
    ClaimPeriod,
    Disagreement,
    NumbersByTopic,
    double_evidence,
    faults,
    finding,
    rewrite_evidence,
)
from groupledger.core.history.classic_kernels import (
    BEGINS_DELETED,
    BEGINS_LATE,
    DELETED_KIND,
    KINDS,
    REWRITE_KIND,
    SKIPPED,
    TOMBSTONE_MISSING,
    UNREADABLE,
)
from groupledger.core.history.fold import BEGINNING, OTHER_GROUP, other_group
from groupledger.core.history.fold_rows import ROLES, Assignment, GroupType
from groupledger.core.history.head import Tenures, encode_state, read_classic_head
from groupledger.core.history.ownership import SOURCE, Generation, GroupState, snapshot_id
from groupledger.core.rebalance.findings import DOUBLE_OWNED, REWRITE_DIFFERS, Invariant, Severity
from groupledger.core.wire.codec import DecodeFault
from groupledger.core.wire.group_metadata import NO_VERSION
from groupledger.core.wire.offsets_log import OFFSET_COMMITS, LogKey, RecordKind, commit_kind, decode_key
from groupledger.engine.arrow_lists import arrow_type, filled, named
from groupledger.engine.classic.distinct_payloads import GroupRecords, Payloads, read_payloads, read_records
from groupledger.engine.classic.record_columns import CodedTexts, LogColumns, PartitionSets
from groupledger.engine.classic.steps import GroupTimeline, HeadOfGroup, timeline
from groupledger.engine.envelope import SCHEMAS
from groupledger.engine.fold_schema import DUPLICATES, RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.faults import Fault


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
    left: Mask  # [G]


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
) -> tuple[Mask, dict[int, HeadOfGroup]]:
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

    is_commit: Mask  # [N] of all records of the log
    unused: dict[int, str] = field(default_factory=dict)
    tombstones: dict[int, str] = field(default_factory=dict)
    faults: dict[int, Fault] = field(default_factory=dict)
    unreadable: dict[int, tuple[str, Fault]] = field(default_factory=dict)

    @classmethod
    def read(cls, log: LogColumns, fit: Mask) -> OtherRecords:
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

    def holes(self, taken: Mask) -> LongArray:
        """Those of the `taken` records that are holes."""
        holes = np.array(sorted(self.unreadable), np.int64)
        return np.asarray(holes[taken[holes]])


class RecordAccount:
    """What became of the records of the groups that are not `left`."""

    def __init__(self, log: LogColumns, left: Mask, settings: FoldSettings) -> None:
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


# The rows of the tables of facts, as Arrow columns, straight from the columns of a timeline.


class FactColumns:
    """Columns of the tables of facts for the groups of a timeline that are `good`."""

    def __init__(
        self,
        log: LogColumns,
        groups: LongArray,
        records: GroupRecords,
        payloads: Payloads,
        line: GroupTimeline,
        good: Mask,
    ) -> None:
        self.log, self.records, self.payloads, self.line = log, records, payloads, line
        self.good = good
        self.cluster_ids = pa.array([log.cluster_ids[group] for group in groups.tolist()], pa.string())
        self.group_ids = pa.array([(log.group_keys[group] or b"").decode() for group in groups.tolist()], pa.string())
        self.homes = log.log_partition[log.group_start[:-1][groups]]
        self.last_offsets = log.offset[log.group_start[1:][groups] - 1]
        self.snapshots = np.flatnonzero((line.results.kind != NONE) & good[line.group])

    @cached_property
    def prefixes(self) -> Any:
        """What the snapshot ids of each group begin with."""
        clusters = zip(self.cluster_ids.to_pylist(), self.homes.tolist(), strict=True)
        return pa.array([snapshot_id(cluster, home, 0)[:-1] for cluster, home in clusters], pa.string())

    def ids(self, step: LongArray, offset: LongArray) -> Any:
        """Snapshot ids at these offsets of the steps' groups; null where the offset is NONE."""
        texts = pa.array(offset, mask=offset == NONE).cast(pa.string())
        return pc.binary_join_element_wise(self.prefixes.take(pa.array(self.line.group[step])), texts, "")

    @cached_property
    def step_ids(self) -> Any:
        """The id of the snapshot at each step."""
        every = np.arange(len(self.line.record))
        return self.ids(every, self.line.steps.offset)

    def about(self, step: LongArray) -> dict[str, Any]:
        """Return the columns that say where a row's step is."""
        group = pa.array(self.line.group[step])
        return {
            c.SNAPSHOT_ID: self.step_ids.take(pa.array(step)),
            c.CLUSTER_ID: self.cluster_ids.take(group),
            c.GROUP_ID: self.group_ids.take(group),
            c.OFFSET: pa.array(self.line.steps.offset[step]),
        }

    def group_snapshots(self) -> Any:
        """Rows of `group_snapshots`."""
        line, step = self.line, self.snapshots
        results, kind, place = line.results, line.results.kind[step], line.place[step]
        is_deleted = kind == DELETED_KIND
        members = line.steps.member_count[step]
        shared, subscribed = self._topics_of_snapshots
        state = np.where(is_deleted, 2, np.where(members > 0, 0, 1))
        return filled(
            SCHEMAS[tables.GROUP_SNAPSHOTS.name],
            self.about(step)
            | {
                c.SOURCE: SOURCE,
                c.LOG_PARTITION: self.homes[line.group[step]],
                c.GROUP_TYPE: GroupType.CLASSIC.value,
                c.PROTOCOL_TYPE: _text(self.records.protocol_type, place),
                c.INCARNATION: results.incarnation[step],
                c.SNAPSHOT_KIND: _KIND_NAMES.take(pa.array(kind)),
                c.GENERATION: pa.array(line.steps.generation[step], mask=is_deleted),
                c.ASSIGNOR: _text(self.records.protocol, place),
                c.LEADER: _text(self.records.leader, place),
                c.STATE: _STATES.take(pa.array(state)),
                c.COMPLETE: True,
                c.SHARED_TOPICS: shared,
                c.SUBSCRIBED_TOPICS: subscribed,
                c.MEMBERS: members,
                c.PREVIOUS_SNAPSHOT_ID: self.ids(step, results.previous[step]),
                c.FIRST_SNAPSHOT_ID: self.ids(step, np.where(kind == REWRITE_KIND, results.first[step], NONE)),
                c.OBSERVED_AT: times(line.time[step]),
            },
            len(step),
        )

    @cached_property
    def members_of_snapshots(self) -> tuple[LongArray, LongArray]:
        """Where the members of each snapshot start, and the members."""
        steps, step = self.line.steps, self.snapshots
        start = starts(steps.member_count[step])
        return start, places(start) + np.repeat(steps.member_first[step], steps.member_count[step])

    @cached_property
    def _shared(self) -> LongArray:
        """The topics that all members of each snapshot subscribe to; NONE: they differ, or there is nobody."""
        start, member = self.members_of_snapshots
        topics = self._topics_of(member)
        shared = np.full(len(self.snapshots), NONE, np.int64)
        filled = np.flatnonzero(np.diff(start))
        if len(filled):
            least = np.minimum.reduceat(topics, start[:-1][filled])
            shared[filled] = np.where(least == np.maximum.reduceat(topics, start[:-1][filled]), least, NONE)
        return shared

    def _topics_of(self, member: LongArray) -> LongArray:
        """Return the code of each member's topics; NONE: it has no subscription that is read."""
        return np.append(self.payloads.said.topics, NONE)[self.payloads.of_subscription[member]]

    @cached_property
    def _topics_of_snapshots(self) -> tuple[Any, Any]:
        """`shared_topics`, and where there are none `subscribed_topics`."""
        start, member = self.members_of_snapshots
        topics, shared, lists = self._topics_of(member), self._shared, self.payloads.said.topic_lists
        unions: dict[frozenset[int], int] = {}
        union = np.full(len(shared), NONE, np.int64)
        for snapshot in np.flatnonzero(shared == NONE).tolist():
            some = frozenset(topics[start[snapshot] : start[snapshot + 1]].tolist()) - {NONE}
            union[snapshot] = unions.setdefault(some, len(unions))
        named = [sorted({topic for code in some for topic in lists[code]}) for some in unions]
        return chosen(lists, _TOPICS, shared), chosen(named, _TOPICS, union)

    def member_snapshots(self) -> Any:
        """Rows of `member_snapshots`, in JoinGroup order."""
        start, member = self.members_of_snapshots
        step, payloads, records = self.snapshots[owners(start)], self.payloads, self.records
        said, of_subscription = payloads.said, payloads.of_subscription[member]
        own_topics = np.where(self._shared[owners(start)] == NONE, self._topics_of(member), NONE)
        return filled(
            SCHEMAS[tables.MEMBER_SNAPSHOTS.name],
            self.about(step)
            | {
                c.MEMBER_ORDER: places(start),
                c.MEMBER_ID: _text(records.member_id, member),
                c.GROUP_INSTANCE_ID: _text(records.instance_id, member),
                c.CLIENT_ID: _text(records.client_id, member),
                c.HOST: _text(records.client_host, member),
                c.RACK_ID: named(said.rack, of_subscription),
                c.SUBSCRIPTION_VERSION: numbers(said.version, said.version != NO_VERSION, of_subscription),
                c.TOPICS: chosen(said.topic_lists, _TOPICS, own_topics),
                c.CLAIMED: named(payloads.claimed.arrow(payloads.names), payloads.claimed_code[member]),
                c.CLAIMED_GENERATION: numbers(said.generation, said.has_generation, of_subscription),
                c.SUBSCRIPTION_GENERATION: numbers(
                    said.subscription_generation, said.subscription_generation != NONE, of_subscription
                ),
                c.USER_DATA: named(said.user_data, of_subscription),
                c.RECORDED: named(payloads.recorded.arrow(payloads.names), payloads.recorded_code[member]),
            },
            len(member),
        )

    def ownership_changes(self) -> Any:
        """Rows of `ownership_changes`."""
        line, changes = self.line, self.line.transfers.changes
        kept = np.flatnonzero(self.good[line.group[changes.step]])
        step, slot = changes.step[kept], changes.slot[kept]
        # An incarnation that ended unseen is the one before that of the record.
        incarnation = line.results.incarnation[step] - changes.ending[kept]
        members = pa.array(line.members, pa.string())
        return filled(
            SCHEMAS[tables.OWNERSHIP_CHANGES.name],
            self.about(step)
            | {
                c.TOPIC_ID: named(pa.array(line.topic_ids, pa.string()), changes.topic_id[kept]),
                c.TOPIC: named(pa.array(line.topics, pa.string()), line.slot_topic[slot]),
                c.PARTITION: line.slot_partition[slot],
                c.INCARNATION: incarnation,
                c.FROM_MEMBER_ID: named(members, changes.giver[kept]),
                c.TO_MEMBER_ID: named(members, changes.taker[kept]),
                c.AT: times(line.time[step]),
                c.LOG_PARTITION: self.homes[line.group[step]],
                c.HELD_SINCE: times(changes.since[kept], changes.has_since[kept] == 0),
            },
            len(kept),
        )


_KIND_NAMES = pa.array([kind.value for kind in KINDS], pa.string())
_STATES = pa.array(["Stable", "Empty", "Dead"], pa.string())
_TOPICS = arrow_type(tables.MEMBER_SNAPSHOTS.schema[c.TOPICS].dataType)


def chosen(values: Sequence[Any], kind: pa.DataType, codes: LongArray) -> Any:
    """As `named`, of Python values."""
    return named(pa.array(list(values), kind), codes)


def numbers(values: LongArray, there: Mask, codes: LongArray) -> Any:
    """Return the numbers of these codes; null for NONE, and where there is none."""
    return named(pa.array(values, pa.int32(), mask=~there), codes)


def times(ms: LongArray, mask: Any = None) -> Any:
    """Convert times in ms to microseconds, as the ledger has them."""
    return pa.array(ms, mask=mask).cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))


def _text(texts: CodedTexts, at: LongArray) -> Any:
    """Return the texts at these places; null where there is none, and at NONE."""
    if not len(texts.codes):
        return pa.nulls(len(at), pa.string())
    return named(texts.values, np.where(at == NONE, NONE, texts.codes[at]))


# What is wrong, and what is missing, in the groups of a timeline: words only for what is found.


class Findings:
    """Rows of `coverage` and `violations` for the good groups of a timeline."""

    def __init__(
        self, facts: FactColumns, unreadable: dict[int, tuple[str, Fault]], catalogues: dict[str, TopicHistory]
    ) -> None:
        self.facts, self.line, self.payloads = facts, facts.line, facts.payloads
        self.unreadable, self.catalogues = unreadable, catalogues
        self.cluster_ids, self.group_ids = facts.cluster_ids.to_pylist(), facts.group_ids.to_pylist()

    def coverage(self) -> Iterator[CoverageRow]:
        """Yield what the log does not hold."""
        line = self.line
        for step in np.flatnonzero((line.results.gaps != 0) & self.facts.good[line.group]).tolist():
            bits, incarnation = int(line.results.gaps[step]), int(line.results.incarnation[step])
            number, last = int(line.steps.generation[step]), int(line.results.last[step])
            before = None if last == NONE else int(line.steps.generation[last])
            late, missing = fold_rows.HISTORY_BEGINS_LATE, fold_rows.TOMBSTONE_MISSING
            if bits & UNREADABLE:
                kind, fault = self.unreadable[int(line.record[step])]
                reason = fold_rows.unreadable(fold_rows.undecoded(kind, int(line.steps.offset[step]), fault))
                yield self._gap(step, max(1, incarnation), fold_rows.RECORD_UNREADABLE, before, None, reason)
            if bits & BEGINS_DELETED:
                yield self._gap(step, incarnation, late, None, None, fold_rows.BEGINS_WITH_TOMBSTONE)
            if bits & TOMBSTONE_MISSING and before is not None:
                reason = fold_rows.generation_fell(before, number)
                yield self._gap(step, incarnation - 1, missing, before, number, reason)
            if bits & BEGINS_LATE:
                yield self._gap(step, incarnation, late, None, number, fold_rows.begins_with(number))
            if bits & SKIPPED and before is not None:
                reason = fold_rows.generations_between(before, number)
                yield self._gap(step, incarnation, fold_rows.GENERATIONS_SKIPPED, before, number, reason)

    def _gap(
        self, step: int, incarnation: int, kind: str, first: int | None, last: int | None, reason: str
    ) -> CoverageRow:
        cluster_id, group_id, identity, _, offset = self._place(step)
        return CoverageRow(cluster_id, group_id, incarnation, kind, first, last, reason, offset, identity)

    def _place(self, step: int) -> tuple[str, str, str, int, int]:
        """Cluster, group, snapshot, log partition and offset."""
        group, offset = int(self.line.group[step]), int(self.line.steps.offset[step])
        cluster_id, home = self.cluster_ids[group], int(self.facts.homes[group])
        return cluster_id, self.group_ids[group], snapshot_id(cluster_id, home, offset), home, offset

    def violations(self) -> Iterator[FindingRow]:
        """All findings."""
        step_of = np.full(len(self.line.names.member), NONE, np.int64)
        start, member = self.facts.members_of_snapshots
        step_of[member] = np.repeat(self.facts.snapshots, np.diff(start))
        yield from self._claims(step_of)
        yield from self._assignments(step_of)
        yield from self._rewrites()
        yield from self._doubles()

    def _found(
        self,
        broken: Invariant,
        step: int,
        evidence: str,
        *,
        severity: Severity | None = None,
        member_id: str | None,
        topic: str | None = None,
        partition: int | None = None,
    ) -> FindingRow:
        cluster_id, group_id, identity, home, offset = self._place(step)
        grave = (severity or broken.severity).value
        about = (cluster_id, group_id, identity, member_id, topic, partition)
        return FindingRow(broken.recorded_as, grave, None, *about, evidence, home, offset)

    def _member(self, member: int) -> str:
        return self.line.members[int(self.line.names.member[member])]

    def _claims(self, step_of: LongArray) -> Iterator[FindingRow]:
        """Claims that differ from what was held: each pair of a claim and a holding is compared once."""
        payloads, results, line = self.payloads, self.line.results, self.line
        of_subscription, said = payloads.of_subscription, payloads.said
        is_compared = np.append(said.is_compared, False)[of_subscription]
        some = np.flatnonzero(
            is_compared & (results.compared[: len(of_subscription)] == 1) & (step_of[: len(of_subscription)] != NONE)
        )
        holder = np.where(results.before[some] != NONE, results.before[some], results.predecessor[some])
        holdings, nothing = self._holdings()
        of_holder = np.concatenate(
            [payloads.of_assignment, nothing - len(line.heads.held) + np.arange(len(line.heads.held))]
        )
        held = np.where(holder == NONE, nothing, of_holder[holder])
        held[held == NONE] = nothing
        pairs, found = np.unique(of_subscription[some] * (nothing + 1) + held, return_inverse=True)
        claims = PartitionSets.of(said.claim)
        differs = ~claims.equal(pairs // (nothing + 1), holdings, pairs % (nothing + 1))
        for place in np.flatnonzero(differs[found]).tolist():
            member, code = int(some[place]), int(of_subscription[some[place]])
            step = int(step_of[member])
            last = int(results.last[step])
            was_member, has_predecessor = results.before[member] != NONE, results.predecessor[member] != NONE
            generation = int(said.generation[code]) if said.has_generation[code] else None
            claim = Disagreement(
                self._in_words(claims, code),
                self._in_words(holdings, int(held[place])),
                frozenset(said.read(code).topics),
                *(generation, bool(was_member), bool(has_predecessor)),
            )
            topics = self.catalogues[self.cluster_ids[int(line.group[step])]]
            numbers = int(line.steps.generation[last]), int(line.steps.generation[step])
            period = ClaimPeriod(topics, *numbers, int(line.time[last]), int(line.time[step]))
            broken, severity, evidence = finding(claim, period)
            yield self._found(broken, step, evidence, severity=severity, member_id=self._member(member))

    def _holdings(self) -> tuple[PartitionSets, int]:
        """Return the set of each distinct assignment and each head member, then an empty one; and its number."""
        heads = [
            (owner, name or "", number)
            for owner, held in enumerate(self.line.heads.held)
            for _, name, number, _ in held
        ]
        number_of = {name: code for code, name in enumerate(self.payloads.names)}
        named = [number_of.setdefault(name, len(number_of)) for _, name, _ in heads]
        self.names = list(number_of)
        owner, number = (np.array([each[field] for each in heads], np.int64) for field in (0, 2))
        count = len(self.line.heads.held) + 1
        of_heads = PartitionSets.of_partitions(owner, np.array(named, np.int64), number, count)
        assignment = PartitionSets.of(self.payloads.assignment.lists)
        return assignment.and_(of_heads), len(assignment.start) - 1 + count - 1

    def _in_words(self, sets: PartitionSets, index: int) -> NumbersByTopic:
        words: NumbersByTopic = {}
        for name, number in sets.read(index):
            words.setdefault(self.names[name], set()).add(number)
        return words

    def _assignments(self, step_of: LongArray) -> Iterator[FindingRow]:
        """Topics that stand twice in an assignment, or that the subscription does not name."""
        payloads = self.payloads
        said, assignment = payloads.said, payloads.assignment
        some = np.flatnonzero((payloads.of_subscription != NONE) & (step_of[: len(payloads.of_subscription)] != NONE))
        count = max(1, len(assignment.code))
        pairs, found = np.unique(
            payloads.of_subscription[some] * count + payloads.of_assignment[some], return_inverse=True
        )
        is_wrong = assignment.repeated[pairs % count] | payloads.are_beyond(pairs // count, pairs % count)
        wrong = {
            pair: list(faults(said.read(int(pairs[pair] // count)), assignment.read(int(pairs[pair] % count))))
            for pair in np.flatnonzero(is_wrong).tolist()
        }
        for place in np.flatnonzero(is_wrong[found]).tolist():
            member = int(some[place])
            for broken, topic, evidence in wrong[int(found[place])]:
                yield self._found(broken, int(step_of[member]), evidence, member_id=self._member(member), topic=topic)

    def _rewrites(self) -> Iterator[FindingRow]:
        """Rewrites that move more than a static member's new id explains: the first change that does."""
        line, changes = self.line, self.line.transfers.changes
        rewritten = (line.results.kind == REWRITE_KIND) & self.facts.good[line.group]
        known: dict[int, dict[int, int]] = {}
        found: set[int] = set()
        for row in np.flatnonzero(rewritten[changes.step]).tolist():
            step, giver, taker = int(changes.step[row]), int(changes.giver[row]), int(changes.taker[row])
            last = int(line.results.last[step])
            for each in (last, step):
                known[each] = known.get(each) or self._instances(each)
            before = known[last].get(giver, NONE)
            if step in found or (before != NONE and before == known[step].get(taker, NONE)):
                continue
            found.add(step)
            slot = int(changes.slot[row])
            topic, partition = line.topics[line.slot_topic[slot]], int(line.slot_partition[slot])
            names = (None if member == NONE else line.members[member] for member in (giver, taker))
            number = int(line.steps.generation[step])
            evidence = rewrite_evidence(number, topic, partition, *names)
            yield self._found(REWRITE_DIFFERS, step, evidence, member_id=None, topic=topic, partition=partition)

    def _instances(self, step: int) -> dict[int, int]:
        """Member -> its instance id, of a step, as codes; NONE: it has none."""
        steps, names = self.line.steps, self.line.names
        members = slice(steps.member_first[step], steps.member_first[step] + steps.member_count[step])
        return dict(zip(names.member[members].tolist(), names.instance[members].tolist(), strict=True))

    def _doubles(self) -> Iterator[FindingRow]:
        """Partitions recorded for several members at once, by topic and by who these are."""
        line, steps = self.line, self.line.steps
        for step in np.flatnonzero((line.transfers.doubled != 0) & (line.place != NONE) & self.facts.good[line.group]):
            holders: dict[tuple[str, int], list[str]] = {}
            for member in range(steps.member_first[step], steps.member_first[step] + steps.member_count[step]):
                code = int(self.payloads.of_assignment[member])
                assignment = self.payloads.assignment.read(code).partitions if code != NONE else ()
                for name, partitions in assignment:
                    for partition in partitions:
                        holders.setdefault((name, partition), []).append(self._member(member))
            together: dict[tuple[str, tuple[str, ...]], list[int]] = {}
            for (topic, number), members in holders.items():
                if len(members) > 1:
                    together.setdefault((topic, tuple(sorted(members))), []).append(number)
            for (topic, held_by), numbers in sorted(together.items()):
                evidence, one = double_evidence(topic, list(held_by), sorted(numbers))
                yield self._found(DOUBLE_OWNED, int(step), evidence, member_id=held_by[0], topic=topic, partition=one)


# The heads of the groups of a timeline: their states behind the last record, each written once.


def head_rows(facts: FactColumns, refolded: list[bool], heads: Mapping[int, HeadOfGroup]) -> Iterator[GroupHeadRow]:
    """Rows of `group_heads` for the good groups."""
    writer = HeadWriter(facts)
    for group in np.flatnonzero(facts.good).tolist():
        from_offset = heads[group].state.offset if group in heads else BEGINNING
        state, held = writer.state(group)
        yield GroupHeadRow(
            writer.cluster_ids[group],
            state.group_id,
            state.log_partition,
            from_offset,
            state.offset,
            state.incarnation,
            refolded[group],
            encode_state(state, held),
        )


class HeadWriter:
    """Reads states off a timeline."""

    def __init__(self, facts: FactColumns) -> None:
        line, self.line = facts.line, facts.line
        self.cluster_ids, self.group_ids = facts.cluster_ids.to_pylist(), facts.group_ids.to_pylist()
        self.homes, self.last_offsets = facts.homes.tolist(), facts.last_offsets.tolist()
        self.instances = line.instances
        held = line.transfers.held
        self.bounds = line.transfers.held_start.tolist()
        self.held = [column[: self.bounds[-1]].tolist() for column in held]
        slots = np.asarray(held.slot[: self.bounds[-1]])
        self.topics = line.slot_topic[slots].tolist()
        self.topic_ids = line.topic_id_at_end[slots].tolist()
        self.partitions = line.slot_partition[slots].tolist()
        self.states = {name: getattr(line.states, name).tolist() for name in line.states._fields}

    def state(self, group: int) -> tuple[GroupState, list[Tenures]]:
        """Return the state of a group, and what its members hold."""
        of = {name: column[group] for name, column in self.states.items()}
        state = GroupState(
            self.group_ids[group],
            self.homes[group],
            offset=self.last_offsets[group],
            incarnation=of["incarnation"],
            group_type=GroupType.CLASSIC.value if of["incarnation"] else None,
            alive=bool(of["alive"]),
            number=of["number"] if of["has_number"] else None,
            previous_offset=None if of["previous"] == NONE else of["previous"],
            hole=bool(of["hole"]),
            generation=self._generation(of["last"], of["first"]),
        )
        return state, self._tenures(group)

    def _generation(self, step: int, first_offset: int) -> Generation | None:
        if step == NONE:
            return None
        line = self.line
        first = line.steps.member_first[step]
        rows = slice(first, first + line.steps.member_count[step])
        members = {
            line.members[member]: None if instance == NONE else self.instances[instance]
            for member, instance in zip(
                line.names.member[rows].tolist(), line.names.instance[rows].tolist(), strict=True
            )
        }
        return Generation(int(line.steps.generation[step]), first_offset, int(line.time[step]), members)

    def _tenures(self, group: int) -> list[Tenures]:
        """By member, then since when, topic and partition."""
        _, members, since, has_since = self.held
        spans: dict[tuple[int, bool, int], dict[int, list[int]]] = {}
        ids: dict[int, int] = {}
        for row in range(self.bounds[group], self.bounds[group + 1]):
            tenure = members[row], bool(has_since[row]), since[row] if has_since[row] else 0
            spans.setdefault(tenure, {}).setdefault(self.topics[row], []).append(self.partitions[row])
            ids[self.topics[row]] = self.topic_ids[row]
        return [
            (self.line.members[member], moment if known else None, self._assignment(topics, ids))
            for (member, known, moment), topics in sorted(spans.items())
        ]

    def _assignment(self, topics: dict[int, list[int]], ids: dict[int, int]) -> Assignment:
        line = self.line
        return tuple(
            [
                (None if ids[topic] == NONE else line.topic_ids[ids[topic]], line.topics[topic], tuple(numbers))
                for topic, numbers in topics.items()
            ]
        )
