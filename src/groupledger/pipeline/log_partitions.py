"""Which log partition is the home of a group whose records stand in several.

Rare, so it costs nothing where there is no such group: a group is looked at where its new records are in another log
partition than its last head, or where an earlier ingest quarantined strays of it, since each ingest may add to the
evidence. What `core.history.home` decides rests on all records known, whichever ingest brought them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pyspark.sql import functions as F

from groupledger.core.history import home_of, possible_counts
from groupledger.pipeline.past import GROUP, Past
from groupledger.pipeline.retention import forgotten_ends
from groupledger.tables import GROUP_HEADS, LOG_RECORDS
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    """The home of each contested group. `touched`: records of the new input by group and log partition.

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
    """Number of records of each group by log partition, old and new."""
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
    """Groups of the cluster that were seen in one log partition only, and which one."""
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
