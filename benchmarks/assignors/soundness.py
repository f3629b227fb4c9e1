"""What must hold of an answer that no peer gives: Kafka's Java does not finish the group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from groupledger.core.arrays.batch import GroupBatch
    from groupledger.core.assignors.answer import AssignmentBatch


def sound(batch: GroupBatch, answer: AssignmentBatch) -> bool:
    """Of a batch of one group: each partition of a subscribed topic has one owner, who subscribes to the topic; and
    no subscriber of a topic has two partitions less than one who owns any of it.
    """
    members, topics = len(batch.member_rank), len(batch.topic_partitions)
    size = np.diff(answer.target.start)
    owner = np.repeat(np.arange(members), size)
    subscribed = np.zeros((members, topics), np.bool_)
    for member, row in enumerate(batch.member_subscription.tolist()):
        subscribed[
            member, batch.subscription_topic[batch.subscription_start[row] : batch.subscription_start[row + 1]]
        ] = True
    base = np.concatenate([[0], np.cumsum(batch.topic_partitions, dtype=np.int64)])
    owners = np.bincount(base[answer.target.topic] + answer.target.partition, minlength=base[-1])
    wanted = np.repeat(subscribed.any(axis=0), batch.topic_partitions)
    least = np.where(subscribed, size[:, None], np.iinfo(np.int64).max).min(axis=0)
    return bool(
        np.array_equal(owners, wanted)
        and subscribed[owner, answer.target.topic].all()
        and (size[owner] <= least[answer.target.topic] + 1).all()
    )
