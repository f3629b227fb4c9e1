"""Mode `safe`, for planning: claims that cannot be true are dropped first, so that no defect of Kafka's is met.

Kafka trusts claims: one to a partition that is gone makes it fail or hand out partitions twice, an older one may give
a partition to a member that does not subscribe. What was dropped, and why, is `doubts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core import ragged
from groupledger.core.assignors.outcome import Status
from groupledger.core.batch import AssignmentBatch, GroupBatch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray


class Doubt(IntEnum):
    """Why a claim cannot be true; the first that applies."""

    NONE = 0
    NO_SUCH_PARTITION = 1
    NOT_SUBSCRIBED = 2
    REPEATED = 3  # by the same member
    OLDER = 4  # another member claims it in a higher generation (KIP-792)
    DISPUTED = 5  # another member claims it in the same generation


def assign_safely(
    assignor: Callable[[GroupBatch], AssignmentBatch], batch: GroupBatch, *, cooperative: bool
) -> AssignmentBatch:
    """The assignor's answer without the doubtful claims; a group without members gets none, and no error.

    A cooperative answer still withholds whatever anybody else claims, doubtful or not: nothing is handed over before
    it is given back.
    """
    credible = doubts(batch, cooperative=cooperative) == Doubt.NONE
    answer = assignor(without_claims(batch, credible))
    empty = np.isin(answer.status, (Status.NO_MEMBERS_TO_DIVIDE_BY, Status.NO_MEMBERS_TO_CIRCLE))
    answer = replace(answer, status=np.where(empty, Status.OK, answer.status).astype(np.int32))
    return withhold_claimed(batch, answer) if cooperative else answer


def doubts(batch: GroupBatch, *, cooperative: bool) -> IntArray:
    """A `Doubt` for each of the C claims."""
    member = ragged.owners(batch.claim_start)
    topic = _topic_rows(batch, member, batch.claim_topic)
    doubt = np.zeros(len(member), np.int32)
    there = (batch.claim_partition >= 0) & (batch.claim_partition < batch.topic_partitions[topic])
    doubt[~_subscribed(batch, member, topic)] = Doubt.NOT_SUBSCRIBED
    doubt[~there] = Doubt.NO_SUCH_PARTITION
    left = np.flatnonzero(doubt == Doubt.NONE)
    _, slot = np.unique(_key(topic[left], batch.claim_partition[left]), return_inverse=True)
    doubt[left] = _rivalry(slot, member[left], _generation(batch, cooperative)[member[left]])
    return doubt


def _rivalry(slot: LongArray, member: LongArray, generation: LongArray) -> IntArray:
    """Of claims to real partitions: which yield to another claim to the same slot."""
    doubt = np.zeros(len(slot), np.int32)
    _, first = np.unique(slot * (member.max(initial=0) + 1) + member, return_index=True)
    repeated = np.ones(len(slot), np.bool_)
    repeated[first] = False
    highest = np.full(slot.max(initial=-1) + 1, np.iinfo(np.int64).min)
    np.maximum.at(highest, slot, generation)
    top = (generation == highest[slot]) & ~repeated
    rivals = np.bincount(slot[top], minlength=len(highest))
    doubt[top & (rivals[slot] > 1)] = Doubt.DISPUTED
    doubt[generation < highest[slot]] = Doubt.OLDER
    doubt[repeated] = Doubt.REPEATED
    return doubt


def _generation(batch: GroupBatch, cooperative: bool) -> LongArray:
    """What each member's claims are dated."""
    stated = batch.subscription_generation
    return np.where(cooperative & (stated >= 0), stated, batch.claim_generation).astype(np.int64)


def _subscribed(batch: GroupBatch, member: LongArray, topic: LongArray) -> NDArray[np.bool_]:
    """Whether each member names the topic row in its subscription."""
    start, entry = ragged.take(batch.subscription_start, batch.member_subscription)
    subscriber = ragged.owners(start)
    named = _topic_rows(batch, subscriber, batch.subscription_topic[entry])
    rows = len(batch.topic_hash)
    return np.isin(member * rows + topic, subscriber * rows + named)


def _topic_rows(batch: GroupBatch, member: LongArray, topic: IntArray) -> LongArray:
    """Local topics of members' groups as rows of the batch's topics."""
    group = ragged.owners(batch.member_start)[member]
    return batch.topic_start[group] + topic


def _key(topic: LongArray, partition: IntArray) -> LongArray:
    return (topic << 32) + partition


def without_claims(batch: GroupBatch, kept: NDArray[np.bool_]) -> GroupBatch:
    """The batch with only those of its C claims that are `kept`."""
    before = ragged.starts(kept.astype(np.int64))
    return replace(
        batch,
        claim_start=before[batch.claim_start],
        claim_topic=batch.claim_topic[kept],
        claim_partition=batch.claim_partition[kept],
    )


def withhold_claimed(batch: GroupBatch, answer: AssignmentBatch) -> AssignmentBatch:
    """The target without what a member gains while another claims it."""
    owner = ragged.owners(answer.target_start)
    claimant = ragged.owners(batch.claim_start)
    gets = _key(_topic_rows(batch, owner, answer.target_topic), answer.target_partition)
    claimed = _key(_topic_rows(batch, claimant, batch.claim_topic), batch.claim_partition)
    _, slot = np.unique(np.concatenate([gets, claimed]), return_inverse=True)
    mine, theirs = slot[: len(gets)], slot[len(gets) :]
    own = np.isin(mine * batch.members + owner, theirs * batch.members + claimant)
    given = own | ~np.isin(mine, theirs)
    before = ragged.starts(given.astype(np.int64))
    return replace(
        answer,
        assigned_start=before[answer.target_start],
        assigned_topic=answer.target_topic[given],
        assigned_partition=answer.target_partition[given],
    )
