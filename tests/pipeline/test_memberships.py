"""A row a member of a group at a moment is enough: no snapshot id, no offset, any usual shape of partitions."""

from contextlib import chdir
from datetime import timedelta

import pytest

from groupledger.answers.owners import ownership
from groupledger.answers.reader import LedgerReader
from groupledger.config import LedgerSettings, SourceSettings
from groupledger.pipeline.both_jobs import Frames, ingest_frames
from groupledger.sinks.current import current
from groupledger.tables import (
    GROUP_SNAPSHOTS,
    MEMBER_SNAPSHOTS,
    OWNERSHIP_CHANGES,
    QUARANTINE,
    TOPIC_SNAPSHOTS,
)
from tests.demo.conftest import ROOT
from tests.pages import blocks
from tests.pipeline.ledgers import invocation
from tests.sources.test_memberships import BASE, START, frame, rows

PAGE = ROOT / "docs" / "operate" / "read-tables.md"
RUN = "2026-11-21"
"""The run of the page's code."""


def topic_frame(spark, orders=2):
    return spark.createDataFrame([("orders", orders), ("clicks", 1)], "topic string, partitions int")


def frames(spark, members=None, **more):
    return Frames(
        members=frame(spark) if members is None else members, topics=topic_frame(spark), cluster_id="prod", **more
    )


def place(workspace):
    return LedgerSettings(location=workspace.location.path)


def facts(workspace):
    return {
        table.name: workspace.rows(table)
        for table in (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, TOPIC_SNAPSHOTS)
    }


@pytest.fixture(scope="module")
def ingested(spark, new_workspace):
    """What the code of the page makes."""
    space = new_workspace("memberships")
    (code,) = blocks(PAGE.read_text(encoding="utf-8"), "python")
    with chdir(space.folder):
        exec(code, {"spark": spark, "members": frame(spark), "topics": topic_frame(spark)})  # noqa: S102 - of the page
    return space


def test_the_code_of_the_page_runs_and_owners_are_known_from_memberships(ingested):
    ledger = LedgerReader(ingested.location.path)
    found = [ownership(ledger, "orders", 1, START + timedelta(minutes=at, seconds=1)) for at in range(3)]
    assert [sorted(each.member.member_id for each in answer.holdings) for answer in found] == [
        ["a"] * 2,
        ["b"] * 2,
        ["b"] * 2,
    ]
    assert len(facts(ingested)[GROUP_SNAPSHOTS.name]) == 6


@pytest.mark.long
def test_columns_have_other_names_and_a_growing_table_is_read_on(spark, ingested, workspace):
    table, topics = str(workspace.folder / "bronze"), str(workspace.folder / "counts")

    def append(**which):
        renamed = frame(spark, **which).withColumnsRenamed({"member_id": "consumer", "owned": "has"})
        renamed.write.format("delta").mode("append").save(table)

    append(moments=[0, 1])
    topic_frame(spark).write.format("delta").save(topics)
    source = SourceSettings(
        kind="snapshots", path=table, topics=topics, format="delta", columns={"member_id": "consumer", "owned": "has"}
    )
    first = workspace.ingest(source, cluster_id="prod")
    assert first.rows[GROUP_SNAPSHOTS.name] == 4
    assert workspace.ingest(source, cluster_id="prod").nothing_new
    append(moments=[2])
    second = workspace.ingest(source, cluster_id="prod")
    (account,) = second.accounts
    assert (account.rows, account.duplicates) == (2, 0)
    assert facts(workspace) == facts(ingested)
    topic_frame(spark, orders=4).write.format("delta").mode("overwrite").save(topics)
    third = workspace.ingest(source, cluster_id="prod")
    assert third.rows[TOPIC_SNAPSHOTS.name] == 1


def test_a_second_ingest_of_a_run_changes_nothing(spark, ingested):
    before = facts(ingested)
    again = ingest_frames(spark, frames(spark), place(ingested), invocation(RUN))
    assert again.already_committed
    assert facts(ingested) == before


def test_known_rows_add_none_and_wrong_rows_refuse_their_snapshot_alone(spark, ingested, tmp_path):
    workspace, known = ingested.copied(tmp_path), rows(shape="array<string>")
    bad = [
        ("prod", "twice", START, "a", ["orders"], []),
        ("prod", "twice", START, "a", ["orders"], []),
        ("prod", "minus", START, "a", ["orders"], ["orders-1"]),
        ("prod", "minus", START, "b", ["orders"], ["orders"]),
        ("prod", None, START, "a", ["orders"], []),
        ("prod", "silent", START, "a", None, []),
        ("prod", "null", START, "a", ["orders", None], []),
        ("prod", "fine", START, "a", ["orders"], ["orders-1"]),
    ]
    members = spark.createDataFrame([*known, *bad], f"{BASE}, owned array<string>")
    done = ingest_frames(spark, frames(spark, members), place(workspace), invocation())
    found = current(spark, workspace.location, QUARANTINE).groupBy("group_id", "code").count().collect()
    assert {(row["group_id"], row["code"]): row["count"] for row in found} == {
        ("twice", "MEMBER_TWICE"): 2,
        ("minus", "BAD_VALUE"): 2,
        (None, "MISSING_VALUE"): 1,
        ("silent", "MISSING_VALUE"): 1,
        ("null", "BAD_VALUE"): 1,
    }
    [account] = done.accounts
    assert account.balanced
    assert (account.rows, account.duplicates) == (len(known) + len(bad) + 2, len(known) + 2)
    before = facts(ingested)
    new = {name: set(of_table).difference(before[name]) for name, of_table in facts(workspace).items()}
    assert {name: len(of_table) for name, of_table in new.items() if of_table} == dict.fromkeys(
        (GROUP_SNAPSHOTS.name, MEMBER_SNAPSHOTS.name, OWNERSHIP_CHANGES.name), 1
    )
    assert all("group_id='fine'" in row for of_table in new.values() for row in of_table)
