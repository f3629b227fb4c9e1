"""Draw mutants of a part of the source by seed, run their tests on each uncompiled, and tell what survives.

python -m tests.mutants [--part assignors] [--count 500] [--seed 1] [--minutes 60] [--quick] [--survivors-of OUTPUT]

A mutant is killed when a test fails or does not end. The tests closest to its file run first, then all others that
reach it; not those that compile, which takes a compiler's time for each mutant. The source of the work tree is copied;
nothing in it is changed. Ends with status 1 where under 90 % of those tried are killed, 2 where the time was not enough
for all. Survivors known to be no other program are listed with the reason (`equivalent`), and count as survivors.
A test that was added can only kill more: given the output of an earlier run of the same source and seed, only what
survived then is tried again. Where all tests take long: `--quick` runs only those of a mutant's own file, and what it
lets live is then tried by all of them, as the survivors of its output.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.equivalent import EQUIVALENT, Key
from tests.mutants.parts import CORE, PACKAGE, PARTS
from tests.mutants.patience import RUNS_ON
from tests.mutants.sites import Mutant, mutants

ROOT = Path(__file__).parents[2]
WANTED_KILLED = 0.9

EXAMPLES = "20"
"""Drawn groups for each assignor's properties: what a few do not see, the gold mostly does."""
HISTORIES = "25"
"""Random histories of groups, for each test that draws some."""


class Outcome(Enum):
    """What became of a mutant, and the sign that is printed at once."""

    KILLED = "."
    TIMED_OUT = "T"  # counts as killed: the mutant runs on and on
    SURVIVED = "S"
    NOT_TRIED = "-"


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant of a file, and the test files that reach it: `closest` run alone, before all others."""

    path: Path
    mutant: Mutant
    tests: tuple[str, ...]
    closest: tuple[str, ...] = ()

    def key(self, root: Path) -> Key:
        """What it is, wherever it stands in its file."""
        line = (root / self.path).read_text(encoding="utf-8").splitlines()[self.mutant.line - 1].strip()
        below = CORE if self.path.is_relative_to(CORE) else PACKAGE
        return Key(str(self.path.relative_to(below)), line, self.mutant.old, self.mutant.new)


def told(trial: Trial, root: Path) -> str:
    """A survivor: where it is and what, and why it is no other program where that is known."""
    key = trial.key(root)
    reason = EQUIVALENT.get(key)
    word = "survived" if reason is None else f"equivalent ({reason})"
    return f"{word}: {trial.path}:{trial.mutant.line} {key.old!r} -> {key.new!r} in: {key.line}"


def drawn(root: Path, count: int, seed: int, part: str = "assignors") -> list[Trial]:
    """`count` of all mutants of a part of the source below `root`, the same for the same seed and source."""
    of = PARTS[part]
    every = [
        Trial(below, each, tuple(of.tests(below)), tuple(of.closest(below)))
        for below in (path.relative_to(root) for path in of.files(root))
        for each in mutants((root / below).read_bytes(), wide=of.wide)
    ]
    return random.Random(seed).sample(every, min(count, len(every)))  # noqa: S311 reproducible, not secret


def survivors(trials: Sequence[Trial], root: Path, output: str) -> list[Trial]:
    """Those of the trials that an earlier run's output tells."""
    before = {line.partition(": src")[2] for line in output.splitlines()}
    return [trial for trial in trials if told(trial, root).partition(": src")[2] in before]


class Places:
    """Copies of the source, one a process, lent in turn."""

    def __init__(self, source: Path, copies: int, ends_at: float) -> None:
        self.source = source
        self.ends_at = ends_at
        self.free: SimpleQueue[Path] = SimpleQueue()
        for number in range(copies):
            place = source.with_name(str(number))
            shutil.copytree(source, place)
            self.free.put(place)

    def tried(self, trial: Trial) -> Outcome:
        """Whether the tests see the mutant."""
        if time.monotonic() > self.ends_at:
            return Outcome.NOT_TRIED
        place = self.free.get()
        try:
            outcome = _applied(place, trial)
        finally:
            self.free.put(place)
        survivor = f"\n{told(trial, self.source)}\n" if outcome is Outcome.SURVIVED else ""
        print(outcome.value, end=survivor, flush=True)
        return outcome


def _applied(place: Path, trial: Trial) -> Outcome:
    path = place / trial.path
    original = path.read_bytes()
    try:
        path.write_bytes(trial.mutant.applied(original))
        outcome = _outcome(place, trial.closest) if trial.closest else Outcome.SURVIVED
        return _outcome(place, trial.tests) if outcome is Outcome.SURVIVED and trial.tests else outcome
    finally:
        path.write_bytes(original)


def _copy(source: Path) -> None:
    for name in ("src", "tests", "conf", "docs", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, source)


def every_test(trials: Sequence[Trial]) -> list[str]:
    """Each test file that runs for any of the mutants."""
    return list(dict.fromkeys(test for trial in trials for test in (*trial.closest, *trial.tests)))


def _outcome(place: Path, tests: Sequence[str]) -> Outcome:
    environment = os.environ | {
        "GROUPLEDGER_KERNELS": "python",
        "GROUPLEDGER_EXAMPLES": EXAMPLES,
        "GROUPLEDGER_CLOCK_RUNS": HISTORIES,
        "GROUPLEDGER_MACHINE_RUNS": HISTORIES,
        "PYTHONPATH": str(place / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    plugins = ("-p", "no:cacheprovider", "-p", "tests.mutants.patience")
    options = ("-x", "-q", *plugins, "--hypothesis-seed=0", "-m", "not slow")
    command = [sys.executable, "-m", "pytest", *options, "-k", "not numba", *tests]
    done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False)
    if done.returncode == RUNS_ON:
        return Outcome.TIMED_OUT
    return Outcome.KILLED if done.returncode else Outcome.SURVIVED


def main(arguments: argparse.Namespace) -> int:
    """Try the drawn mutants; print the survivors and the share killed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.processes) as pool:
        source = Path(folder, "source")
        _copy(source)
        trials = drawn(source, arguments.count, arguments.seed, arguments.part)
        if arguments.survivors_of:
            trials = survivors(trials, source, arguments.survivors_of.read_text())
        if arguments.quick:
            trials = [replace(trial, tests=trial.tests if not trial.closest else ()) for trial in trials]
        unchanged = _outcome(source, every_test(trials))
        if unchanged is not Outcome.SURVIVED:
            print(f"tests of the source as it is: {unchanged.name}; they must pass")
            return 2
        places = Places(source, arguments.processes, began + 60 * arguments.minutes)
        outcomes = list(pool.map(places.tried, trials))
    print()
    return _judged(Counter(outcomes), arguments.seed)


def _judged(count: Counter[Outcome], seed: int) -> int:
    killed = count[Outcome.KILLED] + count[Outcome.TIMED_OUT]
    tried = killed + count[Outcome.SURVIVED]
    print(
        f"seed {seed}: {killed} of {tried} killed, {count[Outcome.TIMED_OUT]} of them by taking too long;"
        f" {count[Outcome.NOT_TRIED]} not tried for want of time"
    )
    if count[Outcome.NOT_TRIED]:
        return 2
    return 0 if killed >= WANTED_KILLED * tried else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="mutation testing")
    parser.add_argument("--part", choices=PARTS, default="assignors")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--quick", action="store_true", help="only the tests of a mutant's own file, if it has any")
    parser.add_argument("--survivors-of", type=Path, metavar="OUTPUT", help="only those that survived in this output")
    raise SystemExit(main(parser.parse_args()))
