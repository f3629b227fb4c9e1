"""One step of a Streams group's member towards its target (KIP-1071, "Reconciliation"), as in Kafka 4.4: pure.

A member revokes first. Then it gets an active task once nobody else has that, and no other member of its process a
standby of it; a standby task once its process has the task no longer. A task that only changes its role in one member
changes it in one step: the state stays where it is.

Worked example: A has the active tasks 0 and 1, B of another process is to get 1. A's heartbeat is told to revoke 1, the
one after that states 0 alone; then B's next one is answered 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from groupledger.core.protocol.consumer_group.group_member import GroupMember, MemberState
from groupledger.core.protocol.consumer_group.reconciliation import moved, still_owns
from groupledger.core.protocol.consumer_group.tasks import is_standby, other_role
from groupledger.core.protocol.consumer_group.topic_table import TopicIdPartition, TopicIdPartitionSet


def advance_tasks(
    member: GroupMember,
    epoch: int,
    target: TopicIdPartitionSet,
    stated: TopicIdPartitionSet | None,
    members: Iterable[GroupMember],
) -> GroupMember:
    """The member after a heartbeat in which it stated what it owns (None: nothing said of it).

    `members`: all of the group as they were before it, this one among them.
    """
    if member.state is MemberState.STABLE and member.epoch == epoch:
        return member
    revoked = member.state is MemberState.UNREVOKED_PARTITIONS
    if revoked and still_owns(stated, member.pending):
        return member
    holders = holders_of(members)
    kept = {each: since for each, since in member.assigned.items() if each in target}
    waiting = frozenset(each for each in target - kept.keys() if blockers(member, each, holders))
    given = target - kept.keys() - waiting
    demoted = {each for each in given if is_standby(each) and other_role(each) in member.assigned}
    promoted = {each for each in member.assigned if is_standby(each) and other_role(each) in target}
    revocation = {each: since for each, since in member.assigned.items() if each not in kept and each not in promoted}
    if revocation and still_owns(stated, revocation):
        held = {**kept, **dict.fromkeys(demoted, epoch), **_of(member, promoted)}
        now = member.epoch + revoked
        return moved(member, MemberState.UNREVOKED_PARTITIONS, now, held, revocation)
    still = _of(member, {each for each in promoted if other_role(each) not in given})
    state = MemberState.UNRELEASED_PARTITIONS if waiting else MemberState.STABLE
    return moved(member, state, epoch, {**kept, **still, **dict.fromkeys(sorted(given), epoch)}, {})


TaskHolders = Mapping[TopicIdPartition, Sequence[GroupMember]]
"""Who has each task, or has not given it up."""


def holders_of(members: Iterable[GroupMember]) -> TaskHolders:
    """All of a group, by task."""
    found: dict[TopicIdPartition, list[GroupMember]] = {}
    for member in members:
        for each in member.held:
            found.setdefault(each, []).append(member)
    return found


def blockers(member: GroupMember, task: TopicIdPartition, holders: TaskHolders) -> set[str]:
    """Who holds what a member has to wait for before it gets this task of its target: member ids.

    What the member itself still holds counts too, where it was not yet seen to have given it up.
    """
    other = other_role(task)
    found = {each.member_id for each in holders.get(task, ()) if not is_standby(task) or _same_process(each, member)}
    if other not in member.assigned:
        found |= {each.member_id for each in holders.get(other, ()) if _same_process(each, member)}
    return found


def _same_process(one: GroupMember, other: GroupMember) -> bool:
    return one.process_id == other.process_id


def _of(member: GroupMember, tasks: Iterable[TopicIdPartition]) -> dict[TopicIdPartition, int]:
    return {each: member.assigned[each] for each in sorted(tasks)}
