"""One consumer of a group as a pure state machine (KIP-429, "Proposed Changes", steps 1 and 3; KIP-792).

Each function takes the consumer as it is and an event, and gives the consumer as it is then, the calls it made, and the
subscription it sends if it joins (again). No clock, no network: the caller has both.

Worked example: a cooperative consumer owns t-0 and t-1 and is assigned t-0 and t-2. It calls onPartitionsRevoked(t-1),
onAssignment(t-0, t-2) and onPartitionsAssigned(t-2), and joins again, so that t-1 can be given away.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from groupledger.core.custom.custom_group import Protocol, TopicPartition
from groupledger.core.protocol.compatibility import JAVAS, ByteCode, Habits
from groupledger.core.protocol.events import RecordedSeat
from groupledger.core.protocol.topic_patterns import matching
from groupledger.core.rebalance.step import Form

# The calls a rebalance makes into an application and its assignor, under Kafka's own names.

PartitionSet = frozenset[TopicPartition]
NOTHING: PartitionSet = frozenset()


class Callback(enum.StrEnum):
    """What is called, in the order in which one rebalance calls it (KIP-429, "Semantics")."""

    LOST = "onPartitionsLost"
    REVOKED = "onPartitionsRevoked"
    USER_DATA = "subscriptionUserData"
    ASSIGN = "assign"
    ON_ASSIGNMENT = "onAssignment"
    ASSIGNED = "onPartitionsAssigned"


LISTENER = frozenset({Callback.LOST, Callback.REVOKED, Callback.ASSIGNED})
"""Calls of the rebalance listener; the others are the assignor's."""


class Call(NamedTuple):
    """One call with its argument: `topics` of USER_DATA and ASSIGN, `partitions` of all but USER_DATA.

    ASSIGN gets what all members say they own, ON_ASSIGNMENT the member's whole assignment.
    """

    callback: Callback
    partitions: tuple[TopicPartition, ...] = ()
    topics: tuple[str, ...] = ()


def call(callback: Callback, partitions: Iterable[TopicPartition]) -> Call:
    """Return a call about partitions, by topic and number."""
    return Call(callback, tuple(sorted(partitions)))


# The times of a group's clients and of their coordinator, in milliseconds: Kafka's settings under their own names.
#
# Worked example: `Times(of={"slow": MemberTimes(processing_ms=20_000)})` is a group with Kafka's defaults in which one
# member works for twenty seconds on what each of its polls gives it.

AUTO_COMMIT_MS = 5_000
"""`auto.commit.interval.ms`, where nobody says anything."""


@dataclass(frozen=True, slots=True)
class MemberTimes:
    """Of one member. `rebalance_timeout_ms` is `max.poll.interval.ms`, which a client also sends as that.

    `round_trip_ms`: from a request to its answer, half of it each way. `processing_ms`: from one poll to the next,
    while the member owns something.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    rebalance_timeout_ms: int = 300_000
    round_trip_ms: int = 0
    processing_ms: int = 0

    @property
    def to_broker_ms(self) -> int:
        """How long a request is on its way."""
        return self.round_trip_ms // 2

    @property
    def from_broker_ms(self) -> int:
        """How long an answer is on its way."""
        return self.round_trip_ms - self.to_broker_ms

    def last_heartbeat_ms(self, since_ms: int, now_ms: int) -> int:
        """When the last heartbeat that was sent until now reaches the coordinator; the first is sent at `since_ms`."""
        return now_ms - (now_ms - since_ms) % self.heartbeat_interval_ms + self.to_broker_ms


@dataclass(frozen=True, slots=True)
class Times:
    """Of a group: `of` are members, by name of the process, that differ from `each`.

    `records_per_second` arrive in each partition (None: nobody counts records). `auto_commit_interval_ms`: 0 is
    `enable.auto.commit=false`; None is Kafka's default, or false where a listener commits.
    """

    each: MemberTimes = field(default_factory=MemberTimes)
    of: Mapping[str, MemberTimes] = field(default_factory=dict)
    initial_rebalance_delay_ms: int = 3_000
    records_per_second: int | None = None
    auto_commit_interval_ms: int | None = None

    def member(self, name: str) -> MemberTimes:
        """Of the process of this name."""
        return self.of.get(name, self.each)


def member_times(times: Times | None, name: str, rebalance_timeout_ms: int) -> MemberTimes:
    """Return the times of a process; without times of a group, Kafka's defaults with the timeout that it states."""
    return MemberTimes(rebalance_timeout_ms=rebalance_timeout_ms) if times is None else times.member(name)


# What a member sends with JoinGroup: the consumer protocol's subscription in its three versions, and its user data.


class Memory(NamedTuple):
    """The last assignment and its generation, as the sticky assignors' user data records it (KIP-54)."""

    partitions: tuple[TopicPartition, ...] = ()
    generation: int | None = None


NO_MEMORY = Memory()


@dataclass(frozen=True, slots=True)
class Subscription:
    """Version 0 has topics and user data; 1 adds `owned` (KIP-429), 2 the `generation` of it (KIP-792)."""

    version: ByteCode
    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    generation: int | None = None
    memory: Memory = NO_MEMORY


@dataclass(frozen=True, slots=True)
class Seat:
    """A member as the leader sees it."""

    member_id: str
    subscription: Subscription
    group_instance_id: str | None = None


# The consumer.

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
    as_kafka = not consumer.prepared and (consumer.generation is not None or consumer.habits.revokes_at_first)
    if not consumer.owned and (consumer.form is Form.KIP or as_kafka):
        return consumer, (call(Callback.REVOKED, ()),)
    return _drop(consumer, Callback.REVOKED, consumer.owned)


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
