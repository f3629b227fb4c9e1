"""Match racks as KIP-881's leader does: which partitions have replicas near which member, and whether it matters."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.group import GroupView
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from groupledger.core.batch import IntArray


@kernel
def has_replica(g: GroupView, topic: int, partition: int, rack: int) -> bool:
    """Return whether a replica of the partition is in `rack`; False for a partition that does not exist."""
    if partition < 0 or partition >= g.topic_partitions[topic]:
        return False
    at = g.rack_topic_start[topic] + partition
    for replica in range(g.rack_start[at], g.rack_start[at + 1]):
        if g.rack_code[replica] == rack:
            return True
    return False


@kernel
def far_from(g: GroupView, member: int, topic: int, partition: int) -> bool:
    """Return whether the member names a rack that has no replica of the partition."""
    rack = g.member_rack[member]
    return rack != NONE and not has_replica(g, topic, partition, rack)


@kernel
def racks_matter(g: GroupView, consumers: IntArray, consumer_count: int, topics: IntArray, topic_count: int) -> bool:
    """KIP-881: return whether a consumer shares a rack with a replica, and some partition is not in all racks."""
    if len(g.rack_topic_start) == 0:
        return False
    highest = -1
    for at in range(consumer_count):
        highest = max(highest, g.member_rack[consumers[at]])
    if highest < 0:
        return False
    consumer_racks = np.zeros(highest + 1, np.bool_)
    for at in range(consumer_count):
        if g.member_rack[consumers[at]] != NONE:
            consumer_racks[g.member_rack[consumers[at]]] = True
    every = np.zeros(_rack_bound(g, topics, topic_count), np.int32)
    most, least = _count_racks(g, topics, topic_count, every)
    shared = False
    for rack in range(min(len(every), highest + 1)):
        shared = shared or (consumer_racks[rack] and every[rack] > 0)
    return shared and least < most


@kernel
def _rack_bound(g: GroupView, topics: IntArray, topic_count: int) -> int:
    """Return the highest rack code of these topics, plus one."""
    bound = 0
    for at in range(topic_count):
        first = g.rack_topic_start[topics[at]]
        last = first + g.topic_partitions[topics[at]]
        for replica in range(g.rack_start[first], g.rack_start[last]):
            bound = max(bound, g.rack_code[replica] + 1)
    return bound


@kernel
def _count_racks(g: GroupView, topics: IntArray, topic_count: int, seen: IntArray) -> tuple[int, int]:
    """Count the racks in all, and those of the partition in the fewest; stamp `seen[rack]`."""
    total = 0
    least = len(seen)
    stamp = 0
    for at in range(topic_count):
        first = g.rack_topic_start[topics[at]]
        for each in range(first, first + g.topic_partitions[topics[at]]):
            stamp += 1
            here = 0
            for replica in range(g.rack_start[each], g.rack_start[each + 1]):
                rack = g.rack_code[replica]
                if rack != NONE and seen[rack] != stamp:
                    total += 1 if seen[rack] == 0 else 0
                    here += 1
                    seen[rack] = stamp
            least = min(least, here)
    return total, least
