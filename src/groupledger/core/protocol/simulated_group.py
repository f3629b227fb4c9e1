"""What simulated groups of both protocols share: processes, what they do with their consumers, a clock, a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, Generic, TypeVar

from groupledger.core.custom.assignor_names import CustomAssignor
from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault
from groupledger.core.protocol.client_api import (
    AUTO_COMMIT_MS,
    LISTENER,
    Call,
    Callback,
    MemberTimes,
    Times,
    call,
    member_times,
)
from groupledger.core.protocol.consumer import Consumer, PartitionCounts, exists
from groupledger.core.protocol.event_refusals import BAD_EVENT, no_process
from groupledger.core.protocol.events import Event, Join
from groupledger.core.protocol.settlement import MemberCall, Outage, Pace, Settlement, TimedEnd
from groupledger.core.protocol.simulated_ownership import Gap, LiveOwnership, Records
from groupledger.core.rebalance.step import Form

Accepts = Callable[[], bool]
"""Whether the coordinator takes a commit of a process now."""


class Application:
    """Callbacks that take the time that the pace says, of a process that counts no records."""

    may_read_later = False  # than it polls: the application does nothing with what it reads

    def __init__(self, callback_ms: Mapping[Callback, int]) -> None:
        self.callback_ms = callback_ms

    def called(self, call: Call) -> Iterator[int]:
        """Take a call; each value is a time in which this process does nothing else."""
        yield self.callback_ms.get(call.callback, 0)

    def read(self, now_ms: int) -> None:
        """Read in a poll all that was there at this time."""

    def commit(self) -> None:
        """Commit positions, if the coordinator takes that."""

    def expelled(self, call: Call, started_ms: int, ended_ms: int) -> None:
        """Note that the process lost its seat while this call was made."""

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget these partitions: their topic was deleted."""

    def move(self, group: AnyGroup, process: SimulatedProcess, accepts: Accepts) -> None:
        """Continue in this group, as this process: the group now follows the other protocol."""


class RecordReader(Application):
    """Reads all that it owns, from the committed offset on, else from the beginning (`auto.offset.reset=earliest`)."""

    may_read_later = True

    def __init__(self, callback_ms: Mapping[Callback, int], records: Records, accepts: Accepts) -> None:
        super().__init__(callback_ms)
        self.records = records
        self.accepts = accepts
        self.positions: dict[TopicPartition, int] = {}

    def called(self, call: Call) -> Iterator[int]:
        """Read what is assigned from when the callback has returned, and what is given up until then."""
        yield from super().called(call)
        if call.callback is Callback.ASSIGNED:
            for each in call.partitions:
                self.positions[each] = self.records.committed.get(each, 0)
        elif call.callback in (Callback.REVOKED, Callback.LOST):
            self.forget(call.partitions)

    def read(self, now_ms: int) -> None:
        """Read each partition to its end."""
        for each, position in self.positions.items():
            end = self.records.end(each, now_ms)
            if position < end:
                self.records.read(each, position, end)
                self.positions[each] = end

    def commit(self) -> None:
        """Commit all positions."""
        if self.accepts():
            self.records.committed.update(self.positions)

    def forget(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these no longer."""
        for each in partitions:
            self.positions.pop(each, None)

    def move(self, group: AnyGroup, process: SimulatedProcess, accepts: Accepts) -> None:
        """Continue at the same positions."""
        self.accepts = accepts


Applications = Callable[["AnyGroup", "SimulatedProcess", Accepts], Application]
"""Makes one for each process, when it starts."""


@dataclass(slots=True, kw_only=True)
class SimulatedProcess(ABC):
    """A process with a consumer. `alive`: it has not ended; `number` counts its processes of this name.

    It polls all the time while it has nothing to do, else an interval of work apart. `put_off_ms`: what was there at
    this time is to be read; 0: nothing is. `misses`: which of its next answers does not arrive; 0: all do.
    """

    settings: Join
    consumer: Consumer | None = None
    number: int = 1
    times: MemberTimes = field(default_factory=MemberTimes)
    application: Application = field(init=False)
    alive: bool = True
    misses: int = 0
    polled_ms: int = 0
    poll_started_ms: int = 0
    commits_next_ms: int = 0
    put_off_ms: int = 0
    stopped_ms: int = 0

    @property
    def name(self) -> str:
        """The name of the process."""
        return self.settings.member

    @property
    def instance_id(self) -> str | None:
        """`group.instance.id`."""
        return self.settings.group_instance_id

    @property
    def member_id(self) -> str | None:
        """The id that it speaks under."""
        return None if self.consumer is None else self.consumer.member_id

    @property
    def generation(self) -> int | None:
        """Its generation, or member epoch; None: it is in none."""
        return None if self.consumer is None else self.consumer.generation

    @property
    def settings_now(self) -> Join:
        """How it would start again, with the subscription that it has now."""
        if self.consumer is None:
            return self.settings
        return self.settings.subscribed(self.consumer.named, self.consumer.pattern)

    @property
    @abstractmethod
    def runs(self) -> bool:
        """Whether it polls and heartbeats."""

    @property
    def polls(self) -> bool:
        """Whether it polls now: it runs, and is in no callback."""
        return self.runs

    @property
    def works_ms(self) -> int:
        """Time between two polls."""
        return 0

    @property
    def in_poll(self) -> bool:
        """Whether a poll has not returned yet."""
        return False

    def misses_answer(self) -> bool:
        """Return whether the answer that comes now does not arrive."""
        missed, self.misses = self.misses == 1, max(self.misses - 1, 0)
        return missed

    def next_poll_ms(self, now_ms: int) -> int:
        """Return when it polls first from now on."""
        if not self.works_ms:
            return now_ms
        return self.polled_ms + -(-(now_ms - self.polled_ms) // self.works_ms) * self.works_ms

    def last_poll_ms(self, now_ms: int) -> int:
        """Return when its last poll before this time began; a process without work polls all the time."""
        if self.in_poll:
            return self.poll_started_ms
        if not self.works_ms:
            return now_ms
        return self.polled_ms + max((now_ms - self.polled_ms - 1) // self.works_ms, 0) * self.works_ms

    def catch_up(self, every_ms: int, now_ms: int) -> None:
        """Commit by itself, and read, what it would have until now.

        Reading alone is put off to `read_on` if the application does nothing with the records. Of several commits since
        the last call the last one counts: nothing changed between them.
        """
        self.put_off_ms = now_ms
        if every_ms and self.commits_next_ms < now_ms:
            self._commit(every_ms, now_ms)
        elif self.application.may_read_later:
            return
        self.read_on()

    def _commit(self, every_ms: int, now_ms: int) -> None:
        works_ms = self.works_ms
        first_ms = self.next_poll_ms(max(self.commits_next_ms, self.polled_ms + 1))
        if first_ms < now_ms:
            apart_ms = -(-every_ms // works_ms) * works_ms if works_ms else every_ms
            commit_ms = first_ms + (now_ms - 1 - first_ms) // apart_ms * apart_ms
            self.application.read(self.last_poll_ms(commit_ms))
            self.application.commit()
            self.commits_next_ms = commit_ms + every_ms

    def read_on(self) -> None:
        """Read what was put off. Call it before anything changes about what the process owns, or when it polls."""
        if not self.put_off_ms:
            return
        last_ms, self.put_off_ms = self.last_poll_ms(self.put_off_ms), 0
        if last_ms > self.polled_ms:
            self.application.read(last_ms)


P = TypeVar("P", bound=SimulatedProcess)


@dataclass(slots=True, kw_only=True)
class SimulatedGroup(ABC, Generic[P]):
    """A group of either protocol: its topics, its processes, a clock, and what they did since the last settlement.

    `times`: of its members, where the script has some; then `records` are counted, if they have a rate. `born` counts
    processes by name, and `ended` has how each that ended would start again. `returning` starts once the group has
    settled without it.
    """

    topics: PartitionCounts = field(default_factory=dict)
    form: Form
    pace: Pace
    custom: Mapping[str, CustomAssignor] = field(default_factory=dict)
    times: Times | None = None
    records: Records | None = None
    applications: Applications | None = None
    processes: dict[str, P] = field(default_factory=dict)
    ownership: LiveOwnership = field(default_factory=LiveOwnership)
    calls: list[MemberCall] = field(default_factory=list)
    born: Counter[str] = field(default_factory=Counter)
    ended: dict[str, Join] = field(default_factory=dict)
    returning: Join | None = None
    clock_ms: int = 0
    settled_ms: int = 0  # when the last event had settled
    refused: str | None = None
    failure: str | None = None
    overlaps: bool = False  # events come before the last one has settled, in a group that its coordinator assigns
    nobody_since: dict[TopicPartition, int] = field(default_factory=dict)

    def carry_on_from(self, before: AnyGroup) -> None:
        """Continue another group, which followed the other protocol: all is its own but the processes."""
        for each in fields(SimulatedGroup):
            if each.name not in {"processes", "custom", "refused", "failure"}:
                setattr(self, each.name, getattr(before, each.name))

    @property
    def now_ms(self) -> int:
        """The time on the clock."""
        return self.clock_ms

    @property
    def commits_every_ms(self) -> int:
        """`auto.commit.interval.ms`; 0: never, as where a listener commits and the script states nothing."""
        found = None if self.times is None else self.times.auto_commit_interval_ms
        return (AUTO_COMMIT_MS if self.applications is None else 0) if found is None else found

    @abstractmethod
    def accepts(self, process: P) -> bool:
        """Return whether the coordinator takes a commit of a process now."""

    @abstractmethod
    def is_seated(self, process: P) -> bool:
        """Return whether a process runs and is a member."""

    @abstractmethod
    def wanted(self) -> AbstractSet[TopicPartition]:
        """Return the partitions of existing topics that a member subscribes to."""

    def process_of(self, name: str) -> P:
        """Return the process of this name; raise Fault(BAD_EVENT) if there is none or it has ended."""
        process = self.processes.get(name)
        if process is None or not process.alive:
            raise no_process(name)
        return process

    def running(self, name: str, to: str) -> P:
        """Return the process of this name; raise Fault(BAD_EVENT) if it stands still and cannot do what it is `to`."""
        process = self.process_of(name)
        if not process.runs:
            raise Fault(BAD_EVENT, f"{name!r} is paused; it cannot {to} before it resumes")
        return process

    def require_new(self, name: str) -> None:
        """Raise Fault(BAD_EVENT) if a process of this name runs or is paused."""
        process = self.processes.get(name)
        if process is not None and process.alive:
            raise Fault(BAD_EVENT, f"{name!r} has joined already; expected a new process")

    def consumed(self, process: P) -> Iterable[TopicPartition]:
        """Return what a process can consume of what it owns."""
        return () if process.consumer is None else process.consumer.owned

    def owners(self) -> dict[TopicPartition, str]:
        """Return the owner of each partition, of those that run and are members."""
        seated = (each for each in self.processes.values() if self.is_seated(each))
        return dict(sorted((partition, each.name) for each in seated for partition in self.consumed(each)))

    def begin(self, process: P) -> None:
        """Give a process that starts its times and its application."""
        process.times = member_times(self.times, process.name, process.settings.rebalance_timeout_ms)
        process.polled_ms, accepts = self.now_ms, partial(self.accepts, process)
        if self.applications is not None:
            process.application = self.applications(self, process, accepts)
        elif self.records is not None:
            process.application = RecordReader(self.pace.callback_ms, self.records, accepts)
        else:
            process.application = Application(self.pace.callback_ms)
        process.commits_next_ms = self.now_ms + self.commits_every_ms

    def begin_recorded(self, process: P, assigned: Iterable[TopicPartition]) -> None:
        """Give a recorded member what it was assigned, and note that call before the first event."""
        found = call(Callback.ASSIGNED, assigned)
        list(process.application.called(found))  # its listener knows of the partitions, and took its time before
        self.note(process, found, self.now_ms, self.now_ms)

    def take_over(self, process: P, before: SimulatedProcess) -> None:
        """Continue a process in this group, which followed the other protocol (`before`: the process in that one)."""
        process.times = member_times(self.times, process.name, process.settings.rebalance_timeout_ms)
        process.application, process.commits_next_ms = before.application, before.commits_next_ms
        process.application.move(self, process, partial(self.accepts, process))

    def note(
        self,
        process: P,
        made: Call,
        started_ms: int,
        ended_ms: int,
        round_number: int = 0,
        *,
        taken: Iterable[TopicPartition] | None = None,
    ) -> None:
        """Note a call that has returned: who consumes what, and since when. `taken`: of ASSIGNED, if not all of it."""
        row = len(self.calls), round_number, process.name, process.member_id, made, started_ms, ended_ms
        self.calls.append(MemberCall(*row, process.generation, process.instance_id, process.number))
        if made.callback is Callback.ASSIGNED:
            self.ownership.take(process.name, made.partitions if taken is None else taken, ended_ms)
        elif made.callback in LISTENER:
            self.ownership.give_up(process.name, made.partitions, ended_ms)

    def commit(self, process: P) -> None:
        """Commit before a rebalance or a close, if the process commits by itself."""
        process.read_on()
        if self.commits_every_ms:
            process.application.commit()
            process.commits_next_ms = self.time_of(process) + self.commits_every_ms

    def time_of(self, process: P) -> int:
        """Return the time on the clock of a process."""
        return self.now_ms

    def catch_up(self) -> None:
        """Let all processes commit by themselves, and read, what they would have until now; some read it later."""
        if self.records is None:
            return
        every_ms = self.commits_every_ms
        for process in self.processes.values():
            if process.polls:
                process.catch_up(every_ms, self.time_of(process))

    def all_read_on(self) -> None:
        """Let all processes read what they would have until now."""
        for process in self.processes.values():
            process.read_on()

    def change_topics(self, topics: PartitionCounts) -> None:
        """Take these topics, and no others, for those of the cluster."""
        self.all_read_on()
        self.topics = topics
        if self.records is not None:
            self.records.set_topics(topics, self.now_ms)

    def timed_end(self, gaps: Mapping[TopicPartition, Iterable[Gap]], *, rebalancing: bool) -> TimedEnd | None:
        """Return how a settlement ends in a group that has times; an outage that lasts is given from when it began."""
        if self.times is None:
            return None
        found, lasting, held = [], self.nobody_since, self.ownership.held()
        for each, some in sorted(gaps.items()):
            lasted = lasting.pop(each, None)
            if lasted is not None and [gap.since_ms for gap in some][:1] != [self.settled_ms]:
                found.append(Outage(each, lasted, self.settled_ms))  # the event at that very moment ended it
                lasted = None
            for gap in some:
                since_ms, lasted = gap.since_ms if lasted is None else lasted, None
                continues = gap.until_ms == self.now_ms and each not in held
                found.append(Outage(each, since_ms, None if continues else gap.until_ms))
                if continues:
                    lasting[each] = since_ms
        for gone in lasting.keys() - gaps.keys():
            del lasting[gone]
        read = None if self.records is None else self.records.found(self.now_ms)
        return TimedEnd(self.now_ms, rebalancing, tuple(found), read)

    def settlement(
        self,
        event: Event,
        waited: Mapping[TopicPartition, int],
        timed: TimedEnd | None,
        *,
        shared: bool = False,
        **of_protocol: Any,
    ) -> Settlement:
        """Return how one event ended, and forget what led to it. `shared`: many owners of a partition are right."""
        owners = self.owners()
        consumed, doubles = self.ownership.consumed(), self.ownership.take_double_owners()
        calls, self.calls = tuple(self.calls), []
        refused, self.refused = self.refused, None
        return Settlement(
            event=event,
            calls=calls,
            owners=owners,
            unowned=tuple(sorted(self.wanted() - owners.keys())),
            refused=refused,
            topics=self.topics,
            running={each.name: each.number for each in self.processes.values() if each.runs},
            consumed=consumed,
            double_owners=() if shared else tuple(each for each in doubles if exists(each.partition, self.topics)),
            unavailable_ms=waited,
            timed=timed,
            **{"rounds": (), "failure": self.failure} | of_protocol,
        )


AnyGroup = SimulatedGroup[Any]
