"""Even out a group with different subscriptions as franz-go does: take a partition through a chain of members.

A wants what B holds, B wants what C holds, and C has two more than A: C gives to B, and B to A.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.assignors.clients.franz_go.levels import levels_of
from groupledger.core.assignors.clients.franz_go.seats import Seats


class Theft(NamedTuple):
    """One partition of a chain, from its owner to the member that wants it."""

    source: int
    to: int
    partition: int


@dataclass(slots=True)
class Market:
    """Which partitions of each topic each member holds: owners in the order in which they first held one."""

    seats: Seats
    offers: list[dict[int, list[int]]]  # topic -> owner -> partitions

    def trade(self, step: Theft) -> None:
        """Move a partition; the last of its owner's list fills its place."""
        seats, offers = self.seats, self.offers[self.seats.topic_of[step.partition]]
        mine = offers[step.source]
        last = mine.pop()
        if last != step.partition:
            mine[mine.index(step.partition)] = last
        offers.setdefault(step.to, []).append(step.partition)
        seats.take(step.partition, step.source)
        seats.give(step.partition, step.to)

    def chain(self, member: int) -> list[Theft]:
        """Return the steps to a member with two more, the most loaded first; none if this one can get no more."""
        seats = self.seats
        base = len(seats.held[member])
        reached: dict[int, Theft | None] = {member: None}
        heap = [(-base, 0, member)]
        while heap:
            load, distance, current = heapq.heappop(heap)
            if -load > base + 1:
                return self._back(current, reached)
            for topic, takers in enumerate(seats.takers):
                if current not in takers:
                    continue
                for owner, partitions in self.offers[topic].items():
                    if partitions and owner not in reached:
                        reached[owner] = Theft(owner, current, partitions[0])
                        heapq.heappush(heap, (-len(seats.held[owner]), distance + 1, owner))
        return []

    def _back(self, last: int, reached: dict[int, Theft | None]) -> list[Theft]:
        steps: list[Theft] = []
        step = reached[last]
        while step is not None:
            steps.append(step)
            step = reached[step.to]
        return steps


def market_of(seats: Seats) -> Market:
    """Return everything that is held."""
    offers: list[dict[int, list[int]]] = [{} for _ in seats.takers]
    for partition, owner in enumerate(seats.owner):
        if owner >= 0:
            offers[seats.topic_of[partition]].setdefault(owner, []).append(partition)
    return Market(seats, offers)


def steal(seats: Seats) -> None:
    """Let members of the lowest level take what they can; a member that can take nothing is out from then on."""
    market, levels = market_of(seats), levels_of(seats)
    while len(levels.at) > 1 and levels.most > levels.least + 1:
        low, high = levels.least, levels.most
        members, richest = levels.at[low], levels.at[high]
        while members and richest:
            steps = market.chain(members[0])
            if not steps:
                levels.remove(members[0], low)
            for step in steps:
                before = len(seats.held[step.source]), len(seats.held[step.to])
                market.trade(step)
                levels.remove(step.source, before[0])
                levels.add(step.source, before[0] - 1)
                levels.remove(step.to, before[1])
                levels.add(step.to, before[1] + 1)
