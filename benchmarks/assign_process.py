"""`groupledger assign` over many generated groups, process start to exit, against a process that copies their members.

python -m benchmarks.assign_process [groups] [runs] [rounds that do not count]

The floor is that of `assign_job` with as many commits. Both are processes of their own with the same profile and heap,
in turn, after a round that does not count. Memory is that of the whole tree of processes: the most that was resident
at once, looked at four times a second, and the most of a Python worker; shared pages count once.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from pathlib import Path

import psutil
import yaml

from benchmarks.assign_floor import HEAP, STAGE, write
from benchmarks.generated_facts import CLUSTER, crowd
from benchmarks.timing import interleaved
from benchmarks.workers import LOOKS_A_SECOND, Peak
from groupledger.config import SparkSettings, load
from groupledger.engine.session import session
from groupledger.sinks.ledger_tables import LedgerLocation


def main(groups: int, runs: int, warm_up: int) -> None:
    """Print both figures, the stages of the last `assign`, and the memory."""
    with tempfile.TemporaryDirectory() as folder:
        bench = AssignProcess(Path(folder), groups)
        ours, floor = interleaved({"assign": bench.ours, "floor": bench.floor}, runs, warm_up)
        print(f"{groups} groups", ours, floor, sep="\n")
        print(f"start to exit: {ours.median / floor.median:.2f}x; {ours.median / groups * 1e6:.0f} us a group")
        stage = sum(bench.timings[name] for name in STAGE)
        print(
            f"stages of the last: {bench.timings}; read to write {stage:.1f} s, {stage / groups * 1e6:.0f} us a group"
        )
        print(bench.peak)


class AssignProcess:
    """The ledger of facts, a copy of which each `assign` writes to."""

    def __init__(self, folder: Path, groups: int) -> None:
        self.folder, self.config = folder, folder / "bench.yaml"
        self.facts, self.peak, self.timings = folder / "facts", Peak(), dict[str, float]()
        self._run(sys.executable, "-m", __spec__.name, "facts", str(folder / "facts"), str(groups))
        ledger = {"location": str(folder / "ledger")}
        spark = {"profile": "local", "master": "local[2]", "driver_memory": HEAP}
        settings = {"cluster_id": CLUSTER, "ledger": ledger, "spark": spark}
        self.config.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def ours(self) -> None:
        """One `groupledger assign`."""
        shutil.rmtree(self.folder / "ledger", ignore_errors=True)
        shutil.copytree(self.facts, self.folder / "ledger", copy_function=_linked)
        command = ("-m", "groupledger", "assign", "--config", str(self.config), "--json", "--timings")
        told = self._run(sys.executable, *command, watched=True)
        self.timings = json.loads(told.splitlines()[-1])["timings"]

    def floor(self) -> None:
        """The same Spark, the same members, as many commits."""
        shutil.rmtree(self.folder / "copies", ignore_errors=True)
        self._run(sys.executable, "-m", __spec__.name, "floor", str(self.config), str(self.folder))

    def _run(self, *command: str, watched: bool = False) -> str:
        with (self.folder / "out").open("w+") as out, (self.folder / "err").open("w+") as err:
            process = psutil.Popen(command, stdout=out, stderr=err)
            while process.poll() is None:
                if watched:
                    self.peak.look(process)
                time.sleep(1 / LOOKS_A_SECOND)
            if process.returncode:
                err.seek(0)
                raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{err.read()}")
            out.seek(0)
            return out.read()


def _linked(source: str, target: str) -> None:
    """A data file is never written twice: another name for it will do."""
    if source.endswith(".parquet"):
        Path(target).hardlink_to(source)
    else:
        shutil.copy2(source, target)


def _made(folder: str, groups: int) -> None:
    spark = session(SparkSettings(profile="local", master="local[2]", driver_memory=HEAP), "facts of the benchmark")
    crowd(spark, LedgerLocation(path=folder), groups)


def _copied(config: str, folder: str) -> None:
    settings = load(Path(config))
    spark = session(settings.spark, "floor")
    write(spark, LedgerLocation(path=f"{folder}/facts"), f"{folder}/copies")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["facts", folder, groups]:
            _made(folder, int(groups))
        case ["floor", config, folder]:
            _copied(config, folder)
        case numbers:
            main(*([int(each) for each in numbers] + [100_000, 3, 1][len(numbers) :]))
