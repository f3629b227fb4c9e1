"""Members of the classic protocol in a consumer group: the coordinator speaks JoinGroup, SyncGroup, Heartbeat to them.

They are assigned by the server-side assignor as all others are, have no leader, and the generation that they are told
is their member epoch. What they do on their side is `core.protocol.consumer`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from dataclasses import replace
from typing import Any

from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.callbacks import Call
from groupledger.core.protocol.consumer_group.coordinator import ConsumerGroup
from groupledger.core.protocol.consumer_group.group_member import MemberState
from groupledger.core.protocol.consumer_group.heartbeat import HeartbeatRequest, Refusal
from groupledger.core.protocol.consumer_group.play import Play
from groupledger.core.protocol.consumer_group.process import Backoff, Process, Steps
from groupledger.core.protocol.consumer_group.seats import static_seat
from groupledger.core.protocol.consumer_group.settings import RETRY_BACKOFF_MS


def needs_to_join(group: ConsumerGroup, process: Process, now_ms: int) -> Refusal | None:
    """What a classic heartbeat is answered: nothing, or the error after which a member joins (again).

    It is called back when the group moved on, when it has to revoke, and when all that it waits for is free.
    """
    member = group.members.get(process.member_id or "")
    if member is None:
        seat = static_seat(group.members, process.instance_id)
        return Refusal.UNKNOWN_MEMBER_ID if seat is None else Refusal.FENCED_INSTANCE_ID
    if member.epoch != process.generation:
        return Refusal.ILLEGAL_GENERATION
    group.heard_ms[member.member_id] = now_ms
    waits = member.state is MemberState.UNRELEASED_PARTITIONS
    freed = waits and all(group.holder(each) is None for each in group.missing(member))
    if member.epoch < group.epoch or member.state is MemberState.UNREVOKED_PARTITIONS or freed:
        group.revoking_since_ms.setdefault(member.member_id, now_ms)
        return Refusal.REBALANCE_IN_PROGRESS
    return None


def heartbeat_during_call(group: ConsumerGroup, process: Process, now_ms: int) -> None:
    """Send a heartbeat during a call. The process acts on the answer once the call returns; FENCED_INSTANCE_ID it hears
    with the next heartbeat after that.
    """
    error = needs_to_join(group, process, now_ms)
    if error is Refusal.REBALANCE_IN_PROGRESS:
        process.rejoins = True
    elif error is not None and error is not Refusal.FENCED_INSTANCE_ID:
        process.fallen = c.Error(error)


def join_steps(play: Play, process: Process) -> Steps:
    """JoinGroup and SyncGroup until the member need not join again."""
    while process.alive:
        play.commit(process)
        joining = c.join(_with_topics(play, process))
        process.consumer = joining.consumer
        if not (yield from _called(process, joining.calls)):
            return
        if not play.group.members and not play.has_talking_clients:
            play.is_classic = True  # nobody's group is a classic one to whoever joins it so
            return
        member_id = process.member_id or play.new_id(process.name)
        process.consumer, process.rejoins = replace(joining.consumer, member_id=member_id), False
        answer = yield _join_group(play, process, member_id)
        if answer is None:
            raise AssertionError(f"{process.name} sent JoinGroup; expected an answer")
        if answer.error is not None:
            play.refuse(process, answer.error, answer.message)
            return
        play.group.session_ms[member_id] = process.times.session_timeout_ms
        process.consumer = c.enter(process.consumer, member_id, answer.epoch, leads=False)
        member = play.group.members[member_id]
        if play.group.epoch > member.epoch and member.state is not MemberState.UNREVOKED_PARTITIONS:
            yield Backoff(RETRY_BACKOFF_MS)
            continue
        reaction = c.receive_assignment(process.consumer, play.group.topics.named(member.assigned))
        process.consumer = reaction.consumer
        if not (yield from _called(process, reaction.calls)):
            return
        said = process.consumer.topics == joining.subscription.topics
        if said and not (reaction.joins or process.rejoins):
            play.send_next(process)
            return


def _called(process: Process, calls: Iterable[Call]) -> Generator[Call, Any, bool]:
    """Make calls, and return whether the process is still a member after them, as far as it was told."""
    yield from calls
    return not process.is_out


def _with_topics(play: Play, process: Process) -> c.Consumer:
    if process.consumer is None:
        raise AssertionError(f"{process.name} is no classic member; expected one")
    return c.look(process.consumer, play.group.topics.counts)


def _join_group(play: Play, process: Process, member_id: str) -> HeartbeatRequest:
    """JoinGroup with what the subscription states as owned: nothing of an eager member."""
    if process.consumer is None:
        raise AssertionError(f"{process.name} is no classic member; expected one")
    return HeartbeatRequest(
        member_id=member_id,
        process=process.name,
        epoch=process.generation or 0,
        group_instance_id=process.settings.group_instance_id,
        topics=process.consumer.topics,
        regex="",
        rebalance_timeout_ms=process.times.rebalance_timeout_ms,
        owned=play.group.topics.identified(process.consumer.owned),
        classic_assignors=process.settings.assignors,
    )
