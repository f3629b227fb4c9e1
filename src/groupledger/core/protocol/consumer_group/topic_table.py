"""The topics of a simulated cluster by name and by id: a topic that is deleted and made again is another topic."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.assignors.server.group import UUID_BYTES, Topic, TopicId
from groupledger.core.custom.group import TopicPartition


class TopicIdPartition(NamedTuple):
    """A partition as the coordinator and its members name it."""

    topic_id: TopicId
    number: int


TopicIdPartitionSet = frozenset[TopicIdPartition]
NO_PARTITIONS: TopicIdPartitionSet = frozenset()


def flat(record: Iterable[tuple[TopicId, Iterable[int]]]) -> TopicIdPartitionSet:
    """Partitions of a record, in which they stand under topic ids."""
    return frozenset(TopicIdPartition(topic_id, number) for topic_id, numbers in record for number in numbers)


@dataclass(slots=True)
class TopicTable:
    """Topics that exist, and the names of all that did.

    `known_ids`: ids that topics had in reality, in order; others are made from the name and its number. They decide
    ties of the assignor `uniform`, as in Kafka. `created` counts topics that were made.
    """

    living: dict[str, Topic] = field(default_factory=dict)
    known_ids: Mapping[str, Sequence[TopicId]] = field(default_factory=dict)
    created: int = 0
    _names: dict[TopicId, str] = field(default_factory=dict)
    _made: Counter[str] = field(default_factory=Counter)

    def become(self, counts: Mapping[str, int]) -> None:
        """Have these topics, and no others."""
        for name in self.living.keys() - counts.keys():
            self.delete(name)
        for name, count in counts.items():
            self.set_partitions(name, count)

    @property
    def counts(self) -> dict[str, int]:
        """Partition counts by name."""
        return {name: topic.partitions for name, topic in self.living.items()}

    def set_partitions(self, name: str, count: int) -> None:
        """Make a topic, or give it another number of partitions."""
        if name not in self.living:
            self.created += 1
            self._made[name] += 1
        topic_id = self.living[name].topic_id if name in self.living else self._new_id(name)
        self._names[topic_id] = name
        self.living[name] = Topic(topic_id, count)

    def delete(self, name: str) -> None:
        """Delete a topic, if it exists."""
        self.living.pop(name, None)

    def named(self, partitions: Iterable[TopicIdPartition]) -> tuple[TopicPartition, ...]:
        """Partitions by name, sorted; a topic keeps its name when it is gone."""
        return tuple(sorted({TopicPartition(self._names[topic_id], number) for topic_id, number in partitions}))

    def identified(self, partitions: Iterable[TopicPartition]) -> TopicIdPartitionSet:
        """Partitions of existing topics by id; others are left out."""
        found = ((self.living.get(each.topic), each.partition) for each in partitions)
        return frozenset(TopicIdPartition(topic.topic_id, number) for topic, number in found if topic is not None)

    def ids(self, names: Iterable[str]) -> frozenset[TopicId]:
        """Ids of those of the topics that exist."""
        return frozenset(self.living[name].topic_id for name in names if name in self.living)

    def _new_id(self, name: str) -> TopicId:
        number = self._made[name]
        known = self.known_ids.get(name, ())
        if number <= len(known):
            return known[number - 1]
        return TopicId(hashlib.sha256(f"{name}#{number}".encode("utf-8", "surrogatepass")).digest()[:UUID_BYTES])
