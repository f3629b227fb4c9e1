"""Mode `safe`: a target that the group keeps when it rejoins with what it was given, so that two rounds are enough.

Kafka's general algorithm remembers no target: what waits for its revocation is dealt anew in the second round, and
another partition may move for it, which takes a third. Here the rounds are played on paper first, and where the group
would come to want something else, it wants that from the first round on (docs/decisions, 0026).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core import ragged
from groupledger.core.assignors.outcome import Path
from groupledger.core.assignors.safe import withhold_claimed
from groupledger.core.batch import AssignmentBatch, GroupBatch
from groupledger.core.snapshots import select

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from groupledger.core.batch import IntArray, LongArray

    Assignor = Callable[[GroupBatch], AssignmentBatch]

PLAYED = 8
"""Targets tried in which all is given that nobody else claims. Then less is given, until the group keeps that."""


class MemberAssignments(NamedTuple):
    """A list for each of M members."""

    start: LongArray  # [M+1]
    topic: IntArray  # local topics
    partition: IntArray

    def only(self, kept: NDArray[np.bool_]) -> MemberAssignments:
        """The entries that are `kept`."""
        return MemberAssignments(
            ragged.starts(kept.astype(np.int64))[self.start], self.topic[kept], self.partition[kept]
        )

    def of(self, members: LongArray) -> MemberAssignments:
        """The lists of some members."""
        start, entry = ragged.take(self.start, members)
        return MemberAssignments(start, self.topic[entry], self.partition[entry])

    def replaced(self, members: LongArray, lists: MemberAssignments) -> MemberAssignments:
        """The same with other lists for some members."""
        owner = ragged.owners(self.start)
        stays = ~np.isin(owner, members)
        owner = np.concatenate([owner[stays], members[ragged.owners(lists.start)]])
        order = np.argsort(owner, kind="stable")
        topic = np.concatenate([self.topic[stays], lists.topic])[order]
        partition = np.concatenate([self.partition[stays], lists.partition])[order]
        return MemberAssignments(ragged.starts(np.bincount(owner, minlength=len(self.start) - 1)), topic, partition)

    def within(self, other: MemberAssignments) -> NDArray[np.bool_]:
        """Which entries stand in the other's list of the same member as well."""
        topics = 1 + max(self.topic.max(initial=0), other.topic.max(initial=0))
        partitions = 1 + max(self.partition.max(initial=0), other.partition.max(initial=0))
        shape = len(self.start), topics, partitions
        mine, theirs = (
            np.ravel_multi_index((ragged.owners(each.start), each.topic, each.partition), shape)
            for each in (self, other)
        )
        found: NDArray[np.bool_] = np.isin(mine, theirs)
        return found


def settle_in_two_rounds(
    assignor: Assignor, batch: GroupBatch, answer: AssignmentBatch, *, played: int = 1
) -> AssignmentBatch:
    """The answer, with another for each group that would not keep its target when it rejoins with what it is given.

    Only groups that wait for a revocation are played, and not those of the constrained algorithm, which settle. The
    answer found is one that the assignor gives to a group that owns what is given here.
    """
    waiting = np.flatnonzero(_waits(batch, answer))
    if len(waiting) == 0:
        return answer
    part, member, _ = select(batch, waiting)
    first = taken(answer, waiting, member)
    again = assignor(rejoined(part, assigned_of(first)))
    changed = _changed(part, target_of(first), target_of(again))
    if len(changed) == 0:
        return answer
    rest, within, _ = select(part, changed)
    later = withhold_claimed(rest, taken(again, changed, within))
    found = (
        settle_in_two_rounds(assignor, rest, later, played=played + 1)
        if played < PLAYED
        else offer_less_until_stable(assignor, rest, later)
    )
    return with_lists(answer, member[within], found)


def offer_less_until_stable(assignor: Assignor, batch: GroupBatch, answer: AssignmentBatch) -> AssignmentBatch:
    """An answer that gives less in the first round: only what no later round takes away again.

    Ends: each round on paper gives at least one partition less, and a group that was given nothing gives up nothing.
    """
    given = assigned_of(answer)
    while True:
        again = assignor(rejoined(batch, given))
        kept = given.within(target_of(again))
        if kept.all():
            return _answer(again, assigned=given, target=target_of(again))
        given = given.only(kept)


def rejoined(batch: GroupBatch, given: MemberAssignments) -> GroupBatch:
    """The batch, in which each member claims what it was given, all in one generation."""
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
    """The answer of some groups and their members."""
    few = replace(answer, status=answer.status[groups], path=answer.path[groups])
    return _answer(few, assigned=assigned_of(answer).of(members), target=target_of(answer).of(members))


def with_lists(answer: AssignmentBatch, members: LongArray, other: AssignmentBatch) -> AssignmentBatch:
    """The answer with another's lists for some members."""
    assigned = assigned_of(answer).replaced(members, assigned_of(other))
    return _answer(answer, assigned=assigned, target=target_of(answer).replaced(members, target_of(other)))


def _waits(batch: GroupBatch, answer: AssignmentBatch) -> NDArray[np.bool_]:
    """Groups that are not given all of their target yet, unless the constrained algorithm decided: [G]."""
    less = np.diff(answer.assigned_start) < np.diff(answer.target_start)
    groups = ragged.owners(batch.member_start)[less]
    waits = np.zeros(batch.groups, np.bool_)
    waits[groups] = answer.path[groups] != Path.CONSTRAINED
    return waits


def _changed(batch: GroupBatch, before: MemberAssignments, after: MemberAssignments) -> LongArray:
    """Groups in which some member lacks what it had before."""
    member = ragged.owners(before.start)[~before.within(after)]
    groups: LongArray = np.unique(ragged.owners(batch.member_start)[member])
    return groups


def assigned_of(answer: AssignmentBatch) -> MemberAssignments:
    """What members are given in this round."""
    return MemberAssignments(answer.assigned_start, answer.assigned_topic, answer.assigned_partition)


def target_of(answer: AssignmentBatch) -> MemberAssignments:
    """Where everything is to go."""
    return MemberAssignments(answer.target_start, answer.target_topic, answer.target_partition)


def _answer(answer: AssignmentBatch, *, assigned: MemberAssignments, target: MemberAssignments) -> AssignmentBatch:
    return AssignmentBatch(*assigned, *target, answer.status, answer.path)
