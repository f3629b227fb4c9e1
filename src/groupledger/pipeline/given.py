"""Users' own snapshot tables as part of an ingest: what is new of them, and what became of every row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import Observation
from pyspark.sql import functions as F

from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from groupledger.sources.opening import Rows
    from groupledger.sources.snapshot_tables import Snapshots

_ROWS = "rows"


@dataclass(frozen=True, slots=True)
class Given:
    """Rows of one table of one source. `new` are those the ledger does not have; to be read before `counts`."""

    cluster_id: str
    table: Table
    rows: Rows
    new: DataFrame
    watch: Observation

    def counts(self) -> Iterator[tuple[str, int]]:
        """What became of the rows, by the names of `accounts`. Rows of a known snapshot are duplicates."""
        used, read, rejected = self.watch.get[_ROWS], self.rows.read(), self.rows.rejections()
        yield "records", read
        yield f"used.{self.table.name}", used
        yield "duplicates", read - rejected - used


def given(current: Callable[[Table], DataFrame], cluster_id: str, tables: Snapshots) -> list[Given]:
    """The three tables of one source, beside the `current` ones of the ledger.

    A snapshot is its id: one that the ledger has is not taken again.
    """
    known = current(GROUP_SNAPSHOTS).select(c.SNAPSHOT_ID)
    pieces = [(GROUP_SNAPSHOTS, tables.groups), (MEMBER_SNAPSHOTS, tables.members)]
    found = [
        _given(cluster_id, table, rows, rows.good.join(known, c.SNAPSHOT_ID, "left_anti")) for table, rows in pieces
    ]
    if tables.topics is not None:
        said = current(TOPIC_SNAPSHOTS).drop(c.ATTEMPT_ID)
        found.append(_given(cluster_id, TOPIC_SNAPSHOTS, tables.topics, _unsaid(tables.topics.good, said)))
    return found


def _given(cluster_id: str, table: Table, rows: Rows, new: DataFrame) -> Given:
    watch = Observation()
    named = new.select(*(name for name in table.columns if name != c.ATTEMPT_ID))
    return Given(cluster_id, table, rows, named.observe(watch, F.count(F.lit(1)).alias(_ROWS)), watch)


def _unsaid(rows: DataFrame, said: DataFrame) -> DataFrame:
    """The rows that do not stand in `said` already, nulls equal to nulls."""
    left, right = rows.alias("given"), said.alias("said")
    condition = F.lit(True)
    for name in said.columns:
        condition &= F.col(f"given.{name}").eqNullSafe(F.col(f"said.{name}"))
    return left.join(right, condition, "left_anti")


def of_table(pieces: Iterable[Given], table: Table) -> list[DataFrame]:
    """The new rows of one table."""
    return [piece.new for piece in pieces if piece.table is table]
