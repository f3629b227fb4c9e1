"""The same as functions for `applyInPandas`, `applyInArrow` and SQL, which Spark calls with a group, or with a few.

Members bring their topics along, in each row; the result has a row a member (`ASSIGNOR_SCHEMA`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructField, StructType

from groupledger.core.arrays import ragged
from groupledger.core.custom.custom_group import DEFAULT, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.spark_versions import numbers
from groupledger.engine.arrow_lists import arrow_schema, column, list_starts, whole
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.bucket import assigned
from groupledger.engine.memberships.declared import ColumnKind, as_plain
from groupledger.engine.memberships.input_columns import AssignPlan, Chosen, StepMode, chosen_assignor, planned
from groupledger.engine.memberships.local_tables import as_pandas, member_columns, of_pandas
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession

ASSIGNOR_SCHEMA = StructType(
    [
        *d.ASSIGNED_MEMBERS,
        *(d.REFUSED[name] for name in d.REFUSAL_NAMES),
        StructField(c.UNASSIGNED_PARTITIONS, d.ASSIGNED_GROUPS[c.UNASSIGNED_PARTITIONS].dataType),
    ]
)
"""A row a member, with the columns of `by`. A row without a member says why a group was refused, in `code` and
`message`, or which partitions nobody is assigned in this round, with the reason. Keys that members lack are null."""
SCHEMA = arrow_schema(ASSIGNOR_SCHEMA)
TABLE_FUNCTION = "groupledger_assign"
LEAST_SPARK = "4.1"


def assignor_udf(
    name: str, *, mode: StepMode = "as-kafka", limits: CustomLimits = DEFAULT
) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Return a function for `groupBy(..).applyInPandas`: one assignor on each group; results have `ASSIGNOR_SCHEMA`.

    A row is a member, with the columns of `MEMBERS` and `topic_partition_counts` (a map of topic to partition count).
    Groups are distinguished by those of `cluster_id`, `group_id` and `observed_at` that are there, so a call may have
    several. A call costs about 30 ms whatever its groups: `groupledger.assign` takes thousands of them a call.

        members.groupBy("group_id").applyInPandas(assignor_udf("cooperative-sticky"), ASSIGNOR_SCHEMA)

    A name may be that of a custom assignor (docs/guides/decide/write-an-assignor.md), which workers import too, in a
    process of its own with these `limits`. Raises Fault: UNKNOWN_ASSIGNOR, ASSIGNOR_NOT_FOUND; as it runs
    COLUMN_MISSING, COLUMN_TYPE.
    """
    chosen = chosen_assignor(name, (), mode, limits)

    def assign(members: pd.DataFrame) -> pd.DataFrame:
        return as_pandas(_assigned(of_pandas(members, "members"), chosen))

    return assign


def assignor_arrow(
    name: str, *, mode: StepMode = "as-kafka", limits: CustomLimits = DEFAULT
) -> Callable[[pa.Table], pa.Table]:
    """Return the same for `groupBy(..).applyInArrow`, which costs less: no row becomes a Python object.

    members.groupBy("group_id").applyInArrow(assignor_arrow("cooperative-sticky"), ASSIGNOR_SCHEMA)
    """
    chosen = chosen_assignor(name, (), mode, limits)

    def assign(members: pa.Table) -> pa.Table:
        return _assigned(members, chosen)

    return assign


def register(spark: SparkSession) -> None:
    """Register the SQL table function `groupledger_assign` for a session, from Spark 4.1 on.

    Its rows have `ASSIGNOR_SCHEMA`; members have the columns of `assignor_udf`. Of the columns of PARTITION BY, as many
    groups as have them are computed in one call.

        SELECT * FROM groupledger_assign(TABLE(members) PARTITION BY (cluster_id), 'cooperative-sticky')

    Raises Fault("SPARK_UNSUPPORTED") on Spark 4.0, which has no table functions over Arrow.
    """
    if numbers(spark.version)[:2] < numbers(LEAST_SPARK):
        message = (
            f"this is Spark {spark.version}, which has no table functions over Arrow; expected {LEAST_SPARK} or newer"
        )
        raise Fault("SPARK_UNSUPPORTED", f"{message}; groupledger.assign does the same with DataFrames")
    from pyspark.sql.functions import arrow_udtf

    function: Any = arrow_udtf(_TableFunction, returnType=ASSIGNOR_SCHEMA)
    spark.udtf.register(TABLE_FUNCTION, function)


class _TableFunction:
    """Collects the rows of a partition of the table, and gives the result at its end."""

    def __init__(self) -> None:
        self._rows: list[pa.RecordBatch] = []
        self._name = ""

    def eval(self, rows: pa.RecordBatch, assignor: pa.Array) -> Iterator[pa.Table]:
        """Take some rows of members, and the assignor's name."""
        self._rows.append(rows)
        self._name = assignor[0].as_py()
        return iter(())

    def terminate(self) -> Iterator[pa.Table]:
        """Yield the rows of the result."""
        if self._rows:
            chosen = chosen_assignor(self._name, (), "as-kafka")
            yield _assigned(pa.Table.from_batches(self._rows), chosen)


def _assigned(members: pa.Table, chosen: Chosen) -> pa.Table:
    plan = planned(members.schema, None, chosen)
    members = whole(members)
    found = [_flat(rows, plan) for rows in assigned(members, _topics(members, plan), plan)]
    return pa.concat_tables([SCHEMA.empty_table(), *found])


def _topics(members: pa.Table, plan: AssignPlan) -> pa.Table:
    """Return what any member says there is, as topics of its group."""
    counts = as_plain(column(members, plan.members[d.TOPIC_PARTITION_COUNTS]), ColumnKind.COUNTS)
    lists = counts.cast(pa.list_(counts.type.field(0).type))
    entries, owner = pc.list_flatten(lists), pa.array(ragged.owners(list_starts(lists)))
    by = {name: column(members, plan.members[name]).take(owner) for name in plan.by}
    return pa.table({**by, c.TOPIC: entries.field(0), d.PARTITIONS: entries.field(1)})


def _flat(rows: pa.Table, plan: AssignPlan) -> pa.Table:
    """Return a row a member, and one more of each group that was refused or has unassigned partitions."""
    members = member_columns(rows, plan.by)
    more = pc.or_(rows[c.CODE].is_valid(), pc.greater(pc.list_value_length(rows[c.UNASSIGNED_PARTITIONS]), 0))
    others = rows.filter(more)
    beside = {name: others[name] for name in (*plan.by, *d.REFUSAL_NAMES, c.UNASSIGNED_PARTITIONS)}
    return pa.concat_tables([_padded(members, len(members[c.MEMBER_ID])), _padded(beside, len(others))])


def _padded(values: dict[str, pa.Array], length: int) -> pa.Table:
    return pa.table(
        [
            values[field.name].cast(field.type) if field.name in values else pa.nulls(length, field.type)
            for field in SCHEMA
        ],
        schema=SCHEMA,
    )
