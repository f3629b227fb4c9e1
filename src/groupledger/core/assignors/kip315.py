"""`sticky-stream-join` (KIP-315, never shipped): one consumer gets and keeps a partition number of all joined topics.

Numbers are assigned, not topic partitions; a number is eligible if it is below the least partition count of the
group's topics. A member's claims (`claim_partition`, of whatever topic) are the numbers it had; `claim_generation` is
their epoch. For points on which the KIP is silent, see decision 0022.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, GroupBatch, IntArray, LongArray
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.snapshots import Subscribed
from groupledger.core.assignors.answer import AssignmentBatch, answer
from groupledger.core.assignors.group import Arrays, GroupView, TargetLists, arrays, clear, group_at, sort_by_rank
from groupledger.core.faults import Fault
from groupledger.core.log.lines import ScenarioCode
from groupledger.core.rebalance.step import Reason

__all__ = [
    "JoinMemory",
    "LeftOut",
    "assign",
    "left_out",
    "next_epochs",
    "read_memory",
    "remember",
    "write_epoch",
    "write_memory",
]


def assign(batch: GroupBatch) -> AssignmentBatch:
    """Assign every group; the assignor is eager, so the answer is the target. See `left_out` for the rest."""
    return answer(stream_join_groups, batch, None)


# Encode KIP-315's user data: a consumer's remembered assignment, which it sends back, and the leader's epoch.
#
#     subscription  version int16 = 0, epoch int32, count int32, partition int32 ..   (ascending)
#     assignment    version int16 = 0, epoch int32
#
# Big-endian. A later version may only append fields, so a reader ignores what follows.

VERSION = 0
EPOCH = struct.Struct(">hi")
MEMORY = struct.Struct(">hii")


@dataclass(frozen=True, slots=True)
class JoinMemory:
    """The partition numbers a consumer was given, ascending, and the epoch of that rebalance."""

    epoch: int
    partitions: tuple[int, ...]


def remember(partitions: Iterable[int], assignment_user_data: bytes) -> JoinMemory:
    """Build what a consumer keeps on assignment: the distinct numbers of all its partitions, and the leader's epoch."""
    version, epoch = _unpack(EPOCH, assignment_user_data)
    _require_known(version)
    return JoinMemory(epoch, tuple(sorted(set(partitions))))


def write_memory(memory: JoinMemory) -> bytes:
    """Encode a subscription's user data."""
    count = len(memory.partitions)
    return MEMORY.pack(VERSION, memory.epoch, count) + struct.pack(f">{count}i", *memory.partitions)


def read_memory(subscription_user_data: bytes) -> JoinMemory:
    """Decode what `write_memory` encodes; Fault `user-data` for other bytes."""
    version, epoch, count = _unpack(MEMORY, subscription_user_data)
    _require_known(version)
    if not 0 <= count <= (len(subscription_user_data) - MEMORY.size) // 4:
        raise _broken(f"it announces {count:,} partitions in {len(subscription_user_data):,} bytes")
    partitions = struct.unpack_from(f">{count}i", subscription_user_data, MEMORY.size)
    return JoinMemory(epoch, tuple(sorted(set(partitions))))


def write_epoch(epoch: int) -> bytes:
    """Encode an assignment's user data."""
    return EPOCH.pack(VERSION, epoch)


def _unpack(layout: struct.Struct, raw: bytes) -> tuple[int, ...]:
    if len(raw) < layout.size:
        raise _broken(f"it has {len(raw)} bytes")
    return layout.unpack_from(raw)


def _require_known(version: int) -> None:
    if version < VERSION:
        raise _broken(f"its version is {version}")


def _broken(what: str) -> Fault:
    expected = "version int16 >= 0, epoch int32, then (in a subscription) a count and as many int32"
    return Fault(
        ScenarioCode.BAD_USER_DATA, f"user data of sticky-stream-join: {what}; expected {expected}: treat it as none"
    )


# Choose each partition number's consumer (KIP-315, "Assignment Strategy" 1 to 4).
#
# In each round every member takes one number, until none is left, so counts differ by one at most. Members that still
# have a number of their own to take come first; then, by member id, the others take an unowned number, or steal from
# the member with most of its own left. Members subscribed to no topic that exists take no part.

NOBODY = -1
LAST_EPOCH = 2**31 - 1  # has no successor, so it is ignored: otherwise one member could stop the group


class Own(NamedTuple):
    """The numbers that each member had and that are not taken yet: numbers[low[m]:high[m]], ascending."""

    numbers: IntArray
    low: LongArray  # [members]
    high: LongArray  # [members]


@kernel
def stream_join_groups(b: Arrays, cooperative: bool, out: TargetLists, status: IntArray, path: IntArray) -> None:
    """Assign every group of the batch into `out`."""
    for index in range(len(status)):
        g = group_at(b, index)
        clear(g, out)
        members = participants(g)
        if len(members) > 0:
            taker = _select(g, members, _owners(g, members))
            _write(g, taker, out)


@kernel
def participants(g: GroupView) -> IntArray:
    """Return the members subscribed to a topic that exists, by member id."""
    members = np.empty(g.members, np.int32)
    count = 0
    for member in range(g.members):
        subscription = g.subscription[member]
        for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
            if g.topic_partitions[g.topics_of[entry]] > 0:
                members[count] = member
                count += 1
                break
    sort_by_rank(g.member_rank, members, count)
    return members[:count]


@kernel
def eligible(g: GroupView) -> int:
    """Return how many numbers are assigned: the least partition count of all subscribed topics."""
    least = NONE
    for member in range(g.members):
        subscription = g.subscription[member]
        if member > 0 and subscription == g.subscription[member - 1]:
            continue
        for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
            count = g.topic_partitions[g.topics_of[entry]]
            if count > 0 and (least == NONE or count < least):
                least = count
    return max(int(least), 0)


@kernel
def epoch_of(g: GroupView, member: int) -> int:
    """Return the epoch of a member's claims, NONE if it has none."""
    epoch = g.claim_generation[member]
    return NONE if epoch == LAST_EPOCH else int(epoch)


@kernel
def _owners(g: GroupView, members: IntArray) -> IntArray:
    """Return who had each eligible number; among several, the highest epoch, then the first by member id."""
    owner = np.full(eligible(g), NOBODY, np.int32)
    for member in members:
        for claim in range(g.claim_start[member], g.claim_start[member + 1]):
            number = g.claim_partition[claim]
            if 0 <= number < len(owner):
                rival = owner[number]
                if rival == NOBODY or epoch_of(g, member) > epoch_of(g, rival):
                    owner[number] = member
    return owner


@kernel
def _own(members: int, owner: IntArray) -> Own:
    low = np.zeros(members + 1, np.int64)
    for number in range(len(owner)):
        if owner[number] != NOBODY:
            low[owner[number] + 1] += 1
    for member in range(members):
        low[member + 1] += low[member]
    high = low[:members].copy()
    numbers = np.empty(low[members], np.int32)
    for number in range(len(owner)):
        if owner[number] != NOBODY:
            numbers[high[owner[number]]] = number
            high[owner[number]] += 1
    return Own(numbers, low[:members].copy(), high)


@kernel
def _select(g: GroupView, members: IntArray, owner: IntArray) -> IntArray:
    """Return the taker of each [eligible number]; own and unowned ones lowest first, stolen highest first."""
    own = _own(g.members, owner)
    taker = np.full(len(owner), NOBODY, np.int32)
    stack = np.array([0, (own.high - own.low).max()], np.int64)  # next to steal from: place in `members`, its count
    unowned = 0
    left = len(owner)
    served = np.full(g.members, NOBODY, np.int64)
    turn = 0
    while left > 0:
        for member in members:
            if own.low[member] < own.high[member]:
                taker[own.numbers[own.low[member]]] = member
                own.low[member] += 1
                served[member] = turn
                left -= 1
        for member in members:
            if served[member] == turn or left == 0:
                continue
            while unowned < len(owner) and owner[unowned] != NOBODY:
                unowned += 1
            number = unowned if unowned < len(owner) else _steal(own, members, stack)
            unowned += 1 if unowned < len(owner) else 0
            taker[number] = member
            left -= 1
        turn += 1
    return taker


@kernel
def _steal(own: Own, members: IntArray, stack: LongArray) -> int:
    """Take the highest number of the member with most of its own left, the first by member id among equals.

    Members' own numbers only shrink, so the search resumes where it stopped: `stack` holds place and height.
    """
    while True:
        while stack[0] < len(members):
            member = members[stack[0]]
            if own.high[member] - own.low[member] == stack[1]:
                own.high[member] -= 1
                return int(own.numbers[own.high[member]])
            stack[0] += 1
        stack[0] = 0
        stack[1] -= 1


@kernel
def _write(g: GroupView, taker: IntArray, out: TargetLists) -> None:
    """Write each list by number, then by topic name: all existing topics of the member's subscription."""
    start = out.start[g.first :]
    counts = np.zeros(g.members, np.int64)
    for member in taker:
        counts[member] += 1
    topics = np.empty(g.topics, np.int32)
    to = np.empty(g.members, np.int64)
    mine = np.zeros(g.members + 1, np.int64)
    named = np.empty(g.members * g.topics, np.int32)
    for member in range(g.members):
        known = _topics_by_name(g, member, topics)
        named[mine[member] : mine[member] + known] = topics[:known]
        mine[member + 1] = mine[member] + known
        to[member] = start[member]
        start[member + 1] = start[member] + counts[member] * known
    for number in range(len(taker)):
        member = taker[number]
        for topic in named[mine[member] : mine[member + 1]]:
            out.topic[to[member]] = topic
            out.partition[to[member]] = number
            to[member] += 1


@kernel
def _topics_by_name(g: GroupView, member: int, topics: IntArray) -> int:
    subscription = g.subscription[member]
    seen = np.zeros(g.topics, np.bool_)
    known = 0
    for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
        topic = g.topics_of[entry]
        if g.topic_partitions[topic] > 0 and not seen[topic]:
            seen[topic] = True
            topics[known] = topic
            known += 1
    sort_by_rank(g.topic_rank, topics, known)
    return known


def next_epochs(batch: GroupBatch) -> LongArray:
    """Return [G]: each group's new epoch, one above the highest it was sent; 0 for its first assignment."""
    epochs = np.zeros(batch.groups, np.int64)
    run(_next_epochs, arrays(batch), epochs, cells=batch.members)
    return epochs


@kernel
def _next_epochs(b: Arrays, epochs: LongArray) -> None:
    for index in range(len(epochs)):
        g = group_at(b, index)
        for member in range(g.members):
            epochs[index] = max(epochs[index], epoch_of(g, member) + 1)


# List what a stream join leaves unassigned, as rows with the reason (KIP-315, "Assignment Strategy" 1 and 5).


class LeftOut(NamedTuple):
    """Rows by group, local topic, partition, with the `Reason`."""

    group: LongArray
    topic: LongArray
    partition: LongArray
    reason: IntArray


def left_out(batch: GroupBatch, answer: AssignmentBatch) -> LeftOut:
    """Return the partitions of subscribed topics that `answer` leaves without an owner."""
    group_of_member, group_of_topic = ragged.owners(batch.member_start), ragged.owners(batch.topic_start)
    counts = np.where(Subscribed(batch).any(), np.maximum(batch.topic_partitions, 0), 0)
    first = ragged.starts(counts.astype(np.int64))
    member = ragged.owners(answer.assigned.start)
    row = batch.topic_start[group_of_member[member]] + answer.assigned.topic
    free = np.ones(int(first[-1]), np.bool_)
    free[first[row] + answer.assigned.partition] = False
    slot = np.flatnonzero(free)
    topic = ragged.owners(first)[slot]
    partition = slot - first[topic]
    group = group_of_topic[topic]
    reason = reasons(group, partition, group_of_topic, counts, batch.groups)
    return LeftOut(group, topic - batch.topic_start[group], partition, reason)


def reasons(
    group: LongArray, partition: LongArray | IntArray, group_of_topic: LongArray, counts: IntArray, groups: int
) -> IntArray:
    """Return the `Reason` of each partition that is left out, given its group.

    `counts` [T]: the partitions of each subscribed topic, below 1 for one that does not exist.
    """
    there = counts > 0
    least = np.full(groups, np.iinfo(np.int32).max, np.int32)
    np.minimum.at(least, group_of_topic[there], counts[there])
    beyond = partition >= least[group]
    return np.where(beyond, Reason.BEYOND_LEAST_COUNT, Reason.OWNER_NOT_SUBSCRIBED).astype(np.int32)
