"""What an ingest takes from a running cluster, without one: where it goes on, what is gone, which topics are new."""

from __future__ import annotations

import json
import shutil

import pytest

from groupledger.cli.summaries import ingest_json
from groupledger.config import Config, LedgerSettings, SourceSettings
from groupledger.core.faults import Fault
from groupledger.core.log_plan import LogEnds
from groupledger.pipeline import cluster as clusters
from groupledger.pipeline.cluster import last_reached
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks.runs import Commit
from groupledger.sources.kafka_client import ClusterState
from groupledger.tables import COVERAGE, TOPIC_SNAPSHOTS
from tests.cli.test_json_schemas import complaints
from tests.pipeline.ledgers import invocation

SOURCE = SourceSettings(kind="kafka", bootstrap="h:9092")
ORDERS = ("orders", "id-of-orders", (("rack-a",), (None,)))


def commit(sequence, guards=("c/ingest",), **reached):
    found = {cluster: {"offsets": offsets, "topics": topics} for cluster, (offsets, topics) in reached.items()}
    return Commit(
        sequence,
        f"run-{sequence}",
        f"a-{sequence}",
        "ingest",
        guards,
        "",
        {},
        {},
        reached=json.dumps(found) if found else None,
    )


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
