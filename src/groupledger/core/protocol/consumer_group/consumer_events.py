"""What an event does to a consumer group in play, before the heartbeats that it leads to."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import NoReturn

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol import events as e
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
    take_coordinated,
    take_next,
)
from groupledger.core.protocol.consumer_group.topics_and_targets import ServerQuestion, Targets
from groupledger.core.protocol.events import BAD_EVENT
from groupledger.core.protocol.settlement import Settlement
from groupledger.core.protocol.simulated_group import new_consumer, waited_ms
from groupledger.core.protocol.topic_patterns import require_quick


@dataclass(slots=True, kw_only=True)
class PlayedConsumerGroup(CoordinatedGroup):
    """A group that its coordinator assigns, and what events do to it before the heartbeats that they lead to."""

    def join(self, settings: e.Join) -> None:
        """Start a process, which subscribes and speaks to the coordinator at once, or once the group is classic."""
        if self.is_classic:  # since the process closed in whose place it starts
            self.returning = settings
            return
        self.require_new(settings.member)
        e.require_topic_names(settings.topics)
        process = Process(settings=replace(settings, seat=None))
        self.begin(process)
        if settings.seat is not None:
            self._go_on_as_recorded(process, settings.seat)
        elif settings.group_protocol.coordinated:
            if settings.topic_regex:
                require_quick(settings.member, settings.topic_regex)
            process.client = _client(process, self.new_id(settings.member))
            self.send_soon(process)
        else:
            process.consumer = new_consumer(settings, self.group.topics.counts, self.form, {})
            self._join_again(process)

    def _go_on_as_recorded(self, process: Process, seat: e.RecordedSeat) -> None:
        """Seat a member of the current epoch: it owns what it was assigned, and heartbeats without news."""
        settings, group = process.settings, self.group
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
        group.seat_recorded(member, held, self.clock_ms)
        self.begin_recorded(process, group.topics.named(held))
        self.send_next(process)

    def leave(self, process: Process) -> None:
        """Close a process, after the call that it is in."""
        process.closing = process.leaves = True
        self.put(process, EntryKind.GO_ON)

    def crash(self, process: Process) -> None:
        """End a process, whose session ends later."""
        self.end(process)
        if process.member_id not in self.group.members:
            del self.processes[process.name]

    def pause(self, name: str) -> None:
        """Let a process stand still, heartbeats included; also one that does already."""
        process = self.process_of(name)
        if process.hung or process.cut_off:
            self.running(name, "pause")
        self.stop(process)
        process.stopped_ms = self.clock_ms

    def hang(self, name: str) -> None:
        """Let its next poll not come: `max.poll.interval.ms` after the last one it leaves the group."""
        process = self._clocked(name, "hang")
        process.too_late_ms = process.last_poll_ms(self.clock_ms) + process.times.rebalance_timeout_ms
        process.read_on()
        process.hung = True
        self.ownership.begin_step()
        self.ownership.stop(process.name, self.clock_ms)

    def cut_off(self, name: str) -> None:
        """Cut a process off: what it sends is lost, and so are its answers; it continues to read what it owns."""
        process = self._clocked(name, "be cut off")
        process.talks, process.cut_off = False, True
        process.lose_answer()

    def _clocked(self, name: str, to: str) -> Process:
        """Return the process, if the group has times and it follows the consumer protocol."""
        process: Process = self.running(name, to)
        if self.times is None:
            raise e.needs_times(name)
        if process.client is None:
            got = f"{name!r} cannot {to}: it follows the classic protocol, in a group that is not classic"
            raise Fault(BAD_EVENT, f"{got}; expected a process of the {self.group.protocol} protocol")
        return process

    def resume(self, name: str) -> None:
        """Let a process continue: what came meanwhile reaches it now. Its next heartbeat shows if it is still a member.

        Where the group has times it reads meanwhile, if the answer takes any.
        """
        process = self.process_of(name)
        if process.talks and not process.hung and self.times is not None:
            raise Fault(BAD_EVENT, f"{name!r} runs; expected one that is paused, hangs or is cut off")
        if not (process.hung or process.cut_off):
            self._poll_late(process)
            asks_first = self.times is None or self.round_trip_ms(process) == 0
            process.resumes = process.resumes or asks_first
        if process.pending_error is None and not process.resumes and not process.cut_off:
            self.ownership.begin_step()
            self.ownership.take(process.name, self.consumed(process), self.clock_ms)
        process.talks, process.hung, process.cut_off, process.too_late_ms = True, False, False, None
        for due, payload in process.suspended:
            if due is EntryKind.ANSWER and process.resumes:  # it asks first whether it is a member
                process.lose_answer()
            else:
                self.put(process, due, 0, payload)
        process.suspended = []
        self.send_soon(process)

    def _poll_late(self, process: Process) -> None:
        """Let one that stood still for `max.poll.interval.ms` leave when it resumes, if the group has times."""
        polled_ms = process.last_poll_ms(process.stopped_ms)
        if self.times is not None and not process.in_poll:
            if self.clock_ms - polled_ms >= process.times.rebalance_timeout_ms:
                self.leave_late(process)
            process.polled_ms = self.clock_ms

    def expire(self, name: str) -> None:
        """Let time pass until the session of a member that is gone or paused ends, with those that end by then."""
        away = self.silent_members()
        found = (key for key, each in self.group.members.items() if each.process == name and key in away)
        member_id = next(found, None)
        if member_id is None:
            raise Fault(BAD_EVENT, f"{name!r} cannot expire; expected a member that is gone or paused")
        self.skip_to(max(self.clock_ms, self.group.deadline(member_id)))
        while (over := self.silent_time_out()) is not None and over[0] <= self.clock_ms:
            self.time_out(over[1])

    def subscribe(self, process: Process, topics: tuple[str, ...], *, known: bool) -> None:
        """Subscribe to other topics; the coordinator learns of it with the next heartbeat, or the next JoinGroup.

        What a classic client has metadata of (`known`) decides nothing here: the broker's does.
        """
        if self.group.protocol is e.GroupProtocol.STREAMS:
            got = f"{process.name!r} cannot subscribe: the topology names the topics of a Streams group"
            raise Fault(BAD_EVENT, f"{got}; expected no subscribe event in it")
        if process.client is not None:
            process.client = c.subscribe(process.client, topics)
        else:
            process.consumer = classic.change_subscription(process.classic_consumer, topics, known=True).consumer
            self._join_again(process)

    def _join_again(self, process: Process) -> None:
        """Let a classic process join again, unless it does already."""
        if process.steps is None:
            process.steps = join_steps(self, process)
            self.put(process, EntryKind.GO_ON)

    def set_partitions(self, topic: str, partitions: int) -> None:
        """Make a topic, or give it more partitions."""
        self.group.topics.set_partitions(topic, partitions)
        self._topics_changed()

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, which nobody consumes any more."""
        gone = [TopicPartition(topic, number) for number in range(self.group.topics.counts.get(topic, 0))]
        self.all_read_on()
        for process in self.processes.values():
            self.ownership.give_up(process.name, gone, self.clock_ms)
        self.group.topics.delete(topic)
        self._topics_changed()

    def _topics_changed(self) -> None:
        """Classic processes match their patterns, and join again where other topics match."""
        self.group.topics_changed()
        self.change_topics(self.group.topics.counts)
        for process in self.processes.values():
            if process.alive and process.consumer is not None and process.consumer.pattern is not None:
                said, process.consumer = process.consumer.topics, classic.look(process.consumer, self.topics)
                if process.consumer.topics != said:
                    self._join_again(process)

    def led(self, whose: str) -> NoReturn:
        """Refuse what concerns a client's metadata: the broker assigns."""
        expected = "a classic group, whose leader assigns by its metadata"
        got = f"{whose} of a {self.group.protocol.value} group, where the broker assigns"
        raise Fault(BAD_EVENT, f"{got}; expected {expected}")

    def lose_assignment(self, name: str) -> None:
        """Refuse it: there are no rounds."""
        got = f"{name!r} cannot lose an assignment of a {self.group.protocol.value} group"
        raise Fault(BAD_EVENT, f"{got}; expected a classic one, with rounds")


def _client(process: Process, member_id: str) -> ConsumerClient:
    """Return the client of a process; a Streams member that names no process is one of its own."""
    settings = process.settings
    streams = settings.group_protocol is e.GroupProtocol.STREAMS
    return ConsumerClient(
        member_id=member_id,
        process=settings.member,
        topics=settings.topics,
        regex=settings.topic_regex,
        group_instance_id=settings.group_instance_id,
        remote_assignor=settings.remote_assignor,
        rebalance_timeout_ms=process.times.rebalance_timeout_ms,
        protocol=settings.group_protocol,
        process_id=settings.process_id or settings.member if streams else None,
    )


# One event of a consumer group, and all that it leads to until only heartbeats without news are left.


Horizon = tuple[int | None]
"""When the next event is due in a group that has times; None: there is none, and all time-outs run out."""
MOST_STEPS = 20_000
"""Of one event: a group that does not come to rest is given up."""


def settle(
    play: PlayedConsumerGroup, event: e.Event, horizon: Horizon | None = None
) -> Generator[ServerQuestion, Targets, Settlement]:
    """Apply an event, and play heartbeats until nothing new comes of them, or until the next event is due (`horizon`).

    Raises Fault as `RoundsGroup.apply`.
    """
    play.ownership.begin_step()
    play.apply(event)
    event_ms = max(play.settled_ms, event.at_ms)
    if horizon is not None:
        yield from pass_time(play, *horizon)
    elif not event.together:
        yield from _come_to_rest(play)
        if play.returning is not None and play.failure is None and not play.is_classic:
            play.come_back()
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
        play.time_out(over[1])
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
