"""Few records that the driver takes itself are taken as by Spark: rows, counts, digests, and what is reached."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections import defaultdict
from dataclasses import replace

import pytest

from groupledger.config.loading import CAPTURES
from groupledger.core.log.read_plan import LogEnds
from groupledger.pipeline import cluster as clusters
from groupledger.pipeline import ingest as ingesting
from groupledger.pipeline.few_records import few_records
from groupledger.sinks import attempts
from groupledger.sources import kafka_log
from groupledger.sources.kafka_log import Address, ClusterState, StretchReader
from groupledger.tables import LOG_RECORDS
from tests.pipeline.test_cluster import SOURCE
from tests.pipeline.test_ingest import FACTS
from tests.sources.test_kafka_records import Consumer, Ended, Placed, of

STEPS = 4


class Timed(Placed):
    """A record with the time of the capture."""

    time = 0

    def timestamp(self):
        return (1, self.time)


class CapturedCluster:
    """The log of a capture, of which more is there with each step, and its topics."""

    def __init__(self, capture, monkeypatch):
        self.log: defaultdict[int, dict[int, Timed]] = defaultdict(dict)
        self.late = _second_of_a_group(capture)
        for line in _lines(capture, "offsets"):
            key, value = (None if line[name] is None else b64decode(line[name]) for name in ("key", "value"))
            record = of(line["partition"], Timed(line["offset"], key, value))
            record.time = line["timestamp"]
            self.log[line["partition"]][line["offset"]] = record
        listed = {line["topic"]: line for line in _lines(capture, "topics")}
        self.topics = tuple(
            (name, line["topic_id"], (("rack-a",),) * (line["partitions"] or 1))
            for name, line in sorted(listed.items())
        )
        self.step = 0
        monkeypatch.setattr(clusters, "Cluster", lambda *_: self)
        monkeypatch.setattr(StretchReader, "read", self.read)

    def state(self):
        ends = {partition: LogEnds(0, (max(log) + 1) * self.step // STEPS) for partition, log in self.log.items()}
        return ClusterState("edge", ends, self.topics)

    def read(self, *stretches):
        records = [
            record
            for each in stretches
            for offset, record in sorted(self.log[each.partition].items())
            if each.first <= offset < each.end
            and (each.partition, offset) != (self.late["partition"], self.late["offset"])
        ]
        ends = [of(each.partition, Ended("_PARTITION_EOF", each.end)) for each in stretches]
        reader = StretchReader(Address("h:9092", {}, 30), offset_commits=self.step == STEPS)
        return kafka_log.batches(reader, stretches, Consumer([*records, *ends]), [], lambda: 0)


def _lines(capture, name):
    return map(json.loads, gzip.open(CAPTURES / capture / f"{name}.jsonl.gz"))


def _second_of_a_group(capture):
    """The second record of the group that has most of those in the beginning: it is read late."""
    by_key = defaultdict(list)
    for line in _lines(capture, "offsets"):
        if b64decode(line["key"])[:2] == b"\x00\x02" and line["offset"] < 30:
            by_key[line["key"]].append(line)
    return max(by_key.values(), key=len)[1]


@pytest.mark.parametrize(
    "capture", ["dev", *(pytest.param(each, marks=pytest.mark.long) for each in ("edge", "storm"))]
)
def test_without_spark_all_is_equal(capture, workspace, tmp_path, monkeypatch):
    cluster, found, taken = CapturedCluster(capture, monkeypatch), [], []

    def watched(*arguments):
        taken.append(few_records(*arguments))
        return taken[-1]

    monkeypatch.setattr(ingesting, "few_records", watched)
    for cluster.step in range(1, STEPS - 1):
        workspace.ingest(SOURCE)
        if cluster.step == 1:
            late = workspace.ingest(workspace.source("late.jsonl", [json.dumps(cluster.late)]), run_id="late")
            assert late.run.counts_out[attempts.LATE_GROUPS] == 1
    assert taken == [None, None, None], "topics were listed twice; the late record came from a file"
    for here, name in ((watched, "driver"), (lambda *_: None, "spark")):
        monkeypatch.setattr(ingesting, "few_records", here)
        space = workspace.copied(tmp_path / name)
        for cluster.step in range(STEPS - 1, STEPS + 1):
            space.ingest(SOURCE)
        commits = attempts.read_commits(space.spark, space.location).commits
        told = [(replace(each, attempt_id="", inputs_json=""), {**each.inputs, "sources": None}) for each in commits]
        found.append((told, {table.name: space.rows(table) for table in (LOG_RECORDS, *FACTS)}))
    assert all(taken[3:])
    assert len(taken) == STEPS + 1
    ours, sparks = found
    assert ours[0] == sparks[0]
    assert ours == sparks
    assert len(ours[1][LOG_RECORDS.name]) > 2
