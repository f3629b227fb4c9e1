"""What is due, and when: a clock that jumps from one due moment to the next."""

from __future__ import annotations

import enum
from abc import abstractmethod
from collections.abc import Callable, Generator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.classic_group import NOBODY, ClassicGroup, ClassicProcess, ended, member_round
from groupledger.core.protocol.consumer import Call, Error, PartitionCounts, Reaction, Seat, Subscription, Times
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.settlement import Outage, Round

AskingPlans = Generator[Question, Plan, None]
"""Steps that continue once their questions are answered."""
Act = Callable[[], AskingPlans | None]


@dataclass(slots=True)
class Due:
    """An act that is due at a time, unless it is called off."""

    at_ms: int
    act: Act
    called_off: bool = False


def call_off(*dues: Due | None) -> None:
    """Call these acts off."""
    for due in dues:
        if due is not None:
            due.called_off = True


class Agenda:
    """Due moments by time; those of one millisecond in the order in which they were noted."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._noted = 0
        self._waiting: list[tuple[int, int, Due]] = []

    def at(self, at_ms: int, act: Act) -> Due:
        """Note something; what should have been already is due at once."""
        due = Due(max(at_ms, self.now_ms), act)
        self._noted += 1
        heappush(self._waiting, (due.at_ms, self._noted, due))
        return due

    def after(self, wait_ms: int, act: Act) -> Due:
        """Note something for so many milliseconds from now."""
        return self.at(self.now_ms + wait_ms, act)

    def next_ms(self) -> int | None:
        """When something is due next; None: never."""
        while self._waiting and self._waiting[0][2].called_off:
            heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def take(self) -> Act:
        """Take what is due next, and set the clock. Only if `next_ms` finds something."""
        at_ms, _, due = heappop(self._waiting)
        self.now_ms = max(self.now_ms, at_ms)
        return due.act


# When and for how long nobody consumed a partition that somebody subscribes to.


@dataclass(slots=True)
class Outages:
    """Those that last, and those that ended since the last `take`."""

    _taken_ms: int = 0
    _lasting: dict[TopicPartition, int] = field(default_factory=dict)
    _ended: list[Outage] = field(default_factory=list)

    def see(self, now_ms: int, missing: AbstractSet[TopicPartition]) -> None:
        """From now on these are wanted, and nobody consumes them."""
        for each in [each for each in self._lasting if each not in missing]:
            since_ms = self._lasting.pop(each)
            if since_ms < now_ms:
                self._ended.append(Outage(each, since_ms, now_ms))
        for each in missing:
            self._lasting.setdefault(each, now_ms)

    def take(self, now_ms: int) -> tuple[tuple[Outage, ...], dict[TopicPartition, int]]:
        """Outages that were there since the last call, by partition and time; and how long since then, of each."""
        found = sorted([*self._ended, *(Outage(*each, None) for each in self._lasting.items() if each[1] < now_ms)])
        waited: dict[TopicPartition, int] = {}
        for each in found:
            until_ms = now_ms if each.until_ms is None else each.until_ms
            waited[each.partition] = waited.get(each.partition, 0) + until_ms - max(each.since_ms, self._taken_ms)
        self._ended, self._taken_ms = [], now_ms
        return tuple(found), {each: ms for each, ms in waited.items() if ms > 0}


# One process of a timed group, and its consumer: when it polls, when it heartbeats, what waits for its next poll.

Program = Generator[int | Question, Plan | None, None]
"""What a process does in one poll: it yields times in which it does nothing else, and its leader's question."""


class Running(enum.Enum):
    """What of a process runs."""

    ALL = "all"
    STOPPED = "stopped"  # not even heartbeats
    HUNG = "hung"  # heartbeats, but no poll
    CUT_OFF = "cut off"  # polls, but the coordinator is out of reach


class Membership(enum.Enum):
    """Where a client stands (`AbstractCoordinator.MemberState`)."""

    UNJOINED = "unjoined"
    JOINING = "joining"  # JoinGroup sent and not answered: no heartbeats
    SYNCING = "syncing"
    STABLE = "stable"


@dataclass(frozen=True, slots=True, eq=False)
class JoinRequest:
    """One JoinGroup: an answer to an earlier one than the last counts for nothing. `started_ms`: onJoinPrepare."""

    started_ms: int


@dataclass(frozen=True, slots=True)
class Joined:
    """JoinGroup as it was answered. `members`: whom it is to assign to by this assignor, if it leads; else none."""

    member_id: str
    generation: int
    leads: bool
    assignor: str | None
    members: tuple[Seat, ...]
    round: int  # of the group; 0: none began
    returned: Subscription | None = None  # what its predecessor had sent, where a static member took back its seat


@dataclass(slots=True, kw_only=True)
class TimedProcess(ClassicProcess):
    """`must_rejoin` to `pending_callbacks` wait for the next poll; `program` is what a poll is doing."""

    running: Running = Running.ALL
    membership: Membership = Membership.UNJOINED
    closing: bool = False
    view: PartitionCounts | None = None  # learnt of, and not looked at yet
    pending_error: Error | None = None
    joined: Joined | None = None
    received_assignment: tuple[TopicPartition, ...] | None = None
    new_id: str | None = None
    pending_callbacks: tuple[Call, ...] = ()  # what it gave up, and has not called its listener for
    returned: Joined | None = None
    request: JoinRequest | None = None
    program: Program | None = None
    join_started_ms: int | None = None  # onJoinPrepare, of a rebalance that is not over
    round: int = 0  # that it was answered in last
    heartbeats_since_ms: int = 0
    held: tuple[TopicPartition, ...] = ()  # when it stopped
    program_due: Due | None = None
    poll_due: Due | None = None
    heartbeat_due: Due | None = None
    too_late: Due | None = None  # max.poll.interval.ms

    @property
    def runs(self) -> bool:
        """Whether it polls and heartbeats."""
        return self.alive and self.running is Running.ALL

    @property
    def stands(self) -> str:
        """How one stands that does not run."""
        return self.running.value

    @property
    def is_closing(self) -> bool:
        """Whether it has begun to close."""
        return self.alive and self.closing

    def freeze(self, rounds: int) -> None:
        """Learn nothing more of topics, for so many rounds or until it is refreshed."""
        ClassicProcess.freeze(self, rounds)
        self.view = None

    @property
    def heartbeats(self) -> bool:
        """Whether heartbeats of it reach the coordinator."""
        joined = self.membership in (Membership.SYNCING, Membership.STABLE)
        return self.alive and joined and self.running in (Running.ALL, Running.HUNG)

    @property
    def polls(self) -> bool:
        """Whether it polls, and is in none."""
        return self.alive and self.program is None and self.running in (Running.ALL, Running.CUT_OFF)

    @property
    def in_poll(self) -> bool:
        """Whether a poll has not returned yet."""
        return self.program is not None

    @property
    def works_ms(self) -> int:
        """Between two polls."""
        return self.times.processing_ms if self.consumer.owned else 0

    def last_heartbeat_ms(self, now_ms: int) -> int:
        """When the last heartbeat that it sent until now reaches the coordinator."""
        return self.times.last_heartbeat_ms(self.heartbeats_since_ms, now_ms)

    def next_heartbeat_ms(self, now_ms: int) -> int:
        """When the next heartbeat from now on reaches the coordinator; the first is sent an interval after joining."""
        interval_ms, first_ms = self.times.heartbeat_interval_ms, self.heartbeats_since_ms + self.times.to_broker_ms
        return first_ms + max(-(-(now_ms - first_ms) // interval_ms), 1) * interval_ms

    def call_off(self) -> None:
        """Call off everything that it would do."""
        call_off(self.program_due, self.poll_due, self.heartbeat_due, self.too_late)
        self.program = self.program_due = self.poll_due = self.heartbeat_due = self.too_late = None


# A timed group: its processes, its coordinator, its clock, and the record of what they did.


@dataclass(slots=True)
class OpenRound:
    """A generation until all of its members have taken their assignments, or cannot any more."""

    begun: Round
    joined: dict[str, tuple[TimedProcess, tuple[TopicPartition, ...], int]]
    plan: Plan = NOBODY
    done: dict[str, tuple[bool, bool, int]] = field(default_factory=dict)  # answered, joins again, when

    def close(self, now_ms: int) -> Round:
        """Return the round as it ended."""
        rows = []
        for member_id, (process, owned, started_ms) in self.joined.items():
            *done, ended_ms = self.done.get(member_id, (False, False, now_ms))
            rows.append(member_round(process, member_id, self.plan, owned, done, started_ms, ended_ms))
        return ended(self.begun, rows, self.plan, now_ms)


@dataclass(slots=True, kw_only=True)
class TimedGroup(ClassicGroup[TimedProcess]):
    """Everything about one group.

    `waiting` and `syncing` are members whose JoinGroup, or SyncGroup, is not answered yet; `unsynced`: those who have
    not sent SyncGroup; `pending`: ids given out that nobody has joined with.
    """

    times: Times
    overlaps: bool = True
    agenda: Agenda = field(default_factory=Agenda)
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
    _seen: tuple[int, set[TopicPartition]] | None = None  # by `update_outages`: what was consumed then, and wanted

    @property
    def now_ms(self) -> int:
        """The time on the clock."""
        return self.agenda.now_ms

    def accepts(self, process: TimedProcess) -> bool:
        """Return whether an OffsetCommit of this process is taken: it is a member of this generation, and says so."""
        stable = process.membership is Membership.STABLE and process.running is not Running.CUT_OFF
        return stable and not self.fenced(process) and self.error_of(process) is None

    def verdict(self, process: TimedProcess) -> Error | bool:
        """Return how a heartbeat is answered: an error, True for REBALANCE_IN_PROGRESS, or False."""
        return self.error_of(process) or self.preparing

    def fenced(self, process: TimedProcess) -> bool:
        """Return whether another process has taken its seat (FENCED_INSTANCE_ID)."""
        seat = self.coordinator.static_seat(process.instance_id)
        return seat is not None and seat.member_id != process.member_id

    def is_known(self, process: TimedProcess) -> bool:
        """Return whether the group's metadata has the topics that a process subscribes to."""
        return process.alive or process.member_id in self.coordinator.members

    def learn(self, process: TimedProcess) -> None:
        """Let a process see the topics that there are when it polls."""
        if process.alive and not process.frozen:
            process.view = self.topics
            self.wake(process)

    def react(self, process: TimedProcess, reaction: Reaction) -> None:
        """Take what a consumer did; its calls are made when it polls."""
        process.consumer, process.pending_callbacks = reaction.consumer, (*process.pending_callbacks, *reaction.calls)
        process.must_rejoin |= reaction.joins
        self.wake(process)

    def update_outages(self) -> None:
        """Note which partitions nobody consumes from now on, where that may have changed."""
        wanted, changes = self.wanted(), self.ownership.changes
        if self._seen is None or self._seen[0] != changes or self._seen[1] is not wanted:
            self._seen = changes, wanted
            self.outages.see(self.now_ms, wanted - self.ownership.held())

    # Between a process and its coordinator

    def send(self, process: TimedProcess, act: Act) -> None:
        """Let a request reach the coordinator after half a round trip; that of a process that is cut off, never."""
        if process.running is not Running.CUT_OFF:
            self.agenda.after(process.times.to_broker_ms, act)

    def answer(self, process: TimedProcess, act: Act) -> None:
        """Let an answer reach the process after half a round trip, if it is there then."""

        def arrive() -> AskingPlans | None:
            return act() if process.alive and process.running is not Running.CUT_OFF else None

        self.agenda.after(process.times.from_broker_ms, arrive)

    @abstractmethod
    def poll(self, process: TimedProcess) -> Program:
        """Return what a process does in a poll."""

    def wake(self, process: TimedProcess) -> None:
        """Something waits for the next poll of this process."""
        if process.alive and process.program is None and process.poll_due is None and process.running is Running.ALL:
            due_ms = process.next_poll_ms(self.now_ms)
            process.poll_due = self.agenda.at(due_ms, partial(self._begin_poll, process))

    def _begin_poll(self, process: TimedProcess) -> AskingPlans | None:
        process.poll_due = None
        return self.start(process, self.poll(process)) if process.running is Running.ALL else None

    def start(self, process: TimedProcess, program: Program) -> AskingPlans:
        """Let a process do this, now."""
        process.read_on()
        process.program = program
        return self.go_on(process)

    def go_on(self, process: TimedProcess) -> AskingPlans:
        """Let a process continue with what it does, until it has to wait or is done."""
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
                process.program_due = self.agenda.after(item, partial(self.go_on, process))
                return

    # Processes

    def stop(self, process: TimedProcess, running: Running) -> None:
        """Stop a process: it consumes nothing, whatever it believes to own."""
        process.stopped_ms, process.running = self.now_ms, running
        process.held = self.ownership.stop(process.name, self.now_ms)

    def end(self, process: TimedProcess) -> None:
        """End a process for good."""
        self.stop(process, Running.STOPPED)
        process.alive, process.membership = False, Membership.UNJOINED
        process.call_off()
        self.ended[process.name] = process.settings_now

    # Rounds

    def begin_round(self, joined: dict[str, tuple[TimedProcess, JoinRequest]]) -> None:
        """Begin a generation; what is left of the last one ends."""
        self.close_round()
        self.begun += 1
        rows = {
            member_id: (process, tuple(sorted(process.consumer.owned)), request.started_ms)
            for member_id, (process, request) in joined.items()
        }
        unavailable = self.unowned(kept for _, kept, _ in rows.values())
        self.round = OpenRound(self.new_round(self.begun, self.prepared_ms, unavailable), rows)
        self._close_if_done()

    def done(self, member_id: str | None, *, answered: bool, again: bool) -> None:
        """Note that a member of the round has taken its assignment, or will not."""
        if self.round is not None and member_id in self.round.joined and member_id not in self.round.done:
            self.round.done[member_id] = (answered, again, self.now_ms)
            self._close_if_done()

    def _close_if_done(self) -> None:
        if self.round is not None and len(self.round.done) == len(self.round.joined):
            self.close_round()

    def close_round(self) -> None:
        """End the round, even if some are not done."""
        if self.round is not None:
            self.rounds.append(self.round.close(self.now_ms))
            self.round = None
