"""The rows of the tables of facts, as Arrow columns, straight from the columns of a timeline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger import tables
from groupledger.core.batch import NONE
from groupledger.core.history.roles import GroupType
from groupledger.core.history.steps import DELETED_KIND, KINDS, REWRITE_KIND
from groupledger.core.history.writer import SOURCE, snapshot_id
from groupledger.core.ragged import owners, places, starts
from groupledger.core.wire.consumer_columns import NO_VERSION
from groupledger.engine.arrow_types import arrow_schema, arrow_type
from groupledger.engine.envelope import columns_of
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from groupledger.core.batch import LongArray
    from groupledger.engine.classic.codes import CodedTexts
    from groupledger.engine.classic.log import BoolArray, LogColumns
    from groupledger.engine.classic.payloads import Payloads
    from groupledger.engine.classic.records import GroupRecords
    from groupledger.engine.classic.timeline import GroupTimeline

CHUNK = 1 << 16


class FactColumns:
    """Columns of the tables of facts for the groups of a timeline that are `good`."""

    def __init__(
        self,
        log: LogColumns,
        groups: LongArray,
        records: GroupRecords,
        payloads: Payloads,
        line: GroupTimeline,
        good: BoolArray,
    ) -> None:
        self.log, self.records, self.payloads, self.line = log, records, payloads, line
        self.good = good
        self.cluster_ids = pa.array([log.cluster_ids[group] for group in groups.tolist()], pa.string())
        self.group_ids = pa.array([(log.group_keys[group] or b"").decode() for group in groups.tolist()], pa.string())
        self.homes = log.log_partition[log.group_start[:-1][groups]]
        self.last_offsets = log.offset[log.group_start[1:][groups] - 1]
        self.snapshots = np.flatnonzero((line.walked.kind != NONE) & good[line.group])

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
        """What every row says about its step."""
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
        walked, kind, place = line.walked, line.walked.kind[step], line.place[step]
        is_deleted = kind == DELETED_KIND
        members = line.steps.member_count[step]
        shared, subscribed = self._topics_of_snapshots
        state = np.where(is_deleted, 2, np.where(members > 0, 0, 1))
        return _rows(
            tables.GROUP_SNAPSHOTS,
            len(step),
            self.about(step)
            | {
                c.SOURCE: SOURCE,
                c.LOG_PARTITION: self.homes[line.group[step]],
                c.GROUP_TYPE: GroupType.CLASSIC.value,
                c.PROTOCOL_TYPE: _text(self.records.protocol_type, place),
                c.INCARNATION: walked.incarnation[step],
                c.SNAPSHOT_KIND: _KIND_NAMES.take(pa.array(kind)),
                c.GENERATION: pa.array(line.steps.generation[step], mask=is_deleted),
                c.ASSIGNOR: _text(self.records.protocol, place),
                c.LEADER: _text(self.records.leader, place),
                c.STATE: _STATES.take(pa.array(state)),
                c.COMPLETE: True,
                c.SHARED_TOPICS: shared,
                c.SUBSCRIBED_TOPICS: subscribed,
                c.MEMBERS: members,
                c.PREVIOUS_SNAPSHOT_ID: self.ids(step, walked.previous[step]),
                c.FIRST_SNAPSHOT_ID: self.ids(step, np.where(kind == REWRITE_KIND, walked.first[step], NONE)),
                c.OBSERVED_AT: times(line.time[step]),
            },
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
        """The code of what each member subscribes to; NONE: it says nothing that is read."""
        return np.append(self.payloads.said.topics, NONE)[self.payloads.of_said[member]]

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
        said, of_said = payloads.said, payloads.of_said[member]
        own_topics = np.where(self._shared[owners(start)] == NONE, self._topics_of(member), NONE)
        return _rows(
            tables.MEMBER_SNAPSHOTS,
            len(member),
            self.about(step)
            | {
                c.MEMBER_ORDER: places(start),
                c.MEMBER_ID: _text(records.member_id, member),
                c.GROUP_INSTANCE_ID: _text(records.instance_id, member),
                c.CLIENT_ID: _text(records.client_id, member),
                c.HOST: _text(records.client_host, member),
                c.RACK_ID: named(said.rack, of_said),
                c.SUBSCRIPTION_VERSION: numbers(said.version, said.version != NO_VERSION, of_said),
                c.TOPICS: chosen(said.topic_lists, _TOPICS, own_topics),
                c.CLAIMED: named(payloads.claimed.arrow(payloads.names), payloads.claimed_code[member]),
                c.CLAIMED_GENERATION: numbers(said.generation, said.has_generation, of_said),
                c.SUBSCRIPTION_GENERATION: numbers(
                    said.subscription_generation, said.subscription_generation != NONE, of_said
                ),
                c.USER_DATA: named(said.user_data, of_said),
                c.RECORDED: named(payloads.recorded.arrow(payloads.names), payloads.recorded_code[member]),
            },
        )

    def ownership_changes(self) -> Any:
        """Rows of `ownership_changes`."""
        line, changes = self.line, self.line.transfers.changes
        kept = np.flatnonzero(self.good[line.group[changes.step]])
        step, slot = changes.step[kept], changes.slot[kept]
        # An incarnation that ended unseen is the one before that of the record.
        incarnation = line.walked.incarnation[step] - changes.ending[kept]
        members = pa.array(line.members, pa.string())
        return _rows(
            tables.OWNERSHIP_CHANGES,
            len(kept),
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
        )


_KIND_NAMES = pa.array([kind.value for kind in KINDS], pa.string())
_STATES = pa.array(["Stable", "Empty", "Dead"], pa.string())
_SCHEMAS = {
    table.name: arrow_schema(columns_of(table))
    for table in (tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS, tables.OWNERSHIP_CHANGES)
}
_TOPICS = arrow_type(tables.MEMBER_SNAPSHOTS.schema[c.TOPICS].dataType)


def named(values: Any, codes: LongArray) -> Any:
    """The values of these codes; null for NONE."""
    return values.take(pa.array(codes, mask=codes == NONE))


def chosen(values: Sequence[Any], kind: pa.DataType, codes: LongArray) -> Any:
    """As `named`, of Python values."""
    return named(pa.array(list(values), kind), codes)


def numbers(values: LongArray, there: BoolArray, codes: LongArray) -> Any:
    """The numbers of these codes; null for NONE, and where there is none."""
    return named(pa.array(values, pa.int32(), mask=~there), codes)


def times(ms: LongArray, mask: Any = None) -> Any:
    """Times in ms as the ledger has them, in microseconds."""
    return pa.array(ms, mask=mask).cast(pa.timestamp("ms", tz="UTC")).cast(pa.timestamp("us", tz="UTC"))


def _text(texts: CodedTexts, at: LongArray) -> Any:
    """The texts at these places; null where there is none, and at NONE."""
    if not len(texts.codes):
        return pa.nulls(len(at), pa.string())
    return named(texts.values, np.where(at == NONE, NONE, texts.codes[at]))


def _rows(table: tables.Table, rows: int, columns: Mapping[str, Any]) -> pa.Table:
    """The columns as rows of the table; a scalar is every row's, and what is not given is null."""
    schema = _SCHEMAS[table.name]
    return pa.table([_column(columns.get(field.name), field.type, rows) for field in schema], schema=schema)


def _column(values: Any, kind: pa.DataType, rows: int) -> Any:
    if values is None:
        return pa.nulls(rows, kind)
    if isinstance(values, bool | str):
        return pa.repeat(pa.scalar(values, kind), rows)
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array if array.type == kind else array.cast(kind)
