"""Rows that are gone or changed are made again, the same; what cannot be is said. Dead attempts are seen by nobody."""

import gzip
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from groupledger import __version__
from groupledger.config import Config, LedgerSettings, LimitSettings, SourceSettings
from groupledger.config.loading import CAPTURES
from groupledger.core.faults import Fault
from groupledger.pipeline.call_tables import keep_calls
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks import attempts
from groupledger.sinks.ledger_tables import LedgerLocation, init
from groupledger.tables import (
    CALLBACKS,
    GROUP_SNAPSHOTS,
    LOG_RECORDS,
    MEMBER_SNAPSHOTS,
    OWNERSHIP_CHANGES,
    QUARANTINE,
    RUNS,
)
from tests.pipeline.ledgers import Workspace, invocation

pytestmark = pytest.mark.long

TOPICS = SourceSettings(kind="topics-jsonl", path=str(CAPTURES / "storm" / "topics.jsonl.gz"))
LINES = gzip.decompress((CAPTURES / "storm" / "offsets.jsonl.gz").read_bytes()).decode().splitlines()
DERIVED = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, QUARANTINE, CALLBACKS)
LIMITS = LimitSettings(max_quarantined=9)


class Died(Exception):
    """An attempt that goes no further."""


@pytest.fixture(scope="module")
def filled(new_workspace):
    """An attempt that died before its commit, then the same run with a line more; then the calls of its groups."""
    space = new_workspace("filled")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attempts, "commit", _die)
        with pytest.raises(Died):
            space.ingest(TOPICS, space.source("log.jsonl", LINES[:-1]), run_id="nightly")
    summary = space.ingest(TOPICS, space.source("log.jsonl", [*LINES, '{"off']), run_id="nightly", limits=LIMITS)
    keep_calls(space.spark, config_of(space), invocation(), 24)
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


def config_of(space):
    return Config(cluster_id="edge", ledger=LedgerSettings(location=space.location.path), limits=LIMITS)


def rebuilt(space):
    return rebuild(space.spark, space.location, config_of(space), invocation())


def file_of(space, table):
    """A data file that the table consists of; others may lie beside it."""
    folder = Path(space.location.path, table.name)
    return min(folder / Path(uri).name for uri in DeltaTable(str(folder)).file_uris())


def change_a_byte(file):
    """The last of the first column's last page, which may be part of a value; on a disk that keeps no checksums."""
    column = pq.read_metadata(file).row_group(0).column(0)
    start = column.data_page_offset if column.dictionary_page_offset is None else column.dictionary_page_offset
    content = bytearray(file.read_bytes())
    content[start + column.total_compressed_size - 1] ^= 1
    file.write_bytes(content)
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)  # a worker writes none


def test_damaged_and_lost_rows_are_made_again_the_same(filled, copy):
    torn = file_of(copy, GROUP_SNAPSHOTS)
    torn.write_bytes(torn.read_bytes()[:100])
    change_a_byte(file_of(copy, OWNERSHIP_CHANGES))
    for table in (MEMBER_SNAPSHOTS, QUARANTINE, CALLBACKS):
        copy.spark.sql(f"DELETE FROM {copy.location.identifier(table)}")
    summary = rebuilt(copy)
    assert list(summary.set_aside) == [GROUP_SNAPSHOTS.name, OWNERSHIP_CHANGES.name]
    assert Path(summary.set_aside[GROUP_SNAPSHOTS.name], torn.name).exists()
    lost = {GROUP_SNAPSHOTS, OWNERSHIP_CHANGES, MEMBER_SNAPSHOTS, QUARANTINE, CALLBACKS}
    assert {each.table for each in summary.remade} == {table.name for table in lost}
    assert {table.name: copy.rows(table) for table in DERIVED} == filled[2]
    assert rebuilt(copy).remade == ()


def test_a_row_that_was_changed_is_made_again_as_it_was(filled, copy):
    copy.spark.sql(f"UPDATE {copy.location.identifier(QUARANTINE)} SET message = 'another'")
    assert copy.rows(QUARANTINE) != filled[2][QUARANTINE.name]
    assert rebuilt(copy).set_aside == {}
    assert {table.name: copy.rows(table) for table in DERIVED} == filled[2]


def test_what_everything_is_made_of_is_refused_by_name(copy):
    torn = file_of(copy, LOG_RECORDS)
    torn.unlink()
    with pytest.raises(Fault, match=f"table log_records is damaged: .*{torn.name}.*ingest the sources") as caught:
        rebuilt(copy)
    assert caught.value.code == "LEDGER_DAMAGED"


def test_raw_rows_that_are_missing_without_an_error_are_missed_by_name(copy):
    last = max(Path(copy.location.path, LOG_RECORDS.name, "_delta_log").glob("*.json"))
    last.write_bytes(b"")
    with pytest.raises(Fault, match=r"table log_records is damaged: of .* rows of run 'nightly' 0 are there"):
        rebuilt(copy)


def test_a_run_that_commits_meanwhile_is_not_taken_for_lost(copy, monkeypatch):
    """Its rows are not among those that were read before it came."""

    def overtaken(spark, location):
        keep_calls(copy.spark, config_of(copy), invocation(), 48)
        return init(spark, location)

    monkeypatch.setattr("groupledger.pipeline.rebuild.init", overtaken)
    assert rebuilt(copy).remade == ()


PARTITION = {"partition": "log_partition"}
OLDER = "0.0.1+0123456789abcdef"


def older_run(space):
    """Let the ingest be of a version that made other rows of the same records."""
    name = space.location.identifier(RUNS)
    space.spark.sql(
        f"UPDATE {name} SET result_digest = 'other', code_digest = '{OLDER}' WHERE run_id = 'nightly' AND "
        "status = 'committed'"
    )


def test_rows_that_this_version_makes_otherwise_are_refused_before_anything_is_written(copy):
    older_run(copy)
    copy.spark.sql(f"DELETE FROM {copy.location.identifier(MEMBER_SNAPSHOTS)}")
    before = {table.name: copy.rows(table) for table in DERIVED}
    with pytest.raises(Fault) as caught:
        rebuilt(copy)
    assert caught.value.code == "REBUILT_DIFFERENT"
    said = caught.value.message
    assert said.startswith("run 'nightly' (member_snapshots has 0 of ")
    assert f" was computed by {OLDER}; this version, {__version__}+" in said
    assert said.endswith(
        "that is no further damage. Nothing of it was written; rebuild with "
        f"{OLDER}, or ingest the ledger's log_records into a new ledger (docs/operate/failures-and-recovery.md)"
    )
    assert {table.name: copy.rows(table) for table in DERIVED} == before


def test_the_records_of_a_ledger_are_a_source_of_a_new_one(filled, copy, new_workspace):
    """What is to be done with a ledger that cannot be rebuilt."""
    records = SourceSettings(
        kind="offsets-delta", path=str(Path(copy.location.path, LOG_RECORDS.name)), columns=PARTITION
    )
    space = new_workspace("anew")
    space.ingest(TOPICS, records)
    for table in (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES):
        assert space.rows(table) == filled[2][table.name]
