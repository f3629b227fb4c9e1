"""What an entry point hands down: who asked, and the only clock there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """One call of a command. `run_id` is the orchestrator's, or None: then it is derived from the input.

    `now` gives the time of day with a zone, `seconds` a monotonic clock.
    """

    attempt_id: str
    now: Callable[[], datetime]
    seconds: Callable[[], float]
    run_id: str | None = None


@dataclass(slots=True)
class Timings:
    """Seconds by stage, in the order of the stages."""

    seconds: Callable[[], float]
    by_stage: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of the block to the stage."""
        began = self.seconds()
        try:
            yield
        finally:
            self.by_stage[name] = self.by_stage.get(name, 0.0) + self.seconds() - began
