"""Provide KIP-1306 over confluent-kafka (librdkafka)."""

from __future__ import annotations

import struct
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
    UnsupportedOperationError,
)

BEGINNING, END = -2, -1
"""librdkafka's special offsets for the ends of a log."""
GROUP_METADATA = b"CGMDv2:"
COOPERATIVE_STICKY = "cooperative-sticky"
DEFAULT_SECONDS = 30.0


class ConfluentConsumer(LiveConsumer[Any]):
    """A `confluent_kafka.Consumer` with this configuration; a poll returns its message.

    librdkafka assigns after its callback, and can neither seek nor pause before that. What a listener seeks and pauses
    in `on_partitions_assigned` is therefore applied with the assignment.
    """

    client_name = "confluent-kafka"

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self._library = client_module("confluent_kafka", "confluent-kafka")
        self._consumer = self._library.Consumer(dict(config))
        self._group_id = str(config.get("group.id", ""))
        self._group_instance_id = config.get("group.instance.id")
        strategy, protocol = config.get("partition.assignment.strategy", ""), config.get("group.protocol", "classic")
        self._incremental = strategy == COOPERATIVE_STICKY or protocol == "consumer"
        self._assigned: set[TopicPartition] = set()
        self._paused: set[TopicPartition] = set()
        self._sought: dict[TopicPartition, OffsetAndMetadata] = {}  # during its assignment
        self._assigning: set[TopicPartition] = set()

    def _subscribe(self, topics: list[str]) -> None:
        callbacks = {"on_assign": self._on_assign, "on_revoke": self._on_revoke, "on_lost": self._on_lost}
        self._consumer.subscribe(topics, **callbacks)

    def _poll(self, timeout: float) -> Any:
        return self._consumer.poll(timeout)

    def _close(self) -> None:
        """Close the listener first: while librdkafka closes it answers no requests."""
        if self._assigned:
            self._on_revoke(None, [self._native(each) for each in sorted(self._assigned)])
        self.set_rebalance_listener(None)
        self._called = None
        self._consumer.close()

    def _on_assign(self, _: Any, partitions: list[Any]) -> None:
        added = names_of(partitions)
        if not self._incremental:
            self._assigned, self._paused = set(), set()
        self._assigned |= added
        self._assigning = added
        self._forget_sought(added)
        self._call_listener(Callback.ASSIGNED, added)
        given = [self._native(each, self._sought.get(each)) for each in sorted(added)]
        if self._incremental:
            self._consumer.incremental_assign(given)
        else:
            self._consumer.assign(given)
        self._assigning = set()
        self._consumer.pause([self._native(each) for each in sorted(self._paused & added)])

    def _on_revoke(self, _: Any, partitions: list[Any]) -> None:
        self._call_listener(Callback.REVOKED, names_of(partitions))
        self._take(partitions)

    def _on_lost(self, _: Any, partitions: list[Any]) -> None:
        self._take(partitions)
        self._call_listener(Callback.LOST, names_of(partitions))

    def _take(self, partitions: list[Any]) -> None:
        if self._incremental:
            self._consumer.incremental_unassign(partitions)
        else:
            self._consumer.unassign()
        self._assigned -= names_of(partitions)
        self._paused -= names_of(partitions)
        self._forget_sought(names_of(partitions))

    def _forget_sought(self, partitions: set[TopicPartition]) -> None:
        self._sought = {each: offset for each, offset in self._sought.items() if each not in partitions}

    def _native(self, partition: TopicPartition, found: OffsetAndMetadata | None = None) -> Any:
        named = (partition[0], partition[1])
        if found is None:
            return self._library.TopicPartition(*named)
        optional = {"metadata": found.metadata or None, "leader_epoch": found.leader_epoch}
        known = {name: value for name, value in optional.items() if value is not None}
        return self._library.TopicPartition(*named, found.offset, **known)

    def _sound(self, answered: Iterable[Any] | None) -> list[Any]:
        """Return librdkafka's result for each partition; raise KafkaException with the first partition's error.

        A partition without an offset to commit is not an error.
        """
        found = list(answered or ())
        for each in found:
            if each.error is not None and each.error.code() != self._library.KafkaError._NO_OFFSET:
                raise self._library.KafkaException(each.error)
        return found

    # Operations of a view

    def commit_sync(self, offsets: Offsets | None = None, *, timeout: float | None = None) -> None:
        """Commit and wait; nothing to commit is not an error, but one partition's failure among others is."""
        del timeout  # librdkafka has no timeout of its own here
        if offsets is None and not self._assigned:
            return
        try:
            self._sound(self._consumer.commit(**self._offsets(offsets), asynchronous=False))
        except self._library.KafkaException as error:
            if error.args[0].code() != self._library.KafkaError._NO_OFFSET:
                raise

    def commit_async(self, offsets: Offsets | None = None, callback: OnCommit | None = None) -> None:
        """Commit without waiting; librdkafka has no callback for a single commit."""
        if callback is not None:
            message = f"{self.client_name} has no commit_async with a callback; expected on_commit in its configuration"
            raise UnsupportedOperationError("UNSUPPORTED_OPERATION", message)
        self._consumer.commit(**self._offsets(offsets), asynchronous=True)

    def _offsets(self, offsets: Offsets | None) -> dict[str, Any]:
        if offsets is None:
            return {}
        return {"offsets": [self._native(each, found) for each, found in sorted(offsets.items())]}

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the committed offsets."""
        asked = [self._native(each) for each in partitions]
        found = self._sound(self._consumer.committed(asked, timeout=timeout or DEFAULT_SECONDS))
        known = {
            name_of(each): OffsetAndMetadata(each.offset, each.metadata or "", each.leader_epoch) for each in found
        }
        return {each: None if offset.offset < 0 else offset for each, offset in known.items()}

    def position(self, partition: TopicPartition, *, timeout: float | None = None) -> int:
        """Return the offset after the last record consumed since the assignment.

        Without one: the offset sought during the assignment, else the committed offset, else the log's beginning.
        """
        self._require("position", [partition])
        (found,) = self._consumer.position([self._native(partition)])
        if found.offset >= 0 and not (partition in self._assigning and partition in self._sought):
            return int(found.offset)
        if partition in self._sought:
            sought = self._sought[partition].offset
            return sought if sought >= 0 else self._watermarks(partition, timeout)[sought == END]
        committed = self.committed([partition], timeout=timeout)[partition]
        return (
            self.beginning_offsets([partition], timeout=timeout)[partition] if committed is None else committed.offset
        )

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Continue from there; applied with the assignment, if one is in progress."""
        self._require("seek", [partition])
        wanted = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        if partition in self._assigning:
            self._sought[partition] = wanted
        else:
            self._consumer.seek(self._native(partition, wanted))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to the beginning of each log."""
        for each in partitions:
            self.seek(each, BEGINNING)

    def seek_to_end(self, partitions: Iterable[TopicPartition]) -> None:
        """Seek to the end of each log."""
        for each in partitions:
            self.seek(each, END)

    def assignment(self) -> set[TopicPartition]:
        """Return the assigned partitions, including new ones while they are being assigned."""
        return set(self._assigned)

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Pause; applied with the assignment, if one is in progress."""
        wanted = set(partitions)
        self._require("pause", wanted)
        self._paused |= wanted
        self._consumer.pause([self._native(each) for each in sorted(wanted - self._assigning)])

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Resume."""
        wanted = set(partitions)
        self._require("resume", wanted)
        self._paused -= wanted
        self._consumer.resume([self._native(each) for each in sorted(wanted - self._assigning)])

    def paused(self) -> set[TopicPartition]:
        """Return what was paused here and not resumed."""
        return set(self._paused)

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the first offset of each log."""
        return {each: self._watermarks(each, timeout)[0] for each in partitions}

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """Return the offset after the last record of each log."""
        return {each: self._watermarks(each, timeout)[1] for each in partitions}

    def _watermarks(self, partition: TopicPartition, timeout: float | None) -> tuple[int, int]:
        low, high = self._consumer.get_watermark_offsets(self._native(partition), timeout=timeout or DEFAULT_SECONDS)
        return int(low), int(high)

    def offsets_for_times(
        self, timestamps_ms: Mapping[TopicPartition, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at or after each time; librdkafka does not return that record's own timestamp."""
        asked = [self._native(each, OffsetAndMetadata(at_ms)) for each, at_ms in sorted(timestamps_ms.items())]
        found = self._sound(self._consumer.offsets_for_times(asked, timeout=timeout or DEFAULT_SECONDS))
        return {name_of(each): None if each.offset < 0 else OffsetAndTimestamp(each.offset, None) for each in found}

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Return the number of records to the end, as far as the client knows."""
        _, high = self._consumer.get_watermark_offsets(self._native(partition), cached=True)
        return None if high < 0 else max(int(high) - self.position(partition), 0)

    def partitions_for(self, topic: str, *, timeout: float | None = None) -> list[PartitionInfo]:
        """Return the partitions of a topic."""
        return self.list_topics(timeout=timeout).get(topic, [])

    def list_topics(self, *, timeout: float | None = None) -> dict[str, list[PartitionInfo]]:
        """Return all topics."""
        found = self._consumer.list_topics(timeout=timeout or DEFAULT_SECONDS).topics
        return {
            topic: [
                PartitionInfo(topic, number, known.leader, tuple(known.replicas), tuple(known.isrs))
                for number, known in sorted(metadata.partitions.items())
            ]
            for topic, metadata in sorted(found.items())
        }

    def group_metadata(self) -> GroupMetadataView:
        """Return group, member, and the generation as librdkafka passes it to a transactional producer."""
        generation = generation_of(self._consumer.consumer_group_metadata())
        return GroupMetadataView(self._group_id, generation, self._consumer.memberid() or None, self._group_instance_id)


def generation_of(metadata: object) -> int | None:
    """Parse the generation in librdkafka's serialized group metadata; None without one, or in another format.

    Format: `CGMDv2:`, the generation as an int32 in this machine's byte order, the group and the member.
    """
    start, end = len(GROUP_METADATA), len(GROUP_METADATA) + struct.calcsize("=i")
    if not isinstance(metadata, bytes) or not metadata.startswith(GROUP_METADATA) or len(metadata) < end:
        return None
    (generation,) = struct.unpack("=i", metadata[start:end])
    return generation if generation >= 0 else None
