"""Processes that a process has started, and those that these have; on Linux by /proc, elsewhere by group alone."""

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
"""One that cannot be killed now (it waits for a disk) is left to the kernel after a second."""
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of Linux' prctl(2)


def adopt_orphans() -> None:
    """Become the parent of descendants whose own parents end, so that none is lost."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def end_with_parent() -> None:
    """Have this process killed when its parent ends."""
    _prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(AttributeError, OSError):  # no Linux
        _C.prctl(option, value, 0, 0, 0)


def descendants(root: int) -> dict[int, int]:
    """Memory in bytes by process id, of those that have not ended."""
    children: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for entry in _PROC.glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended meanwhile
            # pid (name, any text) state parent ..: after the last bracket, the 22nd value is the resident pages
            values = entry.read_text(errors="replace").rpartition(")")[2].split()
            if values[0] not in _ENDED:
                children[int(values[1])].append((int(entry.parent.name), int(values[21]) * _PAGE))
    found: dict[int, int] = {}
    new = [root]
    while new:
        some = [each for parent in new for each in children.pop(parent, [])]
        found |= dict(some)
        new = [pid for pid, _ in some]
    return found


def end_all(root: int) -> None:
    """Kill what a process has started, whatever of it starts more meanwhile; the process itself goes on."""
    for _ in range(_MOST_SWEEPS):
        if not (left := descendants(root)):
            return
        for pid in left:
            kill(pid)
        time.sleep(_PAUSE)


def reap() -> bool:
    """Take leave of all children that have ended; whether others go on."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def kill(pid: int) -> None:
    """SIGKILL to a process and to its group, if it leads one."""
    signal_group(pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def signal_group(pid: int, number: signal.Signals) -> None:
    """A signal to all processes of the group that a process leads, at once."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
