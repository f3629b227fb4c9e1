"""Measure our assignors and their peers on the same groups, one after another, and print a Markdown table.

python -m benchmarks.assignors [--small] [case ..]

CPU time of one thread, warm, the median of the counted rounds. `kernel` is integers in, integers out; `whole` what a
worker of `assign` runs on its buckets (`engine.buckets.compute`): strings in, result rows out, with the step of each
member, the verdict and the counts of each group. The kernel is timed after it, in a process that has decoded tables,
as workers have. Java's and Go's input lies ready as their own objects; Java's time is its thread's
and its collector's, Go's its process's. Java's answers are compared with ours, list for list.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("GROUPLEDGER_KERNELS", "numba")

import pyarrow as pa

from benchmarks.assignors.cases import CASES, Case
from benchmarks.assignors.groups import buckets, digest, run_worker, write
from benchmarks.assignors.memory import bytes_a_partition
from benchmarks.assignors.peers import Peer, franz_go, kafka
from benchmarks.assignors.soundness import sound
from groupledger.core.assignors import assign

ROUNDS = 3
WARM_UP = 2.0
"""CPU seconds; at least one call."""


@dataclass(frozen=True, slots=True)
class Row:
    """One case, seconds a call (a group, where a batch is told by the group); None: not run."""

    case: Case
    kernel: float
    whole: float
    java: float | None
    franz_go: float | None
    equal: bool | None  # to Java's answer
    sound: bool = True  # what must hold does, where there is no such answer

    def cells(self) -> list[str]:
        """The row of the table."""
        times = [self.kernel, self.whole, self.java, self.franz_go]
        ratios = [_ratio(peer, ours) for peer in (self.java, self.franz_go) for ours in (self.kernel, self.whole)]
        alone = "sound" if self.sound else "UNSOUND"
        equal = {None: alone, True: "equal", False: "DIFFERS"}[self.equal]
        return [self.case.title, *map(_milliseconds, times), *ratios, self.case.goal, equal]


HEAD = (
    *("groups", "kernel ms", "whole ms", "Java ms", "franz-go ms"),
    *("Java / kernel", "Java / whole", "franz-go / kernel", "franz-go / whole", "goal", "lists, to Java's"),
)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


HEAD_LINES = (_line(HEAD), "|---" + "|--:" * (len(HEAD) - 3) + "|---|---|")


def main(arguments: argparse.Namespace) -> int:
    """Print the table, then the memory."""
    pa.set_cpu_count(1)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        peers = kafka(scratch), franz_go(scratch)
        chosen = [each for each in CASES if not arguments.cases or each.name in arguments.cases]
        print(*HEAD_LINES, sep="\n", flush=True)
        rows = [_told(_measure(case, peers, scratch, arguments.small)) for case in chosen]
        if not arguments.cases or "memory" in arguments.cases:
            for line in bytes_a_partition(scratch, arguments.small):
                print(line)
    return 1 if any(row.equal is False or not row.sound for row in rows) else 0


def _measure(case: Case, peers: Iterable[Peer], scratch: Path, small: bool) -> Row:
    print(f"{case.name} ..", file=sys.stderr, flush=True)
    groups = case.make(20 if small else 1)
    rows, scale = buckets(groups, case.assignor), groups.batch.groups if case.by_group else 1
    whole = _ours(lambda: run_worker(rows, scratch), small) / scale
    kernel = _ours(lambda: assign(case.assignor, groups.batch), small) / scale
    if not case.peers:
        return Row(
            case, kernel, whole, None, None, None, sound=sound(groups.batch, assign(case.assignor, groups.batch))
        )
    write(groups, scratch / case.name)
    warm_up, rounds = (0.2, 2) if small else (WARM_UP, ROUNDS)
    told = [peer.measure(scratch / case.name, case.assignor, warm_up, rounds) for peer in peers]
    java, go = (statistics.median(each.seconds) / scale for each in told)
    return Row(case, kernel, whole, java, go, told[0].digest == digest(assign(case.assignor, groups.batch)))


def _ours(call: Callable[[], object], small: bool) -> float:
    """CPU seconds, the median of the rounds after the warm-up."""
    began = time.process_time()
    call()
    while time.process_time() - began < (0.1 if small else WARM_UP / 3):
        call()
    seconds = []
    for _ in range(2 if small else ROUNDS):
        before = time.process_time()
        call()
        seconds.append(time.process_time() - before)
    return statistics.median(seconds)


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:,.0f}" if seconds >= 0.1 else f"{seconds * 1e3:.3g}"


def _ratio(peer: float | None, ours: float) -> str:
    if peer is None:
        return "-"
    return f"{peer / ours:,.0f}" if peer >= 9.95 * ours else f"{peer / ours:.1f}"


def _told(row: Row) -> Row:
    print(_line(row.cells()), flush=True)
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="our assignors against Kafka's and franz-go's")
    parser.add_argument("--small", action="store_true", help="groups a twentieth as large, two rounds: only a trial")
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(case.name for case in CASES)}, memory; all without")
    raise SystemExit(main(parser.parse_args()))
