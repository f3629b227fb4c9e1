"""What an ingest takes from a running cluster, without one: where it goes on, what is gone, which topics are new."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from groupledger.cli.runs import ingest_json
from groupledger.config import Config, LedgerSettings, SourceSettings
from groupledger.core.faults import Fault
from groupledger.core.log.read_plan import LogEnds
from groupledger.core.moments import from_millis
from groupledger.pipeline import cluster as clusters
from groupledger.pipeline.cluster import last_reached
from groupledger.pipeline.ingest import ingest, known_before
from groupledger.pipeline.past import Past
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks import attempts
from groupledger.sources.kafka_log import ClusterState
from groupledger.tables import COVERAGE, TOPIC_SNAPSHOTS
from tests.cli.test_json_schemas import complaints
from tests.pipeline.ledgers import committed, invocation

SOURCE = SourceSettings(kind="kafka", bootstrap="h:9092")
ORDERS = ("orders", "id-of-orders", (("rack-a",), (None,)))


def commit(sequence, guards=("c/ingest",), **reached):
    found = {cluster: {"offsets": offsets, "topics": topics} for cluster, (offsets, topics) in reached.items()}
    return committed(sequence, *guards, inputs=json.dumps({"reached": found} if found else {}))


@pytest.mark.parametrize(
    ("commits", "expected"),
    [
        ([], ({}, None, 0)),
        ([commit(1, c=({"0": 5, "11": 7}, "t"))], ({0: 5, 11: 7}, "t", 1)),
        ([commit(1, c=({"0": 5}, "t")), commit(2, c=({"0": 9}, "u"))], ({0: 9}, "u", 2)),
        ([commit(1, c=({"0": 5}, "t")), commit(2, ("d/ingest",), d=({"0": 99}, "u"))], ({0: 5}, "t", 1)),
        ([commit(1, c=({"0": 5}, "t")), commit(2)], ({0: 5}, None, 2)),
        ([commit(1, c=({"0": 5}, "t")), commit(2, ("c/assign",))], ({0: 5}, "t", 1)),
    ],
)
def test_where_the_last_one_stopped(commits, expected):
    """An ingest of the cluster from elsewhere moves no offset, but may have said something of its topics."""
    assert last_reached(commits, "c") == expected


class Asked:
    """A cluster that says what it is told to."""

    def __init__(self, state):
        self.now = state

    def __call__(self, address, seconds):
        return self

    def state(self):
        return self.now


@pytest.mark.long
def test_what_is_gone_is_a_row_and_what_did_not_change_is_none(workspace, monkeypatch):
    asked = Asked(ClusterState("edge", {0: LogEnds(0, 0)}, (ORDERS,)))
    monkeypatch.setattr(clusters, "Cluster", asked)
    assert not workspace.ingest(SOURCE).nothing_new
    topics = workspace.rows(TOPIC_SNAPSHOTS)
    assert len(topics) == 1
    assert "rack-a" in topics[0]
    asked.now = ClusterState("edge", {0: LogEnds(7, 7)}, (ORDERS,))
    gone = workspace.ingest(SOURCE)
    (row,) = workspace.rows(COVERAGE)
    for said in ("log-start-moved", "from_value=0", "to_value=7", "offsets 0 to 6 of log partition 0 were gone"):
        assert said in row
    assert workspace.rows(TOPIC_SNAPSHOTS) == topics
    again = workspace.ingest(SOURCE)
    assert (again.nothing_new, again.run.run_id, again.quarantined) == (True, gone.run.run_id, 0)
    assert complaints("ingest", {"status": "done", "command": "ingest", **ingest_json(again)}) == []
    with pytest.raises(Fault) as caught:
        workspace.ingest(SOURCE, SOURCE)
    assert caught.value.code == "SOURCE_TWICE"
    asked.now = ClusterState("edge", {0: LogEnds(0, 3)}, (ORDERS,))
    with pytest.raises(Fault) as caught:
        workspace.ingest(SOURCE)
    assert caught.value.code == "LOG_WENT_BACK"
    shutil.rmtree(f"{workspace.location.path}/{COVERAGE.name}")
    config = Config(cluster_id=None, ledger=LedgerSettings(location=workspace.location.path))
    rebuild(workspace.spark, workspace.location, config, invocation())
    assert workspace.rows(COVERAGE) == [row]


class Clock:
    """The day, as many minutes later as a test says."""

    def __init__(self):
        self.minute = 0

    def __call__(self):
        return datetime(2026, 11, 21, 0, self.minute, tzinfo=UTC)


def test_an_ingest_that_reaches_the_end_keeps_when_it_began(workspace, monkeypatch):
    """Nothing is new in the second and third: a run without a guard says so, and that no facts came."""
    asked, clock = Asked(ClusterState("edge", {0: LogEnds(7, 7)}, (ORDERS,))), Clock()
    monkeypatch.setattr(clusters, "Cluster", asked)
    config = Config(cluster_id="edge", ledger=LedgerSettings(location=workspace.location.path), sources=(SOURCE,))

    def turn(minute):
        clock.minute = minute
        summary = ingest(workspace.spark, workspace.location, config, replace(invocation(), now=clock))
        seen = attempts.read_commits(workspace.spark, workspace.location)
        (known,) = known_before(Past(workspace.spark, workspace.location, seen.commits, ())).values()
        return summary.nothing_new, len(seen.commits), seen.commits[-1].kind, known.up_to.minute

    assert turn(1) == (False, 1, "ingest", 1)
    assert turn(2) == (True, 2, "nothing-new", 2)
    assert turn(9) == (True, 3, "nothing-new", 9)
    assert [row for row in workspace.rows(TOPIC_SNAPSHOTS) if "2026, 11, 21, 0, 1" in row]
    last = attempts.read_commits(workspace.spark, workspace.location).commits[-1]
    assert (last.guards, last.counts_out, "reached" in last.inputs) == ((), {}, False)


def test_the_newest_record_of_any_kind_is_kept_and_a_ledger_that_kept_none_is_asked_for_its_records(workspace):
    """Offset commits are read and left out; the newest of them is known to have been read."""
    lines = [
        json.dumps({"partition": 3, "offset": at, "timestamp": 1795262400000 + at, "key": key, "value": ""})
        for at, key in enumerate(("AAEAAWcAAWEAAAAA", "AAIAAWc=", "AAEAAWcAAWEAAAAB"))
    ]
    source = replace(workspace.source("log.jsonl", lines), offset_commits=False)
    workspace.ingest(source)
    commits = attempts.read_commits(workspace.spark, workspace.location).commits
    known = known_before(Past(workspace.spark, workspace.location, commits, ()))["edge"]
    assert (known.end, known.newest) == (None, from_millis(1795262400002))
    earlier = tuple(replace(commit, inputs_json="{}") for commit in commits)
    found = known_before(Past(workspace.spark, workspace.location, earlier, ()))
    assert found["edge"].up_to == from_millis(1795262400001)
