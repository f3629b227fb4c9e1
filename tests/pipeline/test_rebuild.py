"""Rows that are gone are made again, the same; what cannot be is said. An attempt that died leaves nothing to see."""

import gzip
import shutil
from pathlib import Path

import pytest

from groupledger.config import Config, LedgerSettings, LimitSettings, SourceSettings
from groupledger.core.faults import Fault
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks import runs
from groupledger.sinks.ledger import LedgerLocation
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, LOG_RECORDS, MEMBER_SNAPSHOTS, QUARANTINE
from tests.pipeline.ledgers import CAPTURES, Workspace, invocation

TOPICS = SourceSettings(kind="topics-jsonl", path=str(CAPTURES / "storm" / "topics.jsonl.gz"))
LINES = gzip.decompress((CAPTURES / "storm" / "offsets.jsonl.gz").read_bytes()).decode().splitlines()
DERIVED = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, COVERAGE, QUARANTINE)
LIMITS = LimitSettings(max_quarantined=9)


class Died(Exception):
    """An attempt that goes no further."""


@pytest.fixture(scope="module")
def filled(new_workspace):
    """An attempt that died before its commit, then the same run with a line more."""
    space = new_workspace("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "commit", _die)
        with pytest.raises(Died):
            space.ingest(TOPICS, space.source("log.jsonl", LINES[:-1]), run_id="nightly")
    summary = space.ingest(TOPICS, space.source("log.jsonl", [*LINES, '{"off']), run_id="nightly", limits=LIMITS)
    return space, summary, {table.name: space.rows(table) for table in DERIVED}


def _die(*_):
    raise Died


def test_a_retry_computes_from_what_is_there_now_and_the_dead_attempt_is_seen_by_nobody(filled):
    space, summary, rows = filled
    (account,) = summary.accounts
    assert (account.records, account.duplicates) == (len(LINES) + 1, 0)
    assert len(space.rows(LOG_RECORDS)) == len(LINES)
    assert len(rows[GROUP_SNAPSHOTS.name]) == summary.rows[GROUP_SNAPSHOTS.name]
    assert len(rows[QUARANTINE.name]) == 1


@pytest.fixture
def copy(spark, filled, tmp_path):
    space = Workspace.__new__(Workspace)
    space.spark, space.folder = spark, tmp_path
    space.location = LedgerLocation(path=str(tmp_path / "ledger"))
    shutil.copytree(filled[0].location.path, tmp_path / "ledger")
    return space


def rebuilt(space):
    config = Config(cluster_id="edge", ledger=LedgerSettings(location=space.location.path), limits=LIMITS)
    return rebuild(space.spark, space.location, config, invocation())


def test_damaged_and_lost_rows_are_made_again_the_same(filled, copy):
    torn = next(iter(sorted(Path(copy.location.path, GROUP_SNAPSHOTS.name).glob("*.parquet"))))
    torn.write_bytes(torn.read_bytes()[:100])
    for table in (MEMBER_SNAPSHOTS, QUARANTINE):
        copy.spark.sql(f"DELETE FROM {copy.location.identifier(table)}")  # noqa: S608
    summary = rebuilt(copy)
    assert list(summary.set_aside) == [GROUP_SNAPSHOTS.name]
    assert Path(summary.set_aside[GROUP_SNAPSHOTS.name], torn.name).exists()
    assert {each.table for each in summary.remade} == {"group_snapshots", "member_snapshots", "quarantine"}
    assert {table.name: copy.rows(table) for table in DERIVED} == filled[2]
    assert rebuilt(copy).remade == ()


def test_what_everything_is_made_of_is_refused_by_name(copy):
    torn = next(iter(sorted(Path(copy.location.path, LOG_RECORDS.name).glob("*.parquet"))))
    torn.unlink()
    with pytest.raises(Fault, match=f"table log_records is damaged: .*{torn.name}.*ingest the sources") as caught:
        rebuilt(copy)
    assert caught.value.code == "LEDGER_DAMAGED"
