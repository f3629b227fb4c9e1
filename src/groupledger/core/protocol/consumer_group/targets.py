"""The target assignment of a group: what its coordinator asks the server-side assignor, for many at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from groupledger.core.assignors.server.answer import failure
from groupledger.core.assignors.server.assign import assign
from groupledger.core.assignors.server.group import ServerGroup, TopicId, TopicIdNumbers, encode
from groupledger.core.assignors.server.simple import SIMPLE, assign_simple
from groupledger.core.assignors.server.sticky_tasks import assign_tasks
from groupledger.core.assignors.server.task_group import TaskGroup
from groupledger.core.protocol.consumer_group.tasks import as_record


class ServerQuestion(NamedTuple):
    """A group before it is assigned anew, and the assignor that most of its members ask for."""

    assignor: str
    group: ServerGroup | TaskGroup


class Targets(NamedTuple):
    """The new target of each member, in the order of its record; `failure` is what the assignor threw."""

    of: Mapping[str, TopicIdNumbers]
    failure: str | None = None


def find_targets(questions: Sequence[ServerQuestion]) -> list[Targets]:
    """One answer for each question; assignors of consumer groups are called once for all groups that use them."""
    answers: dict[int, Targets] = {}
    batches: dict[str, dict[int, ServerGroup]] = {}
    for place, (assignor, group) in enumerate(questions):
        if isinstance(group, TaskGroup):
            answers[place] = Targets({each: as_record(target) for each, target in assign_tasks(group).items()})
        elif assignor == SIMPLE:
            answers[place] = Targets(assign_simple(group))
        else:
            batches.setdefault(assignor, {})[place] = group
    for assignor, groups in sorted(batches.items()):
        answers |= dict(zip(groups, _assign(assignor, list(groups.values())), strict=True))
    return [answers[place] for place in range(len(questions))]


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
