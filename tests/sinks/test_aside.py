"""Folders of damaged tables: found by name, dated by their note."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from groupledger.sinks.ledger_tables import NOTE, LedgerLocation, erase, folder_of, move_aside, set_aside
from groupledger.tables import GROUP_SNAPSHOTS, QUARANTINE

MOMENT = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)


@pytest.fixture
def place(tmp_path):
    (tmp_path / "quarantine").mkdir()
    (tmp_path / "quarantine" / "part.parquet").write_text("m-1")
    return LedgerLocation(path=str(tmp_path))


def test_a_folder_that_was_moved_is_found_with_its_date_and_commit(place):
    moved = move_aside(Path(place.path, "quarantine"), "attempt-1", 7, MOMENT)
    assert moved.name == "quarantine.damaged-attempt-1"
    [found] = set_aside(place, QUARANTINE)
    assert (found.folder, found.sequence, found.at) == (moved, 7, MOMENT)
    assert set_aside(place, GROUP_SNAPSHOTS) == ()
    assert set_aside(LedgerLocation(path=f"file://{place.path}"), QUARANTINE) == (found,)
    assert erase(found) == ""
    assert set_aside(place, QUARANTINE) == ()
    assert "cannot be removed" in erase(found)


@pytest.mark.parametrize("note", [None, "", "{", "[]", '{"sequence": "x", "at": 3}', "7"])
def test_one_whose_note_is_missing_or_torn_counts_as_moved_before_every_commit(place, note):
    moved = move_aside(Path(place.path, "quarantine"), "a", 7, MOMENT)
    Path(moved, NOTE).unlink()
    if note is not None:
        Path(moved, NOTE).write_text(note)
    [found] = set_aside(place, QUARANTINE)
    assert found.sequence == 0
    assert found.at.tzinfo is UTC


def test_a_note_in_a_table_that_was_not_moved_after_all_is_written_anew(place):
    Path(place.path, "quarantine", NOTE).write_text(json.dumps({"sequence": 1, "at": MOMENT.isoformat()}))
    move_aside(Path(place.path, "quarantine"), "a", 9, MOMENT)
    assert [each.sequence for each in set_aside(place, QUARANTINE)] == [9]


def test_elsewhere_nothing_is_looked_for():
    for location in (LedgerLocation(path="s3a://bucket/ledger"), LedgerLocation(catalog="main.ledger")):
        assert folder_of(location, QUARANTINE) is None
        assert set_aside(location, QUARANTINE) == ()
    assert set_aside(LedgerLocation(path="/no/such/place"), QUARANTINE) == ()
