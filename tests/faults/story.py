"""A small history of one ledger, step by step, and what the ledger holds after each step.

Each step is one run of a job on the ledger as the step before left it. What it must hold is said by a digest of the
rows that count, read without Spark by the code of docs/guides/use/sql.md, free of attempts and their dead rows.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import itertools
import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from groupledger.config import AssignSettings, Config, LedgerSettings, LimitSettings, SourceSettings
from groupledger.config.loading import CAPTURES
from groupledger.pipeline.assign import assign
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks.ledger_tables import LedgerLocation, init
from groupledger.tables import RUNS, TABLES, Table
from groupledger.tables import columns as c
from tests.pages import documented_reader

ROOT = Path(__file__).parents[2]
CAPTURE = CAPTURES / "dev"
GROUPS = ("java-cooperative-sticky", "new-java-uniform")
BROKEN = ('{"partition": 0, "offset": 1, "time', '{"partition": 1, "offset": 900000, "timestamp": 1, "key": "%"}')
"""Two lines that are no records: their rejection is part of what must not be lost or doubled."""
LATE_EVERY = 5

STEPS = ("ingest", "late ingest", "assign")
RUN_COLUMNS = [
    *(c.RUN_ID, c.KIND, c.SEQUENCE, c.GUARDS, c.INPUT_DIGEST, c.CONFIG_DIGEST, c.CODE_DIGEST),
    *(c.COUNTS_IN, c.COUNTS_OUT, c.RESULT_DIGEST, c.VERDICT),
]
"""What two runs that did the same have in common; the code, since an assign of other code is another run."""

_numbers = itertools.count(1)


def steady() -> datetime:
    """A clock that stands still."""
    return datetime(2026, 11, 21, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Story:
    """The sources of all steps, written once into a folder."""

    folder: Path

    @staticmethod
    def written(folder: Path) -> Story:
        """Cut the sources from a captured log."""
        folder.mkdir(parents=True)
        lines = list(_of_groups(gzip.decompress((CAPTURE / "offsets.jsonl.gz").read_bytes()).decode().splitlines()))
        late = lines[::LATE_EVERY]
        early = [line for number, line in enumerate(lines) if number % LATE_EVERY]
        for name, content in (("early", [*early, *BROKEN]), ("late", late)):
            (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
        return Story(folder)

    def config(self, ledger: Path, step: str) -> Config:
        """The configuration of a step."""
        name = "late" if "late" in step else "early"
        log = SourceSettings(kind="offsets-jsonl", path=str(self.folder / f"{name}.jsonl"))
        topics = SourceSettings(kind="topics-jsonl", path=str(CAPTURE / "topics.jsonl.gz"))
        return Config(
            cluster_id="dev",
            ledger=LedgerSettings(location=str(ledger)),
            sources=(log,) if "late" in step else (topics, log),
            assign=AssignSettings(snapshots="every"),
            limits=LimitSettings(max_quarantined=len(BROKEN)),
            buckets=2,
        )

    def take(self, spark: Any, ledger: Path, step: str, now: Callable[[], datetime] = steady) -> Any:
        """Run a step; gives its summary."""
        config = self.config(ledger, step)
        place = LedgerLocation(path=str(ledger))
        attempt_id = f"attempt-{os.getpid()}-{next(_numbers)}-{now()}"  # unlike those of the processes that die
        invocation = Invocation(attempt_id=attempt_id, now=now, seconds=lambda: 0.0)
        if step == "assign":
            return assign(spark, config, invocation)
        return ingest(spark, place, config, invocation)


def empty(spark: Any, ledger: Path) -> None:
    """A ledger without rows."""
    init(spark, LedgerLocation(path=str(ledger)))


def _of_groups(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        key = base64.b64decode(json.loads(line)["key"])
        if key[4 : 4 + int.from_bytes(key[2:4], "big")].decode() in GROUPS:
            yield line


class Content:
    """The reader of docs/guides/use/sql.md over a whole ledger: what counts, and what dead attempts left behind."""

    def __init__(self) -> None:
        self.current = documented_reader()

    def digests(self, ledger: Path) -> dict[str, str]:
        """For each table a digest of the rows that count, in no order and without their attempt."""
        return {table.name: self._digest(ledger, table) for table in TABLES}

    def _digest(self, ledger: Path, table: Table) -> str:
        names = RUN_COLUMNS if table is RUNS else [name for name in table.columns if name != c.ATTEMPT_ID]
        return hashlib.sha256("\n".join(self.rows(ledger, table, names)).encode()).hexdigest()

    def rows(self, ledger: Path, table: Table, names: list[str]) -> list[str]:
        """These columns of the rows of a table that count, each row as JSON, sorted."""
        records = self.current(str(ledger), table.name)[names].to_dict("records")
        return sorted(
            json.dumps({name: _whole(value) for name, value in record.items()}, default=_plain, sort_keys=True)
            for record in records
        )

    def dead_rows(self, ledger: Path) -> int:
        """Rows of attempts that never counted."""
        committed = set(self.current(str(ledger), RUNS.name).attempt_id)
        stamped = [table for table in TABLES if table is not RUNS]
        ids = [DeltaTable(str(ledger / table.name)).to_pandas(columns=[c.ATTEMPT_ID]) for table in stamped]
        return sum(int((~each.attempt_id.isin(committed)).sum()) for each in ids)


def _whole(value: Any) -> Any:
    """What a column holds, whether or not another row has nothing there: then pandas makes floats of its numbers."""
    if not isinstance(value, float):
        return value
    return None if value != value else int(value) if value.is_integer() else value


def _plain(value: Any) -> Any:
    """What pandas has for lists, maps, times and bytes, as JSON takes it."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value.hex() if isinstance(value, bytes) else str(value)
