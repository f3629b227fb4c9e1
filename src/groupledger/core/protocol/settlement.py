"""What a simulation gives: for each event its rounds, calls and cycle, until the group is stable."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.custom.custom_group import Protocol, TopicPartition
from groupledger.core.protocol.consumer import Call, Callback
from groupledger.core.protocol.consumer_group.consumer_state import Coordinated
from groupledger.core.protocol.events import Event
from groupledger.core.protocol.leader import ThreeSets


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take, in milliseconds: JoinGroup and SyncGroup together, and each callback."""

    round_ms: int = 0
    callback_ms: Mapping[Callback, int] = field(default_factory=dict)


class MemberCall(NamedTuple):
    """One call of one member: `round` counts from 1 in an event, 0 is before the first; `order` counts its calls. Where
    the group has times, rounds count from 1 in the whole script, and 0 is in none.

    `generation` and `group_instance_id` are the member's own while it is called; `process` counts the processes of its
    name, which share nothing.
    """

    order: int
    round: int
    member: str
    member_id: str | None
    call: Call
    started_ms: int
    ended_ms: int
    generation: int | None = None
    group_instance_id: str | None = None
    process: int = 1


class MemberRound(NamedTuple):
    """One member in one round. `owned`: what it kept while it joined; not `answered`: SyncGroup never came back.

    Where the group has times: from the first callback before JoinGroup to the end of the last one after SyncGroup.
    """

    member: str
    member_id: str
    protocol: Protocol
    owned: tuple[TopicPartition, ...]
    target: tuple[TopicPartition, ...]
    assigned: tuple[TopicPartition, ...]
    answered: bool
    joins_again: bool
    started_ms: int | None = None
    ended_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One generation. `unavailable`: existing, subscribed to, and owned by nobody from JoinGroup to SyncGroup."""

    number: int
    generation: int
    assignor: str | None
    leader: str | None
    members: tuple[MemberRound, ...]
    sets: ThreeSets
    unavailable: tuple[TopicPartition, ...]
    started_ms: int
    ended_ms: int
    failure: str | None = None


class Cycle(NamedTuple):
    """A group that never settles: after round `last` it is as it was after round `first`."""

    first: int
    last: int

    @property
    def length(self) -> int:
        """Rounds after which everything repeats."""
        return self.last - self.first


class DoubleOwner(NamedTuple):
    """A partition that two processes consumed at the same time; `until_ms` is None where they still do.

    From the moment at which the second one had taken it to the one at which either had given it up: its callback had
    returned, or it ended or stood still. `members` in the order in which they took it.
    """

    partition: TopicPartition
    members: tuple[str, str]
    since_ms: int
    until_ms: int | None


class Consumed(NamedTuple):
    """One process consumed a partition from `since_ms` up to `until_ms`; None: it still does."""

    partition: TopicPartition
    member: str
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class Read:
    """What became of a group's records so far; a partition with none is left out.

    `twice`: reads of records that had been read before. `never`: records that were not read, though a later one was.
    """

    twice: Mapping[TopicPartition, int]
    never: Mapping[TopicPartition, int]
    committed: Mapping[TopicPartition, int]
    ends: Mapping[TopicPartition, int]


class Outage(NamedTuple):
    """Nobody consumed the partition from `since_ms` up to `until_ms`; None: nobody does yet."""

    partition: TopicPartition
    since_ms: int
    until_ms: int | None


@dataclass(frozen=True, slots=True)
class TimedEnd:
    """The end of a settlement in a group that has times.

    `rebalancing`: whether a rebalance still runs, or a timeout will start one. `outages` are those of the time since
    the last settlement ended, from when they began. `read` counts records from the beginning, if the script has a rate.
    """

    at_ms: int
    rebalancing: bool
    outages: tuple[Outage, ...]
    read: Read | None = None


@dataclass(frozen=True, slots=True)
class Settlement:
    """One event and all it led to. It is stable unless there is a cycle or a failure, or a member was refused.

    Afterwards there are these `topics`, and these processes are `running`, neither ended nor paused: by name, with
    the number of each among those of its name. `unavailable_ms`: for how long nobody consumed a partition that somebody
    subscribes to, from the end of the last settlement to the end of this one. A consumer group (KIP-848) has no rounds:
    `coordinated` are its epochs, heartbeats and targets.
    """

    event: Event
    rounds: tuple[Round, ...]
    calls: tuple[MemberCall, ...]
    owners: Mapping[TopicPartition, str]  # afterwards, by those who have a seat
    unowned: tuple[TopicPartition, ...]  # afterwards: existing, subscribed to, and owned by nobody
    cycle: Cycle | None = None
    failure: str | None = None
    refused: str | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    running: Mapping[str, int] = field(default_factory=dict)
    double_owners: tuple[DoubleOwner, ...] = ()  # while it settled, and afterwards where they still are
    unavailable_ms: Mapping[TopicPartition, int] = field(default_factory=dict)
    consumed: tuple[Consumed, ...] = ()  # since the last settlement; what lasts is in the next one too
    timed: TimedEnd | None = None
    coordinated: Coordinated | None = None

    @property
    def stable(self) -> bool:
        """Whether the group came to rest."""
        return self.cycle is None and self.failure is None

    @property
    def unavailable_rounds(self) -> dict[TopicPartition, int]:
        """For each partition that was unavailable, in how many rounds."""
        return dict(sorted(Counter(each for took in self.rounds for each in took.unavailable).items()))
