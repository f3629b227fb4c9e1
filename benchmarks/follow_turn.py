"""What one turn of an ingest from a running cluster costs: nothing new, offset commits alone, or some groups' records.

python -m benchmarks.follow_turn [samples] [--profile PROFILE] [--only HOW]

A broker of the tests, on this machine, with a log of 50 log partitions; 200 groups are in the ledger before the first
turn. *follow* is one session, as that of `--follow`, whose first round is not counted; *scheduled* is a `groupledger
ingest` from start to exit, beside a process that only starts the same Spark. Each round makes one turn of each kind.
Seconds (wall, and of processors: Python, the JVM and the workers, not the broker) are medians. Jobs are those that
Spark counted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import psutil
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.cluster_log import SECONDS, WRITES_THE_LOG
from benchmarks.scheduled_ingest import KEPT
from groupledger.config import Config, LedgerSettings, SourceSettings, SparkSettings
from groupledger.core.history import log_partition_of
from groupledger.core.log.lines import TOPIC
from groupledger.engine.session import session
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger_tables import LedgerLocation, init
from tests.core.history.records import Log, member
from tests.live.broker import broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.core.history import LogRow
    from groupledger.pipeline.ingest import IngestSummary

GROUPS, PARTITIONS = 200, 50
STATES = (1, 20, 200)
COMMITS = 200
LOOK_SECONDS = 0.05
FOLLOW, SCHEDULED = "follow", "scheduled"


class Cost(NamedTuple):
    """What one turn cost; the jobs of another process are not known."""

    seconds: float
    processor: float
    jobs: int | None = None
    stages: Mapping[str, float] = {}


class GrowingLog:
    """A broker's log of groups, to which a turn adds."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap, self._generations = bootstrap, Counter[int]()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(SECONDS)
        self._producer = Producer({"bootstrap.servers": bootstrap, "client.id": WRITES_THE_LOG, "log_level": 0})

    def states(self, number: int) -> None:
        """Add the next generation of so many groups."""
        for at in range(number):
            self._generations[at] += 1
            log = Log(f"group-{at}")
            self._add(log, log.classic(self._generations[at], [member(f"{log.group}-m", {"clicks": (0, 1)})]))
        self._written()

    def commits(self, number: int) -> None:
        """Add so many offset commits."""
        for at in range(number):
            log = Log(f"group-{at % GROUPS}")
            self._add(log, log.commit(0, at))
        self._written()

    def _add(self, log: Log, row: LogRow) -> None:
        self._producer.produce(TOPIC, row.value, row.key, log_partition_of(log.group, PARTITIONS))

    def _written(self) -> None:
        left = self._producer.flush(SECONDS)
        assert not left, f"{left} records were not taken"


def main(samples: int, profile: str, ways: Sequence[str]) -> None:
    """Print the cost of each kind of turn, in one session and as processes."""
    print(f"load before: {os.getloadavg()[0]:.2f}", flush=True)
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder), more="log.cleaner.enable=false") as bootstrap:
        log, turns = GrowingLog(bootstrap), Turns(Path(folder), bootstrap, profile)
        log.states(GROUPS)
        turns.first()
        kinds: dict[str, Callable[[], None]] = {"nothing new": lambda: None}
        kinds[f"{COMMITS} offset commits"] = partial(log.commits, COMMITS)
        kinds |= {f"{number} records of groups": partial(log.states, number) for number in STATES}
        if FOLLOW in ways:
            tell(FOLLOW, kinds, samples, turns.followed)
        turns.spark.stop()
        if SCHEDULED in ways:
            tell(SCHEDULED, kinds, samples, turns.scheduled)
            _print("the same Spark started", [turns.floor() for _ in range(samples)])
    print(f"load after: {os.getloadavg()[0]:.2f}", flush=True)


def tell(how: str, kinds: Mapping[str, Callable[[], None]], samples: int, turn: Callable[[], Cost]) -> None:
    """Make turns of all kinds in rounds, and print what each kind cost."""
    costs: dict[str, list[Cost]] = {kind: [] for kind in kinds}
    for sample in range(samples + 1):
        for kind, add in kinds.items():
            add()
            cost = turn()
            if sample:
                costs[kind].append(cost)
    for kind, found in costs.items():
        _print(f"{how}, {kind}", found)


def _print(what: str, costs: list[Cost]) -> None:
    middle = sorted(costs)[len(costs) // 2]
    seconds = statistics.median(cost.seconds for cost in costs)
    processor = statistics.median(cost.processor for cost in costs)
    jobs = "" if middle.jobs is None else f", {middle.jobs} jobs"
    stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in middle.stages.items())
    each = ", ".join(f"{cost.seconds:.2f}" for cost in costs)
    print(f"{what}: {seconds:.2f} s, processor {processor:.2f} s{jobs} ({stages}) [{each}]", flush=True)


class Turns:
    """A ledger, and turns of a follower and of scheduled processes that bring it up to date."""

    def __init__(self, folder: Path, bootstrap: str, profile: str) -> None:
        self.place = LedgerLocation(path=str(folder / "ledger"))
        ledger, source = LedgerSettings(location=self.place.path), SourceSettings(kind="kafka", bootstrap=bootstrap)
        self.config = Config(cluster_id=None, ledger=ledger, sources=(source,))
        settings = {"ledger": {"location": self.place.path}, "spark": {"profile": profile}}
        self.file = folder / "bench.yaml"
        sources = [{"kind": "kafka", "bootstrap": bootstrap}]
        self.file.write_text(yaml.safe_dump({**settings, "sources": sources}), encoding="utf-8")
        self.settings = SparkSettings(profile=profile, conf=KEPT)
        self.spark: SparkSession = session(self.settings, "turns")

    def first(self) -> None:
        """Make the ledger, and ingest what is there."""
        init(self.spark, self.place)
        self._ingest("first")

    def followed(self) -> Cost:
        """One turn of the running session."""
        called = f"turn-{uuid4()}"
        self.spark.sparkContext.setJobGroup(called, called)
        began, spent = time.perf_counter(), self._processor()
        summary = self._ingest(called)
        seconds, processor = time.perf_counter() - began, self._processor() - spent
        jobs = len(self.spark.sparkContext.statusTracker().getJobIdsForGroup(called))
        return Cost(seconds, processor, jobs, summary.timings)

    def _ingest(self, called: str) -> IngestSummary:
        invocation = Invocation(attempt_id=called, now=lambda: datetime.now(UTC), seconds=time.perf_counter)
        return ingest(self.spark, self.place, self.config, invocation)

    @staticmethod
    def _processor() -> float:
        """Seconds of this process and of the session's processes: the broker is named by the class it runs."""
        process = psutil.Process()
        below = [each for each in process.children(recursive=True) if "kafka.Kafka" not in each.cmdline()]
        return sum(sum(each.cpu_times()[:4]) for each in (process, *below))

    def scheduled(self) -> Cost:
        """One `groupledger ingest`, start to exit."""
        return _watched(sys.executable, "-m", "groupledger", "ingest", "--config", str(self.file), "--json")

    def floor(self) -> Cost:
        """A process that starts the same Spark and ends."""
        start = "from groupledger.config import load; from groupledger.engine.session import session"
        code = f"{start}; from pathlib import Path; session(load(Path({str(self.file)!r})).spark, 'floor')"
        return _watched(sys.executable, "-c", code)


def _watched(*command: str) -> Cost:
    """Run a command; seconds of processors are those last seen of each of its processes."""
    began, seen = time.perf_counter(), dict[int, float]()
    with tempfile.TemporaryFile() as said:
        process = psutil.Popen(command, stdout=said, stderr=said)
        while process.poll() is None:
            for each in (process, *process.children(recursive=True)):
                try:
                    seen[each.pid] = sum(each.cpu_times()[:2])
                except psutil.Error:
                    continue
            time.sleep(LOOK_SECONDS)
        seconds = time.perf_counter() - began
        if process.returncode:
            said.seek(0)
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{said.read().decode()}")
    return Cost(seconds, sum(seen.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="one turn of an ingest from a running cluster")
    parser.add_argument("samples", type=int, nargs="?", default=5)
    parser.add_argument("--profile", default="small", choices=("small", "local"))
    parser.add_argument("--only", choices=(FOLLOW, SCHEDULED))
    chosen = parser.parse_args()
    main(chosen.samples, chosen.profile, [chosen.only] if chosen.only else [FOLLOW, SCHEDULED])
