"""Batches of groups that say who subscribes to what, and nothing else."""

from __future__ import annotations

from itertools import chain

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import GroupBatch


def batch(groups: list[list[list[int]]], topics: list[int]) -> GroupBatch:
    """Groups of members, each with the local topics it subscribes to."""
    members = [topic for group in groups for topic in group]
    count, total = len(members), sum(topics)
    nothing = np.zeros(0, np.int32)
    return GroupBatch(
        member_start=ragged.starts(np.array([len(group) for group in groups])),
        member_hash=np.zeros(count, np.int32),
        member_rank=np.zeros(count, np.int32),
        instance_rank=np.zeros(count, np.int32),
        member_rack=np.zeros(count, np.int32),
        subscription_generation=np.zeros(count, np.int32),
        claim_generation=np.zeros(count, np.int32),
        topic_start=ragged.starts(np.array(topics)),
        topic_hash=np.arange(total, dtype=np.int32),
        topic_rank=np.zeros(total, np.int32),
        topic_partitions=np.zeros(total, np.int32),
        member_subscription=np.arange(count),
        subscription_start=ragged.starts(np.array([len(each) for each in members])),
        subscription_topic=np.array([*chain(*members)], np.int32),
        claim_start=np.zeros(count + 1, np.int64),
        claim_topic=nothing,
        claim_partition=nothing,
    )
