"""Run `uniform` for a batch: each group by the algorithm for its subscriptions, then order every record."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.server.changes import FIRST_ROWS, CurrentTargets
from groupledger.core.assignors.server.heterogeneous import assign_heterogeneous
from groupledger.core.assignors.server.homogeneous import assign_homogeneous
from groupledger.core.assignors.server.record import NONE_YET, MemberTarget, fresh_sizes, write_record
from groupledger.core.assignors.server.spec import ServerBatch, ServerStatus
from groupledger.core.assignors.server.walks import group_at
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray

OK = int(ServerStatus.OK)


@kernel
def decide(
    b: ServerBatch,
    order: IntArray,
    shared: IntArray,
    shared_count: IntArray,
    owned: CurrentTargets,
    hands_on: bool,
    path: IntArray,
    status: IntArray,
    bad: LongArray,
    remade: NDArray[np.bool_],
) -> tuple[IntArray, LongArray]:
    """Return all groups' log and the start of each group's rows [G+1]; fill `status` [G], `bad` [G], `remade` [M].

    `remade` marks members whose map Kafka makes anew, `bad` the position in `owned` that stops a group (else -1).
    """
    log = np.empty((FIRST_ROWS, 3), np.int32)
    rows = np.zeros(len(path) + 1, np.int64)
    for index in range(len(path)):
        used = rows[index]
        g = group_at(b, index)
        seats = order[b.member_start[index] : b.member_start[index + 1]]
        made = remade[b.member_start[index] : b.member_start[index + 1]]
        bad[index] = -1
        if g.members > 0 and path[index] == 1:
            low = b.topic_start[index]
            topics = shared[low : low + shared_count[index]]
            log, used, wanted, status[index] = assign_homogeneous(g, seats, topics, owned, hands_on, log, used)
            if status[index] == OK:
                made[:] = wanted > 0
        elif g.members > 0:
            log, used, status[index], bad[index] = assign_heterogeneous(g, seats, owned, log, used)
        if status[index] != OK:
            used = rows[index]
        for row in range(rows[index], used):
            made[log[row, 0]] = True
        rows[index + 1] = used
    return log, rows


@kernel
def count_records(b: ServerBatch, log: IntArray, rows: LongArray, status: IntArray, start: LongArray) -> None:
    """Set `start` [M+1] to the start of each member's new target. A group that failed has none."""
    start[:] = 0
    for index in range(len(status)):
        first = b.member_start[index]
        if status[index] == OK:
            for member in range(first, b.member_start[index + 1]):
                start[member + 1] = b.target_start[member + 1] - b.target_start[member]
        for row in range(rows[index], rows[index + 1]):
            start[first + log[row, 0] + 1] += 1 if log[row, 2] >= 0 else -1
    for member in range(len(start) - 1):
        start[member + 1] += start[member]


@kernel
def write_records(
    b: ServerBatch,
    owned: CurrentTargets,
    log: IntArray,
    rows: LongArray,
    path: IntArray,
    remade: NDArray[np.bool_],
    start: LongArray,
    topic: IntArray,
    partition: IntArray,
    tree: NDArray[np.bool_],
) -> None:
    """Fill every member's new target, at start[m]:start[m + 1]; `tree` [M] flags those left out: a tree decides."""
    for index in range(len(path)):
        g = group_at(b, index)
        heads, of = _rows_by_member(log[rows[index] : rows[index + 1]], g.members)
        fresh = fresh_sizes(g, path[index] == 1)
        slot_of = np.full(g.topics, NONE_YET, np.int32)
        for local in range(g.members):
            member = b.member_start[index] + local
            low = start[member]
            high = start[member + 1]
            held = owned.topic[g.target_start[local] : g.target_start[local + 1]]
            held_partition = owned.partition[g.target_start[local] : g.target_start[local + 1]]
            if not remade[member]:
                topic[low:high] = held[: high - low]
                partition[low:high] = held_partition[: high - low]
                continue
            mine = rows[index] + of[heads[local] : heads[local + 1]]
            m = MemberTarget(held, held_partition, log[mine, 1], log[mine, 2])
            tree[member] = not write_record(g.id_hash, fresh, slot_of, m, topic[low:high], partition[low:high])


@kernel
def _rows_by_member(log: IntArray, members: int) -> tuple[LongArray, LongArray]:
    """Return the rows of each member in order of time: those of member m are at heads[m]:heads[m + 1]."""
    heads = np.zeros(members + 1, np.int64)
    for row in range(len(log)):
        heads[log[row, 0] + 1] += 1
    for member in range(members):
        heads[member + 1] += heads[member]
    filled = heads.copy()
    of = np.empty(len(log), np.int64)
    for row in range(len(log)):
        of[filled[log[row, 0]]] = row
        filled[log[row, 0]] += 1
    return heads, of
