"""Listeners for groups with times: a careful one, and one for each thing that can go wrong."""

from __future__ import annotations

from typing import Any, ClassVar

from groupledger.listener import OffsetAndMetadata, RebalanceListener, spend


class Careful(RebalanceListener):
    """Commits what it read before it hands over, and nothing that it lost."""

    takes_ms = 0

    def on_partitions_assigned(self, partitions, consumer): ...

    def on_partitions_revoked(self, partitions, consumer):
        spend(self.takes_ms)
        consumer.commit_sync({each: OffsetAndMetadata(consumer.position(each)) for each in partitions})

    def on_partitions_lost(self, partitions, consumer): ...


class Flushing(Careful):
    """Takes its time, and less than it has."""

    takes_ms = 1_500


class TooSlow(Careful):
    """Takes longer than the rebalance timeout of the scripts here."""

    takes_ms = 30_000


class Silent(Careful):
    """Never commits."""

    def on_partitions_revoked(self, partitions, consumer): ...


class CommitsLost(Careful):
    """Treats what it lost as if it could still commit it."""

    def on_partitions_lost(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(1) for each in partitions})


class Ahead(Careful):
    """Commits all that is there, read or not."""

    def on_partitions_revoked(self, partitions, consumer):
        ends = consumer.end_offsets(partitions)
        consumer.commit_sync({each: OffsetAndMetadata(end) for each, end in ends.items()})


class Beyond(Careful):
    """Commits offsets that are not there yet."""

    def on_partitions_revoked(self, partitions, consumer):
        consumer.commit_sync({each: OffsetAndMetadata(consumer.position(each) + 10_000) for each in partitions})


class Asking(Careful):
    """Asks everything that a listener may ask, and keeps the answers."""

    told: ClassVar[list[tuple[str, Any]]] = []

    def on_partitions_assigned(self, partitions, consumer):
        for each in partitions:
            type(self).told += [
                ("end", consumer.end_offsets([each])[each]),
                ("committed", consumer.committed([each])[each]),
                ("lag", consumer.current_lag(each)),
                ("position", consumer.position(each)),
                ("since", consumer.offsets_for_times({each: 2_500})[each]),
                ("topics", sorted(consumer.list_topics())),
                ("partitions", len(consumer.partitions_for(each[0]))),
                ("generation", consumer.group_metadata().generation),
                ("beginning", consumer.beginning_offsets([each])[each]),
                ("id", len(consumer.client_instance_id())),
            ]
            consumer.pause([each])
            assert consumer.paused() >= {each}
            consumer.resume([each])
            consumer.seek_to_end([each])
            consumer.seek_to_beginning([each])
            consumer.commit_async(
                {each: OffsetAndMetadata(0)}, lambda offsets, error: self.told.append(("async", error))
            )


class Remembering(Careful):
    """Notes what is committed of what it is assigned."""

    told: ClassVar[list[dict[int, int | None]]] = []

    def on_partitions_assigned(self, partitions, consumer):
        committed = consumer.committed(partitions)
        self.told.append({at: told and told.offset for (_, at), told in sorted(committed.items())})


class TooSlowAtFirst(Careful):
    """Takes 30 s over its first partitions."""

    def on_partitions_assigned(self, partitions, consumer):
        if partitions and not hasattr(self, "began"):
            self.began = True
            spend(30_000)
