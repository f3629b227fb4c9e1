"""What `gl.assign` found is kept: in a ledger that answers, or in plain tables; once under its run."""

from contextlib import suppress
from datetime import timedelta

import pandas as pd
import pytest
from pyspark.sql import functions as F

import groupledger as gl
from groupledger.notebook import assigned
from groupledger.sinks.append import append_once
from tests.pipeline.test_memberships import topic_frame
from tests.sources.test_memberships import START, frame

pytestmark = pytest.mark.spark
RUN = "2026-11-20"


@pytest.fixture(scope="module")
def found(spark):
    return gl.assign(frame(spark), topic_frame(spark))


def rows_of(spark, folder):
    return {name: spark.read.format("delta").load(f"{folder}/{name}") for name in ("members", "groups", "refused")}


def test_a_ledger_answers_over_what_was_written_once(found, new_ledger, tmp_path):
    place = new_ledger(tmp_path / "ledger").path
    first, again = (found.write(place, run_id=RUN, cluster_id="prod") for _ in range(2))
    assert (first.already_committed, again.already_committed, first.groups_in) == (False, True, 6)
    ledger = gl.open(place)
    runs = ledger.sql("SELECT run_id, attempt_id FROM runs WHERE status = 'committed' ORDER BY 1").to_pandas()
    assert runs["run_id"].tolist() == [RUN, f"{RUN}-facts"]
    assert [
        held.member.member_id for held in ledger.who("orders-1", at=START + timedelta(seconds=1)).value.holdings
    ] == [
        "a",
        "a",
    ]
    assert len(ledger.timeline("pay").value.entries) == 3
    assert ledger.group("pay").explain().value is not None
    moved = ledger.sql(
        "SELECT a.member_id FROM assignments a WHERE scenario = 'cooperative-sticky' AND group_id = 'pay'"
    )
    assert len(moved.to_pandas()) == 4
    kept = [ledger.sql(f"SELECT 1 FROM current_{table}").to_pandas() for table in ("rebalances", "assignments")]
    assert [len(rows) for rows in kept] == [6, 8]


def test_plain_tables_have_each_run_once_and_a_broken_one_is_completed(spark, found, tmp_path, monkeypatch):
    folder = str(tmp_path / "assigned")

    def breaks(rows, place, name):
        if place.endswith("refused"):
            raise InterruptedError
        append_once(rows, place, name)

    with monkeypatch.context() as patch, suppress(InterruptedError):
        patch.setattr("groupledger.sinks.append.append_once", breaks)
        found.write_tables(folder, run_id=RUN)
    for run in (RUN, RUN, "2026-11-21"):
        found.write_tables(folder, run_id=run)
    for name, rows in rows_of(spark, folder).items():
        expected = getattr(found, name)
        kept = rows.select("run_id", *expected.columns).collect()
        of_run = sorted(str(tuple(row)[1:]) for row in kept if row["run_id"] == RUN)
        assert of_run == sorted(str(tuple(row)) for row in expected.collect())
        assert len(kept) == 2 * len(of_run)
        assert name != "groups" or len(of_run) == 6


def test_what_cannot_be_kept_is_refused_with_a_way_out(spark, found, tmp_path):
    members, topics = frame(spark), topic_frame(spark)
    timeless = gl.assign(members.drop("observed_at"), topics)
    daily = gl.assign(members.withColumn("day", F.lit(1)), topics, by=("cluster_id", "group_id", "observed_at", "day"))
    mixed = gl.assign(members, topics, by=("group_id", "observed_at"))
    own = gl.assign(members.withColumn("which", F.lit("range")), topics, "which")
    rows = pd.DataFrame({"group_id": ["g"], "member_id": ["a"], "topics": [["t"]]})
    plain = gl.assign(rows, pd.DataFrame({"topic": ["t"], "partitions": [1]}))
    for unkept, words in (
        (timeless, r"observed_at.*withColumn"),
        (daily, "by is .*day.*write_tables"),
        (mixed, "by is .*cluster_id"),
        (own, "assignor.*which.*write_tables"),
        (plain, "pandas.*spark.createDataFrame"),
    ):
        with pytest.raises(gl.Fault, match=words):
            unkept.write(tmp_path / "ledger", run_id=RUN)
    for write in (plain.write_tables, found.write_tables):
        with pytest.raises(gl.Fault, match=r"pandas|run_id is ''"):
            write(tmp_path / "tables", run_id="")
    with pytest.raises(gl.Fault, match="run_id"):
        gl.assign(members.withColumn("run_id", F.lit("r")), topics, by=("group_id", "run_id")).write_tables(
            tmp_path / "tables", run_id=RUN
        )
    assert list(tmp_path.iterdir()) == []
    assert assigned.Assigned.write.__doc__
