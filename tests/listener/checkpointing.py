"""A listener as users write them, for every host."""

from __future__ import annotations

from groupledger.listener import OffsetAndMetadata, RebalanceListener


class Checkpointing(RebalanceListener):
    """Starts what it is assigned paused, and commits what it gives up."""

    def on_partitions_assigned(self, partitions, consumer):
        consumer.pause(partitions)

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(1) for each in partitions})
