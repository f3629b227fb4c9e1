"""Order claims as Kafka's StickyAssignor writes them into its user data (KIP-54)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays.java_orders import computed_map_order
from groupledger.core.arrays.kernels import kernel, run

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import IntArray, LongArray


def user_data_order(start: LongArray, topic: IntArray, hashes: IntArray) -> LongArray:
    """Return the places of the claims of each of M members, topic by topic, in the order of the writer's hash map.

    `start` [M+1]: where each member's claims begin in `topic`, which has the topic of each claim as an index into
    `hashes` (Java's hash code of its name). Places are into `topic`; a member's claims stay between its starts.
    """
    order = np.empty(len(topic), np.int64)
    run(_order, start, topic, hashes, np.full(len(hashes), -1, np.int64), order, cells=len(topic) + len(start))
    return order


@kernel
def _order(start: LongArray, topic: IntArray, hashes: IntArray, place: LongArray, order: LongArray) -> None:
    """Fill `order`. Scratch space, by topic: `place` (-1), which is given back as it was."""
    for member in range(len(start) - 1):
        low, high = start[member], start[member + 1]
        names = np.empty(high - low, np.int32)
        count, again = 0, False
        for at in range(low, high):
            again = place[topic[at]] >= 0
            if not again:
                names[count] = topic[at]
                count += 1
            place[topic[at]] = max(place[topic[at]], 0) + 1
        computed_map_order(hashes, names, count, again)
        free = low
        for each in range(count):
            size = place[names[each]]
            place[names[each]] = free
            free += size
        for at in range(low, high):
            order[place[topic[at]]] = at
            place[topic[at]] += 1
        for each in range(count):
            place[names[each]] = -1
