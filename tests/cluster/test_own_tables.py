"""`groupledger.assign` through Spark Connect: the client starts no JVM of its own, and has the rows of Arrow tables."""

import os
import subprocess
import sys

import pytest

from tests.demo.conftest import ROOT

pytestmark = pytest.mark.cluster

PROGRAM = """
import groupledger as gl
from pyspark.sql import SparkSession
from tests.core.assignors.golden import pairs
from tests.engine.memberships.frames import lists_of, tables

spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "4").getOrCreate()
members, topics = tables([scenario for scenario, _ in pairs("homog", 8)], 5)
found = gl.assign(spark.createDataFrame(members), spark.createDataFrame(topics), "assignor")
expected = gl.assign(members, topics, "assignor")
assert type(found.members).__module__.startswith("pyspark.sql.connect")
rows = (row.asDict(recursive=True) for row in found.members.collect())
assert lists_of(rows) == lists_of(expected.members.to_pylist())
assert found.refused.collect() == []
"""


def test_the_same_lists_through_spark_connect():
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
