"""Compute iteration orders that a tree inside a bucket decides, key by key on `JavaTable`: slow, rare, exact.

Trees occur with striped partitions (0, 16, 32, .. of one topic), and with ids made to collide.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.server.javatable import HashedKey, JavaTable
from groupledger.core.assignors.server.order import copy_size, room, table_size
from groupledger.core.batch import NONE
from groupledger.core.javaorder import LEAST_CAPACITY

if TYPE_CHECKING:
    from groupledger.core.assignors.server.spec import ServerBatch
    from groupledger.core.batch import IntArray, LongArray

Pairs = Sequence[tuple[int, int]]
"""Topic and partition (below 0: ~partition, removed)."""


class TopicKeys:
    """Keys for one group's topics, by name and by id."""

    def __init__(self, batch: ServerBatch, group: int) -> None:
        """`group` is an index into the batch."""
        local = slice(batch.topic_start[group], batch.topic_start[group + 1])
        self.names = _keys(batch.name_hash[local], batch.name_rank[local])
        self.ids = _keys(batch.id_hash[local], batch.id_rank[local])
        self.exists = [count != NONE for count in batch.topic_partitions[local].tolist()]


def walk_keys(keys: Iterable[HashedKey], capacity: int) -> list[int]:
    """Return the names of keys put into a table of `capacity`, in iteration order."""
    table = JavaTable(capacity)
    for key in keys:
        table.put(key)
    return list(table)


def member_order(batch: ServerBatch, group: int, order: IntArray) -> list[int]:
    """Return the members in the assignor's iteration order, from their order in the group's table."""
    local = slice(batch.member_start[group], batch.member_start[group + 1])
    keys = _keys(batch.member_hash[local], batch.member_rank[local])
    return walk_keys((keys[member] for member in order.tolist()), LEAST_CAPACITY)


def subscription(topics: TopicKeys, named: IntArray) -> list[int]:
    """Return a member's existing topics, in iteration order of a set of their names."""
    walked = walk_keys((topics.names[topic] for topic in named.tolist()), copy_size(len(named)))
    return [topic for topic in walked if topics.exists[topic]]


def shared_topics(topics: TopicKeys, named: IntArray) -> list[int]:
    """Return the ids of a member's topics, in iteration order of `new HashSet(..)`."""
    return walk_keys((topics.ids[topic] for topic in subscription(topics, named)), copy_size(len(named)))


def target(topics: TopicKeys, held: Pairs) -> list[tuple[int, int]]:
    """Return a target in iteration order of its maps, from the order of its record."""
    sets: dict[int, list[int]] = {}
    for topic, partition in held:
        sets.setdefault(topic, []).append(partition)
    walked = walk_keys((topics.ids[topic] for topic in sets), LEAST_CAPACITY)
    return [(topic, each) for topic in walked for each in _set(sets[topic], copy_size(len(sets[topic])))]


def range_record(topics: TopicKeys, named: IntArray, capacity: int, given: Pairs) -> list[tuple[int, int]]:
    """Return a member's ranges in iteration order of its map; `named`: whose names decide the order of the puts."""
    ranges: dict[int, list[int]] = {}
    for topic, partition in given:
        ranges.setdefault(topic, []).append(partition)
    puts = [topic for topic in subscription(topics, named) if topic in ranges]
    walked = walk_keys((topics.ids[topic] for topic in puts), capacity)
    return [(topic, partition) for topic in walked for partition in ranges[topic]]


def record(topics: TopicKeys, held: Pairs, rows: Pairs, fresh: LongArray) -> list[tuple[int, int]]:
    """Return a changed target in iteration order, from the order before and the changes (`record.write_record`)."""
    sets: dict[int, list[int]] = {}
    for topic, partition in held:
        sets.setdefault(topic, []).append(partition)
    made = JavaTable(table_size(len(sets)))
    tables: dict[int, JavaTable] = {}
    for topic, partitions in sets.items():
        made.put(topics.ids[topic])
        tables[topic] = _table(partitions, copy_size(len(partitions)))
    for topic, partition in rows:
        if partition >= 0:
            made.compute_if_absent(topics.ids[topic])
            tables.setdefault(topic, JavaTable(int(fresh[topic]))).put(_number(partition))
            continue
        tables[topic].remove(~partition)
        if not len(tables[topic]):
            made.remove(topic)
            del tables[topic]
    return [(topic, partition) for topic in made for partition in tables[topic]]


def range_capacity(named: int, known: int, *, homogeneous: bool) -> int:
    """Return the number of buckets of the map that the range assignor makes for a member."""
    return table_size(room(known if homogeneous else named))


def _keys(hashes: IntArray, ranks: IntArray) -> list[HashedKey]:
    pairs = zip(hashes.tolist(), ranks.tolist(), strict=True)
    return [HashedKey(hashed, rank, name) for name, (hashed, rank) in enumerate(pairs)]


def _number(partition: int) -> HashedKey:
    return HashedKey(partition, partition, partition)


def _table(partitions: Iterable[int], capacity: int) -> JavaTable:
    table = JavaTable(capacity)
    for partition in partitions:
        table.put(_number(partition))
    return table


def _set(partitions: Iterable[int], capacity: int) -> list[int]:
    return list(_table(partitions, capacity))


def pairs(topic: IntArray, partition: IntArray) -> Pairs:
    """Return two arrays as pairs of plain integers."""
    return list(zip(topic.tolist(), partition.tolist(), strict=True))


def columns(walked: Pairs) -> tuple[IntArray, IntArray]:
    """Return pairs as two arrays, the inverse of `pairs`."""
    both = np.array(walked, np.int32).reshape(-1, 2)
    return both[:, 0], both[:, 1]
