"""What only Spark shows: nothing runs before a result is used, one shuffle, the same rows in any partitions."""

import pytest

import groupledger as gl
from tests.core.assignors.golden import pairs
from tests.engine.memberships.frames import lists_of, tables
from tests.engine.memberships.test_udfs import with_counts

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def scenarios():
    return [each for each, _ in pairs("homog", 4)]


@pytest.fixture(scope="module")
def frames(spark, scenarios):
    members, topics = tables(scenarios, 5)
    return spark.createDataFrame(members), spark.createDataFrame(topics)


@pytest.fixture(scope="module")
def expected(scenarios):
    return gl.assign(*tables(scenarios, 5), assignor="assignor")


def rows_of(frame, schema):
    """Rows in the order of their keys, as Arrow has them."""
    keys = [name for name in ("cluster_id", "group_id", "observed_at", "member_id") if name in frame.columns]
    return frame.orderBy(*keys).toArrow().select(schema.names).cast(schema).to_pylist()


@pytest.mark.parametrize("partitions", ["1", "7"])
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_the_same_rows_with_one_shuffle(spark, frames, expected, partitions, adaptive, monkeypatch):
    settings = {"spark.sql.shuffle.partitions": partitions, "spark.sql.adaptive.enabled": adaptive}
    before = {name: spark.conf.get(name) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        members, topics = frames
        found = gl.assign(members.repartition(3), topics.repartition(2), "assignor")
        for name in ("members", "groups", "refused"):
            wanted = getattr(expected, name)
            assert (
                rows_of(getattr(found, name), wanted.schema)
                == wanted.sort_by(
                    [
                        (key, "ascending")
                        for key in ("group_id", "observed_at", *(("member_id",) if name == "members" else ()))
                    ]
                ).to_pylist()
            )
        plan = gl.assign(members, topics, "assignor").members._jdf.queryExecution().executedPlan().toString()
        assert plan.count("Exchange") == 1
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def test_nothing_runs_before_a_result_is_used_and_persist_is_asked_for(spark, frames):
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("assign", "none")
    try:
        found = gl.assign(frames[0], frames[1], "assignor").persist()
        tables_of = [found.members, found.groups, found.refused]
        assert list(tracker.getJobIdsForGroup("assign")) == []
        assert [frame.storageLevel.useMemory for frame in (found.result, tables_of[0])] == [True, False]
        found.result.unpersist()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_empty_frames_and_no_topics(frames):
    members, topics = frames
    found = gl.assign(members.limit(0), topics, "assignor")
    assert [frame.collect() for frame in (found.members, found.groups, found.refused)] == [[], [], []]
    [reason] = {each.reason for row in gl.assign(members, topics.limit(0)).groups.collect() for each in row[-3]}
    assert reason == "topic-unknown"


def test_wrong_columns_are_refused_without_a_job(frames):
    members, topics = frames
    with pytest.raises(gl.Fault, match="column topics is string; expected array<string>"):
        gl.assign(members.withColumn("topics", members.topics[0]), topics)
    with pytest.raises(gl.Fault, match=r"partitions is decimal\(10,0\)"):
        gl.assign(members, topics.withColumn("partitions", topics.partitions.cast("decimal(10,0)")))


def test_the_functions_for_groups_and_for_sql(spark, scenarios, expected):
    alike = [each for each in scenarios if each["assignor"] == "cooperative-sticky"]
    rows = spark.createDataFrame(with_counts(alike, 5))
    wanted = lists_of(gl.assign(*tables(alike, 5), assignor="cooperative-sticky").members.to_pylist())
    udf, arrow = gl.assignor_udf("cooperative-sticky"), gl.assignor_arrow("cooperative-sticky")
    grouped = rows.groupBy("cluster_id")
    for found in (grouped.applyInPandas(udf, gl.ASSIGNOR_SCHEMA), grouped.applyInArrow(arrow, gl.ASSIGNOR_SCHEMA)):
        assert lists_of(row.asDict(recursive=True) for row in found.where("member_id is not null").collect()) == wanted
    gl.register(spark)
    rows.createOrReplaceTempView("own_members")
    query = "SELECT * FROM groupledger_assign(TABLE(own_members) PARTITION BY (group_id), 'cooperative-sticky')"
    found = spark.sql(query).where("member_id is not null").collect()
    assert lists_of(row.asDict(recursive=True) for row in found) == wanted
