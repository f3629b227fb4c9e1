"""Draw mutants of a part of the source by seed, run their tests on each uncompiled, and tell what survives.

python -m tests.mutants [--part assignors] [--count 500] [--seed 1] [--minutes 60] [--survivors-of OUTPUT] [--all-tests]

A mutant is killed when a test fails or does not end. All tests of the part run once on the source as it is, which shows
what each reaches (`reach`); a mutant is tried by those that reach its line, the quickest first. The source of the work
tree is copied; nothing in it is changed. Ends with status 1 where under 90 % of those tried are killed, 2 where the
time was not enough for all. Survivors known to be no other program are listed with the reason (`equivalent`), and count
as survivors. A test that was added can only kill more: given the output of an earlier run of the same source and seed,
only what survived then is tried again; with `--all-tests` by every test of the part.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import pytest

from tests.mutants import forks, patience
from tests.mutants.equivalent import EQUIVALENT
from tests.mutants.forks import ROOT
from tests.mutants.keys import Key
from tests.mutants.parts import CORE, PACKAGE, PARTS
from tests.mutants.reach import Chosen, Reached, Recorder, Statement
from tests.mutants.sites import Mutant, mutants, statement_at

WANTED_KILLED = 0.9


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

    def key(self, root: Path) -> Key:
        """What it is, wherever it stands in its file."""
        line = (root / self.path).read_text(encoding="utf-8").splitlines()[self.mutant.line - 1].strip()
        below = CORE if self.path.is_relative_to(CORE) else PACKAGE
        return Key(str(self.path.relative_to(below)), line, self.mutant.old, self.mutant.new)

    def statement(self, root: Path) -> Statement | None:
        """What it changes; None for what runs when the file is loaded."""
        line = statement_at((root / self.path).read_bytes(), self.mutant.line)
        return None if line is None else Statement(self.path, line)


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
        Trial(path.relative_to(root), each)
        for path in of.files(root)
        for each in mutants(path.read_bytes(), wide=of.wide)
    ]
    return random.Random(seed).sample(every, min(count, len(every)))  # noqa: S311 reproducible, not secret


def survivors(trials: Sequence[Trial], root: Path, output: str) -> list[Trial]:
    """Those of the trials that an earlier run's output tells."""
    before = {line.partition(": src")[2] for line in output.splitlines()}
    return [trial for trial in trials if told(trial, root).partition(": src")[2] in before]


@dataclass(frozen=True, slots=True)
class Bench:
    """The source as it is, in a folder, with what its tests reach; copies to change stand beside it."""

    source: Path
    reached: Reached
    all_tests: bool

    def tried(self, trials: Iterable[Trial], copies: int, ends_at: float) -> Counter[Outcome]:
        """Try each mutant until the time is over, as many at once as there are copies."""
        beside = Path(tempfile.mkdtemp(dir=self.source.parent))
        free = [Path(shutil.copytree(self.source, beside / str(number))) for number in range(copies)]
        waiting = deque(trials)
        running: dict[int, tuple[Trial, Path]] = {}
        outcomes: Counter[Outcome] = Counter()
        while running or (waiting and time.monotonic() <= ends_at):
            if free and waiting and time.monotonic() <= ends_at:
                trial = waiting.popleft()
                tests = self.tests_of(trial)
                if tests:
                    place = free.pop()
                    running[self._started(place, trial, tests)] = trial, place
                else:
                    outcomes[self._told(trial, Outcome.SURVIVED)] += 1
            else:
                process, status = forks.ended()
                trial, place = running.pop(process)
                shutil.copy2(self.source / trial.path, place / trial.path)
                free.append(place)
                outcomes[self._told(trial, _outcome(status))] += 1
        outcomes[Outcome.NOT_TRIED] += len(waiting)
        return outcomes

    def tests_of(self, trial: Trial) -> list[str]:
        """The tests that are to see it, the quickest first."""
        return self.reached.tests_of(None if self.all_tests else trial.statement(self.source))

    def _started(self, place: Path, trial: Trial, tests: list[str]) -> int:
        path = place / trial.path
        path.write_bytes(trial.mutant.applied(path.read_bytes()))
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
        chosen = Chosen(tests, frozenset(self.reached.seconds))
        return forks.start(place, files, place / "output", patience, chosen)

    def _told(self, trial: Trial, outcome: Outcome) -> Outcome:
        survivor = f"\n{told(trial, self.source)}\n" if outcome is Outcome.SURVIVED else ""
        print(outcome.value, end=survivor, flush=True)
        return outcome


def _copy(source: Path) -> None:
    for name in ("src", "tests", "conf", "docs", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md"):
        shutil.copy2(ROOT / name, source)


def _outcome(status: int) -> Outcome:
    if status == pytest.ExitCode.NO_TESTS_COLLECTED:
        raise RuntimeError("none of the tests that reach a mutant was found")
    if status == patience.RUNS_ON:
        return Outcome.TIMED_OUT
    return Outcome.KILLED if status else Outcome.SURVIVED


def watched(source: Path, trials: Sequence[Trial], tests: Sequence[str]) -> Reached | None:
    """What the tests reach of the statements that the mutants change; None, and their output, if they do not pass."""
    statements = (trial.statement(source) for trial in trials)
    wanted = list(dict.fromkeys(each for each in statements if each is not None))
    output, found = source.with_name("output"), source.with_name("reached")
    forks.start(source, tests, output, Recorder(source, wanted, found), bytecode=True)
    _, status = forks.ended()
    if status:
        print(f"{output.read_text()}\ntests of the source as it is must pass; they end with status {status}")
        return None
    return Reached.read(found, wanted)


def main(arguments: argparse.Namespace) -> int:
    """Try the drawn mutants; print the survivors and the share killed."""
    began = time.monotonic()
    forks.load()
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source").resolve()
        _copy(source)
        trials = drawn(source, arguments.count, arguments.seed, arguments.part)
        if arguments.survivors_of:
            trials = survivors(trials, source, arguments.survivors_of.read_text())
        reached = watched(source, trials, PARTS[arguments.part].tests)
        if reached is None:
            return 2
        bench = Bench(source, reached, arguments.all_tests)
        outcomes = bench.tried(trials, arguments.processes, began + 60 * arguments.minutes)
    print()
    return _judged(outcomes, arguments.seed)


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
    parser.add_argument("--survivors-of", type=Path, metavar="OUTPUT", help="only those that survived in this output")
    parser.add_argument("--all-tests", action="store_true", help="also those that were not seen to reach the mutant")
    raise SystemExit(main(parser.parse_args()))
