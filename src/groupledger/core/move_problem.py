"""State how few partitions of one group must move as a problem, and solve it greedily, without a search.

Partitions are told apart only by who subscribes to their topic (a "class") and by who holds them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import NamedTuple

MOST_LOOKS = 500_000
"""Arcs x steps of `kept_by_repair`: about a tenth of a second."""


class Class(NamedTuple):
    """Partitions of topics that the same members subscribe to."""

    partitions: int
    kinds: tuple[int, ...]


class SharedHolding(NamedTuple):
    """Partitions of one class that the same members hold: one, or several with conflicting claims."""

    of_class: int
    members: tuple[int, ...]
    partitions: int


@dataclass(frozen=True, slots=True)
class MoveProblem:
    """One group. A member's kind is its subscription; classes and members are numbered from 0."""

    kinds: tuple[int, ...]  # of each member
    classes: tuple[Class, ...]
    holdings: tuple[SharedHolding, ...]

    @property
    def partitions(self) -> int:
        """Return the number of all partitions."""
        return sum(each.partitions for each in self.classes)

    @property
    def held(self) -> int:
        """Return the number of partitions with a holder that may keep them."""
        return sum(each.partitions for each in self.holdings)

    @property
    def arcs(self) -> int:
        """Count the pairs of a class and a subscribing member, and of a holding and a holder."""
        return sum(self.subscribers) + sum(len(each.members) for each in self.holdings)

    @property
    def switches(self) -> int:
        """Count the pairs of a class and a kind, in classes that several kinds subscribe to: what a search decides."""
        return sum(len(each.kinds) for each in self.classes if len(each.kinds) > 1)

    @property
    def subscribers(self) -> list[int]:
        """Count the members that subscribe to each class."""
        size = Counter(self.kinds)
        return [sum(size[kind] for kind in each.kinds) for each in self.classes]


def kept_by_repair(problem: MoveProblem) -> int | None:
    """Count what a greedy balanced assignment keeps: all stay, then some move until no member has two more.

    Each step moves the cheapest partitions, and lowers the sum of the squares of the loads. None: it takes
    too many steps. 4 partitions with A, B new -> 2 move, 2 are kept.
    """
    steps = MOST_LOOKS // max(problem.arcs, 1)
    load = [0] * len(problem.kinds)
    subscribers = [
        [member for member, kind in enumerate(problem.kinds) if kind in each.kinds] for each in problem.classes
    ]
    items = _items(problem)
    placed: list[dict[int, int]] = []
    for of_class, holders, partitions in items:
        member = min(holders or subscribers[of_class], key=lambda at: (load[at], at))
        placed.append({member: partitions})
        load[member] += partitions
    for _ in range(steps):
        step = _cheapest(items, placed, [min(each, key=lambda at: (load[at], at)) for each in subscribers], load)
        if step is None:
            return sum(
                count
                for item, having in zip(items, placed, strict=True)
                for member, count in having.items()
                if member in item.members
            )
        item, source, target = step
        count = min(placed[item][source], (load[source] - load[target]) // 2)
        placed[item][source] -= count
        placed[item][target] = placed[item].get(target, 0) + count
        load[source] -= count
        load[target] += count
    return None


def _items(problem: MoveProblem) -> list[SharedHolding]:
    """List the holdings, and the unheld partitions of each class."""
    free = [each.partitions for each in problem.classes]
    for of_class, _, partitions in problem.holdings:
        free[of_class] -= partitions
    return [*problem.holdings, *(SharedHolding(at, (), count) for at, count in enumerate(free) if count > 0)]


def _cheapest(
    items: list[SharedHolding], placed: list[dict[int, int]], lightest: list[int], load: list[int]
) -> tuple[int, int, int] | None:
    """Find the cheapest step, among equals the one between the most unequal loads: item, from, to."""
    best: tuple[int, int, int, int, int] | None = None
    for number, (item, having) in enumerate(zip(items, placed, strict=True)):
        target = lightest[item.of_class]
        for source, count in having.items():
            gap = load[source] - load[target]
            if count > 0 and gap > 1:
                cost = (source in item.members) - (target in item.members)
                rank = cost, -gap, number, source, target
                best = rank if best is None else min(best, rank)
    return None if best is None else best[2:]
