"""The ledger as Spark DataFrames: its tables and groups, committed rows only.

frames = LedgerFrames(spark, "build/demo-ledger")
frames.group("payments").rebalances.where("moves > least_moves").show()
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any

from arro3.core import Table as ArrowTable
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from groupledger.answers.queries import Value, filled, require_query
from groupledger.answers.reader import WHERE_VIEWS_ARE, needed, tables, views
from groupledger.answers.scope import unknown_group
from groupledger.core.faults import Fault
from groupledger.core.history.fold_rows import GroupSnapshotRow, MemberSnapshotRow
from groupledger.core.moments import millis
from groupledger.core.protocol.metrics import Metric
from groupledger.core.protocol.recorded import RecordedCall
from groupledger.engine.arrow_lists import SnapshotRow, snapshot_rows
from groupledger.engine.session import expect_delta
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerFault, LedgerLocation, check
from groupledger.tables import BY_NAME, GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, REBALANCES, Table
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal


class LedgerFrames:
    """An existing ledger, at a path or in a catalog. A place that holds none is a `Fault` that says so."""

    def __init__(self, spark: SparkSession, path: str | None = None, *, catalog: str | None = None) -> None:
        self.spark = spark
        self.location = LedgerLocation(path=path, catalog=catalog)
        try:
            check(spark, self.location)
        except LedgerFault as fault:
            if fault.code == "LEDGER_MISSING":
                expect_delta(spark)  # without Delta, Spark finds no table anywhere
            raise

    def current(self, table: Table) -> DataFrame:
        """Return the rows that count: those of committed attempts that no later attempt supersedes.

        Which attempts count is read now; the rows are read when the frame is used.
        """
        return current(self.spark, self.location, table)

    @property
    def reader(self) -> SparkReader:
        """Return the ledger as it answers queries."""
        return SparkReader(self.spark, self.location)

    def results(self, scenario: str | None = None) -> DataFrame:
        """Return the current rows of `rebalances`, of one scenario or of every one."""
        rows = self.current(REBALANCES)
        return rows if scenario is None else rows.where(F.col(c.SCENARIO) == scenario)

    def group(self, group_id: str, cluster_id: str | None = None) -> GroupFrames:
        """Return a group by its id; in every cluster, or in one."""
        return GroupFrames(self, group_id, cluster_id)


@dataclass(frozen=True, slots=True)
class GroupFrames:
    """One group's rows. DataFrames are lazy: only what counts is read before a `show` or a `toPandas`."""

    ledger: LedgerFrames
    group_id: str
    cluster_id: str | None

    def of(self, table: Table) -> DataFrame:
        """Return the group's current rows of a table."""
        return self.within(self.ledger.current(table))

    def within(self, rows: DataFrame) -> DataFrame:
        """Return the group's rows among these."""
        rows = rows.where(F.col(c.GROUP_ID) == self.group_id)
        return rows if self.cluster_id is None else rows.where(F.col(c.CLUSTER_ID) == self.cluster_id)

    @property
    def snapshots(self) -> DataFrame:
        """Return every recorded state of the group, in order of position."""
        return self.of(GROUP_SNAPSHOTS).sort(c.CLUSTER_ID, c.OFFSET)

    @property
    def rebalances(self) -> DataFrame:
        """Return every computed rebalance of the group, in every scenario: moves, least moves, verdict."""
        return self.within(self.ledger.results())

    def ownership_changes(self, topic: str, partition: int) -> DataFrame:
        """Return each time the partition changed hands in this group, in order of position."""
        rows = self.of(OWNERSHIP_CHANGES).where((F.col(c.TOPIC) == topic) & (F.col(c.PARTITION) == partition))
        return rows.sort(c.CLUSTER_ID, c.OFFSET)

    def history(self) -> tuple[list[GroupSnapshotRow], list[MemberSnapshotRow]]:
        """Return all snapshots of the group and of its members in order, on the driver, as the fold has them.

        Raises Fault: UNKNOWN_GROUP where the ledger has no such group, AMBIGUOUS_GROUP where several clusters do.
        """
        groups = _rows(self.of(GROUP_SNAPSHOTS).sort(c.LOG_PARTITION, c.OFFSET), GroupSnapshotRow)
        clusters = sorted({row.cluster_id for row in groups})
        if not groups:
            raise unknown_group(self.ledger.reader, self.group_id, self.cluster_id)
        if len(clusters) > 1:
            message = f"{self.group_id!r} is a group of the clusters {', '.join(clusters)}; expected one to be named"
            raise Fault("AMBIGUOUS_GROUP", message)
        return groups, _rows(self.of(MEMBER_SNAPSHOTS).sort(c.OFFSET, c.MEMBER_ORDER), MemberSnapshotRow)

    def callbacks(self) -> list[RecordedCall]:
        """Return the calls of KIP-429's timelines that members made, as far as the log shows; classic groups only.

        The group's whole history comes to the driver. Raises Fault as `history` does.
        """
        from groupledger.core.protocol.recorded import recorded_calls

        return list(recorded_calls(*self.history()))

    def metrics(self, start: datetime, end: datetime) -> list[Metric]:
        """Return KIP-429's client metrics between two moments, by member id; `reason` says why one is not known."""
        from groupledger.core.protocol.metrics import Window, of_history

        return of_history(self.callbacks(), Window(millis(start), millis(end)))


def _rows(frame: DataFrame, kind: type[SnapshotRow]) -> list[SnapshotRow]:
    """Return the frame's rows as the fold has them: moments in milliseconds, lists as tuples."""
    if c.OBSERVED_AT in kind._fields:
        frame = frame.withColumn(c.OBSERVED_AT, F.unix_millis(c.OBSERVED_AT))
    return snapshot_rows(frame.select(*kind._fields).toArrow(), kind)


# The views of what counts in Spark: in a session, for a query over a ledger in a catalog, or in the catalog itself.

_UNNEST = re.compile(r"\bunnest\(")
_NUMBERS = count()
"""Of the tables that are kept: several readers may be over one session."""


@dataclass(frozen=True, slots=True)
class SparkReader:
    """Queries over a ledger that only Spark can read; `answers.reader` has the same for one in a folder."""

    spark: SparkSession
    location: LedgerLocation

    @property
    def place(self) -> str:
        """Where the ledger is, without secrets."""
        return str(self.location)

    def query(self, sql: str, /, **values: Value) -> ArrowTable:
        """Run a query over the views and tables; `:name` in it stands for the value of that name.

        Raises Fault SQL_INVALID for a query that cannot be run or is none that reads.
        """
        with _refused():
            return ArrowTable.from_arrow(self._frame(sql, values).toArrow())

    @contextmanager
    def kept(self, sql: str, /) -> Iterator[str]:
        """Keep the rows of a query where the executors store what is cached. Raises as `query`."""
        name = f"kept_{next(_NUMBERS)}"
        with _refused():
            frame = self._frame(sql, {}).persist()
            frame.createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)
            frame.unpersist()

    @contextmanager
    def beside(self, rows: Any) -> Iterator[str]:
        """Let queries read these rows (Arrow) too: under the name that is given, until the context ends."""
        name = f"beside_{next(_NUMBERS)}"
        self.spark.createDataFrame(rows).createOrReplaceTempView(name)
        try:
            yield name
        finally:
            self.spark.catalog.dropTempView(name)

    def _frame(self, sql: str, values: Mapping[str, Value]) -> DataFrame:
        require_query(sql)
        rests_on, named = needed(sql)
        for name in named:
            self.location.rows(self.spark, BY_NAME[name]).createOrReplaceTempView(name)
        for view in rests_on:
            self.spark.sql(f"CREATE OR REPLACE TEMP VIEW {view.name} AS {in_spark(view.query)}")
        return self.spark.sql(filled(in_spark(sql), values, literal))


@contextmanager
def _refused() -> Iterator[None]:
    """Raise Fault("SQL_INVALID") for what Spark refuses."""
    try:
        yield
    except (AnalysisException, ParseException) as error:
        said = str(error).splitlines()[0]
        raise Fault("SQL_INVALID", f"the query cannot be run: {said}; {WHERE_VIEWS_ARE}") from error


def in_spark(query: str) -> str:
    """Write the query as Spark has it: of all that the views use, one function has another name there."""
    return _UNNEST.sub("explode(", query)


def require_catalog(location: LedgerLocation) -> None:
    """Raise Fault("NOT_IN_A_CATALOG") for a ledger in a folder."""
    if location.catalog is None:
        message = f"the ledger at {location} is in a folder; expected one in a catalog (ledger.catalog)"
        raise Fault("NOT_IN_A_CATALOG", f"{message}: `groupledger sql` has the views of this one")


def create_views(spark: SparkSession, location: LedgerLocation) -> list[str]:
    """Create the views beside the tables of a ledger in a catalog, or replace them; give their names.

    Raises Fault: NOT_IN_A_CATALOG, and what `sinks.ledger_tables.check` does.
    """
    require_catalog(location)
    check(spark, location, [BY_NAME[name] for name in sorted(tables())])
    for view in views().values():
        query = in_spark(view.reading(partial("{}.{}".format, location.schema)))
        spark.sql(f"CREATE OR REPLACE VIEW {location.schema}.{view.name} AS {query}")
    return list(views())


# What the runs say of each group: generations, assignors, members, and how often we agree with the record.

SNAPSHOTS, ASSIGNORS, FIRST, LAST = "snapshots", "assignors", "first", "last"


@dataclass(frozen=True, slots=True)
class GroupVerdicts:
    """One group in one scenario. `verdicts` counts its snapshots by verdict; `first` and `last` are generations."""

    cluster_id: str
    group_id: str
    group_type: str
    assignors: tuple[str, ...]
    snapshots: int
    first: int | None
    last: int | None
    members: int
    verdicts: Mapping[str, int]


def group_verdicts(ledger: LedgerFrames, scenario: str) -> tuple[GroupVerdicts, ...]:
    """Return every group of every cluster, in order; a few rows a group leave Spark, however long its history is."""
    number = F.coalesce(c.GENERATION, c.GROUP_EPOCH)
    snapshots = ledger.current(GROUP_SNAPSHOTS).groupBy(c.CLUSTER_ID, c.GROUP_ID)
    groups = snapshots.agg(
        F.count("*").alias(SNAPSHOTS),
        F.min(number).alias(FIRST),
        F.max(number).alias(LAST),
        F.max(c.MEMBERS).alias(c.MEMBERS),
        F.array_sort(F.collect_set(c.ASSIGNOR)).alias(ASSIGNORS),
        F.max_by(c.GROUP_TYPE, c.OFFSET).alias(c.GROUP_TYPE),
    )
    results = ledger.results(scenario).where(F.col(c.ROUND) == 1)
    counted = results.groupBy(c.CLUSTER_ID, c.GROUP_ID, c.VERDICT).agg(F.count("*").alias(SNAPSHOTS))
    verdicts = defaultdict[tuple[str, str], dict[str, int]](dict)
    for cluster_id, group_id, verdict, number_of in counted.sort(F.desc(SNAPSHOTS), c.VERDICT).collect():
        verdicts[cluster_id, group_id][verdict] = number_of
    rows = (row.asDict() for row in groups.sort(c.CLUSTER_ID, c.GROUP_ID).collect())
    return tuple(
        GroupVerdicts(**row | {ASSIGNORS: tuple(row[ASSIGNORS])}, verdicts=verdicts[row[c.CLUSTER_ID], row[c.GROUP_ID]])
        for row in rows
    )


def total(groups: Iterable[GroupVerdicts]) -> dict[str, int]:
    """All snapshots by verdict, the most frequent first."""
    counted: Counter[str] = Counter()
    for group in groups:
        counted.update(group.verdicts)
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
