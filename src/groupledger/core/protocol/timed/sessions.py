"""Heartbeats and sessions of a timed group: who is heard of, what it is told, and when its session is over.

A member learns from its next heartbeat that the group rebalances, or that it went on without it. Heartbeats are noted
only where they tell something new.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from groupledger.core.protocol.consumer import Error
from groupledger.core.protocol.timed.group import TimedGroup
from groupledger.core.protocol.timed.member import Membership, Running, TimedProcess


def join_anyway(group: TimedGroup, process: TimedProcess) -> None:
    """The client gives up waiting for its assignment, and joins again."""
    if process.membership in (Membership.JOINING, Membership.SYNCING):
        stop_heartbeats(process)
        process.membership, process.rejoins, process.request = Membership.UNJOINED, True, None
        group.wake(process)


def verdict(group: TimedGroup, process: TimedProcess) -> Error | bool:
    """What a heartbeat is answered: an error, True for REBALANCE_IN_PROGRESS, or False."""
    member_id = process.consumer.member_id
    if member_id not in group.coordinator.members:
        return Error.UNKNOWN_MEMBER_ID
    if process.consumer.generation != group.coordinator.generation:
        return Error.ILLEGAL_GENERATION
    return group.preparing


def fenced(group: TimedGroup, process: TimedProcess) -> bool:
    """Whether another process has taken its seat (FENCED_INSTANCE_ID)."""
    seat = group.coordinator.static_seat(process.instance_id)
    return seat is not None and seat.member_id != process.consumer.member_id


def nudge(group: TimedGroup) -> None:
    """Each member whose next heartbeat is answered by something new will send it."""
    for process in group.processes.values():
        if not process.heartbeats or process.heartbeat_due is not None:
            continue
        found = verdict(group, process)
        told = found is True and (process.rejoins or process.membership is not Membership.STABLE)
        if fenced(group, process) or (found is not False and not told):
            due_ms = process.next_heartbeat_ms(group.now_ms)
            process.heartbeat_due = group.agenda.at(due_ms, partial(heartbeat, group, process))


def heartbeat(group: TimedGroup, process: TimedProcess) -> None:
    """A heartbeat arrives."""
    process.heartbeat_due = None
    if not process.heartbeats:
        return
    found = verdict(group, process)
    if fenced(group, process):
        _answer(group, process, partial(group.end, process))
    elif isinstance(found, Error):
        _answer(group, process, partial(fell_out, group, process, found))
    else:
        end_session(group, process.consumer.member_id)
        if found:
            _answer(group, process, partial(_rebalance_in_progress, group, process))


def _answer(group: TimedGroup, process: TimedProcess, act: Callable[[], None]) -> None:
    """Tell a member, unless it is by then one of another generation."""
    asked = process.consumer.member_id, process.consumer.generation

    def arrive() -> None:
        if process.heartbeats and asked == (process.consumer.member_id, process.consumer.generation):
            act()

    group.answer(process, arrive)


def _rebalance_in_progress(group: TimedGroup, process: TimedProcess) -> None:
    if process.membership is Membership.STABLE:
        process.rejoins = True
        group.wake(process)


def fell_out(group: TimedGroup, process: TimedProcess, error: Error) -> None:
    """The coordinator knows the member no more: its next poll finds that all is lost."""
    go_silent(group, process)
    stop_heartbeats(process)
    group.done(process.consumer.member_id, answered=False, again=True)
    process.fallen, process.given, process.joined, process.request = error, None, None, None
    process.membership = Membership.UNJOINED
    group.wake(process)


def go_silent(group: TimedGroup, process: TimedProcess) -> None:
    """The coordinator hears nothing of it from now on: its session ends, counted from the last heartbeat.

    To be called while it still heartbeats. Whoever waits for an answer is spared, and begins another one with it.
    """
    member_id = process.consumer.member_id
    if member_id in group.coordinator.members and member_id not in group.sessions and process.heartbeats:
        _begin_session(group, member_id, process, process.last_heartbeat_ms(group.now_ms))


def stop_heartbeats(process: TimedProcess) -> None:
    """Nothing is sent until JoinGroup is answered."""
    if process.heartbeat_due is not None:
        process.heartbeat_due.call_off()
        process.heartbeat_due = None


def watch(group: TimedGroup, member_id: str, process: TimedProcess) -> None:
    """A session begins now; it does not end while heartbeats come."""
    end_session(group, member_id)
    if not (process.heartbeats and process.consumer.member_id == member_id):
        _begin_session(group, member_id, process, group.now_ms)


def _begin_session(group: TimedGroup, member_id: str, process: TimedProcess, from_ms: int) -> None:
    due_ms = from_ms + process.times.session_timeout_ms
    group.sessions[member_id] = group.agenda.at(due_ms, partial(group.expire, group, member_id))


def end_session(group: TimedGroup, member_id: str | None) -> None:
    """Heartbeats come again, or nobody has this id any more."""
    due = group.sessions.pop(member_id or "", None)
    if due is not None:
        due.call_off()


def accepts_commits(group: TimedGroup, process: TimedProcess) -> bool:
    """Whether an OffsetCommit of this process is taken: it is a member of this generation, and says so."""
    stable = process.membership is Membership.STABLE and process.running is not Running.CUT_OFF
    return stable and not fenced(group, process) and not isinstance(verdict(group, process), Error)
