"""The members of a group that its coordinator assigns, as their records leave them: the last value of each key."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from groupledger.core.history.fold_rows import Assignment, GroupType, Tasks, TopicNames
from groupledger.core.log.listings import TopicHistory
from groupledger.core.wire.codec import Memo, require_partitions
from groupledger.core.wire.consumer_protocol import (
    Claim,
    ClaimSource,
    ConsumerProtocolSubscription,
    TopicPartitions,
    claim,
    decode_assignment,
    decode_subscription,
    merged,
)
from groupledger.core.wire.records import (
    CurrentMemberAssignment,
    CurrentTaskIds,
    IdPartitions,
    MemberMetadata,
    ShareCurrentAssignment,
    ShareMemberMetadata,
    StreamsCurrentAssignment,
    StreamsMemberMetadata,
    StreamsTargetMember,
    StreamsTopology,
    Subtopology,
    TargetAssignmentMember,
    TaskIds,
)

LEFT_STATIC = -2
"""Member epoch of a static member that left and may come back (KIP-848)."""

MEMBER_STATES = {
    GroupType.CONSUMER: {0: "STABLE", 1: "UNREVOKED_PARTITIONS", 2: "UNRELEASED_PARTITIONS"},
    GroupType.SHARE: {0: "STABLE"},
    GroupType.STREAMS: {1: "STABLE", 2: "UNREVOKED_TASKS", 3: "UNRELEASED_TASKS"},
}
"""Kafka's names of a member's states, by number; Streams groups count from 1."""

MemberValue = MemberMetadata | ShareMemberMetadata | StreamsMemberMetadata
TargetValue = TargetAssignmentMember | StreamsTargetMember
CurrentValue = CurrentMemberAssignment | ShareCurrentAssignment | StreamsCurrentAssignment


class Metadata(NamedTuple):
    """What a member subscribes to. `said`: the first subscription of a classic member, which it joined with."""

    raw: bytes
    value: MemberMetadata
    said: ReadSubscription | None


class Target(NamedTuple):
    """What a member is to get: partitions, or tasks of a Streams group."""

    raw: bytes
    partitions: Assignment
    tasks: Tasks = ()


class Current(NamedTuple):
    """What a member holds: `recorded` for good, `pending` until it has given them up. Of a Streams group, `tasks`."""

    raw: bytes
    epoch: int
    previous_epoch: int
    state: str
    recorded: Assignment
    pending: Assignment
    tasks: Tasks = ()


class Expression(NamedTuple):
    """The topics that a regular expression stands for."""

    raw: bytes
    topics: TopicNames


@dataclass(slots=True)
class Kip848Group:
    """`cut`: records are known to be missing, until all members are seen to have reached one epoch. `open`: targets of
    an epoch were seen, and its end not yet. `leaving`: members of whose tombstones the first was seen. `unsettled`:
    members that do not hold exactly their target. `topology`: of a Streams group, what its tasks read.
    `converting`: it was a classic group until now, whose members hold what they held, and has no target of its own yet.
    `first_epoch`: while there is no target epoch, the first group epoch that waits for one. `counts_partitions`: its
    coordinator is of before Kafka 4.1, which writes the partitions of the group's topics beside its epochs."""

    group_type: GroupType = GroupType.CONSUMER
    group_epoch: int | None = None
    target_epoch: int | None = None
    cut: bool = False
    open: bool = False
    metadata: dict[str, Metadata] = field(default_factory=dict)
    targets: dict[str, Target] = field(default_factory=dict)
    current: dict[str, Current] = field(default_factory=dict)
    expressions: dict[str, Expression] = field(default_factory=dict)
    topology: Topology | None = None
    first_epoch: int | None = None
    counts_partitions: bool = False
    converting: bool = False
    leaving: set[str] = field(default_factory=set)
    unsettled: set[str] = field(default_factory=set)

    def present(self) -> list[str]:
        """Member ids in the order of joining; one whose assignment was deleted is on its way out."""
        return [member for member in self.metadata if member not in self.leaving]

    @property
    def untargeted(self) -> int | None:
        """The first group epoch that no target was written for."""
        if self.target_epoch is None:
            return self.first_epoch
        if self.group_epoch is None or self.group_epoch <= self.target_epoch:
            return None
        return self.target_epoch + 1

    def reach_target(self, epoch: int | None) -> None:
        """Note a complete target; None: its record was deleted, and the epochs behind it wait on."""
        self.first_epoch = None if epoch is not None else self.untargeted
        self.target_epoch = epoch

    @property
    def is_settled(self) -> bool:
        """Whether the target is that of the group's epoch, and every member holds exactly its own."""
        return not (self.leaving or self.unsettled) and self.group_epoch == self.target_epoch

    def judge(self, member_id: str) -> None:
        """Note whether the member holds exactly its target."""
        if is_reached(self.targets.get(member_id), self.current.get(member_id)):
            self.unsettled.discard(member_id)
        else:
            self.unsettled.add(member_id)

    def forget(self, member_id: str) -> None:
        """Forget a member that is gone: nothing of it waits any more."""
        self.leaving.discard(member_id)
        self.unsettled.discard(member_id)

    def mend(self) -> None:
        """End the cut if every member holds its target at one epoch: nothing that was missing matters any more."""
        if not self.cut or self.open or not self.is_settled or self.group_epoch is None:
            return
        reached = (self.group_epoch, LEFT_STATIC)
        at_epoch = {member for member, current in self.current.items() if current.epoch in reached}
        if at_epoch == self.current.keys() == self.metadata.keys() >= self.targets.keys():
            self.cut = False

    def topics_of(self, member_id: str) -> TopicNames:
        """Return the subscription: names as given, then what its regular expression stood for at that time.

        Of a member of a Streams group, what the topology names.
        """
        if self.group_type is GroupType.STREAMS:
            return () if self.topology is None else self.topology.topics
        value = self.metadata[member_id].value
        expression = self.expressions.get(value.subscribed_regex or "")
        if expression is None:
            return value.subscribed_topics
        return tuple(dict.fromkeys((*value.subscribed_topics, *expression.topics)))


def is_reached(target: Target | None, current: Current | None) -> bool:
    """Whether a member holds exactly its target."""
    if current is None or current.pending:
        return False
    wanted = Target(b"", ()) if target is None else target
    if by_topic(current.recorded) != by_topic(wanted.partitions):
        return False
    held = task_set(current.tasks) if all(state == ASSIGNED for _, state, *_ in current.tasks) else None
    return held == task_set(wanted.tasks)


def read_metadata(raw: bytes, value: MemberValue) -> Metadata:
    """Read a member's record; `DecodeFault` where a classic member's subscription does not decode."""
    known = as_consumer(value)
    classic = known.classic_member_metadata
    if classic is None or not classic.supported_protocols:
        return Metadata(raw, known, None)
    preferred = classic.supported_protocols[0]
    return Metadata(raw, known, read_subscription(preferred.metadata, preferred.name))


def as_consumer(value: MemberValue) -> MemberMetadata:
    """Return a member of any type in the form of a consumer's."""
    if isinstance(value, ShareMemberMetadata):
        return MemberMetadata(
            None, value.rack_id, value.client_id, value.client_host, value.subscribed_topics, None, None, None
        )
    if isinstance(value, StreamsMemberMetadata):
        who = value.instance_id, value.rack_id, value.client_id, value.client_host
        return MemberMetadata(*who, (), None, value.rebalance_timeout, None)
    return value


def read_target(raw: bytes, value: TargetValue, topics: TopicHistory) -> Target:
    """Read a member's target, with topic names where known; `DecodeFault` for a negative partition."""
    if isinstance(value, StreamsTargetMember):
        return Target(raw, (), required(_tasks(TARGET, value.active, value.standby, value.warmup)))
    require_partitions(value.topic_partitions)
    return Target(raw, with_names(value.topic_partitions, topics))


def read_current(raw: bytes, value: CurrentValue, topics: TopicHistory) -> Current:
    """Read what a member holds, with topic names where known; `DecodeFault` for a negative partition."""
    match value:
        case StreamsCurrentAssignment():
            state = state_name(GroupType.STREAMS, value.state)
            held = _tasks(ASSIGNED, value.active, value.standby, value.warmup)
            gives_up = _tasks(PENDING, value.active_pending, value.standby_pending, value.warmup_pending)
            return Current(raw, value.epoch, value.previous_epoch, state, (), (), required((*held, *gives_up)))
        case ShareCurrentAssignment():
            require_partitions(value.assigned)
            state = state_name(GroupType.SHARE, value.state)
            return Current(raw, value.epoch, value.previous_epoch, state, with_names(value.assigned, topics), ())
        case CurrentMemberAssignment():
            require_partitions((*value.assigned, *value.pending_revocation))
            state = state_name(GroupType.CONSUMER, value.state)
            recorded, pending = with_names(value.assigned, topics), with_names(value.pending_revocation, topics)
            return Current(raw, value.epoch, value.previous_epoch, state, recorded, pending)


def required(tasks: Tasks) -> Tasks:
    """Return the tasks; `DecodeFault` where one has a negative number."""
    require_partitions((subtopology, numbers) for _, _, subtopology, numbers in tasks)
    return tasks


def state_name(group_type: GroupType, number: int) -> str:
    """Kafka's name of a member's state; of one that is not known here, its number."""
    return MEMBER_STATES[group_type].get(number, f"UNKNOWN ({number})")


def with_names(partitions: IdPartitions, topics: TopicHistory) -> Assignment:
    """Partitions of topic ids, with the topics' names where known."""
    return tuple((topic_id, topics.name_of(topic_id), numbers) for topic_id, numbers in partitions)


def by_topic(assignment: Assignment) -> dict[str | None, set[int]]:
    """Partitions by topic id, without their order."""
    return {topic_id: set(partitions) for topic_id, _, partitions in assignment if partitions}


# Tasks of a Streams group, and the topic partitions that its active tasks read (KIP-1071).
#
# Task p of a subtopology reads partition p of each of its source topics that has a partition p. The topology names the
# source topics but not their partition counts, so a topic that no listing counts is taken only where p must be there:
# it is the subtopology's one source, or all its sources have as many partitions as one another.

ACTIVE, STANDBY, WARMUP = "active", "standby", "warmup"
ASSIGNED, PENDING, TARGET = "assigned", "pending-revocation", "target"


class Topology(NamedTuple):
    """What a Streams group reads; `sources`: the topics of each subtopology, those that the broker makes last."""

    raw: bytes
    value: StreamsTopology
    sources: dict[str, TopicNames]

    @property
    def topics(self) -> TopicNames:
        """All topics that it reads and names."""
        return tuple(dict.fromkeys(topic for topics in self.sources.values() for topic in topics))


def read_topology(raw: bytes, value: StreamsTopology) -> Topology:
    """Read a topology record."""
    return Topology(raw, value, {each.subtopology_id: tuple(_counts(each)) for each in value.subtopologies})


def task_set(tasks: Tasks) -> set[tuple[str, str, int]]:
    """(role, subtopology, number) of each task, without their order or state."""
    return {(role, subtopology, number) for role, _, subtopology, numbers in tasks for number in numbers}


def partitions_of(
    tasks: Tasks, state: str, topology: Topology | None, topics: TopicHistory, timestamp_ms: int
) -> Assignment:
    """Return the topic partitions that active tasks of this state read, as far as known; see the module."""
    if topology is None:
        return ()
    read: dict[str, list[int]] = {}
    for subtopology in topology.value.subtopologies:
        numbers = [
            number
            for role, own, name, listed in tasks
            if (role, own, name) == (ACTIVE, state, subtopology.subtopology_id)
            for number in listed
        ]
        alike = has_equal_sources(subtopology)
        for topic, enforced in _counts(subtopology).items():
            count = _count(topic, enforced, topics, timestamp_ms)
            there = numbers if count is None and alike else [each for each in numbers if each < (count or 0)]
            read.setdefault(topic, []).extend(there)
    return tuple(
        (topics.id_as_of(topic, timestamp_ms), topic, tuple(dict.fromkeys(numbers)))
        for topic, numbers in read.items()
        if numbers
    )


def has_equal_sources(subtopology: Subtopology) -> bool:
    """Whether each source topic has a partition for each task, whatever the counts are."""
    regexes = len(subtopology.source_topic_regex)
    if len(_counts(subtopology)) == 1 and not regexes:
        return True
    everything = len(subtopology.source_topics), regexes, len(subtopology.repartition_source_topics)
    return any(
        (len(set(each.source_topics)), len(set(each.source_topic_regex)), len(set(each.repartition_source_topics)))
        == everything
        for each in subtopology.copartition_groups
    )


def unresolved(topology: Topology, topics: TopicHistory, timestamp_ms: int) -> Iterator[str]:
    """Yield, as text, what subtopologies read that neither the log nor the listings of that time name."""
    for subtopology in topology.value.subtopologies:
        if subtopology.source_topic_regex:
            yield f"topics that match {', '.join(map(repr, subtopology.source_topic_regex))}"
        if not has_equal_sources(subtopology):
            for topic, enforced in _counts(subtopology).items():
                if _count(topic, enforced, topics, timestamp_ms) is None:
                    yield f"the partitions of {topic}"


def _tasks(state: str, *by_role: Iterable[TaskIds | CurrentTaskIds]) -> Tasks:
    """Return tasks of one state: active, standby and warm-up ones."""
    roles = zip((ACTIVE, STANDBY, WARMUP), by_role, strict=True)
    return tuple((role, state, each.subtopology_id, each.partitions) for role, tasks in roles for each in tasks)


def _counts(subtopology: Subtopology) -> dict[str, int]:
    """Source topic -> the partition count that the topology enforces; 0: it enforces none."""
    internal = {each.name: each.partitions for each in subtopology.repartition_source_topics}
    return {**dict.fromkeys(subtopology.source_topics, 0), **internal}


def _count(topic: str, enforced: int, topics: TopicHistory, timestamp_ms: int) -> int | None:
    listed = topics.as_of(topic, timestamp_ms)
    return listed[1] if listed is not None else enforced or None


# What a classic member said (subscription) and was assigned (assignment), read once for the same bytes.
#
# A topic that a leader wrote twice in one assignment is merged, as the broker's own readers must: librdkafka does
# that.


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
        self._assignments = Memo(self._ids.assignment)

    def at(self, timestamp_ms: int) -> PayloadDecoder:
        """Resolve topic names as of then from now on."""
        epoch = self._topics.epoch(timestamp_ms)
        if epoch != self._epoch:
            self._epoch = epoch
            self._ids = TopicIds(self._topics, timestamp_ms)
            self._assignments = Memo(self._ids.assignment)
        return self

    def assignment(self, data: bytes) -> tuple[ReadAssignment, Assignment]:
        """Return the assignment in these bytes, and the same with topic ids; `DecodeFault` if they are none."""
        return self._assignments[data]

    def with_ids(self, partitions: TopicPartitions) -> Assignment:
        """Topic names with the ids of that time."""
        return self._ids.with_ids(partitions)


class TopicIds(dict[str, str | None]):
    """Topic name -> topic id at one time, looked up once."""

    def __init__(self, topics: TopicHistory, timestamp_ms: int) -> None:
        super().__init__()
        self._topics = topics
        self._timestamp_ms = timestamp_ms

    def __missing__(self, topic: str) -> str | None:
        topic_id = self[topic] = self._topics.id_as_of(topic, self._timestamp_ms)
        return topic_id

    def with_ids(self, partitions: TopicPartitions) -> Assignment:
        """Return the partitions with the ids of their topics."""
        return tuple([(self[topic], topic, numbers) for topic, numbers in partitions])

    def assignment(self, data: bytes) -> tuple[ReadAssignment, Assignment]:
        """Read an assignment's bytes."""
        assignment = read_assignment(data)
        return assignment, self.with_ids(assignment.partitions)


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
