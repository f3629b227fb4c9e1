"""What goes into the bucket UDF: one flat row type, derived from the tables' declarations.

Rows of three kinds are in one schema, so that one shuffle brings a group's snapshots and members together, and of a
KIP-848 group the log records that its targets are judged by.
"""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

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

from groupledger.engine.arrow_lists import column, integers, nulled, whole
from groupledger.tables import ASSIGNMENTS, QUARANTINE, REBALANCES, VIOLATIONS, Table
from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TOPIC_ID_PARTITIONS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from groupledger.core.arrays.batch import LongArray


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
            at = rows.schema.get_field_index(name)
            rows = rows.set_column(at, rows.schema.field(at), nulled(column(rows, name), missing))
    return rows
