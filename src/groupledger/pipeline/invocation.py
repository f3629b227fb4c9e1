"""What an entry point hands down: who asked, and the only clock there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of a command. `run_id` is the orchestrator's, or None: then it is derived from the input.

    `now` gives the time of day with a zone, `seconds` a monotonic clock; `doing` is told each step, for a person.
    """

    attempt_id: str
    now: Callable[[], datetime]
    seconds: Callable[[], float]
    run_id: str | None = None
    doing: Callable[[str], None] = lambda _: None


@dataclass(slots=True)
class Timings:
    """Seconds by stage, in the order of the stages."""

    invocation: Invocation
    by_stage: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> Callable[[], float]:
        """The monotonic clock."""
        return self.invocation.seconds

    @contextmanager
    def stage(self, name: str, doing: str = "") -> Iterator[None]:
        """Add the time of the block to the stage; `doing` says it for a person, with what is known of its size."""
        if doing:
            self.invocation.doing(doing)
        began = self.seconds()
        try:
            yield
        finally:
            self.by_stage[name] = self.by_stage.get(name, 0.0) + self.seconds() - began
