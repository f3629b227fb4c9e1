"""The rows of a run beside what it committed, and what of a ledger can no longer be made again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass

from pyspark.sql import SparkSession

from groupledger.core.digest import result_digest, short_digest
from groupledger.core.faults import Fault
from groupledger.sinks import attempts
from groupledger.sinks.append import DIGESTS, Written, digest_name, digests
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import Table

Stored = Mapping[tuple[str, str], int]
"""(table, attempt) -> rows that are there."""


def short(
    commits: Iterable[attempts.Commit], table: Table, stored: Stored, removed: Mapping[str, Set[str]]
) -> Iterator[str]:
    """Yield a line for each committed attempt with missing rows in a table that retention did not remove."""
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
        """Read it as of now."""
        last = attempts.read_commits(spark, location).last(attempts.REDACTION)
        return cls(attempts.removals(spark, location), 0 if last is None else last.sequence)

    def touches(self, run: attempts.Run) -> bool:
        """Return whether rows of the run went or were changed: its digest then says nothing of those that are there."""
        return run.sequence < self.redacted or any(run.attempt_id in attempts for attempts in self.removed.values())

    def require_whole(self, run: attempts.Run, short: Iterable[Table]) -> None:
        """Raise Fault RAW_ERASED if a table lacks rows of the run that were not removed on purpose."""
        lost = [table.name for table in short if run.attempt_id not in self.removed.get(table.name, ())]
        if lost:
            why = "a redaction" if run.sequence < self.redacted else "retention"
            what = (
                f"rows of run {run.run_id!r} are lost ({', '.join(lost)}), and cannot be made again: raw input erased"
            )
            raise Fault("RAW_ERASED", f"{what} by {why} (`groupledger maintain`); restore these tables from a backup")


@dataclass(frozen=True, slots=True)
class RunRows:
    """Rows by table beside what their run committed: numbers of rows, and digests."""

    run: attempts.Run
    tables: Mapping[str, Written]

    @classmethod
    def of(cls, run: attempts.Run, contents: Mapping[str, Mapping[str, Written]]) -> RunRows:
        """Choose the run's rows from the contents of tables, by table and attempt."""
        return cls(run, {name: found[run.attempt_id] for name, found in contents.items() if run.attempt_id in found})

    @property
    def by_table(self) -> bool:
        """Return whether the run committed a digest of each table."""
        return any(name.startswith(DIGESTS) for name in self.run.counts_out)

    def number(self, table: Table) -> int:
        """Return the number of rows."""
        return self.tables[table.name].rows if table.name in self.tables else 0

    def committed(self, table: Table) -> int:
        """Return the number of rows that the run committed."""
        return self.run.counts_out.get(table.name, 0)

    def digest(self, table: Table) -> int | None:
        """Return the short digest of the rows; None if there are none."""
        return short_digest(self.tables[table.name].digest) if self.number(table) else None

    def committed_digest(self, table: Table) -> int | None:
        """Return the short digest that the run committed; None if there was no row, or no digest of each table."""
        return self.run.counts_out.get(digest_name(table.name))

    def same(self, table: Table) -> bool:
        """Return whether the digests of a table are equal."""
        return self.digest(table) == self.committed_digest(table)

    @property
    def digest_of_all(self) -> str:
        """Return the digest of the rows of all tables."""
        return result_digest(digests(self.tables.values()))

    @property
    def all_same(self) -> bool:
        """Return whether it is the digest that the run committed."""
        return self.digest_of_all == self.run.result_digest
