"""The events of a group and its topics that a simulation plays, each at a time in milliseconds, and what each does.

An event is declared here alone: its fields are the keys of its JSON form, and `apply` says what it does in terms of
what any simulated group can do (`PlayedGroup`). Where kinds of group differ, such a primitive differs.

A member is named by its process ("orders-eu-1"), not by the member id that the coordinator gives it: the id changes
when the process restarts or falls out of the group.
"""

from __future__ import annotations

import enum
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.rebalance.registry import JAVA

COOPERATIVE_STICKY = ("cooperative-sticky",)
MAX_POLL_INTERVAL_MS = 300_000
BAD_EVENT = "BAD_EVENT"
ABOUT = ("member", "topic", "to")  # the fields that name what an event is about, in the order of its title
PATTERN = re.compile(r"[*+?^$|\\()\[{}]")
"""What stands in a pattern, and in no topic's name."""

# What a field of an event is beside a text, a list of texts or a flag; `script_json` reads it by this name.
Moment = int
Milliseconds = int
Partitions = int
Rounds = int
Library = str


class GroupProtocol(enum.StrEnum):
    """How a member talks to its coordinator: rounds of JoinGroup and SyncGroup, or heartbeats (KIP-848, 932, 1071)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"
    SHARE = "share"
    STREAMS = "streams"

    @property
    def coordinated(self) -> bool:
        """Whether the coordinator assigns, by heartbeats."""
        return self is not GroupProtocol.CLASSIC


class PlayedGroup(ABC):
    """What events do to a simulated group of any kind. Each raises Fault(BAD_EVENT) for what cannot be."""

    __slots__ = ()
    processes: Mapping[str, Any]  # by name
    ended: Mapping[str, Join]  # how each that ended would start again
    topics: Mapping[str, int]  # that exist, and their partitions
    times: Any

    def apply(self, event: Event) -> Any:
        """Do what an event does. What comes to a process while it closes waits until it has, if it may come then."""
        process = self.processes.get(getattr(event, "member", ""))
        if process is None or not process.is_closing or isinstance(event, Crash):
            return event.apply(self)
        if not (process.afterwards or isinstance(event, Join | Restart)):
            raise self.no_process(process.name)
        process.afterwards.append(partial(self.apply, event))
        return None

    def process_of(self, name: str) -> Any:
        """Return the process of this name, if it has not ended."""
        process = self.processes.get(name)
        if process is None or not process.alive:
            raise self.no_process(name)
        return process

    def no_process(self, name: str, to: str = "") -> Fault:
        """Say that there is no process of this name that runs, or that is `to` restart; and which there are."""
        known = {each for each in self.processes if self.processes[each].alive and each != name}
        known |= self.ended.keys() if to else set()
        expected = expected_one_of(name, sorted(known), 10)
        return Fault(BAD_EVENT, f"there is no process {name!r} {to or 'that runs'}; {expected}")

    def running(self, name: str, to: str) -> Any:
        """Return the process of this name, if it does not stand still, so that it can do what it is `to`."""
        process = self.process_of(name)
        if not process.runs:
            raise Fault(BAD_EVENT, f"{name!r} is {process.stands}; it cannot {to} before it resumes")
        return process

    def require_new(self, name: str) -> None:
        """Refuse a second process of a name."""
        process = self.processes.get(name)
        if process is not None and process.alive:
            raise Fault(BAD_EVENT, f"{name!r} has joined already; expected a new process")

    @abstractmethod
    def join(self, settings: Join) -> None:
        """Start a process, which subscribes and joins, or has a recorded seat."""

    @abstractmethod
    def leave(self, process: Any) -> Any:
        """Close a process."""

    @abstractmethod
    def crash(self, process: Any) -> None:
        """End a process without a word."""

    @abstractmethod
    def pause(self, name: str) -> None:
        """Let a process stand still, heartbeats included."""

    def hang(self, name: str) -> None:
        """Let a process no longer poll."""
        raise needs_times(name)

    def cut_off(self, name: str) -> None:
        """Put the coordinator out of reach of a process."""
        raise needs_times(name)

    @abstractmethod
    def resume(self, name: str) -> None:
        """Let a process continue: what it sends next shows whether the group continued without it."""

    @abstractmethod
    def expire(self, name: str) -> None:
        """End the session of a process that is gone or paused."""

    @abstractmethod
    def restart(self, process: Any, settings: Join, *, at_once: bool) -> Any:
        """Close a process that runs, and start another one: when it has closed, or when the group has settled."""

    @abstractmethod
    def subscribe(self, process: Any, topics: tuple[str, ...], *, known: bool) -> None:
        """Let a process subscribe to other topics."""

    @abstractmethod
    def set_partitions(self, topic: str, partitions: int) -> None:
        """Make a topic, or give it more partitions."""

    @abstractmethod
    def delete_topic(self, topic: str) -> None:
        """Delete a topic."""

    @abstractmethod
    def led(self, whose: str) -> Any:
        """Return the group, if its leader assigns by the metadata that its client has."""

    @abstractmethod
    def lose_assignment(self, name: str) -> None:
        """Let a process never look at its next assignment."""


def needs_times(name: str) -> Fault:
    """Say that without a clock no poll and no heartbeat is ever late."""
    return Fault(BAD_EVENT, f"{name!r} is to hang or to be cut off; expected a script with times")


def require_topic_names(names: Iterable[str]) -> None:
    """Raise Fault(BAD_EVENT) for a pattern: no topic can be called so."""
    for name in names:
        if PATTERN.search(name) is not None:
            raise Fault(BAD_EVENT, f"topic is {name[:80]!r}; expected a name; a pattern is a topic_regex")


@dataclass(frozen=True, slots=True, kw_only=True)
class Event(ABC):
    """An event, and when it comes; one that comes before the last one has settled waits for that, unless the
    group has times.

    `together`: with the next event, before any round: members that join or leave in one go, as in a deployment.
    """

    at_ms: Moment = 0
    together: bool = False

    @abstractmethod
    def apply(self, group: PlayedGroup) -> Any:
        """Do to a group what the event does; in a group with a clock it may give questions of a leader."""


@dataclass(frozen=True, slots=True)
class MemberEvent(Event):
    """An event of one process, by its name."""

    member: str


@dataclass(frozen=True, slots=True)
class RecordedSeat:
    """A member of the group's current generation: what it was assigned, and what it claimed when it joined.

    `claimed_generation` dates the claim (KIP-792); None: it did not state one.
    """

    member_id: str
    assigned: tuple[TopicPartition, ...] = ()
    claimed: tuple[TopicPartition, ...] = ()
    claimed_generation: int | None = None
    leads: bool = False


@dataclass(frozen=True, slots=True)
class Join(MemberEvent):
    """A new process subscribes and joins; `assignors` in the order of its configuration.

    `upgrade_from`: Streams' setting of that name, which keeps it eager until everyone runs the new byte code. A member
    of the consumer protocol has no `assignors`, but may ask the broker for one by `remote_assignor`. `topic_regex`: it
    subscribes by a pattern, which a client of the classic protocol resolves itself; that has no `topics` beside it.
    `rebalance_timeout_ms` (`max.poll.interval.ms`) is how long it may take to give up partitions. `library`: as a
    leader it may assign by an algorithm of its own (librdkafka's cooperative-sticky). `process_id`: of a Streams
    group's member, which is one thread of that process; its topics are those of the group's topology. `seat`: the
    process does not join, it is a member already.
    """

    topics: tuple[str, ...] = ()
    assignors: tuple[str, ...] = COOPERATIVE_STICKY
    group_instance_id: str | None = None
    byte_code: ByteCode = ByteCode.KIP_792
    upgrade_from: bool = False
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    remote_assignor: str | None = None
    topic_regex: str | None = None
    rebalance_timeout_ms: Milliseconds = MAX_POLL_INTERVAL_MS
    library: Library = JAVA
    process_id: str | None = None
    seat: RecordedSeat | None = None

    def subscribed(self, topics: tuple[str, ...], topic_regex: str | None) -> Join:
        """Return the same process with another subscription."""
        return replace(self, topics=topics, topic_regex=topic_regex)

    def apply(self, group: PlayedGroup) -> Any:
        """Start it."""
        group.join(self)


@dataclass(frozen=True, slots=True)
class Leave(MemberEvent):
    """A process closes its consumer. A static member sends nothing, and the coordinator waits for its session."""

    def apply(self, group: PlayedGroup) -> Any:
        """Close it."""
        return group.leave(group.running(self.member, "leave"))


@dataclass(frozen=True, slots=True)
class Crash(MemberEvent):
    """A process is gone without a word; its seat stays until `Expire`, or until others rebalance without it."""

    def apply(self, group: PlayedGroup) -> Any:
        """End it."""
        group.crash(group.process_of(self.member))


@dataclass(frozen=True, slots=True)
class Pause(MemberEvent):
    """A process stands still, heartbeats included, and keeps what it believes to own."""

    def apply(self, group: PlayedGroup) -> Any:
        """Halt it."""
        group.pause(self.member)


@dataclass(frozen=True, slots=True)
class Hang(MemberEvent):
    """A process no longer polls, and still sends heartbeats; only where the group has times."""

    def apply(self, group: PlayedGroup) -> Any:
        """Halt its polls."""
        group.hang(self.member)


@dataclass(frozen=True, slots=True)
class CutOff(MemberEvent):
    """A process no longer reaches the coordinator, and still reads what it owns; only if the group has times."""

    def apply(self, group: PlayedGroup) -> Any:
        """Lose what it sends."""
        group.cut_off(self.member)


@dataclass(frozen=True, slots=True)
class Resume(MemberEvent):
    """A process that is paused, hangs or is cut off resumes: a zombie, if the group continued without it."""

    def apply(self, group: PlayedGroup) -> Any:
        """Let it continue."""
        group.resume(self.member)


@dataclass(frozen=True, slots=True)
class Expire(MemberEvent):
    """The session of a process that is gone or paused runs out."""

    def apply(self, group: PlayedGroup) -> Any:
        """End its session."""
        group.expire(self.member)


@dataclass(frozen=True, slots=True)
class Restart(MemberEvent):
    """A process ends and starts again with the same configuration; a static member takes its own place.

    One that runs closes its consumer first, and starts once the group has settled without it. One that has left,
    crashed or lost its session starts at once, and so does one that restarts `together` with the next event.
    """

    def apply(self, group: PlayedGroup) -> Any:
        """Close it and start it; one that stands still is killed."""
        process = group.processes.get(self.member)
        if process is not None and process.runs:
            return group.restart(process, process.settings_now, at_once=self.together)
        if process is not None and process.alive:
            group.crash(process)
        if self.member not in group.ended:
            raise group.no_process(self.member, "to restart")
        return group.join(group.ended[self.member])


@dataclass(frozen=True, slots=True)
class RenameProcess(MemberEvent):
    """A process closes and starts again at once under another name, as a pod does in a new deployment.

    It keeps its subscription, its configuration and, unless the script states some for the new name, its times.
    """

    to: str

    def apply(self, group: PlayedGroup) -> Any:
        """Close it and start it, if no process that runs has the name."""
        process = group.running(self.member, "be renamed")
        group.require_new(self.to)
        if group.times is not None:
            group.times = replace(group.times, of={self.to: group.times.member(self.member), **group.times.of})
        return group.restart(process, replace(process.settings_now, member=self.to), at_once=True)


@dataclass(frozen=True, slots=True)
class Subscribe(MemberEvent):
    """A process subscribes to other topics. `known`: it has metadata of all of them, and need not ask for any first."""

    topics: tuple[str, ...]
    known: bool = False

    def apply(self, group: PlayedGroup) -> Any:
        """Subscribe."""
        require_topic_names(self.topics)
        group.subscribe(group.running(self.member, "subscribe"), self.topics, known=self.known)


@dataclass(frozen=True, slots=True)
class SetPartitions(Event):
    """A topic is made, or gets more partitions."""

    topic: str
    partitions: Partitions

    def apply(self, group: PlayedGroup) -> Any:
        """Make it."""
        require_topic_names([self.topic])
        if self.partitions < (there := group.topics.get(self.topic, 0)):
            fewer = f"partitions of {self.topic!r} is {self.partitions}; expected {there} or more: Kafka removes none"
            raise Fault(BAD_EVENT, fewer)
        group.set_partitions(self.topic, self.partitions)


@dataclass(frozen=True, slots=True)
class DeleteTopic(Event):
    """A topic is deleted."""

    topic: str

    def apply(self, group: PlayedGroup) -> Any:
        """Delete it."""
        if self.topic not in group.topics:
            raise Fault(BAD_EVENT, f"no topic {self.topic!r}; {expected_one_of(self.topic, sorted(group.topics), 10)}")
        group.delete_topic(self.topic)


@dataclass(frozen=True, slots=True)
class FreezeMetadata(MemberEvent):
    """A process learns nothing more of topics: as a leader, it will assign by a stale view, unless its client asks.

    It learns of them with `RefreshMetadata`, or after so many `rounds` if there are any; one that subscribes by a
    pattern does when it joins, unless its client is librdkafka.
    """

    rounds: Rounds = 0

    def apply(self, group: PlayedGroup) -> Any:
        """Freeze."""
        group.led(f"{self.member!r} is a member").process_of(self.member).freeze(self.rounds)


@dataclass(frozen=True, slots=True)
class RefreshMetadata(MemberEvent):
    """A process with frozen metadata learns what there is now."""

    def apply(self, group: PlayedGroup) -> Any:
        """Thaw, and learn."""
        group.led(f"{self.member!r} is a member").refresh(group.process_of(self.member))


@dataclass(frozen=True, slots=True)
class MissAssignment(MemberEvent):
    """A process will get no answer to its next SyncGroup, or to one `after` so many: it joins again with what it owned
    before.
    """

    after: Rounds = 0

    def apply(self, group: PlayedGroup) -> Any:
        """Miss an answer."""
        group.process_of(self.member).misses = 1 + self.after


@dataclass(frozen=True, slots=True)
class LoseAssignment(MemberEvent):
    """A process will be answered its next SyncGroup, and never look: it reads on what it owns, heartbeats no more, and
    is silent until its session ends.
    """

    def apply(self, group: PlayedGroup) -> Any:
        """Lose an answer."""
        group.lose_assignment(self.member)


@dataclass(frozen=True, slots=True)
class MissTopic(Event):
    """The leader will assign without this topic in the next `rounds`, since it has no metadata of it; then it has,
    and joins again.
    """

    topic: str
    rounds: Rounds = 1

    def apply(self, group: PlayedGroup) -> Any:
        """Leave it out."""
        missing = group.led(f"{self.topic!r} is a topic").missing
        require_topic_names([self.topic])
        missing.miss(self.topic, self.rounds)


@dataclass(frozen=True, slots=True)
class Wait(Event):
    """Nothing but time passes: in a consumer group, or where a group has times, sessions of silent members run out."""

    def apply(self, group: PlayedGroup) -> Any:
        """Do nothing: the time has passed already."""


KINDS: tuple[type[Event], ...] = tuple(
    each for each in [*vars().values()] if isinstance(each, type) and issubclass(each, Event) and "apply" in vars(each)
)[1:]
"""Of an event: all of this file that do something."""
