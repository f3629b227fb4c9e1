"""Where a library walks a map or a set of no fixed order: each order it may walk in, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from groupledger.core.assignors.clients.plan import LeaderPlan
from groupledger.core.custom.group import Group

T = TypeVar("T")

MOST_RUNS = 720
"""Runs of an assignor at most: all orders of six topics."""

MOST_WORK = 500_000
"""Members and partitions that all runs together look at, at most: of large groups, few orders are tried."""


@dataclass(slots=True)
class Choices:
    """One way through all places where the order is open: the first `path` choices as told, the others the first."""

    path: tuple[int, ...] = ()
    taken: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    def pick(self, candidates: Sequence[T]) -> T:
        """The candidate that this way takes."""
        if len(candidates) == 1:
            return candidates[0]
        at = len(self.taken)
        self.taken.append(self.path[at] if at < len(self.path) else 0)
        self.open.append(len(candidates))
        return candidates[self.taken[-1]]

    def order(self, candidates: Sequence[T]) -> list[T]:
        """The candidates in the order that this way takes."""
        left = list(candidates)
        ordered: list[T] = []
        while left:
            chosen = self.pick(left)
            left.remove(chosen)
            ordered.append(chosen)
        return ordered

    def following(self) -> Choices | None:
        """The next way, the last choice varied first; None after the last one."""
        for at in reversed(range(len(self.taken))):
            if self.taken[at] + 1 < self.open[at]:
                return Choices((*self.taken[:at], self.taken[at] + 1))
        return None


def most_runs(group: Group) -> int:
    """How many runs a group of this size may take; one in any case."""
    return min(MOST_RUNS, 1 + MOST_WORK // (1 + len(group.members) + sum(group.topics.values())))


@dataclass(slots=True)
class PossiblePlans:
    """The distinct plans of all ways, of `most` ways where there are more; then `cut` is true after the last one."""

    assign: Callable[[Choices], LeaderPlan]
    most: int = MOST_RUNS
    cut: bool = False

    def __iter__(self) -> Iterator[LeaderPlan]:
        """Each plan once, in the order of the ways."""
        seen: list[LeaderPlan] = []
        choices = Choices()
        for _ in range(self.most):
            plan = self.assign(choices)
            if plan not in seen:
                seen.append(plan)
                yield plan
            following = choices.following()
            if following is None:
                return
            choices = following
        self.cut = True
