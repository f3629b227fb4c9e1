"""The broker of a rehearsed group: what its consumers share."""

from __future__ import annotations

from groupledger.core.custom.group import TopicPartition
from groupledger.listener.view import OffsetAndMetadata


class SimulatedBroker:
    """The committed offsets of one group, in memory."""

    def __init__(self) -> None:
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}
