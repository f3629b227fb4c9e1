"""What the fold takes and gives: the rows of a bucket, and the tables that one pass fills."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from groupledger import tables
from groupledger.tables import columns as c

RECORD, KNOWN, HEAD, TOPICS = "record", "known", "head", "topics"
BUCKET = "bucket"
GROUP_KEY = "group_key"
RECORDS, DUPLICATES = "records", "duplicates"
"""Names of counts: all new records, and of these the ones that were read twice."""
FOLDED_AGAIN = "folded_again"
"""The name of the count of groups of which an earlier fold had left records undecided."""

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
