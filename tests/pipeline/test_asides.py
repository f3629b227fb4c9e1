"""Which folders of damaged tables a maintain removes; without Spark."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from groupledger.config import Config, LedgerSettings, MaintainSettings
from groupledger.pipeline import maintain as maintaining
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import Erasure
from groupledger.sinks import attempts
from groupledger.sinks.ledger_tables import LedgerLocation, move_aside
from groupledger.tables import GROUP_SNAPSHOTS, QUARANTINE, TABLES
from tests.pipeline.ledgers import committed

MOVED = datetime(2026, 11, 21, tzinfo=UTC)
ROWS = {("quarantine", "a-1"): 3}
COMMITS = (committed(1, counts_out={"quarantine": 3}),)


@pytest.fixture
def looked(tmp_path, monkeypatch):
    """A maintain so many hours after `quarantine` was moved aside after commit 1; what it says, and the folder."""
    folder = tmp_path / "quarantine"
    folder.mkdir()
    Path(folder, "part.parquet").write_text("m-1")
    aside = move_aside(folder, "b", 1, MOVED)

    def look(hours, rows, erasure, tables=TABLES):
        monkeypatch.setattr(Erasure, "of", classmethod(lambda *_: erasure))
        monkeypatch.setattr(attempts, "read_commits", lambda *_: attempts.LedgerView(COMMITS))
        kept = MaintainSettings(vacuum_hours=168)
        config = Config(cluster_id="edge", ledger=LedgerSettings(location=str(tmp_path)), maintain=kept)
        called = Invocation(attempt_id="keeper", now=lambda: MOVED + timedelta(hours=hours), seconds=lambda: 0.0)
        place = LedgerLocation(path=str(tmp_path))
        parts: tuple[Any, ...] = (None, place, config, called, None, tables)
        work = maintaining._Work(*parts)
        return [(Path(each.folder), each.kept) for each in work._set_aside(rows)], aside

    return look


def test_one_that_is_old_goes_and_a_young_one_stays(looked):
    [(folder, kept)], aside = looked(167, ROWS, Erasure({}, 0))
    assert (folder, aside.is_dir()) == (aside, True)
    assert "stays for 168 hours" in kept
    assert looked(168, ROWS, Erasure({}, 0))[0] == [(aside, "")]
    assert not aside.exists()


def test_one_whose_table_lacks_rows_stays_however_old(looked):
    for rows in ({}, {("quarantine", "a-1"): 2}, {("quarantine", "a-1"): 4}):
        [(_, kept)], aside = looked(10_000, rows, Erasure({}, 0))
        assert "quarantine lacks rows (a-1 quarantine" in kept
        assert "groupledger rebuild" in kept
        assert aside.is_dir()


def test_what_retention_removed_is_not_missed(looked):
    found, aside = looked(10_000, {}, Erasure({"quarantine": {"a-1"}}, 0))
    assert (found, aside.exists()) == ([(aside, "")], False)


def test_a_redaction_since_takes_it_at_once_whatever_it_lacks_and_whichever_tables_are_chosen(looked):
    found, aside = looked(1, {}, Erasure({}, 2), (GROUP_SNAPSHOTS,))
    assert (found, aside.exists()) == ([(aside, "")], False)


def test_a_redaction_from_before_does_not(looked):
    [(_, kept)], aside = looked(1, ROWS, Erasure({}, 1))
    assert "stays" in kept
    assert aside.is_dir()


def test_of_tables_that_were_not_chosen_nothing_is_said(looked):
    found, aside = looked(10_000, ROWS, Erasure({}, 0), (GROUP_SNAPSHOTS,))
    assert (found, aside.is_dir()) == ([], True)
    assert looked(10_000, ROWS, Erasure({}, 0), (QUARANTINE,))[0] == [(aside, "")]
