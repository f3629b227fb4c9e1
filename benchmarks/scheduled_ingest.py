"""An ingest every so often: what the 200th of 1,000 new records costs beside the second, in one session.

python -m benchmarks.scheduled_ingest [runs]

Each run brings the next generations of the same 200 groups and of two new ones, in 50 log partitions. A figure is the
median of a run and its neighbours; jobs and files are those of the run itself, as Spark counted them. The cause is
tested without a clock in `tests/pipeline/test_scheduled_ingests.py`.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from groupledger.config import Config, LedgerSettings, SourceSettings, SparkSettings
from groupledger.core.history import log_partition_of
from groupledger.engine.session import session
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger import LedgerLocation, init
from tests.core.history.records import Log, member

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS, RECORDS, PARTITIONS = 200, 1_000, 50
LISTED = (2, 50, 100, 200)
NEIGHBOURS = 2
KEPT = {"spark.sql.ui.retainedExecutions": "500", "spark.ui.retainedJobs": "1000"}
FILES_READ = "number of files read"


class Cost(NamedTuple):
    """What one run cost."""

    seconds: float
    jobs: int
    files: int
    stages: dict[str, float]


def main(runs: int) -> None:
    """Print the runs of LISTED and the last, and the ratio of the last to the second."""
    with tempfile.TemporaryDirectory() as folder:
        schedule = Schedule(Path(folder))
        costs = [schedule.run(number) for number in range(1, runs + 1)]
    shown = sorted({number for number in (*LISTED, runs) if number <= runs})
    medians = {number: _median(costs, number) for number in shown}
    for number in shown:
        cost = costs[number - 1]
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in cost.stages.items())
        print(f"run {number}: {medians[number]:.2f} s, {cost.jobs} jobs, {cost.files} files read ({stages})")
    print(f"run {runs} / run 2: {medians[runs] / medians[2]:.2f}")


def _median(costs: list[Cost], number: int) -> float:
    """Of the run and its neighbours; the first, which starts the session, is not among them."""
    first = max(2, number - NEIGHBOURS)
    return statistics.median(cost.seconds for cost in costs[first - 1 : number + NEIGHBOURS])


class Schedule:
    """A ledger that is ingested into again and again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.spark = session(SparkSettings(profile="small", conf=KEPT), "scheduled ingest")
        self.location = LedgerLocation(path=str(folder / "ledger"))
        init(self.spark, self.location)
        self.offsets: Counter[int] = Counter()
        self.generations: Counter[str] = Counter()

    def run(self, number: int) -> Cost:
        """One ingest of RECORDS new records."""
        path = self.folder / f"{number}.jsonl"
        path.write_text("".join(f"{line}\n" for line in self._lines(number)), encoding="utf-8")
        source = SourceSettings(kind="offsets-jsonl", path=str(path))
        config = Config(cluster_id="bench", ledger=LedgerSettings(location=str(self.location.path)), sources=(source,))
        invocation = Invocation(attempt_id=f"bench-{number}", now=lambda: datetime.now(UTC), seconds=time.perf_counter)
        before = executions(self.spark)
        self.spark.sparkContext.setJobGroup(f"run {number}", f"run {number}")
        began = time.perf_counter()
        summary = ingest(self.spark, self.location, config, invocation)
        seconds = time.perf_counter() - began
        jobs = len(self.spark.sparkContext.statusTracker().getJobIdsForGroup(f"run {number}"))
        return Cost(seconds, jobs, files_read(self.spark, before), dict(summary.timings))

    def _lines(self, number: int) -> Iterator[str]:
        groups = [f"group-{each}" for each in range(GROUPS - 2)] + [f"new-{number}-{each}" for each in range(2)]
        for at in range(RECORDS):
            group = groups[at % GROUPS]
            self.generations[group] += 1
            row = Log(group).classic(self.generations[group], [member(f"{group}-m", {"clicks": (0, 1)})])
            partition = log_partition_of(group, PARTITIONS)
            self.offsets[partition] += 1
            assert row.key is not None
            assert row.value is not None
            yield json.dumps(
                {
                    "partition": partition,
                    "offset": self.offsets[partition],
                    "timestamp": 1_795_000_000_000 + 1_000 * self.offsets[partition],
                    "key": b64encode(row.key).decode(),
                    "value": b64encode(row.value).decode(),
                }
            )


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
    main(*[int(argument) for argument in sys.argv[1:]] or [200])
