"""One process of a timed group, and its consumer: when it polls, when it heartbeats, what waits for its next poll."""

from __future__ import annotations

import enum
from collections.abc import Generator
from dataclasses import dataclass, field

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol.application import Application, Polls
from groupledger.core.protocol.callbacks import Call
from groupledger.core.protocol.consumer import Consumer, Error, PartitionCounts
from groupledger.core.protocol.coordinator import Registered
from groupledger.core.protocol.events import Join
from groupledger.core.protocol.leader import Plan, Question
from groupledger.core.protocol.subscription import Seat, Subscription
from groupledger.core.protocol.timed.agenda import Act, Due
from groupledger.core.protocol.times import MemberTimes

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


@dataclass(slots=True)
class TimedProcess(Polls):
    """`rejoins` to `unsaid` wait for the next poll; `program` is what a poll is doing."""

    settings: Join
    times: MemberTimes
    consumer: Consumer
    number: int
    polled_ms: int
    application: Application = field(init=False)
    alive: bool = True
    running: Running = Running.ALL
    membership: Membership = Membership.UNJOINED
    frozen: bool = False
    frozen_rounds: int = 0
    misses: int = 0
    loses: bool = False
    rejoins: bool = True
    closes: bool = False
    afterwards: list[Act] = field(default_factory=list)  # once it has closed
    view: PartitionCounts | None = None  # learnt of, and not looked at yet
    fallen: Error | None = None
    joined: Joined | None = None
    given: tuple[TopicPartition, ...] | None = None
    new_id: str | None = None
    unsaid: tuple[Call, ...] = ()  # what it gave up, and has not called its listener for
    returned: Joined | None = None
    request: JoinRequest | None = None
    program: Program | None = None
    poll_started_ms: int = 0
    join_started_ms: int | None = None  # onJoinPrepare, of a rebalance that goes on
    round: int = 0  # that it was answered in last
    heartbeats_since_ms: int = 0
    commits_next_ms: int = 0
    put_off_ms: int = 0
    stopped_ms: int = 0
    held: tuple[TopicPartition, ...] = ()  # when it stopped
    program_due: Due | None = None
    poll_due: Due | None = None
    heartbeat_due: Due | None = None
    too_late: Due | None = None  # max.poll.interval.ms

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

    def registered(self, member_id: str, sent: Subscription) -> Registered:
        """What the coordinator knows of it after a JoinGroup."""
        return Registered(self.name, member_id, self.settings.assignors, sent, self.instance_id)

    def last_heartbeat_ms(self, now_ms: int) -> int:
        """When the last heartbeat that it sent until now reaches the coordinator."""
        return self.times.last_heartbeat_ms(self.heartbeats_since_ms, now_ms)

    def next_heartbeat_ms(self, now_ms: int) -> int:
        """When the next heartbeat from now on reaches the coordinator; the first is sent an interval after joining."""
        interval_ms, first_ms = self.times.heartbeat_interval_ms, self.heartbeats_since_ms + self.times.to_broker_ms
        return first_ms + max(-(-(now_ms - first_ms) // interval_ms), 1) * interval_ms

    def call_off(self) -> None:
        """It does nothing more."""
        for due in (self.program_due, self.poll_due, self.heartbeat_due, self.too_late):
            if due is not None:
                due.call_off()
        self.program = self.program_due = self.poll_due = self.heartbeat_due = self.too_late = None
