"""From shell to answer, without a JVM: what a person waits for, against a process that only asks one query.

python -m benchmarks.answers LEDGER GROUP [--runs 10] [--fleet]

Each answer is a process of its own, `python -m groupledger ...`, and they take turns, so that whatever else the machine
does falls on all of them. The floor is a process that imports deltalake and counts the group's rows in one table of the
same ledger: no answer can be faster. Told are the median and the least of the seconds, the median of the processor's,
the median against the floor's, and the most memory of the process. `--fleet` asks about all groups, too.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from functools import partial

from benchmarks.timing import interleaved
from groupledger.answers.queries import literal, records
from groupledger.answers.reader import LedgerReader

FLOOR = "floor"
_COUNT = """\
import sys
from deltalake import DeltaTable, QueryBuilder
table, group = sys.argv[1:]
rows = QueryBuilder().register("t", DeltaTable(table))
rows.execute(f"SELECT count(*) AS n FROM t WHERE group_id = '{group}'").read_all()
"""
_LAST_CHANGE = (
    "SELECT t.topic, t.partition FROM current_ownership_changes t WHERE t.group_id = {} AND t.topic IS NOT NULL "
    "ORDER BY t.offset DESC, t.topic, t.partition LIMIT 1"
)
Spent = dict[str, list[tuple[float, float]]]
"""For each command and run: seconds of the processor, and the most memory in MiB."""


def main(ledger: str, group: str, runs: int, *, fleet: bool) -> None:
    """Print a line a command."""
    spent: Spent = {}
    asked = commands(ledger, group, fleet=fleet)
    things = {name: partial(_run, command, spent.setdefault(name, [])) for name, command in asked.items()}
    timed = interleaved(things, runs)
    least = next(each.median for each in timed if each.name == FLOOR)
    print(f"{'':10}{'median s':>10}{'least s':>9}{'cpu s':>8}{'of floor':>10}{'MiB':>6}")
    for each in timed:
        seconds, memory = zip(*spent[each.name], strict=True)
        cpu, ratio = statistics.median(seconds[-runs:]), each.median / least
        told = f"{each.median:>10.3f}{min(each.seconds):>9.3f}{cpu:>8.3f}{ratio:>10.1f}{max(memory):>6.0f}"
        print(f"{each.name:10}{told}")


def commands(ledger: str, group: str, *, fleet: bool) -> Mapping[str, list[str]]:
    """The command lines by name, the floor first."""
    [last] = records(LedgerReader(ledger), _LAST_CHANGE.format(literal(group)))
    partition, name = f"{last['topic']}-{last['partition']}", group.replace("'", "''")
    count = f"SELECT count(*) FROM current_rebalances WHERE group_id = '{name}'"  # noqa: S608 quoted
    answers = {
        "who": ["who", partition, group],
        "explain": ["explain", group],
        "show": ["show", group],
        "timeline": ["timeline", group],
        "sql": ["sql", count],
    }
    if fleet:
        answers |= {"audit": ["audit", "--since", "24h"], "storms": ["report", "storms"]}
    started = [sys.executable, "-m", "groupledger"]
    floor = {FLOOR: [sys.executable, "-c", _COUNT, f"{ledger}/group_snapshots", name]}
    return floor | {answer: [*started, *words, "--ledger", ledger] for answer, words in answers.items()}


def _run(command: list[str], spent: list[tuple[float, float]]) -> None:
    """Run it to its end; RuntimeError where it gives no answer."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)  # noqa: S603 our own command line
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        message = f"{' '.join(command)} ended with {process.returncode}"
        raise RuntimeError(message)
    spent.append((used.ru_utime + used.ru_stime, used.ru_maxrss / 1024))


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("ledger")
    options.add_argument("group")
    options.add_argument("--runs", type=int, default=10)
    options.add_argument("--fleet", action="store_true", help="audit of the last day and report storms, too")
    given = options.parse_args()
    main(given.ledger, given.group, given.runs, fleet=given.fleet)
