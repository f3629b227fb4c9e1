"""A consumer group in play: its processes, its coordinator, a clock and a queue of what comes next.

Every step is an entry of the queue, at a time in milliseconds; entries of one millisecond come in the
order in which they were put there. So a script has one outcome.
"""

from __future__ import annotations

import enum
import heapq
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, NamedTuple

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol.consumer import Call, Callback, exists
from groupledger.core.protocol.consumer_group.consumer_coordinator import ConsumerGroup
from groupledger.core.protocol.consumer_group.consumer_state import (
    LEFT_STATIC,
    HeartbeatRequest,
    HeartbeatResponse,
    HeartbeatRow,
    MemberState,
    Reconciled,
    Refusal,
    TargetRow,
)
from groupledger.core.protocol.consumer_group.topics_and_targets import NO_PARTITIONS, TopicIdPartitionSet
from groupledger.core.protocol.events import GroupProtocol, Join
from groupledger.core.protocol.simulated_group import Gap, SimulatedGroup, SimulatedProcess


class QueueEntry(NamedTuple):
    """One entry of the queue. `wakes`: of a SEND; older ones of the process no longer count."""

    at_ms: int
    order: int
    name: str
    number: int
    due: EntryKind
    wakes: int
    payload: Any = None


# A process of a consumer group: its consumer, of either protocol, and what it is doing right now.


class EntryKind(enum.IntEnum):
    """What a process does at a time: it sends its next heartbeat, has an answer, returns from a call, continues, or has
    been in a call for `max.poll.interval.ms`.
    """

    SEND = 0
    ANSWER = 1
    RETURN = 2
    GO_ON = 3
    TOO_LATE = 4


Steps = Generator[Call | HeartbeatRequest | int | None, HeartbeatResponse | None, None]
"""What a process does one after the other; a request is answered into it. A number is a time that it waits before it
continues, None: until it polls next, since callbacks run in a poll.
"""


HEARTBEATS_DURING = frozenset({Callback.REVOKED, Callback.ON_ASSIGNMENT, Callback.ASSIGNED})
"""Calls of a classic process that is a member: heartbeats stop at subscriptionUserData, and when it fell out."""


@dataclass(slots=True, kw_only=True)
class Process(SimulatedProcess):
    """One process. `alive`: it has not ended; `talks`: nor does it stand still, and the coordinator hears of it.

    It has a `client` of the consumer protocol or a `consumer` of the classic one. `steps` are under way, the call that
    it is in began at `since_ms`, and `turns` is what is left of it. `taking`: what it is given in that call, and owns
    once it has returned; `giving`: what it has given up then. `reconciling_ms`: when it began to take a new assignment.
    `pending_error`, `closing`: what it does after the call; `falls`: it has begun to lose all. `must_rejoin`: it
    is to join again after a call, in the classic protocol. `awaits`: an answer that is on its way, before which
    it sends no heartbeat.
    `wakes`: those of its entries in the queue count that bear this number. `hung`: it polls no more, and leaves by
    itself at `too_late_ms`. `cut_off`: it polls, and its coordinator is out of reach. `leaves`: it closes.
    """

    client: ConsumerClient | None = None
    talks: bool = True
    resumes: bool = False  # until its next answer
    steps: Steps | None = None
    doing: Call | None = None
    turns: Iterator[int] | None = None
    hung: bool = False
    cut_off: bool = False
    seated: bool = False  # when the call began that it is in
    too_late_ms: int | None = None
    since_ms: int = 0
    taking: TopicIdPartitionSet = NO_PARTITIONS
    giving: TopicIdPartitionSet = NO_PARTITIONS
    reconciling_ms: int | None = None
    pending_error: classic.Error | None = None
    falls: bool = False
    must_rejoin: bool = False
    closing: bool = False
    awaits: HeartbeatResponse | None = None
    sends_again: bool = False
    wakes: int = 0
    next_send_ms: int = 0
    suspended: list[tuple[EntryKind, Any]] = field(default_factory=list)
    leaves: bool = False

    @property
    def member_id(self) -> str | None:
        """The id that it speaks under."""
        speaker = self.client or self.consumer
        return None if speaker is None else speaker.member_id

    @property
    def generation(self) -> int | None:
        """Its member epoch, or generation; None: it is in none."""
        if self.client is not None:
            return self.client.epoch or None
        return None if self.consumer is None else self.consumer.generation

    @property
    def classic_consumer(self) -> classic.Consumer:
        """The consumer of a process of the classic protocol."""
        if self.consumer is None:
            raise AssertionError(f"{self.name} is no classic member; expected one")
        return self.consumer

    @property
    def runs(self) -> bool:
        """Whether it polls and heartbeats."""
        return self.talks and not self.hung

    @property
    def stands(self) -> str:
        """How one stands that does not run."""
        return "hung" if self.hung else "cut off" if self.cut_off else "paused"

    @property
    def is_closing(self) -> bool:
        """Whether it is about to close, or does."""
        return self.alive and self.leaves

    @property
    def is_out(self) -> bool:
        """Whether it knows that it is no member, until it has lost all."""
        return self.falls or self.pending_error is not None

    @property
    def hears_news(self) -> bool:
        """Whether the answer on its way gives it other partitions, or will not arrive.

        If it has another epoch or an error, the coordinator has the member in that epoch, or not at all.
        """
        if self.awaits is None or self.client is None:
            return False
        return self.misses == 1 or self.awaits.assigned not in (None, self.client.assigned)

    def lose_answer(self) -> None:
        """Expect no answer any more: the next heartbeat says everything again."""
        self.awaits = None
        if self.client is not None:
            self.client = replace(self.client, full=True)

    @property
    def closes(self) -> bool:
        """Whether it has begun to close."""
        return self.leaves and not self.closing

    @property
    def in_poll(self) -> bool:
        """Whether a callback, which runs in a poll, has not returned yet."""
        return self.turns is not None

    @property
    def works_ms(self) -> int:
        """Between two polls, while it owns something."""
        owned = self.client.owns if self.client is not None else self.consumer and self.consumer.owned
        return self.times.processing_ms if owned else 0

    @property
    def polls(self) -> bool:
        """Whether it polls, and is in no callback."""
        return self.alive and not (self.in_poll or self.hung or self.resumes) and (self.talks or self.cut_off)

    @property
    def settings_now(self) -> Join:
        """How it would start again, with the subscription that it has now."""
        if self.client is not None:
            return self.settings.subscribed(self.client.topics, self.client.regex)
        if self.consumer is not None:
            return self.settings.subscribed(self.consumer.named, self.consumer.pattern)
        return self.settings


# The group.


@dataclass(slots=True, kw_only=True)
class CoordinatedGroup(SimulatedGroup[Process]):
    """Everything about one group. `heartbeats` and `targets` are those since the last `take`.

    `is_classic`: the last member of the consumer protocol is gone, and the group continues as a classic one.
    """

    group: ConsumerGroup
    new_id: Callable[[str], str]
    heartbeats: list[HeartbeatRow] = field(default_factory=list)
    targets: list[TargetRow] = field(default_factory=list)
    reconciled: list[Reconciled] = field(default_factory=list)
    queue: list[QueueEntry] = field(default_factory=list)
    wanted_before: frozenset[TopicPartition] = frozenset()
    is_classic: bool = False
    _order: Iterator[int] = field(default_factory=count)

    def take_over(self, process: Process, before: SimulatedProcess) -> None:
        """Continue a classic process in this group, which was a classic one (`before`: the process in that one)."""
        SimulatedGroup.take_over(self, process, before)
        process.polled_ms = self.clock_ms
        self.processes[process.name] = process

    def accepts(self, process: Process) -> bool:
        """Whether the coordinator takes a commit of a process: it is a member, and within reach."""
        member = self.group.members.get(process.member_id or "")
        return process.talks and member is not None and member.epoch != LEFT_STATIC and process.pending_error is None

    def put(self, process: Process, due: EntryKind, after_ms: int = 0, payload: Any = None) -> None:
        """Put something that a process will do into the queue."""
        at_ms = self.clock_ms + after_ms
        heapq.heappush(
            self.queue, QueueEntry(at_ms, next(self._order), process.name, process.number, due, process.wakes, payload)
        )

    def send_soon(self, process: Process, after_ms: int = 0) -> None:
        """Send the next heartbeat of a process then, and not when it was due."""
        process.wakes += 1
        process.next_send_ms = self.clock_ms + after_ms
        self.put(process, EntryKind.SEND, after_ms)

    def send_next(self, process: Process) -> None:
        """Send the next heartbeat an interval after this one."""
        self.send_soon(process, self.interval_ms(process))

    def interval_ms(self, process: Process) -> int:
        """Between two heartbeats of a process."""
        if process.client is None:
            return process.times.heartbeat_interval_ms
        return self.group.settings.heartbeat_interval_ms

    def of(self, entry: QueueEntry) -> Process | None:
        """Return the process of an entry that still counts."""
        process = self.processes.get(entry.name)
        if process is None or not process.alive or process.number != entry.number:
            return None
        return None if entry.due is EntryKind.SEND and entry.wakes != process.wakes else process

    def returned(self, process: Process, made: Call) -> None:
        """Note a call that has returned; who resumes in it asks first whether it is a member."""
        self.ownership.begin_step()
        taken = () if process.resumes else [each for each in made.partitions if exists(each, self.group.topics.counts)]
        self.note(process, made, process.since_ms, self.clock_ms, taken=taken)

    def stop(self, process: Process) -> None:
        """Stop a process: it consumes nothing, whatever it believes to own."""
        process.read_on()
        process.talks = process.cut_off = process.hung = False
        self.ownership.begin_step()
        self.ownership.stop(process.name, self.clock_ms)

    def end(self, process: Process) -> None:
        """End a process for good."""
        self.stop(process)
        process.alive = False
        process.steps = process.doing = process.turns = process.too_late_ms = None
        self.ended[process.name] = process.settings_now

    def refuse(self, process: Process, error: Refusal, message: str) -> None:
        """End a process that the coordinator refuses, and keep the reason."""
        self.refused = f"{error}: {message}"
        self.end(process)

    def owned(self, process: Process) -> tuple[TopicPartition, ...]:
        """Return what a process believes to own."""
        if process.client is not None:
            return self.group.partitions(process.client.owns)
        return () if process.consumer is None else tuple(sorted(process.consumer.owned))

    def consumed(self, process: Process) -> tuple[TopicPartition, ...]:
        """Return what a process can consume of it: nothing of a deleted topic, even if another one has its name."""
        if process.client is None:
            return self.owned(process)
        return self.group.living_partitions(process.client.owns)

    def is_seated(self, process: Process) -> bool:
        """Whether a process talks and polls, and is a member."""
        return (
            process.talks
            and not process.hung
            and process.generation is not None
            and process.member_id in self.group.members
        )

    def wanted(self) -> frozenset[TopicPartition]:
        """Partitions of existing topics that a member subscribes to."""
        counts = self.group.topics.counts
        names = self.group.subscribed_topics()
        return frozenset(TopicPartition(name, number) for name in names for number in range(counts.get(name, 0)))

    def gaps(self, event_ms: int) -> dict[TopicPartition, list[Gap]]:
        """When nobody consumed what is wanted: since the last settlement, or the event that made it wanted."""
        wanted = self.wanted()
        before, then = wanted & self.wanted_before, wanted - self.wanted_before
        found = self.ownership.gaps(before, self.settled_ms, self.clock_ms)
        return found | self.ownership.gaps(then, event_ms, self.clock_ms)

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
        talking, group = self.talking, self.group
        if group.timer_ms is not None:
            return False
        if not talking:
            return True
        if group.epoch > group.assignment_epoch:
            return False
        news = group.has_other_topics or group.resolved.is_stale(group.members.values(), group.topics.created)
        if news and self.has_talking_clients:  # classic heartbeats look for no new topics
            return False
        return all(self._is_settled(each) for each in talking)

    def _is_settled(self, process: Process) -> bool:
        if process.hung:
            return self._is_waiting(process)
        if process.steps is not None or process.closing or process.pending_error:
            return False
        if process.hears_news or process.resumes:
            return False
        if process.client is not None and (process.client.has_news or not process.client.reconciled):
            return False
        member = self.group.members.get(process.member_id or "")
        if member is None or member.epoch != self.group.assignment_epoch or member.epoch != process.generation:
            return False
        if member.state is MemberState.UNRELEASED_PARTITIONS:
            waits_for = self.silent_members() | {each.member_id for each in self.processes.values() if each.hung}
            return all(self.group.blockers(member, each) & waits_for for each in self.group.missing(member))
        return member.state is MemberState.STABLE

    def _is_waiting(self, process: Process) -> bool:
        """Whether heartbeats of a process that hangs bring nothing new: it is fenced, or has to revoke, or is done."""
        member = self.group.members.get(process.member_id or "")
        if member is None or process.is_out:
            return process.is_out
        return member.epoch == self.group.assignment_epoch or member.state is MemberState.UNREVOKED_PARTITIONS

    def silent_members(self) -> set[str]:
        """Member ids of those who say nothing: no process speaks under them."""
        heard = (each for each in self.talking if not (each.hung and each.pending_error))
        return self.group.members.keys() - {each.member_id for each in heard}

    def next_time_out(self) -> tuple[int, str] | None:
        """Return the first member whose time is over, and when: it is fenced, or polled too late and leaves."""
        return min([*self._fenced(self.group.members), *self._polls_too_late()], default=None)

    def silent_time_out(self) -> tuple[int, str] | None:
        """Return the first of those that are silent, or that hang."""
        hung = [each.member_id or "" for each in self.processes.values() if each.hung]
        revokes = [(self.group.revocation_ends_ms(each), each) for each in hung if each in self.group.revoking_since_ms]
        return min([*self._fenced(self.silent_members()), *self._polls_too_late(), *revokes], default=None)

    def _fenced(self, members: Iterable[str]) -> list[tuple[int, str]]:
        return [(self.group.deadline(each), each) for each in members]

    def _polls_too_late(self) -> list[tuple[int, str]]:
        processes = self.processes.values()
        return [(each.too_late_ms, each.member_id or "") for each in processes if each.too_late_ms is not None]

    def time_out(self, member_id: str) -> None:
        """End a member's time: its process has not polled for too long, or the coordinator gives it up."""
        hung = [each for each in self.processes.values() if each.member_id == member_id]
        late = (each for each in hung if each.too_late_ms is not None and each.too_late_ms <= self.clock_ms)
        process = next(late, None)
        if process is not None:
            self.leave_late(process)
            return
        fenced = self.processes.get(self.group.members[member_id].process)
        self.unseat(member_id)  # one that talks learns of it with its next heartbeat
        if fenced is not None and not fenced.alive and fenced.member_id == member_id:
            del self.processes[fenced.name]

    def leave_late(self, process: Process) -> None:
        """Make a process leave the group; it finds that all is lost at its next poll.

        A static member leaves for now (epoch -2); one of the classic protocol sends nothing.
        """
        member_id, process.too_late_ms = process.member_id or "", None
        if member_id in self.group.members:
            if process.instance_id is None:
                self.unseat(member_id)
            elif process.client is not None:
                self.group.leave_for_now(member_id)
        if not process.falls:
            process.pending_error = classic.Error.UNKNOWN_MEMBER_ID

    def unseat(self, member_id: str) -> None:
        """Take a seat away. Where classic members alone are left, the group becomes classic, in the same epoch.

        Not where a fenced process of the consumer protocol is about to join again: that would turn it back at once.
        """
        if self.group.would_be_classic(without=member_id) and not self.has_talking_clients:
            del self.group.members[member_id]
            self.is_classic = True
        else:
            self.group.leave(member_id)

    def next_ms(self) -> int | None:
        """When the next thing is due, a time-out or an entry of the queue."""
        time_out, timer_ms = self.next_time_out(), self.group.timer_ms
        found = [each for each in (timer_ms, None if time_out is None else time_out[0]) if each is not None]
        return min([*found, *(each.at_ms for each in self.queue[:1])], default=None)

    def move_clock(self, to_ms: int) -> None:
        """Time passes, and records are read in it."""
        self.clock_ms = max(self.clock_ms, to_ms)
        self.catch_up()

    def round_trip_ms(self, process: Process) -> int:
        """From a heartbeat to its answer."""
        return self.pace.round_ms if self.times is None else process.times.round_trip_ms

    def skip_to(self, until_ms: int) -> None:
        """Let time pass in which nothing but heartbeats without news is sent."""
        self.move_clock(until_ms)
        for process in self.talking:
            interval_ms, next_ms = self.interval_ms(process), process.next_send_ms
            if next_ms >= self.clock_ms or process.steps is not None or process.member_id is None:
                continue
            next_ms += -(-(self.clock_ms - next_ms) // interval_ms) * interval_ms
            if process.member_id in self.group.members:
                self.group.heard_ms[process.member_id] = next_ms - interval_ms
            self.send_soon(process, next_ms - self.clock_ms)


# A consumer of the consumer protocol as Kafka's Java client 4.4 is one: what it sends, what it is answered, what it
# owns.
#
# Pure, like `core.protocol.consumer` for the classic protocol. It reconciles in one go: onPartitionsRevoked with all
# that goes, then onPartitionsAssigned with all that comes, even if nothing; then it reports what it owns.

Said = tuple[tuple[str, ...], str | None]


@dataclass(frozen=True, slots=True)
class ConsumerClient:
    """What it knows. `epoch` 0: it has to join. `owned` None: it has not reconciled anything since it joined.

    `assigned`: what the coordinator answered last. `stated`, `said`: what it last sent as owned, and as subscription.
    `full`: its next heartbeat says everything, as after an error.
    """

    member_id: str
    process: str
    topics: tuple[str, ...]
    regex: str | None = None
    group_instance_id: str | None = None
    remote_assignor: str | None = None
    rebalance_timeout_ms: int = 0
    epoch: int = 0
    owned: TopicIdPartitionSet | None = None
    assigned: TopicIdPartitionSet | None = None
    stated: TopicIdPartitionSet | None = None
    said: Said | None = None
    full: bool = True
    protocol: GroupProtocol = GroupProtocol.CONSUMER
    process_id: str | None = None  # of a Streams group's member

    @property
    def shares(self) -> bool:
        """Whether it is a share consumer, which takes what it is answered and states nothing of it."""
        return self.protocol is GroupProtocol.SHARE

    @property
    def owns(self) -> TopicIdPartitionSet:
        """What it owns."""
        return self.owned or NO_PARTITIONS

    @property
    def subscribed(self) -> Said:
        """Its subscription."""
        return self.topics, self.regex

    @property
    def reconciled(self) -> bool:
        """Whether it owns what it was assigned."""
        return self.assigned is None or self.assigned == self.owned

    @property
    def has_news(self) -> bool:
        """Whether its next heartbeat says something that the coordinator does not know."""
        untold = self.stated != self.owns and not self.shares
        return self.full or self.said != self.subscribed or untold


def send(client: ConsumerClient) -> tuple[ConsumerClient, HeartbeatRequest]:
    """Return the next heartbeat: all when it joins or after an error, else what changed."""
    full, changed = client.full, client.full or client.said != client.subscribed
    owned = client.owns if (full or client.stated != client.owns) and not client.shares else None
    request = HeartbeatRequest(
        member_id=client.member_id,
        process=client.process,
        epoch=client.epoch,
        group_instance_id=client.group_instance_id,
        topics=client.topics if changed else None,
        regex=client.regex or "" if changed else None,
        remote_assignor=client.remote_assignor if full else None,
        rebalance_timeout_ms=client.rebalance_timeout_ms if full else None,
        owned=owned,
        process_id=client.process_id if full else None,
    )
    return replace(client, said=client.subscribed, stated=client.owns, full=False), request


def receive(client: ConsumerClient, answer: HeartbeatResponse) -> ConsumerClient:
    """Take an answer without an error."""
    assigned = client.assigned if answer.assigned is None else answer.assigned
    return replace(client, epoch=answer.epoch, assigned=assigned)


def subscribe(client: ConsumerClient, topics: Iterable[str]) -> ConsumerClient:
    """Subscribe to other topics, by name; the coordinator hears of it with the next heartbeat."""
    return replace(client, topics=tuple(topics), regex=None)


def fall_out(client: ConsumerClient) -> ConsumerClient:
    """Lose everything; it joins again under the same member id (KIP-1082)."""
    return replace(client, epoch=0, owned=None, assigned=None, stated=None, said=None, full=True)
