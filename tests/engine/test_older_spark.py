"""Partitions by id where Spark can only hash: each id where repartitionById puts it."""

import pytest
from pyspark.sql import functions as F

from groupledger.engine.envelope import by_hash, keys_of, repartition_by_id, spark_hash


@pytest.mark.parametrize(("number", "hashed"), [(0, 933211791), (1, -559580957), (2, 1765031574)])
def test_the_hash_is_sparks(number, hashed):
    """As `SELECT hash(0)` and so on answer."""
    assert spark_hash(number) == hashed


@pytest.mark.parametrize("partitions", [1, 2, 7, 64, 1000])
def test_each_partition_has_the_least_number_that_leads_there(partitions):
    keys = keys_of(partitions)
    assert [spark_hash(key) % partitions for key in keys] == list(range(partitions))
    taken = set(keys)
    for key in range(max(keys)):
        assert key in taken or keys[spark_hash(key) % partitions] < key


@pytest.mark.spark
def test_both_ways_put_every_row_into_the_same_task(spark):
    rows = spark.range(300).select(F.col("id").cast("int").alias("bucket"))
    for partitions in (1, 2, 7, 64):
        placed = [
            {tuple(row) for row in way(rows, partitions, "bucket").select("bucket", F.spark_partition_id()).collect()}
            for way in (by_hash, repartition_by_id)
        ]
        assert placed[0] == placed[1] == {(number, number % partitions) for number in range(300)}
