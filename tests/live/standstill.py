"""What is played with clients and their broker while everything stands still: a machine that sleeps, stopped processes.

Every timeout runs out in that time, at once and in no order, and that says nothing of the group.
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

SECONDS = 3.0
"""So long nothing ran here: half of the shortest session."""
MOST = 3
"""Standstills of one sequence; more are somebody's doing."""
BEAT_SECONDS = 0.1


class Pulse:
    """Use it in a `with`: `longest` is the longest time in which this process did not run, in seconds."""

    def __init__(self) -> None:
        self._longest, self._last = 0.0, time.monotonic()
        self._ended = threading.Event()
        self._beating = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Self:
        self._beating.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._beating.join()

    @property
    def longest(self) -> float:
        """Until now: whoever asks may go on before the thread that beats does."""
        return max(self._longest, time.monotonic() - self._last)

    def _beat(self) -> None:
        while not self._ended.wait(BEAT_SECONDS):
            self._longest, self._last = self.longest, time.monotonic()


def play_undisturbed(play: Callable[[str], None], name: str) -> None:
    """Play under a name of its own. What failed while everything stood still is played anew, and nothing else is."""
    for number in range(MOST + 1):
        with Pulse() as pulse:
            try:
                play(f"{name}-{number}")
            except (AssertionError, subprocess.TimeoutExpired):
                if pulse.longest < SECONDS or number == MOST:
                    raise
            else:
                return
