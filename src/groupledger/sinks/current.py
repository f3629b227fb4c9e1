"""What readers see: rows of committed attempts that no later attempt supersedes. Defined here, once.

- A row counts once `runs` commits its attempt.
- A *fact* of a group is superseded where a later attempt folded the group again (late data): its row in `group_heads`
  says `refolded`, and its offsets (`from_offset`, `offset`] are the later attempt's alone. Folded again from the
  beginning (`from_offset` -1), the group is the later attempt's alone, in whichever log partition it was before.
- *Ownership changes* of users' own snapshot tables are, of each group, those of the last attempt that derived them:
  each derives all, since a snapshot may come late.
- The *snapshot before* one of users' own tables is, unless its table names another, the one before it by offset, of the
  same group and incarnation: a snapshot may come late, so this is told when they are read.
- A *result* is superseded by that of the latest attempt for the same snapshot and scenario, whatever its configuration,
  and counts only while its snapshot does: one that a read had cut is no longer there once the group was folded again.
- *Calls* and their metrics are those of the last commit that derived them: each derives all.

`docs/guides/use/sql.md` says the same for readers without Spark; a test holds the two against each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from groupledger.sinks.ledger import LedgerLocation
from groupledger.sinks.runs import CALLS, COMMITTED, LATE_GROUPS, Commit, committed_runs, read_commits
from groupledger.tables import (
    ASSIGNMENTS,
    CALLBACKS,
    COVERAGE,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    METRICS,
    OWNERSHIP_CHANGES,
    QUARANTINE,
    REBALANCES,
    RUNS,
    TOPIC_SNAPSHOTS,
    VIOLATIONS,
    Table,
)
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal

ASSIGN_STAGE, FOLD_STAGE = "assign", "fold"
LOG_SNAPSHOTS = "log/"
"""What the snapshot ids of the offsets log begin with; only facts from the log are folded again."""

SNAPSHOTS_USED = (f"/used.{GROUP_SNAPSHOTS.name}", f"/used.{MEMBER_SNAPSHOTS.name}")
"""What the counts (`counts_in`) of users' own snapshots end with; of memberships only members are counted."""

_ROW, _MARK = "row", "mark"
_NAMED = 1000
_AS_WRITTEN = {LOG_RECORDS.name, TOPIC_SNAPSHOTS.name}
_RESULTS = {ASSIGNMENTS.name, REBALANCES.name}
_DERIVED = {CALLBACKS.name, METRICS.name}
_BY_ATTEMPT = _AS_WRITTEN | {MEMBER_SNAPSHOTS.name, GROUP_HEADS.name, COVERAGE.name}
_RESULT_KEY = (c.CLUSTER_ID, c.GROUP_ID, c.SNAPSHOT_ID, c.SCENARIO)


def committed(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """The rows whose attempt `runs` has committed."""
    attempts = F.broadcast(runs.where(F.col(c.STATUS) == COMMITTED).select(c.ATTEMPT_ID))
    return _matching(rows, attempts, (c.ATTEMPT_ID,))


def current(
    spark: SparkSession,
    location: LedgerLocation,
    table: Table,
    commits: tuple[Commit, ...] | None = None,
    attempts: Collection[str] | None = None,
) -> DataFrame:
    """The rows of a table that count, as of the moment of this call. Of `runs`: the committed ones.

    `commits` are those of a `runs.read_commits`, for several tables as of one moment; without them `runs` is read here.
    With `attempts`, of the rows that count those that these attempts wrote: no file without any is opened. Not for
    tables of which the rows of one attempt count by those of others: once snapshots came from users' own tables.
    """
    if table.name == RUNS.name:
        return committed_runs(spark, location)
    seen = read_commits(spark, location).commits if commits is None else commits
    assert attempts is None or _by_attempt(table, seen)
    reader = _Reader(spark, location, seen, None if attempts is None else frozenset(attempts))
    return reader.of(table, reader.rows(table))


def _by_attempt(table: Table, commits: Iterable[Commit]) -> bool:
    """Whether it is enough to read an attempt's rows, and marks of refolds, to know which of them count."""
    return table.name in _BY_ATTEMPT or (table is GROUP_SNAPSHOTS and not took_snapshots(commits))


def took_snapshots(commits: Iterable[Commit]) -> bool:
    """Whether any of these commits has snapshots from users' own tables."""
    return any(number and name.endswith(SNAPSHOTS_USED) for each in commits for name, number in each.counts_in.items())


def refolded(commit: Commit) -> bool:
    """Whether a commit folded groups again."""
    return bool(commit.counts_out.get(LATE_GROUPS))


@dataclass(frozen=True, slots=True)
class _Reader:
    """The tables as of some commits. `only`: no more than the rows of these attempts, by what all commits say."""

    spark: SparkSession
    location: LedgerLocation
    commits: tuple[Commit, ...]
    only: frozenset[str] | None = None

    def of(self, table: Table, rows: DataFrame) -> DataFrame:
        """Those of the table's rows that count."""
        if table.name in _AS_WRITTEN:
            return self._counted(rows)
        if table.name in _DERIVED:
            last = [commit.attempt_id for commit in self.commits if commit.kind == CALLS][-1:]
            return rows.where(written_by(last))
        if table.name in _RESULTS:
            return _matching(rows, self._latest(), (*_RESULT_KEY, c.ATTEMPT_ID))
        if table.name in (QUARANTINE.name, VIOLATIONS.name):
            return self._current_of_both(table, rows)
        if table.name == OWNERSHIP_CHANGES.name and took_snapshots(self.commits):
            return self._ownership(rows)
        if table.name == GROUP_SNAPSHOTS.name and took_snapshots(self.commits):
            return self._in_sequence(rows)
        return self._not_refolded(table, rows)

    def rows(self, table: Table) -> DataFrame:
        """The rows of these commits, and of others."""
        return self.location.rows(self.spark, table, [commit.attempt_id for commit in self._wanted()])

    def _wanted(self) -> tuple[Commit, ...]:
        """The commits whose rows are asked for."""
        return tuple(each for each in self.commits if self.only is None or each.attempt_id in self.only)

    def _ownership(self, rows: DataFrame) -> DataFrame:
        """Changes from the log, and of users' tables those of the last attempt that derived the group's."""
        given = rows.where(F.col(c.LOG_PARTITION).isNull())
        key = (c.CLUSTER_ID, c.GROUP_ID)
        newest = F.max_by(c.ATTEMPT_ID, c.SEQUENCE).alias(c.ATTEMPT_ID)
        derived = self._stamped(given.select(*key, c.ATTEMPT_ID)).groupBy(*key).agg(newest)
        logged = self._not_refolded(OWNERSHIP_CHANGES, rows.where(F.col(c.LOG_PARTITION).isNotNull()))
        return logged.unionByName(_matching(given, derived, (*key, c.ATTEMPT_ID)))

    def _in_sequence(self, rows: DataFrame) -> DataFrame:
        """Snapshots from the log, and those of users' tables with the one before each."""
        of_log = F.col(c.SNAPSHOT_ID).startswith(LOG_SNAPSHOTS)
        order = Window.partitionBy(c.CLUSTER_ID, c.GROUP_ID, c.INCARNATION).orderBy(c.OFFSET, c.SNAPSHOT_ID)
        before = F.coalesce(c.PREVIOUS_SNAPSHOT_ID, F.lag(c.SNAPSHOT_ID).over(order))
        given = self._counted(rows.where(~of_log)).withColumn(c.PREVIOUS_SNAPSHOT_ID, before)
        return self._not_refolded(GROUP_SNAPSHOTS, rows.where(of_log)).unionByName(given)

    def _counted(self, rows: DataFrame) -> DataFrame:
        """The rows of these commits. Few are named in the filter, by which Delta passes over files of dead attempts."""
        attempts = [commit.attempt_id for commit in self._wanted()]
        if len(attempts) <= _NAMED:
            return rows.where(written_by(attempts))
        return _matching(rows, F.broadcast(numbered(self.spark, self._wanted())), (c.ATTEMPT_ID,))

    def _current_of_both(self, table: Table, rows: DataFrame) -> DataFrame:
        """Rows of these tables are facts or results: of a stage, or with a scenario."""
        is_result = F.col(c.STAGE) == ASSIGN_STAGE if table.name == QUARANTINE.name else F.col(c.SCENARIO).isNotNull()
        key = [name for name in (*_RESULT_KEY, c.ATTEMPT_ID) if name in table.columns]
        results = _matching(rows.where(is_result), self._latest(), key)
        return self._not_refolded(table, rows.where(~is_result)).unionByName(results)

    def _latest(self) -> DataFrame:
        """The attempt that counts for each snapshot and scenario; `rebalances` has a row for each."""
        rebalances = self.rows(REBALANCES).select(*_RESULT_KEY, c.ATTEMPT_ID)
        newest = F.max_by(c.ATTEMPT_ID, c.SEQUENCE).alias(c.ATTEMPT_ID)
        latest = self._stamped(rebalances).groupBy(*_RESULT_KEY).agg(newest)
        if not any(map(refolded, self.commits)):
            return latest
        snapshots = self._not_refolded(GROUP_SNAPSHOTS, self.rows(GROUP_SNAPSHOTS))
        return _matching(latest, snapshots, _RESULT_KEY[:3])

    def _not_refolded(self, table: Table, rows: DataFrame) -> DataFrame:
        """Committed rows outside the offsets that a later attempt folded again."""
        again = {each.attempt_id: each for each in self.commits if refolded(each)}
        if not again:
            return self._counted(rows)
        heads = self.location.rows(self.spark, GROUP_HEADS, again.keys())
        numbers = F.broadcast(numbered(self.spark, again.values()))
        marks = heads.where(F.col(c.REFOLDED)).join(numbers, c.ATTEMPT_ID)
        keys = (c.CLUSTER_ID, c.GROUP_ID, c.LOG_PARTITION, c.FROM_OFFSET, c.OFFSET, c.SEQUENCE)
        marks = F.broadcast(marks.select(*keys).alias(_MARK))
        kept = self._stamped(rows).alias(_ROW).join(marks, _superseded(table), "left_anti")
        return kept.select(*table.columns)

    def _stamped(self, rows: DataFrame) -> DataFrame:
        """The rows that are asked for with the number of their commit."""
        return rows.join(F.broadcast(numbered(self.spark, self._wanted())), c.ATTEMPT_ID)


def numbered(spark: SparkSession, commits: Iterable[Commit]) -> DataFrame:
    """Commits as rows: attempt, number."""
    rows = [(commit.attempt_id, commit.sequence) for commit in commits]
    return spark.createDataFrame(rows, f"{c.ATTEMPT_ID} string, {c.SEQUENCE} bigint")


def written_by(attempts: Collection[str]) -> Column:
    """Whether a row is of one of these attempts; in SQL, since each part of a Column is a call into the JVM."""
    return F.expr(f"{c.ATTEMPT_ID} IN ({', '.join(map(literal, attempts))})") if attempts else F.lit(False)


def _superseded(table: Table) -> Column:
    """The condition under which a row gives way to a refold; what a source refused was never folded."""
    condition = _of(_ROW, c.SEQUENCE) < _of(_MARK, c.SEQUENCE)
    for name in (c.CLUSTER_ID, c.GROUP_ID):
        condition &= _of(_ROW, name) == _of(_MARK, name)
    inside = (_of(_ROW, c.OFFSET) > _of(_MARK, c.FROM_OFFSET)) & (_of(_ROW, c.OFFSET) <= _of(_MARK, c.OFFSET))
    if c.LOG_PARTITION in table.columns:
        condition &= _of(_ROW, c.LOG_PARTITION).isNotNull()
        inside &= _of(_ROW, c.LOG_PARTITION) == _of(_MARK, c.LOG_PARTITION)
    else:
        condition &= _of(_ROW, c.SNAPSHOT_ID).startswith(LOG_SNAPSHOTS)
    if table.name == QUARANTINE.name:
        condition &= _of(_ROW, c.STAGE) == FOLD_STAGE
    return condition & ((_of(_MARK, c.FROM_OFFSET) < 0) | inside)


def _of(side: str, name: str) -> Column:
    return F.col(f"{side}.{name}")


def _matching(rows: DataFrame, keys: DataFrame, names: tuple[str, ...] | list[str]) -> DataFrame:
    """The rows whose key is among `keys`, columns in their order."""
    left, right = rows.alias(_ROW), keys.select(*names).alias(_MARK)
    condition = F.lit(True)
    for name in names:
        condition &= _of(_ROW, name) == _of(_MARK, name)
    return left.join(right, condition, "left_semi")
