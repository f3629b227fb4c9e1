"""Topics as they were at a moment: name -> (topic id, partition count), from the rows of `topic_snapshots`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE
from groupledger.core.log.listings import last_change
from groupledger.core.log.topic_partitions import change_order
from groupledger.core.moments import MICROS_A_MILLI

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import LongArray

URL_SAFE = str.maketrans("+/", "-_")


def canonical_topic_id(topic_id: str | None) -> str | None:
    """Kafka's own, url-safe spelling: librdkafka prints ids in plain base64, with + and /."""
    return None if topic_id is None else topic_id.translate(URL_SAFE).rstrip("=")


class TopicChange(NamedTuple):
    """A row of `topic_snapshots`; no partition count: the topic was deleted. `valid_from` in microseconds."""

    topic: str
    topic_id: str | None
    partition_count: int | None
    racks: tuple[tuple[str, ...], ...] | None
    valid_from: int


class TopicHistory:
    """What is known of topics at the time of a record (ms). Before the first change nothing is known of a topic."""

    def __init__(self, changes: Iterable[TopicChange] = ()) -> None:
        self._states: dict[str, list[tuple[str | None, int] | None]] = {}
        self._starts: dict[str, list[int]] = {}
        self._names: dict[str, str] = {}
        self._renamed = False
        for change in sorted(
            changes, key=lambda each: change_order(each.valid_from, each.topic_id, each.partition_count)
        ):
            self._learn(change)
        self._moments = sorted({start for starts in self._starts.values() for start in starts})

    def as_of(self, name: str, timestamp_ms: int) -> tuple[str | None, int] | None:
        """(topic id, partition count) of the topic of that name then; None: deleted, or not known yet."""
        starts = self._starts.get(name)
        if starts is None:
            return None
        place = last_change(starts, timestamp_ms)
        return None if place == NONE else self._states[name][place]

    def id_as_of(self, name: str, timestamp_ms: int) -> str | None:
        """Return the topic id alone."""
        state = self.as_of(name, timestamp_ms)
        return None if state is None else state[0]

    def name_of(self, topic_id: str) -> str | None:
        """Return the topic's name; an id never has another."""
        return self._names.get(topic_id)

    def epoch(self, timestamp_ms: int) -> int:
        """Return a number that is the same for two moments between which no topic changed."""
        return last_change(self._moments, timestamp_ms)

    def epochs(self, timestamps_ms: LongArray) -> LongArray:
        """Return the epoch of each time."""
        begin = [-(-moment // MICROS_A_MILLI) for moment in self._moments]
        return np.searchsorted(np.array(begin, np.int64), timestamps_ms, side="right") - 1

    @property
    def has_one_name_an_id(self) -> bool:
        """Whether no topic id ever had two names, as it is in Kafka."""
        return not self._renamed

    def _learn(self, change: TopicChange) -> None:
        topic_id = canonical_topic_id(change.topic_id)
        if topic_id is not None:
            self._renamed |= self._names.get(topic_id, change.topic) != change.topic
            self._names[topic_id] = change.topic
        state = None if change.partition_count is None else (topic_id, change.partition_count)
        self._starts.setdefault(change.topic, []).append(change.valid_from)
        self._states.setdefault(change.topic, []).append(state)
