"""One step of a Streams group's member towards its target (KIP-1071, "Reconciliation"), as in Kafka 4.4: pure.

A member revokes first. Then it gets an active task once nobody else has that, and no other member of its process a
standby of it; a standby task once its process has the task no longer. A task that only changes its role in one member
changes it in one step: the state stays where it is.

Worked example: A has the active tasks 0 and 1, B of another process is to get 1. A's heartbeat is told to revoke 1, the
one after that states 0 alone; then B's next one is answered 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from groupledger.core.protocol.consumer_group.group_member import GroupMember, MemberState
from groupledger.core.protocol.consumer_group.tasks import is_standby, other_role
from groupledger.core.protocol.consumer_group.topic_table import IdPartitions, TopicIdPartition


def advance_tasks(
    member: GroupMember,
    epoch: int,
    target: IdPartitions,
    stated: IdPartitions | None,
    members: Iterable[GroupMember],
) -> GroupMember:
    """The member after a heartbeat in which it stated what it owns (None: nothing said of it).

    `members`: all of the group as they were before it, this one among them.
    """
    if member.state is MemberState.STABLE and member.epoch == epoch:
        return member
    revoked = member.state is MemberState.UNREVOKED_PARTITIONS
    if revoked and _owns(stated, member.pending):
        return member
    known = list(members)
    kept = {each: since for each, since in member.assigned.items() if each in target}
    waiting = frozenset(each for each in target - kept.keys() if blockers(member, each, known))
    given = target - kept.keys() - waiting
    demoted = {each for each in given if is_standby(each) and other_role(each) in member.assigned}
    promoted = {each for each in member.assigned if is_standby(each) and other_role(each) in target}
    revocation = {each: since for each, since in member.assigned.items() if each not in {*kept, *promoted}}
    if revocation and _owns(stated, revocation):
        held = {**kept, **dict.fromkeys(demoted, epoch), **_of(member, promoted)}
        now = member.epoch + revoked
        return _moved(member, MemberState.UNREVOKED_PARTITIONS, now, held, revocation)
    still = _of(member, {each for each in promoted if other_role(each) not in given})
    state = MemberState.UNRELEASED_PARTITIONS if waiting else MemberState.STABLE
    return _moved(member, state, epoch, {**kept, **still, **dict.fromkeys(sorted(given), epoch)}, {})


def blockers(member: GroupMember, task: TopicIdPartition, members: Iterable[GroupMember]) -> list[str]:
    """Who holds what a member has to wait for before it gets this task of its target: member ids.

    What the member itself still holds counts too, where it was not yet seen to have given it up.
    """
    other, becomes_active = other_role(task), not is_standby(task)

    def blocks(each: GroupMember) -> bool:
        same_process = each.process_id == member.process_id
        if task in each.held and (becomes_active or same_process):
            return True
        return same_process and other in each.held and other not in member.assigned

    return [each.member_id for each in members if blocks(each)]


def _of(member: GroupMember, tasks: Iterable[TopicIdPartition]) -> dict[TopicIdPartition, int]:
    return {each: member.assigned[each] for each in sorted(tasks)}


def _owns(stated: IdPartitions | None, tasks: Mapping[TopicIdPartition, int]) -> bool:
    """Whether a member still has some of these, as far as its heartbeat says."""
    return stated is None or not stated.isdisjoint(tasks)


def _moved(
    member: GroupMember,
    state: MemberState,
    epoch: int,
    assigned: Mapping[TopicIdPartition, int],
    pending: Mapping[TopicIdPartition, int],
) -> GroupMember:
    return replace(member, state=state, epoch=epoch, previous_epoch=member.epoch, assigned=assigned, pending=pending)
