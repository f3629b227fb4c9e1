"""Number one group as franz-go's sticky balancers do: members by instance and member id, partitions by topic.

Topics are numbered in the order of a Go map, which varies between calls. Here that order is a choice.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from groupledger.core.assignors.clients.choices import Choices
from groupledger.core.assignors.clients.plan import known_topics, static_first
from groupledger.core.custom.group import Group, Member, TopicPartition
from groupledger.core.wire.user_data import STICKY, UserDataForm, decode_user_data

NOBODY = -1


@dataclass(slots=True)
class Seats:
    """Members and partitions as numbers; `held` lists are in the library's order, in which it looks partitions up."""

    members: list[Member]
    partitions: list[TopicPartition]
    topic_of: list[int]  # of each partition
    takers: list[list[int]]  # of each topic, its subscribers
    held: list[list[int]]
    owner: list[int]  # of each partition, NOBODY if free
    came_with: list[int]  # of each partition, its previous owner
    stale: dict[int, int] = field(default_factory=dict)  # partition -> its claimant in an older generation

    @property
    def alike(self) -> bool:
        """Return whether every member subscribes to every topic."""
        return all(len(takers) == len(self.members) for takers in self.takers)

    def give(self, partition: int, to: int) -> None:
        """Hand out a free partition."""
        self.held[to].append(partition)
        self.owner[partition] = to

    def take(self, partition: int, holder: int) -> None:
        """Take a partition from a list: the last of the list fills its place."""
        mine = self.held[holder]
        last = mine.pop()
        if last != partition:
            mine[mine.index(partition)] = last


def seats_of(group: Group, cooperative: bool, choices: Choices) -> Seats:
    """Return the group with the claims that its members may keep."""
    members = sorted(group.members, key=static_first)
    topics = choices.order(sorted(known_topics(group)))
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(group.topics[topic])]
    place = {topic: at for at, topic in enumerate(topics)}
    takers = [[at for at, member in enumerate(members) if topic in member.topics] for topic in topics]
    nobody = [NOBODY] * len(partitions)
    topic_of = [place[topic] for topic, _ in partitions]
    seats = Seats(members, partitions, topic_of, takers, [[] for _ in members], nobody, list(nobody))
    for partition, claimants in enumerate(_claimants(seats, cooperative)):
        if claimants and claimants[0] in takers[topic_of[partition]]:
            seats.give(partition, claimants[0])
        if len(claimants) > 1:
            seats.stale[partition] = claimants[1]
    _return_to_stale(seats, choices)
    seats.came_with = list(seats.owner)
    return seats


def _claimants(seats: Seats, cooperative: bool) -> list[list[int]]:
    """Return each partition's claimant of the highest generation, then that of the next one or of the same."""
    number = {partition: at for at, partition in enumerate(seats.partitions)}
    latest: list[list[tuple[int, int]]] = [[] for _ in seats.partitions]
    for at, member in enumerate(seats.members):
        claimed, generation = _claim(member, cooperative)
        for each in claimed:
            known = latest[number[each]] if each in number else []
            if not known or generation > known[0][0]:
                known.insert(0, (generation, at))
            elif len(known) == 1 or generation > known[1][0]:
                known.insert(1, (generation, at))
            del known[2:]
    return [[at for _, at in known] for known in latest]


def _claim(member: Member, cooperative: bool) -> tuple[list[TopicPartition], int]:
    """Return a member's claims and their generation; 0 if not stated. Truncated bytes claim nothing."""
    if cooperative and member.generation is not None:
        return list(member.owned), member.generation
    sent = decode_user_data(member.user_data, STICKY)
    if not sent.states_owned or sent.form is UserDataForm.PREFIXED_OWNED_GENERATION:
        return [], 0
    if sent.form is UserDataForm.OWNED and sent.leftover:
        return [], 0
    owned = [TopicPartition(topic, number) for topic, numbers in sent.owned for number in numbers]
    return owned, max(sent.generation or 0, 0)


def _return_to_stale(seats: Seats, choices: Choices) -> None:
    """Give a partition back to the older claimant if no member may keep it, or if its owner has two more."""
    stale = [each for each, claimant in seats.stale.items() if claimant in seats.takers[seats.topic_of[each]]]
    for partition in choices.order(stale):
        claimant, owner = seats.stale[partition], seats.owner[partition]
        if owner == NOBODY:
            seats.give(partition, claimant)
        elif len(seats.held[claimant]) + 1 < len(seats.held[owner]):
            seats.take(partition, owner)
            seats.give(partition, claimant)
