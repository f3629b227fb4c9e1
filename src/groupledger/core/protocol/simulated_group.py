"""What simulated groups of both protocols share: processes, what they do with their consumers, a clock, a record."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import combinations
from typing import Any, Generic, NamedTuple, TypeVar

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.assignor_names import SOLVED_ALONE
from groupledger.core.custom.custom_group import CustomAssignor, Protocol, TopicPartition
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.protocol.compatibility import SUPPORTED, habits_of, protocol_of, require_played
from groupledger.core.protocol.consumer import (
    AUTO_COMMIT_MS,
    LISTENER,
    Call,
    Callback,
    Consumer,
    MemberTimes,
    PartitionCounts,
    Times,
    call,
    exists,
    look,
    member_times,
)
from groupledger.core.protocol.events import BAD_EVENT, Event, Join, PlayedGroup, require_topic_names
from groupledger.core.protocol.settlement import (
    Consumed,
    DoubleOwner,
    MemberCall,
    Outage,
    Pace,
    Read,
    Settlement,
    TimedEnd,
)
from groupledger.core.protocol.topic_patterns import require_pattern
from groupledger.core.rebalance.step import Form

# Who consumes each partition of a simulated group and since when, and where two do at the same time.


class Gap(NamedTuple):
    """Nobody consumed a partition from `since_ms` up to `until_ms`."""

    since_ms: int
    until_ms: int


def waited_ms(gaps: Mapping[TopicPartition, Iterable[Gap]]) -> dict[TopicPartition, int]:
    """For how long nobody consumed each of these partitions, if for any time."""
    waited = {each: sum(gap.until_ms - gap.since_ms for gap in gaps[each]) for each in sorted(gaps)}
    return {each: ms for each, ms in waited.items() if ms}


@dataclass(slots=True)
class _Span:
    """One process consumes one partition. Steps order the changes of one millisecond."""

    member: str
    since_ms: int
    first_step: int
    until_ms: int | None = None
    last_step: int | None = None


@dataclass(slots=True)
class LiveOwnership:
    """All spans that last, and those that ended since the last `take_double_owners`.

    All SyncGroup answers of a round are one step (`answering`): a member that is given what another gives up in it
    shares it with that one. What ends in any other step has ended before whatever begins in it.
    """

    step: int = 0
    answering: bool = False
    changes: int = 0  # of who consumes what
    _lasting: dict[TopicPartition, list[_Span]] = field(default_factory=dict)
    _ended: dict[TopicPartition, list[_Span]] = field(default_factory=dict)

    def begin_step(self, *, answering: bool = False) -> None:
        """Begin a step: what comes now is later than all that came."""
        self.step += 1
        self.answering = answering

    def take(self, member: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a process consumes these from now on."""
        self.changes += 1
        for each in partitions:
            spans = self._lasting.setdefault(each, [])
            if all(span.member != member for span in spans):
                spans.append(_Span(member, now_ms, self.step))

    def give_up(self, member: str, partitions: Iterable[TopicPartition], now_ms: int) -> None:
        """Note that a process consumes these no longer."""
        self.changes += 1
        for each in partitions:
            for span in [span for span in self._lasting.get(each, ()) if span.member == member]:
                span.until_ms, span.last_step = now_ms, self.step if self.answering else self.step - 1
                self._lasting[each].remove(span)
                self._ended.setdefault(each, []).append(span)

    def stop(self, member: str, now_ms: int) -> tuple[TopicPartition, ...]:
        """Note that a process consumes nothing any longer; return what it did."""
        held = tuple(
            each for each, spans in sorted(self._lasting.items()) if any(span.member == member for span in spans)
        )
        self.give_up(member, held, now_ms)
        return held

    def held(self) -> frozenset[TopicPartition]:
        """Return all partitions that a process consumes now."""
        return frozenset(each for each, spans in self._lasting.items() if spans)

    def gaps(self, partitions: Iterable[TopicPartition], start_ms: int, end_ms: int) -> dict[TopicPartition, list[Gap]]:
        """When nobody consumed each of these in that time, which may not begin before the last answer."""
        found = {}
        for each in partitions:
            free, known_ms = [], start_ms
            spans = [*self._ended.get(each, ()), *self._lasting.get(each, ())]
            for span in sorted(spans, key=lambda span: span.since_ms):
                free.append(Gap(known_ms, min(span.since_ms, end_ms)))
                known_ms = max(known_ms, end_ms if span.until_ms is None else span.until_ms)
            found[each] = [gap for gap in (*free, Gap(known_ms, end_ms)) if gap.since_ms < gap.until_ms]
        return found

    def consumed(self) -> tuple[Consumed, ...]:
        """Who consumed what of the time since the last `take_double_owners`, by partition and beginning."""
        found = [
            Consumed(each, span.member, span.since_ms, span.until_ms)
            for some in (self._ended, self._lasting)
            for each, spans in some.items()
            for span in spans
        ]
        return tuple(sorted(found, key=lambda each: each[:3]))

    def take_double_owners(self) -> tuple[DoubleOwner, ...]:
        """Those of the time since the last call, by partition; one that lasts is in the next answer too."""
        ended, self._ended = self._ended, {}
        shared = {each for each, spans in self._lasting.items() if len(spans) > 1} | ended.keys()
        found = []
        for each in sorted(shared):
            spans = [*ended.get(each, ()), *self._lasting.get(each, ())]
            spans.sort(key=lambda span: (span.first_step, span.since_ms, span.member))
            found += [double for pair in combinations(spans, 2) for double in _double(each, *pair)]
        return tuple(found)


def _double(partition: TopicPartition, first: _Span, second: _Span) -> Iterator[DoubleOwner]:
    """Yield the time in which two had a partition, if the first had not ended when the second began."""
    if first.last_step is not None and first.last_step < second.first_step:
        return
    since_ms = max(first.since_ms, second.since_ms)
    ends = [span.until_ms for span in (first, second) if span.until_ms is not None]
    until_ms = max(since_ms, min(ends)) if ends else None
    yield DoubleOwner(partition, (first.member, second.member), since_ms, until_ms)


# Records of a simulated group's topics: how many there are, which were read, which twice, what is committed.

SECOND_MS = 1_000
Span = tuple[int, int]
"""Offsets from the first up to, but without, the second."""


@dataclass(slots=True)
class Records:
    """The logs of a group's topics: so many records a second arrive in each partition, from when it was made.

    Worked example: at 2 records a second a partition that was made at 0 ms has 3 of them at 1,999 ms.
    """

    per_second: int
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    _made_ms: dict[TopicPartition, int] = field(default_factory=dict)
    _read: dict[TopicPartition, list[Span]] = field(default_factory=dict)  # apart, by offset
    _twice: dict[TopicPartition, int] = field(default_factory=dict)

    def set_topics(self, topics: Mapping[str, int], now_ms: int) -> None:
        """Take these for all topics; a topic that is gone takes its log, its commits and its counts along."""
        there = {TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)}
        for gone in self._made_ms.keys() - there:
            for known in (self._made_ms, self._read, self._twice, self.committed):
                known.pop(gone, None)
        for new in there - self._made_ms.keys():
            self._made_ms[new] = now_ms

    def began_ms(self) -> dict[TopicPartition, int]:
        """Return when the log of each partition began, in ms."""
        return dict(self._made_ms)

    def exists(self, partition: TopicPartition) -> bool:
        """Return whether the partition exists now."""
        return partition in self._made_ms

    def end(self, partition: TopicPartition, now_ms: int) -> int:
        """Return the offset after the last record; 0 where there is no such partition."""
        made_ms = self._made_ms.get(partition)
        return 0 if made_ms is None else max(now_ms - made_ms, 0) * self.per_second // SECOND_MS

    def first_since(self, partition: TopicPartition, at_ms: int, now_ms: int) -> tuple[int, int] | None:
        """Offset and time of the first record of this time or later, of those that are there now."""
        made_ms = self._made_ms.get(partition)
        if made_ms is None or self.per_second == 0:
            return None
        offset = max((at_ms - 1 - made_ms) * self.per_second // SECOND_MS, 0)
        return (offset, self.arrived_ms(partition, offset)) if offset < self.end(partition, now_ms) else None

    def arrived_ms(self, partition: TopicPartition, offset: int) -> int:
        """When the record at this offset is there: the first moment at which the log is longer than that."""
        return self._made_ms[partition] - (-(offset + 1) * SECOND_MS // self.per_second)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit these offsets, except those of deleted partitions, which the broker refuses."""
        self.committed.update({each: offset for each, offset in offsets.items() if self.exists(each)})

    def read(self, partition: TopicPartition, first: int, end: int) -> None:
        """Somebody reads these records."""
        if not self.exists(partition) or first >= end:
            return
        apart: list[Span] = []
        low, high = first, end
        for begun, ended in self._read.get(partition, ()):
            overlap = min(ended, end) - max(begun, first)
            if overlap > 0:
                self._twice[partition] = self._twice.get(partition, 0) + overlap
            if overlap >= 0:
                low, high = min(low, begun), max(high, ended)
            else:
                apart.append((begun, ended))
        self._read[partition] = sorted([*apart, (low, high)])

    def found(self, now_ms: int) -> Read:
        """Return the state of all records so far."""
        missing = {each: spans[-1][1] - sum(end - first for first, end in spans) for each, spans in self._read.items()}
        return Read(
            dict(sorted(self._twice.items())),
            {each: count for each, count in sorted(missing.items()) if count},
            dict(sorted(self.committed.items())),
            {each: self.end(each, now_ms) for each in sorted(self._made_ms)},
        )


# Processes and their applications, and the group.

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
            for each in call.partitions:
                self.positions.pop(each, None)

    def read(self, now_ms: int) -> None:
        """Read each existing partition to its end; one whose log ends before the position was made again: from 0."""
        for each, position in self.positions.items():
            if self.records.exists(each):
                end = self.records.end(each, now_ms)
                self.records.read(each, position if position <= end else 0, end)
                self.positions[each] = end

    def commit(self) -> None:
        """Commit all positions."""
        if self.accepts():
            self.records.commit(self.positions)

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
    afterwards: list[Callable[[], Any]] = field(default_factory=list)  # once it has closed

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
    def stands(self) -> str:
        """How one stands that does not run."""
        return "paused"

    @property
    def is_closing(self) -> bool:
        """Whether it has begun to close."""
        return False

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


def new_consumer(settings: Join, topics: PartitionCounts, form: Form, custom: Mapping[str, CustomAssignor]) -> Consumer:
    """Return the consumer of a classic process that starts; raise Fault: BAD_EVENT, UNKNOWN_ASSIGNOR."""
    require_topic_names(settings.topics)
    if not settings.assignors:
        expected = "at least one, as Kafka's partition.assignment.strategy has it"
        raise Fault(BAD_EVENT, f"{settings.member!r} lists no assignor; expected {expected}")
    if settings.topic_regex is not None:
        require_pattern(settings.member, settings.topic_regex, settings.topics)
    supported = [_supported(custom, each) for each in settings.assignors]
    protocol = Protocol.EAGER if settings.upgrade_from else protocol_of(supported, settings.byte_code)
    consumer = Consumer(
        protocol,
        settings.topics,
        topics,
        settings.byte_code,
        form,
        habits=habits_of(settings.library, form),
        pattern=settings.topic_regex,
    )
    return look(consumer, topics)


def _supported(custom: Mapping[str, CustomAssignor], assignor: str) -> Iterable[Protocol]:
    if assignor in custom:
        return custom[assignor].supported_protocols
    require_played(assignor)
    if assignor not in ASSIGNORS:
        expected = expected_one_of(assignor, [*ASSIGNORS, *custom])
        raise Fault("UNKNOWN_ASSIGNOR", f"assignor is {assignor!r}; {expected}; {SOLVED_ALONE}")
    return SUPPORTED[assignor]


P = TypeVar("P", bound=SimulatedProcess)


@dataclass(slots=True, kw_only=True)
class SimulatedGroup(PlayedGroup, Generic[P]):
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
    overlaps: bool = False  # events come before the last one has settled
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

    def consumed(self, process: P) -> Iterable[TopicPartition]:
        """Return what a process can consume of what it owns."""
        return () if process.consumer is None else process.consumer.owned

    def owners(self) -> dict[TopicPartition, str]:
        """Return the owner of each partition, of those that run and are members."""
        seated = (each for each in self.processes.values() if self.is_seated(each))
        return dict(sorted((partition, each.name) for each in seated for partition in self.consumed(each)))

    def restart(self, process: P, settings: Join, *, at_once: bool) -> Any:
        """Close a process, and start another one: when it has closed, or once the group has settled without it."""
        if at_once or self.overlaps:
            process.afterwards.append(partial(self.join, settings))
        else:
            self.returning = settings
        return self.leave(process)

    def come_back(self) -> None:
        """Start the process that is returning, if one is."""
        settings, self.returning = self.returning, None
        if settings is not None:
            self.join(settings)

    def begin(self, process: P) -> None:
        """Register a process that starts, in place of an earlier one of its name, with its times and application."""
        self.born[process.name] += 1
        process.number = self.born[process.name]
        process.times = member_times(self.times, process.name, process.settings.rebalance_timeout_ms)
        process.polled_ms, accepts = self.now_ms, partial(self.accepts, process)
        if self.applications is not None:
            process.application = self.applications(self, process, accepts)
        elif self.records is not None:
            process.application = RecordReader(self.pace.callback_ms, self.records, accepts)
        else:
            process.application = Application(self.pace.callback_ms)
        process.commits_next_ms = self.now_ms + self.commits_every_ms
        self.processes.pop(process.name, None)  # the new one is the last of all
        self.processes[process.name] = process

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
