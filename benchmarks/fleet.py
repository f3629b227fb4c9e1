"""Many groups simulated in one Spark job: a row a script in, a row an event out, one UDF call a bucket of groups.

    settled = simulate_fleet(scripts, buckets=32)          # scripts: group_id, script (JSON)
    settled.where("not stable").select("group_id", "event", "cycle_rounds", "failure")

A script that cannot be played is one row with `code` and `message`; the others go on.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from groupledger.core.custom.custom_group import DEFAULT, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.protocol.settlement import DoubleOwner, MemberCall, MemberRound, Round, Settlement
from groupledger.engine.bucket_rows import BUCKET, by_topic
from groupledger.engine.envelope import repartition_by_id
from groupledger.tables import columns as c
from groupledger.tables.declaration import TOPIC_PARTITIONS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from groupledger.core.custom.custom_group import CustomAssignor
    from groupledger.core.protocol.simulator import Script

SCRIPT = "script"
EVENT = "event"
TOGETHER = 100
"""Groups played side by side in a worker: their settlements are in memory at once."""
YOUNG = 1
"""Generations of Python's garbage collector up to this one: what was made since the last collection or two."""

T = TypeVar("T")


class _Field(NamedTuple, Generic[T]):
    """A column: its name and type, and its value, of the object that a row describes."""

    name: str
    kind: DataType
    of: Callable[[T], Any]
    nullable: bool = False


def _schema(fields: Iterable[_Field[T]]) -> list[StructField]:
    return [StructField(each.name, each.kind, each.nullable) for each in fields]


def _list_of(fields: Iterable[_Field[T]]) -> ArrayType:
    return ArrayType(StructType(_schema(fields)), containsNull=False)


def _values(fields: Iterable[_Field[T]], of: T) -> dict[str, Any]:
    return {each.name: each.of(of) for each in fields}


def _kind(settled: Settlement) -> str:
    from groupledger.core.protocol.script_json import NAMES  # 0.2 s, and the driver needs none of it

    return NAMES[type(settled.event)]


_TEXT, _INT, _LONG, _FLAG = StringType(), IntegerType(), LongType(), BooleanType()
_MEMBER: tuple[_Field[MemberRound], ...] = (
    _Field("member", _TEXT, lambda row: row.member),
    _Field(c.MEMBER_ID, _TEXT, lambda row: row.member_id),
    _Field(c.PROTOCOL, _TEXT, lambda row: row.protocol.value),
    _Field("owned", TOPIC_PARTITIONS, lambda row: by_topic(sorted(row.owned))),
    _Field(c.TARGET, TOPIC_PARTITIONS, lambda row: by_topic(sorted(row.target))),
    _Field(c.ASSIGNED, TOPIC_PARTITIONS, lambda row: by_topic(sorted(row.assigned))),
    _Field("answered", _FLAG, lambda row: row.answered),
    _Field("joins_again", _FLAG, lambda row: row.joins_again),
)
_ROUND: tuple[_Field[Round], ...] = (
    _Field(c.ROUND, _INT, lambda took: took.number),
    _Field(c.GENERATION, _INT, lambda took: took.generation),
    _Field(c.ASSIGNOR, _TEXT, lambda took: took.assignor, nullable=True),
    _Field(c.LEADER, _TEXT, lambda took: took.leader, nullable=True),
    _Field(c.MEMBERS, _list_of(_MEMBER), lambda took: [_values(_MEMBER, each) for each in took.members]),
    _Field("unavailable", TOPIC_PARTITIONS, lambda took: by_topic(sorted(took.unavailable))),
)
_CALL: tuple[_Field[MemberCall], ...] = (
    _Field(c.ROUND, _INT, lambda each: each.round),
    _Field("member", _TEXT, lambda each: each.member),
    _Field(c.CALLBACK, _TEXT, lambda each: each.call.callback.value),
    _Field(c.PARTITIONS, TOPIC_PARTITIONS, lambda each: by_topic(sorted(each.call.partitions))),
    _Field("started_ms", _LONG, lambda each: each.started_ms),
    _Field("ended_ms", _LONG, lambda each: each.ended_ms),
)
_DOUBLE_OWNER: tuple[_Field[DoubleOwner], ...] = (
    _Field(c.TOPIC, _TEXT, lambda each: each.partition[0]),
    _Field(c.PARTITION, _INT, lambda each: each.partition[1]),
    _Field(c.MEMBERS, ArrayType(_TEXT, containsNull=False), lambda each: list(each.members)),
    _Field("since_ms", _LONG, lambda each: each.since_ms),
    _Field("until_ms", _LONG, lambda each: each.until_ms, nullable=True),
)
_SETTLEMENT: tuple[_Field[Settlement], ...] = (
    _Field(c.KIND, _TEXT, _kind),
    _Field("at_ms", _LONG, lambda settled: settled.event.at_ms),
    _Field("stable", _FLAG, lambda settled: settled.stable),
    _Field("cycle_rounds", _INT, lambda settled: None if settled.cycle is None else settled.cycle.length),
    _Field("failure", _TEXT, lambda settled: settled.failure),
    _Field("refused", _TEXT, lambda settled: settled.refused),
    _Field("unowned", TOPIC_PARTITIONS, lambda settled: by_topic(sorted(settled.unowned))),
    _Field("unavailable_ms", _LONG, lambda settled: sum(settled.unavailable_ms.values())),
    _Field(
        "double_owners",
        _list_of(_DOUBLE_OWNER),
        lambda settled: [_values(_DOUBLE_OWNER, each) for each in settled.double_owners],
    ),
    _Field("rounds", _list_of(_ROUND), lambda settled: [_values(_ROUND, each) for each in settled.rounds]),
    _Field("calls", _list_of(_CALL), lambda settled: [_values(_CALL, each) for each in settled.calls]),
)
SETTLEMENTS = StructType(
    [
        StructField(c.GROUP_ID, _TEXT, nullable=False),
        StructField(EVENT, _INT),
        *_schema(each._replace(nullable=True) for each in _SETTLEMENT),
        StructField(c.CODE, _TEXT),
        StructField(c.MESSAGE, _TEXT),
    ]
)
"""A row an event, counted from 0; `unavailable_ms` is the sum over partitions.

Of a script that cannot be played one row: group, code and message."""


def simulate_fleet(
    scripts: DataFrame, buckets: int, custom: tuple[str, ...] = (), limits: CustomLimits = DEFAULT
) -> DataFrame:
    """Return the settlements of scripts (columns group_id and script). `custom`: assignors they may name."""
    from groupledger.core.custom.assignor_names import find_all

    found = find_all(custom, limits)
    bucket = F.pmod(F.xxhash64(c.GROUP_ID), F.lit(buckets)).cast("int")
    rows = scripts.select(bucket.alias(BUCKET), c.GROUP_ID, SCRIPT)
    return repartition_by_id(rows, buckets, BUCKET).groupBy(BUCKET).applyInArrow(_call(found), SETTLEMENTS)


def _call(custom: Mapping[str, CustomAssignor]) -> Callable[[pa.Table], pa.Table]:
    def call(table: pa.Table) -> pa.Table:
        return settle(table, custom)

    return call


def settle(table: pa.Table, custom: Mapping[str, CustomAssignor] | None = None) -> pa.Table:
    """One bucket: scripts in, settlements out, by group id. Pure."""
    import pyarrow as pa

    schema = to_arrow_schema(SETTLEMENTS)
    pairs = zip(table.column(c.GROUP_ID).to_pylist(), table.column(SCRIPT).to_pylist(), strict=True)
    with _collecting_rarely():
        parts = [pa.Table.from_pylist(rows, schema=schema) for rows in _played(iter(sorted(pairs)), custom or {})]
    return pa.concat_tables(parts) if parts else schema.empty_table()


@contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Leave Python's cyclic garbage collector to `_played`: a group's objects all live until its rows are made.

    It looks at them again and again for garbage, which is 10 to 40 % of the processor time of a group with a clock.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def _played(pairs: Iterator[tuple[str, str]], custom: Mapping[str, CustomAssignor]) -> Iterator[list[dict[str, Any]]]:
    """Rows of some groups at a time."""
    from groupledger.core.protocol.script_json import read_line
    from groupledger.core.protocol.simulator import simulate_all

    while some := list(islice(pairs, TOGETHER)):
        read: list[Script | Fault] = [read_line(line)[1] for _, line in some]
        results = iter(simulate_all([each for each in read if not isinstance(each, Fault)], custom))
        played = [each if isinstance(each, Fault) else next(results) for each in read]
        yield [row for (group, _), result in zip(some, played, strict=True) for row in _rows(group, result)]
        del read, results, played
        gc.collect(YOUNG)


def _rows(group: str, result: list[Settlement] | Fault) -> Iterator[dict[str, Any]]:
    if isinstance(result, Fault):
        yield {c.GROUP_ID: group, c.CODE: result.code, c.MESSAGE: result.message}
        return
    for number, settled in enumerate(result):
        yield {c.GROUP_ID: group, EVENT: number, **_values(_SETTLEMENT, settled)}
