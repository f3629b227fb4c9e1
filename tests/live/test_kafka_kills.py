"""`groupledger ingest --bootstrap`, killed again and again: nothing missing, nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from groupledger.sinks.current import current
from groupledger.sinks.ledger import LedgerLocation, init
from groupledger.sources.kafka_client import Address, Cluster
from groupledger.tables import LOG_RECORDS, RUNS, TABLES, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c
from tests.kafka.groups import Member, dump, lines
from tests.live.broker import CLUSTER_ID
from tests.pipeline.ledgers import Workspace

KILLS = 10
SECONDS = 600
SAME = [table for table in TABLES if table not in (RUNS, TOPIC_SNAPSHOTS)]


def started(address, ledger):
    """An ingest in a process group of its own, with its JVM."""
    options = ["--bootstrap", address, "--ledger", str(ledger), "--json", "--max-quarantined", "1000000"]
    command = [sys.executable, "-m", "groupledger", "ingest", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def done(address, ledger):
    """What an ingest says that nobody disturbs."""
    process = started(address, ledger)
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    return json.loads(said)


def killed(process, after):
    """Whether it was still at work when it was killed."""
    try:
        process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return True
    return False


def rows_of(spark, ledger):
    """The rows that count by table, but for those of runs and topics, whose moments differ."""
    location = LedgerLocation(path=str(ledger))
    names = {table: [name for name in table.columns if name != c.ATTEMPT_ID] for table in SAME}
    return {
        table.name: sorted(map(str, current(spark, location, table).select(*names[table]).collect())) for table in SAME
    }


@pytest.fixture
def dumped(spark, tmp_path):
    init(spark, LedgerLocation(path=str(tmp_path / "empty" / "ledger")))
    (tmp_path / "dumped").mkdir()
    return Workspace(spark, tmp_path / "empty" / "ledger", tmp_path / "dumped")


def test_killed_at_random_moments_and_then_whole(kafka, topics, dumped, tmp_path):
    topics.create({"killed": 3})
    began = time.monotonic()
    done(kafka, tmp_path / "ledger")
    whole = time.monotonic() - began
    moments, kills = random.Random(7), 0  # noqa: S311 moments, no secrets
    for number in range(KILLS):
        with Member(kafka, f"group-{number}", "killed") as member:
            member.commit()
        kills += killed(started(kafka, tmp_path / "ledger"), moments.uniform(0, whole))
    assert kills > KILLS // 2
    while not done(kafka, tmp_path / "ledger")["nothing_new"]:
        pass
    records = [each for each in dump(kafka) if not each["key"].startswith(("AAEA", "AAAA"))]
    listing = Cluster(Address(kafka, {}, 30), time.monotonic).state().listing(0)
    listed = dumped.source("topics.jsonl", [line.decode() for line in listing], "topics-jsonl")
    dumped.ingest(dumped.source("log.jsonl", lines(records)), listed, cluster_id=CLUSTER_ID)
    found = rows_of(dumped.spark, tmp_path / "ledger")
    assert len(found[LOG_RECORDS.name]) == len(records)
    expected = rows_of(dumped.spark, dumped.location.path)
    for name in found:
        assert found[name] == expected[name], name
