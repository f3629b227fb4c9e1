"""Executors that die in the middle of a batch, on a cluster of this machine's own processes: the run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.faults.bench import Bench, Verdict
from tests.faults.injections import WORKERS, Injection
from tests.faults.sessions import FileFaults, faulty_session

MASTER = "local-cluster[2,1,1024]"


def executors(bench: Bench, classes: Path, ambush: Path) -> Iterator[tuple[Injection, Verdict]]:
    """Each step loses an executor, then a worker: Spark tries the task again, and the step must go through at once."""
    bench.spark.stop()
    bench.spark = faulty_session(classes, ambush, MASTER)
    bench.files = FileFaults(bench.spark)
    for step, places in WORKERS.items():
        for whom in ("executor", "worker"):
            injection = Injection("executor", step, f"{places[-1]} 1", f"kill -9 of {whom}")
            ledger = bench.lay(step)
            ambush.with_suffix(".done").unlink(missing_ok=True)
            ambush.write_text(f"{whom} {places[-1]} 1", encoding="utf-8")
            ended = bench.attempt(partial(bench.story.take, bench.spark, ledger, step))
            reached = ambush.with_suffix(".done").exists()
            ambush.unlink(missing_ok=True)
            through = ended == "went through" or ended.startswith("died (AssertionError")
            yield injection, bench.settle(injection.name, step, ledger, ended, reached and through)
