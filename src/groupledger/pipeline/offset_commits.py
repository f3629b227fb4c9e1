"""Count offset commits in the JVM: of most of a log's records, the fold needs nothing but their number.

A commit is left out of the fold where it cannot matter there. No other record of its log partition has its offset, so
that it is not part of a rewritten log; its group starts from its last head, in one log partition, so that nothing is
folded again and nothing is to be decided about the group's home. What matters is where the group's last record is: its
head says so. If that is a commit, one stands for all.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from groupledger.core.history import home_of, possible_counts
from groupledger.core.wire.offsets_log import OFFSET_COMMITS
from groupledger.pipeline.past import GROUP, Past, forgotten_ends
from groupledger.tables import GROUP_HEADS, LOG_RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


WORTH_MARKING = 50_000
"""Records of an ingest from which on its offset commits are kept from the fold: fewer cost less than the two queries
that this takes."""

COMMITS, IS_COMMIT = "commits", "is_commit"
_LAST_OTHER, _LAST_TIME, _KEPT = "last_other_offset", "last_time", "kept"
_COMMIT = OFFSET_COMMITS[-1]
"""How the key of a commit begins, but for those of Kafka before 0.9: the fold counts them."""
_BLOCK_BITS = 6


@dataclass(frozen=True, slots=True)
class RecordsToFold:
    """The `records` of `log_records` that a fold has to see, and for each group that ends in a commit one that stands
    for it (`ends`).

    `commits`: by cluster, how many are left out, those that end a group among them.
    """

    records: DataFrame
    ends: DataFrame | None = None
    commits: Mapping[str, int] = field(default_factory=dict)


def mark_commits(records: DataFrame) -> DataFrame:
    """Add IS_COMMIT to rows of `log_records`: whether it is an offset commit of a group, and no tombstone."""
    is_commit = (
        (F.substring(c.KEY, 1, 2) == F.lit(_COMMIT)) & F.col(c.VALUE).isNotNull() & F.col(c.GROUP_ID).isNotNull()
    )
    return records.withColumn(IS_COMMIT, F.coalesce(is_commit, F.lit(False)))


def extent_of_commits() -> list[Column]:
    """Return aggregates of marked records by group and log partition: number of commits, and what stands last."""
    return [
        F.count_if(IS_COMMIT).alias(COMMITS),
        F.max(F.when(~F.col(IS_COMMIT), F.col(c.OFFSET))).alias(_LAST_OTHER),
        F.max_by(c.TIMESTAMP, c.OFFSET).alias(_LAST_TIME),
    ]


def records_to_fold(new: DataFrame, extent: DataFrame, unsettled: DataFrame) -> RecordsToFold:
    """Leave the commits out of `new` records, but for `unsettled` groups and log partitions with an offset twice.

    `extent` has the aggregates of `extent_of_commits`; it is read several times, and `unsettled` (cluster and group)
    too, so they should be persisted.
    """
    twice = _offsets_twice(new)
    kept = unsettled.select(*GROUP)
    if twice:
        kept = kept.unionByName(extent.where(_at(twice)).select(*GROUP)).distinct()
    marked = extent.join(kept.withColumn(_KEPT, F.lit(True)), GROUP, "left").fillna(False, [_KEPT])
    counts = marked.where(F.col(COMMITS) > 0).groupBy(c.CLUSTER_ID, _KEPT).agg(F.sum(COMMITS)).collect()
    rows = mark_commits(new)
    records = rows.where(~F.col(IS_COMMIT))
    if any(is_kept for _, is_kept, _ in counts):
        records = records.unionByName(rows.where(IS_COMMIT).join(kept, GROUP, "left_semi"))
    left_out = {cluster_id: number for cluster_id, is_kept, number in counts if not is_kept}
    return RecordsToFold(records.drop(IS_COMMIT), _ends(marked.where(~F.col(_KEPT))), left_out)


def _offsets_twice(new: DataFrame) -> list[tuple[str, int]]:
    """Return the log partitions that have several records at one offset.

    Offsets are noted as bits of blocks: as many rows as offsets would have to be shuffled otherwise.
    """
    place = [c.CLUSTER_ID, c.LOG_PARTITION]
    bit = f"shiftleft(1L, cast({c.OFFSET} & {(1 << _BLOCK_BITS) - 1} AS int))"
    blocks = new.groupBy(*place, F.expr(f"shiftright({c.OFFSET}, {_BLOCK_BITS})")).agg(
        F.count(F.lit(1)).alias("records"), F.expr(f"bit_count(bit_or({bit}))").alias("offsets")
    )
    return sorted(blocks.where("records > offsets").select(*place).distinct().collect())


def _at(places: Sequence[tuple[str, int]]) -> Column:
    by_cluster: dict[str, list[int]] = {}
    for cluster_id, partition in places:
        by_cluster.setdefault(cluster_id, []).append(partition)
    found = F.lit(False)
    for cluster_id, partitions in by_cluster.items():
        found |= (F.col(c.CLUSTER_ID) == cluster_id) & F.col(c.LOG_PARTITION).isin(partitions)
    return found


def _ends(extent: DataFrame) -> DataFrame:
    """Return a commit at the last offset of each group that ends in one; any will do."""
    is_last = F.coalesce(F.col(_LAST_OTHER) < F.col(LAST_OFFSET), F.lit(True))
    return extent.where(is_last & (F.col(COMMITS) > 0)).select(
        *GROUP,
        c.LOG_PARTITION,
        F.col(LAST_OFFSET).alias(c.OFFSET),
        F.col(_LAST_TIME).alias(c.TIMESTAMP),
        F.lit(_COMMIT).alias(c.KEY),
        F.lit(b"").alias(c.VALUE),
    )


# Which log partition is the home of a group whose records stand in several.
#
# Rare, so it costs nothing where there is no such group: a group is looked at where its new records are in another log
# partition than its last head, or where an earlier ingest quarantined strays of it, since each ingest may add to the
# evidence. What `core.history.fold` decides rests on all records known, whichever ingest brought them.

MOST_WITNESSES = 10_000
"""Groups of a cluster, the first by id, that the number of its log partitions is inferred from."""

FIRST_OFFSET, LAST_OFFSET, NEWEST, RECORDS = "first_offset", "last_offset", "newest", "records"
HOME = "home"
GroupName = tuple[str, str]


class LastHead(NamedTuple):
    """The last head of a group, and the offset of its first one."""

    log_partition: int
    offset: int
    attempt_id: str
    earliest: int


def homes(past: Past, touched: DataFrame, contested: Mapping[GroupName, LastHead | None]) -> dict[GroupName, int]:
    """Return the home of each contested group. `touched`: records of the new input by group and log partition.

    A group of which records were removed by retention or redaction stays where it is: what they said could not be
    folded again, and the records that are left are no evidence.
    """
    ends = forgotten_ends(past.commits)
    fixed = {
        name: head.log_partition
        for name, head in contested.items()
        if head is not None and ends.get(f"{name[0]}/{head.log_partition}", -1) >= head.earliest
    }
    open_groups = sorted(contested.keys() - fixed.keys())
    if not open_groups:
        return fixed
    records = _records(past, touched, open_groups)
    possible = {
        cluster: (past.stated[cluster],)
        if cluster in past.stated
        else possible_counts(_witnesses(past, touched, cluster, contested.keys()))
        for cluster in sorted({cluster for cluster, _ in open_groups})
    }
    return fixed | {name: home_of(name[1], records[name], possible[name[0]]) for name in open_groups}


def _records(past: Past, touched: DataFrame, groups: Sequence[GroupName]) -> Mapping[GroupName, Mapping[int, int]]:
    """Return number of records of each group by log partition, old and new."""
    new = touched.select(*GROUP, c.LOG_PARTITION, RECORDS)
    counted = [new]
    if not past.empty:
        old = past.current(LOG_RECORDS).groupBy(*GROUP, c.LOG_PARTITION).agg(F.count(F.lit(1)).alias(RECORDS))
        counted.append(old)
    wanted = F.broadcast(touched.sparkSession.createDataFrame(list(groups), _schema(*GROUP)))
    found: defaultdict[GroupName, dict[int, int]] = defaultdict(dict)
    for rows in counted:
        for cluster, group, partition, number in rows.join(wanted, GROUP, "left_semi").collect():
            by_partition = found[cluster, group]
            by_partition[partition] = by_partition.get(partition, 0) + number
    return found


def _witnesses(
    past: Past, touched: DataFrame, cluster_id: str, contested: Iterable[GroupName]
) -> list[tuple[str, int]]:
    """Return groups of the cluster that were seen in one log partition only, and which one."""
    seen = touched.select(*GROUP, c.LOG_PARTITION)
    if not past.empty:
        seen = seen.union(past.current(GROUP_HEADS).select(*GROUP, c.LOG_PARTITION))
    here = seen.where((F.col(c.CLUSTER_ID) == cluster_id) & F.col(c.GROUP_ID).isNotNull())
    names = [(group,) for cluster, group in contested if cluster == cluster_id]
    others = here.join(
        F.broadcast(touched.sparkSession.createDataFrame(names, _schema(c.GROUP_ID))), c.GROUP_ID, "left_anti"
    )
    rows = others.groupBy(c.GROUP_ID).agg(F.min(c.LOG_PARTITION)).sort(c.GROUP_ID).limit(MOST_WITNESSES)
    return [(group, partition) for group, partition in rows.collect()]


def _schema(*names: str) -> str:
    return ", ".join(f"{name} string" for name in names)
