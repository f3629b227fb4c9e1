"""Read a running cluster's log as a Spark data source: one Spark partition per range of a log partition."""

from __future__ import annotations

import json
import logging
import re
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import compress, repeat
from operator import methodcaller, not_
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import LongType, StringType, StructField, StructType

from groupledger.core.digest import digest
from groupledger.core.faults import (
    LOST,
    PASSING,
    UNSETTLED,
    Fault,
    client_module,
    is_hopeless,
    kafka_fault,
    log_moved,
    refusing,
    unreachable,
)
from groupledger.core.log.described_groups import DescribedGroup, DescribedMember
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT, TOPIC
from groupledger.core.log.read_plan import LogEnds, OffsetRange
from groupledger.core.wire.offsets_log import OFFSET_COMMITS
from groupledger.sources import offsets_records
from groupledger.sources.opening import ENTRIES, NUMBER, PROBLEM
from groupledger.tables import columns as c

FIELDS = StructType(
    [*offsets_records.FIELDS_OF_BATCHES, StructField(PROBLEM, StringType()), StructField(NUMBER, LongType())]
)
_NAME = "groupledger_kafka_log"
_MARK = "groupledger-fault "
_FAULT = re.compile(rf"{_MARK}(\[\"\w+\", \".*\"\])\s*$", re.MULTILINE)


def frame(spark: SparkSession, reader: StretchReader, stretches: Sequence[OffsetRange], cluster_id: str) -> DataFrame:
    """Return the records of these ranges and their counts (`kafka_records`), read lazily.

    The reader's settings travel inside the source, not as Spark options, which appear in plans and event logs.
    """
    name = f"{_NAME}_{digest(cluster_id)[:16]}"  # Spark lower-cases such names
    source = type("KafkaLog", (_KafkaLog,), {"label": name, "log": reader, "stretches": tuple(stretches)})
    spark.dataSource.register(source)
    return spark.read.format(name).load()


def fault_of(error: str) -> Fault | None:
    """Return the fault that ended a task, parsed from Spark's error; None for anything else."""
    found = _FAULT.search(error)
    return None if found is None else Fault(*json.loads(found[1]))


class _KafkaLog(DataSource):
    """A source whose class holds what is to be read."""

    label: str
    log: StretchReader
    stretches: tuple[OffsetRange, ...]

    @classmethod
    def name(cls) -> str:
        return cls.label

    def schema(self) -> StructType:
        return FIELDS

    def reader(self, schema: StructType) -> DataSourceReader:
        del schema  # always FIELDS
        return _Reader(self.log, self.stretches)


class _Reader(DataSourceReader):
    """Reads each range in a task of its own."""

    def __init__(self, log: StretchReader, stretches: tuple[OffsetRange, ...]) -> None:
        self._log, self._stretches = log, stretches

    def partitions(self) -> Sequence[InputPartition]:
        return [InputPartition(tuple(stretch)) for stretch in self._stretches]

    def read(self, partition: InputPartition | None) -> Iterator[pa.RecordBatch]:
        if partition is None:  # Spark calls once even without partitions
            return
        try:
            yield from self._log.read(OffsetRange(*partition.value))
        except Fault as fault:
            raise RuntimeError(f"{_MARK}{json.dumps([fault.code, fault.message])}") from None


# Read a running cluster's log through Spark's own Kafka source, so that no Python code runs per record.
#
# Its partitions are assigned, never subscribed to: a subscription would make the reader a member of a group, and write
# to the log that it reads.

GROUP_PREFIX = "groupledger-reads-without-a-group"
"""Prefix of the group ids that Kafka's Java consumer requires, and the group id that librdkafka requires before it
consumes; no such group is joined or committed to."""
_INTERNAL_TOPICS_TOO = "spark.sql.streaming.kafka.useDeprecatedOffsetFetching"
"""Without it Spark asks an admin client, which omits internal topics: no rows, and no error."""
_NO_SOURCE = "Failed to find data source: kafka"
"""Spark's message, without an error condition, for a known source that is not on its class path."""
_LOST = re.compile(r"KAFKA_DATA_LOSS|data may have been lost|Cannot fetch (?:offset|record)|OffsetOutOfRangeException")
_ERROR = re.compile(r"org\.apache\.kafka\.common\.errors\.(\w+)Exception(?:: ?([^\n]*))?")
_PARTITION = re.compile(rf"{TOPIC}-(\d+)")
_NO_GROUP = "GroupAuthorization"
_NAMES = {
    "SaslAuthentication": "SASL_AUTHENTICATION_FAILED",
    "SslAuthentication": "_SSL",
    "TopicAuthorization": "TOPIC_AUTHORIZATION_FAILED",
    "ClusterAuthorization": "CLUSTER_AUTHORIZATION_FAILED",
    "Timeout": "_TIMED_OUT",
    "Disconnect": "_TRANSPORT",
}
"""Errors of the Java client, by librdkafka's or the protocol's names for them."""


def spark_frame(spark: SparkSession, address: Address, stretches: Sequence[OffsetRange], tasks: int) -> DataFrame:
    """Return all records of these ranges, in `tasks` tasks or more. `address` has the options of a Java client.

    Raises Fault READER_MISSING if Spark has no Kafka source.
    """
    spark.conf.set(_INTERNAL_TOPICS_TOO, "true")
    milliseconds = str(int(1000 * address.timeout_seconds))
    client = {
        **address.options,
        "bootstrap.servers": address.bootstrap,
        "isolation.level": "read_uncommitted",
        "default.api.timeout.ms": milliseconds,
        "allow.auto.create.topics": "false",
    }
    options = {
        **{f"kafka.{name}": value for name, value in client.items()},
        "assign": json.dumps({TOPIC: [each.partition for each in stretches]}),
        "startingOffsets": json.dumps({TOPIC: {str(each.partition): each.first for each in stretches}}),
        "endingOffsets": json.dumps({TOPIC: {str(each.partition): each.end for each in stretches}}),
        "failOnDataLoss": "true",
        "groupIdPrefix": GROUP_PREFIX,
        "kafkaConsumer.pollTimeoutMs": milliseconds,
        "minPartitions": str(tasks),
    }
    found = _loaded(spark, options)
    return found.select(c.PARTITION, c.OFFSET, F.unix_millis(c.TIMESTAMP).alias(c.TIMESTAMP), c.KEY, c.VALUE)


def _loaded(spark: SparkSession, options: Mapping[str, str]) -> DataFrame:
    try:
        return spark.read.format("kafka").options(**options).load()
    except AnalysisException as error:
        if _NO_SOURCE not in str(error):
            raise
        way_out = (
            'give spark-submit --jars "$(python -m groupledger.engine.jars kafka-source)", or leave out reader: spark'
        )
        raise Fault("READER_MISSING", f"this Spark has no Kafka source on its class path: {way_out}") from error


def fault_of_spark(error: str, bootstrap: str) -> Fault | None:
    """Return the fault of a failed read, parsed from Spark's error; None if it is not one of Kafka's."""
    if _LOST.search(error):
        partition = _PARTITION.search(error)
        which = f"partition {partition[1]} of {TOPIC}" if partition else TOPIC
        return log_moved(f"{which} no longer has the offsets that were to be read")
    found = _ERROR.findall(error)
    if not found:
        return None
    name, text = found[-1]  # the innermost cause
    if name == _NO_GROUP:
        said = f"{bootstrap} does not allow reading {TOPIC} through Spark's Kafka source"
        way_out = f"grant Describe on groups whose names begin with {GROUP_PREFIX}, or leave out reader: spark"
        return Fault("KAFKA_NOT_ALLOWED", f"{said}: {way_out}")
    return kafka_fault(_NAMES.get(name, name), text or name, bootstrap, f"reading {TOPIC}")


# Read a range of `__consumer_offsets` with a consumer that is assigned to it and belongs to no group.
#
# Runs in the tasks of a Spark job: everything it needs is passed in, and nothing here depends on Spark.

CONSUMER: dict[str, Any] = {
    "group.id": GROUP_PREFIX,
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

BATCH = to_arrow_schema(FIELDS)
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
        self.rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def add(self, message: Any, key: bytes | None) -> bool:
        """Add a record; return whether the batch is full."""
        value, time = message.value(), message.timestamp()[1]
        self.rows.append((self._partition, message.offset(), time, key, value, message.leader_epoch(), None, None))
        self._bytes += len(key or b"") + len(value or b"")
        return len(self.rows) >= _ROWS or self._bytes >= _BYTES

    def taken(self) -> pa.RecordBatch:
        """Return the batch, and start a new one."""
        columns = zip(*self.rows, strict=True)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, BATCH, strict=True)]
        self.rows, self._bytes = [], 0
        return pa.RecordBatch.from_arrays(arrays, schema=BATCH)


def _tally(taking: _Taking) -> pa.RecordBatch:
    tallies = {ENTRIES: taking.consumed, OFFSET_COMMIT_LEFT_OUT: taking.left_out}
    of_range = dict.fromkeys(BATCH.names) | {"partition": taking.stretch.partition, "timestamp": taking.newest}
    rows = [of_range | {PROBLEM: kind, NUMBER: number} for kind, number in tallies.items()]
    return pa.RecordBatch.from_pylist(rows, schema=BATCH)


# Query a running cluster through confluent-kafka's admin client: its id, the ends of its log, its topics.
#
# Nothing here joins a group, commits or writes. A request that is not answered in time, or that no retry could fix, is
# a Fault of one line.

PACKAGE = ("confluent-kafka", "kafka")
_ADMIN_POLL_SECONDS, _AGAIN_SECONDS = 0.05, 0.2
_REFUSED_SECONDS = 5.0
"""How long a broker may be starting: an address that is refused, or has no host, after that is given up."""
_NAMES_A_QUESTION = 500
_GONE = "UNKNOWN_TOPIC_OR_PART"
_NOT_DESCRIBED = frozenset({"GROUP_ID_NOT_FOUND", "GROUP_AUTHORIZATION_FAILED", "UNSUPPORTED_VERSION"})
"""Errors of a group that is gone, may not be seen, or has a type that this client cannot describe."""
Returned = TypeVar("Returned")
TopicListing = tuple[str, str | None, tuple[tuple[str | None, ...], ...]]
"""A topic: name, id, and the racks of each partition's replicas."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a cluster is, how to log in (never shown), and the timeout of a request."""

    bootstrap: str
    options: Mapping[str, str] = field(repr=False)
    timeout_seconds: float

    def client(self, kind: str, library: str = "confluent_kafka", **ours: Any) -> Any:
        """Make a client of the library. Raises Fault: CLIENT_MISSING, KAFKA_OPTION if it rejects the options.

        It writes no log of its own: faults say what it would log.
        """
        module = client_module(library, *PACKAGE)
        quiet = logging.getLogger("groupledger.kafka")
        quiet.propagate = False
        if not quiet.handlers:
            quiet.addHandler(logging.NullHandler())
        settings = {**self.options, "bootstrap.servers": self.bootstrap, "logger": quiet, **ours}
        try:
            return getattr(module, kind)(settings)
        except client_module("confluent_kafka", *PACKAGE).KafkaException as error:
            raise Fault("KAFKA_OPTION", f"options of the Kafka client: {error.args[0].str()}; see sources") from error
        except (TypeError, ValueError) as error:
            raise Fault("KAFKA_OPTION", f"options of the Kafka client: {error}; see sources") from error


@dataclass(frozen=True, slots=True)
class ClusterState:
    """A cluster at one moment. `ends`: of each partition of its log; empty if it never had a group."""

    cluster_id: str
    ends: Mapping[int, LogEnds]
    topics: tuple[TopicListing, ...]

    @property
    def topics_digest(self) -> str:
        """Return a digest that is equal for the same topics with the same ids, partitions and racks."""
        return digest(self.topics)


class _UnsettledError(Exception):
    """A request was answered with a transient error; holds the fault to raise if it persists."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class Cluster:
    """Requests to a cluster. `seconds` is a monotonic clock."""

    def __init__(self, address: Address, seconds: Callable[[], float]) -> None:
        self.address, self._seconds = address, seconds
        self._errors: list[Any] = []
        self._until, self._answered = 0.0, False
        self._library = client_module("confluent_kafka", *PACKAGE)
        self._asked = client_module("confluent_kafka.admin", *PACKAGE)
        self._admin = address.client("AdminClient", "confluent_kafka.admin", error_cb=self._errors.append)

    def state(self) -> ClusterState:
        """Return everything that an ingest needs; the log's ends are read before the topics are listed."""
        cluster_id = self.cluster_id()
        log_partitions = self.partitions().get(TOPIC, 0)
        if not log_partitions:
            self.described_topics([TOPIC])  # if it is missing or not visible to us, this raises a Fault
        ends = self._ends(log_partitions)
        return ClusterState(cluster_id, ends, self.topics())  # even topic names are requested after the ends

    def topics(self) -> tuple[TopicListing, ...]:
        """Return the topics visible to us."""
        found = []
        for topic in self.described_topics(sorted(self.partitions())):
            partitions = sorted(topic.partitions, key=lambda each: each.id)
            racks = tuple(tuple(node.rack or None for node in each.replicas) for each in partitions)
            found.append((topic.name, str(topic.topic_id) if topic.topic_id else None, racks))
        return tuple(sorted(found, key=lambda each: each[0]))

    def cluster_id(self) -> str:
        """Return the cluster's own id: the first request, which shows whether a broker answers."""
        return str(self.described().cluster_id)

    def described(self) -> Any:
        """Return the cluster's description."""
        doing = "describing the cluster"
        return self._settled(lambda: self._answer(self._admin.describe_cluster(**self._timeout), doing))

    def partitions(self) -> dict[str, int]:
        """Return the number of partitions of each topic visible to us."""
        found = self._settled(self._metadata)
        return {name: len(topic.partitions) for name, topic in found.topics.items()}

    def described_topics(self, names: Iterable[str]) -> list[Any]:
        """Return the descriptions of those topics that still exist."""
        wanted, found = list(names), []
        for at in range(0, len(wanted), _NAMES_A_QUESTION):
            some = self._library.TopicCollection(wanted[at : at + _NAMES_A_QUESTION])
            ask = partial(self._admin.describe_topics, some, **self._timeout)
            topics = self._answers(ask, "describing the topic", {_GONE})
            found += [topic for topic in topics.values() if topic is not None]
        return found

    def groups(self) -> tuple[list[DescribedGroup], list[str]]:
        """Return the groups' descriptions, and the ids of groups without one."""
        wanted = sorted(each.group_id for each in self._settled(self._listed_groups))
        found, left_out = list[DescribedGroup](), list[str]()
        for at in range(0, len(wanted), _NAMES_A_QUESTION):
            some = wanted[at : at + _NAMES_A_QUESTION]
            ask = partial(self._admin.describe_consumer_groups, some, **self._timeout)
            for name, group in self._answers(ask, "describing the group", _NOT_DESCRIBED).items():
                if group is None:
                    left_out.append(name)
                else:
                    found.append(_group(group))
        return found, left_out

    @property
    def _timeout(self) -> dict[str, float]:
        return {"request_timeout": self.address.timeout_seconds}

    def _ends(self, partitions: int) -> dict[int, LogEnds]:
        """Return log start and end of each log partition, the end as seen by a reader of uncommitted records."""
        starts, ends = (self._offsets(partitions, spec) for spec in ("earliest", "latest"))
        return {partition: LogEnds(starts[partition], ends[partition]) for partition in range(partitions)}

    def _offsets(self, partitions: int, which: str) -> dict[int, int]:
        if not partitions:
            return {}
        spec = getattr(self._asked.OffsetSpec, which)()
        asked = {self._library.TopicPartition(TOPIC, partition): spec for partition in range(partitions)}
        level = self._library.IsolationLevel.READ_UNCOMMITTED
        ask = partial(self._admin.list_offsets, asked, isolation_level=level, **self._timeout)
        found = self._answers(ask, f"asking for the {which} offsets of")
        return {place.partition: answer.offset for place, answer in found.items()}

    def _metadata(self) -> Any:
        try:
            return self._admin.list_topics(timeout=self.address.timeout_seconds)
        except self._library.KafkaException as error:
            raise self._fault(error, "listing the topics") from error

    def _listed_groups(self) -> Any:
        doing = "listing the groups"
        listed = self._answer(self._admin.list_consumer_groups(**self._timeout), doing)
        for error in listed.errors:
            raise self._fault(error, doing)
        return listed.valid

    def _settled(self, question: Callable[[], Returned]) -> Returned:
        """Ask, and retry within the timeout of one request while a leader has changed or just started."""
        self._until = self._seconds() + self.address.timeout_seconds
        while True:
            try:
                return question()
            except _UnsettledError as error:
                if self._seconds() > self._until:
                    raise error.fault from error
            self._admin.poll(_AGAIN_SECONDS)

    def _answers(
        self, ask: Callable[[], Mapping[Any, Any]], doing: str, unless: Collection[str] = ()
    ) -> dict[Any, Any]:
        """Return the answers to a request about several things, by thing."""
        return self._settled(
            lambda: {about: self._answer(each, f"{doing} {_name(about)}", unless) for about, each in ask().items()}
        )

    def _answer(self, future: Any, doing: str, unless: Collection[str] = ()) -> Any:
        """Return the answer to a request; None for one of the errors `unless`."""
        patient, heard = self._until - self.address.timeout_seconds + _REFUSED_SECONDS, len(self._errors)
        while not future.done():
            self._admin.poll(_ADMIN_POLL_SECONDS)
            if self._seconds() < patient:
                heard = len(self._errors)
            elif not self._answered and self._is_refused(heard):
                raise silence(self.address, self._errors, doing, early=True)
            hopeless = next((error for error in self._errors if is_hopeless(error.name(), error.str())), None)
            if hopeless is not None:
                raise kafka_fault(hopeless.name(), hopeless.str(), self.address.bootstrap, doing)
            if self._seconds() > self._until:
                raise silence(self.address, self._errors, doing)
        try:
            found = future.result(0)
        except self._library.KafkaException as error:
            if error.args[0].name() in unless:
                return None
            raise self._fault(error, doing) from error
        self._answered = True
        return found

    def _is_refused(self, since: int) -> bool:
        """Return whether by the errors since then nobody listens at any address; each was tried again meanwhile."""
        return refusing(error.str() for error in self._errors[since:]) >= set(self.address.bootstrap.split(","))

    def _fault(self, error: Any, doing: str) -> Exception:
        """Return the exception for an error, which may be transient."""
        cause = error.args[0]
        fault = kafka_fault(cause.name(), cause.str(), self.address.bootstrap, doing)
        if fault.code == "KAFKA_UNREACHABLE":
            fault = silence(self.address, self._errors, doing)
        return _UnsettledError(fault) if cause.name() in UNSETTLED else fault


def _name(about: Any) -> str:
    """Return the name of what is requested: a partition of a topic, or something with a name."""
    return about if isinstance(about, str) else f"{about.topic} partition {about.partition}"


def _group(group: Any) -> DescribedGroup:
    members = tuple(
        DescribedMember(
            each.member_id,
            each.group_instance_id or None,
            each.client_id or None,
            each.host or None,
            tuple((at.topic, at.partition) for at in each.assignment.topic_partitions),
        )
        for each in group.members
    )
    state = "".join(word.capitalize() for word in group.state.name.split("_"))
    kind = "consumer" if group.type.name == "CONSUMER" else "classic"  # a broker older than KIP-848 does not say
    return DescribedGroup(group.group_id, kind, state, group.partition_assignor or None, members)


def silence(address: Address, errors: Iterable[Any], doing: str, *, early: bool = False) -> Fault:
    """Return the fault of a cluster that did not answer, in time or `early`, by what its client reported meanwhile."""
    heard = [error for error in errors if error.name() not in PASSING]
    hopeless = [error for error in heard if is_hopeless(error.name(), error.str())]
    for error in (*hopeless, *heard[-1:]):
        fault = kafka_fault(error.name(), error.str(), address.bootstrap, doing)
        if fault.code != "KAFKA_UNREACHABLE":
            return fault
    said = heard[-1].str() if heard else None
    return unreachable(address.bootstrap, said, doing, None if early else address.timeout_seconds)
