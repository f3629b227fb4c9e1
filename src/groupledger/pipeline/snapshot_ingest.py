"""Users' own snapshot tables as part of an ingest: what is new of them, and what became of every row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql import Observation, Window
from pyspark.sql import functions as F

from groupledger.engine.buckets import bucket_count, parallelism
from groupledger.engine.holdings import ownership_changes
from groupledger.sources.snapshot_tables import SOURCE_KIND
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, TOPIC_SNAPSHOTS, Table
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from groupledger.pipeline.past import Past
    from groupledger.sources.snapshot_tables import SnapshotRows

KNOWN = "known"
_USABLE, _NEW = "usable", "new"
_LAST, _NEWEST, _OURS = "last", "newest", "ours"


@dataclass(frozen=True, slots=True)
class GivenRows:
    """Rows of one table of one source. `new` are those the ledger does not have; to be read before `counts`."""

    cluster_id: str
    table: Table
    new: DataFrame
    watch: Observation
    derived: bool = False  # no rows of a user's: they are not in the account

    def counts(self) -> Iterator[tuple[str, int]]:
        """What became of the rows without a fault, by the names of `accounts`. Those the ledger has are duplicates."""
        if self.derived:
            return
        usable, new = self.watch.get[_USABLE], self.watch.get[_NEW]
        yield "records", usable
        yield f"used.{self.table.name}", new
        yield "duplicates", usable - new


def given(current: Callable[[Table], DataFrame], cluster_id: str, tables: SnapshotRows) -> list[GivenRows]:
    """The three tables of one source, beside the `current` ones of the ledger.

    A snapshot is its id: one that the ledger has is not taken again.
    """
    known = current(GROUP_SNAPSHOTS).select(c.SNAPSHOT_ID)
    pieces = [(GROUP_SNAPSHOTS, tables.groups), (MEMBER_SNAPSHOTS, tables.members)]
    found = [_given(cluster_id, table, _marked(_of(table, rows.good), known)) for table, rows in pieces]
    if tables.derived:
        found[0] = replace(found[0], derived=True)
    if tables.topics is not None and tables.derived:
        changes = _changes(tables.topics.good, current(TOPIC_SNAPSHOTS), tables.groups.good)
        found.append(_given(cluster_id, TOPIC_SNAPSHOTS, changes))
    elif tables.topics is not None:
        said = current(TOPIC_SNAPSHOTS).drop(c.ATTEMPT_ID)
        found.append(_given(cluster_id, TOPIC_SNAPSHOTS, _marked(_of(TOPIC_SNAPSHOTS, tables.topics.good), said)))
    return found


def _of(table: Table, rows: DataFrame) -> DataFrame:
    return rows.select(*(name for name in table.columns if name != c.ATTEMPT_ID))


def _changes(counts: DataFrame, known: DataFrame, groups: DataFrame) -> DataFrame:
    """Mark topics that say nothing else than what was known before them; the others are changes.

    A count without a moment holds from the beginning; one that differs from what is known, since the newest snapshot
    that is read.
    """
    topic = [c.CLUSTER_ID, c.TOPIC]
    of_topic = [name for name in TOPIC_SNAPSHOTS.columns if name not in (*topic, c.VALID_FROM, c.ATTEMPT_ID)]
    last = known.groupBy(*topic).agg((F.unix_micros(F.max(c.VALID_FROM)) + 1).alias(_LAST))
    newest = groups.agg(F.unix_micros(F.max(c.OBSERVED_AT)).alias(_NEWEST))
    since = F.when(F.col(_LAST).isNull(), 0).otherwise(F.greatest(_LAST, _NEWEST))
    dated = counts.join(last, topic, "left").crossJoin(F.broadcast(newest))
    dated = dated.withColumn(c.VALID_FROM, F.coalesce(c.VALID_FROM, F.timestamp_micros(since))).drop(_LAST, _NEWEST)
    rows = _of(TOPIC_SNAPSHOTS, known).withColumn(_OURS, F.lit(True))
    rows = rows.unionByName(_of(TOPIC_SNAPSHOTS, dated).withColumn(_OURS, F.lit(False)))
    before = F.lag(F.struct(*of_topic)).over(Window.partitionBy(*topic).orderBy(c.VALID_FROM, F.desc(_OURS), *of_topic))
    marked = rows.withColumn(KNOWN, F.coalesce(before.eqNullSafe(F.struct(*of_topic)), F.lit(False)))
    return marked.where(~F.col(_OURS)).drop(_OURS)


def _given(cluster_id: str, table: Table, marked: DataFrame) -> GivenRows:
    """Counted behind the join: before its shuffle, a task that Spark has to run again would count once more."""
    watch = Observation()
    usable, new = F.count(F.lit(1)).alias(_USABLE), F.count_if(~F.col(KNOWN)).alias(_NEW)
    return GivenRows(cluster_id, table, marked.observe(watch, usable, new).where(~F.col(KNOWN)).drop(KNOWN), watch)


def _marked(rows: DataFrame, known: DataFrame) -> DataFrame:
    """The rows, and whether they stand in `known`, by its columns, nulls equal to nulls."""
    left, right = rows.alias("given"), known.distinct().withColumn(KNOWN, F.lit(True)).alias("said")
    condition = F.lit(True)
    for name in known.columns:
        condition &= F.col(f"given.{name}").eqNullSafe(F.col(f"said.{name}"))
    return left.join(right, condition, "left").select("given.*", F.col(KNOWN).isNotNull().alias(KNOWN))


def changes_of_ownership(past: Past, groups: DataFrame, members: DataFrame, written: int = 0) -> DataFrame:
    """Rows of `ownership_changes` (without the attempt) of every group with a new snapshot, from all its snapshots.

    `groups` and `members` are new rows of the users' tables; they may be late, so all changes of a group are derived
    anew (`sinks.current`). `written`: how many snapshots this attempt has written.
    """
    group = [c.CLUSTER_ID, c.GROUP_ID]
    touched = groups.select(*group).distinct()
    old = past.current(GROUP_SNAPSHOTS).where(F.col(c.SOURCE) == SOURCE_KIND).drop(c.ATTEMPT_ID)
    every = groups.drop(c.ATTEMPT_ID).unionByName(old.join(touched, group, "left_semi"))
    known = past.current(MEMBER_SNAPSHOTS).where(F.col(c.SNAPSHOT_ID).startswith(f"{SOURCE_KIND}/"))
    old_members = known.drop(c.ATTEMPT_ID).join(touched, group, "left_semi")
    most = written + sum(commit.counts_out.get(GROUP_SNAPSHOTS.name, 0) for commit in past.commits)
    cores = parallelism(past.spark)
    tasks = min(cores, bucket_count(most, cores))
    return ownership_changes(every, members.drop(c.ATTEMPT_ID).unionByName(old_members), tasks)


def of_table(pieces: Iterable[GivenRows], table: Table) -> list[DataFrame]:
    """The new rows of one table."""
    return [piece.new for piece in pieces if piece.table is table]
