"""Record segments of `__consumer_offsets` as a real broker writes them, one log for each codec.

    python -m tests.live.record_segments tests/data/segments

Classic and KIP-848 groups, offset commits, transactions that were committed, aborted and left open, a group that was
deleted, and several segments. Beside each log, `offsets.jsonl.gz` holds what a consumer read of it (read_committed).
The broker of the codec `none` is killed with preallocated segments, so that its last one ends in zero bytes.
"""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from tests.live.broker import Broker

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LOG = "__consumer_offsets"
PROPERTIES = """\
offsets.topic.compression.codec={codec}
offsets.topic.segment.bytes=1048576
log.preallocate={preallocate}
group.coordinator.rebalance.protocols=classic,consumer
"""


def record(codec: str, out: Path) -> None:
    """One broker, one log: its segment files gzipped, and what a consumer saw."""
    folder = Path(tempfile.mkdtemp())
    crashes = codec == "none"
    more = PROPERTIES.format(codec=CODECS.index(codec), preallocate=str(crashes).lower())
    broker = Broker(folder, more=more)
    try:
        broker.start()
        _play(broker.address)
        seen = _consumed(broker.address)
        if crashes:
            broker.kill()
    finally:
        broker.stop()
    target = out / codec / f"{LOG}-0"
    shutil.rmtree(out / codec, ignore_errors=True)
    target.mkdir(parents=True)
    for segment in sorted((folder / "logs" / target.name).glob("*.log")):
        _write(target / f"{segment.name}.gz", segment.read_bytes())
    lines = "".join(json.dumps(line) + "\n" for line in seen)
    _write(out / codec / "offsets.jsonl.gz", lines.encode())
    shutil.rmtree(folder)


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, mtime=0))


def _play(address: str) -> None:
    """Everything that stands in the log."""
    admin = AdminClient({"bootstrap.servers": address})
    _done(admin.create_topics([NewTopic("orders", 3, 1), NewTopic("payments", 4, 1)]))
    for name, protocol in (("billing", "classic"), ("billing", "classic"), ("audit", "consumer")):
        _members(address, name, protocol)
        _roll(address, admin)
    _transactions(address, "billing")
    _members(address, "shipping", "classic")
    _done(admin.delete_consumer_groups(["shipping"]))
    _roll(address, admin)
    _members(address, "shipping", "classic")
    _open_transaction(address, "billing")


def _done(futures) -> None:
    for future in futures.values():
        future.result()


def _roll(address: str, admin: AdminClient) -> None:
    """Let the next record begin a segment: each is old at once for the moment of its settings."""
    entry = ConfigEntry("segment.ms", "1", incremental_operation=AlterConfigOpType.SET)
    _done(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, LOG, incremental_configs=[entry])]))
    time.sleep(0.3)
    probe = Consumer({"bootstrap.servers": address, "group.id": "probe"})
    probe.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
    probe.close()
    entry = ConfigEntry("segment.ms", "604800000", incremental_operation=AlterConfigOpType.SET)
    _done(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, LOG, incremental_configs=[entry])]))


def _consumer(address: str, group: str, protocol: str, number: int) -> Consumer:
    settings = {
        "bootstrap.servers": address,
        "group.id": group,
        "client.id": f"{group}-{number}",
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    if protocol == "classic":
        settings |= {"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": 10_000}
    consumer = Consumer(settings)
    consumer.subscribe(["orders", "payments"])
    return consumer


def _members(address: str, group: str, protocol: str) -> None:
    """Three members come one after another, commit, and go."""
    members = []
    for number in range(3):
        members.append(_consumer(address, group, protocol, number))
        until = time.monotonic() + 30
        while time.monotonic() < until and any(not member.assignment() for member in members):
            for member in members:
                member.poll(0.1)
        for member in members:
            _commit(member, 10 * number)
    for member in members:
        member.close()


def _commit(member: Consumer, offset: int) -> None:
    places = [TopicPartition(each.topic, each.partition, offset) for each in member.assignment()]
    for _ in range(5):
        try:
            if places:
                member.commit(offsets=places, asynchronous=False)
        except KafkaException:  # it rebalances: the next member's turn will do
            member.poll(0.2)
        else:
            return


def _transactions(address: str, group: str) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": "worker"})
    producer.init_transactions()
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    for number, committed in enumerate((True, False, True, False)):
        producer.begin_transaction()
        places = [TopicPartition("orders", partition, 100 + number) for partition in range(3)]
        producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
        if committed:
            producer.commit_transaction()
        else:
            producer.abort_transaction()
    consumer.close()


def _open_transaction(address: str, group: str) -> None:
    producer = Producer({"bootstrap.servers": address, "transactional.id": "left-open"})
    producer.init_transactions()
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    producer.begin_transaction()
    places = [TopicPartition("payments", partition, 500) for partition in range(4)]
    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata())
    consumer.close()
    _KEPT.append(producer)


_KEPT: list[Producer] = []
"""Producers with an open transaction: they must not end before the broker."""


def _consumed(address: str) -> list[dict[str, object]]:
    """Every record before the last stable offset, as a line of the kind `offsets-jsonl`."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(LOG, 0, 0)])
    found: list[dict[str, object]] = []
    while (message := consumer.poll(30)) is not None and message.error() is None:
        found.append(
            {
                "partition": message.partition(),
                "offset": message.offset(),
                "timestamp": message.timestamp()[1],
                "key": _text(message.key()),
                "value": _text(message.value()),
            }
        )
    consumer.close()
    return found


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


if __name__ == "__main__":
    for wanted in sys.argv[2:] or CODECS:
        record(wanted, Path(sys.argv[1]))
