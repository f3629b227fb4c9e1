"""Rounds of a simulated group without a clock: all join, their leader is asked, all are answered."""

from __future__ import annotations

from collections.abc import Generator, Iterable
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


def _play_round(group: RoundsGroup) -> Generator[Question, Plan, None]:
    """Play one generation: all running members join, their leader is asked, and all are answered.

    Nobody is asked where nobody is left; the clock stands where the last member is done.
    """
    group.round, started_ms = len(group.rounds) + 1, group.clock_ms
    joined = _join_all(group)
    kept = {member_id: tuple(sorted(each.consumer.owned)) for member_id, each in joined.items()}
    begun = group.new_round(group.round, started_ms, group.unowned(kept.values()))
    plan, rows = NOBODY, list[MemberRound]()
    if joined:
        leader, seats = joined[group.coordinator.leader or ""], seats_of(group.coordinator)
        group.made(leader, (assign_call(seats),), leader.consumer)
        plan = yield group.question(leader, group.coordinator.assignor, seats)
        answered = _answer_all(group, joined, plan)
        for member_id, process in joined.items():
            done = answered[member_id], process.must_rejoin
            rows.append(member_round(process, member_id, plan, kept[member_id], done))
    group.clock_ms = group.latest_ms()
    group.rounds.append(ended(begun, rows, plan, group.clock_ms))


def _join_all(group: RoundsGroup) -> dict[str, RoundsProcess]:
    """Let all running members join, and start a generation of them; return them by member id.

    A dynamic member that did not join has lost its seat by the time-out; a static one keeps it, with what it last sent.
    """
    group.ownership.begin_step()
    group.catch_up()
    for process in group.processes.values():
        if process.runs:
            group.commit(process)
            _send_join(group, process)
    joined = group.seated()
    group.coordinator.remove_absent(joined)
    group.coordinator.start_generation(joined)
    group.set_clocks(group.latest_ms() + group.pace.round_ms)
    if joined:
        for process in group.processes.values():
            process.heard_ms = group.clock_ms
    for member_id, process in joined.items():
        leads = member_id == group.coordinator.leader
        process.consumer = c.enter(process.consumer, member_id, group.coordinator.generation, leads)
    return joined


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
    process.must_rejoin = False
    group.coordinator.seat(process.registered(member_id, joining.subscription))


def _answer_all(group: RoundsGroup, joined: dict[str, RoundsProcess], plan: Plan) -> dict[str, bool]:
    """Answer SyncGroup to all, once the leader has assigned; return who got an answer.

    Who revokes something joins again, and who got no answer; so does the leader that gets metadata only then of a topic
    that it assigned without.
    """
    group.set_clocks(group.latest_ms())
    group.ownership.begin_step(answering=True)
    group.catch_up()
    group.coordinator.given = plan.assigned
    answered = {member_id: _answer(group, process, member_id, plan) for member_id, process in joined.items()}
    if group.missing.assigned():
        group.must_join(joined[group.coordinator.leader or ""])
    for process in joined.values():
        if process.thaw():
            group.react(process, c.change_metadata(process.consumer, group.topics))
    return answered


def _answer(group: RoundsGroup, process: RoundsProcess, member_id: str, plan: Plan) -> bool:
    answered = not process.misses_answer() and plan.failure is None
    if process.loses and answered:
        process.loses = process.runs = False
        process.heard_ms = group.clock_ms
    elif answered:
        group.react(process, c.receive_assignment(process.consumer, plan.assigned.get(member_id, ())))
    else:
        group.must_join(process)
    return answered


# A group in play: its processes, its coordinator, its topics, and the record of what they did.


@dataclass(slots=True, kw_only=True)
class RoundsProcess(ClassicProcess):
    """One process and its consumer. `runs`: it has not ended, nor is it paused."""

    clock_ms: int
    runs: bool = True
    heard_ms: int = 0  # when heartbeats began; of one that does not run, when the coordinator last heard of it


@dataclass(slots=True, kw_only=True)
class RoundsGroup(ClassicGroup[RoundsProcess]):
    """Everything about one simulated group whose processes wait for one another."""

    round: int = 0  # in play; 0: none
    cycle: Cycle | None = None  # since the last settlement
    missed: frozenset[TopicPartition] = NOTHING  # wanted when the last event had settled, and consumed by nobody
    orphaned_consumer_members: dict[str, Process] = field(
        default_factory=dict
    )  # paused, of the consumer group that it was

    def accepts(self, process: RoundsProcess) -> bool:
        """Return whether the coordinator takes a commit of a process: it is a member of this generation."""
        return process.runs and self.error_of(process) is None

    def learn(self, process: RoundsProcess) -> None:
        """Let a process learn of the topics that there are."""
        if process.runs and not process.frozen:
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
        return any(each.runs for each in self.processes.values()) or all(gone)

    def react(self, process: RoundsProcess, reaction: Reaction) -> None:
        """Take what a consumer did: its calls, and whether it joins again."""
        self.made(process, reaction.calls, reaction.consumer)
        if reaction.joins:
            self.must_join(process)

    def must_join(self, process: RoundsProcess) -> None:
        """Let a member join, which starts a round of all."""
        process.must_rejoin = True
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
        if process.runs:
            process.heard_ms = process.times.last_heartbeat_ms(process.heard_ms, process.clock_ms)
            process.stopped_ms = process.clock_ms
        process.runs = False
        self.ownership.give_up(process.name, process.consumer.owned, process.clock_ms)

    def end(self, process: RoundsProcess) -> None:
        """Stop a process for good."""
        self.stop(process)
        process.alive = False
        self.ended[process.name] = process.settings_now

    def next_expiry(self) -> tuple[int, str] | None:
        """When the next session of one that does not talk ends, and whose; None: none does, or there are no times."""
        silent = (each for each in self.processes.values() if not each.runs and self.times is not None)
        seated = (each for each in silent if each.member_id in self.coordinator.members)
        return min(((each.heard_ms + each.times.session_timeout_ms, each.name) for each in seated), default=None)

    def seated(self) -> dict[str, RoundsProcess]:
        """Return the processes that talk and have a seat, by member id."""
        processes = ((each.consumer.member_id, each) for each in self.processes.values() if each.runs)
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
        joining = tuple(each.name for each in self.processes.values() if each.must_rejoin)
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
        self.ownership.begin_step()
        if isinstance(event, e.Crash | e.Resume) and event.member in self.orphaned_consumer_members:
            del self.orphaned_consumer_members[event.member]
            if isinstance(event, e.Resume):
                self.refused = f"GROUP_ID_NOT_FOUND: {event.member} finds a classic group, and ends"
            return
        ClassicGroup.apply(self, event)
        self.clock_ms = self.latest_ms()

    def come_back(self) -> None:
        """Start the process that is returning."""
        self.set_clocks(self.clock_ms)
        self.ownership.begin_step()
        ClassicGroup.come_back(self)
        self.clock_ms = self.latest_ms()

    def join(self, settings: e.Join) -> None:
        """Start a process, which subscribes; a static member takes its seat in a stable group without a rebalance."""
        self.require_new(settings.member)
        consumer = new_consumer(settings, self.topics, self.form, self.custom)
        refused = self.coordinator.refuses(settings.member, settings.assignors)
        if refused is not None:
            self.refused = refused
            return
        self.orphaned_consumer_members.pop(settings.member, None)
        process = RoundsProcess(settings=replace(settings, seat=None), consumer=consumer, clock_ms=self.clock_ms)
        self.begin(process)
        if settings.seat is None:
            self._take_seat(process)
        else:
            process.heard_ms = self.clock_ms
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
        process.must_rejoin, process.heard_ms = False, self.clock_ms
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
        process.runs = True
        stood_ms = self.clock_ms - process.stopped_ms
        if self.times is not None and stood_ms >= process.times.rebalance_timeout_ms:
            if process.instance_id is None:
                self._unseat(process)
            reaction = c.fall_out(process.consumer, c.Error.UNKNOWN_MEMBER_ID)
            self.made(process, reaction.calls, reaction.consumer)
            self._take_seat(process)
        elif (error := self.error_of(process)) is not None:
            self.react(process, c.fall_out(process.consumer, error))
        self.ownership.take(process.name, process.consumer.owned, process.clock_ms)
        self.learn(process)

    def expire(self, name: str) -> None:
        """Take the seat of a process that is gone or paused away."""
        process = self.processes.get(name)
        if process is None or process.runs:
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
    yield from play_rounds(group, event)
    if group.returning is not None:
        group.come_back()
        if group.cycle is None and group.failure is None:
            yield from play_rounds(group, event)
    return settlement(group, event, event_ms)


def play_rounds(group: RoundsGroup, event: e.Event) -> Generator[Question, Plan, None]:
    """Play rounds until no member wants another, or until a cycle or a failure."""
    seen: dict[object, int] = {}
    while group.rebalancing and not event.together and len(group.rounds) < MOST_ROUNDS:
        yield from _play_round(group)
        group.failure = group.rounds[-1].failure
        if group.failure is not None:
            return
        now = len(group.rounds)
        before = seen.setdefault(group.signature(), now)
        if group.rebalancing and before < now:
            group.cycle = Cycle(before, now)
            return
    if len(group.rounds) == MOST_ROUNDS and group.rebalancing:
        group.failure = f"not stable after {MOST_ROUNDS} rounds, and no two of them alike"


def settlement(group: RoundsGroup, event: e.Event, event_ms: int) -> Settlement:
    """Return how one event ended, and forget what led to it."""
    rounds, group.rounds, group.round = tuple(group.rounds), [], 0
    group.catch_up()
    gaps = group.gaps(event_ms, group.wanted())
    timed = group.timed_end(gaps, rebalancing=group.rebalancing)
    settled = group.settlement(event, waited_ms(gaps), timed, rounds=rounds, cycle=group.cycle)
    group.settled_ms, group.missed = group.clock_ms, frozenset(settled.unowned)
    group.cycle = group.failure = None
    return settled
