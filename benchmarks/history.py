"""One group's history out of ten million rows, and one day of all groups, in a table that `maintain` keeps.

python -m benchmarks.history [--groups 10000] [--snapshots 1000] [--cluster-by group_id,observed_at] [--file-mb 8]

The rows are `group_snapshots` of 10,000 groups, a snapshot an hour each, appended day by day as ingests append them.
Then `maintain` gathers and clusters the table. Each question is asked warm, after two askings that do not count; the
files it read are those of its scan's own metrics.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from benchmarks.timing import interleaved
from groupledger.config import Config, LedgerSettings, MaintainSettings, SparkSettings
from groupledger.engine.session import session
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import maintain
from groupledger.sinks import ledger_tables
from groupledger.sinks.ledger_tables import LedgerLocation, init
from groupledger.tables import GROUP_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
HOUR, DAY = 3_600, 86_400
LOG_PARTITIONS = 50
RUNS = 7


def main(asked_for: argparse.Namespace) -> None:
    """Print both figures, files read of how many, and what the maintain cost."""
    with tempfile.TemporaryDirectory() as folder:
        bench = History(folder, asked_for)
        print(
            f"{asked_for.groups * asked_for.snapshots} rows; written day by day:"
            f" {bench.appended.files} files in {bench.append_seconds:.0f} s"
        )
        print(f"maintain: {bench.maintain_seconds:.0f} s; {bench.size.files} files, {bench.size.bytes / 2**20:.0f} MiB")
        asked = {"one group's history": bench.history, "one day, all groups": bench.day}
        for timed in interleaved(asked, RUNS, warm_up=2):
            print(timed, bench.read[timed.name], sep="\n    ")


@dataclass(frozen=True, slots=True)
class Read:
    """What one question read."""

    rows: int
    files: int
    bytes: int
    of: ledger_tables.TableSize

    def __str__(self) -> str:
        share = f"{self.files / self.of.files:.1%} of the files, {self.bytes / self.of.bytes:.1%} of the bytes"
        return f"{self.rows} rows from {self.files} of {self.of.files} files: {share}"


class History:
    """The ledger, filled and maintained."""

    def __init__(self, folder: str, asked_for: argparse.Namespace) -> None:
        settings = SparkSettings(profile="local", driver_memory="2g", conf={"spark.network.timeout": "1h"})
        self.spark = session(settings, "history benchmark")
        self.location = LedgerLocation(path=f"{folder}/ledger")
        init(self.spark, self.location)
        if asked_for.cluster_by:
            layout = f"CLUSTER BY ({asked_for.cluster_by})"
            self.spark.sql(f"ALTER TABLE {self.location.identifier(GROUP_SNAPSHOTS)} {layout}")
        self.read: dict[str, Read] = {}
        self.append_seconds = _timed(lambda: self._fill(asked_for.groups, asked_for.snapshots))
        self.appended = ledger_tables.size(self.spark, self.location, GROUP_SNAPSHOTS)
        self.maintain_seconds = _timed(lambda: self._maintain(asked_for.file_mb))
        self.size = ledger_tables.size(self.spark, self.location, GROUP_SNAPSHOTS)
        self.group_id = _group(asked_for.groups // 2)

    def _fill(self, groups: int, snapshots: int) -> None:
        for first in range(0, snapshots, DAY // HOUR):
            rows = generated(self.spark, groups, first, min(first + DAY // HOUR, snapshots))
            rows.writeTo(self.location.identifier(GROUP_SNAPSHOTS)).append()

    def _maintain(self, file_mb: int) -> None:
        settings = MaintainSettings(file_mb=file_mb)
        config = Config(cluster_id="bench", ledger=LedgerSettings(location=self.location.path), maintain=settings)
        invocation = Invocation(attempt_id="bench", now=lambda: datetime.now(UTC), seconds=time.perf_counter)
        maintain(self.spark, self.location, config, invocation, [GROUP_SNAPSHOTS])

    def history(self) -> None:
        """Every snapshot of a group, whole rows to the driver."""
        rows = self._rows().where((F.col(c.CLUSTER_ID) == "bench") & (F.col(c.GROUP_ID) == self.group_id))
        self._ask("one group's history", rows)

    def day(self) -> None:
        """How many members each group had at most, that day."""
        since, until = (F.timestamp_seconds(F.lit(START + days * DAY)) for days in (20, 21))
        rows = self._rows().where((F.col(c.OBSERVED_AT) >= since) & (F.col(c.OBSERVED_AT) < until))
        self._ask("one day, all groups", rows.select(F.max(c.MEMBERS), F.count(F.lit(1))))

    def _rows(self) -> DataFrame:
        return self.location.rows(self.spark, GROUP_SNAPSHOTS)

    def _ask(self, name: str, frame: DataFrame) -> None:
        rows = frame.collect()
        files, size = scanned(frame)
        self.read[name] = Read(rows[0][-1] if len(rows) == 1 else len(rows), files, size, self.size)


def scanned(frame: DataFrame) -> tuple[int, int]:
    """Files and bytes of files that the frame's own execution listed for its scan, by the scan's metrics."""
    plan: Any = frame._jdf.queryExecution().executedPlan()
    while True:
        if plan.nodeName() == "AdaptiveSparkPlan":
            plan = plan.executedPlan()
        elif plan.nodeName().endswith("QueryStage"):
            plan = plan.plan()
        elif plan.children().size():
            plan = plan.children().apply(0)
        else:
            break
    metrics = plan.metrics()
    return tuple(int(metrics.apply(name).value()) for name in ("numFiles", "filesSize"))  # type: ignore[return-value]


def generated(spark: SparkSession, groups: int, first: int, end: int) -> DataFrame:
    """Snapshots `first` to `end` of every group, in the order a log has them: hour by hour."""
    number, hour = F.col("id") % groups, (F.col("id") / groups).cast("long") + first
    offset, log_partition = hour * groups + number, (number % LOG_PARTITIONS).cast("int")
    place = F.concat_ws("/", F.lit("log/bench"), log_partition.cast("string"))
    member = F.sha2(F.concat_ws("-", number.cast("string"), (hour / 10).cast("int").cast("string")), 256)
    values = {
        c.SNAPSHOT_ID: F.concat_ws("/", place, offset.cast("string")),
        c.PREVIOUS_SNAPSHOT_ID: F.concat_ws("/", place, (offset - groups).cast("string")),
        c.CLUSTER_ID: F.lit("bench"),
        c.SOURCE: F.lit("log"),
        c.LOG_PARTITION: log_partition,
        c.OFFSET: offset,
        c.GROUP_ID: F.concat_ws("-", F.lit("group"), F.substring(F.sha2(number.cast("string"), 256), 1, 8)),
        c.GROUP_TYPE: F.lit("classic"),
        c.PROTOCOL_TYPE: F.lit("consumer"),
        c.INCARNATION: F.lit(1),
        c.SNAPSHOT_KIND: F.lit("generation"),
        c.GENERATION: hour.cast("int"),
        c.ASSIGNOR: F.lit("cooperative-sticky"),
        c.LEADER: F.concat_ws("-", F.lit("consumer"), F.substring(member, 1, 36)),
        c.STATE: F.lit("Stable"),
        c.COMPLETE: F.lit(True),
        c.SHARED_TOPICS: F.array(F.concat_ws("-", F.lit("topic"), (number % 100).cast("string"))),
        c.MEMBERS: (number % 20).cast("int"),
        c.OBSERVED_AT: F.timestamp_seconds(F.lit(START) + hour * HOUR + number % HOUR),
        c.ATTEMPT_ID: F.concat_ws("-", F.lit("attempt"), F.lit(str(first))),
    }
    absent = {each.name: F.lit(None).cast(each.dataType) for each in GROUP_SNAPSHOTS.schema}
    return spark.range(0, (end - first) * groups, 1, 2).select(
        *((absent | values)[name].alias(name) for name in GROUP_SNAPSHOTS.columns)
    )


def _group(number: int) -> str:
    from hashlib import sha256

    return f"group-{sha256(str(number).encode()).hexdigest()[:8]}"


def _timed(work: Any) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--groups", type=int, default=10_000)
    options.add_argument("--snapshots", type=int, default=1_000)
    options.add_argument("--cluster-by", help="another layout than the ledger's own")
    options.add_argument("--file-mb", type=int, default=MaintainSettings().file_mb)
    main(options.parse_args())
