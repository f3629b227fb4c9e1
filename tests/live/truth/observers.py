"""What a reader of the cluster sees while a day is played: each record of the log, and the topics again and again."""

from __future__ import annotations

import base64
import json
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.kafka.groups import LOG
from tests.live.truth.journal import now_ms

COMMITS = (0, 1)
"""Types of keys of offset commits."""
PATIENT = {"api.version.request.timeout.ms": 300_000, "log_level": 0}
"""Else a slow broker is taken for one of before 0.10; and one that is down is a line every 50 ms."""
LISTING_SECONDS = 5.0


class Observer(ABC):
    """A thread that looks again and again, between the beginning of its block and the end."""

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.is_set():
            self.look()
        self.look()

    @abstractmethod
    def look(self) -> None:
        """Look once."""


class Tail(Observer):
    """Writes each record down as it comes: nothing is compacted away before; says what is new of each group."""

    def __init__(self, address: str, partitions: int, path: Path) -> None:
        super().__init__()
        self._consumer = Consumer({"bootstrap.servers": address, "group.id": "tail"} | PATIENT)
        self._consumer.assign([TopicPartition(LOG, partition, 0) for partition in range(partitions)])
        self._file = path.open("w", encoding="ascii")
        self._last: dict[str, tuple[int, float]] = defaultdict(lambda: (0, 0.0))

    def look(self) -> None:
        """Take what there is, and wait a little where nothing is."""
        for message in self._consumer.consume(1_000, 0.1):
            if not message.error():
                self._take(message)
        self._file.flush()

    def _take(self, message: Any) -> None:
        key = message.key()
        kind, length = struct.unpack_from(">hh", key) if key is not None and len(key) >= 4 else (COMMITS[0], 0)
        if kind not in COMMITS:
            group = key[4 : 4 + length].decode()
            self._last[group] = self._last[group][0] + 1, time.monotonic()
        self._file.write(json.dumps(line_of(message)) + "\n")

    def seen(self, group: str) -> tuple[int, float]:
        """How many records of the group's state there were, and when the last one came (`time.monotonic`)."""
        return self._last[group]

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._consumer.close()
        self._file.close()


class Listings(Observer):
    """Lists the topics every few seconds, as lines of topics-jsonl."""

    def __init__(self, address: str, path: Path) -> None:
        super().__init__()
        self._admin = AdminClient({"bootstrap.servers": address} | PATIENT)
        self._file = path.open("w", encoding="ascii")

    def look(self) -> None:
        """List them once; nothing where the broker does not answer."""
        try:
            for line in listed(self._admin):
                self._file.write(json.dumps(line) + "\n")
        except KafkaException:
            pass
        self._file.flush()
        self._stopped.wait(LISTING_SECONDS)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._file.close()


def listed(admin: AdminClient) -> list[dict[str, Any]]:
    """The topics of now, but for Kafka's own."""
    names = [name for name in admin.list_topics(timeout=10).topics if not name.startswith("__")]
    if not names:
        return []
    asked = admin.describe_topics(TopicCollection(names), request_timeout=10)
    moment, lines = now_ms(), []
    for name in sorted(names):
        try:
            topic = asked[name].result()
        except KafkaException:  # deleted meanwhile
            continue
        identity = str(topic.topic_id).translate(str.maketrans("+/", "-_"))
        lines.append({"ts": moment, "topic": name, "topic_id": identity, "partitions": len(topic.partitions)})
    return lines


def line_of(message: Any) -> dict[str, Any]:
    """A record as a line of offsets-jsonl, with the leader epoch of its batch."""
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "leader_epoch": message.leader_epoch(),
        "key": _text(message.key()),
        "value": _text(message.value()),
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
