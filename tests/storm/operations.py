"""The commands that a storm's workers run, as an operator would, and how each may end."""

from __future__ import annotations

import itertools
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from groupledger.answers.at_a_glance import findings, groups, runs
from groupledger.answers.reader import LedgerReader
from groupledger.cli.exits import explained, foreign_errors
from groupledger.core.faults import Fault
from groupledger.core.ledger_version import VERSION_PROPERTY
from groupledger.pipeline.assign import assign
from groupledger.pipeline.call_tables import keep_calls
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import maintain
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks import append
from groupledger.sinks.ledger_tables import LedgerLocation, migrate
from groupledger.tables import METRICS, SCHEMA_VERSION
from groupledger.tables.sql_text import literal
from tests.storm.sources import ASSIGNS, Sources

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WEIGHTS = {
    **{"ingest": 8, "assign": 4, "callbacks": 2, "maintain": 3},
    **{"migrate": 1, "rebuild": 1, "show": 2},
}
REDACT = "redact"
MAY_END = {"WRITE_CONFLICT", "LEDGER_OLDER", "JVM_GONE"}
"""Another was faster; another is about to migrate; its JVM was killed, and is just ending. All say: run it again."""
FULL, NO_MORE = {"LEDGER_UNWRITABLE"}, "File too large"
"""What a full disk is told as; so it is by who began to write before the limit of an earlier command was lifted."""
FULL_EVERY, JUMP_EVERY, OLDER_EVERY = 12, 6, 3
LIMITS = (2_000, 20_000)
_numbers = itertools.count(1)


@dataclass(frozen=True, slots=True)
class Storm:
    """What one worker works on. `names` are the commands it may draw."""

    spark: SparkSession
    sources: Sources
    ledger: Path
    pieces: tuple[str, ...]
    random: Random

    @property
    def location(self) -> LedgerLocation:
        """The ledger's place."""
        return LedgerLocation(path=str(self.ledger))

    def run(self, name: str, now: Callable[[], datetime]) -> str:
        """Run a command; what there is to say of it."""
        invocation = Invocation(
            attempt_id=f"attempt-{os.getpid()}-{next(_numbers)}-{self.random.getrandbits(32):x}",
            now=now,
            seconds=lambda: 0.0,
        )
        return str(getattr(self, f"_{name}")(invocation))

    def _ingest(self, invocation: Invocation) -> str:
        piece = self.random.choice(self.pieces)
        done = ingest(self.spark, self.location, self.sources.config(self.ledger, piece), invocation)
        return "again" if done.already_committed else f"piece {piece}"

    def _assign(self, invocation: Invocation) -> str:
        chosen = self.random.choice(ASSIGNS)
        done = assign(self.spark, self.sources.config(self.ledger, assign=chosen), invocation)
        return "again" if done.already_committed else chosen.scenario

    def _callbacks(self, invocation: Invocation) -> str:
        done = keep_calls(self.spark, self.sources.config(self.ledger), invocation, 24)
        return "again" if done.already_committed else "derived"

    def _maintain(self, invocation: Invocation) -> str:
        done = maintain(self.spark, self.location, self.sources.config(self.ledger), invocation)
        return f"gave up {done.given_up}, removed {done.rows_removed}"

    def _redact(self, invocation: Invocation) -> str:
        done = maintain(self.spark, self.location, self.sources.config(self.ledger), invocation, redact=True)
        return f"{done.redacted} tables"

    def _migrate(self, invocation: Invocation) -> str:
        """Now and then of a table that says it is of the version before."""
        if not self.random.randrange(OLDER_EVERY):
            older = f"{literal(VERSION_PROPERTY)} = {literal(str(SCHEMA_VERSION - 1))}"
            command = f"ALTER TABLE {self.location.identifier(METRICS)} SET TBLPROPERTIES ({older})"
            append.run(self.spark, self.location, METRICS, command)
        return f"brought forward {sorted(migrate(self.spark, self.location))}"

    def _rebuild(self, invocation: Invocation) -> str:
        """Nothing may be missing: no file was harmed."""
        done = rebuild(self.spark, self.location, self.sources.config(self.ledger), invocation)
        if done.remade or done.set_aside:
            lost = [f"{each.table} of {each.run_id}" for each in done.remade]
            raise AssertionError(f"rebuild found rows missing: {lost}, {dict(done.set_aside)}")
        return f"{done.runs} runs"

    def _show(self, invocation: Invocation) -> str:
        reader = LedgerReader(str(self.ledger))
        listings = [groups(reader, 50), runs(reader, 50), findings(reader, 50)]
        return f"{sum(len(listing.rows) for listing in listings)} rows"


def clock(random: Random) -> tuple[str, Callable[[], datetime]]:
    """The time of day, or a clock that jumps by days while a command runs: leases run out, attempts look dead."""
    if random.randrange(JUMP_EVERY):
        return "", _now
    return "clock jumps", lambda: _now() + timedelta(hours=random.choice((-9_000, -2, 0, 2, 48)))


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - a worker is an entry point


@contextmanager
def disk(random: Random, jvm: int) -> Iterator[str]:
    """Now and then no file can grow: the kernel refuses to write more than a few bytes of each."""
    if random.randrange(FULL_EVERY):
        yield ""
        return
    before = resource.prlimit(jvm, resource.RLIMIT_FSIZE)
    resource.prlimit(jvm, resource.RLIMIT_FSIZE, (random.choice(LIMITS), before[1]))
    try:
        yield "disk full"
    finally:
        with suppress(ProcessLookupError):
            resource.prlimit(jvm, resource.RLIMIT_FSIZE, before)


def ended(error: Exception, *, full: bool) -> dict[str, Any]:
    """How a command ended that did not come through: as it may, or wrong. It is told as the command line tells it."""
    if not isinstance(error, Fault) and isinstance(error, foreign_errors()):
        error = explained(error, {}) or error
    if isinstance(error, Fault) and (
        error.code in MAY_END or (error.code in FULL and (full or NO_MORE in error.message))
    ):
        return {"ended": error.code, "detail": error.message[:300]}
    return {"ended": "wrong", "detail": f"{type(error).__name__}: {error}"[:3000]}
