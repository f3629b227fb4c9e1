"""Ledgers to ingest into."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from groupledger.config import Config, LedgerSettings, SourceSettings
from groupledger.pipeline import ingest as ingesting
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.attempts import Run
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation

MOMENT = datetime(2026, 11, 21, tzinfo=UTC)
_numbers = itertools.count(1)


class Workspace:
    """A ledger of its own, and the sources written for it."""

    def __init__(self, spark, new_ledger: Callable[[Path], LedgerLocation], folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.location = new_ledger(folder / "ledger")

    def copied(self, folder: Path) -> Workspace:
        """The same ledger in another folder: what happens to either does not happen to the other."""
        return Workspace(self.spark, lambda place: _copied(self.location, place), folder)

    def source(self, name: str, lines, kind: str = "offsets-jsonl") -> SourceSettings:
        """A file of these lines."""
        path = self.folder / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return SourceSettings(kind=kind, path=str(path))

    def ingest(
        self,
        *sources: SourceSettings,
        run_id: str | None = None,
        cluster_id: str | None = "edge",
        beside: Callable[[], object] | None = None,
        **settings,
    ):
        """One ingest of these sources, all of one cluster; `beside` happens once it has begun to read.

        Ingests beside each other take no turns, as on a store that has no locks.
        """
        config = Config(
            cluster_id=cluster_id, ledger=LedgerSettings(location=self.location.path), sources=sources, **settings
        )
        with patch.object(ingesting, "turn", lambda *_: nullcontext()) if beside else nullcontext():
            return ingesting.ingest(self.spark, self.location, config, invocation(run_id, beside))

    def rows(self, table, *without: str):
        """The rows that count, as sorted tuples, but for the columns that name the attempt and those given."""
        left_out = {"attempt_id", *without}
        names = [name for name in table.columns if name not in left_out]
        return sorted(map(str, current(self.spark, self.location, table).select(*names).collect()))


def committed(sequence: int, *guards: str, counts_out=MappingProxyType({}), inputs: str = "{}") -> Run:
    """The ingest that counts as this number."""
    names = f"run-{sequence}", f"a-{sequence}", "ingest"
    return Run(*names, sequence, guards, inputs, None, "", "", {}, counts_out, "", "done", MOMENT)


def _copied(location: LedgerLocation, folder: Path) -> LedgerLocation:
    shutil.copytree(str(location.path), folder)
    return LedgerLocation(path=str(folder))


def invocation(run_id=None, beside=None):
    """An attempt with a name of its own at a moment that stands still, and with it what happens `beside`, once."""
    happens = [beside] if beside else []

    def now():
        if happens:
            happens.pop()()
        return MOMENT

    return Invocation(
        attempt_id=f"attempt-{next(_numbers)}",
        now=now,
        seconds=lambda: 0.0,
        run_id=run_id,
    )
