"""Simulate a rehearsed group's broker: topics, logs and committed offsets, shared by its consumers.

The log of a partition begins at 0, is empty when the topic is created, and grows at the same rate as all others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.listener.view import OffsetAndMetadata, OffsetAndTimestamp


class LastRead(NamedTuple):
    """Where the last owner of a partition stopped reading, and whether it was asked to revoke it."""

    offset: int
    revoked: bool


class SimulatedBroker:
    """The cluster as one group sees it, in memory.

    `topics`: None if nobody knows which there are. `exact`: the logs are what members read. Otherwise their real length
    is unknown, so an offset proves nothing.
    """

    def __init__(self, topics: Mapping[str, int] | None = None, *, exact: bool = True) -> None:
        self.exact = exact
        self.knows_topics = topics is not None
        self.now_ms: int | None = None  # unknown
        self.topics: dict[str, int] = {}
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.last_read: dict[TopicPartition, LastRead] = {}
        self._made: dict[str, list[int]] = {}  # per partition: records in the oldest log at its creation
        self._times: list[int] = []  # of appends, in ms
        self._ends: list[int] = []  # of the oldest log after each append
        self.set_topics(topics or {})

    def set_topics(self, topics: Mapping[str, int]) -> None:
        """Replace the topics; logs and committed offsets of missing ones are deleted."""
        for topic in [topic for topic, count in self.topics.items() if topics.get(topic, 0) < count]:
            kept = topics.get(topic, 0)
            del self._made[topic][kept:]
            for known in (self.committed, self.last_read):
                for gone in [each for each in known if each[0] == topic and each[1] >= kept]:
                    del known[gone]
        for topic, count in topics.items():
            made = self._made.setdefault(topic, [])
            made.extend([self._end] * (count - len(made)))
        self.topics = dict(topics)

    def see(self, partitions: Iterable[TopicPartition]) -> None:
        """Note that these partitions were named, so they exist."""
        topics = dict(self.topics)
        for topic, number in partitions:
            topics[topic] = max(topics.get(topic, 0), number + 1)
        if topics != self.topics:
            self.set_topics(topics)

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the cluster has the partition, as far as its topics are known: no other is committed."""
        return not self.knows_topics or self._made_at(partition) is not None

    def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Record offsets committed by a member."""
        self.committed.update(offsets)

    def note_read(self, partition: TopicPartition, first: int, end: int) -> None:
        """Record what a member has read."""

    def append(self, records: int, at_ms: int) -> None:
        """Append `records` to each partition, with this timestamp, or the last ones' if that is later."""
        if records > 0:
            self._times.append(max(at_ms, self._times[-1] if self._times else at_ms))
            self._ends.append(self._end + records)

    def end_offset(self, partition: TopicPartition) -> int:
        """Return the offset after the last record; 0 for a partition that does not exist."""
        made = self._made_at(partition)
        return 0 if made is None else self._end - made

    def is_out_of_range(self, partition: TopicPartition, offset: int) -> bool:
        """Return whether a fetch at this offset fails with OFFSET_OUT_OF_RANGE: the log ends before it."""
        return self.exact and self._made_at(partition) is not None and offset > self.end_offset(partition)

    def first_since(self, partition: TopicPartition, at_ms: int) -> OffsetAndTimestamp | None:
        """Return the first record with this timestamp or a later one."""
        made = self._made_at(partition)
        if made is None:
            return None
        append = bisect_left(self._times, at_ms)
        while append < len(self._times) and self._ends[append] <= made:
            append += 1
        if append == len(self._times):
            return None
        before = self._ends[append - 1] if append else 0
        return OffsetAndTimestamp(before - made, self._times[append])

    @property
    def _end(self) -> int:
        return self._ends[-1] if self._ends else 0

    def _made_at(self, partition: TopicPartition) -> int | None:
        topic, number = partition
        made = self._made.get(topic, [])
        return made[number] if 0 <= number < len(made) else None
