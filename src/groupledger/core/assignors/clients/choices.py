"""Enumerate the orders in which a library may iterate over a map or a set without a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from groupledger.core.assignors.clients.plan import LeaderPlan
from groupledger.core.custom.group import Group

T = TypeVar("T")

MOST_RUNS = 720
"""Maximum runs of an assignor: all orders of six topics."""

MOST_WORK = 500_000
"""Maximum number of members and partitions that all runs together process: large groups get fewer orders."""


@dataclass(slots=True)
class Choices:
    """One run through all open choices: `path` decides the first ones; the others take the first candidate."""

    path: tuple[int, ...] = ()
    taken: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    def pick(self, candidates: Sequence[T]) -> T:
        """Return the candidate that this run takes."""
        if len(candidates) == 1:
            return candidates[0]
        at = len(self.taken)
        self.taken.append(self.path[at] if at < len(self.path) else 0)
        self.open.append(len(candidates))
        return candidates[self.taken[-1]]

    def order(self, candidates: Sequence[T]) -> list[T]:
        """Return the candidates in the order that this run takes."""
        left = list(candidates)
        ordered: list[T] = []
        while left:
            chosen = self.pick(left)
            left.remove(chosen)
            ordered.append(chosen)
        return ordered

    def following(self) -> Choices | None:
        """Return the next run, which varies the last choice first; None after the last one."""
        for at in reversed(range(len(self.taken))):
            if self.taken[at] + 1 < self.open[at]:
                return Choices((*self.taken[:at], self.taken[at] + 1))
        return None


def most_runs(group: Group) -> int:
    """Return how many runs a group of this size may take, at least one."""
    return min(MOST_RUNS, 1 + MOST_WORK // (1 + len(group.members) + sum(group.topics.values())))


@dataclass(slots=True)
class PossiblePlans:
    """The distinct plans of all runs, at most `most` runs; `cut` is true at the end if there were more."""

    assign: Callable[[Choices], LeaderPlan]
    most: int = MOST_RUNS
    cut: bool = False

    def __iter__(self) -> Iterator[LeaderPlan]:
        """Yield each plan once, in the order of the runs."""
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
