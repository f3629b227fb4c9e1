"""Peak memory of one call over its input and output, in a process that has warmed up on a small group.

python -m benchmarks.assignors.memory <file of rows> <file of small rows>
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import feather

from benchmarks.assignors.groups import alike, one_more, table
from groupledger.engine.arrow_groups import assign_groups


def bytes_a_partition(scratch: Path, small: bool) -> list[str]:
    """A line for each of fresh and one more, 2,000 members x 1M partitions."""
    size = 100 if small else 2_000
    feather.write_feather(table(one_more(alike(3, 20, 20, 50))), scratch / "small.arrow", compression="uncompressed")
    lines = []
    for title, groups in (("fresh", alike(1, size, size, 500)), ("one more", one_more(alike(1, size, size, 500)))):
        feather.write_feather(table(groups), scratch / "rows.arrow", compression="uncompressed")
        command = [sys.executable, "-m", "benchmarks.assignors.memory", "rows.arrow", "small.arrow"]
        files = [str(scratch / name) for name in command[3:]]
        done = subprocess.run([*command[:3], *files], capture_output=True, text=True, check=True)  # noqa: S603 own words
        peak = int(done.stdout) / (size * 500)
        lines.append(f"Peak memory over input and output, {size * 500:,} partitions, {title}: {peak:.0f} bytes each")
    return lines


def _peak_bytes(rows: Path, small: Path) -> int:
    """Highest resident size during the call, less that before it and the answer's bytes."""
    assign_groups("cooperative-sticky", feather.read_table(small, memory_map=False))
    groups = feather.read_table(rows, memory_map=False)
    pa.default_memory_pool().release_unused()
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = _status("VmRSS")
    answers = assign_groups("cooperative-sticky", groups)
    return _status("VmHWM") - before - int(answers.nbytes)


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text(encoding="ascii")
    found = re.search(rf"^{name}:\s+(\d+) kB$", text, re.MULTILINE)
    assert found is not None
    return int(found[1]) * 1024


if __name__ == "__main__":
    print(_peak_bytes(*map(Path, sys.argv[1:])))
