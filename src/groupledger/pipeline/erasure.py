"""What of a ledger can no longer be made again: rows that retention removed, and all of before a redaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from pyspark.sql import SparkSession

from groupledger.core.faults import Fault
from groupledger.sinks import runs
from groupledger.sinks.ledger import LedgerLocation
from groupledger.tables import Table

Stored = Mapping[tuple[str, str], int]
"""(table, attempt) -> rows that are there."""


def short(
    commits: Iterable[runs.Commit], table: Table, stored: Stored, removed: Mapping[str, Set[str]]
) -> Iterator[str]:
    """A line a committed attempt whose rows in a table are not all there, but for what retention removed."""
    for commit in commits:
        expected, there = commit.counts_out.get(table.name, 0), stored.get((table.name, commit.attempt_id), 0)
        gone = commit.attempt_id in removed.get(table.name, ()) and there == 0
        if there != expected and not gone:
            yield f"{commit.attempt_id} {table.name} {there} of {expected}"


@dataclass(frozen=True, slots=True)
class Erasure:
    """`removed`: by table, attempts whose rows went for good. `redacted`: number of a redaction's last commit, or 0."""

    removed: Mapping[str, Set[str]]
    redacted: int

    @classmethod
    def of(cls, spark: SparkSession, location: LedgerLocation) -> Erasure:
        """As of now."""
        last = runs.read_commits(spark, location).last(runs.REDACTION)
        return cls(runs.removals(spark, location), 0 if last is None else last.sequence)

    def touches(self, run: runs.Run) -> bool:
        """Whether rows of the run went or were changed: its digest then says nothing of those that are there."""
        return run.sequence < self.redacted or any(run.attempt_id in attempts for attempts in self.removed.values())

    def require_whole(self, run: runs.Run, short: Iterable[Table]) -> None:
        """Nothing where every table that is short of the run's rows was meant to be. Raises Fault RAW_ERASED."""
        lost = [table.name for table in short if run.attempt_id not in self.removed.get(table.name, ())]
        if lost:
            why = "a redaction" if run.sequence < self.redacted else "retention"
            what = (
                f"rows of run {run.run_id!r} are lost ({', '.join(lost)}), and cannot be made again: raw input erased"
            )
            raise Fault("RAW_ERASED", f"{what} by {why} (`groupledger maintain`); restore these tables from a backup")
