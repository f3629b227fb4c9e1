"""Maintain removes what counts for nobody, and nothing else, whatever jobs do beside it."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from groupledger import tables
from groupledger.config import Config, LedgerSettings, MaintainSettings, RetentionSettings
from groupledger.pipeline import ingest as ingesting
from groupledger.pipeline.doctor import soundness
from groupledger.pipeline.invocation import Invocation
from groupledger.pipeline.maintain import maintain
from groupledger.pipeline.rebuild import rebuild
from groupledger.sinks import append as appending
from groupledger.sinks import attempts
from groupledger.sinks.attempts import WriteConflict
from tests.pipeline.ledgers import invocation
from tests.pipeline.test_ingest import LINES, TOPICS, facts

BEGAN = datetime(2026, 11, 21, tzinfo=UTC)
FEW = LINES[:160]


class Killed(Exception):
    """Where a process would have died."""


TOUCHED = (tables.TOPIC_SNAPSHOTS, tables.LOG_RECORDS, tables.GROUP_SNAPSHOTS, tables.MEMBER_SNAPSHOTS, tables.RUNS)


def upkeep(space, hours=1, attempt_id="keeper", of=(tables.TOPIC_SNAPSHOTS,), **settings):
    """A maintain so many hours after every attempt of the tests began."""
    config = Config(
        cluster_id="edge",
        ledger=LedgerSettings(location=space.location.path),
        maintain=MaintainSettings(attempt_hours=24, **settings),
    )
    moment = BEGAN + timedelta(hours=hours)
    invocation = Invocation(attempt_id=attempt_id, now=lambda: moment, seconds=lambda: 0.0)
    return maintain(space.spark, space.location, config, invocation, of)


def killed_ingest(space, monkeypatch, *sources):
    """An ingest that writes all its rows and dies before its commit."""

    def die(*_):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(attempts, "commit", die)
        with pytest.raises(Killed):
            space.ingest(*sources)


def stored(space):
    """Rows of every table, those that count for nobody too."""
    return {table.name: space.location.rows(space.spark, table).count() for table in tables.TABLES}


@pytest.mark.long
def test_rows_of_dead_attempts_go_and_those_of_the_living_stay(workspace, monkeypatch):
    log = workspace.source("log.jsonl", FEW)
    workspace.ingest(TOPICS, log, run_id="counts")
    before, alone = facts(workspace), stored(workspace)
    killed_ingest(workspace, monkeypatch, TOPICS, workspace.source("more.jsonl", LINES[:200]))
    crowded = stored(workspace)
    early = upkeep(workspace, hours=1)
    assert (early.given_up, early.rows_removed) == (0, 0)
    assert stored(workspace) == crowded
    late = upkeep(workspace, hours=25, of=tables.TABLES)
    left = stored(workspace)
    assert late.given_up == 1
    assert late.rows_removed == sum(crowded[name] - alone[name] for name in alone if name != "runs") > 0
    assert {name: count for name, count in left.items() if name != "runs"} == {
        name: count for name, count in alone.items() if name != "runs"
    }
    assert facts(workspace) == before
    assert max(each.after.files for each in late.tables) <= 4


@pytest.mark.long
def test_a_maintain_at_any_boundary_of_a_run_changes_nothing(workspace, monkeypatch, new_workspace):
    undisturbed = new_workspace("undisturbed")
    undisturbed.ingest(TOPICS, undisturbed.source("log.jsonl", FEW))
    kept, written = [], []
    append = appending.append

    def append_then_maintain(location, table, *rest):
        if len(written) in (0, 1):
            kept.append(upkeep(workspace, of=TOUCHED))
        written.append(table.name)
        return append(location, table, *rest)

    commit = attempts.commit

    def maintain_then_commit(*arguments):
        kept.append(upkeep(workspace, of=TOUCHED))
        return commit(*arguments)

    monkeypatch.setattr(ingesting, "append", append_then_maintain)
    monkeypatch.setattr(attempts, "commit", maintain_then_commit)
    summary = workspace.ingest(TOPICS, workspace.source("log.jsonl", FEW))
    assert len(kept) == 3
    assert summary.run.verdict == "done"
    assert facts(workspace) == facts(undisturbed)


@pytest.mark.long
def test_an_attempt_that_is_given_up_while_it_lives_cannot_commit(workspace, monkeypatch):
    commit = attempts.commit

    def maintain_then_commit(*arguments):
        assert upkeep(workspace, hours=25).given_up == 1
        return commit(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(attempts, "commit", maintain_then_commit)
        with pytest.raises(WriteConflict, match=r"was given up by `groupledger maintain`.*run it again"):
            workspace.ingest(TOPICS, run_id="slow")
    assert stored(workspace)["topic_snapshots"] == 0
    assert not workspace.ingest(TOPICS, run_id="slow").already_committed


@pytest.mark.long
def test_an_attempt_that_committed_is_not_given_up(workspace):
    workspace.ingest(TOPICS)
    assert attempts.give_up(workspace.spark, workspace.location, BEGAN + timedelta(days=400), BEGAN) == 0
    assert attempts.given_up(workspace.spark, workspace.location) == set()


@pytest.mark.long
def test_of_two_maintains_one_is_told_to_come_back(workspace, monkeypatch):
    def second(*_):
        with pytest.raises(WriteConflict, match=r"another maintain is at work .attempt keeper holds it until") as told:
            upkeep(workspace, attempt_id="second")
        assert told.value.code == "WRITE_CONFLICT"
        over = upkeep(workspace, hours=3, attempt_id="third")
        assert over.attempt_id == "third", "a lease ends by itself"
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(attempts, "give_up", lambda *_: patched.undo() or second())
        with pytest.raises(Killed):
            upkeep(workspace)
    assert upkeep(workspace, attempt_id="fourth").attempt_id == "fourth", "a lease is given back"


@pytest.mark.long
def test_what_a_killed_writer_left_is_vacuumed_once_it_is_old(workspace):
    workspace.ingest(TOPICS)
    folder = Path(workspace.location.path, "topic_snapshots")
    real, *_ = sorted(folder.glob("*.parquet"))
    orphan, young = folder / "part-orphan.parquet", folder / "part-young.parquet"
    for file in (orphan, young):
        file.write_bytes(real.read_bytes())
    week = timedelta(days=8).total_seconds()
    os.utime(orphan, (orphan.stat().st_mtime - week,) * 2)
    rows = workspace.rows(tables.TOPIC_SNAPSHOTS)
    upkeep(workspace)
    assert (orphan.exists(), young.exists(), real.exists()) == (False, True, True)
    assert workspace.rows(tables.TOPIC_SNAPSHOTS) == rows


@pytest.mark.long
def test_records_past_their_retention_go_and_are_not_taken_again(workspace):
    """Facts stay, the doctor can account for what is gone, and a record of before is no news."""
    log = workspace.source("log.jsonl", FEW)
    workspace.ingest(TOPICS, log, run_id="first")
    before = facts(workspace)
    kept = (RetentionSettings(table="log_records", days=2),)
    assert upkeep(workspace, hours=40, of=(tables.LOG_RECORDS,), retention=kept).rows_removed == 0
    gone = upkeep(workspace, hours=49, of=(tables.LOG_RECORDS,), retention=kept)
    assert gone.rows_removed == len(FEW)
    assert facts(workspace) == before
    assert [check for check in soundness(workspace.spark, workspace.location) if not check.ok] == []
    config = Config(cluster_id="edge", ledger=LedgerSettings(location=workspace.location.path))
    assert rebuild(workspace.spark, workspace.location, config, invocation()).remade == (), "and none is made again"
    again = workspace.ingest(log, run_id="again")
    [account] = again.accounts
    assert (account.records, account.duplicates) == (len(FEW), len(FEW))
    assert facts(workspace) == before
    more = workspace.ingest(workspace.source("all.jsonl", LINES[:200]), run_id="more")
    [account] = more.accounts
    assert account.duplicates == len([line for line in LINES[:200] if forgotten_by(line, FEW)])
    assert account.balanced


def forgotten_by(line, gone):
    """Whether a record lies at or before the last that was removed of its log partition."""
    partition, at = json.loads(line)["partition"], json.loads(line)["offset"]
    ends = [json.loads(each)["offset"] for each in gone if json.loads(each)["partition"] == partition]
    return bool(ends) and at <= max(ends)
