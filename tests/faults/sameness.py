"""The same input in another order, cut and planned in other ways, under other hash seeds: the same rows."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from groupledger.tables import RUNS
from tests.faults.bench import Bench
from tests.faults.sessions import ROOT
from tests.faults.story import STEPS, empty

PARTITIONS, ADAPTIVE = "spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled"
WAYS = (("1", "true"), ("7", "false"), ("200", "true"))
HASH_SEEDS = ("1", "4711")


def sameness(bench: Bench) -> Iterator[tuple[str, str]]:
    """Each way and what differs in it, empty where nothing does. Runs are named after their files, and left out."""
    before = [str(bench.spark.conf.get(name)) for name in (PARTITIONS, ADAPTIVE)]
    for number, way in enumerate(WAYS):
        for name, value in zip((PARTITIONS, ADAPTIVE), way, strict=True):
            bench.spark.conf.set(name, value)
        ledger = bench.folder / f"same-{number}"
        empty(bench.spark, ledger)
        with shuffled(bench.story.folder, random.Random(number)):  # noqa: S311
            for step in STEPS:
                bench.story.take(bench.spark, ledger, step)
        yield f"shuffled lines, {way[0]} shuffle partitions, adaptive execution {way[1]}", differing(bench, ledger)
    for name, value in zip((PARTITIONS, ADAPTIVE), before, strict=True):
        bench.spark.conf.set(name, value)


def seeds(bench: Bench, classes: Path) -> Iterator[tuple[str, str]]:
    """Each step in a process of its own, driver and workers under another hash seed."""
    for seed in HASH_SEEDS:
        ledger = bench.lay(STEPS[0])
        for step in STEPS:
            order = {"ledger": str(ledger), "classes": str(classes), "ambush": str(bench.folder / "none")}
            order |= {"story": str(bench.story.folder), "step": step, "place": "", "action": "", "seed": seed}
            command = [sys.executable, "-m", "tests.faults.killed", json.dumps(order)]
            subprocess.run(
                command, cwd=ROOT, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True
            )
        yield f"PYTHONHASHSEED={seed} in driver and workers", differing(bench, ledger)


@contextmanager
def shuffled(folder: Path, order: random.Random) -> Iterator[None]:
    """The same lines in another order, in the same files: a rejected line says which one it comes from."""
    texts = {file: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
    for file, text in texts.items():
        lines = text.splitlines(keepends=True)
        order.shuffle(lines)
        assert "".join(lines) != text, f"{file.name} is in its old order"
        file.write_text("".join(lines), encoding="utf-8")
    try:
        yield
    finally:
        for file, text in texts.items():
            file.write_text(text, encoding="utf-8")


def differing(bench: Bench, ledger: Path) -> str:
    """The tables whose rows are others than those of the undisturbed story."""
    found, expected = bench.content.digests(ledger), bench.expected[STEPS[-1]]
    return ", ".join(name for name in found if name != RUNS.name and found[name] != expected[name])
