"""The undisturbed story, a fault in one step of it, and the judgement of what the ledger holds then."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from groupledger.core.faults import Fault
from groupledger.tables import RUNS
from tests.faults.sessions import FileFaults
from tests.faults.story import RUN_COLUMNS, STEPS, Content, Story, empty

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDS = (Fault, PySparkException, Py4JError, AssertionError, OSError)
"""What an attempt may end with when the world fails it."""
_WORDS = 90


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one fault. `wrong` is empty where nothing was lost or doubled; `then` says what was compared."""

    name: str
    ended: str
    dead_rows: int
    wrong: str
    then: str = "re-run: same"

    def __str__(self) -> str:
        judged = f"WRONG: {self.wrong}" if self.wrong else self.then
        return f"{self.name} -> {self.ended}; {self.dead_rows} dead rows; {judged}"


class Bench:
    """A warm session, and a ledger as it is before each step of the story."""

    def __init__(self, spark: SparkSession, story: Story, folder: Path) -> None:
        self.spark, self.story, self.folder = spark, story, folder
        self.files, self.content = FileFaults(spark), Content()
        self.numbers = itertools.count(1)
        self.places: dict[str, list[str]] = {}
        self.opened: dict[str, list[str]] = {}
        self.before: dict[str, Path] = {}
        self.expected: dict[str, dict[str, str]] = {}
        self.runs: dict[str, list[str]] = {}

    def prepare(self) -> None:
        """Run the story undisturbed; remember every place it passes, and what the ledger holds between the steps."""
        ledger = self.folder / "whole"
        empty(self.spark, ledger)
        for step in STEPS:
            self.before[step] = self.folder / f"before {step}"
            shutil.copytree(ledger, self.before[step])
            self.expected[f"before {step}"] = self.content.digests(ledger)
            self.files.watch(ledger)
            self.story.take(self.spark, ledger, step)
            passed = self.files.trace()
            self.places[step] = [place for place in passed if not place.startswith("open ")]
            self.opened[step] = [place for place in passed if place.startswith("open ")]
            self.expected[step] = self.content.digests(ledger)
            self.runs[step] = self._runs(ledger)
        shutil.move(ledger, self.folder / "after all")

    def narrow(self, table: str | None) -> None:
        """Let only places at files of this table be met; of every table where none is named."""
        if table is not None:
            self.places = {
                step: [place for place in places if place.split()[1] == table] for step, places in self.places.items()
            }

    def lay(self, step: str) -> Path:
        """A ledger of its own, as it is before the step."""
        ledger = self.folder / f"ledger-{next(self.numbers)}"
        shutil.copytree(self.before[step], ledger)
        return ledger

    def attempt(self, take: Callable[[], object]) -> str:
        """How an attempt ended, in a few words."""
        try:
            take()
        except ENDS as error:
            code = error.code if isinstance(error, Fault) else type(error).__name__
            return f"died ({code}: {' '.join(str(error).split())[:_WORDS]})"
        return "went through"

    def settle(self, name: str, step: str, ledger: Path, ended: str, reached: bool, last: bool = True) -> Verdict:
        """What counts after the fault is what counted before it or after the step; then the step is run again.

        Not the `last` fault of this ledger: the run again is the one that the next fault disturbs, if this one did not
        count. A ledger that was run again undisturbed is done with, and gone.
        """
        wrong = [] if reached else ["the place was not reached"]
        between = self.content.digests(ledger)
        if between not in (self.expected[f"before {step}"], self.expected[step]):
            wrong.append(f"after the fault: {self._differing(between, step)}")
        dead = self.content.dead_rows(ledger)
        self.files.forget()
        if not last and between == self.expected[f"before {step}"]:
            return Verdict(name, ended, dead, "; ".join(wrong), "counts as before; run again under the next")
        wrong += self._run_again(step, ledger)
        return Verdict(name, ended, dead, "; ".join(wrong))

    def _run_again(self, step: str, ledger: Path) -> list[str]:
        """Undisturbed, and what is not as it must be then."""
        again = self.attempt(lambda: self.story.take(self.spark, ledger, step))
        wrong = [] if again == "went through" else [f"run again, it {again}"]
        wrong += self.unlike(ledger, step)
        self.files.forget()
        shutil.rmtree(ledger)
        return wrong

    def unlike(self, ledger: Path, step: str) -> list[str]:
        """The tables that do not hold what the undisturbed story has after the step."""
        found = self.content.digests(ledger)
        if found == self.expected[step]:
            return []
        words = [f"differing: {self._differing(found, step)}"]
        return words if found[RUNS.name] == self.expected[step][RUNS.name] else [*words, *self._of_runs(ledger, step)]

    def _differing(self, found: dict[str, str], step: str) -> str:
        return ", ".join(name for name, digest in found.items() if digest != self.expected[step][name])

    def _runs(self, ledger: Path) -> list[str]:
        return self.content.rows(ledger, RUNS, RUN_COLUMNS)

    def _of_runs(self, ledger: Path, step: str) -> Iterator[str]:
        """What differs in the runs that count, by column: a digest alone says nothing of it."""
        found, expected = self._runs(ledger), self.runs[step]
        if len(found) != len(expected):
            yield f"{len(found)} runs count, expected {len(expected)}"
        for one, other in zip(map(json.loads, found), map(json.loads, expected), strict=False):
            yield from (f"{name} is {one[name]}, expected {other[name]}" for name in one if one[name] != other[name])
