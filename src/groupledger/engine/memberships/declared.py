"""Declare the columns of members and topics that `groupledger.assign` takes, and of what it returns."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from groupledger.tables import REBALANCES
from groupledger.tables import columns as c
from groupledger.tables.declaration import STRING_LIST, TOPIC_PARTITIONS

BY = (c.CLUSTER_ID, c.GROUP_ID, c.OBSERVED_AT)
"""What groups are told apart by, unless the caller says otherwise: those of these that the members have."""

OWNED, GENERATION, RACK, PARTITIONS, RACKS = "owned", "generation", "rack", "partitions", "racks"
ASSIGNOR = "assignor"
TOPIC_PARTITION_COUNTS = "topic_partition_counts"
MOVED, EXCESS, ROUNDS, TO_REVOKE = "moved", "excess", "rounds", "to_revoke"
MEMBERS_OF_GROUP = "members_of_group"
"""The column of one result row a group that has its rows of `ASSIGNED_MEMBERS`."""


def _field(name: str, kind: DataType, comment: str, *, required: bool = False) -> StructField:
    return StructField(name, kind, nullable=not required, metadata={"comment": comment})


_BY_FIELDS = (
    _field(c.CLUSTER_ID, StringType(), "cluster of the group; a column of `by`"),
    _field(c.GROUP_ID, StringType(), "the group; a column of `by` in any case", required=True),
    _field(c.OBSERVED_AT, TimestampType(), "when the group was looked at; a column of `by`"),
)
MEMBERS = StructType(
    [
        *_BY_FIELDS,
        _field(c.MEMBER_ID, StringType(), "member; once in a group", required=True),
        _field(c.TOPICS, STRING_LIST, "topics that it subscribes to", required=True),
        _field(
            OWNED,
            TOPIC_PARTITIONS,
            "partitions that it says it owns, in this form or as array<struct<topic, partition>>, "
            "map<string, array<int>> or array<string> of `topic-3`",
        ),
        _field(c.HELD, TOPIC_PARTITIONS, "partitions from which moves are counted, if others than `owned`; its forms"),
        _field(GENERATION, IntegerType(), "generation in which it owns them (KIP-792); null or negative: not stated"),
        _field(RACK, StringType(), "its `client.rack` (KIP-881)"),
        _field(c.GROUP_INSTANCE_ID, StringType(), "its `group.instance.id` (KIP-345)"),
        _field(
            c.MEMBER_ORDER,
            IntegerType(),
            "its place in the JoinGroup response, of all members of a group or of none; without: by `member_id`",
        ),
        _field(c.USER_DATA, BinaryType(), "bytes of its subscription's user data, as its assignor sent them"),
    ]
)
"""The columns of members: a row a member of a group. Those that may be null may be missing."""

TOPICS = StructType(
    [
        *(_field(f.name, f.dataType, "as of members; without it a row is of all") for f in _BY_FIELDS),
        _field(c.TOPIC, StringType(), "topic", required=True),
        _field(PARTITIONS, IntegerType(), "number of its partitions", required=True),
        _field(RACKS, ArrayType(STRING_LIST), "racks of the replicas of each partition, in order (KIP-881)"),
    ]
)
"""The columns of topics: a row a topic. A topic without a row has no metadata, so nobody is assigned any of it."""

_LISTS = {
    c.HELD: "what it had: `held`, else `owned`",
    c.TARGET: "what the assignor aims for",
    c.ASSIGNED: "what it is assigned in this round",
    c.ADDED: "assigned, and not held (EAGER: all that is assigned)",
    c.REVOKED: "held, and not assigned (EAGER: all that was held)",
    c.AWAITING: "in the target, withheld until another member has revoked it",
    c.LOST: "held, and gone without a revocation: the partition no longer exists",
}
_MEMBER_FIELDS = (
    _field(c.MEMBER_ID, StringType(), "member"),
    *(_field(name, TOPIC_PARTITIONS, comment) for name, comment in _LISTS.items()),
)
_KEYS = tuple(
    StructField(f.name, f.dataType, metadata=f.metadata) for f in _BY_FIELDS
)  # a group without one is refused
ASSIGNED_MEMBERS = StructType([*_KEYS, *_MEMBER_FIELDS])
"""The columns of `Assigned.members`: a row a member of a group that was not refused, after the columns of `by`."""

_ENTRY: Any = TOPIC_PARTITIONS.elementType
_TO_REVOKE = StructType([StructField(c.MEMBER_ID, StringType()), *_ENTRY.fields])
_GROUP_FIELDS = (
    _field(c.ASSIGNOR, StringType(), "assignor that ran"),
    _field(c.PROTOCOL, StringType(), "EAGER: members revoke all before they rejoin; COOPERATIVE: they keep it"),
    _field(c.OUTCOME, StringType(), "ASSIGNED, or UNCHANGED where every member is assigned what it held"),
    _field(c.MEMBERS, IntegerType(), "members"),
    _field(c.PARTITIONS, IntegerType(), "partitions of subscribed topics"),
    _field(MOVED, IntegerType(), "partitions that a member held and the target gives to another"),
    _field(c.LEAST_MOVES, LongType(), "fewest moves of any balanced target; null: a topic without metadata"),
    _field(c.LEAST_MOVES_CERTAINTY, StringType(), "exact, lower-bound, or not-applicable and why"),
    _field(EXCESS, LongType(), "moves above the fewest, where that is exact"),
    _field(c.UNASSIGNED_PARTITIONS, REBALANCES.schema[c.UNASSIGNED_PARTITIONS].dataType, "nobody's now, and why"),
    _field(TO_REVOKE, ArrayType(_TO_REVOKE), "what members must revoke before the next round"),
    _field(ROUNDS, IntegerType(), "rounds until nothing changes any more; null: more than 4"),
)
ASSIGNED_GROUPS = StructType([*_KEYS, *_GROUP_FIELDS])
"""The columns of `Assigned.groups`: a row a group that was not refused, after the columns of `by`."""

_REFUSAL_FIELDS = (
    _field(c.CODE, StringType(), "code of the refusal (docs/reference/codes.md)"),
    _field(c.MESSAGE, StringType(), "what was found, and what is expected"),
)
REFUSED = StructType([*_KEYS, *_REFUSAL_FIELDS])
"""The columns of `Assigned.refused`: a row a group that was refused, after the columns of `by`."""

_NESTED = _field(MEMBERS_OF_GROUP, ArrayType(StructType([*_MEMBER_FIELDS])), "rows of members")
FIELDS = {field.name: field for field in (*_MEMBER_FIELDS, *_GROUP_FIELDS, *_REFUSAL_FIELDS, _NESTED)}
GROUP_NAMES, REFUSAL_NAMES, MEMBER_NAMES = (
    tuple(field.name for field in fields) for fields in (_GROUP_FIELDS, _REFUSAL_FIELDS, _MEMBER_FIELDS)
)
RESULT_NAMES = (*GROUP_NAMES, *REFUSAL_NAMES, MEMBERS_OF_GROUP)
"""Of `Assigned.result`: a row a group with its members in it, refused or not, after the columns of `by`."""

COUNTS = _field(
    TOPIC_PARTITION_COUNTS, MapType(StringType(), IntegerType()), "partition counts by topic", required=True
)
UDF_MEMBERS = StructType([*MEMBERS, COUNTS])
"""The columns of members for `assignor_udf`, which sees no table of topics: `topic_partition_counts` in each row."""
