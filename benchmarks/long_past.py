"""A ledger with a long past, made of a young one without ingesting: as if so many runs had come before its last.

A run is an ingest and the `assign` after it. Each older one is a copy of the last: the rows of each of its tables at
lower offsets, under attempts of their own, in files of their own, and a commit in each table's log, as Spark makes
them. What a run after it costs is what it costs after as many real ones that brought the same groups; what the rows say
of groups is not.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from pyarrow import parquet

from groupledger.sinks.attempts import COMMITTED, FACTS_AS_OF, INGEST, PLANNED, READ, FolderCommitLog, RunRow, itself
from groupledger.sinks.ledger_tables import CHECKPOINT_INTERVAL
from groupledger.tables import ASSIGNMENTS, REBALANCES, RUNS, TABLES, VIOLATIONS
from groupledger.tables import columns as c

ASSIGN = "assign"
RESULTS = (REBALANCES, ASSIGNMENTS, VIOLATIONS)
STEP = 4
"""Offsets by which each older ingest lies lower: fewer than the rarest group brings."""
OFFSETS = (c.OFFSET, c.FROM_OFFSET)
SNAPSHOTS = (c.SNAPSHOT_ID, c.PREVIOUS_SNAPSHOT_ID, c.FIRST_SNAPSHOT_ID)
_BOUNDS = ("minValues", "maxValues")
_NOT_KNOWN = ("txnId", "allFiles", "fileSizeHistogram", "histogramOpt")
"""Of a version's checksum: what may be left out, and would have to be counted."""


def with_past(young: Path, old: Path, ingests: int) -> None:
    """Copy a ledger, of which one ingest and one assign are the runs, to `old`, and give it a past."""
    shutil.copytree(young, old)
    for table in TABLES:
        log = old / table.name
        if table is not RUNS and DeltaTable(str(log)).get_add_actions().num_rows:
            grown = _Table(log, DeltaTable(str(log)).version(), ASSIGN if table in RESULTS else INGEST)
            for number in range(1, ingests + 1):
                grown.add(number)
    _add_runs(old / RUNS.name, ingests)


def _attempt(number: int, kind: str) -> str:
    return f"{kind}-{number:05}-0000-0000-000000000000"


@dataclass(frozen=True, slots=False)
class _Table:
    """A table whose last commit is copied."""

    folder: Path
    version: int
    kind: str  # of the runs that write it

    @cached_property
    def actions(self) -> list[dict[str, Any]]:
        """The last commit."""
        lines = self._entry(self.version).read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    @cached_property
    def files(self) -> list[tuple[dict[str, Any], pa.Table]]:
        """What it added, and the rows."""
        added = [action["add"] for action in self.actions if "add" in action]
        return [(add, parquet.read_table(self.folder / add["path"])) for add in added]

    @cached_property
    def checksum(self) -> dict[str, Any]:
        """Of the last version, without what is left out."""
        found = json.loads(self._entry(self.version, "crc").read_text(encoding="utf-8"))
        return {name: value for name, value in found.items() if name not in _NOT_KNOWN}

    def add(self, number: int) -> None:
        """A commit more."""
        version = self.version + number
        added = [self._file(add, rows, number, at) for at, (add, rows) in enumerate(self.files)]
        kept = [action for action in self.actions if "add" not in action]
        text = "\n".join(json.dumps(action) for action in (*kept, *added))
        self._entry(version).write_text(f"{text}\n", encoding="utf-8")
        size = number * sum(add["size"] for add, _ in self.files)
        told = {"numFiles": self.checksum["numFiles"] + number * len(self.files)}
        told |= {"tableSizeBytes": self.checksum["tableSizeBytes"] + size}
        self._entry(version, "crc").write_text(json.dumps(self.checksum | told), encoding="utf-8")
        if version % CHECKPOINT_INTERVAL == 0:
            DeltaTable(str(self.folder)).create_checkpoint()

    def _file(self, add: dict[str, Any], rows: pa.Table, number: int, at: int) -> dict[str, Any]:
        attempt = _attempt(number, self.kind)
        name = f"part-{at:05}-{attempt}.snappy.parquet"
        parquet.write_table(_older(rows, number, attempt), self.folder / name, store_schema=False)
        stats = json.loads(add["stats"])
        for bounds in (stats[each] for each in _BOUNDS):
            bounds[c.ATTEMPT_ID] = attempt
            bounds.pop(c.SNAPSHOT_ID, None)
            if c.OFFSET in bounds:
                bounds[c.OFFSET] -= STEP * number
        size = (self.folder / name).stat().st_size
        return {"add": add | {"path": name, "size": size, "stats": json.dumps(stats)}}

    def _entry(self, version: int, kind: str = "json") -> Path:
        return self.folder / "_delta_log" / f"{version:020}.{kind}"


def _older(rows: pa.Table, number: int, attempt: str) -> pa.Table:
    """The rows at lower offsets, of another attempt."""
    for name in (each for each in OFFSETS if each in rows.column_names):
        lower = pc.subtract(rows[name], pa.scalar(STEP * number, rows.schema.field(name).type))
        rows = _with(rows, name, pc.if_else(pc.less(rows[name], 0), rows[name], lower))
    for name in (each for each in SNAPSHOTS if each in rows.column_names):
        parts = pc.extract_regex(rows[name], "^(?P<place>.*/)(?P<offset>[0-9]+)$")
        lower = pc.subtract(pc.struct_field(parts, "offset").cast(pa.int64()), STEP * number)
        rows = _with(rows, name, pc.binary_join_element_wise(pc.struct_field(parts, "place"), lower.cast("string"), ""))
    return _with(rows, c.ATTEMPT_ID, pa.array([attempt] * rows.num_rows))


def _with(rows: pa.Table, name: str, values: Any) -> pa.Table:
    kind = rows.schema.field(name)
    return rows.set_column(rows.column_names.index(name), kind, values.cast(kind.type))


def _add_runs(folder: Path, ingests: int) -> None:
    """Plan and commit a run like each of the last two so many times, in the way runs are."""
    runs = FolderCommitLog(folder)
    ingest, assign = sorted(runs.read(itself, COMMITTED), key=lambda row: row[c.SEQUENCE])
    read, computed = (json.loads(row[c.INPUTS]) for row in (ingest, assign))
    for number in range(1, ingests + 1):
        lower, sequence = STEP * number, assign[c.SEQUENCE] + 2 * number
        ranges = {
            cluster: {partition: [first - lower, end - lower] for partition, (first, end) in partitions.items()}
            for cluster, partitions in read[READ].items()
        }
        _add_run(runs, ingest, number, read | {READ: ranges}, sequence - 1)
        _add_run(runs, assign, number, computed | {FACTS_AS_OF: sequence - 1}, sequence)


def _add_run(runs: FolderCommitLog, row: RunRow, number: int, inputs: dict[str, Any], sequence: int) -> None:
    """One more run like that of the row, planned and committed."""
    told = {c.RUN_ID: f"{row[c.KIND]}-{number}", c.ATTEMPT_ID: _attempt(number, row[c.KIND])}
    done = {**row, **told, c.INPUTS: json.dumps(inputs), c.SEQUENCE: sequence}
    runs.append(done | {c.STATUS: PLANNED, c.SEQUENCE: None})
    runs.append(done)
    runs.gather()
