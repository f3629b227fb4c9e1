"""Assign a share group by Kafka's `simple` assignor (KIP-932): each partition to as many members as it takes.

With P partitions and M members every partition is wanted by ceil(M / P) members, which gives the members equal numbers,
up to one. Where subscriptions differ, each topic is shared among its subscribers by itself. Who keeps what hangs on the
order of Java's tables, which are walked key by key (`JavaTable`).

Worked example: 2 partitions over 3 members -> each is wanted twice: the members get 2, 1 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

from groupledger.core.arrays.java_orders import LEAST_CAPACITY
from groupledger.core.arrays.ragged import part
from groupledger.core.assignors.server import iteration_orders
from groupledger.core.assignors.server.java_collections import HashedKey, JavaTable, number_key, walk_keys
from groupledger.core.assignors.server.orders import room, table_size
from groupledger.core.assignors.server.server_batch import find_walks
from groupledger.core.assignors.server.server_group import (
    ServerBatch,
    ServerGroup,
    ServerPath,
    TopicId,
    TopicIdNumbers,
    encode,
)

SIMPLE = "simple"
"""The one assignor that a share group has (`group.share.assignors`)."""

LocalPartition = tuple[int, int]
"""The topic's place in its group, and the partition's number."""


def assign_simple(group: ServerGroup) -> dict[str, TopicIdNumbers]:
    """Return the new target of each member, in the order of its record; one that stays the same is not written again.

    `partitions` of a topic are those whose share state is initialized: the first ones, as topics grow at their end.
    """
    batch, names = encode([group])
    if not group.members:
        return {}
    share = _Share.of(batch)
    if share.homogeneous:
        for target in share.targets:
            for topic in [each for each in target.topics if each not in share.subscribed[0]]:
                target.drop(topic)
        pool = [each for topic in share.subscribed[0] for each in share.partitions_of(topic)]
        _Pool(share, list(range(len(share.targets))), pool).deal()
    else:
        named = (topic for mine in share.subscribed for topic in mine)
        for topic in walk_keys((share.keys.ids[each] for each in named), LEAST_CAPACITY):
            subscribers = [seat for seat, mine in enumerate(share.subscribed) if topic in mine]
            _Pool(share, subscribers, share.partitions_of(topic), topic).deal()
    nothing_shared = share.homogeneous and not share.subscribed[0]
    found = {} if nothing_shared else dict(zip(share.order, share.targets, strict=True))
    records = [_record(found[at], names.topic_ids) if at in found else () for at in range(len(group.members))]
    return {
        each.member_id: each.target if _flat(record) == _flat(each.target) else record
        for each, record in zip(group.members, records, strict=True)
    }


@dataclass(frozen=True, slots=True)
class _Share:
    """A share group by seats, which are its members in iteration order: `order` is each one's place in the group."""

    keys: iteration_orders.TopicKeys
    counts: list[int]
    order: list[int]
    homogeneous: bool
    subscribed: list[list[int]]  # existing topics of each seat, in iteration order
    held: list[iteration_orders.Pairs]  # what each seat had, in iteration order
    targets: list[iteration_orders.CopiedTarget]

    @classmethod
    def of(cls, batch: ServerBatch) -> _Share:
        """Read the one group of a batch."""
        keys, (path, walks) = iteration_orders.TopicKeys(batch, 0), find_walks(batch)
        order = walks.members.tolist()
        named = [batch.subscription_topic[part(batch.subscription_start, each)] for each in order]
        held = [part(batch.target_start, each) for each in order]
        owned = [iteration_orders.pairs(walks.owned.topic[each], walks.owned.partition[each]) for each in held]
        return cls(
            keys=keys,
            counts=batch.topic_partitions.tolist(),
            order=order,
            homogeneous=int(path[0]) == ServerPath.HOMOGENEOUS,
            subscribed=[iteration_orders.subscription(keys, each) for each in named],
            held=owned,
            targets=[iteration_orders.CopiedTarget(keys, each) for each in owned],
        )

    def partitions_of(self, topic: int) -> list[LocalPartition]:
        """Return the partitions of a topic that may be assigned."""
        return [(topic, number) for number in range(max(self.counts[topic], 0))]


class _Pool:
    """Partitions that members share: all of a homogeneous group (`topic` None), or those of one topic."""

    def __init__(
        self, share: _Share, members: list[int], partitions: list[LocalPartition], topic: int | None = None
    ) -> None:
        """`members` are seats."""
        self.share, self.members, self.partitions, self.topic = share, members, partitions, topic
        self.sharing = -(-len(members) // len(partitions)) if partitions else 0
        each = self.sharing * len(partitions) / len(members)
        quotas = [ceil(each * (at + 1)) - ceil(each * at) for at in range(len(members))]
        self.quota = dict(zip(members, quotas, strict=True))
        self.owned: dict[int, JavaTable] = {}
        self.owners: dict[LocalPartition, JavaTable] = {}
        self.walk = JavaTable(table_size(room(len(partitions) + 1)))  # Kafka's helper asks for one more

    def deal(self) -> None:
        """Keep what members have, as far as they and others may, and hand out the rest."""
        self._keep_owned()
        self._trim_members()
        self._trim_partitions()
        for each in self.partitions:
            self._know(each)
        self._fill()

    def _key(self, partition: LocalPartition) -> HashedKey:
        """Return the hash of Kafka's TopicIdPartition, or of a number where there is one topic."""
        topic, number = partition
        of_topic = self.share.keys.ids[topic].hashed
        hashed = number if self.topic is not None else (31 * of_topic + number) & 0xFFFFFFFF
        return HashedKey(hashed, partition, partition)

    def _know(self, partition: LocalPartition) -> JavaTable:
        self.walk.compute_if_absent(self._key(partition))
        return self.owners.setdefault(partition, JavaTable(LEAST_CAPACITY))

    def _keep_owned(self) -> None:
        for seat, held in enumerate(self.share.held):
            for each in held:
                if each in self.share.targets[seat] and self.topic in (None, each[0]):
                    self._know(each).put(number_key(seat))
                    self.owned.setdefault(seat, JavaTable(LEAST_CAPACITY)).put(self._key(each))

    def _trim_members(self) -> None:
        """Take from members that have more than their quota; from those that no longer subscribe, all."""
        for seat, owned in self.owned.items():
            for each in list(owned)[: max(len(owned) - self.quota.get(seat, 0), 0)]:
                self._give_up(seat, each)

    def _trim_partitions(self) -> None:
        """Take partitions from members where more have one than are wanted."""
        for partition, owners in self.owners.items():
            for seat in list(owners)[: max(len(owners) - self.sharing, 0)]:
                self._give_up(seat, partition)

    def _give_up(self, seat: int, partition: LocalPartition) -> None:
        self.owned[seat].remove(partition)
        self.owners[partition].remove(seat)
        self.share.targets[seat].give_up(partition)

    def _fill(self) -> None:
        """Give each partition the members that it lacks, in turns among those below their quota.

        Once none of them can take a partition, since they have it, nothing more is given, whatever is lacking.
        """
        below = [seat for seat in self.members if len(self.owned.get(seat, ())) < self.quota[seat]]
        turn, taken = 0, False
        for partition in self.walk:
            lacking = self.sharing - len(self.owners[partition])
            while lacking > 0 and below:
                if turn == len(below):
                    if not taken:
                        return
                    turn, taken = 0, False
                seat = below[turn]
                turn += 1
                if seat in self.owners[partition]:
                    continue
                self.share.targets[seat].take(partition)
                owned = self.owned.setdefault(seat, JavaTable(LEAST_CAPACITY))
                owned.put(self._key(partition))
                lacking, taken = lacking - 1, True
                if len(owned) >= self.quota[seat]:
                    turn -= 1
                    del below[turn]


def _record(target: iteration_orders.CopiedTarget, ids: Sequence[TopicId | None]) -> TopicIdNumbers:
    """Return a target by topic id; a topic that is left without partitions is left out."""
    named = ((ids[topic], tuple(target.numbers[topic])) for topic in target.topics)
    return tuple((topic_id, numbers) for topic_id, numbers in named if topic_id is not None and numbers)


def _flat(record: TopicIdNumbers) -> set[tuple[TopicId, int]]:
    return {(topic, number) for topic, numbers in record for number in numbers}
