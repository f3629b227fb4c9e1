"""Memory of Spark's Python workers, as Linux counts it."""

from __future__ import annotations

from pathlib import Path

_DAEMON = b"pyspark.daemon"
_KIB_A_MIB = 1024


def peak_mebibytes() -> float:
    """The most memory that a Python worker of a live session ever had resident. 0 where there is no worker."""
    return max((_peak(each) for each in Path("/proc").iterdir() if _is_worker(each)), default=0) / _KIB_A_MIB


def _is_worker(process: Path) -> bool:
    try:
        return process.name.isdigit() and _DAEMON in (process / "cmdline").read_bytes()
    except OSError:  # ended meanwhile
        return False


def _peak(process: Path) -> int:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM:")), 0)
