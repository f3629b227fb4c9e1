"""The rows that count, for jobs of Spark: by the queries of `tables.views`, as of some commits."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.sinks.attempts import LATE_GROUPS, Run, committed_runs, read_commits
from groupledger.sinks.location import LedgerLocation
from groupledger.tables import (
    BY_NAME,
    COVERAGE,
    GROUP_HEADS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    RUNS,
    TOPIC_SNAPSHOTS,
    Table,
)
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal
from groupledger.tables.views import CURRENT, REFOLDS, Cut, views

SNAPSHOTS_USED = (f"/used.{GROUP_SNAPSHOTS.name}", f"/used.{MEMBER_SNAPSHOTS.name}")
"""The ends of the counts (`counts_in`) of users' own snapshots; of memberships only members are counted."""

_NAMED = 1000
"""Attempts up to which a filter names them, by which Delta passes over files of dead attempts."""
_BY_ATTEMPT = (LOG_RECORDS, TOPIC_SNAPSHOTS, MEMBER_SNAPSHOTS, GROUP_HEADS, COVERAGE)
_SOURCE = re.compile(r"\b(FROM|JOIN) (\w+)")


def current(
    spark: SparkSession,
    location: LedgerLocation,
    table: Table,
    commits: tuple[Run, ...] | None = None,
    attempts: Collection[str] | None = None,
) -> DataFrame:
    """Return the rows of a table that count, as of the moment of this call. Of `runs`: the committed ones.

    `commits` are those of a `runs.read_commits`, for several tables as of one moment; without them `runs` is read here.
    With `attempts`, of the rows that count those that these attempts wrote: no file without any is opened. Not for
    tables of which the rows of one attempt count by those of others: once snapshots came from users' own tables.
    """
    if table.name == RUNS.name:
        return committed_runs(spark, location)
    seen = read_commits(spark, location).commits if commits is None else commits
    cut = Cut(any(map(refolded, seen)), took_snapshots(seen), counted=True)
    assert attempts is None or table in _BY_ATTEMPT or (table is GROUP_SNAPSHOTS and not cut.given)
    wanted = tuple(each for each in seen if attempts is None or each.attempt_id in attempts)
    return _Reader(spark, location, seen, wanted, views(cut)).rows(CURRENT.format(table.name))


def took_snapshots(commits: Iterable[Run]) -> bool:
    """Return whether any of these commits has snapshots from users' own tables."""
    return any(number and name.endswith(SNAPSHOTS_USED) for each in commits for name, number in each.counts_in.items())


def refolded(commit: Run) -> bool:
    """Return whether a commit folded groups again."""
    return bool(commit.counts_out.get(LATE_GROUPS))


@dataclass(frozen=True, slots=True)
class _Reader:
    """The tables and views as of some commits; of the tables the rows of the `wanted` ones."""

    spark: SparkSession
    location: LedgerLocation
    commits: tuple[Run, ...]
    wanted: tuple[Run, ...]
    views: Mapping[str, str]

    def rows(self, name: str) -> DataFrame:
        """Return the rows of a table or a view."""
        if name == CURRENT.format(RUNS.name):
            rows = [(each.attempt_id, each.sequence, each.kind) for each in self.commits]
            return F.broadcast(self.spark.createDataFrame(rows, f"{_NUMBERED}, {c.KIND} string"))
        if name == REFOLDS:  # of the refolding attempts, whichever are wanted: their heads are few
            return F.broadcast(replace(self, wanted=tuple(filter(refolded, self.commits))).answer(name))
        return self.answer(name) if name in self.views else self.of_table(BY_NAME[name])

    def answer(self, name: str) -> DataFrame:
        """Run the query of a view."""
        names = {each for _, each in _SOURCE.findall(self.views[name])}
        sources: dict[str, Any] = {each: self.rows(each) for each in names}
        query = _SOURCE.sub(r"\1 {\2}", self.views[name])
        return self.spark.sql(f"SELECT * FROM ({query})", **sources)  # noqa: S608 a declared query

    def of_table(self, table: Table) -> DataFrame:
        """Return the rows of the wanted commits."""
        attempts = [commit.attempt_id for commit in self.wanted]
        rows = self.location.rows(self.spark, table, attempts)
        if len(attempts) <= _NAMED:
            return rows.where(written_by(attempts))
        return rows.join(F.broadcast(numbered(self.spark, self.wanted)), c.ATTEMPT_ID, "left_semi").select(rows.columns)


_NUMBERED = f"{c.ATTEMPT_ID} string, {c.SEQUENCE} bigint"


def numbered(spark: SparkSession, commits: Iterable[Run]) -> DataFrame:
    """Return commits as rows: attempt, number."""
    return spark.createDataFrame([(commit.attempt_id, commit.sequence) for commit in commits], _NUMBERED)


def written_by(attempts: Collection[str]) -> Column:
    """Return whether a row is of one of these attempts; in SQL, since each part of a Column is a call into the JVM."""
    return F.expr(f"{c.ATTEMPT_ID} IN ({', '.join(map(literal, attempts))})") if attempts else F.lit(False)
