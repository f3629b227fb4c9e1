"""A grid of five assignors and twenty changes over all groups of a ledger, in one Spark job on two cores.

python -m benchmarks.grid_job [--groups 10000] [--members 3]

The ledger is that of `benchmarks.large_ledger`: each group reads a topic of six partitions, so what is timed is the
number of groups and cells more than the work in one of them. Told are the seconds of the command from shell to answer,
and of each of a million cells, a rebalance each.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from benchmarks.large_ledger import Extent, write

SNAPSHOTS = 3
ASSIGNORS = ["recorded", "range", "roundrobin", "sticky", "cooperative-sticky"]
Change = dict[str, int | str]
CHANGES: list[Change] = [
    {},
    {"members": 1},
    {"members": 2},
    {"members": 3},
    {"members": 10},
    {"members": -1},
    {"partitions": "x2"},
    {"partitions": "x3"},
    {"partitions": "x10"},
    {"partitions": "+1"},
    {"partitions": "+5"},
    {"lost_rack": "r1"},
    {"unsubscribe": "topic-3"},
    {"subscribe": "topic-3"},
    {"subscribe": "topic-5"},
    {"members": 1, "partitions": "x2"},
    {"members": -1, "partitions": "x2"},
    {"members": 4, "partitions": "x4"},
    {"members": 2, "subscribe": "topic-4"},
    {"subscribe": "topic-6", "partitions": "x2"},
]


def main(groups: int, members: int) -> None:
    """Print what the command says, and how long it took."""
    with tempfile.TemporaryDirectory() as temporary:
        ledger, grid = Path(temporary) / "ledger", Path(temporary) / "grid.yaml"
        write(ledger, Extent(groups, SNAPSHOTS, members))
        grid.write_text(yaml.safe_dump({"assignors": ASSIGNORS, "changes": CHANGES}))
        command = [sys.executable, "-m", "groupledger", "what-if", "--grid", str(grid), "--ledger", str(ledger)]
        began = time.perf_counter()
        subprocess.run([*command, "--wide"], check=True)  # noqa: S603 our own command line
        took = time.perf_counter() - began
    cells = groups * len(ASSIGNORS) * len(CHANGES)
    print(f"{groups:,} groups, {cells:,} cells: {took:.1f} s, {took / cells * 1e6:.1f} us a cell")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--groups", type=int, default=10_000)
    options.add_argument("--members", type=int, default=3, help="of each group: 1, 2, 3 or 6")
    given = options.parse_args()
    main(given.groups, given.members)
