"""Records of a stretch of `__consumer_offsets`, read by a consumer that is assigned to it and belongs to no group.

Runs in the tasks of a Spark job: everything it needs is handed over, and nothing here knows Spark.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import compress, repeat
from operator import methodcaller, not_
from typing import Any

import pyarrow as pa

from groupledger.core.kafka_faults import HOPELESS, LOST, kafka_fault, log_moved
from groupledger.core.lines.log_records import OFFSET_COMMIT_LEFT_OUT, OFFSET_COMMITS, TOPIC
from groupledger.core.log_plan import OffsetRange
from groupledger.core.user_code import client_module
from groupledger.sources.kafka_client import PACKAGE, Address, silence
from groupledger.sources.opening import ENTRIES, NUMBER, PROBLEM

NO_GROUP = "groupledger-reads-without-a-group"
"""librdkafka wants a name of a group before it lets anybody consume; it is neither joined nor committed to."""
CONSUMER: dict[str, Any] = {
    "group.id": NO_GROUP,
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",
    "allow.auto.create.topics": False,
    "check.crcs": True,
}
_AT_ONCE = 10_000
_ROWS, _BYTES = 5_000, 8 * 2**20
"""Of a batch: at most so many rows, and no further one above so many bytes."""
_POLL_SECONDS = 0.2
_END = "_PARTITION_EOF"
_KEY = methodcaller("key")

BATCH = pa.schema(
    [
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        (PROBLEM, pa.string()),
        (NUMBER, pa.int64()),
    ]
)
"""A row is a record but for the last two of a stretch: the NUMBER of records that were consumed for it (PROBLEM is
ENTRIES), and that of the offset commits among them that were left out."""


@dataclass(frozen=True, slots=True)
class StretchReader:
    """How stretches of a log are read. `offset_commits`: whether they are kept."""

    address: Address
    offset_commits: bool

    def read(self, stretch: OffsetRange) -> Iterator[pa.RecordBatch]:
        """The records, in order, then their count. Raises Fault where the cluster does not give all of them."""
        errors: list[Any] = []
        consumer = self.address.client("Consumer", error_cb=errors.append, **CONSUMER)
        try:
            library = client_module("confluent_kafka", *PACKAGE)
            consumer.assign([library.TopicPartition(TOPIC, stretch.partition, stretch.first)])
            yield from batches(self, stretch, consumer, errors, time.monotonic)
        finally:
            consumer.close()


def batches(
    reader: StretchReader, stretch: OffsetRange, consumer: Any, errors: list[Any], seconds: Callable[[], float]
) -> Iterator[pa.RecordBatch]:
    """What a consumer that stands at the stretch's first offset gives, up to its end, and last the count."""
    taking = _Taking(reader, stretch)
    until = seconds() + reader.address.timeout_seconds
    while not taking.done:
        before = taking.consumed
        yield from taking.take(consumer.consume(min(_AT_ONCE, taking.left), _POLL_SECONDS))  # waits for so many
        if taking.consumed > before:
            until = seconds() + reader.address.timeout_seconds
        elif not taking.done and seconds() > until:
            raise silence(reader.address, errors, f"reading {TOPIC} partition {stretch.partition} to {stretch.end}")
    if taking.columns.rows:
        yield taking.columns.taken()
    yield _tally(taking.consumed, taking.left_out)


class _Taking:
    """A stretch being read.

    Its end is reached with the record just before it, with one that lies at or after it, or where the broker says that
    its log ends there: offsets have gaps. Control records are not among what a consumer gives.
    """

    def __init__(self, reader: StretchReader, stretch: OffsetRange) -> None:
        self._reader, self._stretch = reader, stretch
        self.columns = _Columns(stretch.partition)
        self.consumed = self.left_out = 0
        self.left = stretch.end - stretch.first
        self.done = False

    def take(self, messages: list[Any]) -> Iterator[pa.RecordBatch]:
        """Count every record; give the full batches of those that are kept."""
        others = None if self._reader.offset_commits else self._without_commits(messages)
        if others is None:
            yield from self._each(messages)
        else:
            yield from self._each(others)
            self._reached(messages[-1].offset())

    def _without_commits(self, messages: list[Any]) -> list[Any] | None:
        """Count the offset commits, and give the others; None where each message has to be looked at.

        Offset commits are almost all there is: nothing but their keys is asked for, and no Python code runs for each.
        An event has no key, and offsets rise: where all have one, and the last lies before the end, all are records of
        the stretch.
        """
        try:
            if not messages or messages[-1].offset() >= self._stretch.end:
                return None
            are_commits = list(map(bytes.startswith, map(_KEY, messages), repeat(OFFSET_COMMITS)))
        except TypeError:  # no key, or an event that has no offset
            return None
        number = sum(are_commits)
        self.consumed += number
        self.left_out += number
        return list(compress(messages, map(not_, are_commits)))

    def _each(self, messages: list[Any]) -> Iterator[pa.RecordBatch]:
        end, keeps_commits = self._stretch.end, self._reader.offset_commits
        for message in messages:
            error, offset = message.error(), message.offset()
            if error is None and offset < end:
                self.consumed += 1
                key = message.key()
                if not keeps_commits and key is not None and key.startswith(OFFSET_COMMITS):
                    self.left_out += 1
                elif self.columns.add(message, key):
                    yield self.columns.taken()
                self._reached(offset)
            else:
                self.done = error is None or self._ends(error, offset)
            if self.done:
                return

    def _reached(self, offset: int) -> None:
        self.left = self._stretch.end - offset - 1
        self.done = not self.left

    def _ends(self, error: Any, offset: int) -> bool:
        """Whether an event says that the stretch ends here. Raises Fault for an error that does not pass by itself."""
        name, bootstrap = error.name(), self._reader.address.bootstrap
        if name == _END:
            return offset >= self._stretch.end
        if name == LOST:
            said = f"partition {self._stretch.partition} of {TOPIC} no longer has offset {self._stretch.first}"
            raise log_moved(said)
        if name in HOPELESS or error.fatal():
            raise kafka_fault(name, error.str(), bootstrap, f"reading {TOPIC}")
        return False


class _Columns:
    """Rows of a batch to be."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._clear()

    @property
    def rows(self) -> int:
        """How many there are."""
        return len(self._offsets)

    def _clear(self) -> None:
        self._offsets: list[int] = []
        self._timestamps: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._bytes = 0

    def add(self, message: Any, key: bytes | None) -> bool:
        """Add a record; whether the batch is full."""
        value = message.value()
        self._offsets.append(message.offset())
        self._timestamps.append(message.timestamp()[1])
        self._keys.append(key)
        self._values.append(value)
        self._bytes += len(key or b"") + len(value or b"")
        return self.rows >= _ROWS or self._bytes >= _BYTES

    def taken(self) -> pa.RecordBatch:
        """The batch, which begins anew."""
        nothing = [None] * self.rows
        columns = [[self._partition] * self.rows, self._offsets, self._timestamps, self._keys, self._values]
        arrays = [
            pa.array(column, field.type) for column, field in zip([*columns, nothing, nothing], BATCH, strict=True)
        ]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=BATCH)


def _tally(consumed: int, left_out: int) -> pa.RecordBatch:
    tallies = {ENTRIES: consumed, OFFSET_COMMIT_LEFT_OUT: left_out}
    rows = [dict.fromkeys(BATCH.names) | {PROBLEM: kind, NUMBER: number} for kind, number in tallies.items()]
    return pa.RecordBatch.from_pylist(rows, schema=BATCH)
