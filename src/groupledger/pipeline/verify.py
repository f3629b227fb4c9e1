"""`replay --verify`: a run of long ago made again from what it was made of, and held against what it committed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.core.digest import result_digest, short_digest
from groupledger.core.faults import Fault
from groupledger.pipeline.erasure import Erasure
from groupledger.pipeline.remaking import RemadeRows, Remaking
from groupledger.sinks import runs
from groupledger.sinks.append import Written, digest_name, digests, measured, stamp, stored
from groupledger.sinks.ledger import check
from groupledger.sinks.refusals import RAW, engine_errors_as_faults
from groupledger.sinks.upkeep import STAMPED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.config import Config
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

KNOWN_SHOWN = 10


@dataclass(frozen=True, slots=True)
class VerifiedTable:
    """Rows of the run in one table: as many as it committed, and as many as come out now.

    `same`: their digests are equal; None where the run kept one digest of all its tables and none of this one.
    """

    table: str
    committed: int
    made: int
    same: bool | None


@dataclass(frozen=True, slots=True)
class Verification:
    """A run made again. `code_then` is the code that the run was made by."""

    run_id: str
    kind: str
    sequence: int
    code_then: str
    tables: tuple[VerifiedTable, ...]
    same: bool


def verify(spark: SparkSession, location: LedgerLocation, config: Config, run_id: str) -> Verification:
    """Make a committed run again, as of the commits that it saw, and compare the digests. Nothing is written.

    Raises Fault: UNKNOWN_RUN; NOTHING_TO_VERIFY for a run that computes nothing; RAW_ERASED where retention or a
    redaction took what it was made of; SOURCES_CHANGED, REBUILT_DIFFERENT where there is no way to make it again.
    """
    with engine_errors_as_faults(location):
        check(spark, location)
        run = _found(runs.history(spark, location), run_id)
        remaking = Remaking(spark, location, config)
        if not remaking.wrote(run):
            raise Fault("NOTHING_TO_VERIFY", f"run {run_id!r} is a {run.kind}: it computes no rows of its own")
        _require_inputs(run, Erasure.of(spark, location))
        rows = remaking.made(run)
        try:
            return _compared(spark, location, run, rows)
        finally:
            rows.release()


def _found(history: tuple[runs.Run, ...], run_id: str) -> runs.Run:
    """The run of that name; where it was committed more than once, the last one."""
    for run in reversed(history):
        if run.run_id == run_id:
            return run
    known = ", ".join(run.run_id for run in reversed(history[-KNOWN_SHOWN:]))
    raise Fault("UNKNOWN_RUN", f"no committed run is called {run_id!r}; the latest: {known or 'none'}")


def _require_inputs(run: runs.Run, erasure: Erasure) -> None:
    if erasure.touches(run):
        why = "a redaction changed" if run.sequence < erasure.redacted else "retention removed"
        raise Fault("RAW_ERASED", f"{why} rows of run {run.run_id!r}: what it wrote can no longer be compared")


def _compared(spark: SparkSession, location: LedgerLocation, run: runs.Run, rows: RemadeRows) -> Verification:
    """The rows of the tables that follow from others; raw records are what all of it is made of."""
    derived = [table for table in STAMPED if table.name not in RAW]
    made = {table.name: _measured(table, run, rows) for table in derived}
    by_table = any(digest_name(table.name) in run.counts_out for table in STAMPED)
    told = tuple(
        VerifiedTable(name, committed, found.rows, _same(run, found) if by_table else None)
        for name, found in made.items()
        if (committed := run.counts_out.get(name, 0)) or found.rows
    )
    if by_table:
        same = all(each.same for each in told)
    else:
        same = result_digest(digests((*made.values(), *_raw(spark, location, run)))) == run.result_digest
    return Verification(run.run_id, run.kind, run.sequence, run.code_digest, told, same)


def _measured(table: Table, run: runs.Run, rows: RemadeRows) -> Written:
    """What an append of the rows of one table would have said."""
    if not rows.has(table):
        return Written(table.name, 0, ())
    again = stamp(table, rows.of(table), run.attempt_id, run.schema_version)
    return measured(table, again).get(run.attempt_id, Written(table.name, 0, ()))


def _same(run: runs.Run, found: Written) -> bool:
    wanted = run.counts_out.get(digest_name(found.table))
    return wanted == (short_digest(found.digest) if found.rows else None)


def _raw(spark: SparkSession, location: LedgerLocation, run: runs.Run) -> list[Written]:
    """The raw rows of a run that kept one digest of everything, as they stand in their tables."""
    tables = [table for table in STAMPED if table.name in RAW]
    found: list[Mapping[str, Written]] = [stored(spark, location, table, run.attempt_id) for table in tables]
    return [each[run.attempt_id] for each in found if run.attempt_id in each]
