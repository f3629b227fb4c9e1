"""A consumer of the consumer protocol as Kafka's Java client 4.4 is one: what it sends, what it is told, what it owns.

Pure, like `core.protocol.consumer` for the classic protocol. It reconciles in one go: onPartitionsRevoked with all that
goes, then onPartitionsAssigned with all that comes, be it nothing; then it tells the coordinator what it owns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from groupledger.core.protocol.consumer_group.heartbeat import HeartbeatRequest, HeartbeatResponse
from groupledger.core.protocol.consumer_group.topic_table import NO_PARTITIONS, TopicIdPartitionSet
from groupledger.core.protocol.events import GroupProtocol

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
    """The next heartbeat: all when it joins or after an error, else what changed."""
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


def lose_answer(client: ConsumerClient) -> ConsumerClient:
    """No answer came: say everything again."""
    return replace(client, full=True)


def subscribe(client: ConsumerClient, topics: Iterable[str]) -> ConsumerClient:
    """Subscribe to other topics, by name; the coordinator hears of it with the next heartbeat."""
    return replace(client, topics=tuple(topics), regex=None)


def fall_out(client: ConsumerClient) -> ConsumerClient:
    """It lost everything; it joins again under the same member id (KIP-1082)."""
    return replace(client, epoch=0, owned=None, assigned=None, stated=None, said=None, full=True)
