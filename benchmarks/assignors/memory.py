"""Peak memory of one call over its input and output, in a process that has warmed up on a small group.

python -m benchmarks.assignors.memory <file of buckets> <file of small buckets>
"""

from __future__ import annotations

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa

from benchmarks.assignors.groups import Buckets, Groups, alike, buckets, one_more
from groupledger.engine.buckets import compute

ASSIGNOR = "cooperative-sticky"


def bytes_a_partition(scratch: Path, small: bool) -> list[str]:
    """A line for each of fresh and one more, 2,000 members x 1M partitions."""
    size = 100 if small else 2_000
    _write(one_more(alike(3, 20, 20, 50)), scratch / "small.pickle")
    lines = []
    for title, groups in (("fresh", alike(1, size, size, 500)), ("one more", one_more(alike(1, size, size, 500)))):
        _write(groups, scratch / "buckets.pickle")
        command = [sys.executable, "-m", "benchmarks.assignors.memory", "buckets.pickle", "small.pickle"]
        files = [str(scratch / name) for name in command[3:]]
        done = subprocess.run([*command[:3], *files], capture_output=True, text=True, check=True)  # noqa: S603 own words
        peak = int(done.stdout) / (size * 500)
        lines.append(f"Peak memory over input and output, {size * 500:,} partitions, {title}: {peak:.0f} bytes each")
    return lines


def _write(groups: Groups, file: Path) -> None:
    file.write_bytes(pickle.dumps(buckets(groups, ASSIGNOR), protocol=5))


def _read(file: Path) -> Buckets:
    found = pickle.loads(file.read_bytes())  # noqa: S301 our own file
    assert isinstance(found, Buckets)
    return found


def _peak_bytes(large: Path, small: Path) -> int:
    """Highest resident size during the call, less that before it and the answer's bytes."""
    _compute_all(_read(small))
    given = _read(large)
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = _status("VmRSS")
    answered = sum(int(rows.nbytes) for each in _compute_all(given) for rows in each.values())
    return _status("VmHWM") - before - answered


def _compute_all(given: Buckets) -> list[dict[str, pa.Table]]:
    return [compute(each, given.calculation) for each in given.tables]


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    print(_peak_bytes(*map(Path, sys.argv[1:])))
