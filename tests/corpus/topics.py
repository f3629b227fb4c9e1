"""Topics of a made history: who is there, since when, and the listings that say so."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from collections.abc import Mapping

from tests.corpus.history import Line

BEGIN_MS = 1_795_262_400_000
"""When the first listing of every made history is."""


class Topics:
    """The topics there are, by name their id and partition count; each listing is whole."""

    def __init__(self, seed: str, counts: Mapping[str, int]) -> None:
        self.lines: list[Line] = []
        self.there: dict[str, tuple[str, int]] = {}
        self._seed, self._made = seed, 0
        for topic, count in counts.items():
            self._make(topic, count)
        self._list(BEGIN_MS)

    def count(self, topic: str) -> int:
        """How many partitions it has."""
        return self.there[topic][1]

    def topic_id(self, topic: str) -> str:
        """Its id now."""
        return self.there[topic][0]

    def change(self, now_ms: int, topic: str, count: int | None) -> str:
        """Make, grow or delete (None) a topic; the cause that a rebalance by this has."""
        if count is None:
            del self.there[topic]
            cause = "topic-deleted"
        elif topic in self.there:
            self.there[topic] = (self.topic_id(topic), count)
            cause = "partitions-added"
        else:
            self._make(topic, count)
            cause = "topic-appeared"
        self._list(now_ms)
        return cause

    def make_again(self, now_ms: int, topic: str, count: int) -> str:
        """Delete a topic and make it again at once."""
        self._make(topic, count)
        self._list(now_ms)
        return "topic-made-again"

    def _make(self, topic: str, count: int) -> None:
        self._made += 1
        digest = hashlib.sha256(f"{self._seed}/{topic}/{self._made}".encode()).digest()[:16]
        self.there[topic] = (urlsafe_b64encode(digest).decode().rstrip("="), count)

    def _list(self, now_ms: int) -> None:
        self.lines += [
            {"ts": now_ms, "topic": topic, "topic_id": topic_id, "partitions": count}
            for topic, (topic_id, count) in sorted(self.there.items())
        ]
