"""What is due, and when: a clock that jumps from one due moment to the next."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from heapq import heappop, heappush

from groupledger.core.protocol.leader import Plan, Question

AskingPlans = Generator[Question, Plan, None]
"""Something that goes on once its questions are answered."""
Act = Callable[[], AskingPlans | None]


@dataclass(slots=True)
class Due:
    """One thing that is to happen, unless it is called off."""

    at_ms: int
    act: Act
    called_off: bool = False

    def call_off(self) -> None:
        """It does not happen."""
        self.called_off = True


class Agenda:
    """Due moments by time; those of one millisecond in the order in which they were noted."""

    def __init__(self) -> None:
        self.now_ms = 0
        self._noted = 0
        self._waiting: list[tuple[int, int, Due]] = []

    def at(self, at_ms: int, act: Act) -> Due:
        """Note something; what should have been already is due at once."""
        due = Due(max(at_ms, self.now_ms), act)
        self._noted += 1
        heappush(self._waiting, (due.at_ms, self._noted, due))
        return due

    def after(self, wait_ms: int, act: Act) -> Due:
        """Note something for so many milliseconds from now."""
        return self.at(self.now_ms + wait_ms, act)

    def next_ms(self) -> int | None:
        """When something is due next; None: never."""
        while self._waiting and self._waiting[0][2].called_off:
            heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    def take(self) -> Act:
        """What is due next; the clock stands there. Only if `next_ms` says that there is something."""
        at_ms, _, due = heappop(self._waiting)
        self.now_ms = max(self.now_ms, at_ms)
        return due.act
