"""Client libraries that only pretend: they call back as the real ones do, and note what they were asked."""

from __future__ import annotations

import asyncio
import struct
from abc import ABC
from types import SimpleNamespace
from typing import NamedTuple


class Native(NamedTuple):
    """A client's own partition."""

    topic: str
    partition: int
    offset: int = -1001
    metadata: str | None = None
    leader_epoch: int | None = None
    error: object = None


class FakeConfluent:
    """Calls back in poll, as librdkafka does; what it was asked stands in `did`."""

    def __init__(self, config):
        self.config, self.did, self.due, self.callbacks, self.consumed = config, [], [], {}, {}
        self.end = 90
        self.kept, self.broken, self.serialized = {}, {}, b"CGMDv2:" + struct.pack("=i", 7) + b"g\0m-1\0\1"

    def subscribe(self, topics, **callbacks):
        self.callbacks = callbacks

    def poll(self, timeout):
        due, self.due = self.due, []
        for name, partitions in due:
            self.callbacks[name](self, [Native(*each) for each in partitions])
        return "a message"

    def close(self):
        """The real one tells of what is left to revoke."""
        self.did.append(("close", (), {}))
        self.poll(0)

    def commit(self, offsets=(), asynchronous=True):
        self.did.append(("commit", (), {"offsets": list(offsets), "asynchronous": asynchronous}))
        self.kept.update({(each.topic, each.partition): each for each in offsets})
        return [each._replace(error=self.broken.get(each.partition)) for each in offsets]

    def consumer_group_metadata(self):
        return self.serialized

    def offsets_for_times(self, asked, timeout):
        assert timeout > 0
        return [each._replace(offset=each.offset // 10 if each.offset < 1_000 else -1) for each in asked]

    def committed(self, asked, timeout):
        if self.kept:
            return [self.kept.get((each.topic, each.partition), Native(*each[:2])) for each in asked]
        return [Native(each.topic, each.partition, 5 if each.partition == 0 else -1001) for each in asked]

    def position(self, asked):
        return [Native(each.topic, each.partition, self.consumed.get(each.partition, -1001)) for each in asked]

    def get_watermark_offsets(self, asked, timeout=None, cached=False):
        assert cached or timeout is not None
        return (-1001, self.end) if cached else (10, 90)

    def memberid(self):
        return "m-1"

    def __getattr__(self, name):
        return lambda *arguments, **options: self.did.append((name, arguments, options))


class FakeKafka:
    """kafka-python's consumer: listeners are coroutines, awaited while its loop goes on."""

    def __init__(self, **settings):
        self.did, self.due, self.owned = [], [], set()
        self._net = SimpleNamespace(sleep=asyncio.sleep)

    def subscribe(self, topics, listener):
        assert isinstance(listener, FakeAsyncListener)
        self.listener = listener

    def assignment(self):
        return self.owned

    def commit(self, offsets, timeout_ms=None):
        self.did.append(("commit", (offsets,), {"timeout_ms": timeout_ms}))
        self.kept = {(each.topic, each.partition): told for each, told in (offsets or {}).items()}

    def committed(self, partition, metadata=False, timeout_ms=None):
        told = self.kept.get((partition.topic, partition.partition))
        return told if metadata or told is None else told.offset

    def offsets_for_times(self, timestamps, timeout_ms=None):
        return {each: KafkaTime(at_ms // 10, at_ms, 4) if at_ms < 1_000 else None for each, at_ms in timestamps.items()}

    def poll(self, timeout_ms):
        self.polled_ms = timeout_ms
        due, self.due = self.due, []
        for name, partitions in due:
            if name == "on_partitions_assigned":
                self.owned |= {Native(*each) for each in partitions}
            asyncio.run(getattr(self.listener, name)([Native(*each) for each in partitions]))
            if name != "on_partitions_assigned":
                self.owned -= {Native(*each) for each in partitions}
        return {}

    def __getattr__(self, name):
        return lambda *arguments, **options: self.did.append((name, arguments, options))


class KafkaOffset(NamedTuple):
    """kafka-python's own."""

    offset: int
    metadata: str | None
    leader_epoch: int


class KafkaTime(NamedTuple):
    """kafka-python's own."""

    offset: int
    timestamp: int
    leader_epoch: int


class FakeAsyncListener(ABC):  # noqa: B024 types are registered with it
    """kafka-python takes no other listeners."""


NO_OFFSET = -168
ERRORS = SimpleNamespace(_NO_OFFSET=NO_OFFSET)
CONFLUENT = SimpleNamespace(Consumer=FakeConfluent, TopicPartition=Native, KafkaException=KeyError, KafkaError=ERRORS)
KAFKA = SimpleNamespace(
    KafkaConsumer=FakeKafka,
    TopicPartition=Native,
    OffsetAndMetadata=KafkaOffset,
    AsyncConsumerRebalanceListener=FakeAsyncListener,
)
