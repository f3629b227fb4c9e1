"""Look up topics over time in listings, as integers: each topic's changes, and partition counts at a given time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from groupledger.core.arrays.batch import NONE
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.arrays.snapshots import GREATEST, LEAST, TopicViews
from groupledger.core.moments import MICROS_A_MILLI

if TYPE_CHECKING:
    from collections.abc import Sequence

    from groupledger.core.arrays.batch import IntArray, LongArray


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
