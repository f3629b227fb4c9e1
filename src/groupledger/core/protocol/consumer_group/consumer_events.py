"""What an event does to a consumer group in play, before the heartbeats that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol import events as e
from groupledger.core.protocol.application import ClockedGroup
from groupledger.core.protocol.apply_event import new_consumer
from groupledger.core.protocol.consumer import exists
from groupledger.core.protocol.consumer_group import play as c
from groupledger.core.protocol.consumer_group.consumer_state import GroupMember
from groupledger.core.protocol.consumer_group.exchange import (
    AskingTargets,
    hear_out,
    join_steps,
    leave_late,
    take_coordinated,
    take_next,
    time_out,
)
from groupledger.core.protocol.consumer_group.play import ConsumerClient, EntryKind, Play, Process
from groupledger.core.protocol.consumer_group.topics_and_targets import ServerQuestion, Targets
from groupledger.core.protocol.ownership import Gap, waited_ms
from groupledger.core.protocol.refusals import (
    BAD_EVENT,
    alive,
    ended,
    needs_times,
    no_process,
    require_new,
    require_topic_names,
    talking,
)
from groupledger.core.protocol.settlement import Outage, Settlement, TimedEnd
from groupledger.core.protocol.topic_patterns import require_quick


def happen(play: Play, event: e.Event) -> None:
    """Let an event happen; raises Fault(BAD_EVENT) for one that cannot.

    Where events do not wait for one another, what comes to a process while it closes waits until it has.
    """
    process = play.processes.get(getattr(event, "member", ""))
    if process is not None and process.alive and process.leaves and not isinstance(event, e.Crash):
        if not (process.afterwards or isinstance(event, e.Join | e.Restart)):
            raise no_process(process.name)
        process.afterwards.append(partial(happen, play, event))
        return
    HAPPENS[type(event)](play, event)


def come_back(play: Play) -> None:
    """Start the process that is returning, if one is."""
    settings, play.returning = play.returning, None
    if settings is not None:
        _start(play, settings)


def _join(play: Play, event: e.Join) -> None:
    require_new(play.processes, event.member)
    _start(play, event)


def _start(play: Play, settings: e.Join) -> None:
    """A process subscribes; it speaks to the coordinator at once."""
    require_topic_names(settings.topics)
    play.processes.pop(settings.member, None)
    play.born[settings.member] += 1
    process = Process(replace(settings, seat=None), play.born[settings.member])
    play.begin(process)
    if settings.seat is not None:
        _go_on_as_recorded(play, process, settings.seat)
    elif settings.group_protocol.coordinated:
        require_quick(settings.member, settings.topic_regex or "")
        process.client = _client(process, play.new_id(settings.member))
        play.send_soon(process)
    else:
        process.consumer = new_consumer(settings, play.group.topics.counts, play.form, {})
        process.steps = join_steps(play, process)
        play.put(process, EntryKind.GO_ON)


def _go_on_as_recorded(play: Play, process: Process, seat: e.RecordedSeat) -> None:
    """Seat a member of the current epoch: it owns what it was assigned, and heartbeats without news."""
    settings, group = process.settings, play.group
    if not settings.group_protocol.coordinated or settings.topic_regex is not None:
        told = f"{settings.member!r} {'subscribes by a pattern' if settings.topic_regex else 'is a classic member'}"
        raise Fault(BAD_EVENT, f"{told}; expected a recorded consumer group whose members subscribe by name")
    held = group.topics.identified(seat.assigned)
    client = _client(process, seat.member_id)
    known = replace(client, epoch=group.epoch, owned=held, assigned=held, stated=held, full=False)
    process.client = replace(known, said=client.subscribed)
    member = GroupMember(
        member_id=seat.member_id,
        process=process.name,
        topics=tuple(sorted(set(settings.topics))),
        group_instance_id=settings.group_instance_id,
        remote_assignor=settings.remote_assignor,
        rebalance_timeout_ms=process.times.rebalance_timeout_ms,
        epoch=group.epoch,
        previous_epoch=group.epoch,
        assigned=dict.fromkeys(sorted(held), group.epoch),
    )
    group.seat_recorded(member, play.clock_ms)
    assigned = group.topics.named(held)
    process.application.begin_with(assigned, process, play.calls, play.clock_ms)
    play.ownership.take(process.name, assigned, play.clock_ms)
    play.send_next(process)


def _client(process: Process, member_id: str) -> ConsumerClient:
    settings = process.settings
    return ConsumerClient(
        member_id=member_id,
        process=settings.member,
        topics=settings.topics,
        regex=settings.topic_regex,
        group_instance_id=settings.group_instance_id,
        remote_assignor=settings.remote_assignor,
        rebalance_timeout_ms=process.times.rebalance_timeout_ms,
        protocol=settings.group_protocol,
        process_id=_process_id(settings),
    )


def _process_id(settings: e.Join) -> str | None:
    """Of a Streams group's member: one that names none is a process of its own."""
    streams = settings.group_protocol is e.GroupProtocol.STREAMS
    return settings.process_id or settings.member if streams else None


def _leave(play: Play, event: e.Leave) -> None:
    process = _running(play, event.member, "leave")
    process.closing = process.leaves = True
    play.put(process, EntryKind.GO_ON)


def _crash(play: Play, event: e.Crash) -> None:
    process = alive(play.processes, event.member)
    play.end(process)
    if process.member_id not in play.group.members:
        del play.processes[process.name]


def _pause(play: Play, event: e.Pause) -> None:
    process = alive(play.processes, event.member)
    if process.hung or process.cut_off:
        _running(play, event.member, "pause")
    play.stop(process)
    process.stopped_ms = play.clock_ms


def _hang(play: Play, event: e.Hang) -> None:
    """Its next poll does not come: `max.poll.interval.ms` after the last one it leaves the group."""
    process = _clocked(play, event, "hang")
    process.too_late_ms = process.last_poll_ms(play.clock_ms) + process.times.rebalance_timeout_ms
    process.read_on()
    process.hung = True
    play.ownership.begin_step()
    play.ownership.stop(process.name, play.clock_ms)


def _cut_off(play: Play, event: e.CutOff) -> None:
    """What it sends is lost, and so is what it is answered; it goes on reading what it owns."""
    process = _clocked(play, event, "be cut off")
    process.talks, process.cut_off = False, True
    process.lose_answer()


def _clocked(play: Play, event: e.Hang | e.CutOff, to: str) -> Process:
    """The process, where the group has times and it follows the consumer protocol."""
    process = _running(play, event.member, to)
    if play.times is None:
        needs_times(play, event)
    if process.client is None:
        told = f"{event.member!r} cannot {to}: it follows the classic protocol, in a group that is not classic"
        raise Fault(BAD_EVENT, f"{told}; expected a process of the {play.group.protocol} protocol")
    return process


def _running(play: Play, name: str, to: str) -> Process:
    """The process, if it neither stands still, nor hangs, nor is cut off."""
    process = alive(play.processes, name)
    if process.hung or process.cut_off:
        raise Fault(BAD_EVENT, f"{name!r} is {'hung' if process.hung else 'cut off'}; it cannot {to} before it resumes")
    return talking(play.processes, name, to)


def _resume(play: Play, event: e.Resume) -> None:
    """What came while it stood still reaches it now; its next heartbeat says whether it is still a member.

    Where the group has times it reads meanwhile, if the answer takes any.
    """
    process = alive(play.processes, event.member)
    if process.talks and not process.hung and play.times is not None:
        raise Fault(BAD_EVENT, f"{event.member!r} runs; expected one that is paused, hangs or is cut off")
    if not (process.hung or process.cut_off):
        _poll_late(play, process)
        asks_first = play.times is None or play.round_trip_ms(process) == 0
        process.resumes = process.resumes or asks_first
    if process.fallen is None and not process.resumes and not process.cut_off:
        play.ownership.begin_step()
        play.ownership.take(process.name, play.consumed(process), play.clock_ms)
    process.talks, process.hung, process.cut_off, process.too_late_ms = True, False, False, None
    for due, payload in process.suspended:
        if due is EntryKind.ANSWER and process.resumes:  # it asks first whether it is a member
            process.lose_answer()
        else:
            play.put(process, due, 0, payload)
    process.suspended = []
    play.send_soon(process)


def _poll_late(play: Play, process: Process) -> None:
    """One that stood still for `max.poll.interval.ms` leaves when it goes on, where the group has times."""
    polled_ms = process.last_poll_ms(process.stopped_ms)
    if play.times is not None and not process.in_poll:
        if play.clock_ms - polled_ms >= process.times.rebalance_timeout_ms:
            leave_late(play, process)
        process.polled_ms = play.clock_ms


def _expire(play: Play, event: e.Expire) -> None:
    away = play.silent_members()
    found = (key for key, each in play.group.members.items() if each.process == event.member and key in away)
    member_id = next(found, None)
    if member_id is None:
        raise Fault(BAD_EVENT, f"{event.member!r} cannot expire; expected a member that is gone or paused")
    play.skip_to(max(play.clock_ms, play.group.deadline(member_id)))
    while (over := play.silent_time_out()) is not None and over[0] <= play.clock_ms:
        time_out(play, over[1])


def _restart(play: Play, event: e.Restart) -> None:
    """One that runs closes first, and starts once the group has settled without it; with `together`, at once."""
    process = play.processes.get(event.member)
    runs = process is not None and process.alive
    if process is not None and process.talks and not process.hung:
        _leave(play, e.Leave(event.member))
        settings = process.settings_now
        if play.overlaps:
            process.afterwards.append(partial(_start, play, settings))
        else:
            play.returning = settings
        return
    if process is not None and runs:
        play.end(process)
    _start(play, ended(play.ended, event.member))


def _subscribe(play: Play, event: e.Subscribe) -> None:
    """The coordinator hears of it with the next heartbeat of the consumer protocol, or the next JoinGroup."""
    require_topic_names(event.topics)
    process = _running(play, event.member, "subscribe")
    if play.group.protocol is e.GroupProtocol.STREAMS:
        told = f"{event.member!r} cannot subscribe: the topology names the topics of a Streams group"
        raise Fault(BAD_EVENT, f"{told}; expected no subscribe event in it")
    if process.client is not None:
        process.client = c.subscribe(process.client, event.topics)
    elif process.consumer is not None:
        # by the broker's metadata: that of its client decides nothing here
        process.consumer = classic.change_subscription(process.consumer, event.topics, known=True).consumer
        _join_again(play, process)


def _join_again(play: Play, process: Process) -> None:
    """A classic process joins again, unless it does already."""
    if process.steps is None:
        process.steps = join_steps(play, process)
        play.put(process, EntryKind.GO_ON)


def _match_again(play: Play) -> None:
    """Classic processes match their patterns, and join again where other topics match."""
    for process in play.processes.values():
        if process.alive and process.consumer is not None and process.consumer.pattern is not None:
            said, process.consumer = process.consumer.topics, classic.look(process.consumer, play.group.topics.counts)
            if process.consumer.topics != said:
                _join_again(play, process)


def _set_partitions(play: Play, event: e.SetPartitions) -> None:
    require_topic_names([event.topic])
    play.group.topics.set_partitions(event.topic, event.partitions)
    play.group.topics_changed()
    play.change_topics()
    _match_again(play)


def _delete_topic(play: Play, event: e.DeleteTopic) -> None:
    gone = [TopicPartition(event.topic, number) for number in range(play.group.topics.counts.get(event.topic, 0))]
    play.all_read_on()
    for process in play.processes.values():
        play.ownership.give_up(process.name, gone, play.clock_ms)
        process.application.forget(gone)
    play.group.topics.delete(event.topic)
    play.group.topics_changed()
    play.change_topics()
    _match_again(play)


def _lose(play: Play, event: e.LoseAssignment) -> None:
    group = f"a {play.group.protocol.value} group"
    raise Fault(
        BAD_EVENT, f"{event.member!r} cannot lose an assignment of {group}; expected a classic one, with rounds"
    )


def _no_metadata(play: Play, event: e.FreezeMetadata | e.RefreshMetadata | e.MissTopic) -> None:
    whose = f"{event.topic!r} is a topic" if isinstance(event, e.MissTopic) else f"{event.member!r} is a member"
    raise Fault(
        BAD_EVENT,
        f"{whose} of a {play.group.protocol.value} group, where the broker assigns; expected a classic group, whose "
        "leader assigns by its metadata",
    )


def _miss(play: Play, event: e.MissAssignment) -> None:
    alive(play.processes, event.member).misses = 1 + event.after


def _wait(play: Play, event: e.Wait) -> None:
    """Time has passed already."""


HAPPENS: dict[type[e.Event], Callable[[Play, Any], None]] = {
    e.Join: _join,
    e.Leave: _leave,
    e.Crash: _crash,
    e.Pause: _pause,
    e.Hang: _hang,
    e.CutOff: _cut_off,
    e.Resume: _resume,
    e.Expire: _expire,
    e.Restart: _restart,
    e.Subscribe: _subscribe,
    e.SetPartitions: _set_partitions,
    e.DeleteTopic: _delete_topic,
    e.FreezeMetadata: _no_metadata,
    e.RefreshMetadata: _no_metadata,
    e.MissAssignment: _miss,
    e.LoseAssignment: _lose,
    e.MissTopic: _no_metadata,
    e.Wait: _wait,
}


# One event of a consumer group, and all that it leads to until only heartbeats without news are left.


class Horizon(NamedTuple):
    """When the next event is due in a group that has times; None: there is none, and all time-outs run out."""

    until_ms: int | None


MOST_STEPS = 20_000
"""Of one event: a group that does not come to rest is given up."""


def settle(
    play: Play, event: e.Event, horizon: Horizon | None = None
) -> Generator[ServerQuestion, Targets, Settlement]:
    """One event, and heartbeats until nothing new comes of them, or until the next event is due, if that is told.

    Raises Fault as `happen`.
    """
    play.ownership.begin_step()
    happen(play, event)
    event_ms = max(play.settled_ms, event.at_ms)
    if horizon is not None:
        yield from pass_time(play, horizon.until_ms)
    elif not event.together:
        yield from _come_to_rest(play)
        if play.returning is not None and play.failure is None and not play.is_classic:
            come_back(play)
            yield from _come_to_rest(play)
    return _settlement(play, event, event_ms)


def pass_time(play: Play, until_ms: int | None) -> AskingTargets:
    """What comes by itself before an event, or at all: sessions that end, and what that leads to."""
    steps = 0
    while not play.is_classic and play.failure is None:
        if not play.is_quiet():
            upcoming = play.next_ms()
            if upcoming is None or (until_ms is not None and upcoming >= until_ms):
                break
            yield from take_next(play)
            steps += 1
            if steps > MOST_STEPS and play.times is not None:
                play.failure = f"not at rest after {MOST_STEPS:,} heartbeats, calls and time-outs"
            continue
        over = play.silent_time_out()
        if over is None or (until_ms is not None and over[0] >= until_ms):
            break
        play.skip_to(over[0])
        time_out(play, over[1])
    if until_ms is not None and not play.is_classic:
        play.skip_to(until_ms)


def _come_to_rest(play: Play) -> AskingTargets:
    for _ in range(MOST_STEPS):
        if play.is_classic or play.failure is not None:
            return
        if play.is_quiet():
            yield from hear_out(play)
            return
        yield from take_next(play)
    play.failure = f"not at rest after {MOST_STEPS:,} heartbeats, calls and time-outs"


def _settlement(play: Play, event: e.Event, event_ms: int) -> Settlement:
    play.catch_up()
    play.all_read_on()
    owners, wanted, counts = play.owners(), play.wanted(), play.group.topics.counts
    gaps, rebalancing = play.gaps(event_ms), not play.is_quiet()
    shared = play.group.protocol is e.GroupProtocol.SHARE  # many owners of a partition are right there
    consumed, doubly = play.ownership.consumed(), play.ownership.take_double_owners()
    began_ms, play.settled_ms, play.wanted_before = play.settled_ms, play.clock_ms, wanted
    coordinated = take_coordinated(play)
    calls, play.calls = tuple(play.calls), []
    refused, play.refused = play.refused, None
    failure, play.failure = play.failure, None
    return Settlement(
        event=event,
        rounds=(),
        calls=calls,
        owners=owners,
        unowned=tuple(sorted(wanted - owners.keys())),
        failure=failure,
        refused=refused,
        topics=counts,
        running={each.name: each.number for each in play.talking if not each.hung},
        consumed=consumed,
        double_owners=() if shared else tuple(each for each in doubly if exists(each.partition, counts)),
        unavailable_ms=waited_ms(gaps),
        coordinated=coordinated,
        timed=None
        if play.times is None
        else timed_end(
            play,
            gaps,
            play.nobody_since,
            began_ms=began_ms,
            rebalancing=rebalancing,
            held=play.ownership.held(),
        ),
    )


# The end of a settlement in a group that has times and members of the consumer protocol.

Since = dict[TopicPartition, int]
"""Partitions that nobody consumes now, and since when."""


def timed_end(
    group: ClockedGroup,
    gaps: Mapping[TopicPartition, Iterable[Gap]],
    lasting: Since,
    *,
    began_ms: int,
    rebalancing: bool,
    held: Collection[TopicPartition],
) -> TimedEnd:
    """How it ended; `lasting` is brought up to date. An outage that lasted then is told from when it began.

    `began_ms`: when the last settlement ended, of which `lasting` is. `held`: what somebody consumes now.
    """
    found = []
    for each, some in sorted(gaps.items()):
        lasted = lasting.pop(each, None)
        if lasted is not None and [gap.since_ms for gap in some][:1] != [began_ms]:
            found.append(Outage(each, lasted, began_ms))  # the event at that very moment ended it
            lasted = None
        for gap in some:
            since_ms, lasted = gap.since_ms if lasted is None else lasted, None
            goes_on = gap.until_ms == group.now_ms and each not in held
            found.append(Outage(each, since_ms, None if goes_on else gap.until_ms))
            if goes_on:
                lasting[each] = since_ms
    for gone in lasting.keys() - gaps.keys():
        del lasting[gone]
    read = None if group.records is None else group.records.found(group.now_ms)
    return TimedEnd(group.now_ms, rebalancing, tuple(found), read)


def join_ends(first: TimedEnd, then: TimedEnd) -> TimedEnd:
    """The end of a settlement in two parts. What lasted after the first one is told by the second, if it is wanted."""
    ended = [each for each in first.outages if each.until_ms is not None]
    return replace(then, outages=tuple(sorted([*ended, *then.outages], key=lambda each: each[:2])))
