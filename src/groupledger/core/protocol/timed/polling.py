"""What a client does in a poll, as `ConsumerCoordinator` and `AbstractCoordinator` do it.

A poll takes what has arrived since the last one, one thing after the other: that the member fell out of the group, its
assignment, the answer to JoinGroup, and that it has to join (again). Callbacks run in it, and hold it up.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from functools import partial

from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.client_api import LISTENER, Call, Callback, Subscription
from groupledger.core.protocol.client_library import algorithm_of
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.settlement import MemberCall
from groupledger.core.protocol.timed import coordination
from groupledger.core.protocol.timed.timed_group import (
    Joined,
    JoinRequest,
    Membership,
    Program,
    Running,
    TimedGroup,
    TimedProcess,
)
from groupledger.core.rebalance.step import Form

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
        elif process.too_late is not None:
            process.too_late.call_off()


def _limit_poll(group: TimedGroup, process: TimedProcess) -> None:
    """`max.poll.interval.ms` begins anew."""
    if process.too_late is not None:
        process.too_late.call_off()
    due_ms = group.now_ms + process.times.rebalance_timeout_ms
    process.too_late = group.agenda.at(due_ms, partial(leave_late, group, process))


def leave_late(group: TimedGroup, process: TimedProcess) -> None:
    """The heartbeat thread leaves the group, since no poll came: a dynamic member says so, a static one is silent."""
    if not process.heartbeats:
        return
    member_id = process.consumer.member_id
    if process.instance_id is None and member_id is not None:
        group.send(process, partial(coordination.remove, group, member_id))
    coordination.fell_out(group, process, c.Error.UNKNOWN_MEMBER_ID)


def _next(process: TimedProcess) -> PollStep | None:
    """What is to be done first; nothing that needs the coordinator while that is out of reach."""
    if process.running is Running.CUT_OFF and not process.closes:
        return None
    waiting: list[tuple[bool, PollStep]] = [
        (process.closes, _close),
        (bool(process.unsaid), _say),
        (process.view is not None, _learn),
        (process.fallen is not None, _fall),
        (process.given is not None, _take),
        (process.joined is not None, _enter),
        (process.new_id is not None, _join_with_id),
        (process.rejoins and process.membership in (Membership.UNJOINED, Membership.STABLE), _join),
    ]
    return next((step for is_due, step in waiting if is_due), None)


def _say(group: TimedGroup, process: TimedProcess) -> Program:
    """The calls for what it gave up when it subscribed to something else."""
    calls, process.unsaid = process.unsaid, ()
    yield from call(group, process, calls, 0)


def _learn(group: TimedGroup, process: TimedProcess) -> Program:
    """Other topics; one that is joining will assign by them anyway, but it has said what it subscribes to."""
    view, process.view = process.view or {}, None
    said = process.consumer.topics
    reaction = c.change_metadata(process.consumer, view)
    process.consumer = reaction.consumer
    joining = process.membership is Membership.JOINING and said == process.consumer.topics
    process.rejoins |= reaction.joins and not joining
    yield from call(group, process, reaction.calls, 0)


def _fall(group: TimedGroup, process: TimedProcess) -> Program:
    reaction = c.fall_out(process.consumer, process.fallen or c.Error.UNKNOWN_MEMBER_ID)
    process.consumer, process.fallen, process.rejoins = reaction.consumer, None, True
    process.membership, process.joined, process.given, process.new_id = Membership.UNJOINED, None, None, None
    process.join_started_ms = group.now_ms if process.join_started_ms is None else process.join_started_ms
    yield from call(group, process, reaction.calls, group.begun + 1)


def _join(group: TimedGroup, process: TimedProcess) -> Program:
    """onJoinPrepare, then JoinGroup; whoever fell out meanwhile begins anew."""
    process.join_started_ms = group.now_ms if process.join_started_ms is None else process.join_started_ms
    group.commit(process)
    if not process.frozen or process.consumer.refreshes:
        process.consumer = c.look(process.consumer, group.topics)
    joining = c.join(process.consumer)
    process.consumer = joining.consumer
    yield from _prepare(group, process, joining.calls)
    if process.fallen is not None or process.closes:
        process.rejoins = True
        return
    process.rejoins = process.consumer.topics != joining.subscription.topics  # no heartbeat's answer since it began
    _send_join(group, process, joining.subscription)


def _prepare(group: TimedGroup, process: TimedProcess, calls: Iterable[Call]) -> Program:
    """The calls before JoinGroup. From subscriptionUserData on no heartbeats are sent (PREPARING_REBALANCE)."""
    for each in calls:
        if each.callback is Callback.USER_DATA and process.fallen is None and not process.closes:
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
    told = process.joined
    if told is None:
        raise AssertionError(f"{process.name} enters a generation; expected an answer to JoinGroup")
    process.joined, process.returned, process.round = None, told, told.round
    process.consumer = c.enter(process.consumer, told.member_id, told.generation, told.leads)
    process.membership, process.heartbeats_since_ms = Membership.SYNCING, group.now_ms
    coordination.end_session(group, told.member_id)
    plan = None
    if told.members:
        plan = yield from _assign(group, process, told)
        if plan.failure is not None:
            group.failure = plan.failure
            group.close_round()
            return
    group.send(process, partial(coordination.sync, group, process, told.member_id, told.generation, plan))
    coordination.nudge(group)


def _assign(group: TimedGroup, process: TimedProcess, told: Joined) -> Generator[int | Question, Plan | None, Plan]:
    """The leader asks its assignor about the members that it was told of, by the topics that it knows now."""
    owned = tuple(sorted({each for seat in told.members for each in seat.subscription.owned}))
    topics = tuple(sorted({topic for seat in told.members for topic in seat.subscription.topics}))
    yield from call(group, process, (Call(Callback.ASSIGN, owned, topics),), process.round)
    known = group.topics if process.consumer.habits.asks else process.consumer.view
    group.planned_view = view = group.missing.known(known)
    if told.assignor is None:
        raise AssertionError("members met without a common assignor; expected the last one to have been refused")
    byte_code = process.settings.byte_code
    assignor = algorithm_of(process.settings.library, told.assignor)
    plan = yield Question(assignor, told.members, view, group.form, byte_code)
    if plan is None:
        raise AssertionError("a leader's question was not answered; expected a plan")
    process.rejoins |= group.missing.assigned()  # with the metadata that it lacked
    if group.round is not None and group.round.number == told.round:
        group.round.plan = plan
    return plan


def _take(group: TimedGroup, process: TimedProcess) -> Program:
    """onJoinComplete: revoke what is not assigned any more, take what is new, join again if something was revoked."""
    given, process.given = process.given or (), None
    if process.loses:
        _lose(group, process)
        return
    told, process.returned = process.returned, None
    reaction = c.receive_assignment(process.consumer, given)
    process.consumer = reaction.consumer
    again = reaction.joins or _left_undone(group, process, told)
    process.rejoins |= again
    yield from call(group, process, reaction.calls, process.round)
    group.done(process.consumer.member_id, answered=True, again=process.rejoins)
    process.join_started_ms = None
    if process.frozen and process.frozen_rounds:
        process.frozen_rounds -= 1
        process.frozen = process.frozen_rounds > 0
        process.view = None if process.frozen else group.topics


def _lose(group: TimedGroup, process: TimedProcess) -> None:
    """It never looks at its assignment, and the coordinator hears nothing of it any more."""
    group.done(process.consumer.member_id, answered=True, again=False)
    coordination.go_silent(group, process)
    process.running, process.stopped_ms, process.loses = Running.CUT_OFF, group.now_ms, False
    process.join_started_ms = None


def _left_undone(group: TimedGroup, process: TimedProcess, told: Joined | None) -> bool:
    """Whether a static member that took back its seat has to join in the form `kip` (decision 0032)."""
    if told is None or told.returned is None or group.form is not Form.KIP:
        return False
    unseen = told.leads and group.planned_view != process.consumer.view
    return unseen or not process.consumer.owned.issuperset(told.returned.owned)


def close(group: TimedGroup, process: TimedProcess) -> Program:
    """The process closes its consumer now, in no poll."""
    process.poll_started_ms = group.now_ms
    _limit_poll(group, process)
    yield from _close(group, process)


def _close(group: TimedGroup, process: TimedProcess) -> Program:
    """Commit, give up what it owns, and say so, unless it is static: the coordinator then waits for its session."""
    group.commit(process)
    error = process.fallen
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
        started_ms, seat, generation = group.now_ms, process.consumer.member_id, process.consumer.generation
        seated = seat in group.coordinator.members
        yield from process.application.called(each)
        row = len(group.calls), number, process.name, seat, each, started_ms, group.now_ms
        group.calls.append(MemberCall(*row, generation, process.instance_id, process.number))
        if each.callback is Callback.ASSIGNED:
            group.ownership.take(process.name, each.partitions, group.now_ms)
        elif each.callback in LISTENER:
            group.ownership.give_up(process.name, each.partitions, group.now_ms)
        if seated and seat not in group.coordinator.members:
            process.application.expelled(each, started_ms, group.now_ms)
