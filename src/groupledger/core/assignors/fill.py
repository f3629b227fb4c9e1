"""Handing out what nobody keeps: each partition to the subscriber with the fewest, then the lowest member id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.holdings import Holdings, hand_out
from groupledger.core.assignors.racks import far_from
from groupledger.core.batch import NONE
from groupledger.core.kernels import kernel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import LongArray


@kernel
def fill(h: Holdings) -> None:
    """Hand out all fresh partitions, topic by topic; where racks matter first near a replica, then anywhere."""
    pending = h.fresh
    if h.racked:
        pending = h.fresh.copy()
        _fill_near(h, pending)
    heap = np.empty(len(h.member_at), np.int64)
    for topic in h.topics:
        count = 0
        for slot in range(h.base[topic], h.base[topic + 1]):
            count += 1 if pending[slot] else 0
        if count > 0:
            _fill_topic(h, pending, topic, heap[: h.heads[topic + 1] - h.heads[topic]])


@kernel
def _fill_topic(h: Holdings, pending: NDArray[np.bool_], topic: int, heap: LongArray) -> None:
    """A heap of size * members + place: its top is the next to be served."""
    n = len(h.member_at)
    for at in range(len(heap)):
        place = h.seats[h.heads[topic] + at]
        heap[at] = h.size[place] * n + place
    for at in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, at)
    for slot in range(h.base[topic], h.base[topic + 1]):
        if pending[slot]:
            hand_out(h, int(heap[0] % n), slot)
            heap[0] += n
            _sink(heap, 0)


@kernel
def _sink(heap: LongArray, at: int) -> None:
    value = heap[at]
    count = len(heap)
    below = 2 * at + 1
    while below < count:
        if below + 1 < count and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= value:
            break
        heap[at] = heap[below]
        at = below
        below = 2 * at + 1
    heap[at] = value


@kernel
def _fill_near(h: Holdings, pending: NDArray[np.bool_]) -> None:
    for topic in h.topics:
        for slot in range(h.base[topic], h.base[topic + 1]):
            if not pending[slot]:
                continue
            best = NONE
            for at in range(h.heads[topic], h.heads[topic + 1]):
                place = h.seats[at]
                lighter = best == NONE or h.size[place] < h.size[best]
                if lighter and not far_from(h.g, h.member_at[place], topic, slot - h.base[topic]):
                    best = place
            if best != NONE:
                hand_out(h, best, slot)
                pending[slot] = False
