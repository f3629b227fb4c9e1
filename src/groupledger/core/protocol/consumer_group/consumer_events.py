"""What an event does to a consumer group in play, before the heartbeats that it leads to."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import EventTable, new_consumer, wait
from groupledger.core.protocol.consumer_group import coordinated_group as c
from groupledger.core.protocol.consumer_group.consumer_state import GroupMember
from groupledger.core.protocol.consumer_group.coordinated_group import (
    ConsumerClient,
    CoordinatedGroup,
    EntryKind,
    Process,
)
from groupledger.core.protocol.consumer_group.exchange import (
    AskingTargets,
    hear_out,
    join_steps,
    leave_late,
    take_coordinated,
    take_next,
    time_out,
)
from groupledger.core.protocol.consumer_group.topics_and_targets import ServerQuestion, Targets
from groupledger.core.protocol.event_refusals import BAD_EVENT, ended, needs_times, no_process, require_topic_names
from groupledger.core.protocol.settlement import Settlement
from groupledger.core.protocol.simulated_ownership import waited_ms
from groupledger.core.protocol.topic_patterns import require_quick


def apply_event(play: CoordinatedGroup, event: e.Event) -> None:
    """Apply an event; raise Fault(BAD_EVENT) for one that cannot be.

    Where events do not wait for one another, what comes to a process while it closes waits until it has.
    """
    process = play.processes.get(getattr(event, "member", ""))
    if process is not None and process.alive and process.leaves and not isinstance(event, e.Crash):
        if not (process.afterwards or isinstance(event, e.Join | e.Restart)):
            raise no_process(process.name)
        process.afterwards.append(partial(apply_event, play, event))
        return
    EVENTS[type(event)](play, event)


def come_back(play: CoordinatedGroup) -> None:
    """Start the process that is returning, if one is."""
    settings, play.returning = play.returning, None
    if settings is not None:
        _start(play, settings)


def _start(play: CoordinatedGroup, settings: e.Join) -> None:
    """Start a process, which subscribes and speaks to the coordinator at once."""
    play.require_new(settings.member)
    require_topic_names(settings.topics)
    play.processes.pop(settings.member, None)
    play.born[settings.member] += 1
    process = Process(settings=replace(settings, seat=None), number=play.born[settings.member])
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


def _go_on_as_recorded(play: CoordinatedGroup, process: Process, seat: e.RecordedSeat) -> None:
    """Seat a member of the current epoch: it owns what it was assigned, and heartbeats without news."""
    settings, group = process.settings, play.group
    if not settings.group_protocol.coordinated or settings.topic_regex is not None:
        got = f"{settings.member!r} {'subscribes by a pattern' if settings.topic_regex else 'is a classic member'}"
        raise Fault(BAD_EVENT, f"{got}; expected a recorded consumer group whose members subscribe by name")
    held = group.topics.identified(seat.assigned)
    client = _client(process, seat.member_id)
    known = replace(client, epoch=group.epoch, owned=held, assigned=held, stated=held, full=False)
    process.client = replace(known, said=client.subscribed)
    member = GroupMember(
        member_id=seat.member_id,
        process=process.name,
        topics=settings.topics,
        group_instance_id=settings.group_instance_id,
        remote_assignor=settings.remote_assignor,
        rebalance_timeout_ms=process.times.rebalance_timeout_ms,
    )
    group.seat_recorded(member, held, play.clock_ms)
    play.begin_recorded(process, group.topics.named(held))
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


def _leave(play: CoordinatedGroup, event: e.Leave) -> None:
    process = _running(play, event.member, "leave")
    process.closing = process.leaves = True
    play.put(process, EntryKind.GO_ON)


def _crash(play: CoordinatedGroup, event: e.Crash) -> None:
    process = play.process_of(event.member)
    play.end(process)
    if process.member_id not in play.group.members:
        del play.processes[process.name]


def _pause(play: CoordinatedGroup, event: e.Pause) -> None:
    process = play.process_of(event.member)
    if process.hung or process.cut_off:
        _running(play, event.member, "pause")
    play.stop(process)
    process.stopped_ms = play.clock_ms


def _hang(play: CoordinatedGroup, event: e.Hang) -> None:
    """Its next poll does not come: `max.poll.interval.ms` after the last one it leaves the group."""
    process = _clocked(play, event, "hang")
    process.too_late_ms = process.last_poll_ms(play.clock_ms) + process.times.rebalance_timeout_ms
    process.read_on()
    process.hung = True
    play.ownership.begin_step()
    play.ownership.stop(process.name, play.clock_ms)


def _cut_off(play: CoordinatedGroup, event: e.CutOff) -> None:
    """Cut a process off: what it sends is lost, and so are its answers; it continues to read what it owns."""
    process = _clocked(play, event, "be cut off")
    process.talks, process.cut_off = False, True
    process.lose_answer()


def _clocked(play: CoordinatedGroup, event: e.Hang | e.CutOff, to: str) -> Process:
    """Return the process, if the group has times and it follows the consumer protocol."""
    process = _running(play, event.member, to)
    if play.times is None:
        needs_times(play, event)
    if process.client is None:
        got = f"{event.member!r} cannot {to}: it follows the classic protocol, in a group that is not classic"
        raise Fault(BAD_EVENT, f"{got}; expected a process of the {play.group.protocol} protocol")
    return process


def _running(play: CoordinatedGroup, name: str, to: str) -> Process:
    """Return the process, if it is neither paused nor hung nor cut off."""
    process = play.process_of(name)
    if process.hung or process.cut_off:
        raise Fault(BAD_EVENT, f"{name!r} is {'hung' if process.hung else 'cut off'}; it cannot {to} before it resumes")
    return play.running(name, to)


def _resume(play: CoordinatedGroup, event: e.Resume) -> None:
    """Let a process continue: what came meanwhile reaches it now. Its next heartbeat shows if it is still a member.

    Where the group has times it reads meanwhile, if the answer takes any.
    """
    process = play.process_of(event.member)
    if process.talks and not process.hung and play.times is not None:
        raise Fault(BAD_EVENT, f"{event.member!r} runs; expected one that is paused, hangs or is cut off")
    if not (process.hung or process.cut_off):
        _poll_late(play, process)
        asks_first = play.times is None or play.round_trip_ms(process) == 0
        process.resumes = process.resumes or asks_first
    if process.pending_error is None and not process.resumes and not process.cut_off:
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


def _poll_late(play: CoordinatedGroup, process: Process) -> None:
    """Let one that stood still for `max.poll.interval.ms` leave when it resumes, if the group has times."""
    polled_ms = process.last_poll_ms(process.stopped_ms)
    if play.times is not None and not process.in_poll:
        if play.clock_ms - polled_ms >= process.times.rebalance_timeout_ms:
            leave_late(play, process)
        process.polled_ms = play.clock_ms


def _expire(play: CoordinatedGroup, event: e.Expire) -> None:
    away = play.silent_members()
    found = (key for key, each in play.group.members.items() if each.process == event.member and key in away)
    member_id = next(found, None)
    if member_id is None:
        raise Fault(BAD_EVENT, f"{event.member!r} cannot expire; expected a member that is gone or paused")
    play.skip_to(max(play.clock_ms, play.group.deadline(member_id)))
    while (over := play.silent_time_out()) is not None and over[0] <= play.clock_ms:
        time_out(play, over[1])


def _restart(play: CoordinatedGroup, event: e.Restart) -> None:
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


def _subscribe(play: CoordinatedGroup, event: e.Subscribe) -> None:
    """Subscribe to other topics; the coordinator learns of it with the next heartbeat, or the next JoinGroup."""
    require_topic_names(event.topics)
    process = _running(play, event.member, "subscribe")
    if play.group.protocol is e.GroupProtocol.STREAMS:
        got = f"{event.member!r} cannot subscribe: the topology names the topics of a Streams group"
        raise Fault(BAD_EVENT, f"{got}; expected no subscribe event in it")
    if process.client is not None:
        process.client = c.subscribe(process.client, event.topics)
    elif process.consumer is not None:
        # by the broker's metadata: that of its client decides nothing here
        process.consumer = classic.change_subscription(process.consumer, event.topics, known=True).consumer
        _join_again(play, process)


def _join_again(play: CoordinatedGroup, process: Process) -> None:
    """Let a classic process join again, unless it does already."""
    if process.steps is None:
        process.steps = join_steps(play, process)
        play.put(process, EntryKind.GO_ON)


def _match_again(play: CoordinatedGroup) -> None:
    """Classic processes match their patterns, and join again where other topics match."""
    for process in play.processes.values():
        if process.alive and process.consumer is not None and process.consumer.pattern is not None:
            said, process.consumer = process.consumer.topics, classic.look(process.consumer, play.group.topics.counts)
            if process.consumer.topics != said:
                _join_again(play, process)


def _set_partitions(play: CoordinatedGroup, event: e.SetPartitions) -> None:
    require_topic_names([event.topic])
    play.group.topics.set_partitions(event.topic, event.partitions)
    play.group.topics_changed()
    play.change_topics(play.group.topics.counts)
    _match_again(play)


def _delete_topic(play: CoordinatedGroup, event: e.DeleteTopic) -> None:
    gone = [TopicPartition(event.topic, number) for number in range(play.group.topics.counts.get(event.topic, 0))]
    play.all_read_on()
    for process in play.processes.values():
        play.ownership.give_up(process.name, gone, play.clock_ms)
        process.application.forget(gone)
    play.group.topics.delete(event.topic)
    play.group.topics_changed()
    play.change_topics(play.group.topics.counts)
    _match_again(play)


def _lose(play: CoordinatedGroup, event: e.LoseAssignment) -> None:
    group = f"a {play.group.protocol.value} group"
    raise Fault(
        BAD_EVENT, f"{event.member!r} cannot lose an assignment of {group}; expected a classic one, with rounds"
    )


def _no_metadata(play: CoordinatedGroup, event: e.FreezeMetadata | e.RefreshMetadata | e.MissTopic) -> None:
    whose = f"{event.topic!r} is a topic" if isinstance(event, e.MissTopic) else f"{event.member!r} is a member"
    raise Fault(
        BAD_EVENT,
        f"{whose} of a {play.group.protocol.value} group, where the broker assigns; expected a classic group, whose "
        "leader assigns by its metadata",
    )


def _miss(play: CoordinatedGroup, event: e.MissAssignment) -> None:
    play.process_of(event.member).misses = 1 + event.after


EVENTS: EventTable = {
    e.Join: _start,
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
    e.Wait: wait,
}


# One event of a consumer group, and all that it leads to until only heartbeats without news are left.


class Horizon(NamedTuple):
    """When the next event is due in a group that has times; None: there is none, and all time-outs run out."""

    until_ms: int | None


MOST_STEPS = 20_000
"""Of one event: a group that does not come to rest is given up."""


def settle(
    play: CoordinatedGroup, event: e.Event, horizon: Horizon | None = None
) -> Generator[ServerQuestion, Targets, Settlement]:
    """Apply an event, and play heartbeats until nothing new comes of them, or until the next event is due (`horizon`).

    Raises Fault as `apply_event`.
    """
    play.ownership.begin_step()
    apply_event(play, event)
    event_ms = max(play.settled_ms, event.at_ms)
    if horizon is not None:
        yield from pass_time(play, horizon.until_ms)
    elif not event.together:
        yield from _come_to_rest(play)
        if play.returning is not None and play.failure is None and not play.is_classic:
            come_back(play)
            yield from _come_to_rest(play)
    return _settlement(play, event, event_ms)


def pass_time(play: CoordinatedGroup, until_ms: int | None) -> AskingTargets:
    """Play all that comes by itself before an event, or at all: sessions end, and members react."""
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


def _come_to_rest(play: CoordinatedGroup) -> AskingTargets:
    for _ in range(MOST_STEPS):
        if play.is_classic or play.failure is not None:
            return
        if play.is_quiet():
            yield from hear_out(play)
            return
        yield from take_next(play)
    play.failure = f"not at rest after {MOST_STEPS:,} heartbeats, calls and time-outs"


def _settlement(play: CoordinatedGroup, event: e.Event, event_ms: int) -> Settlement:
    play.catch_up()
    play.all_read_on()
    gaps, wanted = play.gaps(event_ms), play.wanted()
    timed = play.timed_end(gaps, rebalancing=not play.is_quiet())
    shared = play.group.protocol is e.GroupProtocol.SHARE  # many owners of a partition are right there
    settled = play.settlement(event, waited_ms(gaps), timed, shared=shared, coordinated=take_coordinated(play))
    play.settled_ms, play.wanted_before, play.failure = play.clock_ms, wanted, None
    return settled
