"""A script with times, played: each event at its own moment, and what came of it until the next one."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

from groupledger.core.custom.assignor_names import CustomAssignor
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import CLASSIC_EVENTS, EventTable, new_consumer
from groupledger.core.protocol.client_api import Times
from groupledger.core.protocol.consumer_group.group_settings import ConsumerGroupSettings
from groupledger.core.protocol.coordinator import Coordinator
from groupledger.core.protocol.event_refusals import BAD_EVENT, ended, no_expiry, require_topic_names
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.script import MOST_ROUNDS, Script
from groupledger.core.protocol.settings_json import write_settings
from groupledger.core.protocol.settlement import MemberRound, Round, Settlement, TimedEnd
from groupledger.core.protocol.simulated_group import Applications
from groupledger.core.protocol.simulated_ownership import Records
from groupledger.core.protocol.timed import coordination, polling
from groupledger.core.protocol.timed.polling import poll
from groupledger.core.protocol.timed.timed_group import (
    AskingPlans,
    Membership,
    Running,
    TimedGroup,
    TimedProcess,
    call_off,
)

TimedPlay = Generator[Question, Plan, list[Settlement]]
MOST_MOMENTS = 10_000
"""Of each hundred processes, between two rounds: a group in which nobody gets as far as a round is given up."""

LAST_ROUNDS = 10
"""Of a group that is given up: what is the same in all of them keeps it from coming to rest."""


def play_timed(
    script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None = None
) -> TimedPlay:
    """One group; yields questions, is sent plans, returns a settlement for each event.

    The last settlement ends when nothing is due any more. Raises Fault: BAD_EVENT, UNKNOWN_ASSIGNOR.
    """
    events = list(script.events)
    _require_classic(script, events)
    require_order(events)
    group = timed_group(script, custom, applications)
    settlements = []
    for event, following in zip(events, [*events[1:], None], strict=False):  # of no event none
        yield from _until(group, event.at_ms)
        _recover(group)
        asking = apply_event(group, event)
        if asking is not None:
            yield from asking
        group.update_outages()
        yield from _until(group, None if following is None else following.at_ms)
        settlements.append(_settlement(group, event))
    return settlements


def timed_group(
    script: Script, custom: Mapping[str, CustomAssignor], applications: Applications | None = None
) -> TimedGroup:
    """Return a group before its first event."""
    times = script.times or Times()
    rate = times.records_per_second
    records = None if rate is None else Records(rate)
    if records is not None:
        records.set_topics(script.topics, 0)
    coordinator = Coordinator(known_ids=script.member_ids, generation=script.generation)
    return TimedGroup(
        topics=dict(script.topics),
        form=script.form,
        pace=script.pace,
        times=times,
        custom=custom,
        coordinator=coordinator,
        poll=poll,
        expire=coordination.expire,
        applications=applications,
        records=records,
    )


def _require_classic(script: Script, events: list[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for settings of a consumer group in a script without one, and for times at two places.

    A script without events is accepted: no member of either protocol is in it yet.
    """
    if events and script.consumer_group != ConsumerGroupSettings():
        expected = "members of the consumer protocol (KIP-848), or no consumer_group"
        raise Fault(BAD_EVENT, f"consumer_group is {write_settings(script.consumer_group)}; expected {expected}")
    require_one_timeout(events)


def require_one_timeout(events: Iterable[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for `max.poll.interval.ms` of a join where the script has times."""
    for event in events:
        if isinstance(event, e.Join) and event.rebalance_timeout_ms != e.MAX_POLL_INTERVAL_MS:
            got = f"rebalance_timeout_ms of {event.member!r} is {event.rebalance_timeout_ms:,}"
            raise Fault(BAD_EVENT, f"{got}; expected it in times.members, where a script has times")


def require_consumer_times(script: Script) -> None:
    """Raise Fault(BAD_EVENT) for times that a group with members of the consumer protocol does not take."""
    require_one_timeout(script.events)
    for event in script.events:
        if isinstance(event, e.Expire):
            no_expiry(script, event)
    times = script.times or Times()
    for of in (times.each, *times.of.values()):
        if of.processing_ms >= of.rebalance_timeout_ms:
            got = f"processing_ms is {of.processing_ms:,}, and rebalance_timeout_ms {of.rebalance_timeout_ms:,}"
            raise Fault(BAD_EVENT, f"{got}; expected less work than that beside members of the consumer protocol")


def require_order(events: list[e.Event]) -> None:
    """Raise Fault(BAD_EVENT) for times that go back."""
    for before, after in pairwise(events):
        if after.at_ms < before.at_ms:
            got = f"at_ms is {after.at_ms:,} after an event at {before.at_ms:,}"
            raise Fault(BAD_EVENT, f"{got}; expected times that never go back where a script has times")


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
            coordination.join_anyway(group, process)
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


# What an event does to a timed group, at its own moment.


def apply_event(group: TimedGroup, event: e.Event) -> AskingPlans | None:
    """Apply an event; raise Fault as `core.protocol.rounds.apply_event` does.

    What comes to a process while it closes to start again, or is to start one that still closes, waits for that.
    """
    group.ownership.begin_step()
    process = group.processes.get(getattr(event, "member", ""))
    if process is not None and _waits(process, event):
        process.afterwards.append(partial(apply_event, group, event))
        return None
    found: AskingPlans | None = EVENTS[type(event)](group, event)
    return found


def _waits(process: TimedProcess, event: e.Event) -> bool:
    closes = process.alive and process.closing and not isinstance(event, e.Crash)
    return closes and (bool(process.afterwards) or isinstance(event, e.Join | e.Restart))


def _start(group: TimedGroup, settings: e.Join) -> None:
    """Start a process, which subscribes and polls for the first time."""
    group.require_new(settings.member)
    require_topic_names(settings.topics)
    consumer = new_consumer(settings, group.topics, group.form, group.custom)
    group.born[settings.member] += 1
    process = TimedProcess(settings=replace(settings, seat=None), consumer=consumer, number=group.born[settings.member])
    group.begin(process)
    group.processes.pop(settings.member, None)
    group.processes[settings.member] = process
    if settings.seat is not None:
        group.coordinator.require_common_assignor(process.name, process.settings.assignors)
        process.membership, process.must_rejoin, process.heartbeats_since_ms = Membership.STABLE, False, group.now_ms
        group.empty = False
        group.take_recorded(process, settings.seat)
    group.wake(process)


def _leave(group: TimedGroup, event: e.Leave) -> AskingPlans | None:
    process = group.running(event.member, "leave")
    return _close(group, process)


def _close(group: TimedGroup, process: TimedProcess) -> AskingPlans | None:
    """At once, or when the callback returns that it is in."""
    process.closing = True
    return group.start(process, polling.close(group, process)) if process.program is None else None


def _crash(group: TimedGroup, event: e.Crash) -> None:
    process = group.process_of(event.member)
    coordination.go_silent(group, process)
    group.end(process)


def _pause(group: TimedGroup, event: e.Pause) -> None:
    process = group.running(event.member, "pause")
    coordination.go_silent(group, process)
    _halt(group, process, Running.STOPPED)


def _hang(group: TimedGroup, event: e.Hang) -> None:
    """Its next poll does not come: `max.poll.interval.ms` after the last one it leaves the group."""
    process = group.running(event.member, "hang")
    due_ms = process.last_poll_ms(group.now_ms) + process.times.rebalance_timeout_ms
    _halt(group, process, Running.HUNG)
    process.too_late = group.agenda.at(due_ms, partial(polling.leave_late, group, process))


def _halt(group: TimedGroup, process: TimedProcess, running: Running) -> None:
    """Halt a process, even in a callback, until it resumes."""
    group.stop(process, running)
    call_off(process.program_due, process.poll_due, process.too_late)
    process.poll_due = None


def _cut_off(group: TimedGroup, event: e.CutOff) -> None:
    process = group.running(event.member, "be cut off")
    coordination.go_silent(group, process)
    process.running, process.stopped_ms = Running.CUT_OFF, group.now_ms


def _resume(group: TimedGroup, event: e.Resume) -> None:
    """Let a process continue; its next heartbeat, sent at once, shows whether the group continued without it."""
    process = group.open(event.member)
    was, process.running = process.running, Running.ALL
    if was is Running.ALL:
        raise Fault(BAD_EVENT, f"{event.member!r} runs; expected one that is paused, hangs or is cut off")
    stood_ms = group.now_ms - process.stopped_ms
    if was is Running.CUT_OFF:
        if process.membership in (Membership.JOINING, Membership.SYNCING):
            process.membership, process.must_rejoin = Membership.UNJOINED, True
            process.returned, process.request = None, None
    else:
        polled_ms = process.last_poll_ms(process.stopped_ms)
        _go_on(group, process, stood_ms)
        if group.now_ms - polled_ms >= process.times.rebalance_timeout_ms:
            polling.leave_late(group, process)
    _heartbeat_at_once(group, process)
    at_once = process.times.round_trip_ms == 0 and isinstance(group.verdict(process), c.Error)
    if was is not Running.CUT_OFF and process.pending_error is None and not at_once:
        group.ownership.take(process.name, process.held, group.now_ms)
    process.held = ()
    group.wake(process)


def _go_on(group: TimedGroup, process: TimedProcess, stood_ms: int) -> None:
    """Continue with what was left of its work, or of the callback that it was in."""
    if process.program is None:
        process.polled_ms += stood_ms
    elif process.program_due is not None:
        due_ms = process.program_due.at_ms + stood_ms
        process.program_due = group.agenda.at(due_ms, partial(group.resume, process))


def _heartbeat_at_once(group: TimedGroup, process: TimedProcess) -> None:
    if process.heartbeats:
        coordination.stop_heartbeats(process)
        process.heartbeats_since_ms = group.now_ms
        group.send(process, partial(coordination.heartbeat, group, process))


def _restart(group: TimedGroup, event: e.Restart) -> AskingPlans | None:
    """One that runs closes first, and starts when it has; one that does not is killed."""
    process = group.processes.get(event.member)
    if process is not None and process.alive and process.running is Running.ALL:
        process.afterwards.append(partial(_start_again, group, event.member))
        return _close(group, process)
    if process is not None and process.alive:
        coordination.go_silent(group, process)
        group.end(process)
    _start_again(group, event.member)
    return None


def _start_again(group: TimedGroup, name: str) -> None:
    _start(group, ended(group.ended, name))


EVENTS: EventTable = CLASSIC_EVENTS | {
    e.Join: _start,
    e.Leave: _leave,
    e.Crash: _crash,
    e.Pause: _pause,
    e.Hang: _hang,
    e.CutOff: _cut_off,
    e.Resume: _resume,
    e.Expire: no_expiry,
    e.Restart: _restart,
}
