"""Inject faults into every boundary of ingest and assign, run again, compare: nothing lost, nothing doubled.

python -m tests.faults [--kills 26] [--row 6] [--most 0] [--minutes 120] [--commits 20000] [--only PART] [--table runs]

First two JVMs write the same commits (`--only commits --unlocked` shows what the lock is for). Then, in `--minutes`,
faults are raised in one warm session; beside it, files are damaged and processes of their own really killed. Every
fault is printed with what became of it. Two parts run only when they are asked for: `others` says what a re-run costs,
and that order, partitions, planning and hash seeds change nothing; `poison` what becomes of groups that nobody should
meet. Ends with status 1 where anything was lost, doubled or different, 2 where the time was not enough for all.
Nothing here needs a privilege: a full or read-only disk is a Hadoop file system that says so (tests/faults/java), and
a limit of the kernel on the size of files for the processes that meet a real one.
"""

from __future__ import annotations

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.faults.parts import COMMITS, DEATHS, EXECUTORS, FAULTS, PARTS, Account, judged, part


def main(arguments: argparse.Namespace) -> int:
    """Run the catalogue, or a part of it; print each fault, and the account."""
    contended = Account() if arguments.only else part(COMMITS, arguments)
    arguments.ends_at = time.monotonic() + 60 * arguments.minutes
    if arguments.only:
        return judged(part(arguments.only, arguments))
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as beside:
        others = [beside.submit(part, name, arguments) for name in (DEATHS, EXECUTORS)]
        return judged(sum((other.result() for other in others), contended + part(FAULTS, arguments)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="faults over every boundary of ingest and assign")
    parser.add_argument("--kills", type=int, default=26, help="processes that are killed")
    parser.add_argument("--row", type=int, default=6, help="faults that one run again after the other meets")
    parser.add_argument("--most", type=int, default=0, help="rows of faults in the warm session; 0: all")
    parser.add_argument("--minutes", type=float, default=120, help="for all but the commits")
    parser.add_argument("--commits", type=int, default=20_000, help="versions that two JVMs write at once")
    parser.add_argument("--unlocked", action="store_true", help="let them do it without the lock")
    parser.add_argument("--table", help="of faults and deaths, those at files of this table alone")
    parser.add_argument("--only", choices=PARTS, help="a part; without it the first four")
    raise SystemExit(main(parser.parse_args()))
