"""A table that grows costs its new rows only, each counts once, and whatever was done to it, none is missed."""

import gzip
import json

import pytest
from pyspark.sql import functions as F

from groupledger.config import SourceSettings
from groupledger.config.loading import CAPTURES
from groupledger.pipeline.reading import last_mark
from groupledger.sinks import attempts
from groupledger.sources.delta_growth import url_of
from groupledger.sources.opening import SourceFault
from groupledger.tables import LOG_RECORDS
from tests.pipeline.ledgers import committed

LINES = gzip.decompress((CAPTURES / "edge" / "offsets.jsonl.gz").read_bytes()).decode().splitlines()
TEXTS = "partition int, offset bigint, timestamp bigint, key string, value string"
OTHERS = 7


def piece(first, end):
    return [json.loads(line) for line in LINES[first:end]]


def bronze(spark, records):
    """Rows as a streaming job of Spark's keeps them: all topics in one table, partitioned by topic."""
    rows = spark.createDataFrame(records, TEXTS).withColumns({name: F.unbase64(name) for name in ("key", "value")})
    rows = rows.withColumn("timestamp", F.timestamp_millis("timestamp")).withColumn(
        "topic", F.lit("__consumer_offsets")
    )
    others = rows.limit(OTHERS).withColumn("topic", F.lit("orders"))
    return rows.unionByName(others).coalesce(1).write.format("delta").partitionBy("topic")


def counted(summary):
    (account,) = summary.accounts
    assert account.balanced
    return account.rows, account.duplicates, account.unused.get("other topic", 0)


@pytest.mark.long
def test_a_delta_table_costs_its_new_rows_only(spark, workspace):
    path = str(workspace.folder / "bronze log")
    source = SourceSettings(kind="offsets-delta", path=path)
    listing = workspace.source("topics.jsonl", [], "topics-jsonl")
    bronze(spark, piece(0, 400)).save(path)
    assert counted(workspace.ingest(source, listing)) == (400 + OTHERS, 0, OTHERS)
    bronze(spark, piece(400, 500)).mode("append").save(path)
    bronze(spark, piece(500, 600)).mode("append").save(path)
    assert counted(workspace.ingest(source, listing)) == (200 + 2 * OTHERS, 0, 2 * OTHERS)
    spark.sql(f"OPTIMIZE delta.`{path}`")
    quiet = workspace.ingest(source, listing)
    assert (quiet.nothing_new, quiet.run.sequence) == (True, 2)
    bronze(spark, piece(590, len(LINES))).mode("overwrite").save(path)
    assert counted(workspace.ingest(source)) == (len(LINES) - 590 + OTHERS, 10, OTHERS)
    assert len(workspace.rows(LOG_RECORDS)) == len(LINES)
    assert workspace.ingest(source).nothing_new
    assert [commit.sequence for commit in attempts.read_commits(spark, workspace.location).commits] == [1, 2, 3]


@pytest.mark.long
def test_two_readers_of_one_table_and_one_that_dies_count_each_row_once(spark, workspace, monkeypatch):
    """Both go on from the same version while the table grows; what a reader that dies had read is read by the next."""
    path = str(workspace.folder / "bronze")
    source = SourceSettings(kind="offsets-delta", path=path)
    bronze(spark, piece(0, 300)).save(path)
    workspace.ingest(source)

    bronze(spark, piece(300, 350)).mode("append").save(path)

    def grown_and_read():
        bronze(spark, piece(350, 400)).mode("append").save(path)
        assert counted(workspace.ingest(source)) == (100 + 2 * OTHERS, 0, 2 * OTHERS)
        bronze(spark, piece(400, 500)).mode("append").save(path)

    with pytest.raises(attempts.WriteConflict):
        workspace.ingest(source, beside=grown_and_read)
    with monkeypatch.context() as patched:
        patched.setattr(attempts, "commit", _died)
        with pytest.raises(InterruptedRunError):
            workspace.ingest(source)
    assert counted(workspace.ingest(source)) == (100 + OTHERS, 0, OTHERS)
    assert workspace.ingest(source).nothing_new
    assert len(workspace.rows(LOG_RECORDS)) == 500
    versions = [
        last_mark(
            attempts.read_commits(spark, workspace.location).commits[:number], "edge", f"{source.kind} {source.place}"
        )["version"]
        for number in (1, 2, 3)
    ]
    assert versions == [0, 2, 3]


class InterruptedRunError(Exception):
    """The reader ends."""


def _died(*_):
    """Everything is written, and nothing committed."""
    raise InterruptedRunError


@pytest.mark.long
def test_a_table_of_the_catalog_is_named(spark, workspace):
    spark.sql("CREATE SCHEMA IF NOT EXISTS growing")
    try:
        bronze(spark, piece(0, 30)).saveAsTable("growing.log")
        spark.sql("CREATE VIEW growing.seen AS SELECT * FROM growing.log WHERE offset >= 0")
        table, view = (SourceSettings(kind="offsets-table", table=f"growing.{name}") for name in ("log", "seen"))
        assert counted(workspace.ingest(table)) == (30 + OTHERS, 0, OTHERS)
        bronze(spark, piece(30, 40)).mode("append").saveAsTable("growing.log")
        assert counted(workspace.ingest(table)) == (10 + OTHERS, 0, OTHERS)
        assert workspace.ingest(table).nothing_new
        assert counted(workspace.ingest(view)) == (40 + 2 * OTHERS, 40, 2 * OTHERS)
    finally:
        spark.sql("DROP SCHEMA growing CASCADE")
    for name in ("growing.log", "no table", "nowhere.at.all"):
        with pytest.raises(SourceFault, match="no such table or view") as caught:
            workspace.ingest(SourceSettings(kind="offsets-table", table=name))
        assert caught.value.code == "SOURCE_MISSING"
        assert caught.value.message.startswith(f"{name}: ")


def commit(sequence, reached, guard="dev/ingest"):
    return committed(sequence, guard, inputs=json.dumps({} if reached is None else {"reached": reached}))


def test_a_table_is_read_on_from_the_last_commit_that_read_it():
    source = SourceSettings(kind="offsets-delta", path="/data/log")
    key = f"{source.kind} {source.place}"
    marks = [{"dev": {"tables": {key: {"version": version}}}} for version in (3, 5)]
    elsewhere = {"eu": {"tables": {key: {"version": 9}}}}
    commits = [commit(1, marks[0]), commit(2, marks[1]), commit(3, {"dev": {"offsets": {}, "topics": None}})]
    assert last_mark(commits, "dev", key) == {"version": 5}
    assert last_mark([*commits, commit(4, None), commit(5, elsewhere, "eu/ingest")], "dev", key) == {"version": 5}
    assert last_mark(commits[:1], "dev", key) == {"version": 3}
    assert last_mark(commits, "dev", key + "2") is None
    assert last_mark([], "dev", key) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("part-0.parquet", "s3a://b/log/part-0.parquet"),
        ("date=2026-11-21 10%3A00/a%20b.parquet", "s3a://b/log/date=2026-11-21 10:00/a b.parquet"),
        ("s3a://other/x%25y", "s3a://other/x%y"),
        ("file:/x/y", "file:/x/y"),
    ],
)
def test_a_file_is_where_the_log_says(path, expected):
    assert url_of("s3a://b/log/", path) == expected
