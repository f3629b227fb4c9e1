"""What is known of a day without reading the log: a line of JSON for each act, and for each call of a listener.

`what` says which: `act` (the conductor does something to a group), `settled` (its group is quiet again), `call` (a
client's own listener), `described` (the coordinator's answer), `topic` (made, grown, deleted).
"""

from __future__ import annotations

import json
import threading
import time
from typing import IO, Any


def now_ms() -> int:
    """By the clock of the wall, which is the broker's too."""
    return time.time_ns() // 1_000_000


class Journal:
    """Lines in a file, from whatever thread."""

    def __init__(self, file: IO[str]) -> None:
        self._file, self._lock = file, threading.Lock()

    def write(self, what: str, **told: Any) -> None:
        """Write one line; without `ms` it is of now."""
        line = json.dumps({"what": what, "ms": now_ms()} | told)
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()
