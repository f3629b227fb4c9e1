"""`doctor --deep`: are the rows that committed runs wrote still the rows that are there? Every row is read.

A run commits one digest of all its rows (`result_digest`), and in `counts_out` a short one of each table
(`digest.<table>`). What retention removed is not there to be compared, and what a redaction rewrote is not what the run
wrote: of such runs the other tables are compared, each by its own digest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from groupledger.core.digest import result_digest, short_digest
from groupledger.pipeline.erasure import Erasure
from groupledger.pipeline.redaction import may_change
from groupledger.sinks import runs
from groupledger.sinks.append import Written, digest_name, digests, stored
from groupledger.sinks.upkeep import STAMPED

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

Contents = Mapping[str, Mapping[str, Written]]
"""By table and attempt."""

_EQUAL, _ERASED, _UNKNOWN = "equal", "erased", "unknown"


@dataclass(frozen=True, slots=True)
class DigestComparison:
    """What the tables hold against what the runs committed. All but `different` counts tables of runs."""

    different: tuple[str, ...]  # a line each: table, attempt, run, rows and digest got and wanted
    equal: int
    erased: int  # removed by retention or rewritten by a redaction: there is nothing to compare with
    unknown: int  # beside an erased one, of a run that kept no digest of each table


def compare(spark: SparkSession, location: LedgerLocation) -> DigestComparison:
    """Compute the digests of every committed attempt anew, and compare them with what its run said."""
    history, erasure = runs.history(spark, location), Erasure.of(spark, location)
    contents = {table.name: stored(spark, location, table) for table in STAMPED}
    return compared(history, contents, erasure)


def compared(history: Iterable[runs.Run], contents: Contents, erasure: Erasure) -> DigestComparison:
    """The runs against the contents. Runs that wrote no rows (`maintain`) have no digest and are passed over."""
    tally: Counter[str] = Counter()
    different: list[str] = []
    for run in history:
        if run.result_digest:
            different += _Rows(run, contents, erasure).differences(tally)
    return DigestComparison(tuple(different), tally[_EQUAL], tally[_ERASED], tally[_UNKNOWN])


class _Rows:
    """The rows of one run: those it committed, and those that are there."""

    def __init__(self, run: runs.Run, contents: Contents, erasure: Erasure) -> None:
        self.run = run
        self.there = {name: found[run.attempt_id] for name, found in contents.items() if run.attempt_id in found}
        wrote = [table for table in STAMPED if run.counts_out.get(table.name) or table.name in self.there]
        self.erased = [table for table in wrote if _is_erased(run, table, erasure)]
        self.kept = [table for table in wrote if table not in self.erased]
        self.by_table = any(digest_name(table.name) in run.counts_out for table in STAMPED)

    def differences(self, tally: Counter[str]) -> Iterator[str]:
        """A line a table that differs; of a run whose tables have no digests of their own, one for all of them."""
        tally[_ERASED] += len(self.erased)
        if self.erased and not self.by_table:
            tally[_UNKNOWN] += len(self.kept)
            return
        wrong = [table for table in self.kept if self.by_table and self._got(table) != self._wanted(table)]
        tally[_EQUAL] += len(self.kept) - len(wrong)
        yield from map(self._told, wrong)
        got = result_digest(digests(self.there.values()))
        if not wrong and not self.erased and got != self.run.result_digest:
            tables = ", ".join(f"{table.name} ({self._rows(table)} rows)" for table in self.kept)
            yield f"{tables or 'no rows'} of {self._name}: digest of all {got}, wanted {self.run.result_digest}"

    @property
    def _name(self) -> str:
        return f"attempt {self.run.attempt_id} (run {self.run.run_id})"

    def _told(self, table: Table) -> str:
        rows = f"{self._rows(table)} rows of {self.run.counts_out.get(table.name, 0)}"
        return (
            f"{table.name} of {self._name}: {rows}, digest {_hex(self._got(table))}, wanted {_hex(self._wanted(table))}"
        )

    def _rows(self, table: Table) -> int:
        return self.there[table.name].rows if table.name in self.there else 0

    def _got(self, table: Table) -> int | None:
        return short_digest(self.there[table.name].digest) if table.name in self.there else None

    def _wanted(self, table: Table) -> int | None:
        return self.run.counts_out.get(digest_name(table.name))


def _is_erased(run: runs.Run, table: Table, erasure: Erasure) -> bool:
    removed = run.attempt_id in erasure.removed.get(table.name, ())
    return removed or (run.sequence < erasure.redacted and may_change(table))


def _hex(digest: int | None) -> str:
    return "none" if digest is None else f"{digest:015x}"
