"""A consumer group in play: its processes, its coordinator, a clock and a queue of what comes next.

Everything that happens is an entry of the queue, at a time in milliseconds; entries of one millisecond come in the
order in which they were put there. So a script has one outcome.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.callbacks import LISTENER, Call, Callback
from groupledger.core.protocol.consumer_group.coordinator import ConsumerGroup
from groupledger.core.protocol.consumer_group.group_member import MemberState
from groupledger.core.protocol.consumer_group.process import Due, HeartbeatRow, Process, TargetRow
from groupledger.core.protocol.consumer_group.settings import CLASSIC_HEARTBEAT_INTERVAL_MS
from groupledger.core.protocol.events import Join
from groupledger.core.protocol.ownership import LiveOwnership
from groupledger.core.protocol.settlement import MemberCall, Pace
from groupledger.core.step import Form


class Entry(NamedTuple):
    """One entry of the queue. `wakes`: of a SEND; older ones of the process no longer count."""

    at_ms: int
    order: int
    name: str
    number: int
    due: Due
    wakes: int
    payload: Any = None


@dataclass(slots=True)
class Play:
    """Everything about one group. `calls`, `heartbeats` and `targets` are those since the last `take`.

    `is_classic`: the last member of the consumer protocol is gone, and the group goes on as a classic one.
    """

    group: ConsumerGroup
    pace: Pace
    form: Form
    new_id: Callable[[str], str]
    processes: dict[str, Process] = field(default_factory=dict)
    ownership: LiveOwnership = field(default_factory=LiveOwnership)
    born: Counter[str] = field(default_factory=Counter)
    ended: dict[str, Join] = field(default_factory=dict)
    calls: list[MemberCall] = field(default_factory=list)
    heartbeats: list[HeartbeatRow] = field(default_factory=list)
    targets: list[TargetRow] = field(default_factory=list)
    queue: list[Entry] = field(default_factory=list)
    clock_ms: int = 0
    settled_ms: int = 0
    wanted_before: frozenset[TopicPartition] = frozenset()
    returning: Join | None = None
    refused: str | None = None
    failure: str | None = None
    is_classic: bool = False
    _order: int = 0

    def put(self, process: Process, due: Due, after_ms: int = 0, payload: Any = None) -> None:
        """Put something that a process will do into the queue."""
        self._order += 1
        at_ms = self.clock_ms + after_ms
        heapq.heappush(self.queue, Entry(at_ms, self._order, process.name, process.number, due, process.wakes, payload))

    def send_soon(self, process: Process, after_ms: int = 0) -> None:
        """The next heartbeat of a process is then, and not when it was to be."""
        process.wakes += 1
        process.next_send_ms = self.clock_ms + after_ms
        self.put(process, Due.SEND, after_ms)

    def send_next(self, process: Process) -> None:
        """The next heartbeat comes an interval after this one."""
        self.send_soon(process, self.interval_ms(process))

    def interval_ms(self, process: Process) -> int:
        """Between two heartbeats of a process."""
        if process.client is None:
            return CLASSIC_HEARTBEAT_INTERVAL_MS
        return self.group.settings.heartbeat_interval_ms

    def of(self, entry: Entry) -> Process | None:
        """The process of an entry that still counts."""
        process = self.processes.get(entry.name)
        if process is None or not process.alive or process.number != entry.number:
            return None
        return None if entry.due is Due.SEND and entry.wakes != process.wakes else process

    def note(self, process: Process, call: Call) -> None:
        """A call has returned: who consumes what, and since when."""
        self.ownership.begin_step()
        row = len(self.calls), 0, process.name, process.member_id, call, process.since_ms, self.clock_ms
        who = process.generation, process.settings.group_instance_id, process.number
        self.calls.append(MemberCall(*row, *who))
        if call.callback is Callback.ASSIGNED and not process.resumes:  # who resumes asks first whether it is a member
            self.ownership.take(process.name, call.partitions, self.clock_ms)
        elif call.callback in LISTENER - {Callback.ASSIGNED}:
            self.ownership.give_up(process.name, call.partitions, self.clock_ms)

    def stop(self, process: Process) -> None:
        """A process stands still: it consumes nothing, whatever it believes to own."""
        process.talks = False
        self.ownership.begin_step()
        self.ownership.stop(process.name, self.clock_ms)

    def end(self, process: Process) -> None:
        """A process is no more."""
        self.stop(process)
        process.alive = False
        process.steps = process.doing = None
        self.ended[process.name] = replace(process.settings, topics=process.subscription)

    def owned(self, process: Process) -> tuple[TopicPartition, ...]:
        """What a process believes to own."""
        if process.client is not None:
            return self.group.topics.named(process.client.owns)
        return () if process.consumer is None else tuple(sorted(process.consumer.owned))

    def consumed(self, process: Process) -> tuple[TopicPartition, ...]:
        """What a process can consume of it: nothing of a topic that is gone, be there another one of its name."""
        if process.client is None:
            return self.owned(process)
        living = {topic.topic_id for topic in self.group.topics.living.values()}
        return self.group.topics.named(each for each in process.client.owns if each.topic_id in living)

    def is_seated(self, process: Process) -> bool:
        """Whether a process talks and is a member."""
        return process.talks and process.generation is not None and process.member_id in self.group.members

    def owners(self) -> dict[TopicPartition, str]:
        """Who owns each partition, of those who talk and are members."""
        seated = (each for each in self.processes.values() if self.is_seated(each))
        return dict(sorted((partition, each.name) for each in seated for partition in self.consumed(each)))

    def wanted(self) -> frozenset[TopicPartition]:
        """Partitions of existing topics that a member subscribes to."""
        counts = self.group.topics.counts
        names = self.group.subscribed_topics()
        return frozenset(TopicPartition(name, number) for name in names for number in range(counts.get(name, 0)))

    def unavailable_ms(self, event_ms: int) -> dict[TopicPartition, int]:
        """For how long nobody consumed what is wanted: since the last settlement, or the event that made it wanted."""
        waited: dict[TopicPartition, int] = {}
        wanted = self.wanted()
        for some, since_ms in ((wanted & self.wanted_before, self.settled_ms), (wanted - self.wanted_before, event_ms)):
            waited |= self.ownership.uncovered_ms(some, since_ms, self.clock_ms)
        return {each: waited[each] for each in sorted(waited) if waited[each] > 0}

    @property
    def is_abandoned(self) -> bool:
        """Whether there is no member, and no process that is about to be one."""
        return not self.group.members and not self.talking

    @property
    def has_talking_clients(self) -> bool:
        """Whether a process of the consumer protocol talks."""
        return any(each.client is not None for each in self.talking)

    @property
    def talking(self) -> list[Process]:
        """Processes that talk, in the order in which they were started."""
        return [each for each in self.processes.values() if each.talks]

    def is_quiet(self) -> bool:
        """Whether nothing more comes by itself but heartbeats without news, and time-outs of those who are silent."""
        talking = self.talking
        if not talking:
            return True
        group = self.group
        used = {each.regex for each in group.members.values() if each.regex}
        if group.epoch > group.assignment_epoch:
            return False
        looks = self.has_talking_clients  # classic heartbeats look for no new topics
        if looks and (group.has_other_topics or group.resolved.is_stale(used, group.topics.created)):
            return False
        return all(self._is_settled(each) for each in talking)

    def _is_settled(self, process: Process) -> bool:
        if process.steps is not None or process.closing or process.fallen or process.waits or process.resumes:
            return False
        if process.client is not None and (process.client.has_news or not process.client.reconciled):
            return False
        member = self.group.members.get(process.member_id or "")
        if member is None or member.epoch != self.group.assignment_epoch or member.epoch != process.generation:
            return False
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            silent = self.silent_members()
            return all(self.group.holder(each) in silent for each in self.group.missing(member))
        return member.state is MemberState.STABLE

    def silent_members(self) -> set[str]:
        """Member ids of those who say nothing: no process speaks under them."""
        return self.group.members.keys() - {each.member_id for each in self.talking}

    def next_deadline(self, members: Iterable[str]) -> tuple[int, str] | None:
        """The first of these members to be fenced, and when."""
        return min(((self.group.deadline(each)[0], each) for each in members), default=None)

    def silent_deadline(self) -> tuple[int, str] | None:
        """The first of the silent members to be fenced, and when."""
        return self.next_deadline(self.silent_members())

    def next_ms(self) -> int | None:
        """When the next thing happens, a time-out or an entry of the queue."""
        deadline = self.next_deadline(self.group.members)
        found = [] if deadline is None else [deadline[0]]
        return min([*found, *(each.at_ms for each in self.queue[:1])], default=None)

    def skip_to(self, until_ms: int) -> None:
        """Let time pass in which nothing but heartbeats without news is sent."""
        self.clock_ms = max(self.clock_ms, until_ms)
        for process in self.talking:
            interval_ms, next_ms = self.interval_ms(process), process.next_send_ms
            if next_ms >= self.clock_ms or process.steps is not None or process.member_id is None:
                continue
            next_ms += -(-(self.clock_ms - next_ms) // interval_ms) * interval_ms
            if process.member_id in self.group.members:
                self.group.heard_ms[process.member_id] = next_ms - interval_ms
            self.send_soon(process, next_ms - self.clock_ms)
