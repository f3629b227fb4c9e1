"""What a classic member said (subscription) and was assigned (assignment), read once for the same bytes.

A topic that a leader wrote twice in one assignment is merged, as the broker's own readers must: librdkafka does that.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from groupledger.core.history.fold_rows import Assignment
from groupledger.core.history.topics import TopicHistory
from groupledger.core.wire.codec import Memo, require_partitions
from groupledger.core.wire.consumer_protocol import (
    ConsumerProtocolSubscription,
    TopicPartitions,
    decode_assignment,
    decode_subscription,
    merged,
)
from groupledger.core.wire.user_data import Claim, ClaimSource, claim


class ReadSubscription(NamedTuple):
    """A subscription: `rack` is None where the client sent none or an empty one."""

    version: int | None
    topics: tuple[str, ...]
    rack: str | None
    user_data: bytes | None
    claim: Claim

    @property
    def states_claim(self) -> bool:
        """Whether the member said what it owns at all."""
        return self.claim.source is not ClaimSource.NONE


class ReadAssignment(NamedTuple):
    """An assignment with each topic and each partition once; `repeated`: topics that stood twice, sorted."""

    partitions: TopicPartitions
    repeated: tuple[str, ...]


class PayloadDecoder:
    """Reads members' bytes for one fold, topic ids as of a record's time."""

    def __init__(self, topics: TopicHistory) -> None:
        self._topics = topics
        self._epoch: int | None = None
        self._ids = TopicIds(topics, 0)
        self._assignments: Memo[tuple[ReadAssignment, Assignment]] = Memo()

    def at(self, timestamp_ms: int) -> PayloadDecoder:
        """Resolve topic names as of then from now on."""
        epoch = self._topics.epoch(timestamp_ms)
        if epoch != self._epoch:
            self._epoch = epoch
            self._ids = TopicIds(self._topics, timestamp_ms)
            self._assignments = Memo()
        return self

    def assignment(self, data: bytes) -> tuple[ReadAssignment, Assignment]:
        """Return the assignment in these bytes, and the same with topic ids; `DecodeFault` if they are none."""
        known = self._assignments.get(data)
        if known is None:
            assignment = read_assignment(data)
            known = self._assignments.put(data, (assignment, self.with_ids(assignment.partitions)))
        return known

    def with_ids(self, partitions: TopicPartitions) -> Assignment:
        """Topic names with the ids of that time."""
        ids = self._ids
        return tuple([(ids[topic], topic, numbers) for topic, numbers in partitions])


class TopicIds(dict[str, str | None]):
    """Topic name -> topic id at one time, looked up once."""

    def __init__(self, topics: TopicHistory, timestamp_ms: int) -> None:
        super().__init__()
        self._topics = topics
        self._timestamp_ms = timestamp_ms

    def __missing__(self, topic: str) -> str | None:
        topic_id = self[topic] = self._topics.id_as_of(topic, self._timestamp_ms)
        return topic_id


def read_subscription(data: bytes, assignor: str | None) -> ReadSubscription:
    """Read a subscription's bytes under the group's protocol; `DecodeFault` if they are none."""
    subscription: ConsumerProtocolSubscription = decode_subscription(data)
    said = claim(subscription, assignor)
    return ReadSubscription(
        subscription.version, subscription.topics, subscription.rack or None, subscription.user_data, said
    )


def read_assignment(data: bytes) -> ReadAssignment:
    """Read an assignment's bytes; the broker writes no bytes for a member that the leader left out."""
    partitions = decode_assignment(data).partitions
    require_partitions(partitions)
    if len(dict(partitions)) == len(partitions):
        return ReadAssignment(tuple([(topic, _once(numbers)) for topic, numbers in partitions]), ())
    counts = Counter(topic for topic, _ in partitions)
    once = tuple((topic, _once(numbers)) for topic, numbers in merged(partitions))
    return ReadAssignment(once, tuple(sorted(topic for topic, count in counts.items() if count > 1)))


def _once(partitions: tuple[int, ...]) -> tuple[int, ...]:
    """Return the partitions without repeats, in their order."""
    return partitions if len(set(partitions)) == len(partitions) else tuple(dict.fromkeys(partitions))
