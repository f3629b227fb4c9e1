"""A process of a consumer group: its consumer, of either protocol, and what it is doing right now."""

from __future__ import annotations

import enum
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groupledger.core.custom.group import TopicPartition
from groupledger.core.protocol import consumer as classic
from groupledger.core.protocol.callbacks import Call
from groupledger.core.protocol.consumer_group.client import Client
from groupledger.core.protocol.consumer_group.heartbeat import Answer, Request
from groupledger.core.protocol.events import Join


class Due(enum.IntEnum):
    """What a process does at a time: it sends its next heartbeat, has an answer, returns from a call, goes on."""

    SEND = 0
    ANSWER = 1
    RETURN = 2
    GO_ON = 3


class Backoff(NamedTuple):
    """So long a process waits before it goes on."""

    ms: int


Steps = Generator[Call | Request | Backoff, Answer | None, None]
"""What a process does one after the other; a request is answered into it."""


@dataclass(slots=True)
class Process:
    """One process. `alive`: it has not ended; `talks`: nor does it stand still.

    It has a `client` of the consumer protocol or a `consumer` of the classic one. `steps` are under way, the call that
    it is in began at `since_ms`. `fallen`, `closing`: what it does once that call has returned. `waits` for an answer.
    `wakes`: those of its entries in the queue count that bear this number.
    """

    settings: Join
    number: int
    client: Client | None = None
    consumer: classic.Consumer | None = None
    alive: bool = True
    talks: bool = True
    misses: bool = False  # the next answer
    resumes: bool = False  # until its next answer
    steps: Steps | None = None
    doing: Call | None = None
    since_ms: int = 0
    fallen: classic.Error | None = None
    closing: bool = False
    waits: bool = False
    sends_again: bool = False
    wakes: int = 0
    next_send_ms: int = 0
    suspended: list[tuple[Due, Any]] = field(default_factory=list)

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
    def subscription(self) -> tuple[str, ...]:
        """The topics it names."""
        if self.client is not None:
            return self.client.topics
        return () if self.consumer is None else self.consumer.topics


class HeartbeatRow(NamedTuple):
    """A heartbeat, or a JoinGroup of a classic member, that said or was answered something new.

    `sent_epoch` and `owned` are what it said (`owned` None: nothing of it), the rest is how its coordinator left it.
    """

    at_ms: int
    member: str
    member_id: str
    sent_epoch: int
    owned: tuple[TopicPartition, ...] | None
    error: str | None
    epoch: int
    state: str | None
    assigned: tuple[TopicPartition, ...]
    pending: tuple[TopicPartition, ...]  # revocation
    group_epoch: int
    assignment_epoch: int


class TargetRow(NamedTuple):
    """A target assignment: when, at which group epoch, by which assignor, and what it gives to each process."""

    at_ms: int
    epoch: int
    assignor: str
    targets: tuple[tuple[str, tuple[TopicPartition, ...]], ...]
