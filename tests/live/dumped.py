"""A cluster's log, dumped and read in one go: what a ledger that followed the cluster must be equal to."""

from __future__ import annotations

import json
import subprocess
import sys

from pyspark.sql import functions as F

from groupledger.core.log.lines import listing_line
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import LedgerLocation
from groupledger.tables import GROUP_HEADS, LOG_RECORDS, RUNS, TABLES, TOPIC_SNAPSHOTS
from groupledger.tables import columns as c
from tests.kafka.groups import dump, lines
from tests.live.broker import CLUSTER_ID

SECONDS = 600
SAME = [table for table in TABLES if table not in (RUNS, TOPIC_SNAPSHOTS, GROUP_HEADS)]
"""Tables whose rows tell nothing of in how many ingests, and when, they were read: each ingest has heads of its own."""


def started(address, ledger, *more):
    """An ingest in a process group of its own, with its JVM."""
    options = ["--bootstrap", address, "--ledger", str(ledger), "--json", "--max-quarantined", "1000000", *more]
    command = [sys.executable, "-m", "groupledger", "ingest", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)


def done(address, ledger):
    """What an ingest says that nobody disturbs."""
    process = started(address, ledger)
    said, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    return json.loads(said)


def rows_of(spark, ledger, *without):
    """The rows that count by table, but for runs and topics, whose moments differ, and results of scenarios."""
    location = LedgerLocation(path=str(ledger))
    found = {}
    for table in SAME:
        rows = current(spark, location, table).drop(c.ATTEMPT_ID, *without)
        if c.SCENARIO in table.columns:
            rows = rows.where(f"{c.SCENARIO} is null")
        found[table.name] = sorted(map(str, rows.collect()))
    return found


def listed_when(spark, ledger, dumped):
    """The topics as the ledger learnt of them, as a source: a line each, at every moment at which one changed."""
    changes = current(spark, LedgerLocation(path=str(ledger)), TOPIC_SNAPSHOTS).orderBy(c.VALID_FROM)
    known, listings = {}, {}
    for row in changes.withColumn(c.VALID_FROM, F.unix_micros(c.VALID_FROM)).collect():
        known[row.topic] = row
        moment = -(-row.valid_from // 1000)  # records of a millisecond that had begun then came before it
        listings[moment] = [
            listing_line(moment, each.topic, each.topic_id, each.racks or [[None]] * each.partition_count)
            for each in known.values()
            if each.partition_count is not None
        ]
    lines = [line.decode() for listing in listings.values() for line in listing]
    return dumped.source("topics.jsonl", lines, "topics-jsonl")


def same_as_dumped(address, dumped, ledger):
    """Ingest what is left; then each record of the log is in the ledger once, with the facts of a single ingest."""
    while not done(address, ledger)["nothing_new"]:
        pass
    records = [each for each in dump(address) if not each["key"].startswith(("AAEA", "AAAA"))]
    topics = listed_when(dumped.spark, ledger, dumped)  # what came before the ledger's first listing has no topic ids
    dumped.ingest(dumped.source("log.jsonl", lines(records)), topics, cluster_id=CLUSTER_ID)
    found, expected = (rows_of(dumped.spark, each, c.LEADER_EPOCH) for each in (ledger, dumped.location.path))
    assert len(found[LOG_RECORDS.name]) == len(records)
    for name in found:
        assert found[name] == expected[name], name
