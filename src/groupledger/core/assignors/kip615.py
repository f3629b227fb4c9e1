"""`constrained-cooperative-sticky`: the assignor of KIP-615, which was rejected; Kafka's own adopted its algorithm.

Built from the KIP's pseudo-code ("Proposed Changes"). It keeps what the KIP's javadoc states: counts differ by one at
most, the assignment stays the same if nothing changed, and partitions in transfer are left out of the answer until
they are revoked. For points on which the KIP is silent, see decision 0021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import GroupBatch, IntArray, LongArray
from groupledger.core.arrays.kernels import kernel
from groupledger.core.assignors.answer import AssignmentBatch, answer
from groupledger.core.assignors.claims import slots, topics_by_name
from groupledger.core.assignors.group import Arrays, GroupView, Status, TargetLists, clear, group_at, sort_by_rank
from groupledger.core.assignors.safe import Doubt, doubts, generations, withhold_claimed, without_claims

if TYPE_CHECKING:
    from numpy.typing import NDArray


OK = int(Status.OK)
SUBSCRIPTIONS_DIFFER = int(Status.SUBSCRIPTIONS_DIFFER)
NOBODY = -1


class Kip615Plan(NamedTuple):
    """One group while it is computed. Partitions are numbered in the KIP's order: t0-0, t1-0, t2-0, t0-1, t1-1, .."""

    members: IntArray  # by member id
    size: LongArray  # [members], current number of partitions
    owner: IntArray  # [partitions]
    gained: NDArray[np.bool_]  # [partitions], new to its owner
    topic: IntArray  # [partitions]
    number: IntArray  # [partitions]


def assign(batch: GroupBatch) -> AssignmentBatch:
    """Assign every group whose members all subscribe to the same topics; others get SUBSCRIPTIONS_DIFFER.

    Claims that cannot be true are ignored, as are all claims of a member whose generation is not the group's highest.
    Even so, no partition is given to a member while another claims it.
    """
    credible = doubts(batch, cooperative=True) == Doubt.NONE
    credible &= _is_current(batch)[ragged.owners(batch.claim_start)]
    return withhold_claimed(batch, answer(constrained_groups, without_claims(batch, credible), None))


def _is_current(batch: GroupBatch) -> NDArray[np.bool_]:
    """Return whether each member's claims have the highest generation in its group (no generation is the lowest)."""
    dated = generations(batch, cooperative=True)
    group = ragged.owners(batch.member_start)
    highest = np.full(batch.groups, -1, np.int64)
    np.maximum.at(highest, group, dated)
    return np.asarray(dated == highest[group])


@kernel
def constrained_groups(b: Arrays, cooperative: bool, out: TargetLists, status: IntArray, path: IntArray) -> None:
    """Assign every group of the batch into `out`; all claims must be credible."""
    for index in range(len(b.member_start) - 1):
        g = group_at(b, index)
        clear(g, out)
        status[index] = OK if _same_topics(g) else SUBSCRIPTIONS_DIFFER
        if status[index] == OK and g.members > 0:
            _assign(g, out)


@kernel
def _same_topics(g: GroupView) -> bool:
    """Return whether all members name the same topics, in any order."""
    named_by = np.full(g.topics, NOBODY, np.int32)
    for member in range(g.members):
        subscription = g.subscription[member]
        if member > 0 and subscription == g.subscription[member - 1]:
            for topic in range(g.topics):
                named_by[topic] += 1 if named_by[topic] == member - 1 else 0
            continue
        for entry in range(g.subscription_start[subscription], g.subscription_start[subscription + 1]):
            topic = g.topics_of[entry]
            if named_by[topic] < member - 1:
                return False
            named_by[topic] = member
        for topic in range(g.topics):
            if named_by[topic] == member - 1 and member > 0:
                return False
    return True


@kernel
def _assign(g: GroupView, out: TargetLists) -> None:
    """Assign 7 partitions over 3 members -> 3, 2, 2; the extra one stays with its owners, else goes by member id."""
    plan = _plan(g)
    floor = len(plan.owner) // g.members
    over = _keep_owned(g, plan, floor)
    taken = _fill_to_floor(plan, floor)
    if taken < len(plan.owner):
        _deal_rest(plan, floor, taken)
    else:
        _steal(plan, floor, over)
    _write(plan, g, out)


@kernel
def _plan(g: GroupView) -> Kip615Plan:
    members = np.arange(g.members).astype(np.int32)
    sort_by_rank(g.member_rank, members, g.members)
    base = slots(g)
    topics = topics_by_name(g, base)
    total = base[g.topics]
    topic = np.empty(total, np.int32)
    number = np.empty(total, np.int32)
    at = 0
    partition = 0
    while at < total:
        for each in topics:
            if partition < g.topic_partitions[each]:
                topic[at] = each
                number[at] = partition
                at += 1
        partition += 1
    owner = np.full(total, NOBODY, np.int32)
    return Kip615Plan(members, np.zeros(g.members, np.int64), owner, np.zeros(total, np.bool_), topic, number)


@kernel
def _keep_owned(g: GroupView, plan: Kip615Plan, floor: int) -> LongArray:
    """Let members keep their first partitions: all below the floor, else floor or ceiling. Return who is above it."""
    claimant = _claimants(g, plan)
    owned = np.zeros(g.members, np.int64)
    for at in range(len(claimant)):
        if claimant[at] != NOBODY:
            owned[claimant[at]] += 1
    ceiling = floor + (1 if len(plan.owner) % g.members > 0 else 0)
    for at in range(len(claimant)):
        member = claimant[at]
        if member != NOBODY and plan.size[member] < (floor if owned[member] == floor else ceiling):
            plan.owner[at] = member
            plan.size[member] += 1
    over = np.empty(g.members, np.int64)
    count = 0
    for member in plan.members:
        if plan.size[member] > floor:
            over[count] = member
            count += 1
    return over[:count]


@kernel
def _claimants(g: GroupView, plan: Kip615Plan) -> IntArray:
    """Return the member that claims each of [partitions], or NOBODY."""
    base = slots(g)
    claimant_of = np.full(len(plan.owner), NOBODY, np.int32)
    for member in range(g.members):
        for claim in range(g.claim_start[member], g.claim_start[member + 1]):
            claimant_of[base[g.claim_topic[claim]] + g.claim_partition[claim]] = member
    claimants = np.empty(len(plan.owner), np.int32)
    for at in range(len(claimants)):
        claimants[at] = claimant_of[base[plan.topic[at]] + plan.number[at]]
    return claimants


@kernel
def _fill_to_floor(plan: Kip615Plan, floor: int) -> int:
    """Give each member the first free partitions. Return the first partition that is still free, or their number."""
    at = 0
    for member in plan.members:
        while plan.size[member] < floor:
            at = _next_free(plan, at)
            if at == len(plan.owner):
                return at
            _give(plan, at, member)
    return _next_free(plan, at)


@kernel
def _steal(plan: Kip615Plan, floor: int, over: LongArray) -> None:
    """Once nothing is free, give each member below the floor the last partition of the next member above it."""
    last = np.full(len(plan.members), NOBODY, np.int64)
    for at in range(len(plan.owner)):
        last[plan.owner[at]] = at
    robbed = 0
    short = 1
    while short > 0:
        short = 0
        for member in plan.members:
            if plan.size[member] < floor:
                victim = over[robbed]
                robbed += 1
                plan.size[victim] -= 1
                _give(plan, last[victim], member)
                short += floor - plan.size[member]


@kernel
def _deal_rest(plan: Kip615Plan, floor: int, at: int) -> None:
    """Deal what is free beyond all floors: one each, by member id, to members still at the floor."""
    for member in plan.members:
        if plan.size[member] == floor and at < len(plan.owner):
            _give(plan, at, member)
            at = _next_free(plan, at)


@kernel
def _next_free(plan: Kip615Plan, at: int) -> int:
    while at < len(plan.owner) and plan.owner[at] != NOBODY:
        at += 1
    return at


@kernel
def _give(plan: Kip615Plan, at: int, member: int) -> None:
    plan.owner[at] = member
    plan.gained[at] = True
    plan.size[member] += 1


@kernel
def _write(plan: Kip615Plan, g: GroupView, out: TargetLists) -> None:
    """Write each list: what was kept, then what is new, both in the order of the partitions."""
    start = out.start[g.first :]
    for member in range(g.members):
        start[member + 1] = start[member] + plan.size[member]
    to = start[: g.members].copy()
    for new in (False, True):
        for at in range(len(plan.owner)):
            if plan.gained[at] == new:
                member = plan.owner[at]
                out.topic[to[member]] = plan.topic[at]
                out.partition[to[member]] = plan.number[at]
                to[member] += 1
