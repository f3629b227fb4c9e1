"""What goes into the bucket UDF: one flat row type, derived from the tables' declarations.

Rows of three kinds are in one schema, so that one shuffle brings a group's snapshots and members together, and of a
KIP-848 group the log records that its targets are judged by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from groupledger.core.arrays import ragged
from groupledger.core.arrays.batch import NONE, LongArray
from groupledger.core.digest import digest
from groupledger.core.log.listings import Listings, TopicChange
from groupledger.engine.arrow_lists import Column, are_true, column, integers, named, nulled, tuples, whole, with_column
from groupledger.tables import ASSIGNMENTS, QUARANTINE, REBALANCES, VIOLATIONS, Table
from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TOPIC_ID_PARTITIONS

if TYPE_CHECKING:
    from groupledger.core.arrays.ragged import Mask
    from groupledger.core.arrays.snapshots import TopicViews


BUCKET = "bucket"
ROW_KIND = "row_kind"
CHOSEN = "chosen"
FAULT_CODE = "fault_code"
FAULT_MESSAGE = "fault_message"
MOMENT = "moment"
ABSENT = "absent"

GROUP_ROW, MEMBER_ROW, RECORD_ROW = range(3)
KINDS = ("groups", "members", "records")
"""What rows of each kind are counted as."""

GROUP_FIELDS = (
    StructField(c.LOG_PARTITION, IntegerType()),
    StructField(c.OFFSET, LongType()),
    StructField(c.GROUP_TYPE, StringType()),
    StructField(c.PROTOCOL_TYPE, StringType()),
    StructField(c.SNAPSHOT_KIND, StringType()),
    StructField(c.COMPLETE, BooleanType()),
    StructField(c.GENERATION, IntegerType()),
    StructField(c.ASSIGNOR, StringType()),
    StructField(c.LEADER, StringType()),  # member id
    StructField(CHOSEN, StringType()),  # assignor to run; null: none, the step goes to the record
    StructField(c.SHARED_TOPICS, STRING_LIST),
    StructField(c.MEMBERS, IntegerType()),
    StructField(c.PREVIOUS_SNAPSHOT_ID, StringType()),
    StructField(MOMENT, LongType()),  # the snapshot's, microseconds: which topics there were
    StructField(FAULT_CODE, StringType()),  # rejected before the shuffle
    StructField(FAULT_MESSAGE, StringType()),
)
MEMBER_FIELDS = (
    StructField(c.MEMBER_ORDER, IntegerType()),
    StructField(c.MEMBER_ID, StringType()),
    StructField(c.GROUP_INSTANCE_ID, StringType()),
    StructField(c.RACK_ID, StringType()),
    StructField(c.SUBSCRIPTION_VERSION, IntegerType()),
    StructField(c.TOPICS, STRING_LIST),
    StructField(c.CLAIMED, TOPIC_ID_PARTITIONS),
    StructField(c.CLAIMED_GENERATION, IntegerType()),
    StructField(c.SUBSCRIPTION_GENERATION, IntegerType()),
    StructField(c.RECORDED, TOPIC_ID_PARTITIONS),
    StructField(c.TARGET, TOPIC_ID_PARTITIONS),
    StructField(c.USER_DATA, BinaryType()),  # which library wrote it, and what that one's assignor claims
)
RECORD_FIELDS = (
    StructField(c.TIMESTAMP, LongType()),  # milliseconds
    StructField(c.KEY, BinaryType()),
    StructField(c.VALUE, BinaryType()),
)
"""Of a log record of a KIP-848 group; its place stands in two columns of group rows. It is of no snapshot."""

RECORD_COLUMNS = (c.LOG_PARTITION, c.OFFSET, *(field.name for field in RECORD_FIELDS))

IDENTITY = (
    StructField(BUCKET, IntegerType(), nullable=False),
    StructField(ROW_KIND, ByteType(), nullable=False),
    StructField(c.SNAPSHOT_ID, StringType()),
    StructField(c.CLUSTER_ID, StringType(), nullable=False),
    StructField(c.GROUP_ID, StringType(), nullable=False),
    StructField(ABSENT, ByteType()),  # bits, by place in LISTS: which of its lists are null
)

LISTS = (c.SHARED_TOPICS, c.TOPICS, c.CLAIMED, c.RECORDED, c.TARGET)
"""Columns whose null means something else than an empty list. On their way to Python they are empty and say in ABSENT
that they are null: of a batch of rows, the JVM's Arrow writer takes time by the square of the null lists in turn."""

FIELDS = {
    kind: [field.name for field in (*IDENTITY[2:], *fields)]
    for kind, fields in ((GROUP_ROW, GROUP_FIELDS), (MEMBER_ROW, MEMBER_FIELDS))
} | {RECORD_ROW: [field.name for field in IDENTITY[3:]] + list(RECORD_COLUMNS)}
"""The columns that rows of a kind fill."""

INPUT = StructType([*IDENTITY, *GROUP_FIELDS, *MEMBER_FIELDS, *RECORD_FIELDS])

RESULTS: tuple[Table, ...] = (ASSIGNMENTS, REBALANCES, VIOLATIONS, QUARANTINE)
"""Tables the UDF fills."""


def by_topic(partitions: Iterable[tuple[str, int]]) -> list[dict[str, Any]]:
    """Topic by topic, as on Kafka's wire, in the order given; a topic's partitions stand together."""
    grouped = groupby(partitions, key=itemgetter(0))
    return [{c.TOPIC: topic, c.PARTITIONS: [number for _, number in some]} for topic, some in grouped]


# The rows of a bucket by kind: one table of all of them comes from Spark, with empty lists for null ones.


class Parts(NamedTuple):
    """The rows of a bucket by kind, with their null lists; groups by snapshot id."""

    groups: pa.Table
    members: pa.Table
    records: pa.Table


def parts_of(table: pa.Table) -> Parts:
    """Take a bucket's table apart. Every row is used: a row of no known kind is a bug of ours."""
    kind = integers(column(whole(table.select([ROW_KIND])), ROW_KIND), -1)
    groups, *others = parts = [_of_kind(table, kind, each) for each in FIELDS]
    if sum(map(len, parts)) != len(table):
        unknown = sorted(set(kind.tolist()) - FIELDS.keys())
        raise AssertionError(f"rows of kinds {unknown} in a bucket; expected {sorted(FIELDS)}")
    return Parts(groups.take(pc.sort_indices(column(groups, c.SNAPSHOT_ID))).combine_chunks(), *others)


def _of_kind(table: pa.Table, kind: LongArray, wanted: int) -> pa.Table:
    """Return the rows of one kind with the columns that are theirs, and their null lists null again."""
    rows = whole(table.select(FIELDS[wanted]).filter(pa.array(kind == wanted)))
    absent = integers(column(rows, ABSENT), 0)
    for place, name in enumerate(LISTS):
        missing = (absent >> place) & 1 == 1
        if name in FIELDS[wanted] and missing.any():
            rows = with_column(rows, name, nulled(column(rows, name), missing))
    return rows


# The topics a run knows: all changes of all topics, sent to the workers once a task beside the rows of the groups.
#
# A cluster has few topics beside its history of groups, so they are no join: each bucket looks up the topics it names.

SINCE = "since"
"""When a change was first listed, in microseconds."""

SCHEMA = pa.schema(
    [
        (c.CLUSTER_ID, pa.string()),
        (c.TOPIC, pa.string()),
        (c.TOPIC_ID, pa.string()),
        (c.PARTITION_COUNT, pa.int32()),
        (SINCE, pa.int64()),
        (c.RACKS, pa.list_(pa.list_(pa.string()))),
    ]
)


@dataclass(frozen=True)
class TopicCatalogue:
    """Rows of `SCHEMA` in any order; the same rows are the same catalogue. A topic is known by cluster and name."""

    table: pa.Table

    @staticmethod
    def of_rows(rows: list[dict[str, object]]) -> TopicCatalogue:
        """From plain rows; what one does not say is null."""
        return TopicCatalogue(pa.Table.from_pylist(rows, schema=SCHEMA))

    @cached_property
    def _sorted(self) -> pa.Table:
        """By cluster and topic, then as `core.log.topic_partitions` says."""
        rows = whole(self.table)
        keys = {name: column(rows, name) for name in (c.CLUSTER_ID, c.TOPIC, SINCE)}
        keys["there"] = column(rows, c.PARTITION_COUNT).is_valid().cast(pa.int8())
        keys[c.TOPIC_ID] = pc.fill_null(column(rows, c.TOPIC_ID), "")
        keys[c.PARTITION_COUNT] = pc.fill_null(column(rows, c.PARTITION_COUNT), 0)
        order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
        return whole(rows.take(order))

    @property
    def digest(self) -> str:
        """Of what it says, whatever the order it was read in."""
        return digest([list(row.values()) for row in self._sorted.to_pylist()])

    @cached_property
    def _names(self) -> tuple[Column, Column, LongArray]:
        """Distinct clusters, distinct names, and the key of each change: cluster's code * names + name's code."""
        cluster, topic = (column(self._sorted, name).dictionary_encode() for name in (c.CLUSTER_ID, c.TOPIC))
        key = integers(cluster.indices, NONE).astype(np.int64) * len(topic.dictionary) + integers(topic.indices, NONE)
        return cluster.dictionary, topic.dictionary, key

    @cached_property
    def _by_key(self) -> tuple[LongArray, LongArray]:
        """The keys of topics, rising, and the topic each is of."""
        keys = self._names[2][self.listings.start[:-1]]
        order = np.argsort(keys, kind="stable")
        return keys[order], order

    @cached_property
    def listings(self) -> Listings:
        """The changes as integers, topic by topic."""
        key = self._names[2]
        begins = np.flatnonzero(np.diff(key, prepend=NONE) != 0)
        return Listings(
            start=np.append(begins, len(key)),
            since=integers(column(self._sorted, SINCE), 0),
            count=integers(column(self._sorted, c.PARTITION_COUNT), NONE),
        )

    @cached_property
    def negative(self) -> Mask:
        """Changes whose count cannot be one."""
        counts = column(self._sorted, c.PARTITION_COUNT)
        return are_true(pc.less(counts, 0))

    def numbers(self, clusters: Column, cluster: LongArray, names: Column, name: LongArray) -> LongArray:
        """Return the topic of each pair (index into `clusters`, index into `names`); NONE: not listed."""
        known_clusters, known_names, _ = self._names
        own_cluster = integers(pc.index_in(clusters, value_set=known_clusters), NONE).astype(np.int64)[cluster]
        own_name = integers(pc.index_in(names, value_set=known_names), NONE).astype(np.int64)[name]
        wanted = own_cluster * len(known_names) + own_name
        keys, topic = self._by_key
        if len(keys) == 0:
            return np.full(len(wanted), NONE, np.int64)
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found: LongArray = np.where((keys[at] == wanted) & (own_cluster != NONE) & (own_name != NONE), topic[at], NONE)
        return found

    def ids(self, change: LongArray) -> Column:
        """Return the topic id that each change gives; null where it gives none, or there is no change."""
        return named(column(self._sorted, c.TOPIC_ID), change)

    def racks(self, change: LongArray) -> Column:
        """Return the racks of each change's replicas, likewise."""
        return named(column(self._sorted, c.RACKS), change)

    def has_racks(self) -> bool:
        """Whether any listing says where replicas are."""
        racks = self.table.column(c.RACKS)
        return bool(racks.null_count < len(racks))

    def changes(self, topics: LongArray) -> Iterator[TopicChange]:
        """All changes of some topics, without racks."""
        from groupledger.core.log.listings import TopicChange  # with the fold, which few buckets need

        _, rows = ragged.take(self.listings.start, topics)
        taken = self._sorted.take(pa.array(rows))
        found = tuples(taken, c.TOPIC, c.TOPIC_ID, c.PARTITION_COUNT, SINCE)
        return (TopicChange(topic, topic_id, count, None, since) for topic, topic_id, count, since in found)


@dataclass(frozen=True)
class TopicsAt:
    """The topic rows of a bucket as they were listed at their snapshots."""

    catalogue: TopicCatalogue
    topic: LongArray  # [T] number in the catalogue, NONE: never listed
    change: LongArray  # [T] the change in force, NONE: none was yet
    views: TopicViews

    @staticmethod
    def find(catalogue: TopicCatalogue, topic: LongArray, moment: LongArray) -> TopicsAt:
        """Return what is listed of each topic at its moment (microseconds)."""
        change = catalogue.listings.at(topic, moment)
        return TopicsAt(catalogue, topic, change, catalogue.listings.views(topic, change))
