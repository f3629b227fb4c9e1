"""Rounds of a simulated group without a clock: all join, their leader is asked, all are answered."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol import events as e
from groupledger.core.protocol.classic_group import (
    NOBODY,
    ClassicGroup,
    ClassicProcess,
    Registered,
    assign_call,
    ended,
    member_round,
    seats_of,
)
from groupledger.core.protocol.consumer import NOTHING, Call, Consumer, Reaction
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.script import MOST_ROUNDS
from groupledger.core.protocol.settlement import Cycle, MemberRound, Settlement
from groupledger.core.protocol.simulated_group import Gap, new_consumer, waited_ms

if TYPE_CHECKING:
    from groupledger.core.protocol.consumer_group.coordinated_group import Process


REFUSALS = frozenset({"INCONSISTENT_GROUP_PROTOCOL", "GROUP_ID_NOT_FOUND"})


def gather(group: RoundsGroup) -> Question | None:
    """All who talk join, and the coordinator starts a generation; None where nobody is left to be asked.

    A dynamic member that did not join has lost its seat by the time-out; a static one keeps it, with what it last sent.
    """
    group.round, group.round_started_ms = len(group.rounds) + 1, group.clock_ms
    group.ownership.begin_step()
    group.catch_up()
    for process in group.processes.values():
        if process.talks:
            group.commit(process)
            _send_join(group, process)
    joined = group.seated()
    for member_id, member in list(group.coordinator.members.items()):
        if member_id not in joined and member.group_instance_id is None:
            group.coordinator.remove(member_id)
    group.coordinator.start_generation(joined)
    group.set_clocks(group.latest_ms() + group.pace.round_ms)
    if not joined:
        _close(group, (), NOBODY, group.unowned([]))
        return None
    for process in group.processes.values():
        process.heard_ms = group.clock_ms
    for member_id, process in joined.items():
        leads = member_id == group.coordinator.leader
        process.consumer = c.enter(process.consumer, member_id, group.coordinator.generation, leads)
    leader = joined[group.coordinator.leader or ""]
    seats = seats_of(group.coordinator)
    group.made(leader, (assign_call(seats),), leader.consumer)
    return group.question(leader, group.coordinator.assignor, seats)


def _send_join(group: RoundsGroup, process: RoundsProcess) -> None:
    """JoinGroup. A member that has no id is given one: a dynamic one joins again with it (KIP-394)."""
    process.look(group.topics)
    joining = c.join(process.consumer)
    group.made(process, joining.calls, joining.consumer)
    member_id = joining.consumer.member_id
    if member_id is None:
        member_id = group.coordinator.new_member_id(process.name)
        seat = group.coordinator.static_seat(process.settings.group_instance_id)
        if process.settings.group_instance_id is None:
            joining = c.receive_member_id(joining.consumer, member_id)
            group.made(process, joining.calls, joining.consumer)
        elif seat is not None:
            group.coordinator.replace(seat.member_id, process.registered(member_id, joining.subscription))
    process.consumer = replace(joining.consumer, member_id=member_id)
    process.joins = False
    group.coordinator.seat(process.registered(member_id, joining.subscription))


def spread(group: RoundsGroup, plan: Plan) -> None:
    """Answer SyncGroup to all, once the leader has assigned.

    Who revokes something joins again, and who got no answer; so does the leader that gets metadata only then of a topic
    that it assigned without.
    """
    group.set_clocks(group.latest_ms())
    group.ownership.begin_step(answering=True)
    group.catch_up()
    joined = group.seated()
    before = {member_id: tuple(sorted(each.consumer.owned)) for member_id, each in joined.items()}
    unavailable = group.unowned(before.values())
    group.coordinator.given = plan.assigned
    answered = {member_id: _answer(group, process, member_id, plan) for member_id, process in joined.items()}
    if group.missing.assigned():
        group.must_join(joined[group.coordinator.leader or ""])
    for process in joined.values():
        if process.thaw():
            group.react(process, c.change_metadata(process.consumer, group.topics))
    rows = tuple(
        member_round(process, member_id, plan, before[member_id], (answered[member_id], process.joins))
        for member_id, process in joined.items()
    )
    _close(group, rows, plan, unavailable)


def _answer(group: RoundsGroup, process: RoundsProcess, member_id: str, plan: Plan) -> bool:
    answered = not process.misses_answer() and plan.failure is None
    if process.loses and answered:
        process.loses = process.talks = False
        process.heard_ms = group.clock_ms
    elif answered:
        group.react(process, c.receive_assignment(process.consumer, plan.assigned.get(member_id, ())))
    else:
        group.must_join(process)
    return answered


def _close(
    group: RoundsGroup, members: tuple[MemberRound, ...], plan: Plan, unavailable: tuple[TopicPartition, ...]
) -> None:
    """Note the round; the clock stands where the last member is done."""
    group.clock_ms = group.latest_ms()
    begun = group.new_round(group.round, group.round_started_ms, unavailable)
    group.rounds.append(ended(begun, members, plan, group.clock_ms))


# A group in play: its processes, its coordinator, its topics, and the record of what they did.


@dataclass(slots=True, kw_only=True)
class RoundsProcess(ClassicProcess):
    """One process and its consumer. `talks`: it has not ended, nor is it paused."""

    clock_ms: int
    talks: bool = True
    joins: bool = True  # wants to, or has to
    heard_ms: int = 0  # when heartbeats began; of one that does not talk, when the coordinator last heard of it

    @property
    def runs(self) -> bool:
        """Whether it polls and heartbeats."""
        return self.talks


@dataclass(slots=True, kw_only=True)
class RoundsGroup(ClassicGroup[RoundsProcess]):
    """Everything about one simulated group whose processes wait for one another."""

    round: int = 0  # in play; 0: none
    round_started_ms: int = 0
    missed: frozenset[TopicPartition] = NOTHING  # wanted when the last event had settled, and consumed by nobody
    orphaned_consumer_members: dict[str, Process] = field(
        default_factory=dict
    )  # paused, of the consumer group that it was

    def accepts(self, process: RoundsProcess) -> bool:
        """Return whether the coordinator takes a commit of a process: it is a member of this generation."""
        return self.is_seated(process) and process.consumer.generation == self.coordinator.generation

    def learn(self, process: RoundsProcess) -> None:
        """Let a process learn of the topics that there are."""
        if process.talks and not process.frozen:
            self.react(process, c.change_metadata(process.consumer, self.topics))

    def time_of(self, process: RoundsProcess) -> int:
        """Return the time on the clock of a process."""
        return process.clock_ms

    def catch_up(self) -> None:
        """Let all processes read, and commit by themselves, what they would have until now."""
        if self.records is not None:
            ClassicGroup.catch_up(self)
            self.all_read_on()

    @property
    def rebalancing(self) -> bool:
        """Whether a round follows. Static members that are all gone are waited for."""
        if not self.coordinator.rebalancing:
            return False
        gone = (each.group_instance_id is None for each in self.coordinator.members.values())
        return any(each.talks for each in self.processes.values()) or all(gone)

    def react(self, process: RoundsProcess, reaction: Reaction) -> None:
        """Take what a consumer did: its calls, and whether it joins again."""
        self.made(process, reaction.calls, reaction.consumer)
        if reaction.joins:
            self.must_join(process)

    def must_join(self, process: RoundsProcess) -> None:
        """Let a member join, which starts a round of all."""
        process.joins = True
        self.coordinator.rebalancing = True

    def made(self, process: RoundsProcess, calls: Iterable[Call], consumer: Consumer) -> None:
        """Note the calls of a process, one after the other by its own clock."""
        process.consumer = consumer
        for made in calls:
            started_ms = process.clock_ms
            process.clock_ms += sum(process.application.called(made))
            process.polled_ms = process.clock_ms
            self.note(process, made, started_ms, process.clock_ms, self.round)

    def stop(self, process: RoundsProcess) -> None:
        """Stop a process: it consumes nothing, whatever it believes to own."""
        if process.talks:
            process.heard_ms = process.times.last_heartbeat_ms(process.heard_ms, process.clock_ms)
            process.stopped_ms = process.clock_ms
        process.talks = False
        self.ownership.give_up(process.name, process.consumer.owned, process.clock_ms)

    def end(self, process: RoundsProcess) -> None:
        """Stop a process for good."""
        self.stop(process)
        process.alive = process.joins = False
        self.ended[process.name] = process.settings_now

    def next_expiry(self) -> tuple[int, str] | None:
        """When the next session of one that does not talk ends, and whose; None: none does, or there are no times."""
        silent = (each for each in self.processes.values() if not each.talks and self.times is not None)
        seated = (each for each in silent if each.member_id in self.coordinator.members)
        return min(((each.heard_ms + each.times.session_timeout_ms, each.name) for each in seated), default=None)

    def seated(self) -> dict[str, RoundsProcess]:
        """Return the processes that talk and have a seat, by member id."""
        processes = ((each.consumer.member_id, each) for each in self.processes.values() if each.talks)
        return {member_id: each for member_id, each in processes if member_id in self.coordinator.members}

    def signature(self) -> object:
        """All that decides what follows. Assignors compare generations and no more, so their ranks stand for them."""
        talking = self.seated()
        rows = []
        for member_id, member in self.coordinator.members.items():
            sent = talking[member_id].consumer if member_id in talking else member.subscription
            rows.append((member_id, sent.topics, frozenset(sent.owned), sent.generation, sent.memory))
        dates = {date for *_, generation, memory in rows for date in (generation, memory.generation)}
        known = sorted(date for date in dates if date is not None)
        rank: dict[int | None, int] = {date: at for at, date in enumerate(known)}
        seats = tuple((*who, rank.get(at), memory.partitions, rank.get(memory.generation)) for *who, at, memory in rows)
        joining = tuple(each.name for each in self.processes.values() if each.joins)
        missing = tuple(sorted(self.missing.rounds.items()))
        return self.coordinator.leader, self.coordinator.assignor, seats, joining, missing

    def gaps(self, event_ms: int, wanted: set[TopicPartition]) -> dict[TopicPartition, list[Gap]]:
        """When nobody consumed what is wanted, now or when the event came; before that, what was missed then."""
        found = self.ownership.gaps(wanted, event_ms, self.clock_ms)
        for each in self.missed if event_ms > self.settled_ms else ():
            then = found.get(each, [])
            continues = bool(then) and then[0].since_ms == event_ms
            first = Gap(self.settled_ms, then[0].until_ms if continues else event_ms)
            found[each] = [first, *then[continues:]]
        return found

    def apply(self, event: e.Event) -> None:
        """Apply an event; if the coordinator refuses a member, keep the reason in `refused`.

        Raises Fault: BAD_EVENT for an event about a process that is not there, or is already; UNKNOWN_ASSIGNOR.
        """
        self.set_clocks(max(self.clock_ms, event.at_ms))
        self.catch_up()
        with self._step():
            if not (isinstance(event, e.Crash | e.Resume) and event.member in self.orphaned_consumer_members):
                ClassicGroup.apply(self, event)
                return
            del self.orphaned_consumer_members[event.member]
            if isinstance(event, e.Resume):
                raise Fault("GROUP_ID_NOT_FOUND", f"GROUP_ID_NOT_FOUND: {event.member} finds a classic group, and ends")

    def come_back(self) -> None:
        """Start the process that is returning, if one is."""
        settings, self.returning = self.returning, None
        if settings is not None:
            self.set_clocks(self.clock_ms)
            with self._step():
                self.join(settings)

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Begin a step; keep the reason if the coordinator refuses a member in it."""
        self.ownership.begin_step()
        try:
            yield
        except Fault as fault:
            if fault.code not in REFUSALS:
                raise
            self.refused = fault.message
        else:
            self.clock_ms = self.latest_ms()

    def join(self, settings: e.Join) -> None:
        """Start a process, which subscribes; a static member takes its seat in a stable group without a rebalance."""
        self.require_new(settings.member)
        e.require_topic_names(settings.topics)
        consumer = new_consumer(settings, self.topics, self.form, self.custom)
        self.coordinator.require_common_assignor(settings.member, settings.assignors)
        self.orphaned_consumer_members.pop(settings.member, None)
        self.born[settings.member] += 1
        process = RoundsProcess(
            settings=replace(settings, seat=None),
            consumer=consumer,
            clock_ms=self.clock_ms,
            number=self.born[settings.member],
        )
        self.begin(process)
        old = self.processes.pop(settings.member, None)
        if old is not None:
            self.end(old)
        self.processes[settings.member] = process
        if settings.seat is None:
            self._take_seat(process)
        else:
            process.joins, process.heard_ms = False, self.clock_ms
            self.take_recorded(process, settings.seat)

    def _take_seat(self, process: RoundsProcess) -> None:
        """Join as a process does that starts, or that fell out; a static one takes its seat in a stable group."""
        seat = self.coordinator.static_seat(process.instance_id)
        if seat is not None:
            for other in self.processes.values():  # it runs still, and stops for good (FENCED_INSTANCE_ID)
                if other is not process and other.member_id == seat.member_id:
                    self.end(other)
        if seat is None or self.coordinator.rebalancing:
            self.must_join(process)
        else:
            self._take_back(process, seat)

    def _take_back(self, process: RoundsProcess, seat: Registered) -> None:
        """Return a static member to a stable group: a new member id, its own assignment, the same generation."""
        coordinator = self.coordinator
        joining = c.join(process.consumer)
        member_id = coordinator.new_member_id(process.name)
        leads = coordinator.leader == seat.member_id
        coordinator.replace(seat.member_id, process.registered(member_id, joining.subscription))
        process.joins, process.heard_ms = False, self.clock_ms
        self.made(process, joining.calls, c.enter(joining.consumer, member_id, coordinator.generation, leads))
        self.react(process, c.receive_assignment(process.consumer, coordinator.given.get(member_id, ())))
        if self.undone(process, seat.subscription, leads):
            self.must_join(process)

    def leave(self, process: RoundsProcess) -> None:
        """Close a process; a dynamic member loses its seat."""
        self.commit(process)
        self.react(process, c.close(process.consumer))
        self.end(process)
        self.set_clocks(process.clock_ms)  # it leaves once its callback has returned
        if process.settings.group_instance_id is None:
            self._unseat(process)
        for act in process.afterwards:
            act()

    def crash(self, process: RoundsProcess) -> None:
        """End a process, which keeps its seat."""
        self.end(process)

    def pause(self, name: str) -> None:
        """Let a process stand still."""
        self.stop(self.process_of(name))

    def resume(self, name: str) -> None:
        """Let a process continue; its next heartbeat shows whether the group continued without it."""
        process = self.process_of(name)
        process.talks = True
        stood_ms = self.clock_ms - process.stopped_ms
        if self.times is not None and stood_ms >= process.times.rebalance_timeout_ms:
            if process.instance_id is None:
                self._unseat(process)
            reaction = c.fall_out(process.consumer, c.Error.UNKNOWN_MEMBER_ID)
            self.made(process, reaction.calls, reaction.consumer)
            self._take_seat(process)
        elif process.consumer.member_id not in self.coordinator.members:
            self.react(process, c.fall_out(process.consumer, c.Error.UNKNOWN_MEMBER_ID))
        elif process.consumer.generation != self.coordinator.generation:
            self.react(process, c.fall_out(process.consumer, c.Error.ILLEGAL_GENERATION))
        self.ownership.take(process.name, process.consumer.owned, process.clock_ms)
        self.learn(process)

    def expire(self, name: str) -> None:
        """Take the seat of a process that is gone or paused away."""
        process = self.processes.get(name)
        if process is None or process.talks:
            raise Fault(e.BAD_EVENT, f"{name!r} cannot expire; expected a process that is gone or paused")
        self._unseat(process)

    def _unseat(self, process: RoundsProcess) -> None:
        if process.consumer.member_id is not None:
            self.coordinator.remove(process.consumer.member_id)
        if not process.alive:
            del self.processes[process.name]

    def restart(self, process: RoundsProcess, settings: e.Join, *, at_once: bool) -> None:
        """Start a static member at once in any case: the group does not settle without it."""
        ClassicGroup.restart(self, process, settings, at_once=at_once or process.instance_id is not None)

    def delete_topic(self, topic: str) -> None:
        """Delete a topic, which applications forget."""
        gone = [TopicPartition(topic, number) for number in range(self.topics.get(topic, 0))]
        for process in self.processes.values():
            process.application.forget(gone)
        ClassicGroup.delete_topic(self, topic)

    def latest_ms(self) -> int:
        """When the last of all is done."""
        return max([self.clock_ms, *(each.clock_ms for each in self.processes.values())])

    def set_clocks(self, now_ms: int) -> None:
        """All wait for one another."""
        self.clock_ms = now_ms
        for process in self.processes.values():
            process.clock_ms = now_ms


# One event, and the rounds that it leads to.


def settle(group: RoundsGroup, event: e.Event) -> Generator[Question, Plan, Settlement]:
    """One event, and rounds until nobody wants another."""
    group.apply(event)
    event_ms = max(group.settled_ms, event.at_ms)
    cycle, failure = yield from play_rounds(group, event)
    if group.returning is not None:
        group.come_back()
        if cycle is None and failure is None:
            cycle, failure = yield from play_rounds(group, event)
    return settlement(group, event, event_ms, cycle, failure)


def play_rounds(group: RoundsGroup, event: e.Event) -> Generator[Question, Plan, tuple[Cycle | None, str | None]]:
    """Play rounds until no member wants another, or until a cycle or a failure."""
    seen: dict[object, int] = {}
    while group.rebalancing and not event.together and len(group.rounds) < MOST_ROUNDS:
        question = gather(group)
        if question is not None:
            spread(group, (yield question))
        failure = group.rounds[-1].failure
        if failure is not None:
            return None, failure
        now = len(group.rounds)
        before = seen.setdefault(group.signature(), now)
        if group.rebalancing and before < now:
            return Cycle(before, now), None
    return None, None


def settlement(
    group: RoundsGroup, event: e.Event, event_ms: int, cycle: Cycle | None, failure: str | None
) -> Settlement:
    """Return how one event ended, and forget what led to it."""
    if len(group.rounds) == MOST_ROUNDS and group.rebalancing and cycle is None and failure is None:
        failure = f"not stable after {MOST_ROUNDS} rounds, and no two of them alike"
    rounds, group.rounds, group.round = tuple(group.rounds), [], 0
    group.catch_up()
    gaps = group.gaps(event_ms, group.wanted())
    timed = group.timed_end(gaps, rebalancing=group.rebalancing)
    settled = group.settlement(event, waited_ms(gaps), timed, rounds=rounds, cycle=cycle, failure=failure)
    group.settled_ms, group.missed = group.clock_ms, frozenset(settled.unowned)
    return settled
