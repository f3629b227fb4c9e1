"""A static member of a KIP-848 group that left for the time being keeps its partitions, and is not there."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from groupledger.answers.explanation import rebalance
from groupledger.answers.owners import ownership
from groupledger.answers.reader import LedgerReader
from groupledger.cli import main
from groupledger.core.history import TopicChange
from groupledger.core.moments import from_millis
from tests.answers.test_conversions import ledger
from tests.core.history.captured import log_rows, topic_changes
from tests.core.history.records import CLICKS, Log

LISTED = [TopicChange("clicks", CLICKS, 2, None, 0)]
BOTH: dict[str, dict[str, tuple[int, ...]]] = {"m": {CLICKS: (0,)}, "n": {CLICKS: (1,)}}


def left(group: str = "left") -> Log:
    """Of two static members one leaves for the time being."""
    log = Log(group)
    log.joined("m", instance="i")
    log.joined("n", instance="j")
    log.step(2, BOTH)
    log.current("m", -2, {CLICKS: (0,)})
    return log


def came_back() -> Log:
    log = left("back")
    log.current("m", 2, {CLICKS: (0,)})
    return log


def ended() -> Log:
    log = left("ended")
    log.left("m")
    log.step(3, {"n": {CLICKS: (0, 1)}})
    return log


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    groups = {"left": left(), "back": came_back(), "ended": ended()}
    return ledger(tmp_path_factory.mktemp("ledger"), {name: log.rows for name, log in groups.items()}, LISTED)


@pytest.fixture(scope="module")
def reader(place: str) -> LedgerReader:
    return LedgerReader(place)


def at(log: Log, behind_the_last: int = 0) -> datetime:
    """The time of its last record, or of one before."""
    return from_millis(log.rows[-1 - behind_the_last].timestamp_ms)


def owner(reader: LedgerReader, group: str, partition: int, moment: datetime) -> tuple[Any, ...]:
    [found] = ownership(reader, "clicks", partition, moment, group=group).holdings
    return found.member and found.member.member_id, found.away_since


def test_an_owner_that_left_for_now_is_said_to_be_away_from_then_on(reader: LedgerReader) -> None:
    assert owner(reader, "left", 0, at(left())) == ("m", at(left()))
    assert owner(reader, "left", 0, at(left(), 1)) == ("m", None)
    assert owner(reader, "left", 1, at(left())) == ("n", None)


def test_it_is_away_until_it_comes_back_or_its_session_ends(reader: LedgerReader) -> None:
    assert owner(reader, "back", 0, at(came_back(), 1)) == ("m", at(left()))
    assert owner(reader, "back", 0, at(came_back())) == ("m", None)
    assert owner(reader, "ended", 0, at(ended())) == ("n", None)


def test_the_members_of_the_last_state_are_marked(reader: LedgerReader) -> None:
    away = {
        group: {each.member_id for each in rebalance(reader, group).members if each.is_away}
        for group in ("left", "back", "ended")
    }
    assert away == {"left": {"m"}, "back": set(), "ended": set()}


def test_both_members_of_a_real_brokers_group_are_away_when_both_left(tmp_path: Path) -> None:
    rows = log_rows("edge/offsets")["st-java-new"]
    until = next(place for place, row in enumerate(rows) if row.offset == 66) + 1
    real = LedgerReader(ledger(tmp_path, {"st-java-new": rows[:until]}, topic_changes("edge")))
    assert [each.is_away for each in rebalance(real, "st-java-new").members] == [True, True]
    holdings = ownership(real, "clicks", 5, from_millis(rows[until - 1].timestamp_ms)).holdings
    assert [each.away_since for each in holdings] == [from_millis(1795268886623)]


def run(place: str, *words: str) -> str:
    ran = CliRunner(env={"COLUMNS": "120"}).invoke(main, [*words, "--ledger", place])
    assert ran.exit_code == 0, ran.stderr
    return ran.stdout


def test_the_commands_say_so(place: str) -> None:
    said = run(place, "who", "clicks-0", "--group", "left")
    assert "m (away)" in said
    assert (
        "note: i left for now at 1970-01-01T00:00:08.000Z (member epoch -2): m keeps its partitions, and nobody reads "
        "them until it comes back or its session ends"
    ) in said
    assert "m (away)" in run(place, "show", "--group", "left", "--generation", "2")
    assert "away" not in run(place, "who", "clicks-1", "--group", "left")
    assert "away" not in run(place, "show", "--group", "back", "--generation", "2")
