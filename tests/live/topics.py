"""Topics of a live broker: made, grown and deleted, each once the broker says it is done."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from groupledger.core.faults import client_module

SECONDS = 30


class Topics:
    """Over confluent-kafka's admin client."""

    def __init__(self, address: str) -> None:
        self._library: Any = client_module("confluent_kafka.admin", "confluent-kafka")
        self._topic_collection: Any = client_module("confluent_kafka", "confluent-kafka").TopicCollection
        self._admin = self._library.AdminClient({"bootstrap.servers": address})

    def create(self, counts: Mapping[str, int]) -> None:
        """Make topics with so many partitions each; metadata has them afterwards."""
        self._wait(self._admin.create_topics([self._library.NewTopic(*each, 1) for each in counts.items()]))
        until = time.monotonic() + SECONDS
        while not counts.keys() <= self._admin.list_topics(timeout=SECONDS).topics.keys():
            assert time.monotonic() < until
            time.sleep(0.05)

    def id(self, topic: str) -> str:
        """The id of a topic, as Kafka prints it."""
        described = self._admin.describe_topics(self._topic_collection([topic]))[topic].result(SECONDS)
        return str(described.topic_id).translate(str.maketrans("+/", "-_"))

    def grow(self, topic: str, count: int) -> None:
        """Give a topic more partitions."""
        self._wait(self._admin.create_partitions([self._library.NewPartitions(topic, count)]))

    def delete(self, topic: str) -> None:
        """Delete a topic."""
        self._wait(self._admin.delete_topics([topic]))

    def _wait(self, answers: Mapping[str, Any]) -> None:
        for answer in answers.values():
            answer.result(SECONDS)
