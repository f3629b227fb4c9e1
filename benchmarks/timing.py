"""Interleaved measurements and how they are told: least, median, and the ratio of medians."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timed:
    """Seconds of each repetition of one thing, in order."""

    name: str
    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """The figure to quote."""
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        each = ", ".join(f"{one:.2f}" for one in self.seconds)
        return f"{self.name}: median {self.median:.2f} s, least {min(self.seconds):.2f} s ({each})"


def interleaved(
    things: Mapping[str, Callable[[], None]],
    runs: int,
    warm_up: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> list[Timed]:
    """Run all things in turn, A B A B ..., `warm_up` rounds that do not count and `runs` that do."""
    seconds: dict[str, list[float]] = {name: [] for name in things}
    for round_number in range(warm_up + runs):
        for name, thing in things.items():
            began = clock()
            thing()
            if round_number >= warm_up:
                seconds[name].append(clock() - began)
    return [Timed(name, tuple(times)) for name, times in seconds.items()]
