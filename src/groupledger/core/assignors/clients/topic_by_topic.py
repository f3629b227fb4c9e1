"""Implement `range` as other client libraries do: each topic on its own, in runs of consecutive partitions.

All but kafka-go give the first members one partition more if the count does not divide evenly. They differ in how
they sort members, and in the effect of a topic that a member names twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from groupledger.core.assignors.clients.client_plan import (
    LeaderPlan,
    known_topics,
    last_runs,
    librdkafka_compare,
    member_id_of,
    merge_sort,
    plan_of,
    read_by_librdkafka,
    static_first,
)
from groupledger.core.assignors.librdkafka import assign as target_of
from groupledger.core.custom.custom_group import Group, Member, TopicPartition
from groupledger.core.scenarios.form import encode_group

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
    return plan_of({member_id: dict(sorted(topics.items())) for member_id, topics in lists.items()})


def _shares(takers: Sequence[T], partitions: int) -> list[tuple[T, range]]:
    """Split into runs of equal length, the first ones longer by one if the count does not divide."""
    least, longer = divmod(partitions, len(takers))
    starts = [place * least + min(place, longer) for place in range(len(takers) + 1)]
    return [(taker, range(*bounds)) for taker, bounds in zip(takers, pairwise(starts), strict=True)]


# Implement `roundrobin` as other client libraries do, and KafkaJS's RoundRobinAssigner: members take turns.
#
# Most continue with the next member at the next topic and skip members that do not subscribe. kafka-go restarts at each
# topic; KafkaJS deals the leader's topics to all members; kafka-python fails as soon as a member must be skipped.

Dealt = dict[str, dict[str, list[int]]]


def kafka_python_roundrobin(group: Group, leader: str | None) -> LeaderPlan:
    """kafka-python 3.0: deal to the members of `last_runs` in turns; fails at one that does not subscribe to a topic.

    It then looks up a pair (instance id, member id) among member ids.
    """
    members = last_runs(group.members)
    lists: Dealt = {member.member_id: {} for member in group.members}
    for turn, (topic, number) in enumerate(_sorted_partitions(group)):
        member = members[turn % len(members)]
        if topic not in member.topics:
            following = members[(turn + 1) % len(members)]
            return LeaderPlan(failure=f"KeyError: {(following.group_instance_id, following.member_id)!r}")
        lists[member.member_id].setdefault(topic, []).append(number)
    return plan_of(lists)


def aiokafka_roundrobin(group: Group, leader: str | None) -> LeaderPlan:
    """aiokafka 0.14: by member id."""
    return _in_turns(group, sorted(group.members, key=member_id_of), _sorted_partitions(group))


def franz_go_roundrobin(group: Group, leader: str | None) -> LeaderPlan:
    """franz-go 1.22: static members first."""
    return _in_turns(group, sorted(group.members, key=static_first), _sorted_partitions(group))


def librdkafka_roundrobin(group: Group, leader: str | None) -> LeaderPlan:
    """librdkafka 2.16: by its own comparison of members; see `read_by_librdkafka`."""
    group = read_by_librdkafka(group)
    return _in_turns(group, merge_sort(group.members, librdkafka_compare), _sorted_partitions(group))


def sarama_roundrobin(group: Group, leader: str | None) -> LeaderPlan:
    """Sarama 1.61: sort partitions by the text "topic-number", so t-10 comes before t-2.

    A member without partitions is sent no assignment. Without topics it fails.
    """
    partitions = sorted(_sorted_partitions(group), key=lambda each: f"{each.topic}-{each.partition}")
    if not known_topics(group):
        return LeaderPlan(failure="members and topics are not provided")
    dealt = _in_turns(group, sorted(group.members, key=member_id_of), partitions)
    lists = {
        member_id: tuple(sorted(mine, key=lambda each: each.topic)) for member_id, mine in dealt.lists.items() if mine
    }
    return LeaderPlan(lists)


def kafka_go_roundrobin(group: Group, leader: str | None) -> LeaderPlan:
    """kafka-go 0.4: partition p of a topic goes to subscriber p mod n, by member id; every topic starts with the first.

    A member that names no topic is sent no assignment.
    """
    lists: Dealt = {member.member_id: {} for member in group.members if member.topics}
    for topic, members in known_topics(group).items():
        for place, member in enumerate(sorted(members, key=member_id_of)):
            mine = range(place, group.topics[topic], len(members))
            lists[member.member_id].setdefault(topic, []).extend(mine)
    return plan_of(lists)


def kafkajs_roundrobin(group: Group, leader: str | None) -> LeaderPlan:
    """KafkaJS 2.2: the topics that the leader subscribes to, in its order, dealt to all members, subscribed or not.

    Topics that only others subscribe to are left out. A member without partitions is sent no assignment. Without a
    leader, the first member is assumed to lead.
    """
    members = sorted(group.members, key=lambda member: member.member_id.encode("utf-16-be", "surrogatepass"))
    leaders = [member for member in group.members if member.member_id == leader] or list(group.members[:1])
    topics = [topic for member in leaders for topic in member.topics]
    partitions = [(topic, number) for topic in topics for number in range(group.topics.get(topic, 0))]
    lists: Dealt = {}
    for turn, (topic, number) in enumerate(partitions):
        lists.setdefault(members[turn % len(members)].member_id, {}).setdefault(topic, []).append(number)
    return plan_of({member_id: {topic: mine[topic] for topic in _as_keys(mine)} for member_id, mine in lists.items()})


def _as_keys(topics: Iterable[str]) -> list[str]:
    """Order topics as a JavaScript object iterates its keys: those that look like an array index first, by value."""
    names = list(topics)
    indices = [name for name in names if name.isascii() and name.isdigit() and str(int(name)) == name]
    indices = [name for name in indices if int(name) < 2**32 - 1]
    return sorted(indices, key=int) + [name for name in names if name not in indices]


def _sorted_partitions(group: Group) -> list[TopicPartition]:
    """Return all subscribed partitions, by topic and number."""
    return [TopicPartition(topic, number) for topic in known_topics(group) for number in range(group.topics[topic])]


def _in_turns(group: Group, members: Sequence[Member], partitions: Iterable[TopicPartition]) -> LeaderPlan:
    """Deal each partition to the next subscribing member; the turn then passes to the member after it."""
    lists: Dealt = {member.member_id: {} for member in group.members}
    subscribed = [frozenset(member.topics) for member in members]
    turn = 0
    for topic, number in partitions:
        while topic not in subscribed[turn % len(members)]:
            turn += 1
        lists[members[turn % len(members)].member_id].setdefault(topic, []).append(number)
        turn += 1
    return plan_of(lists)


# librdkafka's `cooperative-sticky` as its leader sends it: `assignors.librdkafka`, then its own withholding.
#
# If several members claim a partition, the last claimant in JoinGroup order counts as its owner. A claimed partition
# that the assignor did not hand out (gone, unknown to the leader, without subscribers) is returned to the claimant.


def librdkafka_cooperative_sticky(group: Group, leader: str | None) -> LeaderPlan:
    """librdkafka 2.16; see `read_by_librdkafka`. Its leader crashes if that leaves no member.

    Racks (KIP-881) and other crashes are not modelled.
    """
    group = read_by_librdkafka(group)
    if not group.members:
        return LeaderPlan(failure="no members")
    encoded = encode_group(group, "cooperative-sticky")
    # C compares code points; Java's order differs beyond U+FFFF.
    ids = [member.member_id for member in group.members]
    answer = target_of(replace(encoded.batch, member_rank=_ranks(ids), topic_rank=_ranks(encoded.topics)))
    lists = encoded.named(answer.target)
    owner = {each: member.member_id for member in group.members for each in member.owned}
    handed_out = {each for mine in lists.values() for each in mine}
    return LeaderPlan(
        {
            member_id: (
                *(each for each in mine if owner.get(each) == member_id),
                *(each for each in mine if each not in owner),
                *(each for each, claimant in owner.items() if claimant == member_id and each not in handed_out),
            )
            for member_id, mine in lists.items()
        }
    )


def _ranks(names: list[str]) -> np.ndarray:
    place = {name: at for at, name in enumerate(sorted(names))}
    return np.array([place[name] for name in names], np.int32)
