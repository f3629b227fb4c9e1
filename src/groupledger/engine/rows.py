"""What goes into the bucket UDF and what comes out: one flat row type each way, derived from the tables' declarations.

In: rows of five kinds in one schema, so that one shuffle brings a group's snapshots, members and topics together, and
of a KIP-848 group the log records and changes of topics that its targets are judged by.
Out: one row type with a struct for each table it may fill, all but one of them null.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from groupledger.tables import ASSIGNMENTS, QUARANTINE, REBALANCES, VIOLATIONS, Table
from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TOPIC_ID_PARTITIONS

BUCKET = "bucket"
ROW_KIND = "row_kind"
CHOSEN = "chosen"
FAULT_CODE = "fault_code"
FAULT_MESSAGE = "fault_message"
COUNT_NOW = "count_now"
COUNT_BEFORE = "count_before"
COUNT_BEFORE_THAT = "count_before_that"
COUNT_AFTER = "count_after"
CHANGED = "changed_at"
CHANGED_BEFORE = "changed_before_at"
CHANGED_AFTER = "changed_after_at"
LISTED = "listed"

INT32_BYTES = 4
"""Of the user data that may date a claim (KIP-792)."""

GROUP_ROW, MEMBER_ROW, TOPIC_ROW, RECORD_ROW, CHANGE_ROW = range(5)

GROUP_FIELDS = (
    StructField(c.LOG_PARTITION, IntegerType()),
    StructField(c.OFFSET, LongType()),
    StructField(c.GROUP_TYPE, StringType()),
    StructField(c.PROTOCOL_TYPE, StringType()),
    StructField(c.SNAPSHOT_KIND, StringType()),
    StructField(c.COMPLETE, BooleanType()),
    StructField(c.GENERATION, IntegerType()),
    StructField(c.ASSIGNOR, StringType()),
    StructField(CHOSEN, StringType()),  # assignor to run; null: none, the step goes to the record
    StructField(c.SHARED_TOPICS, STRING_LIST),
    StructField(c.MEMBERS, IntegerType()),
    StructField(c.PREVIOUS_SNAPSHOT_ID, StringType()),
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
    StructField(c.USER_DATA, BinaryType()),  # all for custom assignors; 4 bytes that may date a claim for others
)
TOPIC_FIELDS = (
    StructField(c.TOPIC, StringType()),
    StructField(c.TOPIC_ID, StringType()),
    StructField(LISTED, BooleanType()),  # a listing at or before the snapshot names the topic, if only as deleted
    StructField(COUNT_NOW, IntegerType()),
    StructField(COUNT_BEFORE, IntegerType()),
    StructField(COUNT_BEFORE_THAT, IntegerType()),
    StructField(COUNT_AFTER, IntegerType()),
    StructField(CHANGED, LongType()),  # microseconds
    StructField(CHANGED_BEFORE, LongType()),
    StructField(CHANGED_AFTER, LongType()),
    StructField(c.RACKS, ArrayType(STRING_LIST)),
)
RECORD_FIELDS = (
    StructField(c.TIMESTAMP, LongType()),  # milliseconds
    StructField(c.KEY, BinaryType()),
    StructField(c.VALUE, BinaryType()),
)
"""Of a log record of a KIP-848 group; its place stands in two columns of group rows. It is of no snapshot."""

RECORD_COLUMNS = (c.LOG_PARTITION, c.OFFSET, *(field.name for field in RECORD_FIELDS))
CHANGE_COLUMNS = (c.TOPIC, c.TOPIC_ID, COUNT_NOW, CHANGED)
"""Of a topic in a KIP-848 group, from CHANGED on; all are columns of topic rows too."""

IDENTITY = (
    StructField(BUCKET, IntegerType(), nullable=False),
    StructField(ROW_KIND, ByteType(), nullable=False),
    StructField(c.SNAPSHOT_ID, StringType()),
    StructField(c.CLUSTER_ID, StringType(), nullable=False),
    StructField(c.GROUP_ID, StringType(), nullable=False),
)

FIELDS = {
    kind: [field.name for field in (*IDENTITY[2:], *fields)]
    for kind, fields in ((GROUP_ROW, GROUP_FIELDS), (MEMBER_ROW, MEMBER_FIELDS), (TOPIC_ROW, TOPIC_FIELDS))
} | {
    kind: [field.name for field in IDENTITY[3:]] + list(names)
    for kind, names in ((RECORD_ROW, RECORD_COLUMNS), (CHANGE_ROW, CHANGE_COLUMNS))
}
"""The columns that rows of a kind fill."""

INPUT = StructType([*IDENTITY, *GROUP_FIELDS, *MEMBER_FIELDS, *TOPIC_FIELDS, *RECORD_FIELDS])

RESULTS: tuple[Table, ...] = (ASSIGNMENTS, REBALANCES, VIOLATIONS, QUARANTINE)
"""Tables the UDF fills; an output row fills exactly one."""


def computed(table: Table) -> StructType:
    """The columns of a result table that the UDF computes: all but the attempt."""
    return StructType([field for field in table.schema.fields if field.name != c.ATTEMPT_ID])


OUTPUT = StructType([StructField(table.name, computed(table)) for table in RESULTS])
