"""Record net moves (from, to) of partitions in one rebalance, so that a move can be undone instead of crossed."""

from __future__ import annotations

from dataclasses import dataclass, field

from groupledger.core.custom.group import TopicPartition

Pair = tuple[str, str]
"""From, to."""


@dataclass(slots=True)
class NetMoves:
    """The net move of each partition."""

    of: dict[TopicPartition, Pair] = field(default_factory=dict)

    def record(self, partition: TopicPartition, holder: str, to: str) -> None:
        """Record a move from the owner to another member; a partition that returns to its start did not move."""
        source, at = self.of.pop(partition, (holder, holder))
        if at != holder:
            raise KeyError(partition)
        if source != to:
            self.of[partition] = (source, to)

    def opposite(self, partition: TopicPartition, holder: str, to: str) -> list[TopicPartition]:
        """Return the topic's partitions that moved the opposite way, in order of their moves."""
        source = self.of.get(partition, (holder, holder))[0]
        return [each for each, pair in self.of.items() if each.topic == partition.topic and pair == (to, source)]
