"""The catalogue: every boundary of ingest and assign, and what can happen there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, zip_longest
from pathlib import Path
from typing import TypeVar

from groupledger.sinks.location import LedgerRefusal
from tests.faults.bench import Bench, Verdict
from tests.faults.daemon import AMBUSH, PLACES
from tests.faults.sessions import ROOT
from tests.faults.story import STEPS

Item = TypeVar("Item")
_WORDS = 100

CREATED = (("full", "torn"), ("torn", "denied"), ("denied", "full"))
"""What making a file can end with, in turn: the disk is full at once or after a few bytes, or read-only."""
RENAMED = ("full",)
FOLDING = ("fold", "file")
WORKERS = {"ingest": FOLDING, "late ingest": FOLDING, "assign": tuple(name for name in PLACES if name not in FOLDING)}


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault: `kind` is raised, killed, limited, worker, executor, clock or damage; `place` where, `action` what."""

    kind: str
    step: str
    place: str
    action: str

    @property
    def name(self) -> str:
        """For the list of what was injected."""
        return f"[{self.kind}] {self.step}: {self.action}, {self.place}"

    @property
    def real(self) -> bool:
        """Whether a process really dies."""
        return self.kind in ("killed", "worker", "executor")


def raised(bench: Bench, step: str) -> list[Injection]:
    """Every place at which files change in a step, with what can go wrong there."""
    places = [place for place in bench.places[step] if " crc " not in place]
    return [
        Injection("raised", step, place, action)
        for number, place in enumerate(places)
        for action in _actions(place, CREATED[number % len(CREATED)])
    ]


def _actions(place: str, created: tuple[str, ...]) -> tuple[str, ...]:
    """A table's second data file is met by one: it lies between the same two boundaries as the first."""
    if not place.startswith("create"):
        return RENAMED
    return created[:1] if place.endswith(" data 2") else created


def in_turn(*several: Iterable[Item]) -> Iterator[Item]:
    """One of each, then the next of each, until all are used up."""
    return (each for some in zip_longest(*several) for each in some if each is not None)


def killed(bench: Bench, most: int) -> list[Injection]:
    """Places at which the driver dies: before files, after files, after the log entry; at most `most`,
    over all steps."""
    found: list[Injection] = []
    for step in STEPS:
        first = [
            place for place in bench.places[step] if place.endswith((" log 1", " log 2")) and "create" not in place
        ]
        files = [place for place in bench.places[step] if place.endswith(" data 1")]
        found += [Injection("killed", step, place, "kill -9 of the driver") for place in (*first, *files)]
    count = min(most, len(found))
    return [found[number * len(found) // count] for number in range(count)]


def workers(step: str) -> list[Injection]:
    """A Python worker dies in the middle of a batch."""
    found = [f"{moment} {place}" for place in WORKERS[step] for moment in ("before", "after")]
    return [Injection("worker", step, place, "kill -9 of a Python worker") for place in found]


def clocks(step: str) -> list[Injection]:
    """The clock jumps while a step runs."""
    return [Injection("clock", step, "every look at the clock", jump) for jump in ("1971", "9998", "backwards")]


def jumping(jump: str):
    """A clock that stands in another time, or goes back by a year with every look."""
    if jump != "backwards":
        return lambda: datetime(int(jump), 1, 1, tzinfo=UTC)
    looks = count()
    return lambda: datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=366 * next(looks))


def in_a_row(bench: Bench, faults: list[Injection], ambush: Path) -> Iterator[tuple[Injection, Verdict]]:
    """Faults of one step in the warm session, each met by the run that follows the one before, and judged."""
    ledger: Path | None = None
    for number, fault in enumerate(faults, 1):
        ledger = ledger or bench.lay(fault.step)
        ended, reached = struck(bench, fault, ledger, ambush)
        yield fault, bench.settle(fault.name, fault.step, ledger, ended, reached, last=number == len(faults))
        ledger = ledger if ledger.exists() else None


def struck(bench: Bench, injection: Injection, ledger: Path, ambush: Path) -> tuple[str, bool]:
    """How the attempt ended that met the fault, and whether it did meet it."""
    now = {}
    bench.files.watch(ledger)
    if injection.kind == "raised":
        bench.files.arm(injection.place, injection.action)
    elif injection.kind == "worker":
        lay_ambush(ambush, f"worker {injection.place}")
    else:
        now = {"now": jumping(injection.action)}
    ended = bench.attempt(lambda: bench.story.take(bench.spark, ledger, injection.step, **now))
    reached = {"clock": True, "raised": bench.files.struck(), "worker": sprung(ambush)}[injection.kind]
    bench.files.watch(ledger)
    return ended, reached


def lay_ambush(ambush: Path, order: str) -> None:
    """The next worker that comes to the place dies, or its executor; see daemon.py."""
    ambush.with_suffix(".done").unlink(missing_ok=True)
    ambush.write_text(order, encoding="utf-8")


def sprung(ambush: Path) -> bool:
    """Whether one did; it is taken away."""
    ambush.unlink(missing_ok=True)
    return ambush.with_suffix(".done").exists()


@dataclass(frozen=True, slots=True)
class Killing:
    """A process that takes one step and dies in it."""

    injection: Injection
    ledger: Path

    def run(self, bench: Bench, classes: Path) -> tuple[int, str]:
        """Its exit code, -9 where it was killed, and the fault it ended with."""
        order = {
            "ledger": str(self.ledger),
            "classes": str(classes),
            "ambush": str(self.ledger.with_suffix(".ambush")),
            "story": str(bench.story.folder),
            "step": self.injection.step,
            "place": self.injection.place,
            "action": self.injection.kind,
        }
        command = [sys.executable, "-m", "tests.faults.killed", json.dumps(order)]
        environment = {name: value for name, value in os.environ.items() if name != AMBUSH}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, " ".join(line for line in done.stderr.splitlines() if LedgerRefusal.__name__ in line)

    def judged(self, bench: Bench, code: int, said: str) -> Verdict:
        """The step run again in the warm session."""
        limited = self.injection.kind == "limited"
        ended = f"exit code {code}{f' ({said[:_WORDS]})' if limited else ''}"
        reached = "cannot be written" in said if limited else code == -9
        return bench.settle(self.injection.name, self.injection.step, self.ledger, ended, reached)


def limited() -> Iterator[Injection]:
    """A real full disk: the kernel lets the JVM write no file beyond a size (RLIMIT_FSIZE)."""
    for step in STEPS:
        yield Injection("limited", step, "any file", "no file over 1,500 bytes")
