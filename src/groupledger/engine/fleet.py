"""Many groups simulated in one Spark job: a row a script in, a row an event out, one UDF call a bucket of groups.

    settled = simulate_fleet(scripts, buckets=32)          # scripts: group_id, script (JSON, docs/simulation.md)
    settled.where("not stable").select("group_id", "event", "cycle_rounds", "failure")

A script that cannot be played is one row with `code` and `message`; the others go on.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from groupledger.core.custom.limits import DEFAULT, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.protocol.ownership import DoubleOwner
from groupledger.core.protocol.settlement import MemberCall, MemberRound, Round, Settlement
from groupledger.engine.older_spark import repartition_by_id
from groupledger.engine.rows import BUCKET, by_topic
from groupledger.tables import columns as c
from groupledger.tables.declaration import TOPIC_PARTITIONS

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from groupledger.core.custom.naming import CustomAssignor
    from groupledger.core.protocol.simulator import Script

SCRIPT = "script"
EVENT = "event"
TOGETHER = 100
"""Groups played side by side in a worker: their settlements are in memory at once."""
YOUNG = 1
"""Generations of Python's garbage collector up to this one: what was made since the last collection or two."""

_MEMBER = StructType(
    [
        StructField("member", StringType(), nullable=False),
        StructField(c.MEMBER_ID, StringType(), nullable=False),
        StructField(c.PROTOCOL, StringType(), nullable=False),
        StructField("owned", TOPIC_PARTITIONS, nullable=False),
        StructField(c.TARGET, TOPIC_PARTITIONS, nullable=False),
        StructField(c.ASSIGNED, TOPIC_PARTITIONS, nullable=False),
        StructField("answered", BooleanType(), nullable=False),
        StructField("joins_again", BooleanType(), nullable=False),
    ]
)
_ROUND = StructType(
    [
        StructField(c.ROUND, IntegerType(), nullable=False),
        StructField(c.GENERATION, IntegerType(), nullable=False),
        StructField(c.ASSIGNOR, StringType()),
        StructField(c.LEADER, StringType()),
        StructField(c.MEMBERS, ArrayType(_MEMBER, containsNull=False), nullable=False),
        StructField("unavailable", TOPIC_PARTITIONS, nullable=False),
    ]
)
_CALL = StructType(
    [
        StructField(c.ROUND, IntegerType(), nullable=False),
        StructField("member", StringType(), nullable=False),
        StructField("callback", StringType(), nullable=False),
        StructField(c.PARTITIONS, TOPIC_PARTITIONS, nullable=False),
        StructField("started_ms", LongType(), nullable=False),
        StructField("ended_ms", LongType(), nullable=False),
    ]
)
_DOUBLE_OWNER = StructType(
    [
        StructField(c.TOPIC, StringType(), nullable=False),
        StructField(c.PARTITION, IntegerType(), nullable=False),
        StructField(c.MEMBERS, ArrayType(StringType(), containsNull=False), nullable=False),
        StructField("since_ms", LongType(), nullable=False),
        StructField("until_ms", LongType()),
    ]
)
SETTLEMENTS = StructType(
    [
        StructField(c.GROUP_ID, StringType(), nullable=False),
        StructField(EVENT, IntegerType()),
        StructField(c.KIND, StringType()),
        StructField("at_ms", LongType()),
        StructField("stable", BooleanType()),
        StructField("cycle_rounds", IntegerType()),
        StructField("failure", StringType()),
        StructField("refused", StringType()),
        StructField("unowned", TOPIC_PARTITIONS),
        StructField("unavailable_ms", LongType()),
        StructField("double_owners", ArrayType(_DOUBLE_OWNER, containsNull=False)),
        StructField("rounds", ArrayType(_ROUND, containsNull=False)),
        StructField("calls", ArrayType(_CALL, containsNull=False)),
        StructField(c.CODE, StringType()),
        StructField(c.MESSAGE, StringType()),
    ]
)
"""A row an event, counted from 0; `unavailable_ms` is the sum over partitions.

Of a script that cannot be played one row: group, code and message."""


def simulate_fleet(
    scripts: DataFrame, buckets: int, custom: tuple[str, ...] = (), limits: CustomLimits = DEFAULT
) -> DataFrame:
    """The settlements of all scripts (columns group_id and script). `custom`: assignors that scripts may name."""
    from groupledger.core.custom.naming import find_all

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
    from groupledger.core.protocol.simulator import simulate_all
    from groupledger.core.protocol.story import read_line

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
        yield {c.GROUP_ID: group, EVENT: number, **_settlement(settled)}


def _settlement(settled: Settlement) -> dict[str, Any]:
    from groupledger.core.protocol.story import NAMES

    return {
        c.KIND: NAMES[type(settled.event)],
        "at_ms": settled.event.at_ms,
        "stable": settled.stable,
        "cycle_rounds": None if settled.cycle is None else settled.cycle.length,
        "failure": settled.failure,
        "refused": settled.refused,
        "unowned": by_topic(sorted(settled.unowned)),
        "unavailable_ms": sum(settled.unavailable_ms.values()),
        "double_owners": [_double_owner(each) for each in settled.double_owners],
        "rounds": [_round(each) for each in settled.rounds],
        "calls": [_called(each) for each in settled.calls],
    }


def _double_owner(each: DoubleOwner) -> dict[str, Any]:
    topic, number = each.partition
    times = {"since_ms": each.since_ms, "until_ms": each.until_ms}
    return {c.TOPIC: topic, c.PARTITION: number, c.MEMBERS: list(each.members), **times}


def _round(took: Round) -> dict[str, Any]:
    return {
        c.ROUND: took.number,
        c.GENERATION: took.generation,
        c.ASSIGNOR: took.assignor,
        c.LEADER: took.leader,
        c.MEMBERS: [_member(each) for each in took.members],
        "unavailable": by_topic(sorted(took.unavailable)),
    }


def _member(row: MemberRound) -> dict[str, Any]:
    return {
        "member": row.member,
        c.MEMBER_ID: row.member_id,
        c.PROTOCOL: row.protocol.value,
        "owned": by_topic(sorted(row.owned)),
        c.TARGET: by_topic(sorted(row.target)),
        c.ASSIGNED: by_topic(sorted(row.assigned)),
        "answered": row.answered,
        "joins_again": row.joins_again,
    }


def _called(each: MemberCall) -> dict[str, Any]:
    return {
        c.ROUND: each.round,
        "member": each.member,
        "callback": each.call.callback.value,
        c.PARTITIONS: by_topic(sorted(each.call.partitions)),
        "started_ms": each.started_ms,
        "ended_ms": each.ended_ms,
    }
