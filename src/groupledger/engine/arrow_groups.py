"""Whole groups in Arrow, assigned: a row a group goes in, a row a group comes out, strings on both sides.

This is an assignor and nothing else: no snapshots, steps or verdicts, which `engine.buckets` adds. Racks are not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupledger.core import ragged
from groupledger.core.assignors import assign
from groupledger.core.batch import NONE, AssignmentBatch, GroupBatch
from groupledger.core.javaorder import hash_utf8, rank_utf8
from groupledger.core.kernels import kernel, run
from groupledger.core.snapshots import number_topics
from groupledger.engine.arrow_lists import Column, column, encode, integers, list_starts, listed, utf8, valid, whole

if TYPE_CHECKING:
    from groupledger.core.assignors import Mode
    from groupledger.core.batch import IntArray, LongArray

OWNED = pa.list_(pa.struct({"topic": pa.string(), "partitions": pa.list_(pa.int32())}))
"""Partitions in the order of Kafka's own lists; a topic is named again where that order comes back to it."""

MEMBER = pa.struct(
    {
        "member_id": pa.string(),
        "group_instance_id": pa.string(),
        "generation": pa.int32(),  # of the subscription (KIP-792) and of its claims; null where absent
        "topics": pa.list_(pa.string()),  # null: the group's
        "claimed": OWNED,
    }
)

GROUPS = pa.schema(
    {
        "subscription": pa.list_(pa.string()),  # of the members that give no list of their own; null: there are none
        "topics": pa.list_(pa.struct({"topic": pa.string(), "partitions": pa.int32()})),  # those with metadata
        "members": pa.list_(MEMBER),  # in the order of the JoinGroup response
    }
)

ANSWER = pa.struct({"member_id": pa.string(), "assigned": OWNED})
ANSWERS = pa.schema({"status": pa.int32(), "members": pa.list_(ANSWER)})
"""`status` is an `outcome.Status`; with another than OK all lists are empty."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """Rows of `GROUPS` as integers, and the strings for the way back."""

    batch: GroupBatch
    member_ids: Column  # [M]
    names: Column  # each topic name once
    topic_code: IntArray  # [T] index into names


def assign_groups(name: str, groups: pa.Table, *, mode: Mode = "as-kafka") -> pa.Table:
    """Rows of `GROUPS` -> rows of `ANSWERS`, in the same order. Raises Fault("UNKNOWN_ASSIGNOR")."""
    decoded = decode(groups)
    return encode_answers(decoded, assign(name, decoded.batch, mode=mode))


def decode(groups: pa.Table) -> Decoded:
    """Strings become integers; every string is looked at once."""
    groups = whole(groups)
    shared, listings, member_lists = (column(groups, name) for name in GROUPS.names)
    member_start = list_starts(member_lists)
    members = _fields(pc.list_flatten(member_lists))
    claimed = members["claimed"]
    claims = _fields(pc.list_flatten(claimed))
    entry_start = list_starts(claimed)
    of_group = [list_starts(shared), list_starts(members["topics"])[member_start], list_starts(listings)]
    topics = _fields(pc.list_flatten(listings))
    naming = [pc.list_flatten(shared), pc.list_flatten(members["topics"]), topics["topic"], claims["topic"]]
    names, topic_code, topic_start, rows = _number(naming, [*of_group, entry_start[member_start]])
    counts = np.full(len(topic_code), NONE, np.int32)
    counts[rows[2]] = integers(topics["partitions"], NONE)
    offsets, data = utf8(names)
    batch = GroupBatch(
        member_start=member_start,
        **_identities(members, member_start),
        topic_start=topic_start,
        topic_hash=hash_utf8(offsets, data)[topic_code],
        topic_rank=rank_utf8(offsets, data, np.array([0, len(names)]))[topic_code],
        topic_partitions=counts,
        **_subscriptions(shared, members["topics"], member_start, _local(rows[:2], topic_start, of_group[:2])),
        **_claims(entry_start, claims["partitions"], _local(rows[3:], topic_start, [entry_start[member_start]])),
    )
    return Decoded(batch, members["member_id"], names, topic_code)


def encode_answers(decoded: Decoded, answer: AssignmentBatch) -> pa.Table:
    """The answer in strings."""
    batch, size = decoded.batch, len(answer.assigned_topic)
    code, part_start = np.empty(size, np.int32), np.empty(size + 1, np.int32)
    entry_start = np.empty(batch.members + 1, np.int32)
    lists = answer.assigned_start, answer.assigned_topic
    naming = batch.member_start, batch.topic_start, decoded.topic_code
    entries = run(_group_by_topic, *lists, *naming, code, part_start, entry_start, cells=2 * size)
    partitions = listed(part_start[: entries + 1], pa.array(answer.assigned_partition), OWNED.value_type[1].type)
    topics = decoded.names.take(pa.array(code[:entries]))
    entry = pa.StructArray.from_arrays([topics, partitions], fields=list(OWNED.value_type))
    assigned = listed(entry_start, entry, OWNED) if batch.members else pa.array([], OWNED)
    answers = pa.StructArray.from_arrays([decoded.member_ids, assigned], fields=list(ANSWER))
    members = listed(batch.member_start, answers, ANSWERS.field("members").type)
    return pa.table([pa.array(answer.status), members], ANSWERS)


@kernel
def _group_by_topic(
    start: LongArray,
    topic: IntArray,
    member_start: LongArray,
    topic_start: LongArray,
    topic_code: IntArray,
    code: IntArray,
    part_start: IntArray,
    entry_start: IntArray,
) -> int:
    """Each run of one topic in a member's list is an entry: fill its code, and where partitions and entries begin."""
    entry = 0
    for group in range(len(member_start) - 1):
        row = topic_start[group]
        for member in range(member_start[group], member_start[group + 1]):
            entry_start[member] = entry
            before = NONE
            for at in range(start[member], start[member + 1]):
                if topic[at] != before:
                    before = topic[at]
                    code[entry] = topic_code[row + before]
                    part_start[entry] = at
                    entry += 1
    entry_start[member_start[-1]] = entry
    part_start[entry] = start[-1]
    return entry


def _fields(structs: Column) -> dict[str, Column]:
    """The columns of a column of structs without nulls."""
    return dict(zip((field.name for field in structs.type), structs.flatten(), strict=True))


def _number(naming: list[Column], starts: list[LongArray]) -> tuple[Column, IntArray, LongArray, list[LongArray]]:
    """Topic rows of all groups: the names, the name of each row, where groups begin, the row of each naming."""
    names, codes = encode(naming)
    first = np.cumsum([0, *map(len, codes)])
    start = np.stack([each + offset for each, offset in zip(starts, first[:-1], strict=True)])
    code = np.concatenate(codes)
    row, topic_code = np.empty(len(code), np.int64), np.empty(len(code), np.int32)
    work = np.full(len(names), NONE, np.int32), np.zeros(len(names), np.int64)
    count = run(number_topics, start, code, *work, row, topic_code, cells=len(code))
    rows = np.split(row, first[1:-1])
    topic_start = np.zeros(start.shape[1], np.int64)
    for each, own in zip(starts, rows, strict=True):
        named = np.diff(each) > 0
        if named.any():
            most = np.maximum.reduceat(own, each[:-1][named]) + 1
            topic_start[1:][named] = np.maximum(topic_start[1:][named], most)
    return names, topic_code[:count], np.maximum.accumulate(topic_start), rows


def _local(rows: list[LongArray], topic_start: LongArray, starts: list[LongArray]) -> IntArray:
    """Topic rows as numbers inside their groups."""
    local = np.empty(sum(map(len, rows)), np.int32)
    at = 0
    for own, start in zip(rows, starts, strict=True):
        run(_number_inside, start, own, topic_start, local[at : at + len(own)], cells=len(own))
        at += len(own)
    return local


@kernel
def _number_inside(start: LongArray, row: LongArray, topic_start: LongArray, local: IntArray) -> None:
    for group in range(len(start) - 1):
        first = topic_start[group]
        for at in range(start[group], start[group + 1]):
            local[at] = row[at] - first


def _identities(members: dict[str, Column], member_start: LongArray) -> dict[str, Any]:
    """What tells members apart."""
    ids = utf8(members["member_id"])
    generation = integers(members["generation"], NONE).astype(np.int32)
    return {
        "member_hash": hash_utf8(*ids),
        "member_rank": rank_utf8(*ids, member_start),
        "instance_rank": _instance_ranks(members["group_instance_id"], member_start),
        "member_rack": np.full(len(generation), NONE, np.int32),
        "subscription_generation": generation,
        "claim_generation": generation,
    }


def _instance_ranks(instances: Column, member_start: LongArray) -> IntArray:
    ranks = np.full(len(instances), NONE, np.int32)
    static = valid(instances)
    if static.any():
        before = np.concatenate(([0], np.cumsum(static)))
        ranks[static] = rank_utf8(*utf8(instances.drop_null()), before[member_start])
    return ranks


def _subscriptions(shared: Column, own: Column, member_start: LongArray, topic: IntArray) -> dict[str, Any]:
    """First the groups' lists, then those of the members that have one."""
    has_own = valid(own)
    group = ragged.owners(member_start)
    lists = list_starts(shared), list_starts(own)[np.append(np.flatnonzero(has_own), len(own))]
    return {
        "member_subscription": np.where(has_own, len(shared) + np.cumsum(has_own) - 1, group),
        "subscription_start": np.concatenate((lists[0], lists[0][-1] + lists[1][1:])),
        "subscription_topic": topic,
    }


def _claims(entry_start: LongArray, partitions: Column, topic: IntArray) -> dict[str, Any]:
    part_start = list_starts(partitions)
    return {
        "claim_start": part_start[entry_start],
        "claim_topic": np.repeat(topic, ragged.lengths(part_start)),
        "claim_partition": pc.list_flatten(partitions).to_numpy(zero_copy_only=False),
    }
