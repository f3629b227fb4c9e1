"""Implement `range` as other client libraries do: each topic on its own, in runs of consecutive partitions.

All but kafka-go give the first members one partition more if the count does not divide evenly. They differ in how
they sort members, and in the effect of a topic that a member names twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TypeVar

from groupledger.core.assignors.clients.plan import (
    LeaderPlan,
    Numbers,
    by_topic,
    known_topics,
    last_runs,
    librdkafka_compare,
    member_id_of,
    merge_sort,
    plan_of,
    read_by_librdkafka,
    static_first,
)
from groupledger.core.custom.group import Group, Member

T = TypeVar("T")
Order = Callable[[Sequence[Member]], Sequence[Member]]


def kafka_python_range(group: Group, leader: str | None) -> LeaderPlan:
    """kafka-python 3.0: static members before the others, but only the last run of each kind (see `last_runs`)."""
    return _overwriting(group, last_runs)


def aiokafka_range(group: Group, leader: str | None) -> LeaderPlan:
    """aiokafka 0.14: by member id."""
    return _overwriting(group, lambda members: sorted(members, key=member_id_of))


def sarama_range(group: Group, leader: str | None) -> LeaderPlan:
    """Sarama 1.61: by member id; a member without partitions is sent no assignment."""
    lists: dict[str, dict[str, Sequence[int]]] = {}
    for topic, members in known_topics(group).items():
        for member_id, numbers in _shares(sorted({member.member_id for member in members}), group.topics[topic]):
            if numbers:
                lists.setdefault(member_id, {})[topic] = numbers
    return plan_of(lists)


def franz_go_range(group: Group, leader: str | None) -> LeaderPlan:
    """franz-go 1.22: static members first; a member that names a topic twice counts twice and gets both shares."""
    lists: dict[str, dict[str, Sequence[int]]] = {member.member_id: {} for member in group.members}
    for topic, members in known_topics(group).items():
        for member, numbers in _shares(sorted(members, key=static_first), group.topics[topic]):
            mine = lists[member.member_id]
            if numbers:
                mine[topic] = sorted([*mine.get(topic, ()), *numbers])
    return plan_of(lists)


def kafka_go_range(group: Group, leader: str | None) -> LeaderPlan:
    """kafka-go 0.4: of n members, the i-th gets partitions i*P/n to (i+1)*P/n, rounded down, so the last get more.

    A member that names no topic is sent no assignment.
    """
    lists: dict[str, dict[str, Sequence[int]]] = {member.member_id: {} for member in group.members if member.topics}
    for topic, members in known_topics(group).items():
        bounds = [place * group.topics[topic] // len(members) for place in range(len(members) + 1)]
        for member, (first, end) in zip(sorted(members, key=member_id_of), pairwise(bounds), strict=True):
            mine = lists[member.member_id]
            mine[topic] = [*mine.get(topic, ()), *range(first, end)]
    return plan_of(lists)


def librdkafka_range(group: Group, leader: str | None) -> LeaderPlan:
    """librdkafka 2.16: sort a member's topics by subscribers, then by partition count, then as in the metadata.

    The metadata is assumed to list topics by name. Racks (KIP-881) are not modelled. See
    `read_by_librdkafka`.
    """
    group = read_by_librdkafka(group)
    sharing = {
        topic: merge_sort(list({member.member_id: member for member in members}.values()), librdkafka_compare)
        for topic, members in known_topics(group).items()
    }
    order = sorted(sharing, key=lambda topic: ([each.member_id for each in sharing[topic]], group.topics[topic]))
    lists: dict[str, dict[str, Sequence[int]]] = {member.member_id: {} for member in group.members}
    for topic in order:
        for member, numbers in _shares(sharing[topic], group.topics[topic]):
            lists[member.member_id][topic] = numbers
    return plan_of(lists)


def _overwriting(group: Group, order: Order) -> LeaderPlan:
    """Let a member that names a topic twice count twice and keep only the second share: the first is left out."""
    lists: dict[str, dict[str, Sequence[int]]] = {member.member_id: {} for member in group.members}
    for topic, members in known_topics(group).items():
        for member, numbers in _shares(order(members), group.topics[topic]):
            lists[member.member_id][topic] = numbers
    sorted_lists: dict[str, Numbers] = {member_id: by_topic(topics) for member_id, topics in lists.items()}
    return plan_of(sorted_lists)


def _shares(takers: Sequence[T], partitions: int) -> list[tuple[T, range]]:
    """Split into runs of equal length, the first ones longer by one if the count does not divide."""
    least, longer = divmod(partitions, len(takers))
    starts = [place * least + min(place, longer) for place in range(len(takers) + 1)]
    return [(taker, range(*bounds)) for taker, bounds in zip(takers, pairwise(starts), strict=True)]
