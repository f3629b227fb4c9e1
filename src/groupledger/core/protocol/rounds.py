"""One round of a simulated group: all join, their leader is asked, all are answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from groupledger.core.custom.group import TopicPartition
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.protocol import consumer as c
from groupledger.core.protocol.application import Application, Applications, Polls, commits_every_ms, make_application
from groupledger.core.protocol.client_api import (
    LISTENER,
    NOTHING,
    Call,
    Callback,
    MemberTimes,
    Seat,
    Subscription,
    Times,
    member_times,
)
from groupledger.core.protocol.client_library import algorithm_of
from groupledger.core.protocol.consumer import Consumer, PartitionCounts, Reaction
from groupledger.core.protocol.coordinator import Coordinator, Registered
from groupledger.core.protocol.events import Join
from groupledger.core.protocol.leader import MissingTopics, Plan, Question, ThreeSets
from groupledger.core.protocol.ownership import Gap, LiveOwnership, Records
from groupledger.core.protocol.settlement import MemberCall, MemberRound, Pace, Round
from groupledger.core.rebalance.step import Form

if TYPE_CHECKING:
    from groupledger.core.protocol.consumer_group.play import Process


NOBODY = Plan({}, {}, ThreeSets())


def gather(group: ClassicGroup) -> Question | None:
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
        _close(group, (), NOBODY, _unowned(group, {}))
        return None
    for process in group.processes.values():
        process.heard_ms = group.clock_ms
    for member_id, process in joined.items():
        leads = member_id == group.coordinator.leader
        process.consumer = c.enter(process.consumer, member_id, group.coordinator.generation, leads)
    return _question(group, joined)


def _send_join(group: ClassicGroup, process: ClassicProcess) -> None:
    """JoinGroup. A member that has no id is given one: a dynamic one joins again with it (KIP-394)."""
    if not process.frozen or process.consumer.refreshes:
        process.consumer = c.look(process.consumer, group.topics)
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


def _question(group: ClassicGroup, joined: Mapping[str, ClassicProcess]) -> Question:
    """What the coordinator sends to the leader, and the leader's own view of the topics."""
    coordinator = group.coordinator
    if coordinator.assignor is None or coordinator.leader is None:
        raise AssertionError("members met without a common assignor; expected the last one to have been refused")
    leader = joined[coordinator.leader]
    seats = tuple(Seat(each.member_id, each.subscription, each.group_instance_id) for each in coordinator.walk())
    owned = tuple(sorted({each for seat in seats for each in seat.subscription.owned}))
    topics = tuple(sorted({topic for seat in seats for topic in seat.subscription.topics}))
    group.made(leader, (Call(Callback.ASSIGN, owned, topics),), leader.consumer)
    group.planned_view = group.missing.known(group.topics if leader.consumer.habits.asks else leader.consumer.view)
    assignor = algorithm_of(leader.settings.library, coordinator.assignor)
    return Question(assignor, seats, group.planned_view, group.form, leader.settings.byte_code)


def spread(group: ClassicGroup, plan: Plan) -> None:
    """Answer SyncGroup to all, once the leader has assigned.

    Who revokes something joins again, and who got no answer; so does the leader that gets metadata only then of a topic
    that it assigned without.
    """
    group.set_clocks(group.latest_ms())
    group.ownership.begin_step(answering=True)
    group.catch_up()
    joined = group.seated()
    before = {member_id: tuple(sorted(each.consumer.owned)) for member_id, each in joined.items()}
    unavailable = _unowned(group, before)
    group.coordinator.given = plan.assigned
    answered = {member_id: _answer(group, process, member_id, plan) for member_id, process in joined.items()}
    if group.missing.assigned():
        group.must_join(joined[group.coordinator.leader or ""])
    for process in joined.values():
        if process.frozen and process.frozen_rounds:
            _thaw(group, process)
    rows = tuple(
        _row(process, member_id, plan, before[member_id], answered[member_id]) for member_id, process in joined.items()
    )
    _close(group, rows, plan, unavailable)


def _thaw(group: ClassicGroup, process: ClassicProcess) -> None:
    """One round less in which it learns nothing of topics; after the last it does."""
    process.frozen_rounds -= 1
    process.frozen = process.frozen_rounds > 0
    if not process.frozen:
        group.react(process, c.change_metadata(process.consumer, group.topics))


def _answer(group: ClassicGroup, process: ClassicProcess, member_id: str, plan: Plan) -> bool:
    answered = not process.misses_answer() and plan.failure is None
    if process.loses and answered:
        process.loses = process.talks = False
        process.heard_ms = group.clock_ms
    elif answered:
        group.react(process, c.receive_assignment(process.consumer, plan.assigned.get(member_id, ())))
    else:
        group.must_join(process)
    return answered


def _row(
    process: ClassicProcess, member_id: str, plan: Plan, owned: tuple[TopicPartition, ...], answered: bool
) -> MemberRound:
    return MemberRound(
        member=process.name,
        member_id=member_id,
        protocol=process.consumer.protocol,
        owned=owned,
        target=plan.target.get(member_id, ()),
        assigned=plan.assigned.get(member_id, ()),
        answered=answered,
        joins_again=process.joins,
    )


def _unowned(group: ClassicGroup, owned: Mapping[str, tuple[TopicPartition, ...]]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(group.wanted().difference(*owned.values())))


def _close(
    group: ClassicGroup, members: tuple[MemberRound, ...], plan: Plan, unavailable: tuple[TopicPartition, ...]
) -> None:
    """Note the round; the clock stands where the last member is done."""
    group.clock_ms = group.latest_ms()
    leader = group.coordinator.members.get(group.coordinator.leader or "")
    group.rounds.append(
        Round(
            number=group.round,
            generation=group.coordinator.generation,
            assignor=group.coordinator.assignor,
            leader=None if leader is None else leader.process,
            members=members,
            sets=plan.sets,
            unavailable=unavailable,
            started_ms=group.round_started_ms,
            ended_ms=group.clock_ms,
            failure=plan.failure,
        )
    )


# A group in play: its processes, its coordinator, its topics, and the record of what they did.


@dataclass(slots=True)
class ClassicProcess(Polls):
    """One process and its consumer. `alive`: it has not ended; `talks`: nor is it paused."""

    settings: Join
    consumer: Consumer
    clock_ms: int
    number: int = 1  # of this name
    alive: bool = True
    talks: bool = True
    frozen: bool = False  # learns nothing of topics
    frozen_rounds: int = 0  # after which it does; 0: when it is told to
    misses: int = 0
    loses: bool = False  # its next assignment, and is silent then
    joins: bool = True  # wants to, or was told to
    times: MemberTimes = field(default_factory=MemberTimes)
    heard_ms: int = 0  # when heartbeats began; of one that does not talk, when the coordinator last heard of it
    stopped_ms: int = 0
    application: Application = field(init=False)
    polled_ms: int = 0
    poll_started_ms: int = 0
    commits_next_ms: int = 0
    put_off_ms: int = 0

    @property
    def name(self) -> str:
        """Of the process."""
        return self.settings.member

    @property
    def instance_id(self) -> str | None:
        """`group.instance.id`."""
        return self.settings.group_instance_id

    @property
    def member_id(self) -> str | None:
        """The id that it speaks under."""
        return self.consumer.member_id

    @property
    def generation(self) -> int | None:
        """Its generation."""
        return self.consumer.generation

    @property
    def works_ms(self) -> int:
        """Rounds wait for nobody's work."""
        return 0

    @property
    def in_poll(self) -> bool:
        """Callbacks return before anything else happens."""
        return False

    def registered(self, member_id: str, sent: Subscription) -> Registered:
        """What the coordinator knows of it after a JoinGroup."""
        return Registered(self.name, member_id, self.settings.assignors, sent, self.settings.group_instance_id)


@dataclass(slots=True)
class ClassicGroup:
    """Everything about one simulated group. `rounds` and `calls` are those since the last `take`."""

    topics: PartitionCounts
    form: Form
    pace: Pace
    custom: Mapping[str, CustomAssignor]
    processes: dict[str, ClassicProcess] = field(default_factory=dict)
    coordinator: Coordinator = field(default_factory=Coordinator)
    rounds: list[Round] = field(default_factory=list)
    calls: list[MemberCall] = field(default_factory=list)
    ownership: LiveOwnership = field(default_factory=LiveOwnership)
    planned_view: PartitionCounts = field(default_factory=dict)  # of the leader, when it last assigned
    missing: MissingTopics = field(default_factory=MissingTopics)
    clock_ms: int = 0
    round: int = 0  # in play; 0: none
    round_started_ms: int = 0
    settled_ms: int = 0  # when the last event had settled
    missed: frozenset[TopicPartition] = NOTHING  # wanted then, and consumed by nobody
    born: Counter[str] = field(default_factory=Counter)  # processes by name
    ended: dict[str, Join] = field(default_factory=dict)  # how each that ended would start again
    returning: Join | None = None  # starts once the group has settled without it
    strangers: dict[str, Process] = field(default_factory=dict)  # paused, of the consumer group that it was
    times: Times | None = None  # of a group in which members of the consumer protocol are, too
    records: Records | None = None
    applications: Applications | None = None
    overlaps: bool = False  # events come before the last one has settled, in a consumer group
    nobody_since: dict[TopicPartition, int] = field(default_factory=dict)

    @property
    def now_ms(self) -> int:
        """What the clock says."""
        return self.clock_ms

    @property
    def partition_counts(self) -> PartitionCounts:
        """Partition counts of the topics that exist."""
        return self.topics

    def begin(self, process: ClassicProcess) -> None:
        """Start a process."""
        process.times = member_times(self.times, process.name, process.settings.rebalance_timeout_ms)
        process.application = make_application(self, process, partial(self.accepts, process), self.applications)
        process.commits_next_ms = self.clock_ms + commits_every_ms(self.times, self.applications)

    def go_on(self, process: ClassicProcess, before: Polls) -> None:
        """Continue a process in this group, which was a consumer group (`before`: the process in that one)."""
        process.times = member_times(self.times, process.name, process.settings.rebalance_timeout_ms)
        process.application, process.commits_next_ms = before.application, before.commits_next_ms
        process.application.move(self, process, partial(self.accepts, process))

    def accepts(self, process: ClassicProcess) -> bool:
        """Whether the coordinator takes a commit of a process: it is a member of this generation."""
        seated = process.consumer.member_id in self.coordinator.members
        return process.talks and seated and process.consumer.generation == self.coordinator.generation

    def commit(self, process: ClassicProcess) -> None:
        """Commit before a rebalance or a close, if the process commits by itself."""
        every_ms = commits_every_ms(self.times, self.applications)
        if every_ms:
            process.application.commit()
            process.commits_next_ms = process.clock_ms + every_ms

    def catch_up(self) -> None:
        """All processes read, and commit by themselves, what they would have until now."""
        if self.records is not None:
            for process in self.processes.values():
                if process.talks:
                    process.catch_up(commits_every_ms(self.times, self.applications), process.clock_ms)
                    process.read_on()

    def change_topics(self, topics: PartitionCounts) -> None:
        """The cluster has these topics, and no others."""
        self.topics = topics
        if self.records is not None:
            self.records.set_topics(topics, self.clock_ms)

    @property
    def rebalancing(self) -> bool:
        """Whether a round follows. Static members that are all gone are waited for."""
        if not self.coordinator.rebalancing:
            return False
        gone = (each.group_instance_id is None for each in self.coordinator.members.values())
        return any(each.talks for each in self.processes.values()) or all(gone)

    def react(self, process: ClassicProcess, reaction: Reaction) -> None:
        """Take what a consumer did: its calls, and whether it joins again."""
        self.made(process, reaction.calls, reaction.consumer)
        if reaction.joins:
            self.must_join(process)

    def must_join(self, process: ClassicProcess) -> None:
        """A member that joins starts a round of all."""
        process.joins = True
        self.coordinator.rebalancing = True

    def made(self, process: ClassicProcess, calls: Iterable[Call], consumer: Consumer) -> None:
        """Note the calls of a process, one after the other by its own clock."""
        process.consumer = consumer
        for made in calls:
            started_ms = process.clock_ms
            process.clock_ms += sum(process.application.called(made))
            process.polled_ms = process.clock_ms
            row = len(self.calls), self.round, process.name, consumer.member_id, made
            who = consumer.generation, process.settings.group_instance_id, process.number
            self.calls.append(MemberCall(*row, started_ms, process.clock_ms, *who))
            if made.callback is Callback.ASSIGNED:
                self.ownership.take(process.name, made.partitions, process.clock_ms)
            elif made.callback in LISTENER:
                self.ownership.give_up(process.name, made.partitions, process.clock_ms)

    def stop(self, process: ClassicProcess) -> None:
        """A process stands still: it consumes nothing, whatever it believes to own."""
        if process.talks:
            process.heard_ms = process.times.last_heartbeat_ms(process.heard_ms, process.clock_ms)
            process.stopped_ms = process.clock_ms
        process.talks = False
        self.ownership.give_up(process.name, process.consumer.owned, process.clock_ms)

    def end(self, process: ClassicProcess) -> None:
        """A process is no more."""
        self.stop(process)
        process.alive = process.joins = False
        self.ended[process.name] = process.settings.subscribed(process.consumer.named, process.consumer.pattern)

    def next_expiry(self) -> tuple[int, str] | None:
        """When the next session of one that does not talk ends, and whose; None: none does, or there are no times."""
        silent = (each for each in self.processes.values() if not each.talks and self.times is not None)
        seated = (each for each in silent if each.member_id in self.coordinator.members)
        return min(((each.heard_ms + each.times.session_timeout_ms, each.name) for each in seated), default=None)

    def seated(self) -> dict[str, ClassicProcess]:
        """Processes that talk and have a seat, by member id."""
        processes = ((each.consumer.member_id, each) for each in self.processes.values() if each.talks)
        return {member_id: each for member_id, each in processes if member_id in self.coordinator.members}

    def wanted(self) -> set[TopicPartition]:
        """Partitions of existing topics that somebody with a seat subscribes to."""
        topics = {topic for each in self.coordinator.members.values() for topic in each.subscription.topics}
        return {TopicPartition(topic, at) for topic in topics for at in range(self.topics.get(topic, 0))}

    def owners(self) -> dict[TopicPartition, str]:
        """Who owns each partition, of those who talk and have a seat."""
        return dict(
            sorted((each, process.name) for process in self.seated().values() for each in process.consumer.owned)
        )

    def signature(self) -> object:
        """All that decides what follows. Assignors compare generations and no more, so their ranks stand for them."""
        talking = self.seated()
        told = []
        for member_id, member in self.coordinator.members.items():
            sent = talking[member_id].consumer if member_id in talking else member.subscription
            told.append((member_id, sent.topics, frozenset(sent.owned), sent.generation, sent.memory))
        dates = {date for *_, generation, memory in told for date in (generation, memory.generation)}
        known = sorted(date for date in dates if date is not None)
        rank: dict[int | None, int] = {date: at for at, date in enumerate(known)}
        seats = tuple((*who, rank.get(at), memory.partitions, rank.get(memory.generation)) for *who, at, memory in told)
        joining = tuple(each.name for each in self.processes.values() if each.joins)
        missing = tuple(sorted(self.missing.rounds.items()))
        return self.coordinator.leader, self.coordinator.assignor, seats, joining, missing

    def gaps(self, event_ms: int, wanted: set[TopicPartition]) -> dict[TopicPartition, list[Gap]]:
        """When nobody consumed what is wanted, now or when the event came; before that, what was missed then."""
        found = self.ownership.gaps(wanted, event_ms, self.clock_ms)
        for each in self.missed if event_ms > self.settled_ms else ():
            then = found.get(each, [])
            goes_on = bool(then) and then[0].since_ms == event_ms
            first = Gap(self.settled_ms, then[0].until_ms if goes_on else event_ms)
            found[each] = [first, *then[goes_on:]]
        return found

    def latest_ms(self) -> int:
        """When the last of all is done."""
        return max([self.clock_ms, *(each.clock_ms for each in self.processes.values())])

    def set_clocks(self, now_ms: int) -> None:
        """All wait for one another."""
        self.clock_ms = now_ms
        for process in self.processes.values():
            process.clock_ms = now_ms

    def take(self) -> tuple[tuple[Round, ...], tuple[MemberCall, ...]]:
        """Rounds and calls since the last time."""
        taken = tuple(self.rounds), tuple(self.calls)
        self.rounds, self.calls, self.round = [], [], 0
        return taken
