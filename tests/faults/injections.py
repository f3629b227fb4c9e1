"""The catalogue: every boundary of ingest and assign, and what can happen there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count, zip_longest
from pathlib import Path

from tests.faults.bench import Bench, Verdict
from tests.faults.daemon import AMBUSH, PLACES
from tests.faults.sessions import ROOT
from tests.faults.story import STEPS

RAISED = {"create": ("full", "torn", "denied"), "rename": ("full",), "renamed": ("full",)}
"""What an operation of the file system can end with: the disk is full at once or after a few bytes, or read-only."""
KILLED = ("create", "rename", "renamed")
"""Before a file, between the files and the log entry, and after the log entry."""
WORKERS = {"ingest": ("fold",), "late ingest": ("fold",), "assign": tuple(name for name in PLACES if name != "fold")}


@dataclass(frozen=True, slots=True)
class Injection:
    """One fault: `kind` is raised, killed, limited, worker or clock; `place` where, `action` what."""

    kind: str
    step: str
    place: str
    action: str

    @property
    def name(self) -> str:
        """For the list of what was injected."""
        return f"[{self.kind}] {self.step}: {self.action} at {self.place}"

    @property
    def real(self) -> bool:
        """Whether a process really dies."""
        return self.kind in ("killed", "worker", "executor")


def raised(bench: Bench) -> list[Injection]:
    """Every place at which files change, with all that can go wrong there; steps in turn."""
    by_step = [
        [
            Injection("raised", step, place, action)
            for place in bench.places[step]
            if " crc " not in place
            for action in RAISED.get(place.split()[0], ())
        ]
        for step in STEPS
    ]
    return [each for several in zip_longest(*by_step) for each in several if each is not None]


def killed(bench: Bench, most: int) -> list[Injection]:
    """Places at which the driver dies: before files, after files, after the log entry; at most `most`."""
    found: list[Injection] = []
    for step in STEPS:
        first = [
            place for place in bench.places[step] if place.endswith((" log 1", " log 2")) and "create" not in place
        ]
        files = [place for place in bench.places[step] if place.endswith(" data 1")]
        found += [Injection("killed", step, place, "kill -9 of the driver") for place in (*first, *files)]
    step_size = max(1, len(found) // most)
    return (found[::step_size] + [each for each in found if each not in found[::step_size]])[:most]


def workers() -> Iterator[Injection]:
    """A Python worker dies in the middle of a batch."""
    for step, places in WORKERS.items():
        for place in places:
            for call in (1, 2) if place == "fold" else (1,):
                yield Injection("worker", step, f"{place} {call}", "kill -9 of a Python worker")


def clocks() -> Iterator[Injection]:
    """The clock jumps while a step runs."""
    for step in STEPS:
        for jump in ("1971", "9998", "backwards"):
            yield Injection("clock", step, "every look at the clock", jump)


def jumping(jump: str):
    """A clock that stands in another time, or goes back by a year with every look."""
    if jump != "backwards":
        return lambda: datetime(int(jump), 1, 1, tzinfo=UTC)
    looks = count()
    return lambda: datetime(2026, 1, 1, tzinfo=UTC) - timedelta(days=366 * next(looks))


def inject(bench: Bench, injection: Injection, ambush: Path) -> Verdict:
    """One fault in the warm session, and the judgement."""
    ledger, step = bench.lay(injection.step), injection.step
    now = {}
    bench.files.watch(ledger)
    if injection.kind == "raised":
        bench.files.arm(injection.place, injection.action)
    elif injection.kind == "worker":
        ambush.with_suffix(".done").unlink(missing_ok=True)
        ambush.write_text(f"worker {injection.place}", encoding="utf-8")
    else:
        now = {"now": jumping(injection.action)}
    ended = bench.attempt(lambda: bench.story.take(bench.spark, ledger, step, **now))
    reached = injection.kind == "clock" or bench.files.struck() or ambush.with_suffix(".done").exists()
    ambush.unlink(missing_ok=True)
    bench.files.watch(ledger)
    return bench.settle(injection.name, step, ledger, ended, reached)


@dataclass(frozen=True, slots=True)
class Killing:
    """A process that takes one step and dies in it."""

    injection: Injection
    ledger: Path

    def run(self, bench: Bench, classes: Path) -> int:
        """Its exit code: -9 where it was killed."""
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
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
        return done.returncode

    def judged(self, bench: Bench, code: int) -> Verdict:
        """The step run again in the warm session."""
        reached = code == -9 if self.injection.kind == "killed" else code > 0
        return bench.settle(self.injection.name, self.injection.step, self.ledger, f"exit code {code}", reached)


def limited() -> Iterator[Injection]:
    """A real full disk: the kernel lets the JVM write no file beyond a size (RLIMIT_FSIZE)."""
    for step in STEPS:
        yield Injection("limited", step, "any file", "no file over 1,500 bytes")
