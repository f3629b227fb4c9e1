"""A timed group: its processes, its coordinator, its clock, and the record of what they did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from groupledger.core.custom.group import Protocol, TopicPartition
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.protocol.application import Accepts, Application, Applications, ReadingGroup, make_application
from groupledger.core.protocol.consumer import PartitionCounts
from groupledger.core.protocol.coordinator import Coordinator
from groupledger.core.protocol.events import Join
from groupledger.core.protocol.leader import MissingTopics, Plan
from groupledger.core.protocol.ownership import LiveOwnership
from groupledger.core.protocol.records import Records
from groupledger.core.protocol.rounds import NOBODY
from groupledger.core.protocol.settlement import MemberCall, MemberRound, Pace, Round
from groupledger.core.protocol.timed.agenda import Act, Agenda, AskingPlans, Due
from groupledger.core.protocol.timed.member import JoinRequest, Membership, Program, Running, TimedProcess
from groupledger.core.protocol.timed.outages import Outages
from groupledger.core.protocol.times import Times
from groupledger.core.step import Form


@dataclass(slots=True)
class OpenRound:
    """A generation until all of its members have taken their assignments, or cannot any more."""

    number: int
    generation: int
    assignor: str | None
    leader: str | None
    started_ms: int
    unavailable: tuple[TopicPartition, ...]
    joined: dict[str, tuple[TimedProcess, Protocol, tuple[TopicPartition, ...], int]]
    plan: Plan = NOBODY
    done: dict[str, tuple[bool, bool, int]] = field(default_factory=dict)  # answered, joins again, when

    def close(self, now_ms: int) -> Round:
        """The round as it ended."""
        rows = []
        for member_id, (process, protocol, owned, started_ms) in self.joined.items():
            answered, again, ended_ms = self.done.get(member_id, (False, False, now_ms))
            target, assigned = (each.get(member_id, ()) for each in (self.plan.target, self.plan.assigned))
            row = process.name, member_id, protocol, owned, target, assigned, answered, again, started_ms, ended_ms
            rows.append(MemberRound(*row))
        return Round(
            number=self.number,
            generation=self.generation,
            assignor=self.assignor,
            leader=self.leader,
            members=tuple(rows),
            sets=self.plan.sets,
            unavailable=self.unavailable,
            started_ms=self.started_ms,
            ended_ms=now_ms,
            failure=self.plan.failure,
        )


@dataclass(slots=True)
class TimedGroup(ReadingGroup):
    """Everything about one group. `rounds` and `calls` are those since the last settlement.

    `poll` is what a process does in a poll, `expire` what becomes of a session that is over. `waiting` and `syncing`
    are members whose JoinGroup, or SyncGroup, is not answered yet; `unsynced`: those who have not sent SyncGroup;
    `pending`: ids given out that nobody has joined with.
    """

    topics: PartitionCounts
    form: Form
    pace: Pace
    times: Times
    custom: Mapping[str, CustomAssignor]
    coordinator: Coordinator
    poll: Callable[[TimedGroup, TimedProcess], Program]
    expire: Callable[[TimedGroup, str], None]
    applications: Applications | None = None
    records: Records | None = None
    agenda: Agenda = field(default_factory=Agenda)
    processes: dict[str, TimedProcess] = field(default_factory=dict)
    ownership: LiveOwnership = field(default_factory=LiveOwnership)
    outages: Outages = field(default_factory=Outages)
    empty: bool = True  # EMPTY: the next generation waits for those who may come
    preparing: bool = False  # PREPARING_REBALANCE
    completing: bool = False  # COMPLETING_REBALANCE
    starting: bool = False  # waits for group.initial.rebalance.delay.ms
    prepared_ms: int = 0
    delay_left_ms: int = 0
    newcomers: bool = False
    waiting: dict[str, tuple[TimedProcess, JoinRequest]] = field(default_factory=dict)
    syncing: dict[str, TimedProcess] = field(default_factory=dict)
    unsynced: set[str] = field(default_factory=set)
    pending: dict[str, Due] = field(default_factory=dict)
    sessions: dict[str, Due] = field(default_factory=dict)
    join_due: Due | None = None
    sync_due: Due | None = None
    round: OpenRound | None = None
    begun: int = 0  # rounds
    planned_view: PartitionCounts = field(default_factory=dict)
    missing: MissingTopics = field(default_factory=MissingTopics)
    rounds: list[Round] = field(default_factory=list)
    calls: list[MemberCall] = field(default_factory=list)
    refused: str | None = None
    failure: str | None = None
    born: Counter[str] = field(default_factory=Counter)
    ended: dict[str, Join] = field(default_factory=dict)
    _wanted: tuple[tuple[int, PartitionCounts], set[TopicPartition]] | None = None  # of these seats and topics
    _seen: tuple[int, set[TopicPartition]] | None = None  # by `see`: what was consumed then, and wanted

    @property
    def now_ms(self) -> int:
        """What the clock says."""
        return self.agenda.now_ms

    @property
    def partition_counts(self) -> PartitionCounts:
        """Partition counts of the topics that exist."""
        return self.topics

    def wanted(self) -> set[TopicPartition]:
        """Partitions of existing topics that somebody with a seat subscribes to."""
        known, seats = self._wanted, self.coordinator.changes
        if known is not None and known[0][0] == seats and known[0][1] is self.topics:
            return known[1]
        topics = {topic for each in self.coordinator.members.values() for topic in each.subscription.topics}
        wanted = {TopicPartition(topic, at) for topic in topics for at in range(self.topics.get(topic, 0))}
        self._wanted = (seats, self.topics), wanted
        return wanted

    def owners(self) -> dict[TopicPartition, str]:
        """Who owns each partition, of those who run and have a seat."""
        running = (each for each in self.processes.values() if each.alive and each.running is Running.ALL)
        seated = [each for each in running if each.consumer.member_id in self.coordinator.members]
        return dict(sorted((each, process.name) for process in seated for each in process.consumer.owned))

    def see(self) -> None:
        """Note which partitions nobody consumes from now on, where that may have changed."""
        wanted, changes = self.wanted(), self.ownership.changes
        if self._seen is None or self._seen[0] != changes or self._seen[1] is not wanted:
            self._seen = changes, wanted
            self.outages.see(self.now_ms, wanted - self.ownership.held())

    # Between a process and its coordinator

    def send(self, process: TimedProcess, act: Act) -> None:
        """A request reaches the coordinator after half a round trip; that of a process that is cut off, never."""
        if process.running is not Running.CUT_OFF:
            self.agenda.after(process.times.to_broker_ms, act)

    def answer(self, process: TimedProcess, act: Act) -> None:
        """An answer reaches the process after half a round trip, if it is there then."""

        def arrive() -> AskingPlans | None:
            return act() if process.alive and process.running is not Running.CUT_OFF else None

        self.agenda.after(process.times.from_broker_ms, arrive)

    def wake(self, process: TimedProcess) -> None:
        """Something waits for the next poll of this process."""
        if process.alive and process.program is None and process.poll_due is None and process.running is Running.ALL:
            due_ms = process.next_poll_ms(self.now_ms)
            process.poll_due = self.agenda.at(due_ms, partial(self._begin_poll, process))

    def _begin_poll(self, process: TimedProcess) -> AskingPlans | None:
        process.poll_due = None
        return self.start(process, self.poll(self, process)) if process.running is Running.ALL else None

    def start(self, process: TimedProcess, program: Program) -> AskingPlans:
        """Let a process do this, now."""
        process.read_on()
        process.program = program
        return self.resume(process)

    def resume(self, process: TimedProcess) -> AskingPlans:
        """Let a process go on with what it does, until it has to wait or is done."""
        process.program_due, answer = None, None
        while process.program is not None:
            try:
                item = process.program.send(answer)
            except StopIteration:
                process.program = None
                return
            answer = None
            if not isinstance(item, int):
                answer = yield item
            elif item > 0:
                process.program_due = self.agenda.after(item, partial(self.resume, process))
                return

    # Processes

    def stop(self, process: TimedProcess, running: Running) -> None:
        """It consumes nothing any more, whatever it believes to own."""
        process.stopped_ms, process.running = self.now_ms, running
        process.held = self.ownership.stop(process.name, self.now_ms)

    def end(self, process: TimedProcess) -> None:
        """A process is no more."""
        self.stop(process, Running.STOPPED)
        process.alive, process.membership = False, Membership.UNJOINED
        process.call_off()
        self.ended[process.name] = process.settings.subscribed(process.consumer.named, process.consumer.pattern)

    def application(self, process: TimedProcess, accepts: Accepts) -> Application:
        """What the process does with its consumer."""
        return make_application(self, process, accepts, self.applications)

    # Records

    def commit(self, process: TimedProcess) -> None:
        """Commit before a rebalance or a close, if the process commits by itself."""
        if self.commits_every_ms:
            process.application.commit()
            process.commits_next_ms = self.now_ms + self.commits_every_ms

    # Rounds

    def begin_round(self, joined: dict[str, tuple[TimedProcess, JoinRequest]]) -> None:
        """A generation begins; what is left of the last one ends."""
        self.close_round()
        self.begun += 1
        rows = {
            member_id: (process, process.consumer.protocol, tuple(sorted(process.consumer.owned)), request.started_ms)
            for member_id, (process, request) in joined.items()
        }
        owned = {each for _, _, kept, _ in rows.values() for each in kept}
        leader = self.coordinator.members.get(self.coordinator.leader or "")
        self.round = OpenRound(
            number=self.begun,
            generation=self.coordinator.generation,
            assignor=self.coordinator.assignor,
            leader=None if leader is None else leader.process,
            started_ms=self.prepared_ms,
            unavailable=tuple(sorted(self.wanted() - owned)),
            joined=rows,
        )
        self._close_if_done()

    def done(self, member_id: str | None, *, answered: bool, again: bool) -> None:
        """A member of the round has taken its assignment, or will not."""
        if self.round is not None and member_id in self.round.joined and member_id not in self.round.done:
            self.round.done[member_id] = (answered, again, self.now_ms)
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self.round is not None and len(self.round.done) == len(self.round.joined):
            self.close_round()

    def close_round(self) -> None:
        """The round ends, whoever is not done."""
        if self.round is not None:
            self.rounds.append(self.round.close(self.now_ms))
            self.round = None
