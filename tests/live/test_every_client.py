"""Members of every client library come and go on a real broker while its log is read: what is in the ledger at the end
is what the broker's own segment files hold, and the reading left no trace on the broker.
"""

from __future__ import annotations

import base64
import logging
import struct
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from io import StringIO
from itertools import count
from threading import Event
from typing import NamedTuple

import pytest
from confluent_kafka import Consumer, ConsumerGroupState
from confluent_kafka.admin import AdminClient

from groupledger.answers import at_a_glance
from groupledger.answers.explanation import rebalance
from groupledger.answers.reader import LedgerReader
from groupledger.config import AssignSettings, Config, LedgerSettings, SourceSettings
from groupledger.pipeline.assign import assign
from groupledger.pipeline.frames import LedgerFrames
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, LOG_RECORDS
from groupledger.tables import columns as c
from tests.kafka.groups import dump, ends, fill, groups
from tests.live.broker import CLUSTER_ID, KAFKA_3, KAFKA_4, Broker
from tests.live.dumped import done, listed_when, rows_of
from tests.live.fleet import SECONDS, Fleet, LiveGroup, Way
from tests.live.topics import Topics

LOG_PARTITIONS = 3
TIMES = 2
"""How often each of ingest, assign and an answer must have seen members come and go while it ran."""
MOST_ROUNDS = 20
TOPICS = {"orders": 3, "payments": 2, "clicks": 4}
PROPERTIES = f"""\
offsets.topic.num.partitions={LOG_PARTITIONS}
offsets.retention.check.interval.ms=86400000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=500
group.consumer.migration.policy=bidirectional
"""
KAFKA_4_PROPERTIES = """\
group.coordinator.rebalance.protocols=classic,consumer,streams,share
group.share.min.heartbeat.interval.ms=100
group.share.heartbeat.interval.ms=500
group.streams.min.heartbeat.interval.ms=100
group.streams.heartbeat.interval.ms=500
group.streams.num.standby.replicas=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
"""
KAFKA_3_PROPERTIES = """\
group.coordinator.rebalance.protocols=classic,consumer
"""
ASSIGNORS = {
    "java": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "confluent-kafka": ("range", "roundrobin", "cooperative-sticky"),
    "kafka-python": ("range", "roundrobin", "sticky", "cooperative-sticky"),
    "aiokafka": ("range", "roundrobin", "sticky"),
    "franz-go": ("range", "roundrobin", "sticky", "cooperative-sticky"),
}
"""Every classic assignor that a library has."""
MODERN = {KAFKA_4: ("java", "confluent-kafka"), KAFKA_3: ("java",)}
"""Libraries that take part in KIP-848; why librdkafka does not on Kafka 3.9, a test below asks it."""


def of_library(library, modern):
    """A group for each assignor, and one of KIP-848."""
    ways = [Way(library, assignor) for assignor in ASSIGNORS[library]]
    ways += [Way(library, protocol="consumer")] if library in modern else []
    topics = ("orders", "payments")
    return [LiveGroup(f"{library}.{way.assignor or way.protocol}", topics, (way,) * 3) for way in ways]


MIXED = LiveGroup("mixed.range", ("orders", "clicks"), tuple(Way(library, "range") for library in ASSIGNORS))
SHARE = LiveGroup("share.share", ("payments",), (Way("java", protocol="share"),) * 3)
STREAMS = LiveGroup("streams.streams", ("orders", "payments", "clicks"), (Way("java", protocol="streams"),) * 3)

BROKERS = {
    "kafka-4.4": (KAFKA_4, KAFKA_4_PROPERTIES, [[SHARE, STREAMS]]),
    "kafka-3.9": (KAFKA_3, KAFKA_3_PROPERTIES, []),
}


def waves(modern):
    """Groups that are there at the same time; in the last wave some that mix libraries, and protocols."""
    classic = tuple(Way(library, "cooperative-sticky") for library in ("java", "confluent-kafka"))
    upgrade = classic + tuple(Way(library, protocol="consumer") for library in modern)
    return [
        of_library("java", modern),
        of_library("confluent-kafka", modern) + of_library("aiokafka", modern),
        of_library("kafka-python", modern) + of_library("franz-go", modern),
        [MIXED, LiveGroup("upgrade.cooperative-sticky", ("clicks",), upgrade)],
    ]


class Reading:
    """Ingest, assign and an answer, again and again; `during` counts those while which members came or went."""

    def __init__(self, spark, address, ledger, fleet):
        self.stopped = Event()
        self.during = Counter()
        self._spark, self._address, self._fleet = spark, address, fleet
        self._folder = str(ledger)
        self._location = LedgerLocation(path=self._folder)
        self._attempts = count(1)

    def run(self):
        """Until it is told to stop."""
        while not self.stopped.is_set():
            for what in (self.ingest, self.assign, self.answer):
                before = self._fleet.changes
                what()
                self.during[what.__name__] += self._fleet.changes > before

    def is_enough(self):
        """Whether each has seen comings and goings."""
        return all(self.during[name] >= TIMES for name in ("ingest", "assign", "answer"))

    def ingest(self):
        """What is new."""
        summary = ingest(self._spark, self._location, self._config(), self._invocation())
        assert all(account.balanced for account in summary.accounts), summary.accounts
        assert summary.quarantined == 0
        return summary

    def assign(self, snapshots="latest"):
        """No group is rejected."""
        config = self._config(assign=AssignSettings(scenario=snapshots, snapshots=snapshots))
        summary = assign(self._spark, config, self._invocation())
        assert summary.outcomes.get("REJECTED", 0) == 0, summary.outcomes
        return summary

    def answer(self):
        """The group that was heard of last, of all those there are."""
        reader = LedgerReader(self._folder)
        known = at_a_glance.groups(reader, 1_000)
        assert len(known.rows) == known.total
        if known.rows:
            names = known.columns
            last = max(known.rows, key=lambda row: row[names.index(c.OBSERVED_AT)])
            group = last[names.index(c.GROUP_ID)]
            assert at_a_glance.history(reader, group, None, "latest", 1_000).rows
            assert rebalance(reader, group).group_id == group

    def _config(self, **more):
        source = SourceSettings(kind="kafka", bootstrap=self._address)
        return Config(ledger=LedgerSettings(location=self._folder), sources=(source,), **more)

    def _invocation(self):
        return Invocation(
            attempt_id=f"reading-{next(self._attempts)}",
            now=lambda: datetime.now(UTC),  # noqa: TID251 - the broker's records are of now as well
            seconds=time.perf_counter,
        )


def play(fleet, waves, reading):
    """All waves, and the last again, until the reading has seen enough of them."""
    with ThreadPoolExecutor(1) as thread:
        read = thread.submit(reading.run)
        try:
            for wave in waves:
                fleet.play(*wave)
            for _ in range(MOST_ROUNDS):
                if reading.is_enough() or read.done():
                    break
                fleet.play(*waves[-1])
        finally:
            reading.stopped.set()
        read.result()
    assert reading.is_enough(), f"few were under way while members came or went: {reading.during}"


def until_empty(address):
    """No member is left: nothing writes to the log any more."""
    admin = AdminClient({"bootstrap.servers": address})
    until = time.monotonic() + SECONDS
    while states := {
        each.group_id: each.state.name
        for each in admin.list_consumer_groups().result(SECONDS).valid
        if each.state is not ConsumerGroupState.EMPTY
    }:
        assert time.monotonic() < until, f"groups that do not become empty: {states}"
        time.sleep(0.2)


CLASSIC_KEY, EPOCH_KEYS, TARGET_KEYS = 2, (3, 11, 17), (6, 12, 20)
"""Types of the keys under which a classic group says its generation, the other groups their epoch, and the epoch that
their target is of."""


def generations(records):
    """(group, generation or group epoch) of each such record, read here with nothing of ours."""
    for kind, group, value in values(records):
        if kind in EPOCH_KEYS:
            yield group, struct.unpack_from(">i", value, 2)[0]
        if kind == CLASSIC_KEY:
            version, length = struct.unpack_from(">hh", value)
            assert version <= 3, "a later version is flexible, and its strings have other lengths"
            yield group, struct.unpack_from(">i", value, 4 + length)[0]


def target_epochs(records):
    """(group, epoch) of each target that was written whole."""
    for kind, group, value in values(records):
        if kind in TARGET_KEYS:
            yield group, struct.unpack_from(">i", value, 2)[0]


def values(records):
    """(type of key, group, value) of each record that is no tombstone."""
    for record in records:
        if record["value"] is not None:
            key = base64.b64decode(record["key"])
            kind, length = struct.unpack_from(">hh", key)
            yield kind, key[4 : 4 + length].decode(), base64.b64decode(record["value"])


class Told(NamedTuple):
    """What a ledger holds: (group, generation or epoch) of its snapshots, (group, from, to) of skipped targets."""

    snapshots: set[tuple[str, int]]
    skipped: set[tuple[str, int, int | None]]

    def says_no_target(self, group, epoch):
        """Whether coverage says that this epoch got no target."""
        spans = [(after, before) for name, after, before in self.skipped if name == group]
        return any(after < epoch and (before is None or epoch < before) for after, before in spans)


def told_of(frames):
    """What is in the ledger of generations and epochs."""
    numbers = frames.current(GROUP_SNAPSHOTS).selectExpr(
        "group_id", "explode(array(generation, group_epoch, target_epoch)) AS number"
    )
    skipped = frames.current(COVERAGE).where("kind = 'target-epochs-skipped'")
    return Told(
        {*map(tuple, numbers.where("number IS NOT NULL").collect())},
        {*map(tuple, skipped.select("group_id", "from_value", "to_value").collect())},
    )


@pytest.mark.parametrize("name", BROKERS)
def test_every_generation_of_every_client_is_in_the_ledger(name, programs, spark, dumped, tmp_path, capsys):
    jars, properties, more = BROKERS[name]
    (tmp_path / "broker").mkdir()
    broker = Broker(tmp_path / "broker", more=PROPERTIES + properties, jars=jars)
    address, ledger = broker.address, tmp_path / "ledger"
    try:
        broker.start()
        Topics(address).create(TOPICS)
        fill(address, "no-members", "orders", 1, 1)
        done(address, ledger)
        with Fleet(programs, address, LOG_PARTITIONS, tmp_path) as fleet:
            reading = Reading(spark, address, ledger, fleet)
            play(fleet, [*more, *waves(MODERN[jars])], reading)
        until_empty(address)
        while True:
            before = ends(address, LOG_PARTITIONS), groups(address)
            if reading.ingest().nothing_new:
                break
        assert (ends(address, LOG_PARTITIONS), groups(address)) == before
        assert {*fleet.played} - {SHARE.group_id, STREAMS.group_id} <= {*before[1]}, "it lists no groups of these types"
        records = dump(address, LOG_PARTITIONS)
    finally:
        broker.stop()
    topics = listed_when(spark, ledger, dumped)
    dumped.ingest(SourceSettings(kind="segments", path=str(broker.logs)), topics, cluster_id=CLUSTER_ID)
    found, expected = rows_of(spark, ledger), rows_of(spark, dumped.location.path)
    assert found[LOG_RECORDS.name]
    for table in found:
        assert found[table] == expected[table], table
    told, written, targets = (
        told_of(LedgerFrames(spark, str(ledger))),
        {*generations(records)},
        {*target_epochs(records)},
    )
    without = {each for each in written - told.snapshots if told.says_no_target(*each)}
    assert told.snapshots | without == written
    assert not without & targets, "an epoch that got a target has a snapshot"
    reading.assign("every")
    with capsys.disabled():
        sys.stdout.write(verdicts(name, LedgerFrames(spark, str(ledger)).results("every")))


def verdicts(name, results):
    """A line a library: how many of its rebalances got which verdict."""
    counted = Counter((row.group_id.partition(".")[0], row.verdict) for row in results.where("round = 1").collect())
    lines = {library: [] for library, _ in sorted(counted)}
    for (library, verdict), number in sorted(counted.items()):
        lines[library].append(f"{verdict} {number}")
    return "".join(f"\n{name} {library}: {', '.join(line)}" for library, line in lines.items()) + "\n"


def test_librdkafka_takes_no_part_in_kip_848_on_kafka_3_9(tmp_path):
    """That broker has version 0 of the heartbeat alone, which librdkafka does not speak; it waits, without a word to
    who polls, and writes nothing into the log. So no group of it can be recorded there.
    """
    broker = Broker(tmp_path, more=PROPERTIES + KAFKA_3_PROPERTIES, jars=KAFKA_3)
    log, heard = logging.Logger("librdkafka", logging.DEBUG), StringIO()
    log.addHandler(logging.StreamHandler(heard))
    try:
        broker.start()
        Topics(broker.address).create(TOPICS)
        fill(broker.address, "no-members", "orders", 1, 1)
        before = ends(broker.address, LOG_PARTITIONS)
        settings = {"bootstrap.servers": broker.address, "group.id": "modern", "group.protocol": "consumer"}
        consumer = Consumer(settings | {"debug": "cgrp,feature", "logger": log})
        consumer.subscribe([*TOPICS])
        until = time.monotonic() + SECONDS
        while "ConsumerGroupHeartbeatRequest not supported by broker" not in heard.getvalue():
            assert consumer.poll(0.1) is None
            assert time.monotonic() < until, heard.getvalue()
        assert consumer.assignment() == []
        consumer.close()
        assert "ConsumerGroupHeartbeat (68) Versions 0..0" in heard.getvalue()
        assert ends(broker.address, LOG_PARTITIONS) == before
    finally:
        broker.stop()
