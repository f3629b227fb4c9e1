"""Mode `safe`, for planning: drop claims that cannot be true, and make groups settle in two rounds.

Kafka trusts claims: a claim to a partition that is gone makes it fail or hand out partitions twice; an older claim may
give a partition to a member that does not subscribe. `doubts` says what was dropped, and why.

Kafka's general algorithm remembers no target: partitions that wait for a revocation are dealt again in the second
round, which may move another partition and so need a third round. `settle_in_two_rounds` simulates the rounds first.
If the group would change its target later, it gets that later target from the first round on (decision 0026).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import GroupBatch, IntArray, LongArray
from groupledger.core.arrays.ragged import MemberAssignments, MemberSlots, Naming, Topics, number
from groupledger.core.arrays.snapshots import Subscribed, select, with_members
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.group import Path, Status
from groupledger.core.rebalance.step import withhold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Assignor = Callable[[GroupBatch], AssignmentBatch]

PLAYED = 8
"""Targets tried that give out everything nobody else claims. Then less is offered, until the group keeps it."""


def among_subscribers(assignor: Assignor) -> Assignor:
    """Return the assignor, asked without the members whose subscription names no topic: they are assigned nothing.

    Kafka's sticky assignors pass over such members when they compare subscriptions, if they come first, and then give
    them partitions (KIP-429, steps 3.3 and 3.4: such a member never reads them, and would join again for ever).
    """

    def assign(batch: GroupBatch) -> AssignmentBatch:
        named = np.diff(batch.subscription_start)[batch.member_subscription] > 0
        if named.all():
            return assignor(batch)
        start = np.concatenate(([0], np.cumsum(named)))[batch.member_start]
        answer = assignor(with_members(batch, np.flatnonzero(named), start))
        return replace(answer, assigned=_spread(answer.assigned, named), target=_spread(answer.target, named))

    return assign


def _spread(lists: MemberAssignments, named: NDArray[np.bool_]) -> MemberAssignments:
    """Return the lists of all members from those of the `named` members; the others' lists are empty."""
    length = np.zeros(len(named), np.int64)
    length[named] = np.diff(lists.start)
    return replace(lists, start=ragged.starts(length))


class Doubt(IntEnum):
    """Why a claim cannot be true; the first reason that applies."""

    NONE = 0
    NO_SUCH_PARTITION = 1
    NOT_SUBSCRIBED = 2
    REPEATED = 3  # by the same member
    OLDER = 4  # another member claims it in a higher generation (KIP-792)
    DISPUTED = 5  # another member claims it in the same generation


def assign_safely(assignor: Assignor, batch: GroupBatch, *, cooperative: bool) -> AssignmentBatch:
    """Return the assignor's answer without the doubtful claims; a group without members gets no lists and no error.

    A cooperative answer still withholds whatever another member claims, doubtful or not: nothing is handed over before
    it is revoked.
    """
    credible = doubts(batch, cooperative=cooperative) == Doubt.NONE
    answer = assignor(without_claims(batch, credible))
    empty = np.isin(answer.status, (Status.NO_MEMBERS_TO_DIVIDE_BY, Status.NO_MEMBERS_TO_CIRCLE))
    answer = replace(answer, status=np.where(empty, Status.OK, answer.status).astype(np.int32))
    return withhold_claimed(batch, answer) if cooperative else answer


def doubts(batch: GroupBatch, *, cooperative: bool) -> IntArray:
    """Return a `Doubt` for each of the C claims."""
    member = ragged.owners(batch.claim_start)
    topic = _topic_rows(batch, member, batch.claim_topic)
    doubt = np.zeros(len(member), np.int32)
    there = (batch.claim_partition >= 0) & (batch.claim_partition < batch.topic_partitions[topic])
    doubt[~Subscribed(batch).names(member, topic)] = Doubt.NOT_SUBSCRIBED
    doubt[~there] = Doubt.NO_SUCH_PARTITION
    left = np.flatnonzero(doubt == Doubt.NONE)
    _, slot = np.unique((topic[left] << 32) + batch.claim_partition[left], return_inverse=True)
    doubt[left] = _rivalry(slot, member[left], generations(batch, cooperative=cooperative)[member[left]])
    return doubt


def _rivalry(slot: LongArray, member: LongArray, generation: LongArray) -> IntArray:
    """Return the `Doubt` of each claim to an existing partition: REPEATED, DISPUTED or OLDER."""
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


def generations(batch: GroupBatch, *, cooperative: bool) -> LongArray:
    """Return the generation of each member's claims: of its subscription if cooperative, else of its user data."""
    stated = batch.subscription_generation
    return np.where(cooperative & (stated >= 0), stated, batch.claim_generation).astype(np.int64)


def _topic_rows(batch: GroupBatch, member: LongArray, topic: IntArray) -> LongArray:
    """Convert local topics of members' groups to rows of the batch's topics."""
    group = ragged.owners(batch.member_start)[member]
    return batch.topic_start[group] + topic


def without_claims(batch: GroupBatch, kept: NDArray[np.bool_]) -> GroupBatch:
    """Return the batch with only those of its C claims that are `kept`."""
    before = ragged.starts(kept.astype(np.int64))
    return replace(
        batch,
        claim_start=before[batch.claim_start],
        claim_topic=batch.claim_topic[kept],
        claim_partition=batch.claim_partition[kept],
    )


def withhold_claimed(batch: GroupBatch, answer: AssignmentBatch) -> AssignmentBatch:
    """Return the target without what a member gains while another claims it (KIP-429, step 2.4)."""
    target, claimant = answer.target, ragged.owners(batch.claim_start)
    gets = Naming(_topic_rows(batch, target.member, target.topic), target.partition)
    claimed = Naming(_topic_rows(batch, claimant, batch.claim_topic), batch.claim_partition)
    rows = len(batch.topic_hash)
    topics = Topics(ragged.owners(batch.topic_start), batch.topic_partitions, np.zeros(rows, bool), np.ones(rows, bool))
    slots, (mine, theirs) = number(topics, [gets, claimed])
    claims, wanted = MemberSlots(batch.claim_start, theirs), MemberSlots(target.start, mine)
    given = withhold(claims, wanted, slots, generations(batch, cooperative=True))
    first = batch.topic_start[slots.group[given.slot]]
    topic = (slots.topic[given.slot] - first).astype(np.int32)
    return replace(answer, assigned=MemberAssignments(given.start, topic, slots.partition[given.slot]))


def settle_in_two_rounds(
    assignor: Assignor, batch: GroupBatch, answer: AssignmentBatch, *, played: int = 1
) -> AssignmentBatch:
    """Return the answer, replaced in each group that would change its target when it rejoins with what it is given.

    Simulates only groups that wait for a revocation, except those of the constrained algorithm, which always settle.
    The replacement is an answer that the assignor gives to a group that owns what is given here.
    """
    waiting = np.flatnonzero(_waits(batch, answer))
    if len(waiting) == 0:
        return answer
    part, member, _ = select(batch, waiting)
    first = taken(answer, waiting, member)
    again = assignor(rejoined(part, first.assigned))
    changed = _changed(part, first.target, again.target)
    if len(changed) == 0:
        return answer
    rest, within, _ = select(part, changed)
    later = withhold_claimed(rest, taken(again, changed, within))
    found = (
        settle_in_two_rounds(assignor, rest, later, played=played + 1)
        if played < PLAYED
        else offer_less_until_stable(assignor, rest, later)
    )
    assigned = answer.assigned.replaced(member[within], found.assigned)
    return replace(answer, assigned=assigned, target=answer.target.replaced(member[within], found.target))


def offer_less_until_stable(assignor: Assignor, batch: GroupBatch, answer: AssignmentBatch) -> AssignmentBatch:
    """Return an answer that gives less in the first round: only what no later round takes away again.

    Terminates: each simulated round gives at least one partition less, and a group that got nothing loses nothing.
    """
    given = answer.assigned
    while True:
        again = assignor(rejoined(batch, given))
        kept = given.within(again.target)
        if kept.all():
            return replace(again, assigned=given)
        given = given.only(kept)


def rejoined(batch: GroupBatch, given: MemberAssignments) -> GroupBatch:
    """Return the batch in which each member claims what it was given, all in one generation."""
    one = np.zeros(batch.members, np.int32)
    return replace(
        batch,
        subscription_generation=one,
        claim_generation=one,
        claim_start=given.start,
        claim_topic=given.topic,
        claim_partition=given.partition,
    )


def taken(answer: AssignmentBatch, groups: LongArray, members: LongArray) -> AssignmentBatch:
    """Return the answer of some groups and their members."""
    assigned, target = answer.assigned.of(members), answer.target.of(members)
    return AssignmentBatch(assigned, target, answer.status[groups], answer.path[groups])


def _waits(batch: GroupBatch, answer: AssignmentBatch) -> NDArray[np.bool_]:
    """Mark groups, [G], that do not yet get all of their target, unless the constrained algorithm decided."""
    less = np.diff(answer.assigned.start) < np.diff(answer.target.start)
    groups = ragged.owners(batch.member_start)[less]
    waits = np.zeros(batch.groups, np.bool_)
    waits[groups] = answer.path[groups] != Path.CONSTRAINED
    return waits


def _changed(batch: GroupBatch, before: MemberAssignments, after: MemberAssignments) -> LongArray:
    """Return the groups in which some member lacks a partition that it had before."""
    member = before.member[~before.within(after)]
    groups: LongArray = np.unique(ragged.owners(batch.member_start)[member])
    return groups
