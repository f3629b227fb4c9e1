"""An ingest every so often, and `assign` after it: what the 200th costs beside the second, warm, in one session.

python -m benchmarks.scheduled_ingest [runs] [--samples 5] [--ledgers FOLDER] [--copied] [--whole]

Each run brings the next generations of the same 200 groups and of two new ones (1,000 records, 50 log partitions), and
assigns to the last snapshots. A ledger is kept as it was after the first run, and as it is after the last but one. Then
the second run and the third are done on copies of the one, and the last and one more on copies of the other, in turns:
seconds (wall, and of processors: this process, the JVM, its workers) are medians, jobs and files are as Spark counted
them. The first of two runs finds a ledger whose Delta logs the session has never read, as a job does that is started
each time; the second one finds what it has read, as `ingest --follow` does. With
FOLDER the two ledgers stay, are taken from there the next time, and are gone on with if they are not yet made.
`--copied` makes the past of the old ledger in a minute, of copies of one run (benchmarks/long_past.py): then the
last run but one is the first of the young ledger, and both ledgers get the same last one. `--whole` assigns to every
group, as if none had been assigned to.
`maintain` runs but once, on a copy at the end: how many files all runs left, and how many are left after it. The cause
is tested without a clock in `tests/pipeline/test_scheduled_ingests.py` and `test_touched.py`.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import psutil

from benchmarks.long_past import with_past
from groupledger.config import Config, LedgerSettings, SourceSettings, SparkSettings
from groupledger.core.history import log_partition_of
from groupledger.engine.session import session
from groupledger.pipeline.assign import assign
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import maintain
from groupledger.sinks.attempts import INGEST, read_commits
from groupledger.sinks.ledger_tables import LedgerLocation, init
from tests.core.history.records import Log, member

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import SparkSession

GROUPS, RECORDS, PARTITIONS = 200, 1_000, 50
TOLD_EVERY = 20
COMMANDS = ("ingest", "assign")
YOUNG, OLD, GROWING, COPYING = "young", "old", "growing", "copying"
KEPT = {"spark.sql.ui.retainedExecutions": "500", "spark.ui.retainedJobs": "1000"}
FILES_READ = "number of files read"


class Cost(NamedTuple):
    """What one run cost."""

    seconds: float
    processor: float
    jobs: int
    files: int
    stages: dict[str, float]


Costs = dict[tuple[str, str, int], list[Cost]]
"""By command, ledger, and whether it is the first run (0) or the second (1) on a copy."""


def main(runs: int, samples: int, ledgers: Path | None, *, copied: bool, whole: bool) -> None:
    """Print what the second and the last run cost, and the ratio of the last to the second."""
    with tempfile.TemporaryDirectory() as folder:
        schedule = Schedule(Path(folder), whole=whole)
        kept = ledgers or Path(folder)
        if not (kept / OLD).exists():
            (_copied if copied else _made)(schedule, kept, runs)
        firsts = {YOUNG: runs if copied else 2, OLD: runs}
        _tell_all(_measured(schedule, kept, firsts, samples), firsts, samples)
        maintained = Path(folder) / "maintained"
        shutil.copytree(kept / OLD, maintained)
        schedule.maintain(runs - 1, maintained)


def _measured(schedule: Schedule, kept: Path, firsts: Mapping[str, int], samples: int) -> Costs:
    """Two runs on a copy of each ledger, the first of them numbered as `firsts` says; one more of each to warm up."""
    costs: Costs = {}
    for sample in range(samples + 1):
        for name, first in firsts.items():
            copy = schedule.folder / f"{name}-{sample}"
            shutil.copytree(kept / name, copy)
            for number in (first, first + 1):
                for what, cost in schedule.run(number, copy).items():
                    if sample:  # the first warms the session
                        costs.setdefault((what, name, number - first), []).append(cost)
            shutil.rmtree(copy)
    return costs


def _tell_all(costs: Costs, firsts: Mapping[str, int], samples: int) -> None:
    for what in COMMANDS:
        for after, words in ((0, "new to the session"), (1, "known to the session")):
            young, old = (costs[what, name, after] for name in firsts)
            for (name, first), found in zip(firsts.items(), (young, old), strict=True):
                _tell(f"{what}, {name}: run {first + after}, ledger {words}, median of {samples}", found)
            wall = _median_ratio(old, young, lambda cost: cost.seconds)
            processor = _median_ratio(old, young, lambda cost: cost.processor)
            print(f"{what}, {OLD} / {YOUNG}, ledger {words}: {wall:.2f} (processor {processor:.2f})", flush=True)


def _made(schedule: Schedule, kept: Path, runs: int) -> None:
    """Both ledgers, by all runs but the last; those that an earlier call did, before it was stopped, are done."""
    ledger = kept / GROWING
    location = LedgerLocation(path=str(ledger))
    if not (kept / YOUNG).exists():
        shutil.rmtree(ledger, ignore_errors=True)
        init(schedule.spark, location)
    done = sum(commit.kind == INGEST for commit in read_commits(schedule.spark, location).commits)
    for number in range(done + 1, runs):
        told = number % TOLD_EVERY == 0
        cost = schedule.run(number, ledger, counted=told)
        if number == 1:
            shutil.copytree(ledger, kept / COPYING)
            (kept / COPYING).rename(kept / YOUNG)
        if told:
            for what in COMMANDS:
                _tell(f"{what}, run {number}, once", [cost[what]])
    ledger.rename(kept / OLD)


def _copied(schedule: Schedule, kept: Path, runs: int) -> None:
    """Both ledgers, by the last run but one, and copies of it."""
    young = LedgerLocation(path=str(kept / YOUNG))
    init(schedule.spark, young)
    schedule.run(runs - 1, kept / YOUNG)
    with_past(kept / YOUNG, kept / OLD, runs - 2)


def _median_ratio(old: list[Cost], young: list[Cost], of: Callable[[Cost], float]) -> float:
    return statistics.median(map(of, old)) / statistics.median(map(of, young))


def _tell(what: str, costs: list[Cost]) -> None:
    middle = sorted(costs, key=lambda cost: cost.seconds)[len(costs) // 2]
    seconds = statistics.median(cost.seconds for cost in costs)
    processor = statistics.median(cost.processor for cost in costs)
    stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in middle.stages.items())
    told = f"{seconds:.2f} s, processor {processor:.2f} s, {middle.jobs} jobs, {middle.files} files read"
    print(f"{what}: {told} ({stages})", flush=True)


class Schedule:
    """Ingests of new records and assigns, each into a ledger that had the ones before."""

    def __init__(self, folder: Path, *, whole: bool) -> None:
        self.folder, self.whole = folder, whole
        self.spark = session(SparkSettings(profile="small", conf=KEPT), "scheduled ingest")

    def run(self, number: int, ledger: Path, *, counted: bool = True) -> dict[str, Cost]:
        """One ingest of RECORDS new records, those of the run of that number, and one assign.

        To count the files it read takes as long as a small ingest.
        """
        path = self.folder / f"{number}.jsonl"
        path.write_text("".join(f"{line}\n" for line in _lines(number)), encoding="utf-8")
        source = SourceSettings(kind="offsets-jsonl", path=str(path))
        config = Config(cluster_id="bench", ledger=LedgerSettings(location=str(ledger)), sources=(source,))
        place, whole = LedgerLocation(path=str(ledger)), self.whole
        return {
            "ingest": self._cost(lambda call: ingest(self.spark, place, config, call).timings, counted=counted),
            "assign": self._cost(lambda call: assign(self.spark, config, call, whole=whole).timings, counted=counted),
        }

    def _cost(self, work: Callable[[Invocation], Mapping[str, float]], *, counted: bool) -> Cost:
        called = f"bench-{uuid4()}"
        invocation = Invocation(attempt_id=called, now=lambda: datetime.now(UTC), seconds=time.perf_counter)
        before = executions(self.spark) if counted else 0
        self.spark.sparkContext.setJobGroup(called, called)
        began, spent = time.perf_counter(), processor_seconds()
        stages = work(invocation)
        seconds, processor = time.perf_counter() - began, processor_seconds() - spent
        jobs = len(self.spark.sparkContext.statusTracker().getJobIdsForGroup(called))
        files = files_read(self.spark, before) if counted else 0
        return Cost(seconds, processor, jobs, files, dict(stages))

    def maintain(self, runs: int, ledger: Path) -> None:
        """Maintain it once, and print how many files its tables had before and have after."""
        config = Config(cluster_id="bench", ledger=LedgerSettings(location=str(ledger)))
        invocation = Invocation(attempt_id="maintain", now=lambda: datetime.now(UTC), seconds=time.perf_counter)
        began = time.perf_counter()
        tables = maintain(self.spark, LedgerLocation(path=str(ledger)), config, invocation).tables
        before, after = sum(each.before.files for each in tables), sum(each.after.files for each in tables)
        seconds = time.perf_counter() - began
        print(f"{runs} runs left {before:,} files in {len(tables)} tables, maintain {after:,}, in {seconds:.1f} s")


def _lines(number: int) -> Iterator[str]:
    """The records of a run: what a group had and where a log partition ended follows from the number alone."""
    offsets, generations = Counter[int](), Counter[str]()
    for each in range(1, number + 1):
        named = [f"group-{one}" for one in range(GROUPS - 2)] + [f"new-{each}-{one}" for one in range(2)]
        for at in range(RECORDS):
            group = named[at % GROUPS]
            partition = _partition(group)
            generations[group] += 1
            offsets[partition] += 1
            if each == number:
                yield _line(group, generations[group], partition, offsets[partition])


@cache
def _partition(group: str) -> int:
    return log_partition_of(group, PARTITIONS)


def _line(group: str, generation: int, partition: int, offset: int) -> str:
    row = Log(group).classic(generation, [member(f"{group}-m", {"clicks": (0, 1)})])
    assert row.key is not None
    assert row.value is not None
    return json.dumps(
        {
            "partition": partition,
            "offset": offset,
            "timestamp": 1_795_000_000_000 + 1_000 * offset,
            "key": b64encode(row.key).decode(),
            "value": b64encode(row.value).decode(),
        }
    )


def processor_seconds() -> float:
    """What this process, the JVM and its workers have taken of processors."""
    process = psutil.Process()
    return sum(sum(each.cpu_times()[:4]) for each in (process, *process.children(recursive=True)))


def executions(spark: SparkSession) -> int:
    """The number of the session's last query."""
    listed = _store(spark).executionsList()
    return max((int(listed.apply(at).executionId()) for at in range(listed.size())), default=-1)


def files_read(spark: SparkSession, since: int) -> int:
    """Files that all queries after that one opened, whatever table they are of."""
    found, store = 0, _store(spark)
    listed = store.executionsList()
    for execution in (listed.apply(at) for at in range(listed.size())):
        if execution.executionId() > since:
            values, metrics = store.executionMetrics(execution.executionId()), execution.metrics()
            for metric in (metrics.apply(at) for at in range(metrics.size())):
                value = values.get(metric.accumulatorId())
                if metric.name() == FILES_READ and value.isDefined():
                    found += int(value.get().replace(",", ""))
    return found


def _store(spark: SparkSession) -> Any:
    return spark._jsparkSession.sharedState().statusStore()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="an ingest every so often")
    parser.add_argument("runs", type=int, nargs="?", default=200)
    parser.add_argument("--samples", type=int, default=5)
    parser.add_argument("--ledgers", type=Path, help="an empty folder for the two ledgers, or one that has them")
    parser.add_argument("--copied", action="store_true", help="make the old ledger's past of copies")
    parser.add_argument("--whole", action="store_true", help="assign to every group")
    chosen = parser.parse_args()
    main(chosen.runs, chosen.samples, chosen.ledgers, copied=chosen.copied, whole=chosen.whole)
