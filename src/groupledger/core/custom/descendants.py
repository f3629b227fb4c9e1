"""Find and kill a process's descendants; on Linux by /proc, elsewhere by process group only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections import defaultdict
from pathlib import Path

_C = ctypes.CDLL(None)
_PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ENDED = ("Z", "X")
_MOST_SWEEPS, _PAUSE = 500, 0.002
"""A process that cannot be killed now (it waits for a disk) is left to the kernel after a second."""
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of Linux's prctl(2)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parents end, so that none is missed."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have this process killed when its parent ends."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError, OSError):  # not Linux
        _C.prctl(option, value, 0, 0, 0)


def descendants(root: int) -> dict[int, int]:
    """Map the process ids of running descendants to their memory in bytes."""
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for process in _PROC.glob("[0-9]*"):  # not "*/stat": whether that exists cannot be asked of a process that ends
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            # pid (name, any text) state parent ..: after the last bracket, the 22nd value counts resident pages
            values = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if values[0] not in _ENDED:
                children[int(values[1])].append((int(process.name), int(values[21]) * _PAGE))
    found: dict[int, int] = {}
    new = [root]
    while new:
        some = [each for parent in new for each in children.pop(parent, [])]
        found |= dict(some)
        new = [pid for pid, _ in some]
    return found


def end_all(root: int) -> None:
    """Kill what a process has started, including what starts meanwhile; the process itself continues."""
    for _ in range(_MOST_SWEEPS):
        if not (left := descendants(root)):
            return
        for pid in left:
            kill(pid)
        time.sleep(_PAUSE)


def reap() -> bool:
    """Reap all children that have ended; return whether others still run."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def kill(pid: int) -> None:
    """Send SIGKILL to a process and, if it leads one, to its group."""
    signal_group(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def signal_group(pid: int, number: signal.Signals) -> None:
    """Send a signal to all processes of the group that a process leads, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
