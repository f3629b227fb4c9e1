"""A target that a coordinator wrote, against what its assignor answers: the verdict of a KIP-848 group.

The log holds the group a target was computed from, not the topics of that moment: those are given, in several views.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupledger.core.assignors.server.answer import written as records_of
from groupledger.core.assignors.server.assign import assign
from groupledger.core.assignors.server.certainty import Certainty, certainty
from groupledger.core.assignors.server.group import Partitions, Topic, encode
from groupledger.core.assignors.server.log import Written
from groupledger.core.assignors.server.spec import Status
from groupledger.core.verdict import Verdict

Lists = Mapping[str, Partitions]

UNKNOWN_BEFORE = "cannot-tell: the group before is not known"
REGULAR_EXPRESSION = "cannot-tell: a regular expression subscribes"
NEIGHBOURS = "cannot-tell: bucket neighbours compete"
UNLESS = ", unless bucket neighbours compete"


class View(NamedTuple):
    """Topics as of some moment, and what equality with the answer among them means."""

    equal: Verdict
    topics: Mapping[str, Topic]


class Judgement(NamedTuple):
    """`text` is what the ledger says; `certainty` what was promised of the answer, None: none was made."""

    text: str
    certainty: Certainty | None


def judge(target: Written, views: Sequence[View]) -> Judgement:
    """The first view among which the answer is what was written, else the verdict among the first view's topics.

    A target is exact in the order of its records too, since that order is the next target's input. Where an order
    that the log does not show may have decided, equality says so, and a difference tells nothing.
    """
    if not target.before_known:
        return Judgement(UNKNOWN_BEFORE, None)
    if target.has_regex:
        return Judgement(REGULAR_EXPRESSION, None)
    known = [view for view in views if _names_all(target, view.topics)]
    if not known:
        return Judgement(Verdict.CANNOT_TELL_NO_COUNTS.text, None)
    for view in known:
        answer, promised = _answer(target, view.topics)
        if answer is not None and _by_topic(answer) == _by_topic(target.after):
            equal = view.equal if _in_order(answer) == _in_order(target.after) else Verdict.EQUAL_SETS
            return Judgement(equal.text + (UNLESS if promised is not Certainty.EXACT else ""), promised)
    return _different(target, known[0])


def _different(target: Written, view: View) -> Judgement:
    answer, promised = _answer(target, view.topics)
    if answer is None:
        return Judgement(Verdict.CANNOT_TELL_ASSIGNOR_FAILS.text, promised)
    if promised is not Certainty.EXACT:
        return Judgement(NEIGHBOURS, promised)
    given = [each for lists in _by_topic(target.after).values() for each in lists]
    sound = len(set(given)) == len(given) and _subscribed(target, view.topics)
    return Judgement((Verdict.VALID_DIFFERENT if sound else Verdict.INVALID).text, promised)


def _answer(target: Written, topics: Mapping[str, Topic]) -> tuple[Lists | None, Certainty]:
    """What the assignor answers among these topics, None where it fails; and what may be promised of it."""
    batch, names = encode([target.group(topics)])
    # Its epoch follows the last one seen, so the whole write was read, and with it who was joining.
    (promised,) = certainty(target.assignor, batch, [target.history_known], [True])
    answer = assign(target.assignor, batch)
    if answer.status[0] != Status.OK:
        return None, promised
    found = records_of(batch, names, answer, 0)
    lists = {
        member: tuple((topics[topic].topic_id, tuple(partitions)) for topic, partitions in record)
        for member, record in found.items()
    }
    return lists, promised


def _names_all(target: Written, topics: Mapping[str, Topic]) -> bool:
    """Whether the topics of everything that was written are known."""
    ids = {topic.topic_id for topic in topics.values()}
    return all(topic_id in ids for lists in target.after.values() for topic_id, _ in lists)


def _subscribed(target: Written, topics: Mapping[str, Topic]) -> bool:
    names = {topic.topic_id: name for name, topic in topics.items()}
    wanted = {member.member_id: set(member.topics) for member in target.members}
    return all(names[topic_id] in wanted[member] for member, lists in target.after.items() for topic_id, _ in lists)


def _in_order(lists: Lists) -> Lists:
    return {member: partitions for member, partitions in lists.items() if partitions}


def _by_topic(lists: Lists) -> dict[str, set[tuple[bytes, int]]]:
    return {
        member: {(topic_id, number) for topic_id, numbers in partitions for number in numbers}
        for member, partitions in lists.items()
        if partitions
    }
