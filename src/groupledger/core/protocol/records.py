"""Records of a simulated group's topics: how many there are, which were read, which twice, what is committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from groupledger.core.custom.group import TopicPartition

SECOND_MS = 1_000
Span = tuple[int, int]
"""Offsets from the first up to, but without, the second."""


@dataclass(frozen=True, slots=True)
class Read:
    """What became of a group's records so far; a partition with none is left out.

    `twice`: reads of records that had been read before. `never`: records that were not read, though a later one was.
    """

    twice: Mapping[TopicPartition, int]
    never: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


@dataclass(slots=True)
class Records:
    """The logs of a group's topics: so many records a second arrive in each partition, from when it was made.

    Worked example: at 2 records a second a partition that was made at 0 ms has 3 of them at 1,999 ms.
    """

    per_second: int
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    _made_ms: dict[TopicPartition, int] = field(default_factory=dict)
    _read: dict[TopicPartition, list[Span]] = field(default_factory=dict)  # apart, by offset
    _twice: dict[TopicPartition, int] = field(default_factory=dict)

    def set_topics(self, topics: Mapping[str, int], now_ms: int) -> None:
        """These are all topics now; what is gone takes its log, its commits and its counts along."""
        there = {TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)}
        for gone in self._made_ms.keys() - there:
            for known in (self._made_ms, self._read, self._twice, self.committed):
                known.pop(gone, None)
        for new in there - self._made_ms.keys():
            self._made_ms[new] = now_ms

    def began_ms(self) -> dict[TopicPartition, int]:
        """Return when the log of each partition began, in ms."""
        return dict(self._made_ms)

    def end(self, partition: TopicPartition, now_ms: int) -> int:
        """The offset after the last record; 0 where there is no such partition."""
        made_ms = self._made_ms.get(partition)
        return 0 if made_ms is None else max(now_ms - made_ms, 0) * self.per_second // SECOND_MS

    def first_since(self, partition: TopicPartition, at_ms: int, now_ms: int) -> tuple[int, int] | None:
        """Offset and time of the first record of this time or later, of those that are there now."""
        made_ms = self._made_ms.get(partition)
        if made_ms is None or self.per_second == 0:
            return None
        offset = max((at_ms - 1 - made_ms) * self.per_second // SECOND_MS, 0)
        return (offset, self.arrived_ms(partition, offset)) if offset < self.end(partition, now_ms) else None

    def arrived_ms(self, partition: TopicPartition, offset: int) -> int:
        """When the record at this offset is there: the first moment at which the log is longer than that."""
        return self._made_ms[partition] - (-(offset + 1) * SECOND_MS // self.per_second)

    def read(self, partition: TopicPartition, first: int, end: int) -> None:
        """Somebody reads these records."""
        if partition not in self._made_ms or first >= end:
            return
        apart: list[Span] = []
        low, high = first, end
        for begun, ended in self._read.get(partition, ()):
            overlap = min(ended, end) - max(begun, first)
            if overlap > 0:
                self._twice[partition] = self._twice.get(partition, 0) + overlap
            if overlap >= 0:
                low, high = min(low, begun), max(high, ended)
            else:
                apart.append((begun, ended))
        self._read[partition] = sorted([*apart, (low, high)])

    def found(self, now_ms: int) -> Read:
        """What became of all records so far."""
        missing = {each: spans[-1][1] - sum(end - first for first, end in spans) for each, spans in self._read.items()}
        return Read(
            dict(sorted(self._twice.items())),
            {each: count for each, count in sorted(missing.items()) if count},
            dict(sorted(self.committed.items())),
            {each: self.end(each, now_ms) for each in sorted(self._made_ms)},
        )
