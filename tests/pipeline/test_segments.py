"""Segments of a real broker give the facts that the same records give as lines, and every entry is accounted for."""

from pathlib import Path

import pytest

from groupledger.config import LimitSettings, SourceSettings
from groupledger.tables import COVERAGE, GROUP_SNAPSHOTS, LOG_RECORDS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, QUARANTINE
from tests.segments.real import FOLDER, consumed, written

FACTS = (GROUP_SNAPSHOTS, MEMBER_SNAPSHOTS, OWNERSHIP_CHANGES, COVERAGE)
NOT_STABLE = {"transaction marker": 4, "aborted transaction": 6, "undecided transaction": 4}


def source(codec, kind, path, **settings):
    return SourceSettings(kind=kind, cluster_id=codec, path=str(path), **settings)


def as_lines(codec, **settings):
    return source(codec, "offsets-jsonl", FOLDER / codec / "offsets.jsonl.gz", **settings)


@pytest.mark.long
def test_real_segments_give_the_facts_of_the_same_lines(workspace, new_workspace, tmp_path):
    """Of one log committed offsets are left out, of the other they are kept; then the same records come as lines."""
    kept = {"none": False, "zstd": True}
    disks = (source(each, "segments", written(each, tmp_path / each), offset_commits=kept[each]) for each in kept)
    first = {account.cluster_id: account for account in workspace.ingest(*disks).accounts}
    facts = {table: workspace.rows(table) for table in FACTS}
    second = {account.cluster_id: account for account in workspace.ingest(*map(as_lines, kept)).accounts}
    for codec, keeps in kept.items():
        account, lines = first[codec], second[codec]
        assert account.balanced
        assert account.rows == account.records
        assert {name: account.unused[name] for name in NOT_STABLE} == NOT_STABLE
        assert (account.quarantined, account.duplicates) == ({}, 0)
        left_out = account.unused.get("offset commit left out", 0)
        assert lines.duplicates == lines.lines - left_out
        assert left_out == lines.unused.get("OffsetCommit", 0) + lines.tombstones.get("OffsetCommit", 0)
        assert (left_out == 0) == keeps
    assert {table: workspace.rows(table) for table in FACTS} == facts
    assert all(facts[table] for table in FACTS[:3])
    of_lines = new_workspace("lines")
    of_lines.ingest(*map(as_lines, kept))
    assert {table: of_lines.rows(table) for table in FACTS} == facts


def test_damage_is_quarantined_and_the_rest_is_read(workspace, tmp_path):
    """A flipped byte in one segment, a torn tail, another topic beside it, and a log that the broker had set aside."""
    folder = written("none", tmp_path / "disk")
    first, *_, last = sorted((folder / "__consumer_offsets-0").iterdir())
    data = bytearray(first.read_bytes())
    data[100] ^= 1
    first.write_bytes(data)
    last.write_bytes(last.read_bytes().rstrip(b"\0")[:-40])
    for name in ("orders-0", "orders-1", "__consumer_offsets-1.8c9e2a7b-delete"):
        (folder / name).mkdir()
    summary = workspace.ingest(
        source("none", "segments", folder), source("none", "segments", folder), limits=LimitSettings(max_quarantined=9)
    )
    (account,) = summary.accounts
    assert account.balanced
    assert account.quarantined == {"BAD_CRC": 2}
    assert (account.unused["torn tail"], account.unused["other topic"]) == (2, 4)
    assert account.unused["log set aside by the broker"] == 2
    records = workspace.rows(LOG_RECORDS)
    assert account.duplicates == len(records)
    assert all("leader_epoch=0" in row for row in records)
    (rejected,) = set(workspace.rows(QUARANTINE))
    assert first.name in rejected
    assert "bytes 0 to 102" in rejected
    assert account.records > 2 * len(consumed("none")) - 2


def test_the_folder_of_the_fixtures_has_a_page():
    assert Path(FOLDER / "README.md").is_file()
