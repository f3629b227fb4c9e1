"""An ingest of offsets that no ingest read opens none of the records of the past."""

import gzip
import json
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from deltalake import DeltaTable

from groupledger.config.loading import CAPTURES
from groupledger.pipeline import few_records
from groupledger.sinks import attempts
from groupledger.tables import GROUP_HEADS, GROUP_SNAPSHOTS, LOG_RECORDS

LINES = gzip.decompress((CAPTURES / "edge" / "offsets.jsonl.gz").read_bytes()).decode().splitlines()
CUT = 130


def piece(first, end):
    return [line for line in LINES if first <= json.loads(line)["offset"] < end]


@contextmanager
def out_of_reach(space):
    """The files of the records read so far, elsewhere: whoever opens one fails."""
    files = list(Path(space.location.path, LOG_RECORDS.name).rglob("*.parquet"))
    assert files
    for file in files:
        file.rename(file.with_suffix(".away"))
    try:
        yield
    finally:
        for file in files:
            file.with_suffix(".away").rename(file)


def files_of(workspace, table):
    folder = Path(workspace.location.path, table.name)
    return set(DeltaTable(str(folder)).file_uris()) if (folder / "_delta_log").exists() else set()


def test_files_are_gathered_before_they_are_many(workspace, monkeypatch):
    monkeypatch.setattr(few_records, "MOST_FILES", 1)
    cuts = (0, 60, CUT, 10_000)
    for number, (first, end) in enumerate(pairwise(cuts)):
        before = files_of(workspace, LOG_RECORDS)  # how many an ingest adds depends on how well its rows compress
        workspace.ingest(workspace.source(f"{number}.jsonl", piece(first, end)), buckets=1)
        for table in (GROUP_HEADS, GROUP_SNAPSHOTS):
            files = len(files_of(workspace, table))
            assert files == (number + 1 if number < 2 else 2), "two were made one, and one was added"
        left = before & files_of(workspace, LOG_RECORDS)
        assert left == (set() if len(before) > 1 else before), "more than one were gathered, and no fewer"
    heads = workspace.location.rows(workspace.spark, GROUP_HEADS).count()
    commits = attempts.read_commits(workspace.spark, workspace.location).commits
    assert heads == sum(commit.counts_out[GROUP_HEADS.name] for commit in commits)
    assert len(workspace.rows(LOG_RECORDS)) == len(LINES)


@pytest.mark.long
def test_new_offsets_are_taken_without_a_look_at_old_records(workspace):
    first, second = piece(0, CUT), piece(CUT, 10_000)
    workspace.ingest(workspace.source("1.jsonl", first), buckets=2)
    with out_of_reach(workspace):
        summary = workspace.ingest(workspace.source("2.jsonl", second), buckets=2)
    (account,) = summary.accounts
    assert (account.records, account.duplicates) == (len(second), 0)
    again = workspace.ingest(workspace.source("3.jsonl", [*second, *first[-40:]]), buckets=2)
    (account,) = again.accounts
    assert (account.records, account.duplicates) == (len(second) + 40, len(second) + 40)
    assert len(workspace.rows(LOG_RECORDS)) == len(LINES)
    seen = attempts.read_commits(workspace.spark, workspace.location)
    assert [bool(commit.read) for commit in seen.commits] == [True, True, False]
