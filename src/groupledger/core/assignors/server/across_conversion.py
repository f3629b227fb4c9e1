"""Compute a classic group's assignment before and after its conversion by a server-side assignor (KIP-848).

A coordinator takes the recorded assignment of a classic group as its first target, and computes the next one from it
when a member joins. Worked example: m1 has orders 0-3 and m2 has none; `uniform` leaves two with m1 and moves two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from groupledger.core.assignors.server.server_batch import assign, failure, written
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId, encode
from groupledger.core.faults import Fault
from groupledger.core.wire.codec import uuid_bytes

Owned = frozenset[tuple[str, int]]
ListedTopics = Mapping[str, tuple[str | None, int]]
"""Topic -> its id and partition count."""


class MemberBefore(NamedTuple):
    """A member as recorded before the conversion."""

    member_id: str
    group_instance_id: str | None
    topics: tuple[str, ...]
    owned: Owned


class GroupBefore(NamedTuple):
    """A classic group in the order of its JoinGroup response, and its subscribed topics as listed now."""

    members: tuple[MemberBefore, ...]
    listed: ListedTopics

    def owning_nothing(self) -> GroupBefore:
        """Return the same group, as if nothing had been assigned yet."""
        return self._replace(members=tuple(each._replace(owned=frozenset()) for each in self.members))


class Converted(NamedTuple):
    """The assignment after the conversion, by member; None if there is none, with `why` in words."""

    after: Mapping[str, Owned] | None
    why: str | None = None

    def moves(self, group: GroupBefore) -> int:
        """Count partitions whose owner afterwards is not the recorded one; unowned ones do not count."""
        new = {place: member for member, owned in (self.after or {}).items() for place in owned}
        owned = [(place, member.member_id) for member in group.members for place in member.owned]
        return sum(new.get(place, member) != member for place, member in owned)


def convert(assignor: str, groups: Sequence[GroupBefore]) -> list[Converted]:
    """Return what `uniform` or `range` answers for each group once all its members use KIP-848."""
    made: list[ServerGroup | str] = [_server_group(group) for group in groups]
    possible = [each for each in made if isinstance(each, ServerGroup)]
    if not possible:
        return [Converted(None, str(each)) for each in made]
    batch, names = encode(possible)
    answer = assign(assignor, batch)
    found: list[Converted] = []
    number = 0
    for each in made:
        if isinstance(each, str):
            found.append(Converted(None, each))
            continue
        error = failure(batch, answer, number)
        if error is None:
            records = written(batch, names, answer, number)
            start, end = batch.member_start[number : number + 2].tolist()
            found.append(Converted({member: _places(records[member]) for member in names.members[start:end]}))
        else:
            found.append(Converted(None, f"the assignor fails: {error}"))
        number += 1
    return found


def _places(record: Sequence[tuple[str, Sequence[int]]]) -> Owned:
    return frozenset((topic, number) for topic, numbers in record for number in numbers)


def _server_group(group: GroupBefore) -> ServerGroup | str:
    """Return the group as a coordinator would hold it, or why it cannot exist, in words."""
    wanted = {topic for member in group.members for topic in member.topics}
    missing = sorted(wanted - group.listed.keys())
    if missing:
        return f"no listing has the partitions of {', '.join(missing)}"
    nameless = sorted(topic for topic in wanted if group.listed[topic][0] is None)
    if nameless:
        return f"no listing has the id of {', '.join(nameless)}, by which a coordinator orders topics"
    try:
        topics = {topic: _topic(*group.listed[topic]) for topic in sorted(wanted)}
        members = tuple(
            ServerMember(m.member_id, m.topics, tuple(_target(m.owned, topics)), m.group_instance_id)
            for m in group.members
        )
        return ServerGroup(members, topics)
    except (Fault, ValueError) as error:
        return f"the group cannot be: {error}"


def _topic(topic_id: str | None, partitions: int) -> Topic:
    return Topic(TopicId(uuid_bytes(topic_id or "")), partitions)


def _target(owned: Owned, topics: Mapping[str, Topic]) -> Iterator[tuple[TopicId, tuple[int, ...]]]:
    """Return a member's partitions of topics that still exist; a coordinator knows no id of the others."""
    for topic, places in groupby(sorted(owned), key=lambda place: place[0]):
        if topic in topics:
            numbers = tuple(number for _, number in places if number < topics[topic].partitions)
            if numbers:
                yield topics[topic].topic_id, numbers
