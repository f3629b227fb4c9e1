"""Groups on a live broker, and what the broker says of them and of its log."""

from __future__ import annotations

import base64
import json
import time
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

SECONDS = 180
LOG = "__consumer_offsets"


class Member:
    """A member of a group; it stays one until its block ends."""

    def __init__(self, address: str, group: str, *topics: str) -> None:
        patient = {"max.poll.interval.ms": 3_600_000, "session.timeout.ms": 1_200_000}  # on however slow a machine
        settings = {"bootstrap.servers": address, "group.id": group, "auto.offset.reset": "earliest"}
        self.consumer = Consumer(settings | patient)
        self.consumer.subscribe(list(topics))
        until = time.monotonic() + SECONDS
        while not self.consumer.assignment():
            self.consumer.poll(0.1)
            assert time.monotonic() < until

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *error: object) -> None:
        self.consumer.close()

    def offsets(self) -> list[TopicPartition]:
        """Offset 0 of everything that is assigned."""
        return [TopicPartition(each.topic, each.partition, 0) for each in self.consumer.assignment()]

    def commit(self) -> None:
        """Commit offset 0 of everything that is assigned."""
        self.consumer.commit(offsets=self.offsets(), asynchronous=False)


def commit_in_transaction(address: str, member: Member) -> None:
    """Commit in a transaction: the log of the group ends with its marker afterwards."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": "t"})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.send_offsets_to_transaction(member.offsets(), member.consumer.consumer_group_metadata(), SECONDS)
    producer.commit_transaction(SECONDS)
    until = time.monotonic() + SECONDS
    while ends(address) != ends(address, isolation="read_committed"):  # the marker is written once that has returned
        assert time.monotonic() < until


def fill(address: str, group: str, topic: str, partitions: int, times: int) -> None:
    """Write `times` offset commits for each partition of a topic, a request a time, for a group without members."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": group})
    for offset in range(times):
        committed = [TopicPartition(topic, partition, offset) for partition in range(partitions)]
        consumer.commit(offsets=committed, asynchronous=False)
    consumer.close()


def groups(address: str) -> list[str]:
    """The groups that the broker knows."""
    admin = AdminClient({"bootstrap.servers": address})
    return sorted(each.group_id for each in admin.list_consumer_groups().result(SECONDS).valid)


def dump(address: str, partitions: int = 1) -> list[dict[str, Any]]:
    """The whole log as lines of offsets-jsonl, by a plain consumer."""
    settings = {"bootstrap.servers": address, "group.id": "dump", "enable.auto.commit": False}
    consumer = Consumer(settings | {"enable.partition.eof": True, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(LOG, partition, 0) for partition in range(partitions)])
    found, ended = [], 0
    while ended < partitions:
        for message in consumer.consume(1000, 1):
            if message.error():
                ended += 1
            else:
                record = {"partition": message.partition(), "offset": message.offset()}
                record["timestamp"] = message.timestamp()[1]
                found.append(record | {"key": _text(message.key()), "value": _text(message.value())})
    consumer.close()
    return sorted(found, key=lambda each: (each["partition"], each["offset"]))


def ends(address: str, partitions: int = 1, isolation: str = "read_uncommitted") -> list[int]:
    """The end offsets of the log; for who reads committed records alone, of what is stable."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "ends", "isolation.level": isolation})
    found = [consumer.get_watermark_offsets(TopicPartition(LOG, each), SECONDS)[1] for each in range(partitions)]
    consumer.close()
    return found


def lines(records: list[dict[str, Any]]) -> list[str]:
    """Lines of a file."""
    return [json.dumps(each) for each in records]


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
