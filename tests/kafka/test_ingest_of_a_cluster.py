"""A running cluster, read into a ledger while its group is there."""

from __future__ import annotations

import time

import pytest

from groupledger.config import SourceSettings
from groupledger.core.faults import Fault
from groupledger.core.log.lines import OFFSET_COMMIT_LEFT_OUT, listing_line
from groupledger.sinks.attempts import WriteConflict
from groupledger.sources.kafka_log import Address, Cluster
from groupledger.tables import GROUP_HEADS, LOG_RECORDS, RUNS, TABLES, TOPIC_SNAPSHOTS
from tests.kafka.groups import Member, dump, ends, groups, lines
from tests.live.broker import CLUSTER_ID

SAME = [table for table in TABLES if table not in (RUNS, TOPIC_SNAPSHOTS, GROUP_HEADS)]
"""Tables whose rows tell nothing of in how many ingests, and when, they were read: each ingest has heads of its own."""


def overtaken(workspace, source, other):
    """An ingest beside which another reads from the same offset and commits first: it does not count."""
    before = workspace.rows(RUNS)
    with pytest.raises(WriteConflict, match="run it again"):
        workspace.ingest(source, cluster_id=None, beside=lambda: workspace.ingest(other, cluster_id=None))
    assert len(workspace.rows(RUNS)) == len(before) + 1


def cluster(address, **settings):
    return SourceSettings(kind="kafka", bootstrap=address, **settings)


def test_the_log_of_a_live_group(kafka, member, new_workspace):
    """Once, then nothing new, then piece by piece beside another ingest: what a dump of the log gives in one go."""
    workspace = new_workspace("cluster")
    before = ends(kafka), groups(kafka)
    first = workspace.ingest(cluster(kafka), cluster_id=None)
    (account,) = first.accounts
    assert account.balanced, account
    records = dump(kafka)
    commits = [each for each in records if each["key"].startswith("AAEA")]
    assert account.cluster_id == CLUSTER_ID
    assert (account.rows, account.records) == (len(records), len(records))
    assert account.unused[OFFSET_COMMIT_LEFT_OUT] == len(commits) == 6
    assert account.listings["listed"] == 3
    assert ends(kafka)[0] > records[-1]["offset"] + 1, "the log ends with a marker"
    assert first.run.inputs["reached"][CLUSTER_ID]["offsets"] == {"0": ends(kafka)[0]}
    again = workspace.ingest(cluster(kafka), cluster_id=None)
    assert (again.nothing_new, again.run.run_id) == (True, first.run.run_id)
    assert (ends(kafka), groups(kafka)) == before
    with Member(kafka, "late", "orders") as late:
        late.commit()  # there is more than two offsets can hold, however few records the join took
        overtaken(workspace, cluster(kafka), cluster(kafka, max_records=2))
    assert workspace.ingest(cluster(kafka), cluster_id=None).left == {CLUSTER_ID: 0}
    records = dump(kafka)
    commits = [each for each in records if each["key"].startswith("AAEA")]
    other = new_workspace("dumped")
    left = [each for each in records if each not in commits]
    listing = [listing_line(0, *topic) for topic in Cluster(Address(kafka, {}, 30), time.monotonic).topics()]
    topics = other.source("topics.jsonl", [line.decode() for line in listing], "topics-jsonl")
    other.ingest(other.source("log.jsonl", lines(left)), topics, cluster_id=CLUSTER_ID)
    for table in SAME:
        assert workspace.rows(table, "leader_epoch") == other.rows(table, "leader_epoch"), table.name
    assert all("leader_epoch=0" in row for row in workspace.rows(LOG_RECORDS))
    with pytest.raises(Fault) as caught:
        workspace.ingest(cluster(kafka), cluster_id="other")
    assert caught.value.code == "CLUSTER_DIFFERS"
