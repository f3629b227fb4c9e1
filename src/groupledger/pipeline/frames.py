"""The ledger as Spark DataFrames: its tables and groups, committed rows only.

frames = LedgerFrames(spark, "build/demo-ledger")
frames.group("payments").rebalances.where("moves > least_moves").show()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from groupledger.answers.names import unknown_group
from groupledger.core.faults import Fault
from groupledger.core.history.rows import GroupSnapshotRow, MemberSnapshotRow, as_tuples
from groupledger.core.moment import millis
from groupledger.engine.session import expect_delta
from groupledger.pipeline.views import SparkReader
from groupledger.sinks.current import current
from groupledger.sinks.ledger import LedgerFault, LedgerLocation, check
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, REBALANCES, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pyspark.sql import DataFrame, SparkSession

    from groupledger.core.protocol.metrics import Metric
    from groupledger.core.protocol.recorded import RecordedCall

R = TypeVar("R", GroupSnapshotRow, MemberSnapshotRow)


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
        """The rows that count: those of committed attempts that no later attempt supersedes.

        Which attempts count is read now; the rows are read when the frame is used.
        """
        return current(self.spark, self.location, table)

    @property
    def reader(self) -> SparkReader:
        """The ledger as it answers queries."""
        return SparkReader(self.spark, self.location)

    def results(self, scenario: str | None = None) -> DataFrame:
        """The current rows of `rebalances`, of one scenario or of every one."""
        rows = self.current(REBALANCES)
        return rows if scenario is None else rows.where(F.col(c.SCENARIO) == scenario)

    def group(self, group_id: str, cluster_id: str | None = None) -> GroupFrames:
        """A group by its id; in every cluster, or in one."""
        return GroupFrames(self, group_id, cluster_id)


@dataclass(frozen=True, slots=True)
class GroupFrames:
    """One group's rows. DataFrames are lazy: only what counts is read before a `show` or a `toPandas`."""

    ledger: LedgerFrames
    group_id: str
    cluster_id: str | None

    def of(self, table: Table) -> DataFrame:
        """The group's current rows of a table."""
        return self.within(self.ledger.current(table))

    def within(self, rows: DataFrame) -> DataFrame:
        """The group's rows among these."""
        rows = rows.where(F.col(c.GROUP_ID) == self.group_id)
        return rows if self.cluster_id is None else rows.where(F.col(c.CLUSTER_ID) == self.cluster_id)

    @property
    def snapshots(self) -> DataFrame:
        """Every recorded state of the group, in order of position."""
        return self.of(GROUP_SNAPSHOTS).sort(c.CLUSTER_ID, c.OFFSET)

    @property
    def rebalances(self) -> DataFrame:
        """Every computed rebalance of the group, in every scenario: moves, least moves, verdict."""
        return self.within(self.ledger.results())

    def ownership_changes(self, topic: str, partition: int) -> DataFrame:
        """Each time the partition changed hands in this group, in order of position."""
        rows = self.of(OWNERSHIP_CHANGES).where((F.col(c.TOPIC) == topic) & (F.col(c.PARTITION) == partition))
        return rows.sort(c.CLUSTER_ID, c.OFFSET)

    def history(self) -> tuple[list[GroupSnapshotRow], list[MemberSnapshotRow]]:
        """All snapshots of the group and of its members in order, on the driver, as the fold has them.

        Raises Fault: UNKNOWN_GROUP where the ledger has no such group, AMBIGUOUS_GROUP where several clusters do.
        """
        groups = list(_rows(self.of(GROUP_SNAPSHOTS).sort(c.LOG_PARTITION, c.OFFSET), GroupSnapshotRow))
        clusters = sorted({row.cluster_id for row in groups})
        if not groups:
            raise unknown_group(self.ledger.reader, self.group_id, self.cluster_id)
        if len(clusters) > 1:
            message = f"{self.group_id!r} is a group of the clusters {', '.join(clusters)}; expected one to be named"
            raise Fault("AMBIGUOUS_GROUP", message)
        members = _rows(self.of(MEMBER_SNAPSHOTS).sort(c.OFFSET, c.MEMBER_ORDER), MemberSnapshotRow)
        return groups, list(members)

    def callbacks(self) -> list[RecordedCall]:
        """The calls of KIP-429's timelines that members made, as far as the log tells; classic groups only.

        The group's whole history comes to the driver. Raises Fault as `history` does.
        """
        from groupledger.core.protocol.recorded import recorded_calls

        return list(recorded_calls(*self.history()))

    def metrics(self, start: datetime, end: datetime) -> list[Metric]:
        """KIP-429's client metrics between two moments, by member id; `reason` says why one is not known."""
        from groupledger.core.protocol.metrics import Window, of_history

        return of_history(self.callbacks(), Window(millis(start), millis(end)))


def _rows(frame: DataFrame, kind: type[R]) -> Iterator[R]:
    """The frame's rows as the fold has them: moments in milliseconds, lists as tuples."""
    selected = frame
    if c.OBSERVED_AT in kind._fields:
        selected = frame.withColumn(c.OBSERVED_AT, F.unix_millis(c.OBSERVED_AT))
    for row in selected.select(*kind._fields).collect():
        yield kind(*map(as_tuples, row))
