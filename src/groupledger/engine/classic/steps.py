"""The steps of classic groups, from their heads on: what each record made of its group, and who held what when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.arrays.ragged import begins, lengths, owners, starts, take
from groupledger.core.history.classic_kernels import (
    GENERATION,
    HEAD,
    HOLE,
    TOMBSTONE,
    GroupStates,
    GroupSteps,
    MemberCodes,
    OwnedSlots,
    SlotLists,
    StepResults,
    Transfers,
    apply_steps,
    group_starts,
    transfer,
)
from groupledger.engine.classic.record_columns import CodedTexts, LogColumns, distinct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.core.history.head import Tenures
    from groupledger.core.history.ownership import GroupState
    from groupledger.engine.classic.distinct_payloads import GroupRecords, Payloads


class HeadOfGroup(NamedTuple):
    """The state that a classic group continues from."""

    state: GroupState
    held: list[Tenures]


@dataclass(frozen=True, slots=True)
class HeadMembers:
    """The members of all heads, behind those of the records: their ids, and what each holds in a list of its own."""

    group: list[int]
    member_id: list[str]
    instance_id: list[str | None]
    held: list[list[tuple[str | None, str | None, int, int | None]]]  # topic id, topic, partition, since

    @classmethod
    def of(cls, heads: dict[int, HeadOfGroup]) -> HeadMembers:
        """Those of the heads, in order of their groups."""
        found = cls([], [], [], [])
        for group, head in sorted(heads.items()):
            if head.state.generation is None:
                continue
            held: dict[str, list[tuple[str | None, str | None, int, int | None]]] = {}
            for member_id, since, topics in head.held:
                held.setdefault(member_id, []).extend(
                    (topic_id, topic, partition, since) for topic_id, topic, numbers in topics for partition in numbers
                )
            for member_id, instance_id in head.state.generation.members.items():
                found.group.append(group)
                found.member_id.append(member_id)
                found.instance_id.append(instance_id)
                found.held.append(held.get(member_id, []))
        return found


@dataclass(frozen=True, slots=True)
class GroupTimeline:
    """S steps of G groups, with M members of records and H of heads behind them.

    `members`, `instances` and `topics` are names by number, in order; `slot_*` say of each slot what it is.
    """

    record: LongArray  # [S] of the log; NONE: a head
    place: LongArray  # [S] among the group records; NONE: it is none
    group: LongArray  # [S]
    time: LongArray  # [S] ms
    steps: GroupSteps
    names: MemberCodes
    states: GroupStates
    results: StepResults
    transfers: Transfers
    members: list[str]
    instances: list[str]
    topics: list[str]
    topic_ids: list[str]
    slot_topic: LongArray
    slot_partition: LongArray
    topic_id_at_end: LongArray  # [K] of each slot
    heads: HeadMembers


def timeline(
    log: LogColumns,
    groups: LongArray,
    tombstones: LongArray,
    holes: LongArray,
    records: GroupRecords,
    payloads: Payloads,
    heads: dict[int, HeadOfGroup],
) -> GroupTimeline:
    """Take all groups through their records; `groups` are those of the log, `heads` is by place among these."""
    of_heads = HeadMembers.of(heads)
    steps, record, place, time, group = _steps(log, groups, tombstones, holes, records, heads, of_heads)
    member_ids = _names(records.member_id, of_heads.member_id)
    instance_ids = _names(records.instance_id, of_heads.instance_id)
    names = MemberCodes(member_ids.codes, instance_ids.codes)
    states = _states(len(groups), heads, group, steps)
    results = apply_steps(steps, names, states)
    cells = _cells(log, groups, records, payloads, of_heads)
    slots, lists, about = _slots(cells, len(groups), states)
    transfers = transfer(steps, time, names.member, results, states, slots, lists)
    return GroupTimeline(
        *(record, place, group, time, steps, names, states, results, transfers),
        *(member_ids.values, instance_ids.values, cells.topics, cells.topic_ids, about.topic, about.partition),
        slots.topic_id[slots.topic],
        of_heads,
    )


class _Laid(NamedTuple):
    """The steps, and of each its record, its place among the group records, its time and its group."""

    steps: GroupSteps
    record: LongArray
    place: LongArray
    time: LongArray
    group: LongArray


def _steps(
    log: LogColumns,
    groups: LongArray,
    tombstones: LongArray,
    holes: LongArray,
    records: GroupRecords,
    heads: dict[int, HeadOfGroup],
    of_heads: HeadMembers,
) -> _Laid:
    """Lay the heads' generations, the records' and what has no members (tombstones, holes) in order."""
    refused = np.fromiter(records.refused, np.int64, len(records.refused))
    is_refused = np.isin(records.record, refused)
    bare = np.concatenate([tombstones, holes, np.setdiff1d(refused, records.record)])
    living = [(group, head.state.generation) for group, head in sorted(heads.items()) if head.state.generation]
    before = _longs(group for group, _ in living)
    record = np.concatenate([np.full(len(before), NONE), records.record, bare])
    of_record = record[len(before) :]
    nothing = np.zeros(len(bare), np.int64)
    of_head = np.bincount(_longs(of_heads.group), minlength=len(groups))[before].astype(np.int64)
    first_of_head = starts(of_head)[:-1] + records.member_start[-1]
    what = [np.full(len(before), HEAD), np.where(is_refused, HOLE, GENERATION), np.full(len(bare), HOLE)]
    what[-1][: len(tombstones)] = TOMBSTONE
    group = np.concatenate([before, _places(log, groups)[log.group[of_record]]])
    order = np.lexsort((record, group))

    def laid(*columns: Any) -> LongArray:
        return np.concatenate(columns).astype(np.int64)[order]

    steps = GroupSteps(
        group_starts(group, len(groups)),
        laid(*what),
        laid(_longs(each.first_offset for _, each in living), log.offset[of_record]),
        laid(_longs(each.number for _, each in living), records.generation, nothing),
        laid(first_of_head, records.member_start[:-1], nothing),
        laid(of_head, np.where(is_refused, 0, lengths(records.member_start)), nothing),
    )
    return _Laid(
        steps,
        laid(record),
        laid(np.full(len(before), NONE), np.arange(len(records.record)), np.full(len(bare), NONE)),
        laid(_longs(each.timestamp_ms for _, each in living), log.time[of_record]),
        laid(group),
    )


def _longs(numbers: Iterable[int]) -> LongArray:
    return np.array(list(numbers), np.int64)


def _places(log: LogColumns, groups: LongArray) -> LongArray:
    """Of each group of the log its place among these; NONE: it is not one of them."""
    places = np.full(len(log.cluster_ids), NONE, np.int64)
    places[groups] = np.arange(len(groups))
    return places


class _NumberedNames(NamedTuple):
    """Names by number, in order, and the number of each use; NONE: no name."""

    codes: LongArray
    values: list[str]


def _names(texts: CodedTexts, of_heads: list[Any]) -> _NumberedNames:
    """Return the names of the records' members, then those of the heads'."""
    known = texts.values.to_pylist()
    values = sorted({*known, *(name for name in of_heads if name is not None)})
    number = {name: code for code, name in enumerate(values)}
    of_code = np.array([*(number[name] for name in known), NONE], np.int64)
    behind = np.array([NONE if name is None else number[name] for name in of_heads], np.int64)
    return _NumberedNames(np.concatenate([of_code[texts.codes], behind]), values)


def _states(groups: int, heads: dict[int, HeadOfGroup], group: LongArray, steps: GroupSteps) -> GroupStates:
    states = GroupStates(*(np.zeros(groups, np.int64) for _ in GroupStates._fields))
    states.previous[:] = NONE
    states.last[:] = NONE
    for number, head in heads.items():
        state = head.state
        states.incarnation[number] = state.incarnation
        states.alive[number] = state.alive
        states.number[number] = state.number or 0
        states.has_number[number] = state.number is not None
        states.previous[number] = NONE if state.previous_offset is None else state.previous_offset
        states.hole[number] = state.hole
        states.first[number] = NONE if state.generation is None else state.generation.first_offset
    at = np.flatnonzero(steps.what == HEAD)
    states.last[group[at]] = at
    return states


class _Cells(NamedTuple):
    """What is held in each group by each list: columns of equal length, and the names they count."""

    of_member: LongArray  # list of each member
    start: LongArray  # [L+1]
    group: LongArray  # [L]
    topic: LongArray
    topic_id: LongArray
    partition: LongArray
    since: LongArray
    has_since: LongArray
    topics: list[str]
    topic_ids: list[str]


def _cells(
    log: LogColumns, groups: LongArray, records: GroupRecords, payloads: Payloads, of_heads: HeadMembers
) -> _Cells:
    """Return a list for each group and distinct assignment in it, and for each member of a head."""
    recorded, lists = payloads.recorded, payloads.recorded.lists
    topics = sorted({*payloads.names, *(name or "" for held in of_heads.held for _, name, _, _ in held)})
    topic_of = {name: code for code, name in enumerate(topics)}
    id_of: dict[str | None, int] = {None: NONE} | {name: code for code, name in enumerate(recorded.topic_ids)}
    code, count = payloads.recorded_code, max(1, len(lists.start) - 1)
    group = _places(log, groups)[log.group[records.record]][records.record_of_member]
    pairs, found = distinct(group * count + code, code != NONE)
    chosen, (_, topic_at) = lists.chosen(pairs % count), take(lists.start, pairs % count)
    of_number = chosen.topic_of_number
    number_of_name = np.array([topic_of[name] for name in payloads.names], np.int64)
    nothing = np.zeros(len(of_number), np.int64)
    about = (number_of_name[chosen.name], recorded.topic_id[topic_at])
    cells = np.stack([*(column[of_number] for column in about), chosen.number, nothing, nothing])
    held = [
        (topic_of[name or ""], id_of.setdefault(topic_id, len(id_of) - 1), number, since or 0, since is not None)
        for each in of_heads.held
        for topic_id, name, number, since in each
    ]
    behind = np.array(held, np.int64).reshape(-1, 5).T
    topic, topic_id, partition, since, has_since = np.ascontiguousarray(np.hstack([cells, behind]))
    of_head = len(pairs) + np.arange(len(of_heads.held))
    of_lists = np.bincount(chosen.list_of_topic[of_number], minlength=len(pairs))
    sizes = np.concatenate([of_lists, _longs(map(len, of_heads.held))])
    of_group = np.concatenate([pairs // count, _longs(of_heads.group)])
    return _Cells(
        *(np.concatenate([found, of_head]), starts(sizes), of_group, topic, topic_id, partition, since, has_since),
        *(topics, [name for name in id_of if name is not None]),
    )


class _About(NamedTuple):
    """What each slot is."""

    topic: LongArray
    partition: LongArray


def _slots(cells: _Cells, groups: int, states: GroupStates) -> tuple[OwnedSlots, SlotLists, _About]:
    """Return number the slots; mark groups in which a topic has two ids as odd."""
    group = cells.group[owners(cells.start)]
    order = np.lexsort((cells.partition, cells.topic, group))
    columns = np.stack([group[order], cells.topic[order], cells.partition[order]])
    new_topic = begins(*columns[:2])
    new_slot = new_topic | begins(columns[2])
    slot = np.empty(len(order), np.int64)
    slot[order] = np.cumsum(new_slot) - 1
    first = np.flatnonzero(new_slot)
    local_topic = np.cumsum(new_topic) - 1
    topics = int(new_topic.sum())
    _mark_two_ids(local_topic, columns[0], cells.topic_id[order], topics, states)
    slots = OwnedSlots(
        starts(np.bincount(columns[0][first], minlength=groups)), local_topic[first], np.full(topics, NONE, np.int64)
    )
    lists = SlotLists(cells.of_member, cells.start, slot, cells.topic_id, cells.since, cells.has_since)
    return slots, lists, _About(columns[1][first], columns[2][first])


def _mark_two_ids(topic: LongArray, group: LongArray, topic_id: LongArray, topics: int, states: GroupStates) -> None:
    known = topic_id != NONE
    least = np.full(topics, np.iinfo(np.int64).max)
    most = np.full(topics, NONE, np.int64)
    np.minimum.at(least, topic[known], topic_id[known])
    np.maximum.at(most, topic[known], topic_id[known])
    states.odd[group[(least < most)[topic] & known]] = 1
