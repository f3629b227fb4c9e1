"""Provide KIP-1306 over kafka-python 3."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import client_module
from groupledger.core.protocol.consumer import Callback
from groupledger.listener.live import LiveConsumer, name_of, names_of
from groupledger.listener.view import (
    GroupMetadataView,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Offsets,
    OnCommit,
    PartitionInfo,
)

PAUSE_SECONDS = 0.01
"""Between two checks whether a listener is done."""

PolledRecords = Mapping[Any, list[Any]]


class KafkaPythonConsumer(LiveConsumer[PolledRecords]):
    """A `kafka.KafkaConsumer` with these settings; a poll returns its records by partition.

    kafka-python calls listeners on its own thread, where they cannot wait for a broker's answer. Ours run on a thread
    of their own while that one continues, heartbeats included; the poll waits for them.
    """

    client_name = "kafka-python"

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._library = client_module("kafka", "kafka-python")
        self._consumer = self._library.KafkaConsumer(**settings)
        self._gone: set[TopicPartition] = set()

    def _subscribe(self, topics: list[str]) -> None:
        self._library.AsyncConsumerRebalanceListener.register(_Callbacks)  # it requires its own type
        self._consumer.subscribe(topics, listener=_Callbacks(self))

    def _poll(self, timeout: float) -> PolledRecords | None:
        return self._consumer.poll(timeout_ms=int(timeout * 1_000)) or None

    def _close(self) -> None:
        self._consumer.close()

    async def called(self, callback: Callback, partitions: Iterable[Any]) -> None:
        """Run the listener on a thread, so that the client's own thread continues meanwhile."""
        named = names_of(partitions)
        self._gone = named if callback is Callback.LOST else set()
        thread = threading.Thread(target=self._call_listener, args=(callback, named), daemon=True)
        thread.start()
        while thread.is_alive():
            await self._consumer._net.sleep(PAUSE_SECONDS)
        self._gone = set()

    def _native(self, partition: TopicPartition) -> Any:
        return self._library.TopicPartition(partition[0], partition[1])

    def _natives(self, partitions: Iterable[TopicPartition]) -> list[Any]:
        return [self._native(each) for each in sorted(partitions)]

    # Operations of a view

    def commit_sync(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit and wait."""
        if offsets is None and not self.assignment():
            return
        self._consumer.commit(self._offsets(offsets), timeout_ms=_millis(timeout))

    def commit_async(self, offsets: Offsets | None = None, callback: OnCommit | None = None) -> None:
        """Commit without waiting."""

        def done(committed: Mapping[Any, Any], answer: Any) -> None:
            found = {name_of(each): _offset_and_metadata(kept) for each, kept in committed.items()}
            if callback is not None:
                callback(found, answer if isinstance(answer, Exception) else None)

        self._consumer.commit_async(self._offsets(offsets), callback=done)

    def _offsets(self, offsets: Offsets | None) -> Any:
        if offsets is None:
            return None
        kind = self._library.OffsetAndMetadata
        epochs = {each: -1 if found.leader_epoch is None else found.leader_epoch for each, found in offsets.items()}
        return {self._native(each): kind(found.offset, found.metadata, epochs[each]) for each, found in offsets.items()}

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets."""
        wait = {"metadata": True, "timeout_ms": _millis(timeout)}
        found = {each: self._consumer.committed(self._native(each), **wait) for each in partitions}
        return {each: None if known is None else _offset_and_metadata(known) for each, known in found.items()}

    def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """Return the offset of the next record."""
        self._require("position", [partition])
        return int(self._consumer.position(self._native(partition), timeout_ms=_millis(timeout)))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue from there."""
        self._require("seek", [partition])
        self._consumer.seek(self._native(partition), offset if isinstance(offset, int) else offset.offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to the beginning of each log."""
        self._consumer.seek_to_beginning(*self._natives(partitions))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to the end of each log."""
        self._consumer.seek_to_end(*self._natives(partitions))

    def assignment(self) -> set[TopicPartition]:
        """Return the assignment, without partitions that are being lost."""
        return names_of(self._consumer.assignment()) - self._gone

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Pause."""
        wanted = set(partitions)
        self._require("pause", wanted)
        self._consumer.pause(*self._natives(wanted))

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Resume."""
        wanted = set(partitions)
        self._require("resume", wanted)
        self._consumer.resume(*self._natives(wanted))

    def paused(self) -> set[TopicPartition]:
        """Return the paused partitions."""
        return names_of(self._consumer.paused())

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each log."""
        found = self._consumer.beginning_offsets(self._natives(partitions), timeout_ms=_millis(timeout))
        return {name_of(each): int(offset) for each, offset in found.items()}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each log."""
        found = self._consumer.end_offsets(self._natives(partitions), timeout_ms=_millis(timeout))
        return {name_of(each): int(offset) for each, offset in found.items()}

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at or after each time."""
        asked = {self._native(each): moment for each, moment in timestamps_ms.items()}
        found = self._consumer.offsets_for_times(asked, timeout_ms=_millis(timeout))
        return {
            name_of(each): None if known is None else OffsetAndTimestamp(known.offset, known.timestamp, _epoch(known))
            for each, known in found.items()
        }

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records to the end, as far as the client knows."""
        high = self._consumer.highwater(self._native(partition))
        return None if high is None else max(int(high) - self.position(partition), 0)

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic, by number."""
        del timeout  # kafka-python has no timeout here
        return [PartitionInfo(topic, number) for number in sorted(self._consumer.partitions_for_topic(topic) or ())]

    def list_topics(self, *, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """Return all topics."""
        return {topic: self.partitions_for(topic, timeout=timeout) for topic in sorted(self._consumer.topics())}

    def group_metadata(self) -> GroupMetadataView:
        """Return the member as the client knows it."""
        found = self._consumer.group_metadata()
        generation = None if found.generation_id < 0 else found.generation_id
        return GroupMetadataView(found.group_id, generation, found.member_id or None, found.group_instance_id)


class _Callbacks:
    """Has the form of kafka-python's async listener."""

    def __init__(self, consumer: KafkaPythonConsumer) -> None:
        self._consumer = consumer

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        await self._consumer.called(Callback.ASSIGNED, assigned)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self._consumer.called(Callback.REVOKED, revoked)

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        await self._consumer.called(Callback.LOST, lost)


def _offset_and_metadata(native: Any) -> OffsetAndMetadata:
    return OffsetAndMetadata(native.offset, native.metadata or "", _epoch(native))


def _epoch(native: Any) -> int | None:
    """Return the leader epoch, None for kafka-python's -1."""
    epoch = getattr(native, "leader_epoch", None)
    return None if epoch is None or epoch < 0 else int(epoch)


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1_000)
