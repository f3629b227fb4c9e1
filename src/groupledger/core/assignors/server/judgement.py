"""Compare a target that a coordinator wrote with its assignor's answer: the verdict of a KIP-848 group.

The log holds the group a target was computed from, but not the topics of that moment, unless Kafka 4.0 or earlier wrote
it: they are given, in several views. If no view fits, the assignors of Kafka 4.0.0 are asked, unless fields of the
records show a later release. `judge_snapshots` goes from a group's records to the verdict of each of its snapshots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from groupledger.core.arrays.batch import NONE, IntArray
from groupledger.core.arrays.java_orders import LEAST_CAPACITY, TREE, spread
from groupledger.core.arrays.kernels import kernel, run
from groupledger.core.assignors.server.iteration_orders import ServerGroupView, group_at
from groupledger.core.assignors.server.orders import JOINED, LEFT, REWRITTEN, after_changes
from groupledger.core.assignors.server.server_batch import ASSIGNORS, EARLIER
from groupledger.core.assignors.server.server_batch import written as records_of
from groupledger.core.assignors.server.server_group import (
    ServerAssignment,
    ServerBatch,
    ServerGroup,
    ServerMember,
    ServerStatus,
    Topic,
    TopicId,
    TopicIdNumbers,
    encode,
    is_homogeneous,
)
from groupledger.core.faults import Fault
from groupledger.core.log.listings import last_change
from groupledger.core.moments import MICROS_A_MILLI
from groupledger.core.rebalance.registry import DEFAULT_ASSIGNOR, preferred
from groupledger.core.rebalance.verdict import TRIED, UNLESS_NEIGHBOURS, Verdict
from groupledger.core.wire.codec import uuid_bytes
from groupledger.core.wire.offsets_log import LogRecord, RecordKind
from groupledger.core.wire.records import (
    ConsumerGroupMetadata,
    CurrentMemberAssignment,
    MemberMetadata,
    RegularExpression,
    TargetAssignmentMember,
    TargetAssignmentMetadata,
)

TargetRecords = Mapping[str, TopicIdNumbers]
SETS_ALONE = (Verdict.EQUAL_SETS, UNLESS_NEIGHBOURS[Verdict.EQUAL_SETS])
ServerAssignor = Callable[[ServerBatch], ServerAssignment]


class IdentifiedChange(NamedTuple):
    """A topic from `at` (microseconds) on; without partitions it is deleted, without an id it cannot be recomputed."""

    at: int
    topic: str
    topic_id: TopicId | None
    partitions: int | None


class TopicView(NamedTuple):
    """Topics as of some moment, and what it means if the answer computed with them equals the record."""

    equal: Verdict
    topics: Mapping[str, Topic]
    moment: int | None = None  # microseconds


class Judgement(NamedTuple):
    """A verdict; `certainty` is the promise made for the answer, None: there was none."""

    verdict: Verdict
    certainty: TargetCertainty | None
    moment: int | None = None  # of the view whose answer equals the record
    topics: Mapping[str, Topic] | None = None  # of that view, if it has no moment: no listing says so


def judge_snapshots(
    records: Iterable[Logged],
    changes: Iterable[IdentifiedChange],
    offsets: Sequence[int],
    default: str,
    carried_over: Mapping[int, bool] = MappingProxyType({}),
) -> list[Judgement]:
    """Return the judgement of each snapshot of a group, named by its offset: that of the last target complete there.

    `records` of the group ascend; `changes` are those of its topics; `default` is the assignor if members request none.
    `carried_over`: by offset of a snapshot that a conversion made, whether its target is the classic assignment.
    """
    targets = list(follow(records, default))
    # At one moment a deletion precedes a creation: a topic recreated within one listing.
    known = sorted(changes, key=lambda change: (change.at, change.partitions is not None))

    @cache
    def judgement(at: int) -> Judgement:
        if at in taken:  # a coordinator computes nothing when it converts a group
            return Judgement(Verdict.CARRIED_OVER, None) if taken[at] else unknown
        return judge(targets[at], views(known, targets[at]))

    unknown = Judgement(Verdict.CANNOT_TELL_GROUP_BEFORE, None)
    completed = [target.offset for target in targets]
    last = [bisect_right(completed, offset) - 1 for offset in offsets]
    taken = {at: carried_over[offset] for at, offset in zip(last, offsets, strict=True) if offset in carried_over}
    return [unknown if at < 0 else judgement(at) for at in last]


def views(changes: Sequence[IdentifiedChange], target: WrittenTarget) -> list[TopicView]:
    """Return the target's topics at completion, before their last change, before the one before, after the next.

    Before all of these come the topics that the coordinator wrote itself, after them those that the target shows.
    """
    named = {topic for member in target.members for topic in member.topics}
    by_coordinator = [TopicView(Verdict.EXACT, target.listed)] if target.listed is not None else []
    if not named:
        return by_coordinator or [TopicView(Verdict.EXACT, {})]
    own = [change for change in changes if change.topic in named]
    moments = sorted({change.at for change in own})
    now = last_change(moments, target.timestamp) + 1
    meant = ((now, Verdict.EXACT), *zip((now - 1, now - 2, now + 1), TRIED, strict=True))
    known = [(equal, moments[at - 1]) for at, equal in meant if 0 < at <= len(moments)]
    listed = [TopicView(equal, _topics(own, moment), moment) for equal, moment in known]
    as_listed = [view.moment for view in listed if view.topics == target.listed]
    shown = _recorded(own, target) if target.listed is None else None
    last = [] if shown is None else [TopicView(Verdict.EXACT_RECORDED_TOPICS, shown)]
    return [view._replace(moment=next(iter(as_listed), None)) for view in by_coordinator] + listed + last


def _recorded(changes: Sequence[IdentifiedChange], target: WrittenTarget) -> dict[str, Topic] | None:
    """Return the topics with as many partitions as the target has of each, None if listings contradict it.

    Kafka's assignors leave no partition out, and a topic only grows: its count is that of the listing before, or more.
    What the target has, the topic of that id had, even if a listing of about that time has less. A topic of which the
    target has nothing is as listed then, unless the next listing lacks it, or has another one of its name.
    """
    counts: dict[TopicId, int] = {}
    for lists in target.after.values():
        for topic_id, numbers in lists:
            counts[topic_id] = max(counts.get(topic_id, 0), *(number + 1 for number in numbers))
    now = target.timestamp * MICROS_A_MILLI
    following = {change.topic: change.topic_id for change in reversed(changes) if change.at > now}
    found = {
        name: topic
        for name, topic in _topics(changes, now).items()
        if following.get(name, topic.topic_id) == topic.topic_id
    }
    for topic_id, count in counts.items():
        own = [change for change in changes if change.topic_id == topic_id and change.partitions is not None]
        before = [change.partitions or 0 for change in own if change.at <= now][-2:]
        if not own or count < min(before, default=1):
            return None
        found[own[0].topic] = Topic(topic_id, count)
    return found


def _topics(changes: Sequence[IdentifiedChange], at: int) -> dict[str, Topic]:
    """Return the topics that exist at a moment."""
    last = {change.topic: change for change in changes if change.at <= at}
    return {
        topic: Topic(change.topic_id, change.partitions)
        for topic, change in last.items()
        if change.topic_id is not None and change.partitions is not None
    }


def judge(target: WrittenTarget, views: Sequence[TopicView]) -> Judgement:
    """Return the first view whose answer equals the record, else the verdict with the first view's topics.

    Equality includes the order of a target's records, since that order is the next target's input. If an order that the
    log does not show may have decided, an equal answer says so, and a different one proves nothing.
    """
    if not target.before_known:
        return Judgement(Verdict.CANNOT_TELL_GROUP_BEFORE, None)
    if target.assignor not in ASSIGNORS:
        return Judgement(Verdict.CANNOT_TELL_ASSIGNOR, None)
    recorded = {topic_id for lists in target.after.values() for topic_id, _ in lists}
    known = [view for view in views if recorded <= {topic.topic_id for topic in view.topics.values()}]
    if not known:
        return Judgement(_unless_unresolved(target, Verdict.CANNOT_TELL_NO_COUNTS), None)
    found = _equal(target, known, ASSIGNORS[target.assignor])
    if (found is None or found.verdict in SETS_ALONE) and target.assignor in EARLIER and not target.since_4_1:
        earlier = _equal(target, known, EARLIER[target.assignor])
        if earlier is not None and (found is None or earlier.verdict not in SETS_ALONE):
            found = earlier._replace(verdict=earlier.verdict.as_of_4_0_0)
    return found or _different(target, known[0])


def _equal(target: WrittenTarget, views: Sequence[TopicView], assignor: ServerAssignor) -> Judgement | None:
    """Return the verdict by the first view with which the assignor gives what was recorded; None if none does."""
    for view in views:
        answer, promised = _answer(target, view.topics, assignor)
        if answer is not None and _by_topic(answer) == _by_topic(target.after):
            equal = view.equal if _in_order(answer) == _in_order(target.after) else Verdict.EQUAL_SETS
            meaning = equal if promised is TargetCertainty.EXACT else UNLESS_NEIGHBOURS[equal]
            return Judgement(meaning, promised, view.moment, view.topics if view.moment is None else None)
    return None


def _unless_unresolved(target: WrittenTarget, verdict: Verdict) -> Verdict:
    """Return the verdict on a target that does not fit; none is possible if the log may lack what an expression was."""
    return Verdict.CANNOT_TELL_REGULAR_EXPRESSION if target.unresolved else verdict


def _different(target: WrittenTarget, view: TopicView) -> Judgement:
    answer, promised = _answer(target, view.topics, ASSIGNORS[target.assignor])
    if answer is None:
        return Judgement(Verdict.CANNOT_TELL_ASSIGNOR_FAILS, promised)
    if promised is not TargetCertainty.EXACT:
        return Judgement(_unless_unresolved(target, Verdict.CANNOT_TELL_NEIGHBOURS), promised)
    given = [each for lists in _by_topic(target.after).values() for each in lists]
    sound = len(set(given)) == len(given) and _subscribed(target, view.topics)
    # Without a listing at or before the target, no answer to another one's topics proves anything.
    valid = Verdict.VALID_DIFFERENT if view.equal is Verdict.EXACT else Verdict.CANNOT_TELL_NO_COUNTS
    return Judgement(_unless_unresolved(target, valid if sound else Verdict.INVALID), promised)


def _answer(
    target: WrittenTarget, topics: Mapping[str, Topic], assignor: ServerAssignor
) -> tuple[TargetRecords | None, TargetCertainty]:
    """Return the assignor's answer with these topics, None if it fails; and how certain it is."""
    try:
        batch, names = encode([target.group(topics)])
    except Fault:  # a target or listing that cannot exist: no assignor answers to it
        return None, TargetCertainty.EXACT
    (promised,) = certainty(target.assignor, batch, [target.history_known])
    answer = assignor(batch)
    if answer.status[0] != ServerStatus.OK:
        return None, promised
    found = records_of(batch, names, answer, 0)
    lists = {
        member: tuple((topics[topic].topic_id, tuple(partitions)) for topic, partitions in record)
        for member, record in found.items()
    }
    return _with_unwritten(target, lists), promised


def _with_unwritten(target: WrittenTarget, lists: TargetRecords) -> TargetRecords:
    """Return the lists, each of a member whose partitions stay the same as it was: Kafka writes it no new record."""
    before = {member.member_id: member.target for member in target.members}
    old, new = _by_topic(before), _by_topic(lists)
    return {member: before[member] if old.get(member) == new.get(member) else mine for member, mine in lists.items()}


def _subscribed(target: WrittenTarget, topics: Mapping[str, Topic]) -> bool:
    names = {topic.topic_id: name for name, topic in topics.items()}
    wanted = {member.member_id: set(member.topics) for member in target.members}
    return all(names[topic_id] in wanted[member] for member, lists in target.after.items() for topic_id, _ in lists)


def _in_order(lists: TargetRecords) -> TargetRecords:
    return {member: partitions for member, partitions in lists.items() if partitions}


def _by_topic(lists: TargetRecords) -> dict[str, set[tuple[bytes, int]]]:
    return {
        member: {(topic_id, number) for topic_id, numbers in partitions for number in numbers}
        for member, partitions in lists.items()
        if partitions
    }


# Tell how certain a recomputed `uniform` target is, if the group was read from `__consumer_offsets`.
#
# The log shows members, subscriptions and targets in order. How large the group's table once was, and which member
# joined before which, it shows only if it is uncompacted since the coordinator loaded the group. Otherwise the order of
# two members is unknown only if they share a bucket of the HashMap that the assignor iterates over *and* a slot of the
# smallest TimelineHashMap that fits the group: slots are upper bits of one hash, so a larger table never changes the
# order of two members in different slots. Without such a pair the answer is exact. `range` depends on none of this.

if TYPE_CHECKING:
    from numpy.typing import NDArray


class TargetCertainty(Enum):
    """What a recomputed target can promise, given topic ids and partition counts of the right moment."""

    EXACT = "exact"
    UNLESS_NEIGHBOURS_COMPETE = "exact unless bucket neighbours compete"


def certainty(name: str, batch: ServerBatch, history_known: Sequence[bool]) -> list[TargetCertainty]:
    """Return the certainty of each group's target; `history_known`: all joins and leaves since the load were read.

    The member whose heartbeat caused the assignment is known: the target's epoch follows the last one that was read, so
    the whole write was.
    """
    doubtful = np.zeros(len(batch.joining), np.bool_)
    if name == "uniform":
        run(find_doubt, batch, np.asarray(history_known, np.bool_), doubtful, cells=4 * len(batch.member_hash))
    return [
        TargetCertainty.UNLESS_NEIGHBOURS_COMPETE if doubt else TargetCertainty.EXACT for doubt in doubtful.tolist()
    ]


@kernel
def find_doubt(b: ServerBatch, history_known: NDArray[np.bool_], doubtful: NDArray[np.bool_]) -> None:
    """Flag each group whose answer may depend on an order that the log does not show."""
    for index in range(len(doubtful)):
        g = group_at(b, index)
        if g.members > 1 and not history_known[index]:
            doubtful[index] = _share_bucket_and_slot(g, g.members if g.joining == NONE else g.members - 1)


@kernel
def _buckets(g: ServerGroupView) -> IntArray:
    """Return each member's bucket in the HashMap of all members; one bucket for all if a tree decides."""
    buckets = np.zeros(g.members, np.int32)
    capacity = after_changes(g.member_hash, np.ones(g.members, np.int32), g.members, LEAST_CAPACITY)
    if capacity != TREE:
        for member in range(g.members):
            buckets[member] = spread(g.member_hash[member]) & (capacity - 1)
    return buckets


@kernel
def _share_bucket_and_slot(g: ServerGroupView, settled: int) -> bool:
    """Return whether two members share a bucket and a slot of the smallest table for `settled` members."""
    bits = 1
    while 3 * settled > 4 << bits:
        bits += 1
    buckets = _buckets(g)
    keys = np.empty(g.members, np.int64)
    for member in range(g.members):
        slot = np.int64(1) << 31 if member == g.joining else g.timeline_key[member] >> (31 - bits)
        keys[member] = (np.int64(buckets[member]) << 32) | slot
    keys.sort()
    return bool((keys[1:] == keys[:-1]).any())


# Read the targets a coordinator wrote to the log, each with the group it was computed from (KIP-848).
#
# `follow` reads one group's records in the order of their offsets. A target was computed from the state before its
# records: members in the order they joined, their targets in the order of their records, the topics of a regular
# expression as it was last resolved. A member is "joining" if its first record is in the same write as the target:
# Kafka then puts it after the members already in its table.

FIRST_EPOCH, FIRST_EPOCH_BEFORE_4_3 = 2, 1  # of every new group (KAFKA-20268)

Logged = tuple[int, int, LogRecord | None]
"""Offset, timestamp (ms) and record; None: its bytes do not decode."""


@dataclass(frozen=True, slots=True)
class WrittenTarget:
    """A completed target: `members` with what it was computed from, and `after`, what was written.

    `before_known`: no record it was computed from can be missing. `history_known`: the group was read from its first
    record on. Group epochs prove it: each is stored under one key, so compaction leaves no two consecutive ones.
    `unresolved`: a member subscribes by a regular expression that no record resolves: it has no topics yet, or the log
    lacks the record. `homogeneous`: as `ServerGroup` has it. `listed`: the topics that the coordinator wrote beside its
    epochs (up to Kafka 4.0). `since_4_1`: fields show that Kafka 4.1 or later wrote the epoch or its target.
    """

    epoch: int
    offset: int
    timestamp: int
    assignor: str
    members: tuple[ServerMember, ...]
    changes: tuple[int, ...]
    joining: str | None
    after: Mapping[str, TopicIdNumbers]
    before_known: bool
    history_known: bool
    unresolved: bool = False
    homogeneous: bool | None = None
    listed: Mapping[str, Topic] | None = None
    since_4_1: bool = False

    def group(self, topics: Mapping[str, Topic]) -> ServerGroup:
        """Return the group before the target, with the topics of that moment."""
        return ServerGroup(self.members, topics, self.changes, self.joining, self.homogeneous)


@dataclass(slots=True)
class _State:
    """The group after its last records; `fresh`: new targets not yet completed by a TargetAssignmentMetadata."""

    members: dict[str, MemberMetadata] = field(default_factory=dict)
    targets: dict[str, TopicIdNumbers] = field(default_factory=dict)
    fresh: dict[str, TopicIdNumbers] = field(default_factory=dict)
    expressions: dict[str, tuple[str, ...]] = field(default_factory=dict)
    listed: Mapping[str, Topic] | None = None
    changes: list[int] = field(default_factory=list)
    asked: tuple[str | None, ...] = ()  # for which assignors, when the last target was computed
    newcomer: str | None = None  # its first record is in the current write
    last: tuple[int, int] = (-1, -1)  # offset and timestamp of the group's last record
    epoch: int | None = None
    begins_at: int | None = None  # the first epoch read, until its target is complete
    has_hash: bool = False  # of topics, beside the epoch
    from_birth: bool = False
    known: bool = False
    hole: bool = False  # a record could not be read: what it changed is unknown until the group is deleted


def follow(records: Iterable[Logged], default: str = DEFAULT_ASSIGNOR) -> Iterator[WrittenTarget]:
    """Yield each target that one group's records complete, in order; the records ascend by offset."""
    state = _State()
    for offset, timestamp, record in records:
        if state.last != (offset - 1, timestamp):
            state.newcomer = None
        state.last = (offset, timestamp)
        if record is None:
            state.hole = True
        elif isinstance(record.value, TargetAssignmentMetadata):
            yield _complete(state, record.value, offset, timestamp, default)
        elif isinstance(record.value, TargetAssignmentMember):
            state.fresh[str(record.key.fields["member_id"])] = _partitions(record.value)
        else:
            _settle(state)
            _apply(state, record)


def _complete(
    state: _State, target: TargetAssignmentMetadata, offset: int, timestamp: int, default: str
) -> WrittenTarget:
    if state.begins_at == FIRST_EPOCH and target.timestamp is None and state.members:
        state.from_birth = state.known = False  # of a Kafka before 4.3, whose epoch 1 is gone
    state.begins_at = None
    newcomer = state.newcomer
    asked, state.asked = state.asked, tuple(said.server_assignor for said in state.members.values())
    regexes = [said.subscribed_regex for said in state.members.values() if said.subscribed_regex]
    written = WrittenTarget(
        target.epoch,
        offset,
        timestamp,
        preferred(state.asked, asked) or default,
        tuple(
            ServerMember(member, _recorded_topics(state, said), state.targets.get(member, ()), said.instance_id)
            for member, said in state.members.items()
        ),
        tuple(state.changes[:-1] if newcomer is not None else state.changes),
        newcomer,
        {member: state.fresh.get(member, state.targets.get(member, ())) for member in state.members},
        state.known and not state.hole,
        state.from_birth and not state.hole,
        any(regex not in state.expressions for regex in regexes),
        is_homogeneous((said.subscribed_topics, said.subscribed_regex) for said in state.members.values()),
        state.listed,
        state.has_hash or target.timestamp is not None,
    )
    _settle(state)
    state.known = True
    return written


def _recorded_topics(state: _State, said: MemberMetadata) -> tuple[str, ...]:
    """Return a member's topics: Kafka walks the larger of its names and its expression's, then the rest of the other.

    Of both at once, the set of all is walked here: the sets of an answer do not depend on that order.
    """
    resolved = state.expressions.get(said.subscribed_regex or "", ())
    larger = len(said.subscribed_topics) > len(resolved)
    both = (said.subscribed_topics, resolved) if larger else (resolved, said.subscribed_topics)
    return tuple(dict.fromkeys((*both[0], *both[1])))


def _settle(state: _State) -> None:
    """Accept targets written for another reason than a new epoch (a static member that came back)."""
    state.targets |= state.fresh
    state.fresh.clear()


def _apply(state: _State, record: LogRecord) -> None:
    match record.value:
        case MemberMetadata() as said:
            member = str(record.key.fields["member_id"])
            if member not in state.members:
                state.newcomer = member
                state.changes.append(JOINED)
            else:
                _rewrite(state)
            state.members[member] = said
        case CurrentMemberAssignment():
            _rewrite(state)
        case ConsumerGroupMetadata() as group:
            _reach(state, group)
        case RegularExpression() as resolved:
            state.expressions[str(record.key.fields["regular_expression"])] = resolved.topics
        case None:
            _delete(state, record)
        case _ if record.kind is RecordKind.CONSUMER_GROUP_PARTITION_METADATA:
            state.listed = _listed(cast("Mapping[str, Any]", record.value))
        case _:
            pass


def _rewrite(state: _State) -> None:
    """Note that a member was written again; a newcomer is, at the end of its own write, and what follows finds it."""
    state.newcomer = None
    if state.changes[-1:] != [REWRITTEN]:
        state.changes.append(REWRITTEN)


def _reach(state: _State, group: ConsumerGroupMetadata) -> None:
    if state.epoch is None:
        state.from_birth = state.known = group.epoch in (FIRST_EPOCH, FIRST_EPOCH_BEFORE_4_3)
        state.begins_at = group.epoch
    elif group.epoch != state.epoch + 1:
        state.from_birth = state.known = False
    state.epoch, state.has_hash = group.epoch, group.metadata_hash is not None


def _delete(state: _State, record: LogRecord) -> None:
    member = str(record.key.fields.get("member_id"))
    match record.kind:
        case RecordKind.CONSUMER_GROUP_MEMBER_METADATA if state.members.pop(member, None) is not None:
            state.changes.append(LEFT)
        case RecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER:
            state.targets.pop(member, None)
        case RecordKind.CONSUMER_GROUP_REGULAR_EXPRESSION:
            state.expressions.pop(str(record.key.fields["regular_expression"]), None)
        case RecordKind.CONSUMER_GROUP_PARTITION_METADATA:
            state.listed = None
        case RecordKind.CONSUMER_GROUP_METADATA:
            state.epoch, state.from_birth, state.known, state.hole = None, False, False, False
            state.begins_at, state.listed = None, None
            state.changes.clear()
        case _:
            pass


def _listed(value: Mapping[str, Any]) -> dict[str, Topic]:
    return {
        str(topic["topic_name"]): Topic(TopicId(uuid_bytes(topic["topic_id"])), topic["num_partitions"])
        for topic in value["topics"]
    }


def _partitions(value: TargetAssignmentMember) -> TopicIdNumbers:
    return tuple((TopicId(uuid_bytes(topic)), partitions) for topic, partitions in value.topic_partitions)
