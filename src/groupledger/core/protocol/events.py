"""The events of a group and its topics that a simulation plays, each at a time in milliseconds.

A member is named by its process ("orders-eu-1"), not by the member id that the coordinator gives it: the id changes
when the process restarts or falls out of the group.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace

from groupledger.core.custom.custom_group import TopicPartition
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.rebalance.registry import JAVA

COOPERATIVE_STICKY = ("cooperative-sticky",)
MAX_POLL_INTERVAL_MS = 300_000


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event, and when it comes; one that comes before the last one has settled waits for that, unless the
    group has times.

    `together`: with the next event, before any round: members that join or leave in one go, as in a deployment.
    """

    at_ms: int = 0
    together: bool = False


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
class Join(Event):
    """A new process subscribes and joins; `assignors` in the order of its configuration.

    `upgrade_from`: Streams' setting of that name, which keeps it eager until everyone runs the new byte code. A member
    of the consumer protocol has no `assignors`, but may ask the broker for one by `remote_assignor`. `topic_regex`: it
    subscribes by a pattern, which a client of the classic protocol resolves itself; that has no `topics` beside it.
    `rebalance_timeout_ms` (`max.poll.interval.ms`) is how long it may take to give up partitions. `library`: as a
    leader it may assign by an algorithm of its own (librdkafka's cooperative-sticky). `process_id`: of a Streams
    group's member, which is one thread of that process; its topics are those of the group's topology. `seat`: the
    process does not join, it is a member already.
    """

    member: str
    topics: tuple[str, ...] = ()
    assignors: tuple[str, ...] = COOPERATIVE_STICKY
    group_instance_id: str | None = None
    byte_code: ByteCode = ByteCode.KIP_792
    upgrade_from: bool = False
    group_protocol: GroupProtocol = GroupProtocol.CLASSIC
    remote_assignor: str | None = None
    topic_regex: str | None = None
    rebalance_timeout_ms: int = MAX_POLL_INTERVAL_MS
    library: str = JAVA
    process_id: str | None = None
    seat: RecordedSeat | None = None

    def subscribed(self, topics: tuple[str, ...], topic_regex: str | None) -> Join:
        """Return the same process with another subscription."""
        return replace(self, topics=topics, topic_regex=topic_regex)


@dataclass(frozen=True, slots=True)
class Leave(Event):
    """A process closes its consumer. A static member does not tell the coordinator, which waits for its session."""

    member: str


@dataclass(frozen=True, slots=True)
class Crash(Event):
    """A process is gone without a word; its seat stays until `Expire`, or until others rebalance without it."""

    member: str


@dataclass(frozen=True, slots=True)
class Pause(Event):
    """A process stands still, heartbeats included, and keeps what it believes to own."""

    member: str


@dataclass(frozen=True, slots=True)
class Hang(Event):
    """A process no longer polls, and its heartbeats go on; only where the group has times."""

    member: str


@dataclass(frozen=True, slots=True)
class CutOff(Event):
    """A process no longer reaches the coordinator, and still reads what it owns; only if the group has times."""

    member: str


@dataclass(frozen=True, slots=True)
class Resume(Event):
    """A process that is paused, hangs or is cut off resumes: a zombie, if the group continued without it."""

    member: str


@dataclass(frozen=True, slots=True)
class Expire(Event):
    """The session of a process that is gone or paused runs out."""

    member: str


@dataclass(frozen=True, slots=True)
class Restart(Event):
    """A process ends and starts again with the same configuration; a static member takes its own place.

    One that runs closes its consumer first, and starts once the group has settled without it. One that has left,
    crashed or lost its session starts at once, and so does one that restarts `together` with the next event.
    """

    member: str


@dataclass(frozen=True, slots=True)
class Subscribe(Event):
    """A process subscribes to other topics. `known`: it has metadata of all of them, and need not ask for any first."""

    member: str
    topics: tuple[str, ...]
    known: bool = False


@dataclass(frozen=True, slots=True)
class SetPartitions(Event):
    """A topic is made, or gets more partitions."""

    topic: str
    partitions: int


@dataclass(frozen=True, slots=True)
class DeleteTopic(Event):
    """A topic is deleted."""

    topic: str


@dataclass(frozen=True, slots=True)
class FreezeMetadata(Event):
    """A process learns nothing more of topics: as a leader, it will assign by a stale view, unless its client asks.

    It learns of them with `RefreshMetadata`, or after so many `rounds` if there are any; one that subscribes by a
    pattern does when it joins, unless its client is librdkafka.
    """

    member: str
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class RefreshMetadata(Event):
    """A process with frozen metadata learns what there is now."""

    member: str


@dataclass(frozen=True, slots=True)
class MissAssignment(Event):
    """A process will get no answer to its next SyncGroup, or to one `after` so many: it joins again with what it owned
    before.
    """

    member: str
    after: int = 0


@dataclass(frozen=True, slots=True)
class LoseAssignment(Event):
    """A process will be answered its next SyncGroup, and never look: it reads on what it owns, heartbeats no more, and
    is silent until its session ends.
    """

    member: str


@dataclass(frozen=True, slots=True)
class MissTopic(Event):
    """The leader will assign without this topic in the next `rounds`, since it has no metadata of it; then it has,
    and joins again.
    """

    topic: str
    rounds: int = 1


@dataclass(frozen=True, slots=True)
class Wait(Event):
    """Nothing but time passes: in a consumer group, or where a group has times, sessions of silent members run out."""


KINDS: tuple[type[Event], ...] = (
    *(Join, Leave, Crash, Pause, Hang, CutOff, Resume, Expire, Restart, Subscribe, SetPartitions, DeleteTopic),
    *(FreezeMetadata, RefreshMetadata, MissAssignment, LoseAssignment, MissTopic, Wait),
)
