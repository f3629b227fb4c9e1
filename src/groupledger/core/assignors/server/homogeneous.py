"""`uniform` for equal subscriptions: keep up to a quota, then hand out the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.server.changes import CurrentTargets, with_room, write
from groupledger.core.assignors.server.spec import ServerStatus
from groupledger.core.assignors.server.walks import ServerGroupView
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray, LongArray

OK = int(ServerStatus.OK)
LEFT_UNASSIGNED = int(ServerStatus.LEFT_UNASSIGNED)


@kernel
def assign_homogeneous(
    g: ServerGroupView,
    order: IntArray,
    topics: IntArray,
    owned: CurrentTargets,
    hands_on: bool,
    log: IntArray,
    used: int,
) -> tuple[IntArray, int, LongArray, int]:
    """Assign 7 partitions over 3 members without targets -> 3, 2, 2; owned partitions stay, up to these numbers.

    `order` and `topics` are the members and the topics that all subscribe to, in iteration order. Returns the log, its
    rows used, how many partitions each member was still to get (Kafka copies its map then, even if it gets none), and a
    `ServerStatus`.
    """
    held = g.target_start[g.members] - g.target_start[0]
    pool, size, total = _unassigned(g, topics, owned)
    log = with_room(log, used, held)
    wanted, used, size = _keep_to_quota(g, order, topics, owned, hands_on, total, pool, size, log, used)
    log = with_room(log, used, size)
    handed = 0
    for member in order:
        for _ in range(min(wanted[member], size - handed)):
            used = write(log, used, member, pool[handed, 0], pool[handed, 1])
            handed += 1
    return log, used, wanted, OK if handed == size else LEFT_UNASSIGNED


@kernel
def _unassigned(g: ServerGroupView, topics: IntArray, owned: CurrentTargets) -> tuple[IntArray, int, int]:
    """Return (topic, partition) pairs that no target holds, in the order of `topics`, with room for all lost later."""
    first = np.full(g.topics, -1, np.int64)
    total = 0
    for topic in topics:
        first[topic] = total
        total += g.partitions[topic]
    taken = np.zeros(total, np.bool_)
    for at in range(g.target_start[0], g.target_start[g.members]):
        topic = owned.topic[at]
        if first[topic] >= 0 and owned.partition[at] < g.partitions[topic]:
            taken[first[topic] + owned.partition[at]] = True
    pool = np.empty((total + g.target_start[g.members] - g.target_start[0], 2), np.int32)
    size = 0
    for topic in topics:
        for partition in range(g.partitions[topic]):
            if not taken[first[topic] + partition]:
                pool[size, 0] = topic
                pool[size, 1] = partition
                size += 1
    return pool, size, total


@kernel
def _keep_to_quota(
    g: ServerGroupView,
    order: IntArray,
    topics: IntArray,
    owned: CurrentTargets,
    hands_on: bool,
    total: int,
    pool: IntArray,
    size: int,
    log: IntArray,
    used: int,
) -> tuple[LongArray, int, int]:
    """Log and pool partitions beyond the quotas; return what members still need, and the log's and pool's sizes.

    `hands_on`: a member that stays below its quota hands its extra partition on while enough members follow. Kafka
    4.0.0 has no such step; 4.0.1 and 4.1.0 have it (KAFKA-18688).
    """
    wanted = np.zeros(g.members, np.int64)
    subscribed = np.zeros(g.topics, np.bool_)
    for topic in topics:
        subscribed[topic] = True
    extras = total % g.members
    for seat in range(g.members):
        member = order[seat]
        has_extra = extras > 0
        quota = total // g.members + (1 if has_extra else 0)
        for at in range(g.target_start[member], g.target_start[member + 1]):
            topic = owned.topic[at]
            if subscribed[topic] and quota > 0:
                quota -= 1
                continue
            used = write(log, used, member, topic, ~owned.partition[at])
            if subscribed[topic]:
                pool[size, 0] = topic
                pool[size, 1] = owned.partition[at]
                size += 1
        if hands_on and has_extra and quota > 0 and g.members - seat > extras:
            quota -= 1
            has_extra = False
        wanted[member] = quota
        extras -= 1 if has_extra else 0
    return wanted, used, size
