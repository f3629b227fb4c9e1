"""What a fold needs beside the new records: the heads it starts from, the topics, and for late data the old records.

A record is late where the group's last head lies at or after it. Such a group is folded again from the last head before
its first late record; what earlier attempts said of the offsets after that head is superseded (`sinks.current`). A
group whose home is another log partition than its head's (`pipeline.fold_input`) is folded again from the
beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from groupledger.core.history import home_of, possible_counts
from groupledger.core.wire.offsets_log import OFFSET_COMMITS
from groupledger.engine.buckets import bucket_of
from groupledger.engine.fold_schema import BUCKET, GROUP_KEY, HEAD, INPUT, KNOWN, RECORD, TOPICS
from groupledger.pipeline.past import GROUP, Past, forgotten_ends
from groupledger.sinks.current import numbered
from groupledger.tables import GROUP_HEADS, LOG_RECORDS
from groupledger.tables import columns as c

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
    records = _counted(past, touched, open_groups)
    possible = {
        cluster: (past.stated[cluster],)
        if cluster in past.stated
        else possible_counts(_witnesses(past, touched, cluster, contested.keys()))
        for cluster in sorted({cluster for cluster, _ in open_groups})
    }
    return fixed | {name: home_of(name[1], records[name], possible[name[0]]) for name in open_groups}


def _counted(past: Past, touched: DataFrame, groups: Sequence[GroupName]) -> Mapping[GroupName, Mapping[int, int]]:
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


LATEST, EARLIEST, NEW, STRAYED, LATE = "latest", "earliest", "new", "strayed", "late"
START, START_ATTEMPT = "start_offset", "start_attempt"
STARTS = (
    f"{c.CLUSTER_ID} string, {c.GROUP_ID} string, {HOME} int, {FIRST_OFFSET} bigint, {LATE} boolean, "
    f"{START} bigint, {START_ATTEMPT} string"
)
"""A row for each group that does not start at its first record. `late`: it is folded again. `start_offset` is that of
the last head; the one that a late group starts from is sought afterwards, by `first_offset`: null for a group whose
home changed, which starts from the beginning."""

RECORDS_PER_BUCKET = 25_000
"""Few enough to hold decoded in one Python worker, many enough that a call costs nothing beside them."""

_NAMED = 1_000


class _Start(NamedTuple):
    """A row of STARTS."""

    cluster_id: str
    group_id: str
    home: int
    first_offset: int | None
    late: bool
    offset: int | None
    attempt_id: str | None


class _Starts(NamedTuple):
    """Rows of STARTS, whether there are `groups` among them, and the attempts whose heads they name."""

    rows: DataFrame
    late_groups: int
    attempts: set[str | None]
    groups: bool
    stray_groups: int


@dataclass(frozen=True, slots=True)
class NewRecords:
    """Records of `log_records` that no fold has seen, their extent (`touched`), and how many there are.

    `commits`: how many offset commits the extent counts; 0 if it does not.
    """

    rows: DataFrame
    extent: DataFrame
    number: int
    commits: int


@dataclass(frozen=True, slots=True)
class FoldInput:
    """Rows of `engine.fold_slices.INPUT` in so many buckets; how many groups are folded again, and of how many there
    are strays; how many offset commits are counted already, by cluster."""

    rows: DataFrame
    buckets: int
    late_groups: int
    stray_groups: int
    commits: Mapping[str, int]
    kept: tuple[DataFrame, ...]

    def release(self) -> None:
        """Release the rows, which have been used."""
        for frame in self.kept:
            frame.unpersist()


def touched(new: DataFrame, *, counts_commits: bool) -> DataFrame:
    """Return the extent of new records by group and log partition; that of offset commits on demand."""
    rows = mark_commits(new) if counts_commits else new
    return rows.groupBy(*GROUP, c.LOG_PARTITION).agg(
        F.min(c.OFFSET).alias(FIRST_OFFSET),
        F.max(c.OFFSET).alias(LAST_OFFSET),
        F.max(c.TIMESTAMP).alias(NEWEST),
        F.count(F.lit(1)).alias(RECORDS),
        *(extent_of_commits() if counts_commits else ()),
    )


def fold_input(past: Past, new: NewRecords, topics: DataFrame, wanted: int | None) -> FoldInput:
    """Return the rows of every bucket: new records, heads and old records of their groups, `topics`.

    `wanted`: as many buckets in any case.
    """
    groups = _groups(past, new.extent.where(F.col(c.GROUP_ID).isNotNull())).persist()
    kept = [groups]
    try:
        found = _starts(past, groups, new.extent)
        starts, attempts = found.rows, found.attempts
        seen = RecordsToFold(new.rows)
        if new.commits:
            seen = records_to_fold(new.rows, new.extent, groups.where(_is_contested() | _is_late()))
        buckets = wanted or max(2, (new.number - sum(seen.commits.values())) // RECORDS_PER_BUCKET)
        pieces = [_records(seen.records, RECORD, buckets), _catalogues(past, topics, buckets)]
        if seen.ends is not None:
            pieces.append(_records(seen.ends, KNOWN, buckets))
        if found.late_groups:
            starts = _with_refold_start(past, starts).persist()
            kept.append(starts)
            attempts = {row[0] for row in starts.select(START_ATTEMPT).distinct().collect()}
            pieces.append(_records(_already_read(past.current(LOG_RECORDS), starts.where(LATE)), KNOWN, buckets))
        if found.groups:
            pieces.append(_heads(past, starts, attempts, buckets))
    except BaseException:
        for frame in kept:
            frame.unpersist()
        raise
    return FoldInput(_union(pieces), buckets, found.late_groups, found.stray_groups, seen.commits, tuple(kept))


def _groups(past: Past, extent: DataFrame) -> DataFrame:
    """Each touched group, and each that ever had strays: its last head, and where its new records are."""
    place = F.struct(c.LOG_PARTITION, FIRST_OFFSET)
    groups = extent.groupBy(*GROUP).agg(F.array_sort(F.collect_list(place)).alias(NEW))
    strayed = past.strayed()
    if strayed is None:
        groups = groups.withColumn(STRAYED, F.lit(False))
    else:
        marked = strayed.withColumn(STRAYED, F.lit(True))
        groups = groups.join(marked, GROUP, "full").fillna(False, [STRAYED])
    if past.empty:
        return groups.withColumns({LATEST: F.lit(None).cast(_HEAD), EARLIEST: F.lit(None).cast("bigint")})
    return groups.join(_last_heads(past, groups), GROUP, "left")


def _last_heads(past: Past, groups: DataFrame) -> DataFrame:
    """Return the last head of each group that has one, and the offset of its first.

    Aggregates of numbers alone are hashed; with a struct or a text among them, Spark sorts all heads there ever were.
    """
    numbers = F.broadcast(numbered(past.spark, past.commits))
    heads = past.current(GROUP_HEADS).join(numbers, c.ATTEMPT_ID).join(groups.select(*GROUP), GROUP)
    last = heads.groupBy(*GROUP).agg(
        F.max_by(c.LOG_PARTITION, c.OFFSET).alias(c.LOG_PARTITION),
        F.max(c.OFFSET).alias(c.OFFSET),
        F.max_by(c.SEQUENCE, c.OFFSET).alias(c.SEQUENCE),
        F.min(c.OFFSET).alias(EARLIEST),
    )
    head = F.struct(c.LOG_PARTITION, c.OFFSET, c.ATTEMPT_ID).alias(LATEST)
    return last.join(numbers, c.SEQUENCE).select(*GROUP, head, EARLIEST)


_HEAD = f"struct<{c.LOG_PARTITION}:int,{c.OFFSET}:bigint,{c.ATTEMPT_ID}:string>"


def _is_contested() -> Column:
    """Whether the group's home has to be decided, of a row of `_groups`."""
    elsewhere = F.coalesce(F.col(NEW)[0][c.LOG_PARTITION] != F.col(LATEST)[c.LOG_PARTITION], F.lit(False))
    return F.col(STRAYED) | (F.size(NEW) > 1) | elsewhere


def _is_late() -> Column:
    """Whether the group, if it is not contested, is folded again."""
    return F.coalesce(F.col(NEW)[0][FIRST_OFFSET] <= F.col(LATEST)[c.OFFSET], F.lit(False))


def _starts(past: Past, groups: DataFrame, extent: DataFrame) -> _Starts:
    """Where each group starts, in one query where no group has strays."""
    only, last, contested = F.col(NEW)[0], F.col(LATEST), _is_contested()
    settled = groups.where(~contested & last.isNotNull()).select(
        *GROUP,
        last[c.LOG_PARTITION].alias(HOME),
        only[FIRST_OFFSET].alias(FIRST_OFFSET),
        _is_late().alias(LATE),
        last[c.OFFSET].alias(START),
        last[c.ATTEMPT_ID].alias(START_ATTEMPT),
    )
    row = groups.agg(
        F.collect_list(F.when(contested, F.struct(*GROUP, NEW, LATEST, EARLIEST))),
        F.count_if(~contested & _is_late()),
        F.collect_set(F.when(~contested, last[c.ATTEMPT_ID])),
    ).first()
    assert row is not None, "an aggregate has a row"
    rows, late_groups, attempts = row
    if not rows:
        return _Starts(settled, late_groups, set(attempts), bool(attempts), 0)
    heads = {(row[c.CLUSTER_ID], row[c.GROUP_ID]): _last_head(row) for row in rows}
    found = homes(past, extent, heads)
    starts = [start for row in rows if (start := _start(row, heads, found)) is not None]
    every = settled.unionByName(groups.sparkSession.createDataFrame(starts, STARTS))
    late_groups += sum(bool(start.late) for start in starts)
    return _Starts(every, late_groups, {*attempts, *(start.attempt_id for start in starts)}, True, len(starts))


def _last_head(row: Any) -> LastHead | None:
    last = row[LATEST]
    if last is None:
        return None
    return LastHead(last[c.LOG_PARTITION], last[c.OFFSET], last[c.ATTEMPT_ID], row[EARLIEST])


def _start(row: Any, heads: dict[GroupName, LastHead | None], found: dict[GroupName, int]) -> _Start | None:
    """Where a contested group starts; None where neither its records nor its home are new."""
    name = row[c.CLUSTER_ID], row[c.GROUP_ID]
    home, head = found[name], heads[name]
    if head is None:
        return _Start(*name, home, None, late=False, offset=None, attempt_id=None)
    if head.log_partition != home:
        return _Start(*name, home, None, late=True, offset=None, attempt_id=None)
    if not row[NEW]:
        return None
    first = next((place[FIRST_OFFSET] for place in row[NEW] if place[c.LOG_PARTITION] == home), None)
    late = first is not None and first <= head.offset
    return _Start(*name, home, first, late, head.offset, head.attempt_id)


def _with_refold_start(past: Past, starts: DataFrame) -> DataFrame:
    """Return the starts, late groups at their last head before the first late record, or at the beginning."""
    late = F.broadcast(starts.where(LATE).select(*GROUP, HOME, FIRST_OFFSET))
    narrow = past.current(GROUP_HEADS).select(*GROUP, F.col(c.LOG_PARTITION).alias(HOME), c.OFFSET, c.ATTEMPT_ID)
    before = narrow.join(late, [*GROUP, HOME]).where(F.col(c.OFFSET) < F.col(FIRST_OFFSET))
    place = F.max_by(F.struct(c.OFFSET, c.ATTEMPT_ID), c.OFFSET).alias(NEW)
    sought = starts.join(before.groupBy(*GROUP).agg(place), GROUP, "left")
    again = {START: F.col(NEW)[c.OFFSET], START_ATTEMPT: F.col(NEW)[c.ATTEMPT_ID]}
    return sought.withColumns(
        {name: F.when(F.col(LATE), value).otherwise(F.col(name)) for name, value in again.items()}
    ).drop(NEW)


def _already_read(known: DataFrame, late: DataFrame) -> DataFrame:
    """Return the records of late groups after their start, as earlier ingests read them.

    What is known of strays stands, unless the group is folded from the beginning.
    """
    records = known.join(F.broadcast(late.select(*GROUP, HOME, START)), GROUP)
    after = (F.col(c.LOG_PARTITION) == F.col(HOME)) & (F.col(c.OFFSET) > F.col(START))
    return records.where(F.col(START).isNull() | after).select(*LOG_RECORDS.columns)


def _records(records: DataFrame, kind: str, buckets: int) -> DataFrame:
    return records.select(
        bucket_of(buckets).alias(BUCKET),
        F.lit(kind).alias(c.KIND),
        c.CLUSTER_ID,
        F.encode(c.GROUP_ID, "UTF-8").alias(GROUP_KEY),
        c.LOG_PARTITION,
        c.OFFSET,
        F.unix_millis(c.TIMESTAMP).alias(c.TIMESTAMP),
        c.KEY,
        c.VALUE,
    )


def _heads(past: Past, starts: DataFrame, attempts: set[str | None], buckets: int) -> DataFrame:
    """Return a row for each start, with the head's state if it has one; read only attempts that wrote one."""
    named = sorted(attempt for attempt in attempts if attempt is not None)
    heads = past.current(GROUP_HEADS, named if len(named) <= _NAMED else None)
    states = heads.select(*GROUP, F.col(c.ATTEMPT_ID).alias(START_ATTEMPT), c.STATE)
    return starts.join(states, [*GROUP, START_ATTEMPT], "left").select(
        bucket_of(buckets).alias(BUCKET),
        F.lit(HEAD).alias(c.KIND),
        c.CLUSTER_ID,
        F.encode(c.GROUP_ID, "UTF-8").alias(GROUP_KEY),
        F.col(HOME).alias(c.LOG_PARTITION),
        c.STATE,
        F.col(LATE).alias(c.REFOLDED),
    )


def _catalogues(past: Past, topics: DataFrame, buckets: int) -> DataFrame:
    """All changes of a cluster's topics as one row in every bucket: the driver never holds them."""
    change = F.struct(c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, F.unix_micros(c.VALID_FROM).alias(c.VALID_FROM))
    listed = topics.where(F.col(c.CLUSTER_ID).isin(*past.clusters))
    one = listed.groupBy(c.CLUSTER_ID).agg(F.collect_list(change).alias(TOPICS))
    numbers = topics.sparkSession.range(buckets).select(F.col("id").cast("int").alias(BUCKET))
    return one.crossJoin(F.broadcast(numbers)).select(BUCKET, F.lit(TOPICS).alias(c.KIND), c.CLUSTER_ID, F.col(TOPICS))


def _union(pieces: list[DataFrame]) -> DataFrame:
    rows = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), pieces)
    return rows.select(*(_typed(rows, field.name, field.dataType.simpleString()) for field in INPUT))


def _typed(rows: DataFrame, name: str, kind: str) -> Column:
    return F.col(name) if name in rows.columns else F.lit(None).cast(kind).alias(name)
