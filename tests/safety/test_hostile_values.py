"""Whatever characters data and configuration hold, they are values: no SQL, no path, no name of code."""

import json
import os
from pathlib import Path

import pytest
from pyspark.sql import functions as F

from groupledger.config import AssignSettings, Config, LedgerSettings, SourceSettings
from groupledger.pipeline.assign import assign
from groupledger.pipeline.ingest import ingest
from groupledger.pipeline.maintain import maintain
from groupledger.sinks import attempts, ledger_tables
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, REBALANCES, RUNS
from groupledger.tables import columns as c
from tests.pipeline.ledgers import invocation

HOSTILE = [
    "'; DROP TABLE x; --",
    "`; DELETE FROM delta.`/`",
    '"quoted" \\\' OR 1=1',
    "../../../etc/passwd",
    "new\nline\ttab\r",
    "${env:HOME} $(id) {x} %s :name ?",
    "\u202e\u0000\U0001f600".replace("\u0000", "\u0001"),
    "os:system",
]
FOLDERS = ["../beside it`s ledger", "two\nlines", 'it\'s "one" & $(touch x)']


@pytest.fixture
def source(tmp_path):
    """A group of two members for each hostile text, which is its id, its members' and their assignor's name."""
    folder = tmp_path / "given it's `here`"
    folder.mkdir()
    moment = "2026-11-21T14:00:00Z"
    groups, members = [], []
    for number, text in enumerate(HOSTILE):
        place = {"snapshot_id": f"{number} {text}", "group_id": text, "offset": number}
        groups.append({**place, "group_type": "classic", "protocol_type": "consumer", "assignor": text, "members": 2,
                       "state": "Stable", "observed_at": moment, "shared_topics": [text]})  # fmt: skip
        for order in range(2):
            names = {
                "member_id": f"{text} {order}",
                "client_id": text,
                "host": text,
                "group_instance_id": f"{text}{order}",
            }
            members.append({**place, "member_order": order, **names})
    topics = [{"topic": text, "partition_count": 3, "valid_from": "2026-11-20T00:00:00Z"} for text in HOSTILE]
    for name, rows in {"group_snapshots": groups, "member_snapshots": members, "topic_snapshots": topics}.items():
        (folder / f"{name}.json").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return SourceSettings(kind="snapshots", path=str(folder), format="json")


@pytest.mark.spark
@pytest.mark.long
def test_hostile_values_stay_values(spark, new_ledger, tmp_path, source, monkeypatch):
    ran = []
    monkeypatch.setattr(os, "system", lambda *given: ran.append(given))
    inside = tmp_path / "a" / "b"
    inside.mkdir(parents=True)
    place = new_ledger(inside / "it's `the` ledger")
    settings = AssignSettings(assignor="range", scenario="range", snapshots="every")
    config = Config(
        cluster_id="edge", ledger=LedgerSettings(location=place.path), sources=(source,), assign=settings, buckets=2
    )
    read = ingest(spark, place, config, invocation("; --'"))
    assert (read.quarantined, read.rows[GROUP_SNAPSHOTS.name]) == (0, len(HOSTILE))
    assert assign(spark, config, invocation("`run`")).outcomes["ASSIGNED"] == len(HOSTILE)
    by_name = Config(cluster_id="edge", ledger=LedgerSettings(location=place.path), assign=AssignSettings(), buckets=2)
    named = assign(spark, by_name, invocation("recorded"))
    assert "ASSIGNED" not in named.outcomes, "no recorded name is one of our assignors, and none is looked for"
    groups = current(spark, place, REBALANCES).where(F.col(c.SCENARIO) == "range").select(c.GROUP_ID).collect()
    assert sorted(row[0] for row in groups) == sorted(HOSTILE)
    attempt = attempts.Attempt("'; --", "`'\"\\ --", "ingest", {}, "config", "code", invocation().now())
    attempts.plan(spark, place, attempt)
    assert ledger_tables.remove(spark, place, COVERAGE, HOSTILE) == 0
    maintain(spark, place, by_name, invocation(), [COVERAGE], redact=True)
    members = [row[0] for row in current(spark, place, MEMBER_SNAPSHOTS).select(c.MEMBER_ID).collect()]
    assert len(members) == 2 * len(HOSTILE)
    assert all(name.startswith("~1-") for name in members)
    assert ran == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "given it's `here`"]
    assert [path.name for path in inside.iterdir()] == ["it's `the` ledger"]


@pytest.mark.spark
@pytest.mark.parametrize("folder", FOLDERS)
def test_a_ledger_is_made_where_it_was_asked_for(spark, tmp_path, folder):
    start = tmp_path / "start"
    start.mkdir()
    location = LedgerLocation(path=str(start / folder))
    spark.sql(f"CREATE TABLE {location.identifier(RUNS)} (a INT) USING delta")
    made = Path(os.path.normpath(start / folder)) / RUNS.name
    assert (made / "_delta_log").is_dir()
    assert location.rows(spark, RUNS).columns == ["a"]
