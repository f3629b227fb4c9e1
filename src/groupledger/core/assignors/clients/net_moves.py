"""Which partitions moved from whom to whom in one rebalance, so that a move can be undone instead of crossed."""

from __future__ import annotations

from dataclasses import dataclass, field

from groupledger.core.custom.group import TopicPartition

Pair = tuple[str, str]
"""From whom, to whom."""


@dataclass(slots=True)
class NetMoves:
    """The net movement of each partition."""

    of: dict[TopicPartition, Pair] = field(default_factory=dict)

    def record(self, partition: TopicPartition, holder: str, to: str) -> None:
        """A partition went from its holder to another member; one that returns to where it began did not move."""
        source, at = self.of.pop(partition, (holder, holder))
        if at != holder:
            raise KeyError(partition)
        if source != to:
            self.of[partition] = (source, to)

    def opposite(self, partition: TopicPartition, holder: str, to: str) -> list[TopicPartition]:
        """The partitions of the topic that came the opposite way, in order of their moves."""
        source = self.of.get(partition, (holder, holder))[0]
        return [each for each, pair in self.of.items() if each.topic == partition.topic and pair == (to, source)]
