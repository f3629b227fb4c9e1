"""`assign` over many generated groups, against a plain Spark copy of the same members into rows of the same schema.

python -m benchmarks.assign_job [crowd|skewed] [groups] [runs]

The floor reads the member snapshots, repartitions and sorts them by group, and writes as many rows of `assignments`'
schema to Delta: what the members claimed and were given stands in its lists, so that they are as long as ours. The
*stage* is what lies between the plan and the commit of an `assign`; the *whole* one is all of it, against a floor that
makes the same commits. One session for all, in turn, after a warm-up round.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from benchmarks.generated_facts import CLUSTER, configuration, crowd, invocation, skewed
from benchmarks.timing import Timed, interleaved
from benchmarks.workers import peak_mebibytes
from groupledger.config import SparkSettings
from groupledger.engine.session import session
from groupledger.pipeline.assign import AssignSummary, assign
from groupledger.sinks.ledger import LedgerLocation
from groupledger.tables import ASSIGNMENTS, MEMBER_SNAPSHOTS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

STAGE = ("read", "compute", "write")
SHORT_TABLES = 3
"""Commits of an `assign` beside that of `assignments`: the plan, `rebalances`, and the row in `runs`."""


def main(kind: str, groups: int, runs: int) -> None:
    """Print each figure and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session(SparkSettings(profile="local", master="local[2]", driver_memory="3g"), "assign benchmark")
        bench = AssignJob(spark, Path(folder))
        skewed(spark, bench.facts) if kind == "skewed" else crowd(spark, bench.facts, groups)
        things = {"assign": bench.ours, "floor of the stage": bench.floor, "floor of the whole": bench.whole_floor}
        ours, floor, whole = interleaved(things, runs)
        stage = Timed("assign stage", tuple(bench.stages[-runs:]))
        print(stage, floor, ours, whole, sep="\n")
        print(f"stage: {stage.median / floor.median:.2f}x; whole: {ours.median / whole.median:.2f}x")
        print(f"verdicts {bench.last.verdicts}, outcomes {bench.last.outcomes}, rows {bench.last.rows}")
        print(f"stages of the last: { ({name: round(each, 2) for name, each in bench.last.timings.items()}) }")
        print(f"peak memory of a Python worker: {peak_mebibytes():.0f} MiB")


class AssignJob:
    """One session and one ledger of facts; what is written goes to a copy each time."""

    last: AssignSummary

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.facts = LedgerLocation(path=str(folder / "facts"))
        self.stages: list[float] = []

    def ours(self) -> None:
        """A whole run: look, plan, read, compute, write, commit."""
        self.last = assign(self.spark, configuration(self.facts), invocation())
        self.stages.append(sum(self.last.timings[name] for name in STAGE))

    def floor(self) -> None:
        """Read, bring together by group, sort, write."""
        copy = str(self.folder / "copy")
        self._copied().write.format("delta").save(copy)
        shutil.rmtree(copy)

    def whole_floor(self) -> None:
        """The same, and as many commits of next to nothing."""
        self.floor()
        for number in range(SHORT_TABLES):
            short = str(self.folder / f"short-{number}")
            self.spark.range(1, numPartitions=1).write.format("delta").save(short)
            shutil.rmtree(short)

    def _copied(self) -> DataFrame:
        rows = self.facts.rows(self.spark, MEMBER_SNAPSHOTS)
        kind = ASSIGNMENTS.schema[c.TARGET].dataType.simpleString()
        nothing = F.array().cast(kind)

        def listed(name: str) -> Column:
            entry = f"transform({name}, e -> struct(e.topic AS topic, e.partitions AS partitions))"
            return F.coalesce(F.expr(entry), nothing)

        claimed, recorded = listed(c.CLAIMED), listed(c.RECORDED)
        lists = {c.HELD: nothing, c.TARGET: recorded, c.ASSIGNED: recorded, c.ADDED: recorded}
        lists |= {c.REVOKED: nothing, c.AWAITING: claimed, c.LOST: nothing}
        values = {c.SCENARIO: F.lit(CLUSTER), c.ROUND: F.lit(1), c.ATTEMPT_ID: F.lit(CLUSTER), **lists}
        together = rows.repartition(c.GROUP_ID).sortWithinPartitions(c.GROUP_ID, c.MEMBER_ORDER)
        return together.select(*(values.get(name, F.col(name)).alias(name) for name in ASSIGNMENTS.columns))


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else "crowd"
    main(kind, *([int(argument) for argument in sys.argv[2:]] + [100_000, 5][len(sys.argv[2:]) :]))
