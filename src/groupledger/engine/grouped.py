"""An assignor as a plain pandas UDF, for notebooks: one group a call, the same answer as the job's.

    from groupledger import ASSIGNOR_SCHEMA, assignor_udf

    members.groupBy("group_id").applyInPandas(assignor_udf("cooperative-sticky"), ASSIGNOR_SCHEMA)

A row is a member. Required columns: group_id, member_id, topics (its subscription) and topic_partition_counts (map of
topic to partition count; a topic that is missing in it has no metadata). Optional: member_order (place in the JoinGroup
response; without it members stand in order of their ids), group_instance_id, rack_id, claimed and held
(array<struct<topic, partitions>>; held defaults to claimed), claimed_generation, subscription_generation,
subscription_version, and user_data (binary) for custom assignors. A call a group costs milliseconds; thousands
of groups are `pipeline.assign`'s work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.custom.limits import DEFAULT, CustomLimits
from groupledger.core.custom.naming import SOLVED_ALONE, find, may_be_custom
from groupledger.core.faults import Fault
from groupledger.core.step import Form
from groupledger.engine import rows as r
from groupledger.engine.buckets import compute
from groupledger.engine.calculation import Calculation
from groupledger.tables import ASSIGNMENTS, REBALANCES
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from groupledger.engine.topic_catalogue import TopicCatalogue

TOPIC_PARTITION_COUNTS = "topic_partition_counts"
REQUIRED = (c.GROUP_ID, c.MEMBER_ID, c.TOPICS, TOPIC_PARTITION_COUNTS)
LISTS = (c.HELD, c.TARGET, c.ASSIGNED, c.ADDED, c.REVOKED, c.AWAITING, c.LOST)

ASSIGNOR_SCHEMA = StructType(
    [
        StructField(c.GROUP_ID, StringType()),
        StructField(c.MEMBER_ORDER, IntegerType()),
        StructField(c.MEMBER_ID, StringType()),
        *(StructField(name, ASSIGNMENTS.schema[name].dataType) for name in LISTS),
        StructField(c.CODE, StringType()),
        StructField(c.MESSAGE, StringType()),
        StructField(c.UNASSIGNED_PARTITIONS, REBALANCES.schema[c.UNASSIGNED_PARTITIONS].dataType),
    ]
)
"""A row a member. A row without a member says why a group was refused, in `code` and `message`, or which partitions
nobody is assigned in this round, with the reason."""

_OF_GROUP = (c.GROUP_ID, c.CODE, c.MESSAGE, c.UNASSIGNED_PARTITIONS)
_BEFORE, _NOW = "before", "now"
NO_CLUSTER = ""
_COPIED = (
    *(c.GROUP_INSTANCE_ID, c.RACK_ID, c.USER_DATA),
    *(c.CLAIMED_GENERATION, c.SUBSCRIPTION_GENERATION, c.SUBSCRIPTION_VERSION),
)


def assignor_udf(
    name: str, *, mode: Literal["as-kafka", "kip"] = "as-kafka", limits: CustomLimits = DEFAULT
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """A function for `applyInPandas` that runs one assignor on each group; results have `ASSIGNOR_SCHEMA`.

    `mode` is the form of the cooperative step. A name may be that of a custom assignor
    (docs/guides/decide/write-an-assignor.md), which the workers have imported too, in a process of its own with these
    `limits`. Raises Fault: UNKNOWN_ASSIGNOR for a name that is none, ASSIGNOR_NOT_FOUND for one that cannot be
    imported.
    """
    is_ours = name in ASSIGNORS
    if not is_ours and not may_be_custom(name):
        expected = ", ".join(sorted(ASSIGNORS))
        expected = f"expected one of {expected}, or module:function; {SOLVED_ALONE}"
        raise Fault("UNKNOWN_ASSIGNOR", f"assignor is {name!r}; {expected}")
    calculation = Calculation("notebook", Form(mode), custom=() if is_ours else (find(name, limits),))

    def assign(members: pd.DataFrame) -> pd.DataFrame:
        return _assign(members, name, calculation)

    return assign


def _assign(members: pd.DataFrame, name: str, calculation: Calculation) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    missing = [column for column in REQUIRED if column not in members.columns]
    if missing:
        got = ", ".join(map(str, members.columns))
        raise Fault("COLUMN_MISSING", f"columns {', '.join(missing)} are missing; got {got}")
    records = members.to_dict("records")
    rows = pa.Table.from_pylist(list(_bucket(records, name)), schema=to_arrow_schema(r.INPUT))
    results = compute(rows, replace(calculation, topics=_topics(records)))
    return pd.DataFrame(list(_members(results)), columns=ASSIGNOR_SCHEMA.names, dtype=object)  # keeps None as None


def _bucket(members: list[dict[Any, Any]], name: str) -> Iterable[dict[str, Any]]:
    """The rows of one group's bucket."""
    shared = {r.BUCKET: 0, c.CLUSTER_ID: NO_CLUSTER, c.GROUP_ID: members[0][c.GROUP_ID], c.SNAPSHOT_ID: _NOW}
    yield shared | {
        r.ROW_KIND: r.GROUP_ROW,
        c.GROUP_TYPE: "classic",
        c.PROTOCOL_TYPE: "consumer",
        c.ASSIGNOR: name,
        r.CHOSEN: name,
        c.PREVIOUS_SNAPSHOT_ID: _BEFORE,
    }
    for order, member in enumerate(_in_order(members)):
        row = shared | {r.ROW_KIND: r.MEMBER_ROW, c.MEMBER_ID: member[c.MEMBER_ID], c.MEMBER_ORDER: order}
        claimed = _wire(member.get(c.CLAIMED))
        held = _wire(member.get(c.HELD))
        yield row | {c.SNAPSHOT_ID: _BEFORE, c.RECORDED: claimed if held is None else held}
        yield (
            row
            | {c.TOPICS: list(member[c.TOPICS]), c.CLAIMED: claimed}
            | {column: _plain(member.get(column)) for column in _COPIED}
        )


def _topics(members: list[dict[Any, Any]]) -> TopicCatalogue:
    """What any member says there is; of two counts for a topic that of the last member."""
    from groupledger.engine.topic_catalogue import SINCE, TopicCatalogue

    counts: dict[str, int] = {}
    for member in _in_order(members):
        counts |= {topic: int(count) for topic, count in dict(member[TOPIC_PARTITION_COUNTS]).items()}
    listed = ({c.TOPIC: topic, c.PARTITION_COUNT: count} for topic, count in counts.items())
    return TopicCatalogue.of_rows([{c.CLUSTER_ID: NO_CLUSTER, SINCE: 0, **each} for each in listed])


def _in_order(members: list[dict[Any, Any]]) -> list[dict[Any, Any]]:
    """By member_order where it is given, then by id: the rows themselves come in any order."""

    def place(member: Mapping[Any, Any]) -> tuple[int, str]:
        order = _plain(member.get(c.MEMBER_ORDER))
        return (0 if order is None else int(order), str(member[c.MEMBER_ID]))

    return sorted(members, key=place)


def _plain(value: Any) -> Any:
    """A value as Arrow takes it; pandas says NaN where a number is missing."""
    if value is None or value != value:  # only NaN differs from itself
        return None
    return int(value) if isinstance(value, float) else value


def _wire(assignment: Any) -> list[dict[str, Any]] | None:
    if assignment is None or isinstance(assignment, float):
        return None
    return [
        {c.TOPIC_ID: None, c.TOPIC: entry[c.TOPIC], c.PARTITIONS: [int(each) for each in entry[c.PARTITIONS]]}
        for entry in assignment
    ]


def _members(results: Mapping[str, pa.Table]) -> Iterable[list[Any]]:
    """The values of `ASSIGNOR_SCHEMA`, row by row."""
    for member in results[ASSIGNMENTS.name].to_pylist():
        yield [member.get(name) for name in ASSIGNOR_SCHEMA.names]
    for rebalance in results[REBALANCES.name].to_pylist():
        if rebalance[c.CODE] is not None or rebalance[c.UNASSIGNED_PARTITIONS]:
            yield [rebalance[name] if name in _OF_GROUP else None for name in ASSIGNOR_SCHEMA.names]
