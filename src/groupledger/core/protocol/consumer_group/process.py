"""A process of a consumer group: its consumer, of either protocol, and what it is doing right now."""

from __future__ import annotations

import enum
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol.application import Application, Polls
from groupledger.core.protocol.callbacks import Call, Callback
from groupledger.core.protocol.consumer_group.client import ConsumerClient, lose_answer
from groupledger.core.protocol.consumer_group.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupledger.core.protocol.consumer_group.topic_table import NO_PARTITIONS, TopicIdPartitionSet
from groupledger.core.protocol.events import Join
from groupledger.core.protocol.times import MemberTimes


class EntryKind(enum.IntEnum):
    """What a process does at a time: it sends its next heartbeat, has an answer, returns from a call, goes on, or has
    been in a call for `max.poll.interval.ms`.
    """

    SEND = 0
    ANSWER = 1
    RETURN = 2
    GO_ON = 3
    TOO_LATE = 4


class Backoff(NamedTuple):
    """So long a process waits before it goes on."""

    ms: int


class NextPoll(NamedTuple):
    """A process goes on when it polls next: callbacks run in a poll."""


Steps = Generator[Call | HeartbeatRequest | Backoff | NextPoll, HeartbeatResponse | None, None]
"""What a process does one after the other; a request is answered into it."""


HEARTBEATS_DURING = frozenset({Callback.REVOKED, Callback.ON_ASSIGNMENT, Callback.ASSIGNED})
"""Calls of a classic process that is a member: heartbeats stop at subscriptionUserData, and when it has fallen out."""


@dataclass(slots=True)
class Process(Polls):
    """One process. `alive`: it has not ended; `talks`: nor does it stand still, and the coordinator hears of it.

    It has a `client` of the consumer protocol or a `consumer` of the classic one. `steps` are under way, the call that
    it is in began at `since_ms`, and `turns` is what is left of it. `taking`: what it is given in that call, and owns
    once it has returned; `giving`: what it has given up then. `reconciling_ms`: when it began to take a new assignment.
    `fallen`, `closing`: what it does after the call; `falls`: it has begun to lose all. `rejoins`: it was told to join
    (again) while it was in a call, in the classic protocol. `awaits`: an answer that is on its way, before which
    it sends no heartbeat.
    `wakes`: those of its entries in the queue count that bear this number. `hung`: it polls no more, and leaves by
    itself at `too_late_ms`. `cut_off`: it polls, and its coordinator is out of reach. `leaves`: it closes.
    """

    settings: Join
    number: int
    times: MemberTimes = field(default_factory=MemberTimes)
    application: Application = field(init=False)
    client: ConsumerClient | None = None
    consumer: classic.Consumer | None = None
    alive: bool = True
    talks: bool = True
    misses: int = 0
    resumes: bool = False  # until its next answer
    steps: Steps | None = None
    doing: Call | None = None
    turns: Iterator[int] | None = None
    hung: bool = False
    cut_off: bool = False
    seated: bool = False  # when the call began that it is in
    too_late_ms: int | None = None
    stopped_ms: int = 0
    polled_ms: int = 0
    poll_started_ms: int = 0
    commits_next_ms: int = 0
    put_off_ms: int = 0
    since_ms: int = 0
    taking: TopicIdPartitionSet = NO_PARTITIONS
    giving: TopicIdPartitionSet = NO_PARTITIONS
    reconciling_ms: int | None = None
    fallen: classic.Error | None = None
    falls: bool = False
    rejoins: bool = False
    closing: bool = False
    awaits: HeartbeatResponse | None = None
    sends_again: bool = False
    wakes: int = 0
    next_send_ms: int = 0
    suspended: list[tuple[EntryKind, Any]] = field(default_factory=list)
    leaves: bool = False
    afterwards: list[Callable[[], None]] = field(default_factory=list)  # once it has closed

    @property
    def name(self) -> str:
        """Of the process."""
        return self.settings.member

    @property
    def member_id(self) -> str | None:
        """The id that it speaks under."""
        if self.client is not None:
            return self.client.member_id
        return None if self.consumer is None else self.consumer.member_id

    @property
    def generation(self) -> int | None:
        """Its member epoch, or generation; None: it is in none."""
        if self.client is not None:
            return self.client.epoch or None
        return None if self.consumer is None else self.consumer.generation

    @property
    def instance_id(self) -> str | None:
        """`group.instance.id`."""
        return self.settings.group_instance_id

    @property
    def is_out(self) -> bool:
        """Whether it knows that it is no member, until it has lost all."""
        return self.falls or self.fallen is not None

    @property
    def hears_news(self) -> bool:
        """Whether the answer on its way gives it other partitions, or will not arrive.

        Where it tells of another epoch or an error, the coordinator has the member in that epoch, or not at all.
        """
        if self.awaits is None or self.client is None:
            return False
        return self.misses == 1 or self.awaits.assigned not in (None, self.client.assigned)

    def lose_answer(self) -> None:
        """Expect no answer any more: the next heartbeat says everything again."""
        self.awaits = None
        if self.client is not None:
            self.client = lose_answer(self.client)

    @property
    def closes(self) -> bool:
        """Whether it has begun to close."""
        return self.leaves and not self.closing

    @property
    def in_poll(self) -> bool:
        """Whether a callback, which runs in a poll, has not returned yet."""
        return self.turns is not None

    @property
    def heartbeats_during_call(self) -> bool:
        """Whether a classic process heartbeats while it does something: in a call, as long as it is a member."""
        return self.doing is not None and self.doing.callback in HEARTBEATS_DURING

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
