"""Assign on a ledger that holds the captures: the same rows as without Spark, once, whatever the buckets."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from itertools import count

import pytest
from pyspark.sql import Observation
from pyspark.sql import functions as F

from groupledger import ASSIGNOR_SCHEMA, assignor_udf
from groupledger.answers.at_a_glance import history
from groupledger.answers.reader import LedgerReader
from groupledger.config import parse
from groupledger.core.faults import Fault
from groupledger.engine import bucket_rows as r
from groupledger.pipeline.assign import assign, glob, hashed
from groupledger.pipeline.frames import LedgerFrames
from groupledger.pipeline.invocation import Invocation
from groupledger.sinks import attempts
from groupledger.sinks.attempts import WriteConflict
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import ASSIGNMENTS, MEMBER_SNAPSHOTS, QUARANTINE, REBALANCES, RUNS, VIOLATIONS
from groupledger.tables import columns as c
from tests.engine.bucket_rows import computed
from tests.engine.captured_rows import captured_groups, rows_of
from tests.pages import documented_reader
from tests.pipeline.captured_facts import fill

CAPTURES = ("dev", "edge")
ATTEMPTS = count()


@pytest.fixture(scope="module")
def ledger(spark, new_ledger, tmp_path_factory):
    return fill(spark, new_ledger(tmp_path_factory.mktemp("assign") / "ledger"), CAPTURES)


@pytest.fixture(scope="module")
def run(spark, ledger):
    """Assign with these settings; gives the summary. The code stands still meanwhile, whoever edits it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("groupledger.pipeline.assign.code_digest", lambda *_: "code")
        yield _assigns(spark, ledger)


def _assigns(spark, ledger):

    def assigned(settings="", run_id=None):
        config = parse(f"cluster_id: any\nledger: {{location: {ledger.path}}}\n{settings}", "test")
        attempt = Invocation(
            attempt_id=f"attempt-{next(ATTEMPTS)}",
            now=lambda: datetime(2026, 11, 21, tzinfo=UTC),
            seconds=time.perf_counter,
            run_id=run_id,
        )
        return assign(spark, config, attempt)

    return assigned


@pytest.fixture(scope="module")
def every(run):
    return run("assign: {snapshots: every}")


def results(spark, ledger, table, attempt_id):
    return ledger.rows(spark, table).where(F.col(c.ATTEMPT_ID) == attempt_id)


COMPARED = [name for name in REBALANCES.columns if name not in (c.SNAPSHOT_ID, c.CLUSTER_ID, c.ATTEMPT_ID)]


@pytest.mark.long
def test_spark_brings_the_udf_what_it_needs(spark, ledger, every):
    """Joins, as-of topics and predecessors in Spark: the same results as rows put together in plain Python."""
    stored = results(spark, ledger, REBALANCES, every.attempt_id).collect()
    for capture in CAPTURES:
        rows = [row for group in captured_groups(capture) for row in rows_of(capture, group)]
        expected = {place(row[c.SNAPSHOT_ID]): row for row in computed(rows)["rebalances"]}
        found = {
            place(row[c.SNAPSHOT_ID]): row.asDict(recursive=True) for row in stored if row[c.CLUSTER_ID] == capture
        }
        assert found.keys() == expected.keys()
        for key, row in expected.items():
            assert {name: found[key][name] for name in COMPARED} == {name: row[name] for name in COMPARED}, key


@pytest.mark.long
def test_targets_of_coordinators_are_judged_whatever_was_chosen_of_their_history(spark, ledger, every, run):
    """`latest` reads the whole log of a KIP-848 group too: what its last target was computed from."""
    latest = run("assign: {snapshots: latest, scenario: judged}")
    of_all, of_last = (
        {row[c.SNAPSHOT_ID]: row[c.VERDICT] for row in coordinated(results(spark, ledger, REBALANCES, attempt))}
        for attempt in (every.attempt_id, latest.attempt_id)
    )
    assert of_last == {snapshot: of_all[snapshot] for snapshot in of_last}
    assert Counter(of_all.values()) == {
        "exact": 186,
        "exact-newer-topics": 69,
        "no-members": 36,
    }


def coordinated(rows):
    return rows.where(F.col(c.GROUP_TYPE) == "consumer").collect()


def place(snapshot_id):
    """Log partition and offset: the two ledgers name the cluster differently."""
    return tuple(snapshot_id.split("/")[2:])


@pytest.mark.long
def test_groups_in_are_outcomes_out(spark, ledger, every):
    assert every.groups_in == sum(every.outcomes.values()) == sum(every.verdicts.values()) == 632
    assert every.rows["rebalances"] == every.groups_in
    assert every.verdicts["valid-different"] == 18
    assert "cannot-tell: a regular expression subscribes" not in every.verdicts
    assert every.verdict == "done"
    stored = (
        ledger.rows(spark, RUNS).where(F.col(c.ATTEMPT_ID) == every.attempt_id).where(F.col(c.STATUS) == "committed")
    )
    (row,) = stored.collect()
    assert row[c.COUNTS_IN]["groups"] == every.groups_in
    assert row[c.COUNTS_OUT]["assignments"] == results(spark, ledger, ASSIGNMENTS, every.attempt_id).count()


@pytest.mark.long
def test_a_committed_run_changes_nothing(spark, ledger, run, every):
    before = ledger.rows(spark, REBALANCES).count()
    again = run("assign: {snapshots: every}")
    assert again.already_committed
    assert (again.run_id, again.attempt_id, again.result_digest) == (
        every.run_id,
        every.attempt_id,
        every.result_digest,
    )
    assert ledger.rows(spark, REBALANCES).count() == before


@pytest.mark.long
def test_buckets_say_nothing(run, every):
    other = run("assign: {snapshots: every}\nbuckets: 7", run_id="seven buckets")
    assert not other.already_committed
    assert (other.result_digest, other.outcomes) == (every.result_digest, every.outcomes)


@pytest.mark.long
def test_partitions_and_adaptive_execution_say_nothing(spark, run, every):
    before = spark.conf.get("spark.sql.shuffle.partitions"), spark.conf.get("spark.sql.adaptive.enabled")
    try:
        for name, value in zip(_PLANNING, ("7", "false"), strict=True):
            spark.conf.set(name, value)
        other = run("assign: {snapshots: every}", run_id="seven partitions")
    finally:
        for name, value in zip(_PLANNING, before, strict=True):
            spark.conf.set(name, value)
    assert (other.result_digest, other.outcomes) == (every.result_digest, every.outcomes)


@pytest.mark.long
def test_rows_that_say_something_else_have_another_hash(spark):
    lists = (
        [(None, "x", [1])],
        [("x", None, [1])],
        [("-", "x", [1])],
        [(None, "x", [1]), (None, "y", [])],
        [(None, "x", []), (None, "y", [1])],
        [("y", "x", [1]), (None, None, [])],
        [(None, "x", [1]), ("y", None, [])],
        [],
    )
    plain = dict.fromkeys(r.INPUT.names) | {r.BUCKET: 0, r.ROW_KIND: 1, c.CLUSTER_ID: "dev", c.GROUP_ID: "g"}
    told: list[dict[str, object]] = [{name: value} for name in (c.CLAIMED, c.RECORDED, c.TARGET) for value in lists]
    told += [{name: "m"} for name in (c.MEMBER_ID, c.GROUP_INSTANCE_ID, c.RACK_ID)]
    rows = spark.createDataFrame([tuple((plain | each).values()) for each in told], r.INPUT)
    found = [row[0] for row in hashed(rows).select("row_hash").collect()]
    assert len(set(found)) == len(told)
    elsewhere = hashed(rows.withColumn(r.BUCKET, F.lit(7))).select("row_hash").collect()
    assert [row[0] for row in elsewhere] == found


_PLANNING = ("spark.sql.shuffle.partitions", "spark.sql.adaptive.enabled")


@pytest.mark.long
def test_input_that_was_observed_twice_is_counted_anew(spark, ledger, run, every, monkeypatch):
    """Spark observes rows once more where an executor's shuffle files are lost and its tasks run again."""
    once = vars(Observation)["get"].fget

    def twice(watch):
        seen = once(watch)
        return {name: 2 * number for name, number in seen.items()} if "digest_1" in seen else seen

    monkeypatch.setattr(Observation, "get", property(twice))
    run("assign: {snapshots: every}", run_id="observed twice")
    seen = attempts.read_commits(spark, ledger)
    first, second = (seen.run(run_id) for run_id in (every.run_id, "observed twice"))
    assert (first.counts_in, first.counts_out) == (second.counts_in, second.counts_out)
    assert first.input_digest == second.input_digest


@pytest.mark.long
def test_results_of_older_facts_never_supersede_newer_ones(spark, ledger, run, monkeypatch):
    """While one run computes, another of the same scenario commits: the first has to start again."""
    settings = "assign: {snapshots: latest, scenario: raced}"
    other = "assign: {snapshots: latest, scenario: raced, assignor: range}"
    plan = attempts.plan

    def overtaken(*arguments):
        plan(*arguments)
        monkeypatch.setattr(attempts, "plan", plan)
        run(other, run_id="the other")

    monkeypatch.setattr(attempts, "plan", overtaken)
    with pytest.raises(WriteConflict, match="run 'the other' committed"):
        run(settings, run_id="the first")
    assert run(settings, run_id="the first").run_id == "the first"


@pytest.mark.long
def test_of_two_configurations_under_one_name_the_last_one_counts_for_every_reader(spark, ledger, run):
    """There and back: no reader sees two results of a snapshot, or one of a run that is not the last."""
    settings = "assign: {{snapshots: latest, scenario: two, assignor: {}}}".format
    first, other, again, repeated = (run(settings(name)) for name in ("range", "sticky", "range", "range"))
    assert [each.already_committed for each in (first, other, again, repeated)] == [False, False, False, True]
    assert first.result_digest == again.result_digest != other.result_digest
    asked = LedgerFrames(spark, ledger.path)
    for table in (REBALANCES, ASSIGNMENTS):
        ours = asked.current(table).where("scenario = 'two'").select(c.SNAPSHOT_ID, c.ATTEMPT_ID).collect()
        theirs = documented_reader()(ledger.path, table.name).query("scenario == 'two'")[[c.SNAPSHOT_ID, c.ATTEMPT_ID]]
        assert {row[c.ATTEMPT_ID] for row in ours} == {again.attempt_id}
        assert sorted(map(tuple, ours)) == sorted(theirs.itertuples(index=False, name=None))
    group = asked.group("java-range", "dev")
    assert history(LedgerReader(ledger.path), "java-range", "dev", "two", 500).total == group.snapshots.count(), (
        "a line a snapshot"
    )


@pytest.mark.long
def test_a_run_that_cannot_account_for_its_members_does_not_count(spark, ledger, run, tmp_path):
    """A member row is gone, which no group says: the run ends, and `runs` has no row of it."""
    place = LedgerLocation(path=str(tmp_path / "ledger"))
    shutil.copytree(ledger.path, tmp_path / "ledger")
    members = place.identifier(MEMBER_SNAPSHOTS)
    spark.sql(f"DELETE FROM {members} WHERE group_id = 'java-range' AND member_order = 0")
    with pytest.raises(AssertionError, match="members with an outcome, rows of assignments"):
        _assigns(spark, place)("assign: {snapshots: every}", run_id="short")
    assert "short" not in {row[c.RUN_ID] for row in attempts.committed_runs(spark, place).collect()}


@pytest.mark.long
def test_the_latest_of_each_group(spark, ledger, run):
    latest = run("assign: {snapshots: latest, scenario: last}")
    groups = [(capture, group) for capture in CAPTURES for group in captured_groups(capture)]
    assert latest.groups_in == len(groups)
    stored = current(spark, ledger, REBALANCES).where(F.col(c.SCENARIO) == "last").collect()
    assert sorted((row[c.CLUSTER_ID], row[c.GROUP_ID]) for row in stored) == sorted(groups)


@pytest.mark.long
def test_an_assignor_for_some_groups(spark, ledger, run):
    settings = "assign: {snapshots: every, scenario: what-if, overrides: [{groups: 'java-r*', assignor: sticky}]}"
    run(settings)
    rows = current(spark, ledger, REBALANCES).where((F.col(c.SCENARIO) == "what-if") & (F.col(c.MEMBERS) > 0))
    ran = {(row[0], row[1]) for row in rows.select(c.GROUP_ID, c.ASSIGNOR).distinct().collect()}
    assert {name for group, name in ran if fnmatchcase(group, "java-r*")} == {"sticky"}
    assert ("kpy-range", "range") in ran


CUSTOM = """
assign:
  snapshots: every
  scenario: custom
  assignor: examples.lag_weighted:assign
  overrides: [{groups: java-r*, assignor: "tests.core.custom.hostile:always_exits"}]
limits: {max_quarantined: 100}
"""


@pytest.mark.long
def test_a_custom_assignor_runs_in_the_workers_and_one_that_fails_harms_its_groups_alone(spark, ledger, run):
    summary = run(CUSTOM)
    rows = results(spark, ledger, REBALANCES, summary.attempt_id).where(F.col(c.MEMBERS) > 0).collect()
    ran = {(row[c.GROUP_ID], row[c.ASSIGNOR], row[c.OUTCOME] == "REJECTED", row[c.CODE]) for row in rows}
    classic = {
        (name, failed, code) for group, name, failed, code in ran if name != "recorded" and "java-r" not in group
    }
    assert classic == {("examples.lag_weighted:assign", False, None)}
    failed = [each for each in ran if each[0].startswith("java-r") and each[1] != "recorded"]
    assert {each[1:] for each in failed} == {("tests.core.custom.hostile:always_exits", True, "ASSIGNOR_DIED")}
    assert {row[c.CODE] for row in results(spark, ledger, VIOLATIONS, summary.attempt_id).collect()} == {
        "ASSIGNOR_DIED"
    }
    refused = sum(row[c.OUTCOME] == "REJECTED" for row in rows)
    assert summary.quarantined == summary.outcomes["REJECTED"] == refused > 0


@pytest.mark.long
def test_a_custom_assignor_that_cannot_be_imported_ends_the_run_before_it_starts(run):
    with pytest.raises(Fault, match="cannot import no_such_module:assign"):
        run("assign: {scenario: custom, assignor: 'no_such_module:assign'}")


@pytest.mark.long
def test_the_record_is_a_scenario(spark, ledger, run):
    summary = run("assign: {snapshots: every, scenario: recorded}")
    assert summary.outcomes.keys() <= {"ASSIGNED", "UNCHANGED", "EMPTY"}
    rows = current(spark, ledger, REBALANCES).where(F.col(c.SCENARIO) == "recorded")
    assert {row[0] for row in rows.select(c.ASSIGNOR).distinct().collect()} == {"recorded"}


@pytest.mark.long
def test_groups_over_a_limit_are_refused_and_the_others_are_not(spark, ledger, run, every):
    """A group that was over the limit once keeps what its other snapshots give, and what they held before."""
    summary = run("assign: {snapshots: every, scenario: small}\nlimits: {max_members_per_group: 2}")
    assert summary.verdict == "quarantine-over-limit"
    assert summary.quarantined == summary.outcomes["REJECTED"] > 0
    assert summary.groups_in == sum(summary.outcomes.values())
    rows = results(spark, ledger, QUARANTINE, summary.attempt_id).collect()
    assert {row[c.CODE] for row in rows} == {"MEMBERS_OVER_LIMIT"}
    refused = {row[c.SNAPSHOT_ID] for row in rows}
    names = [name for name in ASSIGNMENTS.columns if name not in (c.ATTEMPT_ID, c.SCENARIO)]
    found, unlimited = (
        sorted(map(str, results(spark, ledger, ASSIGNMENTS, one.attempt_id).select(names).collect()))
        for one in (summary, every)
    )
    assert found == [row for row in unlimited if not any(f"'{each}'" in row for each in refused)]
    assert len(found) > 100


@pytest.mark.long
def test_the_notebook_udf_gives_what_the_job_gives(spark, ledger, every):
    counts = {"orders": 7, "payments": 4, "audit": 3, "logs": 1}
    rows = [
        {
            **row,
            "topics": row["topics"] or topics,
            "topic_partition_counts": counts,
            "snapshot": row["snapshot_id"],
            "owned": row["claimed"],
            "generation": row["subscription_generation"],
        }
        for topics, row in members_of("java-cooperative-sticky")
    ]
    schema = (
        "group_id string, member_order int, member_id string, topics array<string>, "
        "topic_partition_counts map<string,int>, "
        "owned array<struct<topic_id:string,topic:string,partitions:array<int>>>, generation int"
    )
    names = [field.split()[0] for field in schema.split(", ")]
    last = max(int(row["snapshot"].split("/")[3]) for row in rows)
    members = [tuple(row.get(name) for name in names) for row in rows if row["snapshot"].endswith(f"/{last}")]
    frame = spark.createDataFrame(members, schema)
    udf = frame.groupBy(c.GROUP_ID).applyInPandas(assignor_udf("cooperative-sticky"), ASSIGNOR_SCHEMA)
    found = {row[c.MEMBER_ID]: row[c.ASSIGNED] for row in udf.collect()}
    job = results(spark, ledger, ASSIGNMENTS, every.attempt_id).where(F.col(c.SNAPSHOT_ID).endswith(f"/{last}"))
    expected = {
        row[c.MEMBER_ID]: row[c.ASSIGNED] for row in job.where(F.col(c.GROUP_ID) == "java-cooperative-sticky").collect()
    }
    assert found == expected
    assert len(found) >= 1


def members_of(group):
    rows = rows_of("dev", group)
    shared = {row["snapshot_id"]: row["shared_topics"] for row in rows if row["row_kind"] == 0}
    return [(list(shared[row["snapshot_id"]] or ()), row) for row in rows if row["row_kind"] == 1]


GLOBS = ["*", "a*", "*-b", "a?c", "100%", "a_b", "a\\b", "[ab]", "."]
GROUPS = ["", "abc", "a-b", "100%", "a_b", "axb", "a\\b", "[ab]", "100x", "."]


@pytest.mark.long
def test_a_glob_has_two_wildcards_and_nothing_else(spark):
    frame = spark.createDataFrame([(group,) for group in GROUPS], "g string")
    matches = [F.col("g").like(glob(pattern)).alias(str(number)) for number, pattern in enumerate(GLOBS)]
    found = {row[0]: list(row)[1:] for row in frame.select("g", *matches).collect()}
    assert found == {group: [fnmatchcase(group, pattern.replace("[", "[[]")) for pattern in GLOBS] for group in GROUPS}
