"""The target assignment of a consumer group: what its coordinator asks the server-side assignor, for many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupledger.core.assignors.server.answer import failure
from groupledger.core.assignors.server.assign import assign
from groupledger.core.assignors.server.group import ServerGroup, TopicId, TopicIdNumbers, encode
from groupledger.core.assignors.server.simple import SIMPLE, assign_simple


class ServerQuestion(NamedTuple):
    """A group before it is assigned anew, and the assignor that most of its members ask for."""

    assignor: str
    group: ServerGroup


class Targets(NamedTuple):
    """The new target of each member, in the order of its record; `failure` is what the assignor threw."""

    of: Mapping[str, TopicIdNumbers]
    failure: str | None = None


def find_targets(questions: Sequence[ServerQuestion]) -> list[Targets]:
    """One answer for each question; each assignor but `simple` is called once for all groups that use it."""
    answers: dict[int, Targets] = {}
    for assignor in sorted({each.assignor for each in questions} - {SIMPLE}):
        places = [place for place, each in enumerate(questions) if each.assignor == assignor]
        found = _assign(assignor, [questions[place].group for place in places])
        answers |= dict(zip(places, found, strict=True))
    return [
        answers[place] if place in answers else Targets(assign_simple(each.group))
        for place, each in enumerate(questions)
    ]


def _assign(assignor: str, groups: Sequence[ServerGroup]) -> list[Targets]:
    batch, _ = encode(groups)
    result = assign(assignor, batch)
    found, member = [], 0
    for at, group in enumerate(groups):
        thrown = failure(batch, result, at)
        ids = [topic.topic_id for _, topic in sorted(group.topics.items())]
        targets: dict[str, TopicIdNumbers] = {}
        for each in group.members:
            mine = slice(result.assigned_start[member], result.assigned_start[member + 1])
            topics, numbers = result.assigned_topic[mine].tolist(), result.assigned_partition[mine].tolist()
            targets[each.member_id] = _record(ids, topics, numbers)
            member += 1
        found.append(Targets({} if thrown else targets, thrown))
    return found


def _record(ids: Sequence[TopicId], topics: Sequence[int], numbers: Sequence[int]) -> TopicIdNumbers:
    """Partitions under their topics, in the order in which the assignor has them."""
    record: list[tuple[TopicId, list[int]]] = []
    for topic, number in zip(topics, numbers, strict=True):
        if not record or record[-1][0] != ids[topic]:
            record.append((ids[topic], []))
        record[-1][1].append(number)
    return tuple((topic_id, tuple(some)) for topic_id, some in record)
