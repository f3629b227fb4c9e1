"""The coordinator's side of a timed group, as Kafka's `GroupMetadataManager` keeps a classic group.

JoinGroup waits until all members have sent it, or until the longest rebalance timeout is over: then dynamic members
that have not are removed. Static ones stay until their session ends, or until a rebalance timeout has passed in which
they have not sent SyncGroup. A member that waits for an answer needs no heartbeat; every JoinGroup answer begins a new
session, also of members that are away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.classic_group import Registered, seats_of
from groupledger.core.protocol.consumer import Error, Subscription
from groupledger.core.protocol.leader import Plan
from groupledger.core.protocol.timed.timed_group import (
    Joined,
    JoinRequest,
    Membership,
    TimedGroup,
    TimedProcess,
    call_off,
)
from groupledger.core.rebalance.step import Form

# JoinGroup


def join(
    group: TimedGroup, process: TimedProcess, member_id: str | None, sent: Subscription, request: JoinRequest
) -> None:
    """JoinGroup arrives."""
    if member_id is None:
        _join_without_id(group, process, sent, request)
    elif member_id in group.pending:
        call_off(group.pending.pop(member_id))
        _seat(group, process, member_id, sent, request)
    elif member_id not in group.coordinator.members:
        _reply(group, process, request, partial(fell_out, group, process, Error.UNKNOWN_MEMBER_ID))
    else:
        _join_again(group, process, member_id, sent, request)


def _join_without_id(group: TimedGroup, process: TimedProcess, sent: Subscription, request: JoinRequest) -> None:
    """Without a member id: a dynamic member is given one first (KIP-394), a static one takes its seat."""
    refused = group.coordinator.refuses(process.name, process.settings.assignors)
    if refused is not None:
        group.refused = refused
        group.answer(process, partial(group.end, process))
        return
    seat, member_id = group.coordinator.static_seat(process.instance_id), group.coordinator.new_member_id(process.name)
    if seat is not None:
        _replace(group, process, member_id, seat, sent, request)
    elif process.instance_id is not None:
        _seat(group, process, member_id, sent, request)
    else:
        session_ms = process.times.session_timeout_ms
        group.pending[member_id] = group.agenda.after(session_ms, partial(remove, group, member_id))
        _reply(group, process, request, partial(_hear, group, process, new_id=member_id))


def _reply(group: TimedGroup, process: TimedProcess, request: JoinRequest, act: Callable[[], None]) -> None:
    """Answer a JoinGroup; an answer to an earlier one than the last counts for nothing."""
    group.answer(process, lambda: act() if process.request is request else None)


def _hear(group: TimedGroup, process: TimedProcess, *, new_id: str | None = None, joined: Joined | None = None) -> None:
    """Keep what a JoinGroup was answered for the next poll."""
    process.new_id, process.joined = new_id or process.new_id, joined or process.joined
    group.wake(process)


def _seat(group: TimedGroup, process: TimedProcess, member_id: str, sent: Subscription, request: JoinRequest) -> None:
    """Seat a new member: all members rebalance, or wait a little longer for those who come to an empty group."""
    group.coordinator.seat(process.registered(member_id, sent))
    group.waiting[member_id] = (process, request)
    group.newcomers |= group.starting
    _prepare_or_complete(group)


def _join_again(
    group: TimedGroup, process: TimedProcess, member_id: str, sent: Subscription, request: JoinRequest
) -> None:
    """Answer a member that is in the group; a known follower with the same subscription gets the current generation.

    In the form `kip` that is so only while they wait for their assignments: who joins again in a stable group has a
    reason to, and starts a round.
    """
    known = group.coordinator.members[member_id]
    stable = not group.preparing and not group.completing
    found = group.completing or (stable and group.coordinator.leader != member_id and group.form is Form.AS_KAFKA)
    if found and known.subscription == sent:
        _reply(group, process, request, partial(_hear, group, process, joined=_answer_to(group, member_id)))
        return
    group.coordinator.seat(process.registered(member_id, sent))
    group.waiting[member_id] = (process, request)
    _prepare_or_complete(group)


def _replace(
    group: TimedGroup, process: TimedProcess, member_id: str, seat: Registered, sent: Subscription, request: JoinRequest
) -> None:
    """Give a static member its seat back: in a stable group without a rebalance, and its predecessor is fenced."""
    old = seat.member_id
    stable = not group.preparing and not group.completing
    awaiting = group.waiting[old][0] if old in group.waiting else group.syncing.get(old)
    if awaiting is not None and awaiting is not process:
        group.answer(awaiting, partial(group.end, awaiting))
    group.coordinator.replace(old, process.registered(member_id, sent))
    _forget(group, old)
    watch(group, member_id, process)
    if stable:
        found = replace(_answer_to(group, member_id), round=0, returned=seat.subscription)
        _reply(group, process, request, partial(_hear, group, process, joined=found))
        return
    group.waiting[member_id] = (process, request)
    _prepare_or_complete(group)


def _answer_to(group: TimedGroup, member_id: str) -> Joined:
    """Return the answer to JoinGroup; the leader's has the members, if they wait for its assignment."""
    coordinator = group.coordinator
    leads = coordinator.leader == member_id
    seats = seats_of(coordinator) if leads and group.completing else ()
    return Joined(member_id, coordinator.generation, leads, coordinator.assignor, seats, group.begun)


def _prepare_or_complete(group: TimedGroup) -> None:
    if group.preparing:
        _complete_if_all_joined(group)
    else:
        prepare(group)


def prepare(group: TimedGroup) -> None:
    """PREPARING_REBALANCE: everybody has to join again. An empty group waits for those who may come."""
    for member_id, process in group.syncing.items():
        _fail_sync(group, process, member_id)
    group.syncing.clear()
    call_off(group.sync_due)
    empty, group.empty = group.empty, False
    group.preparing, group.completing, group.starting = True, False, empty
    group.prepared_ms = group.now_ms
    timeout_ms = _rebalance_timeout_ms(group)
    if empty:
        delay_ms = group.times.initial_rebalance_delay_ms
        group.newcomers, group.delay_left_ms = False, max(timeout_ms - delay_ms, 0)
        group.join_due = group.agenda.after(delay_ms, partial(_delay_over, group))
    else:
        group.join_due = group.agenda.after(timeout_ms, partial(complete, group))
        _complete_if_all_joined(group)
    nudge(group)


def _delay_over(group: TimedGroup) -> None:
    """`group.initial.rebalance.delay.ms` once more where somebody came, at most for a rebalance timeout in all."""
    if not group.newcomers or group.delay_left_ms == 0:
        complete(group)
        return
    delay_ms = min(group.times.initial_rebalance_delay_ms, group.delay_left_ms)
    group.newcomers, group.delay_left_ms = False, max(group.delay_left_ms - delay_ms, 0)
    group.join_due = group.agenda.after(delay_ms, partial(_delay_over, group))


def _complete_if_all_joined(group: TimedGroup) -> None:
    if not group.starting and not group.pending and group.waiting.keys() >= group.coordinator.members.keys():
        complete(group)


def complete(group: TimedGroup) -> None:
    """End the join phase: remove dynamic members that have not joined, and answer the others."""
    call_off(group.join_due)
    for member_id in group.coordinator.remove_absent(group.waiting):
        _forget(group, member_id)
    if group.coordinator.members and not group.waiting:
        group.join_due = group.agenda.after(_rebalance_timeout_ms(group), partial(complete, group))
        return
    joined, group.waiting = (
        {each: group.waiting[each] for each in group.coordinator.members if each in group.waiting},
        {},
    )
    group.coordinator.start_generation(joined)
    group.preparing = group.starting = False
    group.completing = bool(group.coordinator.members)
    group.empty = not group.completing
    group.begin_round(joined)
    group.unsynced = set(group.coordinator.members)
    for member_id, (process, request) in joined.items():
        _reply(group, process, request, partial(_hear, group, process, joined=_answer_to(group, member_id)))
    for member_id, member in group.coordinator.members.items():
        watch(group, member_id, group.processes[member.process])
    if group.completing:
        group.sync_due = group.agenda.after(_rebalance_timeout_ms(group), partial(_sync_over, group))
    nudge(group)


# SyncGroup


def sync(group: TimedGroup, process: TimedProcess, member_id: str, generation: int, plan: Plan | None) -> None:
    """SyncGroup arrives; the leader's has the plan, and answers all."""
    error = group.coordinator.error_for(member_id, generation)
    if error is not None:
        _reply_sync(group, process, member_id, generation, partial(fell_out, group, process, error))
    elif group.preparing:
        _fail_sync(group, process, member_id)
    else:
        group.unsynced.discard(member_id)
        if not group.unsynced:
            call_off(group.sync_due)
        group.syncing[member_id] = process
        if plan is not None and group.completing:
            group.coordinator.given = plan.assigned
            group.completing = False
        if not group.completing:
            _answer_syncs(group)


def _reply_sync(
    group: TimedGroup, process: TimedProcess, member_id: str, generation: int, act: Callable[[], None]
) -> None:
    """Answer a SyncGroup, unless another request was sent meanwhile."""

    def arrive() -> None:
        same = (process.member_id, process.generation) == (member_id, generation)
        if same and process.membership is Membership.SYNCING:
            act()

    group.answer(process, arrive)


def _answer_syncs(group: TimedGroup) -> None:
    for member_id, process in group.syncing.items():
        if process.misses_answer():
            _fail_sync(group, process, member_id)
        else:
            given = tuple(group.coordinator.given.get(member_id, ()))
            synced = partial(_synced, group, process, given)
            _reply_sync(group, process, member_id, group.coordinator.generation, synced)
            watch(group, member_id, process)  # one that died while it waited was spared until now
    group.syncing.clear()


def _synced(group: TimedGroup, process: TimedProcess, given: tuple[TopicPartition, ...]) -> None:
    process.membership, process.received_assignment = Membership.STABLE, given
    group.wake(process)
    nudge(group)


def _fail_sync(group: TimedGroup, process: TimedProcess, member_id: str) -> None:
    """REBALANCE_IN_PROGRESS, or no answer at all: the member joins again."""
    group.done(member_id, answered=False, again=True)
    _reply_sync(
        group, process, member_id, group.coordinator.generation, partial(_sync_failed, group, process, member_id)
    )
    watch(group, member_id, process)


def _sync_failed(group: TimedGroup, process: TimedProcess, member_id: str) -> None:
    stop_heartbeats(process)
    process.membership, process.must_rejoin = Membership.UNJOINED, True
    watch(group, member_id, process)
    group.wake(process)


def _sync_over(group: TimedGroup) -> None:
    """Who has not sent SyncGroup within the rebalance timeout is removed, static or not."""
    for member_id in sorted(group.unsynced):
        _unseat(group, member_id)
    prepare(group)


# Seats


def expire(group: TimedGroup, member_id: str) -> None:
    """End a session; a member that waits for an answer is spared."""
    group.sessions.pop(member_id, None)
    if member_id not in group.waiting and member_id not in group.syncing:
        remove(group, member_id)


def remove(group: TimedGroup, member_id: str) -> None:
    """Remove a member that left, or whose session is over: the others rebalance."""
    pending = group.pending.pop(member_id, None)
    if pending is not None:
        call_off(pending)
        if group.preparing:
            _complete_if_all_joined(group)
    elif member_id in group.coordinator.members:
        _unseat(group, member_id)
        _prepare_or_complete(group)


def _unseat(group: TimedGroup, member_id: str) -> None:
    group.coordinator.remove(member_id)
    _forget(group, member_id)


def _forget(group: TimedGroup, member_id: str) -> None:
    """Nobody has this id any more."""
    group.waiting.pop(member_id, None)
    group.syncing.pop(member_id, None)
    group.unsynced.discard(member_id)
    end_session(group, member_id)
    group.done(member_id, answered=False, again=False)


def _rebalance_timeout_ms(group: TimedGroup) -> int:
    """Return the longest of all members."""
    names = (each.process for each in group.coordinator.members.values())
    return max((group.times.member(name).rebalance_timeout_ms for name in names), default=0)


# Heartbeats and sessions of a timed group: who is heard of, what it is answered, and when its session is over.
#
# A member learns from its next heartbeat that the group rebalances, or continued without it. Heartbeats are noted
# only if they say something new.


def nudge(group: TimedGroup) -> None:
    """Each member whose next heartbeat is answered by something new will send it."""
    for process in group.processes.values():
        if not process.heartbeats or process.heartbeat_due is not None:
            continue
        found = group.verdict(process)
        known = found is True and (process.must_rejoin or process.membership is not Membership.STABLE)
        if group.fenced(process) or (found is not False and not known):
            due_ms = process.next_heartbeat_ms(group.now_ms)
            process.heartbeat_due = group.agenda.at(due_ms, partial(heartbeat, group, process))


def heartbeat(group: TimedGroup, process: TimedProcess) -> None:
    """Take a heartbeat that arrives."""
    process.heartbeat_due = None
    if not process.heartbeats:
        return
    found = group.verdict(process)
    if group.fenced(process):
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
        process.must_rejoin = True
        group.wake(process)


def fell_out(group: TimedGroup, process: TimedProcess, error: Error) -> None:
    """Tell the process that the coordinator knows it no more: at its next poll it loses everything."""
    go_silent(group, process)
    stop_heartbeats(process)
    group.done(process.consumer.member_id, answered=False, again=True)
    process.pending_error, process.received_assignment, process.joined, process.request = error, None, None, None
    process.membership = Membership.UNJOINED
    group.wake(process)


def go_silent(group: TimedGroup, process: TimedProcess) -> None:
    """End the heartbeats of a process: its session is counted from the last one.

    To be called while it still heartbeats. One that waits for an answer is spared, and begins another session with it.
    """
    member_id = process.consumer.member_id
    if member_id in group.coordinator.members and member_id not in group.sessions and process.heartbeats:
        _begin_session(group, member_id, process, process.last_heartbeat_ms(group.now_ms))


def stop_heartbeats(process: TimedProcess) -> None:
    """Nothing is sent until JoinGroup is answered."""
    call_off(process.heartbeat_due)
    process.heartbeat_due = None


def watch(group: TimedGroup, member_id: str, process: TimedProcess) -> None:
    """Begin a session; it does not end while heartbeats come."""
    end_session(group, member_id)
    if not (process.heartbeats and process.consumer.member_id == member_id):
        _begin_session(group, member_id, process, group.now_ms)


def _begin_session(group: TimedGroup, member_id: str, process: TimedProcess, from_ms: int) -> None:
    due_ms = from_ms + process.times.session_timeout_ms
    group.sessions[member_id] = group.agenda.at(due_ms, partial(expire, group, member_id))


def end_session(group: TimedGroup, member_id: str | None) -> None:
    """Heartbeats come again, or nobody has this id any more."""
    call_off(group.sessions.pop(member_id or "", None))
