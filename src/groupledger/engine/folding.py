"""The fold of `core.history` over buckets of groups: one Arrow call folds thousands of groups.

A bucket holds rows of three kinds in one frame, so that one shuffle brings together all a fold needs: log records,
the head each touched group starts from, and the topic catalogue of each cluster (one row a cluster and bucket).
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from groupledger import tables
from groupledger.core import history
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame

RECORD, KNOWN, HEAD, TOPICS = "record", "known", "head", "topics"
BUCKET = "bucket"
GROUP_KEY = "group_key"
TABLE = "table"
COUNTS = "counts"
COUNT_NAME = "name"
COUNT_ROWS = "rows"

CATALOGUE = ArrayType(
    StructType(
        [
            StructField(c.TOPIC, StringType()),
            StructField(c.TOPIC_ID, StringType()),
            StructField(c.PARTITION_COUNT, IntegerType()),
            StructField(c.VALID_FROM, LongType()),
        ]
    )
)

INPUT = StructType(
    [
        StructField(BUCKET, IntegerType()),
        StructField(c.KIND, StringType()),
        StructField(c.CLUSTER_ID, StringType()),
        StructField(GROUP_KEY, BinaryType()),
        StructField(c.LOG_PARTITION, IntegerType()),
        StructField(c.OFFSET, LongType()),
        StructField(c.TIMESTAMP, LongType()),
        StructField(c.KEY, BinaryType()),
        StructField(c.VALUE, BinaryType()),
        StructField(c.STATE, BinaryType()),
        StructField(c.REFOLDED, BooleanType()),
        StructField(TOPICS, CATALOGUE),
    ]
)
"""Rows of a bucket. Times of records in ms, of topics in microseconds. `record`: a log record; `known`: one that an
earlier ingest counted, of a group that is folded again; `head`: the state a group starts from and whether that folds it
again (no state: from the beginning, in this log partition if one is named); `topics`: the catalogue of a cluster."""

NO_TOPICS = history.TopicHistory()

FILLED = (
    tables.GROUP_SNAPSHOTS,
    tables.MEMBER_SNAPSHOTS,
    tables.OWNERSHIP_CHANGES,
    tables.GROUP_HEADS,
    tables.COVERAGE,
    tables.QUARANTINE,
    tables.VIOLATIONS,
)
"""The tables one fold fills, all in one pass."""


def _without_attempt(table: tables.Table) -> StructType:
    return StructType([field for field in table.schema if field.name != c.ATTEMPT_ID])


COUNT_ROW = StructType(
    [
        StructField(c.CLUSTER_ID, StringType()),
        StructField(COUNT_NAME, StringType()),
        StructField(COUNT_ROWS, LongType()),
    ]
)

OUTPUT = StructType(
    [StructField(TABLE, StringType(), nullable=False)]
    + [StructField(table.name, _without_attempt(table)) for table in FILLED]
    + [StructField(COUNTS, COUNT_ROW)]
)
"""A row of one table in the struct column of its name, the others null: one pass fills all tables."""


class LogCount(NamedTuple):
    """A number of records of one cluster, by what became of them."""

    cluster_id: str
    name: str
    rows: int


class Start(NamedTuple):
    """Where the fold of a group starts. `log_partition`: its home, where its records stand in several."""

    state: bytes | None = None
    refolded: bool = False
    log_partition: int | None = None


NO_HEAD = Start()


def fold_buckets(rows: DataFrame, buckets: int, settings: history.FoldSettings) -> DataFrame:
    """Fold `rows` (of `INPUT`) in `buckets` buckets into rows of `OUTPUT`.

    The explicit repartition keeps adaptive execution from putting a small input on one core.
    """

    def fold(bucket: pa.Table) -> pa.Table:
        return fold_table(bucket, settings)

    return rows.repartition(buckets, BUCKET).groupBy(BUCKET).applyInArrow(fold, OUTPUT)


def fold_table(bucket: pa.Table, settings: history.FoldSettings) -> pa.Table:
    """Fold one bucket; the answer holds every record in its counts, whatever the records hold."""
    folded = FoldedRows()
    catalogues = _catalogues(_of_kind(bucket, TOPICS))
    heads = _heads(_of_kind(bucket, HEAD))
    for cluster_id, group_key, records in _groups(_of_kind(bucket, RECORD, KNOWN)):
        topics = catalogues.get(cluster_id, NO_TOPICS)
        start = heads.get((cluster_id, group_key), NO_HEAD)
        group = history.fold_group(
            cluster_id,
            records,
            start.state,
            topics,
            settings=settings,
            refolded=start.refolded,
            group_id=None if group_key is None else group_key.decode(),
            log_partition=start.log_partition,
        )
        folded.add(cluster_id, group)
    return folded.table()


class FoldedRows:
    """Rows of all filled tables, collected over a bucket's groups."""

    def __init__(self) -> None:
        self.by_table: dict[str, list[tuple[Any, ...]]] = {table.name: [] for table in FILLED}
        self.counts: dict[tuple[str, str], int] = {}

    def add(self, cluster_id: str, folded: history.Folded) -> None:
        """Add what one group's fold gave."""
        for name, rows in self.by_table.items():
            if name == tables.GROUP_HEADS.name:
                rows.extend(head for head in (folded.head,) if head is not None)
            else:
                rows.extend(getattr(folded, name))
        for name, number in _named(folded.counts):
            self.counts[cluster_id, name] = self.counts.get((cluster_id, name), 0) + number

    def table(self) -> pa.Table:
        """All rows as one table of `OUTPUT`."""
        pieces = [_piece(name, rows) for name, rows in self.by_table.items() if rows]
        counts = [LogCount(cluster, name, number) for (cluster, name), number in sorted(self.counts.items())]
        return pa.concat_tables([*pieces, _piece(COUNTS, counts)])


def _named(counts: history.FoldCounts) -> Iterator[tuple[str, int]]:
    """The counts as flat names: `records`, `used.GroupMetadata`, `quarantined.TRUNCATED`, ..."""
    yield "records", counts.records
    yield "duplicates", counts.duplicates
    for kind in ("used", "unused", "tombstones", "quarantined"):
        for name, number in getattr(counts, kind).items():
            yield f"{kind}.{name}", number


def _piece(name: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """`rows` in the struct column `name`, every other struct column null."""
    columns = [pa.array([name], pa.string()).take(pa.array([0] * len(rows), pa.int64()))]
    for field in OUTPUT.fields[1:]:
        kind = arrow_type(field.dataType)
        columns.append(_structs(rows, kind) if field.name == name else pa.nulls(len(rows), kind))
    return pa.table(columns, names=OUTPUT.names)


def _structs(rows: Sequence[tuple[Any, ...]], kind: pa.StructType) -> pa.StructArray:
    values = zip(*rows, strict=True) if rows else ((),) * kind.num_fields
    fields = list(kind)
    return pa.StructArray.from_arrays(
        [_column(column, field.type) for column, field in zip(values, fields, strict=True)], fields=fields
    )


def _column(values: Iterable[Any], kind: pa.DataType) -> pa.Array:
    """Rows give timestamps in ms; the ledger keeps microseconds, as Spark does."""
    if pa.types.is_timestamp(kind):
        return pa.array(list(values), pa.timestamp("ms", tz="UTC")).cast(kind)
    return pa.array(list(values), kind)


def arrow_type(kind: Any) -> pa.DataType:
    """The Arrow type Spark expects for a Spark type; timestamps are UTC microseconds."""
    if isinstance(kind, TimestampType):
        return pa.timestamp("us", tz="UTC")
    if isinstance(kind, StructType):
        return pa.struct([pa.field(f.name, arrow_type(f.dataType), f.nullable) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", arrow_type(kind.elementType), kind.containsNull))
    return to_arrow_type(kind)


def _groups(records: pa.Table) -> Iterator[tuple[str, bytes | None, list[history.LogRow]]]:
    """Cluster, group, and its records by offset."""
    ordered = records.sort_by([(name, "ascending") for name in (c.CLUSTER_ID, GROUP_KEY, c.LOG_PARTITION, c.OFFSET)])
    names = [c.CLUSTER_ID, GROUP_KEY, c.LOG_PARTITION, c.OFFSET, c.TIMESTAMP, c.KEY, c.VALUE]
    known = [kind == KNOWN for kind in ordered[c.KIND].to_pylist()]
    rows = zip(*(ordered[name].to_pylist() for name in names), known, strict=True)
    for (cluster_id, group_key), members in groupby(rows, key=itemgetter(0, 1)):
        yield cluster_id, group_key, [history.LogRow(*row[2:]) for row in members]


def _of_kind(bucket: pa.Table, *kinds: str) -> pa.Table:
    return bucket.filter(pc.is_in(bucket[c.KIND], value_set=pa.array(kinds)))


def _heads(heads: pa.Table) -> dict[tuple[str, bytes | None], Start]:
    names = [c.CLUSTER_ID, GROUP_KEY, c.STATE, c.REFOLDED, c.LOG_PARTITION]
    rows = zip(*(heads[name].to_pylist() for name in names), strict=True)
    return {(cluster_id, group_key): Start(*start) for cluster_id, group_key, *start in rows}


def _catalogues(topics: pa.Table) -> dict[str, history.TopicHistory]:
    rows = zip(topics[c.CLUSTER_ID].to_pylist(), topics[TOPICS].to_pylist(), strict=True)
    return {
        cluster_id: history.TopicHistory(
            history.TopicChange(
                topic=change[c.TOPIC],
                topic_id=change[c.TOPIC_ID],
                partition_count=change[c.PARTITION_COUNT],
                racks=None,  # the fold has no use for them
                valid_from=change[c.VALID_FROM],
            )
            for change in changes
        )
        for cluster_id, changes in rows
    }
