"""Ownership changes and surrogates are derived from the groups of every task, one group after another."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructField, StructType

from groupledger.core.history import HoldingMember
from groupledger.engine.arrow_lists import arrow_schema
from groupledger.engine.renaming import SURROGATE, changes_of, ownership_changes, with_surrogates
from groupledger.tables import GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS

MEMBER = StructType([MEMBER_SNAPSHOTS.schema[name] for name in HoldingMember._fields])
NAMES = ("cluster_id", "group_id", "snapshot_id", "incarnation", "offset", "observed_at", "generation", "group_epoch")
SNAPSHOT = StructType([GROUP_SNAPSHOTS.schema[name] for name in NAMES])
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
GROUPS, MOMENTS = 60, 4


def snapshot(group, number):
    return {
        "cluster_id": "dev",
        "group_id": f"g{group}",
        "snapshot_id": f"g{group}/{number}",
        "incarnation": 0,
        "offset": number,
        "observed_at": START + timedelta(minutes=number),
        "generation": number,
        "group_epoch": None,
    }


def holders(number):
    """Partition `number` goes from member to member, 9 stays with b."""
    held = [{"topic_id": None, "topic": "t", "partitions": [number % 3]}]
    stays = [{"topic_id": None, "topic": "t", "partitions": [9]}]
    none = {"target": None, "pending_revocation": None}
    return [{"member_id": "a", "recorded": held, **none}, {"member_id": "b", "recorded": stays, **none}]


@pytest.fixture(scope="module")
def given(spark):
    rows = [(group, number) for group in range(GROUPS) for number in range(1, MOMENTS + 1)]
    members = [{"snapshot_id": snapshot(*row)["snapshot_id"], **each} for row in rows for each in holders(row[1])]
    return (
        spark.createDataFrame([snapshot(*row) for row in rows], SNAPSHOT),
        spark.createDataFrame(members, StructType([MEMBER_SNAPSHOTS.schema["snapshot_id"], *MEMBER])),
    )


def in_tasks(rows):
    """Task -> groups, of those that have rows."""
    found = rows.groupBy(F.spark_partition_id().alias("task")).agg(F.collect_set("group_id").alias("groups")).collect()
    return {row["task"]: set(row["groups"]) for row in found}


@pytest.mark.parametrize("tasks", [2, 4])
def test_every_task_has_groups_of_its_own(given, tasks):
    found = in_tasks(ownership_changes(given[0], given[1], tasks))
    assert len(found) == tasks
    assert sum(map(len, found.values())) == GROUPS == len(set.union(*found.values()))


@pytest.mark.parametrize("tasks", [2, 4])
def test_names_too(spark, tasks):
    rows = [("dev", f"g{group}", "host", name) for group in range(GROUPS) for name in ("x", "y")]
    names = spark.createDataFrame(rows, "cluster_id string, group_id string, kind string, name string")
    found = with_surrogates(names, 0, tasks)
    assert len(in_tasks(found)) == tasks
    assert {row["n"] for row in found.groupBy("group_id").agg(F.count_distinct(SURROGATE).alias("n")).collect()} == {2}


def test_changes_do_not_depend_on_how_many_rows_come_at_once():
    rows = [{**snapshot(group, number), "holders": holders(number)} for group in range(3) for number in range(1, 5)]
    rows[5]["holders"] = None
    kinds = [*SNAPSHOT, StructField("holders", ArrayType(MEMBER))]
    micros = pa.int64()  # as `ownership_changes` hands times over
    whole = pa.Table.from_pylist(rows, arrow_schema(kinds))
    at = whole.schema.get_field_index("observed_at")
    whole = whole.set_column(at, "observed_at", whole.column(at).cast(micros))
    expected = pa.Table.from_batches(changes_of(iter(whole.to_batches())))
    assert expected.column("snapshot_id").to_pylist().count("g0/1") == 2
    for size in (1, 2, 5):
        found = pa.Table.from_batches(changes_of(iter(whole.to_batches(max_chunksize=size))))
        assert found.equals(expected)


def test_no_rows_give_none():
    assert list(changes_of(iter([]))) == []
