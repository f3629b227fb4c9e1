"""Tell how certain a recomputed `uniform` target is, if the group was read from `__consumer_offsets`.

The log shows members, subscriptions and targets in order. How large the group's table once was, and which member
joined before which, it shows only if it is uncompacted since the coordinator loaded the group. Otherwise the order of
two members is unknown only if they share a bucket of the HashMap that the assignor iterates over *and* a slot of the
smallest TimelineHashMap that fits the group: slots are upper bits of one hash, so a larger table never changes the
order of two members in different slots. Without such a pair the answer is exact. `range` depends on none of this.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.assignors.server.order import after_changes, copy_size
from groupledger.core.assignors.server.spec import ServerBatch
from groupledger.core.assignors.server.walks import ServerGroupView, find_paths, group_at
from groupledger.core.batch import NONE
from groupledger.core.javaorder import LEAST_CAPACITY, TREE, spread
from groupledger.core.kernels import kernel, run

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray

    Flags = NDArray[np.bool_] | Sequence[bool]


class TargetCertainty(Enum):
    """What a recomputed target can promise, given topic ids and partition counts of the right moment."""

    EXACT = "exact"
    UNLESS_NEIGHBOURS_COMPETE = "exact unless bucket neighbours compete"


def certainty(name: str, batch: ServerBatch, history_known: Flags, joining_known: Flags) -> list[TargetCertainty]:
    """Return the certainty of each group's target.

    `history_known`: all joins and leaves since the load were read. `joining_known`: the member whose heartbeat caused
    the assignment was read as well; if False, the last member may or may not have been in the table already.
    """
    groups = len(batch.joining)
    doubtful = np.zeros(groups, np.bool_)
    if name == "uniform":
        path = np.zeros(groups, np.int32)
        cells = 4 * (len(batch.member_hash) + len(batch.subscription_topic))
        run(find_paths, batch, path, cells=cells)
        known, cause = np.asarray(history_known, np.bool_), np.asarray(joining_known, np.bool_)
        run(find_doubt, batch, path, known, cause, doubtful, cells=cells)
    return [
        TargetCertainty.UNLESS_NEIGHBOURS_COMPETE if doubt else TargetCertainty.EXACT for doubt in doubtful.tolist()
    ]


@kernel
def find_doubt(
    b: ServerBatch,
    path: IntArray,
    history_known: NDArray[np.bool_],
    joining_known: NDArray[np.bool_],
    doubtful: NDArray[np.bool_],
) -> None:
    """Flag each group whose answer may depend on an order that the log does not show."""
    for index in range(len(doubtful)):
        g = group_at(b, index)
        if g.members < 2:
            continue
        buckets = _buckets(g)
        if not history_known[index]:
            settled = g.members if joining_known[index] and g.joining == NONE else g.members - 1
            doubtful[index] = _share_bucket_and_slot(g, buckets, settled)
        if not joining_known[index]:
            last = g.members - 1
            for member in range(last):
                doubtful[index] = doubtful[index] or buckets[member] == buckets[last]
            if path[index] == 1:
                doubtful[index] = doubtful[index] or _topics_compete(g, last)


@kernel
def _buckets(g: ServerGroupView) -> IntArray:
    """Return each member's bucket in the HashMap of all members; one bucket for all if a tree decides."""
    buckets = np.zeros(g.members, np.int32)
    capacity = after_changes(g.member_hash, np.ones(g.members, np.int32), g.members, LEAST_CAPACITY)
    if capacity != TREE:
        for member in range(g.members):
            buckets[member] = spread(g.member_hash[member]) & (capacity - 1)
    return buckets


@kernel
def _share_bucket_and_slot(g: ServerGroupView, buckets: IntArray, settled: int) -> bool:
    """Return whether two members share a bucket and a slot of the smallest table for `settled` members."""
    bits = 1
    while 3 * settled > 4 << bits:
        bits += 1
    keys = np.empty(g.members, np.int64)
    for member in range(g.members):
        slot = np.int64(1) << 31 if member == g.joining else g.timeline_key[member] >> (31 - bits)
        keys[member] = (np.int64(buckets[member]) << 32) | slot
    return _has_equal(keys)


@kernel
def _topics_compete(g: ServerGroupView, member: int) -> bool:
    """Return whether the order of a member's own request may matter: two topics share buckets, by name and by id."""
    first = g.subscription_start[member]
    count = g.subscription_start[member + 1] - first
    topics = g.subscription_topic[first : first + count]
    ones = np.ones(count, np.int32)
    by_name = after_changes(g.name_hash[topics], ones, count, copy_size(count))
    by_id = after_changes(g.id_hash[topics], ones, count, copy_size(count))
    if by_name == TREE or by_id == TREE:
        return True
    keys = np.empty(count, np.int64)
    for at in range(count):
        keys[at] = np.int64(spread(g.name_hash[topics[at]]) & (by_name - 1)) << 32
        keys[at] |= spread(g.id_hash[topics[at]]) & (by_id - 1)
    return _has_equal(keys)


@kernel
def _has_equal(keys: LongArray) -> bool:
    keys.sort()
    for at in range(1, len(keys)):
        if keys[at] == keys[at - 1]:
            return True
    return False
