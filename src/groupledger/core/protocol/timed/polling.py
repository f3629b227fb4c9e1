"""What a client does in a poll, as `ConsumerCoordinator` and `AbstractCoordinator` do it.

A poll takes what has arrived since the last one, one thing after the other: that the member fell out of the group, its
assignment, the answer to JoinGroup, and that it has to join (again). Callbacks run in it, and hold it up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial

from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.classic_group import assign_call
from groupledger.core.protocol.consumer import Call, Callback, Subscription
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.timed import coordination
from groupledger.core.protocol.timed.timed_group import (
    Joined,
    JoinRequest,
    Membership,
    Program,
    Running,
    TimedGroup,
    TimedProcess,
    call_off,
)

PollStep = Callable[[TimedGroup, TimedProcess], Program]


def poll(group: TimedGroup, process: TimedProcess) -> Program:
    """One poll; it returns with records, on which the process then works."""
    process.poll_started_ms = group.now_ms
    _limit_poll(group, process)
    while process.alive and (step := _next(process)) is not None:
        yield from step(group, process)
    if process.alive:
        process.polled_ms = group.now_ms
        process.application.read(group.now_ms)
        if process.works_ms > process.times.rebalance_timeout_ms:
            _limit_poll(group, process)
        else:
            call_off(process.too_late)


def _limit_poll(group: TimedGroup, process: TimedProcess) -> None:
    """`max.poll.interval.ms` begins again."""
    call_off(process.too_late)
    due_ms = group.now_ms + process.times.rebalance_timeout_ms
    process.too_late = group.agenda.at(due_ms, partial(leave_late, group, process))


def leave_late(group: TimedGroup, process: TimedProcess) -> None:
    """Let the heartbeat thread leave the group, since no poll came; a static member sends nothing."""
    if not process.heartbeats:
        return
    member_id = process.consumer.member_id
    if process.instance_id is None and member_id is not None:
        group.send(process, partial(coordination.remove, group, member_id))
    coordination.fell_out(group, process, c.Error.UNKNOWN_MEMBER_ID)


def _next(process: TimedProcess) -> PollStep | None:
    """Return the step that is due first; none that needs the coordinator while that is out of reach."""
    if process.running is Running.CUT_OFF and not process.closing:
        return None
    waiting: list[tuple[bool, PollStep]] = [
        (process.closing, _close),
        (bool(process.pending_callbacks), _say),
        (process.view is not None, _learn),
        (process.pending_error is not None, _fall),
        (process.received_assignment is not None, _take),
        (process.joined is not None, _enter),
        (process.new_id is not None, _join_with_id),
        (process.must_rejoin and process.membership in (Membership.UNJOINED, Membership.STABLE), _join),
    ]
    return next((step for is_due, step in waiting if is_due), None)


def _say(group: TimedGroup, process: TimedProcess) -> Program:
    """Make the calls for what it gave up when it subscribed to something else."""
    calls, process.pending_callbacks = process.pending_callbacks, ()
    return call(group, process, calls, 0)


def _learn(group: TimedGroup, process: TimedProcess) -> Program:
    """Other topics; one that is joining will assign by them anyway, but it has said what it subscribes to."""
    view, process.view = process.view or {}, None
    said = process.consumer.topics
    reaction = c.change_metadata(process.consumer, view)
    process.consumer = reaction.consumer
    joining = process.membership is Membership.JOINING and said == process.consumer.topics
    process.must_rejoin |= reaction.joins and not joining
    yield from call(group, process, reaction.calls, 0)


def _fall(group: TimedGroup, process: TimedProcess) -> Program:
    reaction = c.fall_out(process.consumer, process.pending_error or c.Error.UNKNOWN_MEMBER_ID)
    process.consumer, process.pending_error, process.must_rejoin = reaction.consumer, None, True
    process.membership, process.joined, process.received_assignment, process.new_id = (
        Membership.UNJOINED,
        None,
        None,
        None,
    )
    process.join_started_ms = group.now_ms if process.join_started_ms is None else process.join_started_ms
    yield from call(group, process, reaction.calls, group.begun + 1)


def _join(group: TimedGroup, process: TimedProcess) -> Program:
    """onJoinPrepare, then JoinGroup; a process that fell out meanwhile begins again."""
    process.join_started_ms = group.now_ms if process.join_started_ms is None else process.join_started_ms
    group.commit(process)
    process.look(group.topics)
    joining = c.join(process.consumer)
    process.consumer = joining.consumer
    yield from _prepare(group, process, joining.calls)
    if process.pending_error is not None or process.closing:
        process.must_rejoin = True
        return
    process.must_rejoin = process.consumer.topics != joining.subscription.topics  # no heartbeat's answer since it began
    _send_join(group, process, joining.subscription)


def _prepare(group: TimedGroup, process: TimedProcess, calls: Iterable[Call]) -> Program:
    """Make the calls before JoinGroup. From subscriptionUserData on no heartbeats are sent (PREPARING_REBALANCE)."""
    for each in calls:
        if each.callback is Callback.USER_DATA and process.pending_error is None and not process.closing:
            coordination.go_silent(group, process)
            coordination.stop_heartbeats(process)
            process.membership = Membership.JOINING
        yield from call(group, process, (each,), group.begun + 1)


def _join_with_id(group: TimedGroup, process: TimedProcess) -> Program:
    member_id, process.new_id = process.new_id or "", None
    joining = c.receive_member_id(process.consumer, member_id)
    process.consumer = joining.consumer
    yield from call(group, process, joining.calls, group.begun + 1)
    _send_join(group, process, joining.subscription)


def _send_join(group: TimedGroup, process: TimedProcess, sent: Subscription) -> None:
    process.membership = Membership.JOINING
    request = JoinRequest(group.now_ms if process.join_started_ms is None else process.join_started_ms)
    process.request = request
    group.send(process, partial(coordination.join, group, process, process.consumer.member_id, sent, request))


def _enter(group: TimedGroup, process: TimedProcess) -> Program:
    """JoinGroup was answered: heartbeats begin, the leader assigns, SyncGroup is sent."""
    found = process.joined
    if found is None:
        raise AssertionError(f"{process.name} enters a generation; expected an answer to JoinGroup")
    process.joined, process.returned, process.round = None, found, found.round
    process.consumer = c.enter(process.consumer, found.member_id, found.generation, found.leads)
    process.membership, process.heartbeats_since_ms = Membership.SYNCING, group.now_ms
    coordination.end_session(group, found.member_id)
    plan = None
    if found.members:
        plan = yield from _assign(group, process, found)
        if plan.failure is not None:
            group.failure = plan.failure
            group.close_round()
            return
    group.send(process, partial(coordination.sync, group, process, found.member_id, found.generation, plan))
    coordination.nudge(group)


def _assign(group: TimedGroup, process: TimedProcess, found: Joined) -> Generator[int | Question, Plan | None, Plan]:
    """Ask the leader's assignor about the members in its answer, by the topics that it knows now."""
    yield from call(group, process, (assign_call(found.members),), process.round)
    plan = yield group.question(process, found.assignor, found.members)
    if plan is None:
        raise AssertionError("a leader's question was not answered; expected a plan")
    process.must_rejoin |= group.missing.assigned()  # with the metadata that it lacked
    if group.round is not None and group.round.number == found.round:
        group.round.plan = plan
    return plan


def _take(group: TimedGroup, process: TimedProcess) -> Program:
    """onJoinComplete: revoke what is not assigned any more, take what is new, join again if something was revoked."""
    given, process.received_assignment = process.received_assignment or (), None
    if process.loses:  # it ignores the assignment, and is silent from now on
        group.done(process.consumer.member_id, answered=True, again=False)
        coordination.go_silent(group, process)
        process.running, process.stopped_ms, process.loses = Running.CUT_OFF, group.now_ms, False
        process.join_started_ms = None
        return
    found, process.returned = process.returned, None
    reaction = c.receive_assignment(process.consumer, given)
    process.consumer = reaction.consumer
    undone = found is not None and found.returned is not None and group.undone(process, found.returned, found.leads)
    process.must_rejoin |= reaction.joins or undone
    yield from call(group, process, reaction.calls, process.round)
    group.done(process.consumer.member_id, answered=True, again=process.must_rejoin)
    process.join_started_ms = None
    if process.thaw():
        process.view = group.topics


def close(group: TimedGroup, process: TimedProcess) -> Program:
    """Close the consumer of a process now, in no poll."""
    process.poll_started_ms = group.now_ms
    _limit_poll(group, process)
    yield from _close(group, process)


def _close(group: TimedGroup, process: TimedProcess) -> Program:
    """Commit, give up what it owns, and say so, unless it is static: the coordinator then waits for its session."""
    group.commit(process)
    error = process.pending_error
    reaction = c.close(process.consumer) if error is None else c.fall_out(process.consumer, error)
    member_id = process.consumer.member_id
    yield from call(group, process, reaction.calls, 0)
    process.consumer = reaction.consumer
    if process.instance_id is not None:
        coordination.go_silent(group, process)
    elif member_id is not None:
        group.send(process, partial(coordination.remove, group, member_id))
    group.end(process)
    for act in process.afterwards:
        asking = act()
        if asking is not None:
            yield from asking


def call(group: TimedGroup, process: TimedProcess, calls: Iterable[Call], number: int) -> Program:
    """Make these calls of round `number`, one after the other; each has its effect when it has returned."""
    for each in calls:
        started_ms, seat = group.now_ms, process.member_id
        seated = seat in group.coordinator.members
        yield from process.application.called(each)
        group.note(process, each, started_ms, group.now_ms, number)
        if seated and seat not in group.coordinator.members:
            process.application.expelled(each, started_ms, group.now_ms)
