"""Compute the coordinator's iteration orders before any decision: members, subscriptions, current targets.

An order that a tree bucket decides is flagged and left in insertion order; `TopicKeys` gives it key by key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.java_orders import LEAST_CAPACITY, TREE, TREE_CHAIN, sort_by_bucket, spread
from groupledger.core.arrays.kernels import kernel
from groupledger.core.arrays.ragged import part
from groupledger.core.assignors.server.java_collections import HashedKey, JavaTable, number_key, walk_keys
from groupledger.core.assignors.server.orders import after_changes, copy_size, room, table_size, walk, walk_added
from groupledger.core.assignors.server.server_group import ServerBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray


class ServerGroupView(NamedTuple):
    """Views of one group; members and topics count from 0. Subscriptions and targets still index the whole batch."""

    members: int
    topics: int
    member_hash: IntArray
    member_rank: IntArray
    instance_rank: IntArray
    timeline_key: LongArray
    joining: int
    timeline_bits: int
    name_hash: IntArray
    id_hash: IntArray
    id_rank: IntArray
    partitions: IntArray
    subscription_start: LongArray  # [members + 1]
    subscription_topic: IntArray
    target_start: LongArray  # [members + 1]


@kernel
def group_at(b: ServerBatch, index: int) -> ServerGroupView:
    """Return the views of group `index`."""
    m = b.member_start[index]
    n = b.member_start[index + 1]
    t = b.topic_start[index]
    u = b.topic_start[index + 1]
    return ServerGroupView(
        n - m,
        u - t,
        b.member_hash[m:n],
        b.member_rank[m:n],
        b.instance_rank[m:n],
        b.timeline_key[m:n],
        b.joining[index],
        b.timeline_bits[index],
        b.name_hash[t:u],
        b.id_hash[t:u],
        b.id_rank[t:u],
        b.topic_partitions[t:u],
        b.subscription_start[m : n + 1],
        b.subscription_topic,
        b.target_start[m : n + 1],
    )


@kernel
def count_subscribers(g: ServerGroupView) -> IntArray:
    """Count the members that name each topic, [topics]."""
    subscribers = np.zeros(g.topics, np.int32)
    for entry in range(g.subscription_start[0], g.subscription_start[g.members]):
        subscribers[g.subscription_topic[entry]] += 1
    return subscribers


@kernel
def find_paths(b: ServerBatch, path: IntArray) -> None:
    """Set 1 for each group whose subscribed names are all subscribed by all members (ConsumerGroup's rule), else 0."""
    for index in range(len(path)):
        if b.same_subscriptions[index] != NONE:
            path[index] = b.same_subscriptions[index]
            continue
        g = group_at(b, index)
        subscribers = count_subscribers(g)
        path[index] = 1
        for topic in range(g.topics):
            if 0 < subscribers[topic] < g.members:
                path[index] = 0


@kernel
def walk_members(b: ServerBatch, order: IntArray, tree: NDArray[np.bool_]) -> None:
    """Fill `order` [M] with members in the assignor's iteration order: from the group's table into a HashMap.

    In a slot of a TimelineHashMap the last to join comes first; a member that is still joining comes last.
    """
    for index in range(len(tree)):
        g = group_at(b, index)
        seats = order[b.member_start[index] : b.member_start[index + 1]]
        keys = np.empty(g.members, np.int64)
        for member in range(g.members):
            slot = g.timeline_key[member] >> (31 - g.timeline_bits)
            late = np.int64(1) << 62 if member == g.joining else np.int64(0)
            keys[member] = late | (slot << 31) | (g.members - 1 - member)
        keys.sort()
        for at in range(g.members):
            seats[at] = g.members - 1 - (keys[at] & 0x7FFFFFFF)
        tree[index] = walk(g.member_hash, seats, g.members, LEAST_CAPACITY) == TREE


@kernel
def walk_subscription(g: ServerGroupView, member: int, topics: IntArray, names: IntArray) -> tuple[int, bool]:
    """Fill `topics` with a member's existing topics, as a set of names iterates; return the count, and if by a tree.

    `names` is scratch. If a tree decides, the order is left as in the record.
    """
    first = g.subscription_start[member]
    count = g.subscription_start[member + 1] - first
    names[:count] = g.subscription_topic[first : first + count]
    tree = walk(g.name_hash, names, count, copy_size(count)) == TREE
    known = 0
    for at in range(count):
        if g.partitions[names[at]] != NONE:
            topics[known] = names[at]
            known += 1
    return known, tree


@kernel
def walk_shared(
    b: ServerBatch, order: IntArray, path: IntArray, shared: IntArray, count: IntArray, tree: NDArray[np.bool_]
) -> None:
    """List, for each homogeneous group, its first member's topics as `new HashSet(..)` of their ids iterates.

    They are at `shared[topic_start[g]:]`, `count[g]` of them; `tree` [G] flags the undecided. The set is sized by the
    names, including those without a topic.
    """
    for index in range(len(path)):
        g = group_at(b, index)
        if path[index] == 0 or g.members == 0:
            continue
        first = order[b.member_start[index]]
        topics = shared[b.topic_start[index] : b.topic_start[index + 1]]
        count[index], tree[index] = walk_subscription(g, first, topics, np.empty(g.topics, np.int32))
        size = copy_size(g.subscription_start[first + 1] - g.subscription_start[first])
        tree[index] = walk(g.id_hash, topics, count[index], size) == TREE or tree[index]


@kernel
def walk_targets(b: ServerBatch, topic: IntArray, partition: IntArray, tree: NDArray[np.bool_]) -> None:
    """Fill `topic`, `partition` with every member's target as its maps iterate; `tree` [M] flags the undecided."""
    for index in range(len(b.member_start) - 1):
        id_hash = b.id_hash[b.topic_start[index] : b.topic_start[index + 1]]
        for member in range(b.member_start[index], b.member_start[index + 1]):
            low = b.target_start[member]
            high = b.target_start[member + 1]
            tree[member] = not _walk_target(
                id_hash, b.target_topic[low:high], b.target_partition[low:high], topic[low:high], partition[low:high]
            )


@kernel
def _walk_target(
    id_hash: IntArray, topics: IntArray, partitions: IntArray, topic: IntArray, partition: IntArray
) -> bool:
    heads = np.empty(len(topics) + 1, np.int32)
    runs = 0
    for at in range(len(topics)):
        if at == 0 or topics[at] != topics[at - 1]:
            heads[runs] = at
            runs += 1
    heads[runs] = len(topics)
    hashes = np.empty(runs, np.int32)
    order = np.empty(runs, np.int32)
    for run in range(runs):
        hashes[run] = id_hash[topics[heads[run]]]
        order[run] = run
    if walk(hashes, order, runs, LEAST_CAPACITY) == TREE:
        return False
    to = 0
    for place in order:
        low = heads[place]
        count = heads[place + 1] - low
        topic[to : to + count] = topics[low]
        if not walk_added(partitions[low : low + count], copy_size(count), partition[to : to + count]):
            return False
        to += count
    return True


# Compute iteration orders that a tree inside a bucket decides, key by key on `JavaTable`: slow, rare, exact.
#
# Trees occur with striped partitions (0, 16, 32, .. of one topic), and with ids made to collide.

Pairs = Sequence[tuple[int, int]]
"""Topic and partition (below 0: ~partition, removed)."""


class TopicKeys:
    """Keys for one group's topics, by name and by id."""

    def __init__(self, batch: ServerBatch, group: int) -> None:
        """`group` is an index into the batch."""
        local = part(batch.topic_start, group)
        self.names = _keys(batch.name_hash[local], batch.name_rank[local])
        self.ids = _keys(batch.id_hash[local], batch.id_rank[local])
        self.exists = [count != NONE for count in batch.topic_partitions[local].tolist()]


def member_order(batch: ServerBatch, group: int, order: IntArray) -> list[int]:
    """Return the members in the assignor's iteration order, from their order in the group's table."""
    local = part(batch.member_start, group)
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
    sets = _by_topic(held)
    walked = walk_keys((topics.ids[topic] for topic in sets), LEAST_CAPACITY)
    return [(topic, each) for topic in walked for each in _copied_set(sets[topic])]


def range_record(topics: TopicKeys, named: IntArray, capacity: int, given: Pairs) -> list[tuple[int, int]]:
    """Return a member's ranges in iteration order of its map; `named`: whose names decide the order of the puts."""
    ranges = _by_topic(given)
    puts = [topic for topic in subscription(topics, named) if topic in ranges]
    walked = walk_keys((topics.ids[topic] for topic in puts), capacity)
    return [(topic, partition) for topic in walked for partition in ranges[topic]]


def record(topics: TopicKeys, held: Pairs, rows: Pairs, fresh: LongArray) -> list[tuple[int, int]]:
    """Return a changed target in iteration order, from the order before and the changes (`write_record`)."""
    target = CopiedTarget(topics, held)
    for topic, partition in rows:
        if partition >= 0:
            target.take((topic, partition), int(fresh[topic]))
            continue
        target.give_up((topic, ~partition))
        if not len(target.numbers[topic]):
            target.drop(topic)
    return [(topic, partition) for topic in target.topics for partition in target.numbers[topic]]


class CopiedTarget:
    """A member's target that is changed: a table of topics, and one of partitions for each."""

    def __init__(self, keys: TopicKeys, held: Pairs) -> None:
        """Copy a target that is given in iteration order."""
        sets = _by_topic(held)
        self._keys = keys
        self.topics = JavaTable(table_size(len(sets)))
        for topic in sets:
            self.topics.put(keys.ids[topic])
        self.numbers = {topic: _copied_set(partitions) for topic, partitions in sets.items()}

    def __contains__(self, partition: tuple[int, int]) -> bool:
        """Return whether it has a partition."""
        return partition[0] in self.topics and partition[1] in self.numbers[partition[0]]

    def take(self, partition: tuple[int, int], capacity: int = LEAST_CAPACITY) -> None:
        """Add a partition; `capacity` is that of the set made for a new topic."""
        self.topics.compute_if_absent(self._keys.ids[partition[0]])
        self.numbers.setdefault(partition[0], JavaTable(capacity)).put(number_key(partition[1]))

    def give_up(self, partition: tuple[int, int]) -> None:
        """Remove a partition; the topic stays, even if empty."""
        self.numbers[partition[0]].remove(partition[1])

    def drop(self, topic: int) -> None:
        """Remove a topic with all its partitions."""
        self.topics.remove(topic)
        del self.numbers[topic]


def _keys(hashes: IntArray, ranks: IntArray) -> list[HashedKey]:
    pairs = zip(hashes.tolist(), ranks.tolist(), strict=True)
    return [HashedKey(hashed, rank, name) for name, (hashed, rank) in enumerate(pairs)]


def _by_topic(held: Pairs) -> dict[int, list[int]]:
    sets: dict[int, list[int]] = {}
    for topic, partition in held:
        sets.setdefault(topic, []).append(partition)
    return sets


def _copied_set(partitions: Sequence[int]) -> JavaTable:
    """Return `new HashSet(partitions)`."""
    table = JavaTable(copy_size(len(partitions)))
    for partition in partitions:
        table.put(number_key(partition))
    return table


def pairs(topic: IntArray, partition: IntArray) -> Pairs:
    """Return two arrays as pairs of plain integers."""
    return list(zip(topic.tolist(), partition.tolist(), strict=True))


def columns(walked: Pairs) -> tuple[IntArray, IntArray]:
    """Return pairs as two arrays, the inverse of `pairs`."""
    both = np.array(walked, np.int32).reshape(-1, 2)
    return both[:, 0], both[:, 1]


# Compute the order in which the coordinator writes a member's new target: its maps' iteration after the changes.
#
# A member without changes keeps its map. For another, Kafka copies it (`new HashMap(size)`, `new HashSet(set)`) before
# the first change; topics come back by `computeIfAbsent`, which puts new keys before their bucket and doubles a full
# table at the call after, also one for a known key.

NONE_YET = -1


class MemberTarget(NamedTuple):
    """One member: its target in iteration order, its log rows (topic, partition or ~partition) in order of time."""

    owned_topic: IntArray
    owned_partition: IntArray
    row_topic: IntArray
    row_partition: IntArray


class MapSlots(NamedTuple):
    """The sets of a member's map, copied ones first; a topic that is lost and comes back has a new set."""

    topic: IntArray
    size: IntArray
    low: IntArray  # its part of the owned partitions that were copied in
    high: IntArray
    row: IntArray  # [rows] the slot that a row changes


@kernel
def fresh_sizes(g: ServerGroupView, homogeneous: bool) -> LongArray:
    """Return the buckets of the set Kafka makes for a member's new topic: 16, or (heterogeneous) by its fair share."""
    sizes = np.full(g.topics, LEAST_CAPACITY, np.int64)
    if homogeneous:
        return sizes
    subscribers = count_subscribers(g)
    for topic in range(g.topics):
        if subscribers[topic] > 0 and g.partitions[topic] >= 0:
            sizes[topic] = table_size(room((g.partitions[topic] + subscribers[topic] - 1) // subscribers[topic]))
    return sizes


@kernel
def write_record(
    id_hash: IntArray, fresh: LongArray, slot_of: IntArray, m: MemberTarget, topic: IntArray, partition: IntArray
) -> bool:
    """Fill `topic`, `partition` with a changed member's target in iteration order; False if a bucket overflows.

    `slot_of` [topics] is scratch, filled with NONE_YET before and after.
    """
    slots, count = _copied(m, slot_of)
    capacity, count = _replay_map(id_hash, slot_of, m, slots, count)
    for slot in range(count):
        slot_of[slots.topic[slot]] = NONE_YET
    if capacity == TREE:
        return False
    heads, rows = rows_by(slots.row, count)
    to = 0
    for slot in _walk_map(id_hash, slots, count, capacity):
        copied = m.owned_partition[slots.low[slot] : slots.high[slot]]
        changes = m.row_partition[rows[heads[slot] : heads[slot + 1]]]
        capacity = copy_size(len(copied)) if len(copied) > 0 else fresh[slots.topic[slot]]
        size = slots.size[slot]
        topic[to : to + size] = slots.topic[slot]
        if not _write_set(copied, changes, capacity, partition[to : to + size]):
            return False
        to += size
    return True


@kernel
def rows_by(owner: IntArray, owners: int) -> tuple[LongArray, LongArray]:
    """Return the rows of each owner (a member, or a slot) in order of time: those of `o` are at heads[o]:heads[o + 1].

    `owner` is that of each row.
    """
    heads = np.zeros(owners + 1, np.int64)
    for each in owner:
        heads[each + 1] += 1
    for each in range(owners):
        heads[each + 1] += heads[each]
    filled = heads.copy()
    rows = np.empty(len(owner), np.int64)
    for row in range(len(owner)):
        rows[filled[owner[row]]] = row
        filled[owner[row]] += 1
    return heads, rows


@kernel
def _copied(m: MemberTarget, slot_of: IntArray) -> tuple[MapSlots, int]:
    most = len(m.owned_topic) + len(m.row_topic)
    slots = MapSlots(
        np.empty(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.empty(len(m.row_topic), np.int32),
    )
    count = 0
    for at in range(len(m.owned_topic)):
        if at == 0 or m.owned_topic[at] != m.owned_topic[at - 1]:
            slots.topic[count] = m.owned_topic[at]
            slots.low[count] = at
            slot_of[m.owned_topic[at]] = count
            count += 1
        slots.high[count - 1] = at + 1
        slots.size[count - 1] += 1
    return slots, count


@kernel
def _replay_map(id_hash: IntArray, slot_of: IntArray, m: MemberTarget, slots: MapSlots, count: int) -> tuple[int, int]:
    """Return the map's capacity (or TREE) and the number of slots after all rows; set `slots.size` and `slots.row`."""
    hashes = id_hash[slots.topic[:count]]
    capacity = after_changes(hashes, np.ones(count, np.int32), count, table_size(count))
    if capacity == TREE:
        return TREE, count
    chains = _chains(id_hash, slots, count, capacity)
    size = count
    for at in range(len(m.row_topic)):
        topic = m.row_topic[at]
        slot = slot_of[topic]
        if m.row_partition[at] < 0:
            slots.size[slot] -= 1
            if slots.size[slot] == 0:
                slot_of[topic] = NONE_YET
                size -= 1
                chains[spread(id_hash[topic]) & (capacity - 1)] -= 1
        else:
            if 4 * size > 3 * capacity:
                capacity *= 2
                chains = _chains(id_hash, slots, count, capacity)
            if slot == NONE_YET:
                slot = count
                slots.topic[slot] = topic
                slot_of[topic] = slot
                count += 1
                size += 1
                chains[spread(id_hash[topic]) & (capacity - 1)] += 1
                if chains[spread(id_hash[topic]) & (capacity - 1)] >= TREE_CHAIN:
                    return TREE, count
            slots.size[slot] += 1
        slots.row[at] = slot
    return capacity, count


@kernel
def _chains(id_hash: IntArray, slots: MapSlots, count: int, capacity: int) -> IntArray:
    """Count the topics in each bucket."""
    chains = np.zeros(capacity, np.int32)
    for slot in range(count):
        if slots.size[slot] > 0:
            chains[spread(id_hash[slots.topic[slot]]) & (capacity - 1)] += 1
    return chains


@kernel
def _walk_map(id_hash: IntArray, slots: MapSlots, count: int, capacity: int) -> IntArray:
    """Return the slots in iteration order of their topics: per bucket the last computed first, then copied ones."""
    walked = np.empty(count, np.int32)
    alive = 0
    copied = 0
    while copied < count and slots.high[copied] > 0:
        copied += 1
    for slot in range(count - 1, copied - 1, -1):
        if slots.size[slot] > 0:
            walked[alive] = slot
            alive += 1
    for slot in range(copied):
        if slots.size[slot] > 0:
            walked[alive] = slot
            alive += 1
    sort_by_bucket(id_hash[slots.topic[:count]], walked, alive, capacity)
    return walked[:alive]


@kernel
def _write_set(copied: IntArray, changes: IntArray, capacity: int, partition: IntArray) -> bool:
    """Fill `partition` with a set in iteration order: copied partitions, then changes (~partition: removed)."""
    numbers = np.concatenate((copied, changes))
    if len(numbers) == len(partition):
        return walk_added(numbers, capacity, partition)
    signs = np.ones(len(numbers), np.int32)
    for at in range(len(numbers)):
        if numbers[at] < 0:
            numbers[at] = ~numbers[at]
            signs[at] = -1
    capacity = after_changes(numbers, signs, len(numbers), capacity)
    if capacity == TREE:
        return False
    seats = _survivors(numbers, signs)
    sort_by_bucket(numbers, seats, len(seats), capacity)
    for at in range(len(seats)):
        partition[at] = numbers[seats[at]]
    return True


@kernel
def _survivors(numbers: IntArray, signs: IntArray) -> IntArray:
    """Return the row of each remaining partition's last insertion, ascending."""
    by_number = np.argsort(numbers, kind="mergesort")
    last = np.zeros(len(numbers), np.bool_)
    for at in range(len(numbers)):
        if at + 1 == len(numbers) or numbers[by_number[at]] != numbers[by_number[at + 1]]:
            last[by_number[at]] = signs[by_number[at]] > 0
    return np.flatnonzero(last).astype(np.int32)
