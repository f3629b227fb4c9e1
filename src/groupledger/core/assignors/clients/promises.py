"""What assignors promise whose answers differ from call to call: Sarama's sticky ones and kafka-go's rack-affinity.

They walk Go's maps, which have no order: one group may have hundreds of answers, so an answer can only be held
against the promise. That others would promise the same is in the nature of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from groupledger.core.custom.group import Group, TopicPartition, claimants, is_handed_over

GivenLists = Mapping[str, Sequence[TopicPartition]]


def nothing(group: Group, lists: GivenLists) -> bool:
    """Whether a promise is kept where there is none, as the answer itself can be computed: no."""
    return False


def keeps_sticky(group: Group, lists: GivenLists) -> bool:
    """Each partition to exactly one subscriber, and balanced (KIP-54).

    Balanced: of two members, the one with two fewer subscribes to no topic that the other has partitions of.
    """
    return _given(lists) == Counter(_wanted(group)) and _to_subscribers(group, lists) and _balanced(group, lists)


def keeps_cooperative(group: Group, lists: GivenLists) -> bool:
    """Each partition to one subscriber at most; nothing that another member claims; only what is claimed is left out.

    The balance shows in the next round only.
    """
    given, owners = _given(lists), claimants(group)
    return (
        all(count == 1 for count in given.values())
        and all(each in given or each in owners for each in _wanted(group))
        and _to_subscribers(group, lists)
        and not any(is_handed_over(owners, member_id, each) for member_id, mine in lists.items() for each in mine)
    )


def keeps_rack_affinity(group: Group, lists: GivenLists) -> bool:
    """Each partition to exactly one subscriber; of each topic, all of them have equally many, or one more or less."""
    if _given(lists) != Counter(_wanted(group)) or not _to_subscribers(group, lists):
        return False
    for topic in group.topics:
        takers = {member.member_id for member in group.members if topic in member.topics}
        sizes = [sum(each.topic == topic for each in lists.get(member_id, ())) for member_id in takers]
        if sizes and max(sizes) - min(sizes) > 1:
            return False
    return True


def _wanted(group: Group) -> set[TopicPartition]:
    named = {topic for member in group.members for topic in member.topics}
    return {TopicPartition(topic, n) for topic, count in group.topics.items() if topic in named for n in range(count)}


def _given(lists: GivenLists) -> Counter[TopicPartition]:
    return Counter(each for mine in lists.values() for each in mine)


def _to_subscribers(group: Group, lists: GivenLists) -> bool:
    subscribed = {member.member_id: member.topics for member in group.members}
    return all(each.topic in subscribed.get(member_id, ()) for member_id, mine in lists.items() for each in mine)


def _balanced(group: Group, lists: GivenLists) -> bool:
    richest: dict[str, int] = {}
    for mine in lists.values():
        for topic in {each.topic for each in mine}:
            richest[topic] = max(richest.get(topic, 0), len(mine))
    return not any(
        richest.get(topic, 0) > len(lists.get(member.member_id, ())) + 1
        for member in group.members
        for topic in member.topics
    )
