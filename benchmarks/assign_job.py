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

from benchmarks.assign_floor import HEAP, STAGE, copied, write
from benchmarks.generated_facts import configuration, crowd, invocation, skewed
from benchmarks.timing import Timed, interleaved
from benchmarks.workers import peak_mebibytes
from groupledger.config import SparkSettings
from groupledger.engine.session import session
from groupledger.pipeline.assign import AssignSummary, assign
from groupledger.sinks.ledger_tables import LedgerLocation

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def main(kind: str, groups: int, runs: int) -> None:
    """Print each figure and the ratios."""
    with tempfile.TemporaryDirectory() as folder:
        spark = session(SparkSettings(profile="local", master="local[2]", driver_memory=HEAP), "assign benchmark")
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
        self.last = assign(self.spark, configuration(self.facts), invocation(), whole=True)
        self.stages.append(sum(self.last.timings[name] for name in STAGE))

    def floor(self) -> None:
        """Read, bring together by group, sort, write."""
        copy = str(self.folder / "copy")
        copied(self.spark, self.facts).write.format("delta").save(copy)
        shutil.rmtree(copy)

    def whole_floor(self) -> None:
        """The same, and as many commits of next to nothing."""
        copies = self.folder / "copies"
        write(self.spark, self.facts, str(copies))
        shutil.rmtree(copies)


if __name__ == "__main__":
    kind = sys.argv[1] if len(sys.argv) > 1 else "crowd"
    main(kind, *([int(argument) for argument in sys.argv[2:]] + [100_000, 5][len(sys.argv[2:]) :]))
