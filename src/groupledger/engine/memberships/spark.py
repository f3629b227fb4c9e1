"""Members and topics as DataFrames of Spark, classic or Connect: one shuffle, one function call a task, nothing run.

Rows of members go to the partition of their group; topics go along as Arrow bytes, packed where they lie and sent to
every partition, or to that of their group where they are a group's own (decision 0207).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StructField, StructType

from groupledger.engine import bucket_rows as r
from groupledger.engine.arrow_lists import arrow_type
from groupledger.engine.buckets import parallelism
from groupledger.engine.envelope import as_bytes
from groupledger.engine.memberships import declared as d
from groupledger.engine.memberships.bucket import assigned
from groupledger.engine.older_spark import keys_of
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

    from groupledger.engine.memberships.input_columns import AssignPlan

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


def _packed(topics: DataFrame, plan: AssignPlan, keys: Column) -> DataFrame:
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


def _hash(by: Sequence[str], names: Mapping[str, str]) -> Column:
    return F.xxhash64(*(_named(names[name]) for name in by))


def _named(name: str) -> Column:
    return F.col(f"`{name.replace('`', '``')}`")


def _nothing(kind: DataType) -> Column:
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
