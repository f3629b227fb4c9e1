"""A script with times, played: each event at its own moment, and what came of it until the next one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from groupledger.core.custom.custom_group import CustomAssignor
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import assign_call, of_script
from groupledger.core.protocol.consumer import Call, Callback, Subscription, Times
from groupledger.core.protocol.consumer_group.consumer_state import ConsumerGroupSettings
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.script import MOST_ROUNDS, Script, write_settings
from groupledger.core.protocol.settlement import MemberRound, Round, Settlement, TimedEnd
from groupledger.core.protocol.simulated_group import Applications, new_consumer
from groupledger.core.protocol.timed import coordination
from groupledger.core.protocol.timed.timed_group import (
    AskingPlans,
    Joined,
    JoinRequest,
    Membership,
    Program,
    Running,
    TimedGroup,
    TimedProcess,
    call_off,
)

# What a client does in a poll, as `ConsumerCoordinator` and `AbstractCoordinator` do it.
#
# A poll takes what has arrived since the last one, one thing after the other: that the member fell out of the group,
# its assignment, the answer to JoinGroup, and that it has to join (again). Callbacks run in it, and hold it up.

PollStep = Callable[[TimedGroup, TimedProcess], Program]


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
    process.membership = Membership.UNJOINED
    process.joined = process.received_assignment = process.new_id = None
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
    if group.round is not None and group.round.begun.number == found.round:
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


# The group, what events do to it, and the loop.

TimedPlay = Generator[Question, Plan, list[Settlement]]
MOST_MOMENTS = 10_000
"""Of each hundred processes, between two rounds: a group in which nobody gets as far as a round is given up."""

LAST_ROUNDS = 10
"""Of a group that is given up: what is the same in all of them keeps it from coming to rest."""


@dataclass(slots=True, kw_only=True)
class PlayedTimedGroup(TimedGroup):
    """A timed group, and what events do to it, each at its own moment."""

    def apply(self, event: e.Event) -> AskingPlans | None:
        """Apply an event; raise Fault as in a group without times. The clock ends sessions, no event."""
        self.ownership.begin_step()
        if isinstance(event, e.Expire):
            self.expire(event.member)
        found: AskingPlans | None = TimedGroup.apply(self, event)
        return found

    def poll(self, process: TimedProcess) -> Program:
        """One poll; it returns with records, on which the process then works."""
        process.poll_started_ms = self.now_ms
        _limit_poll(self, process)
        while process.alive and (step := _next(process)) is not None:
            yield from step(self, process)
        if process.alive:
            process.polled_ms = self.now_ms
            process.application.read(self.now_ms)
            if process.works_ms > process.times.rebalance_timeout_ms:
                _limit_poll(self, process)
            else:
                call_off(process.too_late)

    def join(self, settings: e.Join) -> None:
        """Start a process, which subscribes and polls for the first time."""
        self.require_new(settings.member)
        consumer = new_consumer(settings, self.topics, self.form, self.custom)
        process = TimedProcess(settings=replace(settings, seat=None), consumer=consumer)
        self.begin(process)
        if settings.seat is not None:
            refused = self.coordinator.refuses(process.name, process.settings.assignors)
            if refused is not None:
                raise Fault("INCONSISTENT_GROUP_PROTOCOL", refused)
            process.membership, process.heartbeats_since_ms = Membership.STABLE, self.now_ms
            self.empty = False
            self.take_recorded(process, settings.seat)
        self.wake(process)

    def leave(self, process: TimedProcess) -> AskingPlans | None:
        """Close a process at once, or when the callback returns that it is in."""
        process.closing = True
        return self.start(process, close(self, process)) if process.program is None else None

    def crash(self, process: TimedProcess) -> None:
        """End a process, whose session ends later."""
        coordination.go_silent(self, process)
        self.end(process)

    def pause(self, name: str) -> None:
        """Let a process stand still, heartbeats included."""
        process = self.running(name, "pause")
        coordination.go_silent(self, process)
        self._halt(process, Running.STOPPED)

    def hang(self, name: str) -> None:
        """Let its next poll not come: `max.poll.interval.ms` after the last one it leaves the group."""
        process = self.running(name, "hang")
        due_ms = process.last_poll_ms(self.now_ms) + process.times.rebalance_timeout_ms
        self._halt(process, Running.HUNG)
        process.too_late = self.agenda.at(due_ms, partial(leave_late, self, process))

    def _halt(self, process: TimedProcess, running: Running) -> None:
        """Halt a process, even in a callback, until it resumes."""
        self.stop(process, running)
        call_off(process.program_due, process.poll_due, process.too_late)
        process.poll_due = None

    def cut_off(self, name: str) -> None:
        """Put the coordinator out of reach of a process."""
        process = self.running(name, "be cut off")
        coordination.go_silent(self, process)
        process.running, process.stopped_ms = Running.CUT_OFF, self.now_ms

    def resume(self, name: str) -> None:
        """Let a process continue; its next heartbeat, sent at once, shows whether the group continued without it."""
        process = self.process_of(name)
        was, process.running = process.running, Running.ALL
        if was is Running.ALL:
            raise Fault(e.BAD_EVENT, f"{name!r} runs; expected one that is paused, hangs or is cut off")
        if was is Running.CUT_OFF:
            if process.membership in (Membership.JOINING, Membership.SYNCING):
                process.membership, process.must_rejoin = Membership.UNJOINED, True
                process.returned, process.request = None, None
        else:
            polled_ms = process.last_poll_ms(process.stopped_ms)
            stood_ms = self.now_ms - process.stopped_ms
            if process.program is None:  # it continues with what was left of its work
                process.polled_ms += stood_ms
            elif process.program_due is not None:  # or of the callback that it was in
                due_ms = process.program_due.at_ms + stood_ms
                process.program_due = self.agenda.at(due_ms, partial(self.go_on, process))
            if self.now_ms - polled_ms >= process.times.rebalance_timeout_ms:
                leave_late(self, process)
        if process.heartbeats:
            coordination.stop_heartbeats(process)
            process.heartbeats_since_ms = self.now_ms
            self.send(process, partial(coordination.heartbeat, self, process))
        at_once = process.times.round_trip_ms == 0 and self.error_of(process) is not None
        if was is not Running.CUT_OFF and process.pending_error is None and not at_once:
            self.ownership.take(process.name, process.held, self.now_ms)
        process.held = ()
        self.wake(process)

    def expire(self, name: str) -> None:
        """Refuse it: a clock ends sessions."""
        raise no_expiry(name)


def no_expiry(name: str) -> Fault:
    """Say that a clock ends sessions."""
    return Fault(e.BAD_EVENT, f"{name!r} is to expire; where a script has times, sessions end by themselves")


def play_timed(
    script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None = None
) -> TimedPlay:
    """One group; yields questions, is sent plans, returns a settlement for each event.

    The last settlement ends when nothing is due any more. Raises Fault: BAD_EVENT, UNKNOWN_ASSIGNOR.
    """
    events = list(script.events)
    if events and script.consumer_group != ConsumerGroupSettings():
        expected = "members of the consumer protocol (KIP-848), or no consumer_group"
        raise Fault(e.BAD_EVENT, f"consumer_group is {write_settings(script.consumer_group)}; expected {expected}")
    require_one_timeout(events)
    require_order(events)
    group = of_script(PlayedTimedGroup, script, script.times or Times(), custom, applications)
    settlements = []
    for event, following in zip(events, [*events[1:], None], strict=False):  # of no event none
        yield from _until(group, event.at_ms)
        _recover(group)
        asking = group.apply(event)
        if asking is not None:
            yield from asking
        group.update_outages()
        yield from _until(group, None if following is None else following.at_ms)
        settlements.append(_settlement(group, event))
    return settlements


def require_one_timeout(events: Iterable[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for `max.poll.interval.ms` of a join where the script has times."""
    for event in events:
        if isinstance(event, e.Join) and event.rebalance_timeout_ms != e.MAX_POLL_INTERVAL_MS:
            got = f"rebalance_timeout_ms of {event.member!r} is {event.rebalance_timeout_ms:,}"
            raise Fault(e.BAD_EVENT, f"{got}; expected it in times.members, where a script has times")


def require_consumer_times(script: Script) -> None:
    """Raise Fault(BAD_EVENT) for times that a group with members of the consumer protocol does not take."""
    require_one_timeout(script.events)
    for event in script.events:
        if isinstance(event, e.Expire):
            raise no_expiry(event.member)
    times = script.times or Times()
    for of in (times.each, *times.of.values()):
        if of.processing_ms >= of.rebalance_timeout_ms:
            got = f"processing_ms is {of.processing_ms:,}, and rebalance_timeout_ms {of.rebalance_timeout_ms:,}"
            raise Fault(e.BAD_EVENT, f"{got}; expected less work than that beside members of the consumer protocol")


def require_order(events: list[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for times that go back."""
    for before, after in pairwise(events):
        if after.at_ms < before.at_ms:
            got = f"at_ms is {after.at_ms:,} after an event at {before.at_ms:,}"
            raise Fault(e.BAD_EVENT, f"{got}; expected times that never go back where a script has times")


def _until(group: TimedGroup, end_ms: int | None) -> Generator[Question, Plan, None]:
    """All that is due before this time, or at all; a group that does not come to rest is given up."""
    rounds, moments = len(group.rounds), 0
    while (due_ms := group.agenda.next_ms()) is not None and (end_ms is None or due_ms < end_ms):
        if group.failure is not None:
            break
        if len(group.rounds) >= MOST_ROUNDS:
            group.failure = f"not stable after {MOST_ROUNDS} rounds{_interrupted(group.rounds[-LAST_ROUNDS:])}"
            break
        rounds, moments = len(group.rounds), moments + 1 if rounds == len(group.rounds) else 0
        if moments > MOST_MOMENTS * (1 + len(group.processes) // 100):
            group.failure = f"not stable after {moments - 1:,} requests and polls without a round"
            break
        act = group.agenda.take()
        group.catch_up()
        group.ownership.begin_step()
        asking = act()
        if asking is not None:
            yield from asking
        group.update_outages()
    if end_ms is not None:
        group.agenda.now_ms = max(group.now_ms, end_ms)
    group.catch_up()


def _interrupted(rounds: Sequence[Round]) -> str:
    """Name the members that began the next rebalance in each of the rounds, and those without an assignment by then."""
    again = _in_each(rounds, lambda row: row.answered and row.joins_again)
    late = _in_each(rounds, lambda row: not row.answered)
    if not again or not late:
        return ""
    return f"; in each of the last {len(rounds)}, {again} joined again before {late} had an assignment"


def _in_each(rounds: Sequence[Round], holds: Callable[[MemberRound], bool]) -> str:
    """Return the names of members for which this holds in each of the rounds."""
    names = ({row.member for row in each.members if holds(row)} for each in rounds)
    return ", ".join(sorted(set.intersection(*names)))


def _recover(group: TimedGroup) -> None:
    """Let members that a failed assignor of their leader left waiting join again, now that an event comes.

    Time stood still for the group until then: the sessions of those that run have not ended.
    """
    if group.failure is not None and group.completing:
        for process in group.processes.values():
            process.joined = None
            if process.alive and process.running is Running.ALL:
                coordination.end_session(group, process.consumer.member_id)
            if process.membership in (Membership.JOINING, Membership.SYNCING):
                coordination.stop_heartbeats(process)
                process.membership, process.must_rejoin, process.request = Membership.UNJOINED, True, None
                group.wake(process)
        coordination.prepare(group)
    group.failure = None


def _settlement(group: TimedGroup, event: e.Event) -> Settlement:
    group.all_read_on()
    outages, waited = group.outages.take(group.now_ms)
    rounds, group.rounds = tuple(group.rounds), []
    rebalancing = group.preparing or group.completing or group.agenda.next_ms() is not None
    read = None if group.records is None else group.records.found(group.now_ms)
    timed = TimedEnd(group.now_ms, rebalancing, outages, read)
    return group.settlement(event, waited, timed, rounds=rounds)
