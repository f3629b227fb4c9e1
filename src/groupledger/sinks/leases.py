"""A lease: a row of `runs` that keeps a second `maintain` out, taken by compare-and-set and good for a while.

Nothing rests on it but work done twice: whatever a lease's holder does is safe beside any other writer.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.core.digest import digest
from groupledger.core.moment import iso
from groupledger.sinks import changes
from groupledger.sinks.runs import WriteConflict, merged, planned_row, runs_frame
from groupledger.tables import RUNS
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.sinks.runs import Attempt

LEASED = "leased"


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may do one kind of work, and for how long after each word. `attempt.kind` is what is leased."""

    attempt: Attempt
    length: timedelta

    def take(self, spark: SparkSession, location: LedgerLocation, now: datetime) -> None:
        """Take the lease, or say that it is still held. Raises WriteConflict where another holds it."""
        row = {c.STATUS: F.lit(LEASED), c.FINISHED_AT: F.lit(now + self.length)}
        mine = runs_frame(spark, [planned_row(self.attempt)]).withColumns(row)
        same = f"t.{c.STATUS} = '{LEASED}' AND t.{c.KIND} = s.{c.KIND}"
        over = f"t.{c.ATTEMPT_ID} = s.{c.ATTEMPT_ID} OR t.{c.FINISHED_AT} <= timestamp_micros({_micros(now)})"
        taking = f" WHEN MATCHED AND ({over}) THEN UPDATE SET *"
        if merged(location, mine, f"lease_{digest(self.attempt.attempt_id)}", same, taking) != 1:
            raise WriteConflict(self._refusal(spark, location))

    def renew(self, spark: SparkSession, location: LedgerLocation, now: datetime) -> None:
        """Say that it is still held, where half of its time is over."""
        if now >= self.attempt.started_at + self.length / 2:
            self.take(spark, location, now)

    def _refusal(self, spark: SparkSession, location: LedgerLocation) -> str:
        rows = location.rows(spark, RUNS).where((F.col(c.STATUS) == LEASED) & (F.col(c.KIND) == self.attempt.kind))
        holders = [(row[c.ATTEMPT_ID], row[c.FINISHED_AT]) for row in rows.collect()]
        held = "; ".join(f"attempt {holder} holds it until {iso(until)}" for holder, until in sorted(holders))
        return f"another {self.attempt.kind} is at work ({held or 'it took the lease just now'}); run it again later"

    def release(self, spark: SparkSession, location: LedgerLocation) -> None:
        """Give the lease back; nothing where another has taken it over."""
        mine = f"{c.STATUS} = '{LEASED}' AND {c.ATTEMPT_ID} = {literal(self.attempt.attempt_id)}"
        command = f"DELETE FROM {location.identifier(RUNS)} WHERE {mine}"  # noqa: S608 quoted by identifier and literal
        changes.run(spark, location, RUNS, command)


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)
