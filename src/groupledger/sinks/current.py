"""What readers see: rows of committed attempts that no later attempt supersedes. Defined here, once.

- A row counts once `runs` commits its attempt.
- A *fact* of a group is superseded where a later attempt folded the group again (late data): its row in `group_heads`
  says `refolded`, and its offsets (`from_offset`, `offset`] are the later attempt's alone.
- A *result* is superseded by that of the latest attempt for the same snapshot, scenario and configuration digest.

`docs/reading.md` says the same for readers without Spark; a test holds the two against each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger.sinks.runs import committed_runs
from groupledger.tables import (
    ASSIGNMENTS,
    GROUP_HEADS,
    LOG_RECORDS,
    QUARANTINE,
    REBALANCES,
    RUNS,
    TOPIC_SNAPSHOTS,
    VIOLATIONS,
)
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from groupledger.sinks.ledger import LedgerLocation
    from groupledger.tables import Table

ASSIGN_STAGE = "assign"
LOG_SNAPSHOTS = "log/"
"""What the snapshot ids of the offsets log begin with; only facts from the log are folded again."""

_ROW, _MARK = "row", "mark"
_AS_WRITTEN = {LOG_RECORDS.name, TOPIC_SNAPSHOTS.name}
_RESULTS = {ASSIGNMENTS.name, REBALANCES.name}
_RESULT_KEY = (c.CLUSTER_ID, c.GROUP_ID, c.SNAPSHOT_ID, c.SCENARIO)


def committed(rows: DataFrame, runs: DataFrame) -> DataFrame:
    """The rows whose attempt `runs` has committed."""
    attempts = F.broadcast(runs.where(F.col(c.STATUS) == "committed").select(c.ATTEMPT_ID))
    return _matching(rows, attempts, (c.ATTEMPT_ID,))


def current(spark: SparkSession, location: LedgerLocation, table: Table) -> DataFrame:
    """The rows of a table that count. Of `runs`: the committed ones."""
    if table.name == RUNS.name:
        return committed_runs(spark, location)
    rows = location.rows(spark, table)
    if table.name in _AS_WRITTEN:
        return committed(rows, location.rows(spark, RUNS))
    if table.name in _RESULTS:
        return _matching(rows, _latest(spark, location), (*_RESULT_KEY, c.ATTEMPT_ID))
    if table.name in (QUARANTINE.name, VIOLATIONS.name):
        return _current_of_both(spark, location, table)
    return _not_refolded(spark, location, table, rows)


def _current_of_both(spark: SparkSession, location: LedgerLocation, table: Table) -> DataFrame:
    """Rows of these tables are facts or results: of a stage, or with a scenario."""
    rows = location.rows(spark, table)
    is_result = F.col(c.STAGE) == ASSIGN_STAGE if table.name == QUARANTINE.name else F.col(c.SCENARIO).isNotNull()
    key = [name for name in (*_RESULT_KEY, c.ATTEMPT_ID) if name in table.columns]
    results = _matching(rows.where(is_result), _latest(spark, location), key)
    return _not_refolded(spark, location, table, rows.where(~is_result)).unionByName(results)


def _latest(spark: SparkSession, location: LedgerLocation) -> DataFrame:
    """The attempt that counts for each snapshot, scenario and configuration; `rebalances` has a row for each."""
    attempts = committed_runs(spark, location).select(c.ATTEMPT_ID, c.SEQUENCE, c.CONFIG_DIGEST)
    rebalances = location.rows(spark, REBALANCES).select(*_RESULT_KEY, c.ATTEMPT_ID)
    stamped = _joined(rebalances, attempts)
    newest = F.max_by(c.ATTEMPT_ID, c.SEQUENCE).alias(c.ATTEMPT_ID)
    return stamped.groupBy(*_RESULT_KEY, c.CONFIG_DIGEST).agg(newest)


def _not_refolded(spark: SparkSession, location: LedgerLocation, table: Table, rows: DataFrame) -> DataFrame:
    """Committed rows outside the offsets that a later attempt folded again."""
    attempts = committed_runs(spark, location).select(c.ATTEMPT_ID, c.SEQUENCE)
    stamped = _joined(rows, attempts).alias(_ROW)
    heads = location.rows(spark, GROUP_HEADS).where(F.col(c.REFOLDED))
    marks = _joined(heads, attempts)
    keys = (c.CLUSTER_ID, c.GROUP_ID, c.LOG_PARTITION, c.FROM_OFFSET, c.OFFSET, c.SEQUENCE)
    kept = stamped.join(F.broadcast(marks.select(*keys).alias(_MARK)), _superseded(table), "left_anti")
    return kept.select(*table.columns)


def _superseded(table: Table) -> Column:
    """The condition under which a row gives way to a refold."""
    same = [_of(_ROW, name) == _of(_MARK, name) for name in (c.CLUSTER_ID, c.GROUP_ID)]
    if c.LOG_PARTITION in table.columns:
        same.append(_of(_ROW, c.LOG_PARTITION) == _of(_MARK, c.LOG_PARTITION))
    else:
        same.append(_of(_ROW, c.SNAPSHOT_ID).startswith(LOG_SNAPSHOTS))
    inside = (_of(_ROW, c.OFFSET) > _of(_MARK, c.FROM_OFFSET)) & (_of(_ROW, c.OFFSET) <= _of(_MARK, c.OFFSET))
    condition = inside & (_of(_ROW, c.SEQUENCE) < _of(_MARK, c.SEQUENCE))
    for equal in same:
        condition &= equal
    return condition


def _of(side: str, name: str) -> Column:
    return F.col(f"{side}.{name}")


def _joined(rows: DataFrame, attempts: DataFrame) -> DataFrame:
    """`rows` with what `attempts` says of their attempt; rows of others fall away."""
    return rows.join(F.broadcast(attempts), c.ATTEMPT_ID)


def _matching(rows: DataFrame, keys: DataFrame, names: tuple[str, ...] | list[str]) -> DataFrame:
    """The rows whose key is among `keys`, columns in their order."""
    left, right = rows.alias(_ROW), keys.select(*names).alias(_MARK)
    condition = F.lit(True)
    for name in names:
        condition &= _of(_ROW, name) == _of(_MARK, name)
    return left.join(right, condition, "left_semi")
