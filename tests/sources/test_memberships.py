"""Memberships become snapshots: ids and order follow from the moment, partitions have any usual shape."""

import random
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import functions as F

from groupledger.sources.files import Files
from groupledger.sources.opening import SourceFault
from groupledger.sources.snapshot_tables import OpenedTable, read_memberships

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
BASE = "cluster_id string, group_id string, observed_at timestamp, member_id string, topics array<string>"
LISTS = "array<struct<topic: string, partitions: array<int>>>"
MOMENTS = [
    {"a": [("orders", 0), ("orders", 1), ("clicks", 0)]},
    {"a": [("orders", 0)], "b": [("orders", 1), ("clicks", 0)]},
    {"b": [("orders", 0), ("orders", 1), ("clicks", 0)]},
]


def by_topic(pairs):
    found = defaultdict(list)
    for topic, number in pairs:
        found[topic].append(number)
    return found


SHAPES = {
    LISTS: lambda pairs: [
        {"topic": topic, "partitions": numbers} for topic, numbers in sorted(by_topic(pairs).items())
    ],
    "array<struct<topic: string, partition: bigint>>": lambda pairs: [
        {"topic": topic, "partition": number} for topic, number in sorted(pairs)
    ],
    "map<string, array<int>>": lambda pairs: dict(by_topic(pairs)),
    "array<string>": lambda pairs: [f"{topic}-{number}" for topic, number in sorted(pairs)],
}


def rows(groups=("pay", "ship"), moments=(0, 1, 2), shape=LISTS):
    return [
        ("prod", group, START + timedelta(minutes=at), member, ["orders", "clicks"], SHAPES[shape](pairs))
        for group in groups
        for at in moments
        for member, pairs in MOMENTS[at].items()
    ]


def frame(spark, shape=LISTS, **which):
    return spark.createDataFrame(rows(shape=shape, **which), f"{BASE}, owned {shape}")


def opened(members, columns=None):
    files = Files("memberships", "memberships", ())
    return read_memberships(OpenedTable(members, files, "memberships"), None, "dev", columns or {}, most_claims=100)


def facts(members, columns=None):
    found = opened(members, columns)
    return [sorted(map(str, each.good.collect())) for each in (found.groups, found.members)]


@pytest.fixture(scope="module")
def expected(spark):
    return facts(frame(spark))


def test_the_moment_is_the_position_and_part_of_the_id(spark):
    group = opened(frame(spark, groups=["pay"], moments=[1])).groups.good.first()
    micros = int((START + timedelta(minutes=1)).timestamp()) * 1_000_000
    assert (group["offset"], group["snapshot_id"]) == (micros, f"table/prod/pay/{micros}")
    assert (group["members"], group["subscribed_topics"]) == (2, ["clicks", "orders"])


@pytest.mark.parametrize("shape", list(SHAPES)[1:])
def test_every_shape_and_order_of_rows_gives_the_same_snapshots(spark, expected, shape):
    given = rows(shape=shape)
    random.Random(1).shuffle(given)  # noqa: S311 - seeded on purpose
    members = spark.createDataFrame(given, f"{BASE}, owned {shape}").repartition(3, "member_id")
    assert facts(members) == expected


def test_columns_may_have_other_names_and_be_fields(spark, expected):
    members = frame(spark).withColumn("of", F.struct(F.col("member_id").alias("consumer"))).drop("member_id")
    members = members.withColumnRenamed("owned", "has")
    assert facts(members, {"member_id": "of.consumer", "owned": "has"}) == expected


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (lambda rows: rows.drop("topics"), "column topics is missing, expected array<string>"),
        (lambda rows: rows.withColumn("topics", F.lit("orders")), "column topics is string, expected array<string>"),
        (lambda rows: rows.withColumn("owned", F.lit(1)), "column owned is int, expected array<struct<topic:string,"),
        (lambda rows: rows.withColumn("observed_at", F.lit("now")), "column observed_at is string, expected timestamp"),
    ],
)
def test_wrong_types_are_refused_before_anything_is_read(spark, changed, words):
    with pytest.raises(SourceFault) as caught:
        opened(changed(frame(spark)))
    assert caught.value.code == "FOREIGN_SCHEMA"
    assert words in str(caught.value)


def test_columns_that_are_not_there_are_named(spark):
    with pytest.raises(SourceFault, match="it has cluster_id") as caught:
        opened(frame(spark), {"member_id": "consumer"})
    assert "column consumer (columns.member_id) is missing" in str(caught.value)
