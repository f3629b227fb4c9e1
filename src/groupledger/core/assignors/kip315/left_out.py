"""List what a stream join leaves unassigned, as rows with the reason (KIP-315, "Assignment Strategy" 1 and 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core import ragged
from groupledger.core.assignors.group import arrays
from groupledger.core.assignors.kip315.selection import eligible_counts
from groupledger.core.batch import AssignmentBatch, GroupBatch
from groupledger.core.kernels import run
from groupledger.core.step import Reason

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray


class LeftOut(NamedTuple):
    """Rows by group, local topic, partition; `beyond` distinguishes the two reasons."""

    group: LongArray
    topic: LongArray
    partition: LongArray
    beyond: NDArray[np.bool_]

    def reason(self, row: int) -> Reason:
        """Return the reason of one row."""
        return Reason.BEYOND_LEAST_COUNT if self.beyond[row] else Reason.OWNER_NOT_SUBSCRIBED


def left_out(batch: GroupBatch, answer: AssignmentBatch) -> LeftOut:
    """Return the partitions of subscribed topics that `answer` leaves without an owner."""
    eligible = np.zeros(batch.groups, np.int32)
    run(eligible_counts, arrays(batch), eligible, cells=len(batch.subscription_topic))
    group_of_member = ragged.owners(batch.member_start)
    counts = np.where(_subscribed(batch, group_of_member), np.maximum(batch.topic_partitions, 0), 0)
    first = ragged.starts(counts.astype(np.int64))
    member = ragged.owners(answer.assigned_start)
    row = batch.topic_start[group_of_member[member]] + answer.assigned_topic
    free = np.ones(int(first[-1]), np.bool_)
    free[first[row] + answer.assigned_partition] = False
    slot = np.flatnonzero(free)
    topic = ragged.owners(first)[slot]
    partition = slot - first[topic]
    group = ragged.owners(batch.topic_start)[topic]
    return LeftOut(group, topic - batch.topic_start[group], partition, partition >= eligible[group])


def _subscribed(batch: GroupBatch, group_of_member: LongArray) -> IntArray:
    """Return [T]: 1 for topics that a member of their group subscribes to."""
    start, entry = ragged.take(batch.subscription_start, batch.member_subscription)
    group = group_of_member[ragged.owners(start)]
    subscribed = np.zeros(len(batch.topic_partitions), np.int32)
    subscribed[batch.topic_start[group] + batch.subscription_topic[entry]] = 1
    return subscribed
