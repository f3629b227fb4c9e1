"""A group that committed offsets and never had a member, as consumers that assign partitions themselves leave it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from groupledger.answers.reader import LedgerReader
from groupledger.answers.timeline import timeline
from groupledger.cli.commands import main
from groupledger.core.faults import Fault
from tests.answers.captured import log_record_rows
from tests.answers.histories import History, listed, rows_of
from tests.answers.ledgers import COMMITTED, write
from tests.cli.test_quarantined_group import ASKED
from tests.core.history.records import Log

SAID = (
    "groupledger: group 'proxy' has no members in this ledger: it only committed offsets (2 records from "
    "1970-01-01T00:00:00.000Z to 1970-01-01T00:00:01.000Z), as consumers do that assign partitions themselves, or a "
    "group whose own records are not there [GROUP_WITHOUT_MEMBERS]\n"
)


def ledger(folder: Path, log: Log, **more: object) -> str:
    """A ledger of a group with members, and of one that has these records alone."""
    of = History("pay").state(1, "m a:0,1", complete=True)
    kept = list(log_record_rows("dev", log.group, log.rows))
    return str(write(folder, **rows_of(of, log_records=kept, topic_snapshots=[listed("a", 2)], **more)))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    log = Log("proxy")
    log.commit(0, 7)
    log.commit(0, None)
    return ledger(tmp_path_factory.mktemp("ledger"), log)


@pytest.mark.parametrize("words", ASKED, ids=" ".join)
def test_whatever_is_asked_says_that_there_are_commits_alone(place: str, words: list[str]) -> None:
    done = CliRunner().invoke(main, [*words, "--ledger", place], input='{"id": "x", "events": []}')
    assert (done.exit_code, done.stderr) == (2, SAID)


def test_other_records_are_no_commits(tmp_path: Path) -> None:
    log = Log("proxy")
    log.left("m")
    with pytest.raises(Fault, match="no group 'proxy' in this ledger; known: pay") as raised:
        timeline(LedgerReader(ledger(tmp_path, log)), "proxy")
    assert raised.value.code == "UNKNOWN_GROUP"


def test_commits_that_are_not_kept_are_said_to_be(tmp_path: Path) -> None:
    run = COMMITTED | {"counts_in": [("dev/unused.offset commit left out", 3)], "guards": ["dev/ingest"]}
    with pytest.raises(Fault) as raised:
        timeline(LedgerReader(ledger(tmp_path, Log(), runs=[run])), "proxy")
    assert raised.value.message == (
        "no group 'proxy' in this ledger; known: pay. Groups that only commit offsets are not kept here (a source's "
        "`offset_commits: true` keeps them)"
    )
