"""The log of a broker: made before anybody joins, compacted at some moment, read whole at the end."""

from __future__ import annotations

import base64
import json
import struct
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests.kafka.groups import LOG, SECONDS, fill
from tests.live.truth.observers import COMMITS, PATIENT, line_of

SMALL_SEGMENTS = {"segment.ms": "4000", "min.cleanable.dirty.ratio": "0.01"}
COMMITS_EVERY_MS = 2_000
CLEANED_SECONDS = 25.0
"""Until the cleaner has been over what was closed."""


def make(address: str, topic: str) -> None:
    """A group without members commits: then there is a log."""
    fill(address, "tool-only", topic, 1, 1)


def compact(admin: AdminClient) -> None:
    """Close segments after a few seconds and compact them; what comes afterwards stays as it is."""
    _set(admin, SMALL_SEGMENTS)
    time.sleep(CLEANED_SECONDS)
    _set(admin, {"segment.ms": "604800000"})


def _set(admin: AdminClient, values: Mapping[str, str]) -> None:
    entries = [ConfigEntry(*each, incremental_operation=AlterConfigOpType.SET) for each in values.items()]
    asked = ConfigResource(ResourceType.TOPIC, LOG, incremental_configs=entries)
    for future in admin.incremental_alter_configs([asked]).values():
        future.result(SECONDS)


def write(address: str, partitions: int, path: Path) -> None:
    """All that the log holds."""
    settings = {"bootstrap.servers": address, "group.id": "reader", "enable.partition.eof": True}
    consumer = Consumer(settings | PATIENT)
    consumer.assign([TopicPartition(LOG, partition, 0) for partition in range(partitions)])
    ended, found = 0, []
    while ended < partitions:
        for message in consumer.consume(1_000, 1):
            ended += bool(message.error())
            found += [] if message.error() else [line_of(message)]
    consumer.close()
    lines = sorted(found, key=lambda each: (each["partition"], each["offset"]))
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), encoding="ascii")


def thinned(lines: Iterable[str]) -> Iterator[str]:
    """Of the offset commits, which are most of the log, one for each log partition every few seconds."""
    kept: dict[int, int] = {}
    for line in lines:
        record = json.loads(line)
        partition, moment = record["partition"], record["timestamp"]
        if _is_commit(record):
            if moment - kept.get(partition, 0) < COMMITS_EVERY_MS:
                continue
            kept[partition] = moment
        yield line


def _is_commit(record: dict[str, str]) -> bool:
    key = b"" if record["key"] is None else base64.b64decode(record["key"])
    return len(key) >= 2 and struct.unpack_from(">h", key)[0] in COMMITS
