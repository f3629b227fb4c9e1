"""Compare a target that a coordinator wrote with its assignor's answer: the verdict of a KIP-848 group.

The log holds the group a target was computed from, but not the topics of that moment, unless Kafka 4.0 or earlier wrote
it: they are given, in several views. If no view fits, the assignors of Kafka 4.0.0 are asked, unless fields of the
records show a later release. `judge_snapshots` goes from a group's records to the verdict of each of its snapshots.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import NamedTuple

from groupledger.core.assignors.server.answer import written as records_of
from groupledger.core.assignors.server.assign import ASSIGNORS, EARLIER
from groupledger.core.assignors.server.certainty import TargetCertainty, certainty
from groupledger.core.assignors.server.group import Topic, TopicId, TopicIdNumbers, encode
from groupledger.core.assignors.server.log import Logged, WrittenTarget, follow
from groupledger.core.assignors.server.spec import ServerAssignment, ServerBatch, ServerStatus
from groupledger.core.faults import Fault
from groupledger.core.listings import last_change
from groupledger.core.moment import MICROS_A_MILLI
from groupledger.core.verdict import TRIED, UNLESS_NEIGHBOURS, Verdict

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
    known = sorted(changes, key=_in_time)

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


def _in_time(change: IdentifiedChange) -> tuple[int, bool]:
    """Sort by time; at one moment a deletion precedes a creation: a topic recreated within one listing."""
    return change.at, change.partitions is not None


def views(changes: Sequence[IdentifiedChange], target: WrittenTarget) -> list[TopicView]:
    """Return the target's topics at completion, before their last change, before the one before, after the next.

    Before all of these come the topics that the coordinator wrote itself, after them those that the target shows.
    """
    named = {topic for member in target.members for topic in member.topics}
    told = [TopicView(Verdict.EXACT, target.listed)] if target.listed is not None else []
    if not named:
        return told or [TopicView(Verdict.EXACT, {})]
    own = [change for change in changes if change.topic in named]
    moments = sorted({change.at for change in own})
    now = last_change(moments, target.timestamp) + 1
    meant = ((now, Verdict.EXACT), *zip((now - 1, now - 2, now + 1), TRIED, strict=True))
    known = [(equal, moments[at - 1]) for at, equal in meant if 0 < at <= len(moments)]
    listed = [TopicView(equal, _topics(own, moment), moment) for equal, moment in known]
    as_told = [view.moment for view in listed if view.topics == target.listed]
    shown = _recorded(own, target) if target.listed is None else None
    last = [] if shown is None else [TopicView(Verdict.EXACT_RECORDED_TOPICS, shown)]
    return [view._replace(moment=next(iter(as_told), None)) for view in told] + listed + last


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
    known = [view for view in views if _names_all(target, view.topics)]
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
    # Its epoch follows the last one seen, so the whole write was read, and with it who was joining.
    (promised,) = certainty(target.assignor, batch, [target.history_known], [True])
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


def _names_all(target: WrittenTarget, topics: Mapping[str, Topic]) -> bool:
    """Return whether all topics in the record are known."""
    ids = {topic.topic_id for topic in topics.values()}
    return all(topic_id in ids for lists in target.after.values() for topic_id, _ in lists)


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
