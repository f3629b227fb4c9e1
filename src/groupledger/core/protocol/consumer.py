"""One consumer of a group as a pure state machine (KIP-429, "Proposed Changes", steps 1 and 3; KIP-792).

Each function takes the consumer as it is and an event, and gives the consumer as it is then, the calls it made, and the
subscription it sends if it joins (again). No clock, no network: the caller has both.

Worked example: a cooperative consumer owns t-0 and t-1 and is assigned t-0 and t-2. It calls onPartitionsRevoked(t-1),
onAssignment(t-0, t-2) and onPartitionsAssigned(t-2), and joins again, so that t-1 can be given away.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from groupledger.core.custom.custom_group import Protocol, TopicPartition
from groupledger.core.protocol.client_api import (
    NO_MEMORY,
    NOTHING,
    Call,
    Callback,
    Memory,
    PartitionSet,
    Subscription,
    call,
)
from groupledger.core.protocol.client_library import JAVAS, Habits
from groupledger.core.protocol.compatibility import ByteCode
from groupledger.core.protocol.events import RecordedSeat
from groupledger.core.protocol.topic_patterns import matching
from groupledger.core.rebalance.step import Form

PartitionCounts = Mapping[str, int]
"""Partition counts as somebody's metadata has them; a topic that is missing does not exist there."""


class Error(enum.StrEnum):
    """Answers of the coordinator after which a consumer owns nothing any more."""

    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"


@dataclass(frozen=True, slots=True)
class Consumer:
    """What it knows. `generation` is of the last JoinGroup that was answered, `memory` of the last assignment.

    `prepared`: it has called what it calls before JoinGroup, and is not assigned yet: a second JoinGroup calls nothing.
    """

    protocol: Protocol
    topics: tuple[str, ...]
    view: PartitionCounts
    byte_code: ByteCode = ByteCode.KIP_792
    form: Form = Form.KIP
    owned: PartitionSet = NOTHING
    member_id: str | None = None
    generation: int | None = None
    memory: Memory = NO_MEMORY
    leads: bool = False
    habits: Habits = JAVAS
    prepared: bool = False
    pattern: str | None = None  # a regular expression; `topics` are then those that match it in `view`

    @property
    def named(self) -> tuple[str, ...]:
        """Topics that it subscribes to by name."""
        return self.topics if self.pattern is None else ()

    @property
    def refreshes(self) -> bool:
        """Whether it fetches metadata before it joins, whatever it has learnt of topics."""
        return self.pattern is not None and self.habits.refreshes

    def subscribes(self, topic: str) -> bool:
        """Whether it subscribes to a topic, which it need not have heard of yet."""
        return topic in self.topics or (self.pattern is not None and bool(matching(self.pattern, (topic,))))


class Reaction(NamedTuple):
    """The consumer afterwards, what it called, and whether it has to `join`."""

    consumer: Consumer
    calls: tuple[Call, ...] = ()
    joins: bool = False


class Joining(NamedTuple):
    """The consumer while it waits for the answer to JoinGroup, what it called before, and what it sent."""

    consumer: Consumer
    calls: tuple[Call, ...]
    subscription: Subscription


def join(consumer: Consumer) -> Joining:
    """Give up what must be given up before joining, then send JoinGroup.

    For the first time, again after one of the functions below said so, or because the coordinator answered
    REBALANCE_IN_PROGRESS: then with everything that is owned (step 1.3).
    """
    consumer, calls = _give_up(consumer)
    return _send(replace(consumer, prepared=True), calls)


def look(consumer: Consumer, view: PartitionCounts) -> Consumer:
    """Know these topics. A client matches its pattern itself, and subscribes to what it finds."""
    if consumer.pattern is None:
        return replace(consumer, view=view)
    return replace(consumer, view=view, topics=matching(consumer.pattern, tuple(sorted(view))))


def change_subscription(consumer: Consumer, topics: Iterable[str], *, known: bool) -> Reaction:
    """Subscribe to other topics (step 1.1): `join` revokes what is no longer subscribed to and keeps the rest.

    `known`: there is metadata of all of them already. Else a consumer that `loses_unknown` (librdkafka's, cooperative)
    asks for metadata first, takes what it owns of other topics for lost, and then joins only if it leads.
    """
    before, consumer = consumer, replace(consumer, topics=tuple(topics), pattern=None)
    asks = not known and not set(before.topics).issuperset(consumer.topics)
    gone = _not_subscribed(consumer) if asks and _loses_unknown(consumer) else NOTHING
    return Reaction(*_drop(consumer, Callback.LOST, gone), not gone or consumer.leads)


def change_metadata(consumer: Consumer, view: PartitionCounts) -> Reaction:
    """Learn of other topics (step 1.2): what no longer exists is lost, and the leader joins again.

    So does a member whose pattern matches others than before.

    An eager consumer gives up everything when it joins again, so it loses nothing (KIP-429's eager timeline). In the
    form `as-kafka` Java's loses nothing here either: it claims such partitions until the leader leaves them out. A
    consumer of librdkafka joins whether it leads or not, but does not where it lost something and does not lead.
    """
    before, consumer = consumer, look(consumer, view)
    joins = (before.leads and before.view != view) or before.topics != consumer.topics
    if _loses_unknown(consumer):
        gone = _not_subscribed(consumer) | {each for each in consumer.owned if each[0] not in view}
    elif consumer.protocol is Protocol.EAGER or consumer.form is Form.AS_KAFKA:
        gone = NOTHING
    else:
        gone = frozenset(each for each in consumer.owned if not exists(each, view))
    if consumer.habits.all_join and not gone:
        joins |= any(before.view.get(topic) != view.get(topic) for topic in consumer.topics)
    return Reaction(*_drop(consumer, Callback.LOST, gone), joins)


def fall_out(consumer: Consumer, error: Error) -> Reaction:
    """Lose everything that it owned, since the group continued without it (step 1.4), and join with nothing."""
    consumer, calls = _drop(consumer, Callback.LOST, consumer.owned)
    member_id = None if error is Error.UNKNOWN_MEMBER_ID else consumer.member_id
    prepared = bool(calls) or consumer.prepared
    return Reaction(replace(consumer, generation=None, member_id=member_id, prepared=prepared), calls, True)


def receive_member_id(consumer: Consumer, member_id: str) -> Joining:
    """MEMBER_ID_REQUIRED (step 1.5): take the id and send JoinGroup again; nothing is owned yet."""
    if consumer.owned:
        raise AssertionError(f"a consumer without a member id owns {sorted(consumer.owned)}; expected nothing")
    return _send(replace(consumer, member_id=member_id), ())


def enter(consumer: Consumer, member_id: str, generation: int, leads: bool) -> Consumer:
    """JoinGroup was answered: a member of this generation, not assigned yet."""
    return replace(consumer, member_id=member_id, generation=generation, leads=leads)


def take_recorded(consumer: Consumer, seat: RecordedSeat, generation: int) -> tuple[Consumer, Subscription]:
    """Return a consumer as its generation was recorded, with its assignment, and the subscription it had sent."""
    sent = replace(
        consumer,
        owned=frozenset(seat.claimed) if consumer.protocol is Protocol.COOPERATIVE else NOTHING,
        generation=seat.claimed_generation,
        memory=Memory(seat.claimed, seat.claimed_generation),
    )
    entered = enter(consumer, seat.member_id, generation, seat.leads)
    owned = frozenset(seat.assigned)
    return replace(entered, owned=owned, memory=Memory(seat.assigned, generation)), _subscription(sent)


def receive_assignment(consumer: Consumer, given: Iterable[TopicPartition]) -> Reaction:
    """SyncGroup was answered (step 3): revoke what is not assigned any more, take what is new, join if it revoked.

    Partitions of a topic it does not subscribe to are no answer to what it sent: it joins again and calls nothing.
    """
    listed = tuple(given)
    assigned = frozenset(listed)
    if not all(consumer.subscribes(topic) for topic in {topic for topic, _ in assigned}):
        return Reaction(replace(consumer, prepared=False), (), True)
    added, revoked = assigned - consumer.owned, consumer.owned - assigned
    calls = [call(Callback.REVOKED, revoked)] if revoked else []
    calls += [call(Callback.ON_ASSIGNMENT, assigned)]
    if added or consumer.protocol is Protocol.EAGER or not consumer.habits.silent:
        calls += [call(Callback.ASSIGNED, added)]
    memory = Memory(listed, consumer.generation)
    return Reaction(replace(consumer, owned=assigned, memory=memory, prepared=False), tuple(calls), bool(revoked))


def close(consumer: Consumer) -> Reaction:
    """Leave on purpose: what is owned is revoked while the consumer is still a member."""
    return Reaction(*_drop(consumer, Callback.REVOKED, consumer.owned))


def exists(partition: TopicPartition, view: PartitionCounts) -> bool:
    """Whether the metadata has this partition."""
    return partition[1] < view.get(partition[0], 0)


def _give_up(consumer: Consumer) -> tuple[Consumer, tuple[Call, ...]]:
    """Eager: everything. Cooperative: only what left the subscription.

    KIP-429's eager timeline calls onPartitionsRevoked always, be the set empty; Kafka's clients do not when they join
    for the first time, after they lost everything, or once more since their JoinGroup or SyncGroup was not answered.
    """
    if consumer.protocol is Protocol.COOPERATIVE:
        return _drop(consumer, Callback.REVOKED, _not_subscribed(consumer))
    if not consumer.owned and (consumer.form is Form.KIP or _revokes_nothing(consumer)):
        return consumer, (call(Callback.REVOKED, ()),)
    return _drop(consumer, Callback.REVOKED, consumer.owned)


def _revokes_nothing(consumer: Consumer) -> bool:
    """Whether an eager client that owns nothing says so before JoinGroup."""
    return not consumer.prepared and (consumer.generation is not None or consumer.habits.revokes_at_first)


def _loses_unknown(consumer: Consumer) -> bool:
    return consumer.habits.loses_unknown and consumer.protocol is Protocol.COOPERATIVE


def _not_subscribed(consumer: Consumer) -> PartitionSet:
    """Return what it owns of topics that it does not subscribe to."""
    return frozenset(each for each in consumer.owned if each[0] not in consumer.topics)


def _drop(consumer: Consumer, callback: Callback, gone: PartitionSet) -> tuple[Consumer, tuple[Call, ...]]:
    """Return the consumer without these partitions, and the call that reports them; nothing to drop, no call."""
    if not gone:
        return consumer, ()
    return replace(consumer, owned=consumer.owned - gone), (call(callback, gone),)


def _send(consumer: Consumer, calls: tuple[Call, ...]) -> Joining:
    return Joining(consumer, (*calls, Call(Callback.USER_DATA, (), consumer.topics)), _subscription(consumer))


def _subscription(consumer: Consumer) -> Subscription:
    """Return the subscription that is sent, in the version of the consumer's byte code."""
    code = consumer.byte_code
    return Subscription(
        version=code,
        topics=consumer.topics,
        owned=tuple(sorted(consumer.owned)) if code >= ByteCode.KIP_429 else (),
        generation=_stated_generation(consumer) if code >= ByteCode.KIP_792 else None,
        memory=consumer.memory,
    )


def _stated_generation(consumer: Consumer) -> int | None:
    """Return the generation that dates the owned partitions (KIP-792). Kafka's client sends that of its last JoinGroup.

    They differ where an assignment was missed: then Kafka's client calls a stale claim fresh (decision 0031).
    """
    if consumer.form is Form.AS_KAFKA or consumer.generation is None:
        return consumer.generation
    return consumer.memory.generation
