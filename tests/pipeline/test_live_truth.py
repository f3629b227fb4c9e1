"""A day that real clients played on real brokers (`make live-truth`), read again: what is said of it was so."""

from __future__ import annotations

from pathlib import Path

import pytest

from groupledger.answers.reader import LedgerReader
from tests.live.truth.facts import Facts
from tests.live.truth.replay import Kept, replay, turns
from tests.live.truth.report import DAY, MOST_NOT_KNOWN, judged_states, not_known
from tests.live.truth.score import EXPLAINED, OWNERS_ASKED, Outcome, quiet_moments, score

DAYS = Path(__file__).parents[1] / "data/live-truth"
KNOWN = 60
"""Rebalances with a known cause that a day has at least."""
MOVED = 4
"""Groups whose members join again with nothing changed once the broker is back: leader epochs show its restart."""
LONG = ("whole", "week", "turns:8")
WAYS = ("turns:2", *(pytest.param(way, marks=pytest.mark.long) for way in LONG))
"""As one ingest, as a first ingest of a compacted log, as a few ingests and as a follower's many."""


@pytest.mark.parametrize("way", WAYS)
def test_what_is_said_of_a_day_was_so(way, spark, new_ledger, tmp_path):
    kept = Kept(DAYS / DAY)
    day, location = Facts(kept.truth), new_ledger(tmp_path / "ledger")
    replay(spark, location, turns(kept, way))
    asked = (OWNERS_ASKED, EXPLAINED) if way in LONG else (OWNERS_ASKED // 5, 4 * EXPLAINED)
    found = score(LedgerReader(location.path), day, quiet_moments(day, asked[0]), asked[1])
    assert found.false == []
    assert not_known(found) <= MOST_NOT_KNOWN
    assert not found.owners[Outcome.NOT_KNOWN] or way in ("whole", "week")
    assert len(found.causes) >= KNOWN or way == "week"
    moved = {each.entry.group_id for each in found.causes if each.window.act["act"] == "broker"}
    assert len(moved) >= MOVED or way == "week"


@pytest.mark.parametrize("way", ["whole", pytest.param("turns:3", marks=pytest.mark.long)])
@pytest.mark.parametrize("release", ["4.0.0", pytest.param("4.2.0", marks=pytest.mark.long)])
def test_every_state_of_an_earlier_release_is_exact(release, way, spark, new_ledger, tmp_path):
    location = new_ledger(tmp_path / "ledger")
    replay(spark, location, turns(Kept(DAYS / release), way))
    found = judged_states(spark, location)
    assert found
    assert {verdict for verdict in found if not verdict.startswith("exact")} == set()
