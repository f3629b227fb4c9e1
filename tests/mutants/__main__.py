"""Draw mutants of the assignors and the step by seed, run their tests on each uncompiled, and list what survives.

python -m tests.mutants [--count 500] [--seed 1] [--minutes 60] [--processes 2]

A mutant is killed when a test fails or does not end. The tests of its own part run first, then all of the core
that knows assignors and steps. The source of the work tree is copied; nothing in it is changed. Ends with status 1
where under 90 % of those tried are killed, 2 where the time was not enough for all.
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
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from queue import SimpleQueue

from tests.mutants.sites import Mutant, mutants

ROOT = Path(__file__).parents[2]
CORE = Path("src", "groupledger", "core")
WANTED_KILLED = 0.9
PATIENCE = 5
"""A mutant that takes this many times as long as the source as it is runs on and on."""

TESTS = Path("tests", "core")
OWN_TESTS = (
    (CORE / "assignors" / "server", TESTS / "assignors" / "server"),
    (CORE / "assignors" / "kip315", TESTS / "assignors" / "test_kip315.py"),
    (CORE / "assignors" / "kip615.py", TESTS / "assignors" / "test_kip615.py"),
    (CORE / "assignors" / "safe.py", TESTS / "assignors" / "test_safe.py"),
    (CORE / "assignors", TESTS / "assignors" / "test_parity.py"),
    (CORE / "step.py", TESTS / "step" / "test_step.py"),
)
ALL_TESTS = (TESTS / "assignors", TESTS / "step", TESTS / "test_scenario.py")


class Outcome(Enum):
    """What became of a mutant, and the sign that is printed at once."""

    KILLED = "."
    TIMED_OUT = "T"  # counts as killed: the mutant runs on and on
    SURVIVED = "S"
    NOT_TRIED = "-"


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant of a file."""

    path: Path
    mutant: Mutant

    def told(self, root: Path) -> str:
        """Where it is, and what it is."""
        line = (root / self.path).read_text(encoding="utf-8").splitlines()[self.mutant.line - 1].strip()
        return f"{self.path}:{self.mutant.line} {self.mutant.old!r} -> {self.mutant.new!r} in: {line}"


def drawn(root: Path, count: int, seed: int) -> list[Trial]:
    """`count` of all mutants of the source below `root`, the same for the same seed and source."""
    files = [*sorted((root / CORE / "assignors").rglob("*.py")), root / CORE / "step.py"]
    every = [Trial(path.relative_to(root), each) for path in files for each in mutants(path.read_bytes())]
    return random.Random(seed).sample(every, min(count, len(every)))  # noqa: S311 reproducible, not secret


class Places:
    """Copies of the source, one a process, lent in turn."""

    def __init__(self, source: Path, copies: int, seconds: float, ends_at: float) -> None:
        self.seconds, self.ends_at = seconds, ends_at
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
        path = place / trial.path
        original = path.read_bytes()
        try:
            path.write_bytes(trial.mutant.applied(original))
            outcome = _outcome(place, _tests(trial.path), self.seconds)
        finally:
            path.write_bytes(original)
            self.free.put(place)
        print(outcome.value, end="", flush=True)
        return outcome


def _copy(source: Path) -> None:
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", source)


def _tests(path: Path) -> list[Path]:
    own = next(tests for source, tests in OWN_TESTS if path.is_relative_to(source))
    return [own, *ALL_TESTS]


def _outcome(place: Path, tests: Sequence[Path], seconds: float) -> Outcome:
    environment = os.environ | {
        "GROUPLEDGER_KERNELS": "python",
        "PYTHONPATH": str(place / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    options = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "-m", "not slow")
    command = [sys.executable, "-m", "pytest", *options, *map(str, tests)]
    try:
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Outcome.TIMED_OUT
    return Outcome.KILLED if done.returncode else Outcome.SURVIVED


def main(arguments: argparse.Namespace) -> int:
    """Try the drawn mutants; print the survivors and the share killed."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(arguments.processes) as pool:
        source = Path(folder, "source")
        _copy(source)
        trials = drawn(source, arguments.count, arguments.seed)
        unchanged = _outcome(source, ALL_TESTS, 60 * arguments.minutes)
        if unchanged is not Outcome.SURVIVED:
            print(f"tests of the source as it is: {unchanged.name}; they must pass, in a fraction of the time given")
            return 2
        seconds = PATIENCE * (time.monotonic() - began)
        places = Places(source, arguments.processes, seconds, began + 60 * arguments.minutes)
        outcomes = list(pool.map(places.tried, trials))
        survivors = [t.told(source) for t, o in zip(trials, outcomes, strict=True) if o is Outcome.SURVIVED]
    print("", *(f"survived: {each}" for each in survivors), sep="\n")
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
    parser = argparse.ArgumentParser(description="mutation testing of the assignors and the step")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    raise SystemExit(main(parser.parse_args()))
