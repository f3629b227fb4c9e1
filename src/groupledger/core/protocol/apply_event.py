"""What an event does to a group, before the rounds that it leads to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.group import Protocol, TopicPartition
from groupledger.core.custom.naming import SOLVED_ALONE, CustomAssignor
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.client_library import habits_of, require_played
from groupledger.core.protocol.compatibility import SUPPORTED, protocol_of
from groupledger.core.protocol.coordinator import Registered
from groupledger.core.protocol.refusals import (
    BAD_EVENT,
    REFUSALS,
    alive,
    ended,
    needs_times,
    require_new,
    require_topic_names,
    talking,
)
from groupledger.core.protocol.rounds import ClassicGroup, ClassicProcess
from groupledger.core.protocol.topic_patterns import require_pattern
from groupledger.core.rebalance.step import Form


def happen(group: ClassicGroup, event: e.Event) -> str | None:
    """Let an event happen; gives why the coordinator refused a member, if it did.

    Raises Fault: BAD_EVENT for an event about a process that is not there, or is already; UNKNOWN_ASSIGNOR.
    """
    group.set_clocks(max(group.clock_ms, event.at_ms))
    group.catch_up()
    return _unless_refused(group, lambda: HAPPENS[type(event)](group, event))


def come_back(group: ClassicGroup) -> str | None:
    """Start the process that is returning, if one is; gives why it was refused, if it was."""
    settings, group.returning = group.returning, None
    if settings is None:
        return None
    group.set_clocks(group.clock_ms)
    return _unless_refused(group, lambda: _start(group, settings))


def _unless_refused(group: ClassicGroup, act: Callable[[], None]) -> str | None:
    group.ownership.begin_step()
    try:
        act()
    except Fault as fault:
        if fault.code not in REFUSALS:
            raise
        return fault.message
    group.clock_ms = group.latest_ms()
    return None


def _join(group: ClassicGroup, event: e.Join) -> None:
    require_new(group.processes, event.member)
    _start(group, event)


def _start(group: ClassicGroup, settings: e.Join) -> None:
    """A process subscribes; a static member takes its seat in a stable group without a rebalance."""
    require_topic_names(settings.topics)
    consumer = new_consumer(settings, group.topics, group.form, group.custom)
    group.coordinator.require_common_assignor(settings.member, settings.assignors)
    group.strangers.pop(settings.member, None)
    group.born[settings.member] += 1
    process = ClassicProcess(replace(settings, seat=None), consumer, group.clock_ms, group.born[settings.member])
    group.begin(process)
    old = group.processes.pop(settings.member, None)
    if old is not None:
        group.end(old)
    group.processes[settings.member] = process
    if settings.seat is None:
        _take_seat(group, process)
    else:
        _go_on(group, process, settings.seat)


def _go_on(group: ClassicGroup, process: ClassicProcess, seat: e.RecordedSeat) -> None:
    """Seat a member of the current generation: it holds what it was assigned, and nobody rebalances."""
    process.consumer, sent = c.take_recorded(process.consumer, seat, group.coordinator.generation)
    group.coordinator.seat_recorded(process.registered(seat.member_id, sent), seat)
    process.joins, process.heard_ms = False, group.clock_ms
    if seat.leads:
        group.planned_view = process.consumer.view
    process.application.begin_with(seat.assigned, process, group.calls, group.clock_ms)
    group.ownership.take(process.name, seat.assigned, group.clock_ms)


def _take_seat(group: ClassicGroup, process: ClassicProcess) -> None:
    """Join as a process does that starts, or that fell out; a static one takes its seat in a stable group."""
    seat = group.coordinator.static_seat(process.instance_id)
    if seat is not None:
        _fence(group, process, seat)
    if seat is None or group.coordinator.rebalancing:
        group.must_join(process)
    else:
        _take_back(group, process, seat)


def new_consumer(
    settings: e.Join, topics: c.PartitionCounts, form: Form, custom: Mapping[str, CustomAssignor]
) -> c.Consumer:
    """The consumer of a process of the classic protocol that starts; raises Fault: BAD_EVENT, UNKNOWN_ASSIGNOR."""
    if not settings.assignors:
        expected = "at least one, as Kafka's partition.assignment.strategy has it"
        raise Fault(BAD_EVENT, f"{settings.member!r} lists no assignor; expected {expected}")
    if settings.topic_regex is not None:
        require_pattern(settings.member, settings.topic_regex, settings.topics)
    supported = [_supported(custom, each) for each in settings.assignors]
    protocol = Protocol.EAGER if settings.upgrade_from else protocol_of(supported, settings.byte_code)
    consumer = c.Consumer(
        protocol,
        settings.topics,
        topics,
        settings.byte_code,
        form,
        habits=habits_of(settings.library, form),
        pattern=settings.topic_regex,
    )
    return c.look(consumer, topics)


def _supported(custom: Mapping[str, CustomAssignor], assignor: str) -> Iterable[Protocol]:
    if assignor in custom:
        return custom[assignor].supported_protocols
    require_played(assignor)
    if assignor not in ASSIGNORS:
        expected = expected_one_of(assignor, [*ASSIGNORS, *custom])
        raise Fault("UNKNOWN_ASSIGNOR", f"assignor is {assignor!r}; {expected}; {SOLVED_ALONE}")
    return SUPPORTED[assignor]


def _fence(group: ClassicGroup, process: ClassicProcess, seat: Registered) -> None:
    """A process that still runs under the instance id of another one stops for good (FENCED_INSTANCE_ID)."""
    for other in group.processes.values():
        if other is not process and other.consumer.member_id == seat.member_id:
            group.end(other)


def _take_back(group: ClassicGroup, process: ClassicProcess, seat: Registered) -> None:
    """A static member returns to a stable group: a new member id, its own assignment, the same generation.

    In the form `kip` it joins again where something would stay undone: it led, and the topics are no longer those of
    the assignment; or what it claimed is to go to another, who waits for it to be revoked (decision 0032).
    """
    coordinator = group.coordinator
    joining = c.join(process.consumer)
    member_id = coordinator.new_member_id(process.name)
    leads = coordinator.leader == seat.member_id
    coordinator.replace(seat.member_id, process.registered(member_id, joining.subscription))
    process.joins, process.heard_ms = False, group.clock_ms
    group.made(process, joining.calls, c.enter(joining.consumer, member_id, coordinator.generation, leads))
    group.react(process, c.receive_assignment(process.consumer, coordinator.given.get(member_id, ())))
    unseen = leads and group.planned_view != process.consumer.view
    unrevoked = not process.consumer.owned.issuperset(seat.subscription.owned)
    if group.form is Form.KIP and (unseen or unrevoked):
        group.must_join(process)


def _leave(group: ClassicGroup, event: e.Leave) -> None:
    process = talking(group.processes, event.member, "leave")
    group.commit(process)
    group.react(process, c.close(process.consumer))
    group.end(process)
    group.set_clocks(process.clock_ms)  # it leaves once its callback has returned
    if process.settings.group_instance_id is None:
        _unseat(group, process)


def _crash(group: ClassicGroup, event: e.Crash) -> None:
    if event.member in group.strangers:
        del group.strangers[event.member]
        return
    group.end(alive(group.processes, event.member))


def _pause(group: ClassicGroup, event: e.Pause) -> None:
    group.stop(alive(group.processes, event.member))


def _resume(group: ClassicGroup, event: e.Resume) -> None:
    """The next heartbeat says whether the group went on without it."""
    if event.member in group.strangers:
        del group.strangers[event.member]
        raise Fault("GROUP_ID_NOT_FOUND", f"GROUP_ID_NOT_FOUND: {event.member} finds a classic group, and ends")
    process = alive(group.processes, event.member)
    process.talks = True
    if _is_late(group, process):
        if process.instance_id is None:
            _unseat(group, process)
        reaction = c.fall_out(process.consumer, c.Error.UNKNOWN_MEMBER_ID)
        group.made(process, reaction.calls, reaction.consumer)
        _take_seat(group, process)
    elif process.consumer.member_id not in group.coordinator.members:
        group.react(process, c.fall_out(process.consumer, c.Error.UNKNOWN_MEMBER_ID))
    elif process.consumer.generation != group.coordinator.generation:
        group.react(process, c.fall_out(process.consumer, c.Error.ILLEGAL_GENERATION))
    group.ownership.take(process.name, process.consumer.owned, process.clock_ms)
    _learn(group, process)


def _is_late(group: ClassicGroup, process: ClassicProcess) -> bool:
    """Return whether a process stood still for `max.poll.interval.ms`; in a group without times none is late."""
    return group.times is not None and group.clock_ms - process.stopped_ms >= process.times.rebalance_timeout_ms


def _expire(group: ClassicGroup, event: e.Expire) -> None:
    process = group.processes.get(event.member)
    if process is None or process.talks:
        raise Fault(BAD_EVENT, f"{event.member!r} cannot expire; expected a process that is gone or paused")
    _unseat(group, process)


def _unseat(group: ClassicGroup, process: ClassicProcess) -> None:
    if process.consumer.member_id is not None:
        group.coordinator.remove(process.consumer.member_id)
    if not process.alive:
        del group.processes[process.name]


def _restart(group: ClassicGroup, event: e.Restart) -> None:
    """One that runs closes first, and starts once the group has settled without it; with `together`, at once."""
    process = group.processes.get(event.member)
    if process is not None and process.talks:
        _leave(group, e.Leave(event.member))
    elif process is not None:
        group.end(process)
    settings = ended(group.ended, event.member)
    if process is not None and process.name not in group.processes and not event.together:
        group.returning = settings
    else:
        _start(group, settings)


def _subscribe(group: ClassicGroup, event: e.Subscribe) -> None:
    require_topic_names(event.topics)
    process = talking(group.processes, event.member, "subscribe")
    group.react(process, c.change_subscription(process.consumer, event.topics, known=event.known))


def _set_partitions(group: ClassicGroup, event: e.SetPartitions) -> None:
    require_topic_names([event.topic])
    group.change_topics({**group.topics, event.topic: event.partitions})
    _tell(group, event.topic)


def _delete_topic(group: ClassicGroup, event: e.DeleteTopic) -> None:
    gone = [TopicPartition(event.topic, number) for number in range(group.topics.get(event.topic, 0))]
    for process in group.processes.values():
        process.application.forget(gone)
    group.change_topics({topic: count for topic, count in group.topics.items() if topic != event.topic})
    _tell(group, event.topic)


def _tell(group: ClassicGroup, topic: str) -> None:
    """A client's metadata has the topics that somebody of its group subscribes to; with a pattern it has all."""
    known = any(topic in each.consumer.topics for each in group.processes.values())
    for process in group.processes.values():
        if known or process.consumer.subscribes(topic):
            _learn(group, process)


def _learn(group: ClassicGroup, process: ClassicProcess) -> None:
    if process.talks and not process.frozen:
        group.react(process, c.change_metadata(process.consumer, group.topics))


def _freeze(group: ClassicGroup, event: e.FreezeMetadata) -> None:
    process = alive(group.processes, event.member)
    process.frozen, process.frozen_rounds = True, event.rounds


def _refresh(group: ClassicGroup, event: e.RefreshMetadata) -> None:
    process = alive(group.processes, event.member)
    process.frozen = False
    _learn(group, process)


def _miss(group: ClassicGroup, event: e.MissAssignment) -> None:
    alive(group.processes, event.member).misses = 1 + event.after


def _lose(group: ClassicGroup, event: e.LoseAssignment) -> None:
    alive(group.processes, event.member).loses = True


def _miss_topic(group: ClassicGroup, event: e.MissTopic) -> None:
    require_topic_names([event.topic])
    group.missing.miss(event.topic, event.rounds)


def _wait(group: ClassicGroup, event: e.Wait) -> None:
    """Time has passed already: where a group has no times, sessions run out by `Expire` alone."""


HAPPENS: dict[type[e.Event], Callable[[ClassicGroup, Any], None]] = {
    e.Join: _join,
    e.Leave: _leave,
    e.Crash: _crash,
    e.Pause: _pause,
    e.Hang: needs_times,
    e.CutOff: needs_times,
    e.Resume: _resume,
    e.Expire: _expire,
    e.Restart: _restart,
    e.Subscribe: _subscribe,
    e.SetPartitions: _set_partitions,
    e.DeleteTopic: _delete_topic,
    e.FreezeMetadata: _freeze,
    e.RefreshMetadata: _refresh,
    e.MissAssignment: _miss,
    e.LoseAssignment: _lose,
    e.MissTopic: _miss_topic,
    e.Wait: _wait,
}
