"""KIP-1306 over kafka-python 3."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.callbacks import Callback
from groupledger.core.user_code import client_module
from groupledger.listener.interface import RebalanceListener, warn_of_subscribe
from groupledger.listener.live import LiveConsumer
from groupledger.listener.view import (
    GroupMetadata,
    OffsetAndMetadata,
    OffsetAndTimestamp,
    Offsets,
    OnCommit,
    PartitionInfo,
)

PAUSE_SECONDS = 0.01
"""Between two looks at whether a listener is done."""

Records = Mapping[Any, list[Any]]


class KafkaPythonConsumer(LiveConsumer[Records]):
    """A `kafka.KafkaConsumer` made with these settings; a poll gives its records by partition.

    kafka-python calls listeners on its own thread, where no answer of the broker can be waited for. Ours run on a
    thread of their own while that one goes on, heartbeats included; the poll waits for them.
    """

    client_name = "kafka-python"

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        self._library = client_module("kafka", "kafka-python")
        self._consumer = self._library.KafkaConsumer(**settings)
        self._gone: set[TopicPartition] = set()

    def subscribe(self, topics: Iterable[str], listener: RebalanceListener | None = None) -> None:
        """`subscribe`: without a listener the one that is set stays."""
        if listener is not None:
            warn_of_subscribe()
            self.set_rebalance_listener(listener)
        self._library.AsyncConsumerRebalanceListener.register(_Callbacks)  # it asks for one of its own
        self._consumer.subscribe(list(topics), listener=_Callbacks(self))

    def _poll(self, timeout: float) -> Records | None:
        return self._consumer.poll(timeout_ms=int(timeout * 1_000)) or None

    def _close(self) -> None:
        self._consumer.close()

    async def called(self, callback: Callback, partitions: Iterable[Any]) -> None:
        """Run the listener on a thread, and leave the client's own to the client meanwhile."""
        named = _named(partitions)
        self._gone = named if callback is Callback.LOST else set()
        thread = threading.Thread(target=self._tell, args=(callback, named), daemon=True)
        thread.start()
        while thread.is_alive():
            await self._consumer._net.sleep(PAUSE_SECONDS)
        self._gone = set()

    def _native(self, partition: TopicPartition) -> Any:
        return self._library.TopicPartition(partition[0], partition[1])

    def _natives(self, partitions: Iterable[TopicPartition]) -> list[Any]:
        return [self._native(each) for each in sorted(partitions)]

    # What a view does

    def commit_sync(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit and wait."""
        if offsets is None and not self.assignment():
            return
        self._consumer.commit(self._offsets(offsets), timeout_ms=_millis(timeout))

    def commit_async(self, offsets: Offsets | None = None, callback: OnCommit | None = None) -> None:
        """Commit without waiting."""

        def done(committed: Mapping[Any, Any], answer: Any) -> None:
            told = {_name(each): _told(kept) for each, kept in committed.items()}
            if callback is not None:
                callback(told, answer if isinstance(answer, Exception) else None)

        self._consumer.commit_async(self._offsets(offsets), callback=done)

    def _offsets(self, offsets: Offsets | None) -> Any:
        if offsets is None:
            return None
        kind = self._library.OffsetAndMetadata
        epochs = {each: -1 if told.leader_epoch is None else told.leader_epoch for each, told in offsets.items()}
        return {self._native(each): kind(told.offset, told.metadata, epochs[each]) for each, told in offsets.items()}

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The committed offsets."""
        wait = {"metadata": True, "timeout_ms": _millis(timeout)}
        found = {each: self._consumer.committed(self._native(each), **wait) for each in partitions}
        return {each: None if told is None else _told(told) for each, told in found.items()}

    def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """The offset of the next record."""
        self._require("position", [partition])
        return int(self._consumer.position(self._native(partition), timeout_ms=_millis(timeout)))

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on from there."""
        self._require("seek", [partition])
        self._consumer.seek(self._native(partition), offset if isinstance(offset, int) else offset.offset)

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """To the beginning of each log."""
        self._consumer.seek_to_beginning(*self._natives(partitions))

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """To the end of each log."""
        self._consumer.seek_to_end(*self._natives(partitions))

    def assignment(self) -> set[TopicPartition]:
        """What is assigned; what is being lost is gone."""
        return _named(self._consumer.assignment()) - self._gone

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
        """What is paused."""
        return _named(self._consumer.paused())

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each log."""
        found = self._consumer.beginning_offsets(self._natives(partitions), timeout_ms=_millis(timeout))
        return {_name(each): int(offset) for each, offset in found.items()}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last of each log."""
        found = self._consumer.end_offsets(self._natives(partitions), timeout_ms=_millis(timeout))
        return {_name(each): int(offset) for each, offset in found.items()}

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record at or after each time."""
        asked = {self._native(each): moment for each, moment in timestamps_ms.items()}
        found = self._consumer.offsets_for_times(asked, timeout_ms=_millis(timeout))
        return {
            _name(each): None if told is None else OffsetAndTimestamp(told.offset, told.timestamp, _epoch(told))
            for each, told in found.items()
        }

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Records to the end, as far as the client has heard."""
        high = self._consumer.highwater(self._native(partition))
        return None if high is None else max(int(high) - self.position(partition), 0)

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[PartitionInfo]:
        """Partitions of a topic, by number."""
        del timeout  # kafka-python has none here
        return [PartitionInfo(topic, number) for number in sorted(self._consumer.partitions_for_topic(topic) or ())]

    def list_topics(self, *, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics."""
        return {topic: self.partitions_for(topic, timeout=timeout) for topic in sorted(self._consumer.topics())}

    def group_metadata(self) -> GroupMetadata:
        """The member as the client knows it."""
        told = self._consumer.group_metadata()
        generation = None if told.generation_id < 0 else told.generation_id
        return GroupMetadata(told.group_id, generation, told.member_id or None, told.group_instance_id)


class _Callbacks:
    """kafka-python's async listener, in form."""

    def __init__(self, consumer: KafkaPythonConsumer) -> None:
        self._consumer = consumer

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        await self._consumer.called(Callback.ASSIGNED, assigned)

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self._consumer.called(Callback.REVOKED, revoked)

    async def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        await self._consumer.called(Callback.LOST, lost)


def _name(native: Any) -> TopicPartition:
    return TopicPartition(native.topic, native.partition)


def _told(native: Any) -> OffsetAndMetadata:
    return OffsetAndMetadata(native.offset, native.metadata or "", _epoch(native))


def _epoch(native: Any) -> int | None:
    """The leader epoch, where there is one: kafka-python has -1 for none."""
    epoch = getattr(native, "leader_epoch", None)
    return None if epoch is None or epoch < 0 else int(epoch)


def _named(partitions: Iterable[Any]) -> set[TopicPartition]:
    return {_name(each) for each in partitions}


def _millis(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1_000)
