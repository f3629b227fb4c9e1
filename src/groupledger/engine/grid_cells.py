"""A grid over a bucket: the last state of each of its groups, changed, under each assignor; one row a group and cell.

Members own what was recorded for them, the change applies, and one rebalance follows. A KIP-848 group is computed by
its coordinator's assignor where the cell asks for the recorded one; other cells refuse it. Groups without an assignor
to ask (share and Streams groups, other protocol types) and empty ones are no rows of a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import ArrayType, IntegerType, StringType, StructField, StructType

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE
from groupledger.core.assignors.server.server_batch import ASSIGNORS as SERVER_ASSIGNORS
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.log.lines import RecordStandsCode
from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR
from groupledger.core.scenarios.group_change import NEW, SERVER, new_ids, scenario
from groupledger.core.scenarios.solving import targets_after_joins
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import Column, column, integers, list_starts, listed, tuples, with_column
from groupledger.engine.bucket_rows import Parts, TopicCatalogue, parts_of
from groupledger.engine.buckets import buckets_of, rebalanced
from groupledger.engine.group_arrays import (
    CONSUMER,
    Calculation,
    DecodedBucket,
    decode,
)
from groupledger.engine.result_rows import ResultColumns
from groupledger.tables import REBALANCES
from groupledger.tables import columns as c
from groupledger.tables.declaration import TOPIC_PARTITIONS

if TYPE_CHECKING:
    from groupledger.config.loading import ChangeSettings


CELL = "cell"
"""Column: the number of the cell, assignors first: all changes of the first one, then of the next."""
SHOWN = (
    *(c.CLUSTER_ID, c.GROUP_ID, c.SNAPSHOT_ID, c.ASSIGNOR, c.PROTOCOL, c.OUTCOME, c.MEMBERS, c.PARTITIONS, c.MOVES),
    *(c.LEAST_MOVES, c.LEAST_MOVES_CERTAINTY, c.REVOKED, c.UNASSIGNED, c.LOAD_MIN, c.LOAD_MAX, c.FOLLOW_UP),
    *(c.FEWEST_ROUNDS, c.CODE, c.MESSAGE),
)
WHO = "who_has_what"
"""Column: each member with what it had and would have; null: it is gone, or new. Null as a whole if not asked for."""
HAD, WOULD_HAVE = "had", "would_have"
OUTPUT = StructType(
    [StructField(CELL, IntegerType(), nullable=False)]
    + [StructField(each.name, each.dataType) for name in SHOWN for each in REBALANCES.schema if each.name == name]
    + [
        StructField(
            WHO,
            ArrayType(
                StructType(
                    [
                        StructField(c.MEMBER_ID, StringType()),
                        *(StructField(name, TOPIC_PARTITIONS) for name in (HAD, WOULD_HAVE)),
                    ]
                )
            ),
        )
    ]
)
SCHEMA = to_arrow_schema(OUTPUT)
CLUSTERS, RACKS, TOPICS = "clusters", "racks", "topics"
NAMES = StructType([StructField(name, ArrayType(StringType())) for name in (CLUSTERS, RACKS, TOPICS)])
"""The clusters of a bucket's groups, the racks of their members, and the topics that these subscribe to."""
_AFTER = "+"
"""Behind the id of a snapshot: the state after the change."""
_RECORDED = "recorded"


@dataclass(frozen=True, slots=True)
class Grid:
    """All that a bucket's call needs to know beside its rows."""

    assignors: tuple[str, ...]
    changes: tuple[ChangeSettings, ...]
    calculation: Calculation
    members: bool = False  # say who has what

    def call(self) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """Return the function of rows for `mapInArrow`."""

        def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for bucket in buckets_of(list(batches)):
                for rows in self.cells(bucket):
                    yield from rows.to_batches()

        return call

    def cells(self, table: pa.Table) -> Iterator[pa.Table]:
        """Return the rows of each cell, in the schema of `OUTPUT`."""
        before = _asked(parts_of(table))
        if len(before.groups) == 0:
            return
        for number, change in enumerate(self.changes):
            after = _changed(before, change)
            topics = _topics(self.calculation.catalogue, change)
            calculation = replace(self.calculation, topics=topics, carried=True, settles=True, coordinator=None)
            for at, assignor in enumerate(self.assignors):
                decoded, result = rebalanced(_under(after, assignor, change, calculation), calculation)
                computed = ResultColumns(decoded, result, calculation)
                who = _who(decoded, computed.assignments(), before, after) if self.members else None
                yield _rows(at * len(self.changes) + number, decoded, computed.rebalances(), who)


def names(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the clusters, racks and topics of each bucket's groups, as `NAMES` has them."""
    for bucket in buckets_of(list(batches)):
        groups, members, _ = _asked(parts_of(bucket))
        topics = [pc.list_flatten(column(*each)) for each in ((groups, c.SHARED_TOPICS), (members, c.TOPICS))]
        found = column(groups, c.CLUSTER_ID), column(members, c.RACK_ID), pa.chunked_array(topics)
        lists = [pa.array([pc.unique(each).to_pylist()], pa.list_(pa.string())) for each in found]
        yield pa.record_batch(lists, names=NAMES.names)


def require_known(changes: Sequence[ChangeSettings], found: pa.Table, catalogue: TopicCatalogue) -> None:
    """Refuse a topic or a rack that none of the groups knows; `found` has their `names`. Without groups, pass all.

    A topic that members are to subscribe to may also be one that is listed in a cluster of these groups.
    Raises Fault: UNKNOWN_TOPIC, UNKNOWN_RACK.
    """
    clusters, racks, topics = ({*pc.list_flatten(found[name]).drop_null().to_pylist()} for name in NAMES.names)
    here = pc.is_in(catalogue.table[c.CLUSTER_ID], value_set=pa.array(clusters, pa.string()))
    more = {*catalogue.table.filter(here)[c.TOPIC].to_pylist()}
    nobody = "which no member of these groups subscribes to"
    for index, change in enumerate(changes if clusters else ()):
        for name, code, known, why in (
            ("lost_rack", "UNKNOWN_RACK", racks, "in which no member of these groups is"),
            ("topic", "UNKNOWN_TOPIC", topics.union(filter(None, [change.subscribe])), nobody),
            ("subscribe", "UNKNOWN_TOPIC", topics | more, "which no listing of topics has"),
            ("unsubscribe", "UNKNOWN_TOPIC", topics, nobody),
        ):
            got = getattr(change, name)
            if got is not None and got not in known:
                expected = expected_one_of(got, sorted(known), 10)
                raise Fault(code, f"changes.{index}.{name} is {got!r}, {why}; {expected}")


def _asked(parts: Parts) -> Parts:
    """Return the groups that an assignor is asked for, and the members of their last state."""
    peopled = pc.is_in(column(parts.groups, c.SNAPSHOT_ID), value_set=column(parts.members, c.SNAPSHOT_ID))
    asked = pc.or_(column(parts.groups, r.CHOSEN).is_valid(), _coordinated(parts.groups))
    groups = parts.groups.filter(pc.and_(peopled, asked)).combine_chunks()
    own = pc.is_in(column(parts.members, c.SNAPSHOT_ID), value_set=column(groups, c.SNAPSHOT_ID))
    return Parts(_nullable(groups), _nullable(parts.members.filter(own).combine_chunks()), parts.records.slice(0, 0))


def _coordinated(groups: pa.Table) -> Column:
    """Mark KIP-848 groups."""
    return pc.fill_null(pc.equal(column(groups, c.GROUP_TYPE), CONSUMER), False)


def _nullable(table: pa.Table) -> pa.Table:
    """Make every column nullable: Spark says of some that they hold no null, and their replacements may."""
    return table.cast(pa.schema([field.with_nullable(True) for field in table.schema]))


def _changed(before: Parts, change: ChangeSettings) -> Parts:
    """Return the state after the change, which follows the one before, with the members of both."""
    members = _members_after(before.members, change)
    groups, members = _subscribed(before.groups, members, change)
    groups = with_column(groups, c.PREVIOUS_SNAPSHOT_ID, column(groups, c.SNAPSHOT_ID))
    groups = with_column(groups, c.SNAPSHOT_ID, _after(groups))
    groups = with_column(groups, c.SNAPSHOT_KIND, pa.repeat("generation", len(groups)))
    groups = with_column(groups, c.MEMBERS, pa.nulls(len(groups), pa.int32()))
    members = with_column(members, c.SNAPSHOT_ID, _after(members))
    members = pa.concat_tables([members, before.members]).combine_chunks()
    return Parts(groups.combine_chunks(), members, before.records)


def _members_after(before: pa.Table, change: ChangeSettings) -> pa.Table:
    """Return the members that stay, in their order, and those that join, each like one of the group in turn."""
    members = before
    if change.lost_rack is not None:
        gone = pc.fill_null(pc.equal(column(members, c.RACK_ID), change.lost_rack), False)
        members = members.filter(pc.invert(gone)).combine_chunks()
    if change.members == 0 or len(members) == 0:
        return members
    members = members.sort_by([(c.SNAPSHOT_ID, "ascending"), (c.MEMBER_ORDER, "ascending"), (c.MEMBER_ID, "ascending")])
    members = members.combine_chunks()
    _, size = np.unique(integers(column(members, c.SNAPSHOT_ID).dictionary_encode().indices, NONE), return_counts=True)
    start = ragged.starts(size)
    if change.members < 0:
        place = ragged.places(start)
        return members.take(pa.array(np.flatnonzero(place < np.repeat(size + change.members, size)))).combine_chunks()
    turn = np.arange(change.members)
    model = (start[:-1, None] + turn[None, :] % size[:, None]).ravel()
    joined = members.take(pa.array(model)).combine_chunks()
    numbers = np.tile(turn, len(size))
    ids = _new_ids(before, column(members, c.SNAPSHOT_ID).take(pa.array(start[:-1])).to_pylist(), change.members)
    order = np.repeat(integers(column(members, c.MEMBER_ORDER), 0)[start[1:] - 1], change.members) + 1 + numbers
    joined = with_column(with_column(joined, c.MEMBER_ID, pa.array(ids)), c.MEMBER_ORDER, pa.array(order, pa.int32()))
    for name in (c.GROUP_INSTANCE_ID, c.CLAIMED, c.CLAIMED_GENERATION, c.RECORDED, c.TARGET, c.USER_DATA):
        joined = with_column(joined, name, pa.nulls(len(joined), joined.schema.field(name).type))
    return pa.concat_tables([members, joined]).combine_chunks()


def _new_ids(members: pa.Table, snapshots: list[str], number: int) -> list[str]:
    """Return the ids of so many new members of each of these states."""
    alike = members.filter(pc.fill_null(pc.starts_with(column(members, c.MEMBER_ID), NEW), False))
    taken: dict[str, set[str]] = {}
    for snapshot, name in tuples(alike, c.SNAPSHOT_ID, c.MEMBER_ID):
        taken.setdefault(snapshot, set()).add(name)
    return [name for snapshot in snapshots for name in new_ids(number, taken.get(snapshot, ()))]


def _subscribed(groups: pa.Table, members: pa.Table, change: ChangeSettings) -> tuple[pa.Table, pa.Table]:
    """With the topic that all subscribe to, without the one that nobody does any more."""
    if change.subscribe is None and change.unsubscribe is None:
        return groups, members

    def renewed(lists: Column) -> Column:
        return pa.array([_topics_after(each, change) for each in lists.to_pylist()], lists.type)

    groups = with_column(groups, c.SHARED_TOPICS, renewed(column(groups, c.SHARED_TOPICS)))
    return groups, with_column(members, c.TOPICS, renewed(column(members, c.TOPICS)))


def _topics_after(topics: Sequence[str] | None, change: ChangeSettings) -> list[str] | None:
    if topics is None:
        return None
    kept = [each for each in topics if each != change.unsubscribe]
    more = change.subscribe is not None and change.subscribe not in kept
    return [*kept, change.subscribe] if more and change.subscribe is not None else kept


def _topics(catalogue: TopicCatalogue, change: ChangeSettings) -> TopicCatalogue:
    """Return the topics with other counts; racks of changed topics are unknown."""
    if change.partitions is None:
        return catalogue
    rows = catalogue.table.combine_chunks()
    number = int(change.partitions[1:])
    counts = rows.column(c.PARTITION_COUNT).cast(pa.int64())
    more = pc.multiply(counts, number) if change.partitions.startswith("x") else pc.add(counts, number)
    more = pc.min_element_wise(more, np.iinfo(np.int32).max, skip_nulls=False).cast(pa.int32())
    meant = pa.repeat(True, len(rows)) if change.topic is None else pc.equal(rows.column(c.TOPIC), change.topic)
    rows = with_column(rows, c.PARTITION_COUNT, pc.if_else(meant, more, rows.column(c.PARTITION_COUNT)))
    racks = rows.column(c.RACKS).combine_chunks()
    return TopicCatalogue(with_column(rows, c.RACKS, pc.if_else(meant, pa.nulls(len(rows), racks.type), racks)))


def _rows(cell: int, decoded: DecodedBucket, found: pa.Table, who: Column | None) -> pa.Table:
    """Return the rows of one cell; the snapshot is the one that was changed."""
    groups = decoded.groups
    server = pc.binary_join_element_wise(SERVER, pc.coalesce(column(groups, c.ASSIGNOR), DEFAULT_ASSIGNOR), "")
    by_coordinator = pc.and_(_coordinated(groups), pc.equal(found[c.ASSIGNOR], _RECORDED))
    renamed = {
        c.SNAPSHOT_ID: pc.utf8_slice_codeunits(found[c.SNAPSHOT_ID], 0, -len(_AFTER)),
        c.ASSIGNOR: pc.if_else(by_coordinator, server, found[c.ASSIGNOR]),
    }
    numbers = pa.repeat(pa.scalar(cell, pa.int32()), len(found))
    shown = [renamed.get(name, found[name]) for name in SHOWN]
    who = pa.nulls(len(found), SCHEMA.field(WHO).type) if who is None else who
    return pa.table([numbers, *shown, who], schema=SCHEMA)


def _who(decoded: DecodedBucket, assigned: pa.Table, before: Parts, after: Parts) -> Column:
    """Return each group's members as they are in the record, new ones behind them, and those that are gone last."""
    keys = [
        pc.binary_join_element_wise(column(each, c.SNAPSHOT_ID), column(each, c.MEMBER_ID), "\0")
        for each in (with_column(before.members, c.SNAPSHOT_ID, _after(before.members)), after.members)
    ]
    gone = before.members.filter(pc.invert(pc.is_in(keys[0], value_set=keys[1]))).combine_chunks()
    kind = SCHEMA.field(WHO).type
    wires = kind.value_type.field(HAD).type
    had = column(gone, c.RECORDED)
    entries = pc.list_flatten(had)
    named = pc.coalesce(pc.struct_field(entries, c.TOPIC), pc.struct_field(entries, c.TOPIC_ID))
    of_topic, numbers = list(wires.value_type), pc.struct_field(entries, c.PARTITIONS)
    numbers = listed(list_starts(numbers), pc.list_flatten(numbers), of_topic[1].type)
    parts = pa.StructArray.from_arrays([named, numbers], fields=of_topic)
    rows = pa.table(
        {
            c.SNAPSHOT_ID: pa.chunked_array([column(assigned, c.SNAPSHOT_ID), _after(gone)]),
            c.MEMBER_ID: pa.chunked_array([column(assigned, c.MEMBER_ID), column(gone, c.MEMBER_ID)]),
            HAD: pa.chunked_array([column(assigned, c.HELD), listed(list_starts(had), parts, wires)]),
            WOULD_HAVE: pa.chunked_array([column(assigned, c.ASSIGNED), pa.nulls(len(gone), wires)]),
        }
    ).combine_chunks()
    group = integers(pc.index_in(column(rows, c.SNAPSHOT_ID), value_set=column(decoded.groups, c.SNAPSHOT_ID)), NONE)
    rows = rows.take(pa.array(np.argsort(group, kind="stable")))
    fields = list(kind.value_type)
    members = pa.StructArray.from_arrays([column(rows, field.name) for field in fields], fields=fields)
    return listed(ragged.starts(np.bincount(group, minlength=len(decoded.groups))), members, kind)


def _after(rows: pa.Table) -> Column:
    """Return the ids of the states after the change."""
    return pc.binary_join_element_wise(column(rows, c.SNAPSHOT_ID), _AFTER, "")


# KIP-848 groups: their coordinator's assignor gives the targets, so that the step leads to them as to a record.

Reasons = dict[str, tuple[str, str]]
"""Code and message by snapshot id: why a group is not computed."""
IdsAndCounts = dict[str, tuple[str | None, int]]
"""Id and partitions by name; NONE: no listing had it up to then."""


def _under(parts: Parts, assignor: str, change: ChangeSettings, calculation: Calculation) -> Parts:
    """Return the state as the assignor is asked: a KIP-848 group has its targets, or a reason why it has none."""
    groups, members, records = parts
    modern = _coordinated(groups)
    if assignor != _RECORDED:
        groups = with_column(groups, r.CHOSEN, pa.repeat(assignor, len(groups)))
        message = f"its coordinator assigns (KIP-848): {assignor} could be asked only after a conversion"
        why = RecordStandsCode.OTHER_GROUP_TYPE.value, message
        reasons = dict.fromkeys(column(groups.filter(modern), c.SNAPSHOT_ID).to_pylist(), why)
        return Parts(_refused(groups, reasons), members, records)
    if not pc.any(modern).as_py():
        return parts
    some = groups.filter(modern).combine_chunks()
    own = pc.is_in(column(members, c.SNAPSHOT_ID), value_set=column(some, c.SNAPSHOT_ID))
    theirs = members.filter(own).combine_chunks()
    targets, reasons = _targets(some, theirs, max(change.members, 0), calculation)
    ids = tuples(theirs, c.SNAPSHOT_ID, c.MEMBER_ID)
    lists = pa.array([targets.get((snapshot, name)) for snapshot, name in ids], theirs.schema.field(c.TARGET).type)
    theirs = with_column(with_column(theirs, c.RECORDED, lists), c.TARGET, lists)
    return Parts(_refused(groups, reasons), pa.concat_tables([members.filter(pc.invert(own)), theirs]), records)


def _refused(groups: pa.Table, reasons: Reasons) -> pa.Table:
    """Return the groups with these reasons; one that was refused before keeps its own."""
    for at, name in enumerate((r.FAULT_CODE, r.FAULT_MESSAGE)):
        found = [reasons.get(each, (None, None))[at] for each in column(groups, c.SNAPSHOT_ID).to_pylist()]
        groups = with_column(groups, name, pc.coalesce(column(groups, name), pa.array(found, pa.string())))
    return groups.combine_chunks()


def _targets(
    groups: pa.Table, members: pa.Table, joined: int, calculation: Calculation
) -> tuple[dict[tuple[str, str], list[dict[str, Any]]], Reasons]:
    """Return the targets that coordinators give these groups, by snapshot and member id, and why some have none.

    The last `joined` members of each are new.
    """
    topics, reasons = _topics_of(Parts(groups, members, members.slice(0, 0)), calculation)
    rows: dict[str, list[dict[str, Any]]] = {}
    read = (c.SNAPSHOT_ID, c.MEMBER_ID, c.GROUP_INSTANCE_ID, c.TOPICS, c.RECORDED, c.TARGET)
    ordered = members.sort_by([(c.MEMBER_ORDER, "ascending"), (c.MEMBER_ID, "ascending")])
    for row in ordered.select(read).to_pylist():
        rows.setdefault(row[c.SNAPSHOT_ID], []).append(row)
    targets = {}
    for group in groups.select([c.SNAPSHOT_ID, c.ASSIGNOR, c.SHARED_TOPICS]).to_pylist():
        snapshot, name = group[c.SNAPSHOT_ID], group[c.ASSIGNOR] or DEFAULT_ASSIGNOR
        own = [row | {c.TOPICS: row[c.TOPICS] or group[c.SHARED_TOPICS] or ()} for row in rows.get(snapshot, ())]
        if not own or snapshot in reasons:
            continue
        try:
            given = targets_after_joins(_scenario(name, own, topics.get(snapshot, {})), joined)
        except Fault as fault:
            reasons[snapshot] = fault.code, fault.message
            continue
        for member, has in given.items():
            wire = r.by_topic(has)
            targets[snapshot, member] = [each | {c.TOPIC_ID: topics[snapshot][each[c.TOPIC]][0]} for each in wire]
    return targets, reasons


def _scenario(name: str, members: list[dict[str, Any]], topics: IdsAndCounts) -> dict[str, Any]:
    """Return the group as its coordinator has it. Raises Fault: UNKNOWN_ASSIGNOR, TOPIC_NOT_LISTED."""
    if name not in SERVER_ASSIGNORS:
        message = f"its coordinator's assignor is {name!r}; expected uniform or range"
        raise Fault(RecordStandsCode.UNKNOWN_ASSIGNOR, message)
    named = sorted({topic for row in members for topic in row[c.TOPICS]} & topics.keys())
    unknown = next((topic for topic in named if topics[topic][1] == NONE), None)
    if unknown is not None:
        text = f"no topic listing has the partition count of {unknown}: ingest a listing of topics"
        raise Fault("TOPIC_NOT_LISTED", text)
    return scenario(f"{SERVER}{name}", {topic: topics[topic] for topic in named}, members)


def _topics_of(parts: Parts, calculation: Calculation) -> tuple[dict[str, IdsAndCounts], Reasons]:
    """Return the topics of each state, but for deleted ones; and why groups are rejected."""
    decoded = decode(parts, calculation)
    snapshots = column(decoded.groups, c.SNAPSHOT_ID).to_pylist()
    views, group = decoded.snapshots.topics, decoded.snapshots.topic_group.tolist()
    found: dict[str, IdsAndCounts] = {}
    each = decoded.topic_names.to_pylist(), decoded.topic_ids.to_pylist(), views.now.tolist(), views.gone.tolist()
    for row, name, topic_id, count, gone in zip(group, *each, strict=True):
        if not gone:
            found.setdefault(snapshots[row], {})[name] = topic_id, count
    return found, {snapshots[row]: reason for row, reason in decoded.rejections.by_group.items()}
