"""Redaction: who the members were is replaced, in every table, by names that mean nothing and compute the same.

Member ids (and instance ids, client ids, hosts) get surrogates with the same hash code and the same order in their
group, so that a recomputed result is the same but for the names. The raw log is removed; user data is cut to the
generation that claims rest on; texts that may quote a name are erased. Every group's history is closed: what is
ingested later begins a new incarnation, since a member that lives on comes with its true name again.

    begun   a commit that every attempt under way yields to (WriteConflict), and that no new one starts beside
    ...     every table is overwritten once, `member_snapshots`, from which the surrogates are derived, last
    done    a commit

Cut off anywhere, it is finished by the next `maintain`: a table that was overwritten holds only surrogates, which stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.core.surrogates import MARK
from groupledger.engine.renaming import KIND, NAME, SURROGATE, closed, with_surrogates
from groupledger.pipeline.retention import forgetting
from groupledger.sinks import runs, upkeep
from groupledger.sinks.changes import overwrite_rows
from groupledger.tables import GROUP_HEADS, LOG_RECORDS, MEMBER_SNAPSHOTS, RUNS, TABLES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.config import RedactionSettings
    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

BEGUN = "begun"
ERASED = "erased"
NAMES = {
    c.MEMBER_ID: c.MEMBER_ID,
    c.FROM_MEMBER_ID: c.MEMBER_ID,
    c.TO_MEMBER_ID: c.MEMBER_ID,
    c.LEADER: c.MEMBER_ID,
    c.GROUP_INSTANCE_ID: c.GROUP_INSTANCE_ID,
    c.CLIENT_ID: c.CLIENT_ID,
    c.HOST: c.HOST,
}
"""Columns that hold a name -> the column of `member_snapshots` where that name stands."""

TEXTS = (c.MESSAGE, c.EVIDENCE)
"""Columns of text in which a name may be quoted."""

BYTES = (c.KEY, c.VALUE, c.ROW)
"""Columns that hold raw input."""

_GENERATION_BYTES = 4
_SURROGATE = f"^{MARK}[0-9a-f]+-([0-9a-f]{{8}}-[0-N]{{7}}|{ERASED})$"
_GROUP = [c.CLUSTER_ID, c.GROUP_ID]


@dataclass(frozen=True, slots=True)
class Redaction:
    """One redaction of a ledger. `attempt` is the maintain that does it."""

    spark: SparkSession
    location: LedgerLocation
    settings: RedactionSettings
    attempt: runs.Attempt
    buckets: int

    def done(self, now: datetime) -> int:
        """Begin, or go on with one that was cut off; do it, and commit. How many tables were overwritten."""
        seen = runs.read_commits(self.spark, self.location)
        if not seen.redacting:
            self._commit(seen, now, self._beginning(seen), {BEGUN: 1})
            seen = runs.read_commits(self.spark, self.location)
        series = sum(BEGUN in commit.counts_out for commit in seen.commits)
        overwritten = self._overwrite(series)
        self._commit(runs.read_commits(self.spark, self.location), now, {}, {})
        return overwritten

    def _beginning(self, seen: runs.LedgerView) -> dict[str, list[str]]:
        """The attempts whose records go: all that counted."""
        return {
            LOG_RECORDS.name: [commit.attempt_id for commit in seen.commits if LOG_RECORDS.name in commit.counts_out]
        }

    def _commit(
        self, seen: runs.LedgerView, now: datetime, removed: Mapping[str, list[str]], counts: Mapping[str, int]
    ) -> None:
        guards = {guard for commit in seen.commits for guard in commit.guards} | {runs.REDACTION}
        number = f"{seen.sequence + 1}"
        attempt = replace(
            self.attempt,
            run_id=f"redact-{self.attempt.attempt_id}-{number}",
            attempt_id=f"{self.attempt.attempt_id}-{number}",
            kind="redact",
            guards=tuple(sorted(guards)),
        )
        told = {**counts, **forgetting(self.spark, self.location, list(removed.get(LOG_RECORDS.name, [])))}
        outcome = runs.Outcome({}, told, result_digest="", verdict="done", finished_at=now, removed=removed)
        runs.commit(self.spark, self.location, attempt, seen.sequence, outcome)

    def _overwrite(self, series: int) -> int:
        names = with_surrogates(self._names(), series, self.buckets)
        others = [table for table in TABLES if table not in (RUNS, LOG_RECORDS, MEMBER_SNAPSHOTS)]
        written = 0
        upkeep.remove_all(self.spark, self.location, LOG_RECORDS)
        for table in (*others, MEMBER_SNAPSHOTS):
            rows = self.location.rows(self.spark, table)
            redacted = self.redacted(table, rows, names, series)
            if redacted is not rows and upkeep.size(self.spark, self.location, table).files:
                rows = redacted.select(*table.columns)
                upkeep.persistently(partial(overwrite_rows, rows, self.location, table, F.lit(True)), table)
                written += 1
        return written

    def _names(self) -> DataFrame:
        """Every name in the ledger that is no surrogate yet, with its group and the column it stands in."""
        members = self.location.rows(self.spark, MEMBER_SNAPSHOTS)
        pieces = [
            members.select(*_GROUP, F.lit(kind).alias(KIND), F.col(kind).alias(NAME)) for kind in sorted(self._kinds())
        ]
        rows = reduce(lambda left, right: left.unionAll(right), pieces).distinct()
        return rows.where(F.col(NAME).isNotNull() & ~F.col(NAME).rlike(_SURROGATE))

    def _kinds(self) -> set[str]:
        chosen = {
            c.MEMBER_ID: self.settings.member_ids,
            c.GROUP_INSTANCE_ID: self.settings.member_ids,
            c.CLIENT_ID: self.settings.client_ids,
            c.HOST: self.settings.hosts,
        }
        return {kind for kind, wanted in chosen.items() if wanted} or {c.MEMBER_ID}

    def redacted(self, table: Table, rows: DataFrame, names: DataFrame, series: int) -> DataFrame:
        """The rows of a table without names; the same frame where the table has none."""
        if table is GROUP_HEADS:
            return rows.withColumn(c.STATE, closed(F.col(c.STATE)))
        kinds = self._kinds()
        for name in table.columns:
            if NAMES.get(name) in kinds:
                rows = _renamed(rows, name, names, series)
            elif name in TEXTS:
                rows = rows.withColumn(name, F.when(F.col(name).isNotNull(), ERASED))
            elif name in BYTES:
                rows = rows.withColumn(name, F.lit(None).cast(table.schema[name].dataType))
            elif name == c.USER_DATA and self.settings.user_data:
                rows = rows.withColumn(name, F.substring(name, 1, _GENERATION_BYTES))
        return rows


def may_change(table: Table) -> bool:
    """Whether a redaction rewrites or removes rows of the table, whatever is chosen to be replaced."""
    return table is GROUP_HEADS or not {*NAMES, *TEXTS, *BYTES, c.USER_DATA}.isdisjoint(table.columns)


def _renamed(rows: DataFrame, name: str, names: DataFrame, series: int) -> DataFrame:
    """The rows with a column of names replaced; what has no surrogate, and is none, is erased."""
    own = names.where(F.col(KIND) == NAMES[name]).select(*_GROUP, F.col(NAME).alias(name), SURROGATE)
    joined = rows.join(own, [*_GROUP, name], "left")
    kept = F.when(F.col(name).isNull() | F.col(name).rlike(_SURROGATE), F.col(name))
    replaced: Column = F.coalesce(SURROGATE, F.lit(f"{MARK}{series:x}-{ERASED}"))
    return joined.withColumn(name, F.coalesce(kept, F.when(F.col(name).isNotNull(), replaced))).drop(SURROGATE)
