"""Implement `roundrobin` as other client libraries do, and KafkaJS's RoundRobinAssigner: members take turns.

Most continue with the next member at the next topic and skip members that do not subscribe. kafka-go restarts at each
topic; KafkaJS deals the leader's topics to all members; kafka-python fails as soon as a member must be skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groupledger.core.assignors.clients.plan import (
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
from groupledger.core.custom.group import Group, Member, TopicPartition

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
