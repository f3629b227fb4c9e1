"""`range`: topic by topic, each member gets a run of neighbouring partitions; by rack where that matters (KIP-881)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.group import Arrays, Group, group_at, sort_static_first, walk_members, walk_topics
from groupledger.core.assignors.outcome import Status
from groupledger.core.assignors.range_racks import any_true, assign_near, topics_where_racks_matter
from groupledger.core.assignors.subscribers import subscribers
from groupledger.core.javaorder import TREE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.assignors.lists import Lists
    from groupledger.core.batch import IntArray, LongArray

OK = int(Status.OK)
NOT_EMULATED = int(Status.ORDER_NOT_EMULATED)


@kernel
def range_groups(b: Arrays, cooperative: bool, every: Lists, status: IntArray, path: IntArray) -> None:
    """Assign every group of the batch into `every`."""
    for index in range(len(b.member_start) - 1):
        first = b.member_start[index]
        status[index] = assign_ranges(group_at(b, index), every.start[first:], every.topic, every.partition)


@kernel
def assign_ranges(g: Group, start: LongArray, topic: IntArray, partition: IntArray) -> int:
    """7 partitions over 3 members -> 3, 2, 2; members first in order get more. Lists follow the map's topic order."""
    for member in range(g.members):
        start[member + 1] = start[0]
    order = np.empty(g.members, np.int32)
    topics = np.empty(g.topics, np.int32)
    walked = walk_members(g, order)
    known = walk_topics(g, order, topics)
    if walked == TREE or known == TREE:
        return NOT_EMULATED
    sort_static_first(g, order)
    topics = topics[:known]
    heads, seats = subscribers(g, order)
    needs = topics_where_racks_matter(g, order, topics, heads, seats)
    if any_true(needs):
        assign_near(g, order, topics, heads, seats, needs, start, topic, partition)
    else:
        _write(g, order, topics, heads, seats, start, topic, partition)
    return OK


@kernel
def _write(
    g: Group,
    order: IntArray,
    topics: IntArray,
    heads: LongArray,
    seats: IntArray,
    start: LongArray,
    topic: IntArray,
    partition: IntArray,
) -> None:
    for local in topics:
        count = heads[local + 1] - heads[local]
        share = g.topic_partitions[local] // count
        more = g.topic_partitions[local] % count
        for at in range(count if share > 0 else more):
            start[order[seats[heads[local] + at]] + 1] += share + (1 if at < more else 0)
    next_at = np.empty(g.members, np.int64)
    base = start[0]
    for member in range(g.members):
        size = start[member + 1] - base
        start[member + 1] = start[member] + size
        next_at[member] = start[member]
    for local in topics:
        count = heads[local + 1] - heads[local]
        share = g.topic_partitions[local] // count
        more = g.topic_partitions[local] % count
        number = 0
        for at in range(count if share > 0 else more):
            member = order[seats[heads[local] + at]]
            to = next_at[member]
            for _ in range(share + (1 if at < more else 0)):
                topic[to] = local
                partition[to] = number
                to += 1
                number += 1
            next_at[member] = to
