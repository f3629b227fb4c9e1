"""Look up topics over time in listings, as integers: each topic's changes, and partition counts at a given time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray, LongArray
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.snapshots import GREATEST, LEAST, TopicViews
from groupledger.core.log.topic_partitions import change_order
from groupledger.core.moments import MICROS_A_MILLI


def last_change(since: Sequence[int], record_ms: int) -> int:
    """Return the index of the change in force at a record's time; `since` ascends, in us; NONE: before the first."""
    return last_at(since, 0, len(since), record_ms * MICROS_A_MILLI)


@dataclass(frozen=True, slots=True)
class Listings:
    """The C changes of K topics, grouped by topic, in order of time."""

    start: LongArray  # [K+1]
    since: LongArray  # [C] when the change was first listed, microseconds
    count: IntArray  # [C] partition count from then on; NONE: deleted

    def at(self, topic: LongArray, moment: LongArray) -> LongArray:
        """Return the change in force for each pair of a topic (NONE: not listed) and a moment; NONE: no change yet."""
        change = np.empty(len(topic), np.int64)
        run(in_force, self.start, self.since, topic, moment, change, cells=4 * len(topic))
        return change

    def views(self, topic: LongArray, change: LongArray) -> TopicViews:
        """Return the topic views around the change in force, or before the first one."""
        known = topic != NONE
        first = np.where(known, self.start[topic], 0)
        end = np.where(known, self.start[topic + 1], 0)
        now = np.where(change == NONE, first - 1, change)

        def value(values: Any, offset: int, null: int) -> Any:
            at = now + offset
            inside = (at >= first) & (at < end)
            found = np.full(len(at), null, values.dtype)
            found[inside] = values[at[inside]]
            return found

        listed = change != NONE
        count = value(self.count, 0, NONE)
        return TopicViews(
            now=count,
            before=value(self.count, -1, NONE),
            before_that=value(self.count, -2, NONE),
            after=value(self.count, 1, NONE),
            changed=value(self.since, 0, LEAST),
            changed_before=value(self.since, -1, LEAST),
            changed_after=value(self.since, 1, GREATEST),
            gone=listed & (count == NONE),
        )


@kernel
def in_force(start: LongArray, since: LongArray, topic: LongArray, moment: LongArray, change: LongArray) -> None:
    """Fill `change` with the topic's last one at or before the moment, NONE if there is none."""
    for each in range(len(topic)):
        change[each] = NONE
        if topic[each] == NONE:
            continue
        change[each] = last_at(since, start[topic[each]], start[topic[each] + 1], moment[each])


@kernel
def last_at(since: LongArray | Sequence[int], first: int, end: int, moment: int) -> int:
    """Return the index of the last of ascending `since[first:end]` at or before the moment; NONE if there is none.

    Every lookup of topics over time compares here, in microseconds.
    """
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if since[middle] <= moment:
            low = middle + 1
        else:
            high = middle
    return low - 1 if low > first else NONE


# Topics as they were at a moment: name -> (topic id, partition count), from the rows of `topic_snapshots`.

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
