"""Check the promises of assignors whose answers vary between calls: Sarama's sticky ones, kafka-go's rack-affinity.

They iterate over Go maps, which have no order: one group may have hundreds of answers, so an answer can only be
checked against the promise. Other assignors may make the same promise, which cannot be distinguished.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from groupledger.core.assignors.clients.client_plan import named_topics
from groupledger.core.custom.custom_group import Group, Member, TopicPartition, claimants, is_handed_over
from groupledger.core.wire.consumer_protocol import STICKY, decode_user_data

GivenLists = Mapping[str, Sequence[TopicPartition]]


def nothing(group: Group, lists: GivenLists) -> bool:
    """Return False: an assignor whose answer can be computed has no promise to check."""
    return False


def keeps_sticky(group: Group, lists: GivenLists) -> bool:
    """Check that each partition goes to exactly one subscriber, and that the group is balanced (KIP-54).

    Balanced: if a member has two fewer than another, it subscribes to no topic that the other has partitions of.
    """
    return _given(lists) == Counter(_wanted(group)) and _to_subscribers(group, lists) and _balanced(group, lists)


def keeps_cooperative(group: Group, lists: GivenLists) -> bool:
    """Check: each partition has at most one subscriber, none claimed by another member; only claimed ones are left out.

    The balance shows only in the next round.
    """
    given, owners = _given(lists), claimants(group)
    return (
        all(count == 1 for count in given.values())
        and all(each in given or each in owners for each in _wanted(group))
        and _to_subscribers(group, lists)
        and not any(is_handed_over(owners, member_id, each) for member_id, mine in lists.items() for each in mine)
    )


def keeps_sarama_sticky(group: Group, lists: GivenLists) -> bool:
    """Check `keeps_sticky`, except for partitions that Sarama returns to an older claimant that does not subscribe.

    Sarama may give them to that member, or, if it has set the member aside by then, to no member.
    """
    given, as_if = _given(lists), _resubscribed(group, lists)
    returned = _claimed_by_others(group)
    return (
        all(count == 1 for count in given.values())
        and given.keys() <= _wanted(group)
        and all(each in returned for each in _wanted(group) - given.keys())
        and _to_subscribers(as_if, lists)
        and _balanced(group, lists)
    )


def _claimed_by_others(group: Group) -> set[TopicPartition]:
    """Return partitions with several claimants, one of which does not subscribe."""
    claims = [(each, each.topic in member.topics) for member in group.members for each in _claimed(member)]
    count = Counter(each for each, _ in claims)
    return {each for each, subscribes in claims if not subscribes and count[each] > 1}


def keeps_sarama_cooperative(group: Group, lists: GivenLists) -> bool:
    """Check `keeps_cooperative` with the same exception."""
    return keeps_cooperative(_resubscribed(group, lists), lists)


def _resubscribed(group: Group, lists: GivenLists) -> Group:
    """Add topics to members' subscriptions that Sarama returned to them as one of several claimants."""
    claims = {member.member_id: _claimed(member) for member in group.members}
    count = Counter(each for mine in claims.values() for each in mine)
    members = []
    for member in group.members:
        given = lists.get(member.member_id, ())
        back = {each.topic for each in given if each in claims[member.member_id] and count[each] > 1}
        members.append(replace(member, topics=(*member.topics, *sorted(back.difference(member.topics)))))
    return Group(tuple(members), group.topics)


def _claimed(member: Member) -> frozenset[TopicPartition]:
    """Return the member's claims, from its subscription or, for `sticky`, from its user data."""
    sent = decode_user_data(member.user_data, STICKY).owned
    remembered = (TopicPartition(topic, number) for topic, numbers in sent for number in numbers)
    return frozenset(member.owned) or frozenset(remembered)


def keeps_rack_affinity(group: Group, lists: GivenLists) -> bool:
    """Check that each partition goes to one subscriber, and that subscribers' counts per topic differ by at most one.

    A member that names a topic twice counts twice but takes its share once, so some partitions may be left out.
    """
    given = _given(lists)
    if any(count > 1 for count in given.values()) or not _to_subscribers(group, lists):
        return False
    wanted = _wanted(group)
    for topic, members in named_topics(group.members).items():
        takers = {member.member_id for member in members}
        if len(takers) < len(members):
            continue
        sizes = [sum(each.topic == topic for each in lists.get(member_id, ())) for member_id in takers]
        if max(sizes) - min(sizes) > 1 or any(each not in given for each in wanted if each.topic == topic):
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
