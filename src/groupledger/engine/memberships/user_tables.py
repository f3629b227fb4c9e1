"""Tables of pandas, Polars and Arrow: computed at once in this process, with results of the same kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from groupledger.core.arrays import ragged
from groupledger.core.custom.custom_group import DEFAULT, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.spark_versions import numbers
from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import Column, arrow_schema, arrow_type, column, filled, list_starts, whole
from groupledger.engine.buckets import parallelism
from groupledger.engine.envelope import as_bytes, keys_of
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.bucket import assigned, result_schema
from groupledger.engine.memberships.declared import (
    COLUMN_TYPE,
    AssignPlan,
    Chosen,
    ColumnKind,
    StepMode,
    as_plain,
    chosen_assignor,
    plain,
    planned,
)
from groupledger.tables import columns as c

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType


EXPECTED = "a DataFrame of Spark, pandas or Polars, or a table of Arrow"
ToArrow = Callable[[Any, str], pa.Table]
OfArrow = Callable[[pa.Table], Any]


def source_of(members: Any, topics: Any) -> ArrowTables | SparkFrames:
    """Return the two tables. Raises Fault: USAGE if they are of no kind, or of two; COLUMN_TYPE for mixed values."""
    kinds = [_kind(each, frame) for each, frame in ((members, "members"), (topics, "topics"))]
    if kinds[0] != kinds[1]:
        raise Fault("USAGE", f"members is of {kinds[0]}, topics of {kinds[1]}; expected both of one kind")
    if kinds[0] == "Spark":
        return SparkFrames(members, topics)
    to_arrow, of_arrow = _CONVERSIONS[kinds[0]]
    return ArrowTables(kinds[0], to_arrow(members, "members"), to_arrow(topics, "topics"), of_arrow)


def _kind(table: Any, frame: str) -> str:
    origin, name = type(table).__module__.partition(".")[0], type(table).__name__
    found = {"pyspark": "Spark", "pandas": "pandas", "polars": "Polars", "pyarrow": "Arrow"}.get(origin)
    if found is None or name != ("Table" if found == "Arrow" else "DataFrame"):
        lazy = "; collect() it" if name == "LazyFrame" else ""
        raise Fault("USAGE", f"{frame} is a {type(table).__module__}.{name}; expected {EXPECTED}{lazy}")
    return found


@dataclass(frozen=True)
class ArrowTables:
    """Members and topics as Arrow, whatever they were."""

    kind: str
    members: pa.Table
    topics: pa.Table
    of_arrow: OfArrow

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Return the columns of both."""
        return self.members.schema, self.topics.schema

    def assigned(self, plan: AssignPlan) -> ArrowResult:
        """Compute the plan now."""
        by = {name: plain(self.members.schema.field(plan.members[name]).type) for name in plan.by}
        found = [result_schema(by).empty_table(), *assigned(self.members, self.topics, plan)]
        return ArrowResult(self.kind, pa.concat_tables(found).combine_chunks(), plan.by, self.of_arrow)


@dataclass(frozen=True)
class ArrowResult:
    """The result as Arrow, which is given as the kind that it was asked for."""

    kind: str
    rows: pa.Table
    by: tuple[str, ...]
    of_arrow: OfArrow

    def whole(self) -> Any:
        """Return the rows."""
        return self.of_arrow(self.rows)

    def members(self) -> Any:
        """Return a row a member."""
        return self.of_arrow(pa.table(member_columns(self.rows, self.by)))

    def groups(self, names: Sequence[str], *, refused: bool) -> Any:
        """Return a row a group."""
        mask = self.rows[c.CODE].is_valid()
        rows = self.rows.filter(mask if refused else pc.invert(mask))
        return self.of_arrow(rows.select([*self.by, *names]).combine_chunks())

    def persisted(self) -> ArrowResult:
        """Return the result, which is there."""
        return self


def member_columns(rows: pa.Table, by: Sequence[str]) -> dict[str, Column]:
    """Return the columns of a row a member, from the result's rows."""
    lists = column(rows, d.MEMBERS_OF_GROUP)
    owner = pa.array(ragged.owners(list_starts(lists)))
    keys = {name: column(rows, name).take(owner) for name in by}
    return keys | dict(zip(d.MEMBER_NAMES, pc.list_flatten(lists).flatten(), strict=True))


def of_pandas(frame: Any, name: str) -> pa.Table:
    """Convert column by column, so that one of mixed values is named; a dict is a map, not a struct of its keys."""
    columns = {}
    for label in frame.columns:
        try:
            columns[str(label)] = _column_of(frame[label])
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
            message = f"{name}: column {label} has values that are of no one type: {error}; expected one"
            raise Fault(COLUMN_TYPE, message) from error
    return pa.table(columns)


def _column_of(values: Any) -> pa.Array:
    first = next((each for each in values if each is not None), None) if values.dtype == object else None
    if not (isinstance(first, dict | list | tuple) or hasattr(first, "tolist")):
        return pa.Array.from_pandas(values)
    plain_values = [_without_arrays(each) for each in values]
    if not any(isinstance(each, dict) for each in plain_values):
        return pa.array(plain_values, from_pandas=True)
    entries = [list(each.items()) if isinstance(each, dict) else None for each in plain_values]
    kind = pa.array([value for each in entries for _, value in each or ()]).type
    return pa.array(entries, pa.map_(pa.string(), kind))


def _without_arrays(value: Any) -> Any:
    """Return lists and dictionaries: Spark has arrays of NumPy, those without values of floats, and rows."""
    if hasattr(value, "asDict"):
        value = value.asDict()
    if isinstance(value, dict):
        return {key: _without_arrays(each) for key, each in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_without_arrays(each) for each in value]
    return value


def as_pandas(table: pa.Table) -> pd.DataFrame:
    """Return plain lists and dictionaries where values are nested, and whole numbers with nulls as such."""
    import pandas as pd

    numbers = {pa.int32(): pd.Int32Dtype(), pa.int64(): pd.Int64Dtype()}
    flat = [name for name in table.schema.names if not pa.types.is_nested(table.schema.field(name).type)]
    frame: pd.DataFrame = table.select(flat).to_pandas(types_mapper=numbers.get)
    for at, name in enumerate(table.schema.names):
        if name not in flat:
            frame.insert(at, name, pd.Series(table[name].to_pylist(), dtype=object))
    return frame


def _as_polars(table: pa.Table) -> Any:
    import polars as pl

    return pl.from_arrow(table)


_CONVERSIONS: dict[str, tuple[ToArrow, OfArrow]] = {
    "Arrow": (lambda table, _: table, lambda table: table),
    "pandas": (of_pandas, as_pandas),
    "Polars": (lambda frame, _: frame.to_arrow(), _as_polars),
}


# Members and topics as DataFrames of Spark, classic or Connect: one shuffle, one function call a task, nothing run.
#
# Rows of members go to the partition of their group; topics go along as Arrow bytes, packed where they lie and sent to
# every partition, or to that of their group where they are a group's own (decision 0207).

PACKED = "packed_topics"


@dataclass(frozen=True)
class SparkFrames:
    """Members and topics."""

    members: DataFrame
    topics: DataFrame

    @property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Return the columns of both, as Arrow's."""
        return _arrow_schema(self.members), _arrow_schema(self.topics)

    def assigned(self, plan: AssignPlan) -> SparkResult:
        """Return a frame that computes the plan when it is used."""
        members, topics = self.members, self.topics
        partitions = parallelism(members.sparkSession)
        keys = F.array(*map(F.lit, keys_of(partitions)))
        own = F.get(keys, F.pmod(_hash(plan.by, plan.members), F.lit(partitions)))
        columns = sorted({*plan.members.values()})
        rows = members.select(own.alias(r.BUCKET), *map(_named, columns), _nothing(BinaryType()).alias(PACKED))
        beside = _packed(topics, plan, keys)
        types = {field.name: field.dataType for field in members.schema}
        nothing = (_nothing(types[name]).alias(name) for name in columns)
        both = rows.unionAll(beside.select(r.BUCKET, *nothing, PACKED)).repartition(r.BUCKET)
        return SparkResult(both, plan, tuple(StructField(name, types[plan.members[name]]) for name in plan.by))


def _packed(topics: DataFrame, plan: AssignPlan, keys: SparkColumn) -> DataFrame:
    """Return the topics as Arrow bytes, with the bucket that they go to."""
    columns = sorted({*plan.topics.values()})
    rows = topics.select(*map(_named, columns)).mapInArrow(_pack, StructType([StructField(PACKED, BinaryType())]))
    return rows.select(F.explode(keys).alias(r.BUCKET), PACKED)


def _pack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pack the topics of a partition."""
    some = [each for each in batches if each.num_rows]
    if some:
        yield pa.record_batch(
            [pa.array([as_bytes(pa.Table.from_batches(some).combine_chunks())], pa.binary())], [PACKED]
        )


def _call(plan: AssignPlan, names: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        some = [each for each in batches if each.num_rows]
        if not some:
            return
        packed = pa.chunked_array([each[PACKED] for each in some])
        topics = [pa.ipc.open_stream(each.as_buffer()).read_all() for each in pc.unique(packed.drop_null())]
        mixed = (each if each[PACKED].null_count == len(each) else each.filter(each[PACKED].is_null()) for each in some)
        members = pa.Table.from_batches(mixed).drop_columns([PACKED, r.BUCKET])
        del some, packed
        if len(members):
            for found in assigned(members, _together(topics, plan), plan, names):
                yield from found.to_batches()
                pa.default_memory_pool().release_unused()

    return call


def _together(topics: Sequence[pa.Table], plan: AssignPlan) -> pa.Table:
    if topics:
        return pa.concat_tables(topics)
    return pa.table({name: pa.nulls(0) for name in plan.topics.values()})


def _hash(by: Sequence[str], names: Mapping[str, str]) -> SparkColumn:
    return F.xxhash64(*(_named(names[name]) for name in by))


def _named(name: str) -> SparkColumn:
    return F.col(f"`{name.replace('`', '``')}`")


def _nothing(kind: DataType) -> SparkColumn:
    return F.lit(None).cast(kind)


def _arrow_schema(frame: DataFrame) -> pa.Schema:
    """Return the columns as Arrow's; those of a type that Arrow lacks are null ones of no use here."""
    found = []
    for field in frame.schema:
        try:
            found.append(pa.field(field.name, arrow_type(field.dataType)))
        except Exception:  # noqa: BLE001 - such as intervals and variants: PySpark names each error in its own way
            found.append(pa.field(field.name, pa.month_day_nano_interval()))
    return pa.schema(found)


@dataclass(frozen=True)
class SparkResult:
    """The result as DataFrames that are computed when they are used, each from the rows of members and topics.

    Each computes only what it has; those of a result that is kept are selected from that.
    """

    rows: DataFrame
    plan: AssignPlan
    by: tuple[StructField, ...]
    kept: DataFrame | None = None
    kind: str = "Spark"

    def _computed(self, names: Sequence[str]) -> DataFrame:
        schema = StructType([*self.by, *(d.FIELDS[name] for name in names)])
        return self.rows.mapInArrow(_call(self.plan, names), schema)

    def whole(self) -> DataFrame:
        """Return the rows."""
        return self._computed(d.RESULT_NAMES) if self.kept is None else self.kept

    def members(self) -> DataFrame:
        """Return a row a member."""
        if self.kept is None:
            return self._computed(d.MEMBER_NAMES)
        return self.kept.select(*map(_named, self.plan.by), F.inline(d.MEMBERS_OF_GROUP))

    def groups(self, names: Sequence[str], *, refused: bool) -> DataFrame:
        """Return a row a group."""
        rows = self._computed((*d.GROUP_NAMES, *d.REFUSAL_NAMES)) if self.kept is None else self.kept
        wrong = F.col(c.CODE).isNotNull()
        return rows.where(wrong if refused else ~wrong).select(*map(_named, (*self.plan.by, *names)))

    def persisted(self) -> SparkResult:
        """Return the result, which Spark keeps when it is first computed."""
        return replace(self, kept=self.whole().persist())


# The same as functions for `applyInPandas`, `applyInArrow` and SQL, which Spark calls with a group, or with a few.
#
# Members bring their topics along, in each row; the result has a row a member (`ASSIGNOR_SCHEMA`).

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
    return pa.concat_tables([filled(SCHEMA, members, len(members[c.MEMBER_ID])), filled(SCHEMA, beside, len(others))])
