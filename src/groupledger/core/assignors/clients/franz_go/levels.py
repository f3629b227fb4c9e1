"""Even out a group as franz-go does: free partitions to the least loaded, then from the most loaded to the least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from groupledger.core.assignors.clients.franz_go.seats import NOBODY, Seats


@dataclass(slots=True)
class Levels:
    """Members by the number of partitions they hold, in the order in which they reached that number."""

    at: dict[int, list[int]] = field(default_factory=dict)

    @property
    def least(self) -> int:
        """Return the lowest level with a member."""
        return min(self.at)

    @property
    def most(self) -> int:
        """Return the highest level with a member."""
        return max(self.at)

    def add(self, member: int, level: int) -> None:
        """Add a member to a level."""
        self.at.setdefault(level, []).append(member)

    def remove(self, member: int, level: int) -> None:
        """Remove a member from its level: the last of the level fills its place; an empty level is deleted."""
        members = self.at[level]
        if member in members:
            place, last = members.index(member), members.pop()
            if last != member:
                members[place] = last
        if not members:
            del self.at[level]


def levels_of(seats: Seats) -> Levels:
    """Return all members on their levels."""
    levels = Levels()
    for member, held in enumerate(seats.held):
        levels.add(member, len(held))
    return levels


def hand_out(seats: Seats) -> None:
    """Give each free partition to the least loaded subscriber; a heap decides between equals.

    The heap is rebuilt for each topic, or built once if subscriptions are equal.
    """
    heap: list[int] = []
    heap_topic = NOBODY
    for partition in list(_free(seats)):
        topic = seats.topic_of[partition]
        if not seats.takers[topic]:
            continue
        if heap_topic == NOBODY or (topic != heap_topic and not seats.alike):
            heap_topic, heap = topic, list(seats.takers[topic])
            for place in reversed(range(len(heap) // 2)):
                _sink(heap, place, seats.held)
        seats.give(partition, heap[0])
        _sink(heap, 0, seats.held)


def _free(seats: Seats) -> Iterator[int]:
    return (partition for partition, owner in enumerate(seats.owner) if owner == NOBODY)


def _sink(heap: list[int], place: int, held: Sequence[Sequence[int]]) -> None:
    """Swap a member with the lighter of its two children, the left one if equal, while the child is lighter."""
    while True:
        below = [child for child in (2 * place + 1, 2 * place + 2) if child < len(heap)]
        if not below:
            return
        child = min(below, key=lambda at: len(held[heap[at]]))
        if len(held[heap[place]]) <= len(held[heap[child]]):
            return
        heap[place], heap[child] = heap[child], heap[place]
        place = child


def even_out(seats: Seats) -> None:
    """With equal subscriptions, pair members of the highest level with those of the lowest until the group is even.

    The more loaded member gives its highest partition number, over all topics.
    """
    levels = levels_of(seats)
    for held in seats.held:
        if len(held) > levels.least + 1:
            held.sort(key=lambda each: (seats.partitions[each].partition, seats.partitions[each].topic))
    while levels.most > levels.least + 1:
        low, high = levels.least, levels.most
        takers, givers = levels.at[low], levels.at[high]
        pairs = min(len(takers), len(givers))
        for taker, giver in zip(takers[:pairs], givers[:pairs], strict=True):
            seats.give(seats.held[giver].pop(), taker)
        up, down = takers[:pairs], givers[:pairs]
        del takers[:pairs], givers[:pairs]
        for level in (low, high):
            if not levels.at[level]:
                del levels.at[level]
        for member in up:
            levels.add(member, low + 1)
        for member in down:
            levels.add(member, high - 1)
