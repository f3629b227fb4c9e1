"""Read a range of `__consumer_offsets` with a consumer that is assigned to it and belongs to no group.

Runs in the tasks of a Spark job: everything it needs is passed in, and nothing here depends on Spark.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import compress, repeat
from operator import methodcaller, not_
from typing import Any

import pyarrow as pa

from groupledger.core.faults import LOST, client_module, is_hopeless, kafka_fault, log_moved
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT, TOPIC
from groupledger.core.log.read_plan import OffsetRange
from groupledger.core.wire.offsets_log import OFFSET_COMMITS
from groupledger.sources.kafka_client import PACKAGE, Address, silence
from groupledger.sources.opening import ENTRIES, NUMBER, PROBLEM

NO_GROUP = "groupledger-reads-without-a-group"
"""librdkafka requires a group name before it consumes; the group is neither joined nor committed to."""
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
"""Of a batch: maximum rows, and the bytes above which no row is added."""
_FEW, _FEW_BYTES = 20_000, 32 * 2**20
"""Offsets, and bytes of the records, that a driver reads itself: a task costs more than they do."""
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
        ("leader_epoch", pa.int32()),
        (PROBLEM, pa.string()),
        (NUMBER, pa.int64()),
    ]
)
"""A row is a record, except the last two of each range: the NUMBER of records consumed for it (PROBLEM is ENTRIES),
with the time of the newest one, and the number of offset commits among them that were left out."""


@dataclass(frozen=True, slots=True)
class StretchReader:
    """How ranges of a log are read. `offset_commits`: whether they are kept."""

    address: Address
    offset_commits: bool

    def read(self, *stretches: OffsetRange) -> Generator[pa.RecordBatch]:
        """Yield the records of ranges of different log partitions, in order, then the counts of each range.

        Raises Fault if the cluster does not return all of them.
        """
        errors: list[Any] = []
        consumer = self.address.client("Consumer", error_cb=errors.append, **CONSUMER)
        try:
            library = client_module("confluent_kafka", *PACKAGE)
            consumer.assign([library.TopicPartition(TOPIC, each.partition, each.first) for each in stretches])
            yield from batches(self, stretches, consumer, errors, time.monotonic)
        finally:
            consumer.close()

    def few(self, *stretches: OffsetRange) -> pa.Table | None:
        """Return what `read` yields if it is little; None: it is for tasks to read."""
        if sum(each.end - each.first for each in stretches) > _FEW:
            return None
        found, size = [BATCH.empty_table()], 0
        with closing(self.read(*stretches)) as reading:
            for batch in reading if stretches else ():
                found.append(pa.Table.from_batches([batch]))
                size += batch.nbytes
                if size > _FEW_BYTES:
                    return None
        return pa.concat_tables(found)


def batches(
    reader: StretchReader,
    stretches: Sequence[OffsetRange],
    consumer: Any,
    errors: list[Any],
    seconds: Callable[[], float],
) -> Iterator[pa.RecordBatch]:
    """Yield what a consumer positioned at each range's first offset returns, up to its end, and last the counts."""
    takings = {stretch.partition: _Taking(reader, stretch) for stretch in stretches}
    until = seconds() + reader.address.timeout_seconds
    while open_ones := [each for each in takings.values() if not each.done]:
        before = sum(each.consumed for each in open_ones)
        wanted = min(_AT_ONCE, sum(each.left for each in open_ones))
        for taking, messages in _by_range(takings, open_ones[0], consumer.consume(wanted, _POLL_SECONDS)):
            yield from taking.take(messages)  # the consumer waits for that many
        if sum(each.consumed for each in open_ones) > before:
            until = seconds() + reader.address.timeout_seconds
        elif seconds() > until and not all(each.done for each in open_ones):
            stretch = next(each.stretch for each in open_ones if not each.done)
            raise silence(reader.address, errors, f"reading {TOPIC} partition {stretch.partition} to {stretch.end}")
    for taking in takings.values():
        if taking.columns.rows:
            yield taking.columns.taken()
        yield _tally(taking)


def _by_range(takings: Mapping[int, _Taking], first: _Taking, messages: list[Any]) -> list[tuple[_Taking, list[Any]]]:
    """Sort out to which open range messages belong; what belongs to no log partition goes to the first one."""
    if len(takings) == 1:
        return [(first, messages)]
    found: defaultdict[int, list[Any]] = defaultdict(list)
    for message in messages:
        found[message.partition()].append(message)
    of_range = ((takings.get(partition, first), some) for partition, some in found.items())
    return [(taking, some) for taking, some in of_range if not taking.done]


class _Taking:
    """A range being read.

    Its end is reached with the record just before it, with one at or after it, or when the broker reports the end of
    its log: offsets have gaps. A consumer does not return control records.
    """

    def __init__(self, reader: StretchReader, stretch: OffsetRange) -> None:
        self._reader, self.stretch = reader, stretch
        self.columns = _Columns(stretch.partition)
        self.consumed = self.left_out = 0
        self.newest: int | None = None
        self.left = stretch.end - stretch.first
        self.done = False

    def take(self, messages: list[Any]) -> Iterator[pa.RecordBatch]:
        """Count every record; yield the full batches of those that are kept."""
        others = None if self._reader.offset_commits else self._without_commits(messages)
        if others is None:
            yield from self._each(messages)
        else:
            yield from self._each(others)
            self._reached(messages[-1].offset())

    def _without_commits(self, messages: list[Any]) -> list[Any] | None:
        """Count the offset commits, and return the rest; None if each message must be examined.

        Nearly all messages are offset commits: only their keys are read, and no Python code runs per commit. An event
        has no key, and offsets ascend: if all messages have a key, and the last one is before the end, all are records
        of the range.
        """
        try:
            if not messages or messages[-1].offset() >= self.stretch.end:
                return None
            are_commits = list(map(bytes.startswith, map(_KEY, messages), repeat(OFFSET_COMMITS)))
        except TypeError:  # no key, or an event without an offset
            return None
        number = sum(are_commits)
        self._dated(messages[-1])
        self.consumed += number
        self.left_out += number
        return list(compress(messages, map(not_, are_commits)))

    def _each(self, messages: list[Any]) -> Iterator[pa.RecordBatch]:
        end, keeps_commits = self.stretch.end, self._reader.offset_commits
        for message in messages:
            error, offset = message.error(), message.offset()
            if error is None and offset < end:
                self.consumed += 1
                self._dated(message)
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

    def _dated(self, message: Any) -> None:
        """Note the record's time: later offsets rarely have earlier ones, so that the last of many stands for all."""
        time = message.timestamp()[1]
        self.newest = time if self.newest is None else max(self.newest, time)

    def _reached(self, offset: int) -> None:
        self.left = self.stretch.end - offset - 1
        self.done = not self.left

    def _ends(self, error: Any, offset: int) -> bool:
        """Return whether an event says that the range ends here. Raises Fault for an error that is not transient."""
        name, bootstrap = error.name(), self._reader.address.bootstrap
        if name == _END:
            return offset >= self.stretch.end
        if name == LOST:
            said = f"partition {self.stretch.partition} of {TOPIC} no longer has offset {self.stretch.first}"
            raise log_moved(said)
        if is_hopeless(name, error.str()) or error.fatal():
            raise kafka_fault(name, error.str(), bootstrap, f"reading {TOPIC}")
        return False


class _Columns:
    """Rows of the next batch."""

    def __init__(self, partition: int) -> None:
        self._partition = partition
        self._clear()

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return len(self._offsets)

    def _clear(self) -> None:
        self._offsets: list[int] = []
        self._timestamps: list[int] = []
        self._keys: list[bytes | None] = []
        self._values: list[bytes | None] = []
        self._epochs: list[int | None] = []
        self._bytes = 0

    def add(self, message: Any, key: bytes | None) -> bool:
        """Add a record; return whether the batch is full."""
        value = message.value()
        self._offsets.append(message.offset())
        self._timestamps.append(message.timestamp()[1])
        self._keys.append(key)
        self._values.append(value)
        self._epochs.append(message.leader_epoch())
        self._bytes += len(key or b"") + len(value or b"")
        return self.rows >= _ROWS or self._bytes >= _BYTES

    def taken(self) -> pa.RecordBatch:
        """Return the batch, and start a new one."""
        nothing = [None] * self.rows
        records = [self._offsets, self._timestamps, self._keys, self._values, self._epochs]
        columns = [[self._partition] * self.rows, *records, nothing, nothing]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, BATCH, strict=True)]
        self._clear()
        return pa.RecordBatch.from_arrays(arrays, schema=BATCH)


def _tally(taking: _Taking) -> pa.RecordBatch:
    tallies = {ENTRIES: taking.consumed, OFFSET_COMMIT_LEFT_OUT: taking.left_out}
    of_range = dict.fromkeys(BATCH.names) | {"partition": taking.stretch.partition, "timestamp": taking.newest}
    rows = [of_range | {PROBLEM: kind, NUMBER: number} for kind, number in tallies.items()]
    return pa.RecordBatch.from_pylist(rows, schema=BATCH)
