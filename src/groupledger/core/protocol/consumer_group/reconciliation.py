"""One step of a member towards its target (KIP-848, "Member state machine"): pure, as `core.step` is for clients.

Worked example: A holds t-0 and t-1 in epoch 2 and is to hold t-0 in epoch 3. Its heartbeat states nothing: it stays in
epoch 2 and has to revoke t-1. Its next one states t-0: it is in epoch 3, and t-1 is free.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from groupledger.core.assignors.server.group import TopicId
from groupledger.core.protocol.consumer_group.group_member import GroupMember, MemberState
from groupledger.core.protocol.consumer_group.topic_table import TopicIdPartition, TopicIdPartitionSet


class Goal(NamedTuple):
    """Where a member is to get: its target, the epoch of that, the topics that it subscribes to and that exist."""

    epoch: int
    target: TopicIdPartitionSet
    subscribed: frozenset[TopicId]


def advance(
    member: GroupMember,
    goal: Goal,
    stated: TopicIdPartitionSet | None,
    held_by_others: TopicIdPartitionSet,
    *,
    subscription_changed: bool = False,
) -> GroupMember:
    """The member after a heartbeat in which it stated what it owns (None: nothing said of it).

    A member that still owns what it has to revoke stays as it is; one that changed its subscription gives up the topics
    that it left even where its target is the same.
    """
    reconciled = member.state is MemberState.STABLE and member.epoch == goal.epoch
    waits = member.state is MemberState.UNREVOKED_PARTITIONS and still_owns(stated, member.pending)
    if not reconciled and not waits:
        return _next(member, goal, stated, held_by_others)
    return _without_left_topics(member, goal, stated) if subscription_changed else member


def _next(
    member: GroupMember, goal: Goal, stated: TopicIdPartitionSet | None, held_by_others: TopicIdPartitionSet
) -> GroupMember:
    """Revoke first; only then the target's epoch, and what is free of the target."""
    wanted = {each for each in goal.target if each.topic_id in goal.subscribed}
    kept = {each: epoch for each, epoch in member.assigned.items() if each in wanted}
    revoked = {each: epoch for each, epoch in member.assigned.items() if each not in wanted}
    if revoked and still_owns(stated, revoked):
        return moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, revoked)
    missing = wanted - kept.keys()
    free = sorted(missing - held_by_others)
    state = MemberState.STABLE if len(free) == len(missing) else MemberState.UNRELEASED_PARTITIONS
    return moved(member, state, goal.epoch, {**kept, **dict.fromkeys(free, goal.epoch)}, {})


def _without_left_topics(member: GroupMember, goal: Goal, stated: TopicIdPartitionSet | None) -> GroupMember:
    """Same epoch; partitions of topics that it left are to be revoked, unless they are already."""
    left = {each: epoch for each, epoch in member.assigned.items() if each.topic_id not in goal.subscribed}
    if not left:
        return member
    kept = {each: epoch for each, epoch in member.assigned.items() if each not in left}
    pending = {**member.pending, **left}
    if still_owns(stated, pending):
        return moved(member, MemberState.UNREVOKED_PARTITIONS, member.epoch, kept, pending)
    return moved(member, member.state, member.epoch, kept, member.pending)


def still_owns(stated: TopicIdPartitionSet | None, partitions: Mapping[TopicIdPartition, int]) -> bool:
    """Whether a member still has some of these, as far as its heartbeat says."""
    return stated is None or not stated.isdisjoint(partitions)


def moved(
    member: GroupMember,
    state: MemberState,
    epoch: int,
    assigned: Mapping[TopicIdPartition, int],
    pending: Mapping[TopicIdPartition, int],
) -> GroupMember:
    """The member after a step; the epoch before it is its previous one."""
    return replace(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, pending=pending)
