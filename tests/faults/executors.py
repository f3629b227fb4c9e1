"""Executors that die in the middle of a batch, on a cluster of this machine's own processes: the run goes on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

from tests.faults.bench import Bench, Verdict
from tests.faults.injections import WORKERS, Injection, lay_ambush, sprung
from tests.faults.sessions import FileFaults, faulty_session
from tests.faults.story import STEPS

MASTER = "local-cluster[2,1,1024]"


def executors(bench: Bench, classes: Path, ambush: Path) -> Iterator[tuple[Injection, Verdict]]:
    """Each step loses an executor: Spark tries its tasks again, and the step must go through at once."""
    if bench.spark.conf.get("spark.master") != MASTER:
        bench.spark.stop()
        bench.spark = faulty_session(classes, ambush, MASTER)
        bench.files = FileFaults(bench.spark)
    for step, moment in product(STEPS, ("before", "after")):
        where = f"{moment} {WORKERS[step][-1]}"
        injection = Injection("executor", step, where, "kill -9 of the executor")
        ledger = bench.lay(step)
        lay_ambush(ambush, f"executor {where}")
        ended = bench.attempt(partial(bench.story.take, bench.spark, ledger, step))
        reached = sprung(ambush) and ended == "went through"
        yield injection, bench.settle(injection.name, step, ledger, ended, reached)
