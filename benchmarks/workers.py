"""Memory of a session: of its Python workers, and of all its processes together."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

MIB = 2**20
LOOKS_A_SECOND = 4
_WORKER = "pyspark.worker"  # what every daemon of workers is told to run
_KIB_A_MIB = 1024


def peak_mebibytes() -> float:
    """The most memory that a Python worker of a live session ever had resident, as Linux counts it. 0 without one."""
    found = (_peak(each.pid) for each in psutil.process_iter() if _is_worker(each))
    return max(found, default=0) / _KIB_A_MIB


@dataclass(slots=True)
class Peak:
    """Most bytes seen: of all processes of a tree together, and of one Python worker.

    A page that several processes share, as the daemon's workers do, counts for each by its part.
    """

    together: int = 0
    worker: int = 0

    def look(self, process: psutil.Process) -> None:
        """Once."""
        sizes = {each: _resident(each) for each in (process, *process.children(recursive=True))}
        self.together = max(self.together, sum(sizes.values()))
        workers = (size for each, size in sizes.items() if size > self.worker and _is_worker(each))
        self.worker = max(workers, default=self.worker)

    def __str__(self) -> str:
        return f"most memory at once: {self.together / MIB:.0f} MiB, of a worker {self.worker / MIB:.0f} MiB"


@contextmanager
def watched(process: psutil.Process) -> Iterator[Peak]:
    """The peak of a process and its children while the block runs."""
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(1 / LOOKS_A_SECOND):
            peak.look(process)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
    finally:
        over.set()
        watcher.join()


def _is_worker(process: psutil.Process) -> bool:
    try:
        return _WORKER in process.cmdline()
    except psutil.Error:  # ended meanwhile
        return False


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except psutil.Error:
        return 0


def _peak(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
