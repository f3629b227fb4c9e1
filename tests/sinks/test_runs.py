"""One attempt of a run counts, whatever happens beside it."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from groupledger.core.faults import Fault
from groupledger.sinks import attempts
from groupledger.sinks.attempts import Attempt, FolderCommitLog, Outcome, SparkCommitLog, WriteConflict
from groupledger.sinks.ledger_tables import LedgerLocation, ddl
from groupledger.tables import RUNS
from groupledger.tables import columns as c
from tests.answers.ledgers import write

START = datetime(2026, 11, 21, 14, 3, tzinfo=UTC)
OUTCOME = Outcome({"records": 7}, {"assignments": 3}, "digest", "done", START)


def attempt(run_id, attempt_id, guards=(), kind="ingest"):
    return Attempt(run_id, attempt_id, kind, {"ends": {"0": 7}}, "config", "code", START, guards=guards)


NO_SESSION: Any = None
"""What is asked of runs in a folder asks no session: see `folder_without_spark`."""
CATALOG = pytest.param("catalog", marks=pytest.mark.spark)


@pytest.fixture(params=["folder", CATALOG])
def place(request, tmp_path, monkeypatch):
    """A ledger whose runs delta-rs reads and writes, for which no session is started, and one whose runs Spark does."""
    if request.param == "folder":
        yield folder_without_spark(tmp_path, monkeypatch)
        return
    spark = request.getfixturevalue("spark")
    spark.sql("CREATE SCHEMA runs_of_tests")
    location = LedgerLocation(catalog="spark_catalog.runs_of_tests")
    spark.sql(ddl(location, RUNS))
    yield location
    spark.sql("DROP SCHEMA runs_of_tests CASCADE")


def folder_without_spark(tmp_path, monkeypatch):
    """A ledger in a folder; that its log is such a one, test_commit_log.py holds with a session."""
    folder = write(tmp_path / "ledger", runs=[])
    monkeypatch.setattr(attempts, "commit_log", lambda *_: FolderCommitLog(Path(folder, RUNS.name)))
    return LedgerLocation(path=folder)


@pytest.fixture
def engine(request, place):
    """The session, if the ledger's runs need one."""
    return NO_SESSION if place.catalog is None else request.getfixturevalue("spark")


rule = pytest.mark.parametrize(
    "place", ["folder", pytest.param("catalog", marks=[pytest.mark.long, pytest.mark.spark])], indirect=True
)
"""What is decided is the same code for both; how each reads and writes is shown by the tests without this."""


def stored(engine, place):
    """Every row, by its status."""
    if engine is NO_SESSION:
        rows = DeltaTable(f"{place.path}/{RUNS.name}").to_pyarrow_table().to_pylist()
    else:
        rows = [row.asDict() for row in place.rows(engine, RUNS).collect()]
    return sorted(rows, key=itemgetter(c.STATUS))


def committed(engine, place):
    rows = [row for row in stored(engine, place) if row[c.STATUS] == attempts.COMMITTED]
    return sorted((row[c.SEQUENCE], row[c.RUN_ID], row[c.ATTEMPT_ID]) for row in rows)


def test_a_run_is_planned_then_committed_then_read_back(engine, place):
    first = attempt("run-1", "a-1", guards=("dev/log",))
    seen = attempts.read_commits(engine, place)
    assert (seen.sequence, seen.commits, seen.run("run-1"), seen.last("dev/log")) == (0, (), None, None)
    attempts.plan(engine, place, first)
    assert attempts.read_commits(engine, place) == seen, "a plan does not count"
    run = attempts.commit(engine, place, first, seen.sequence, OUTCOME)
    later = attempts.read_commits(engine, place)
    assert (later.sequence, later.run("run-1")) == (1, run)
    assert later.last("dev/log") == later.commits[0] == run
    assert later.last("dev") is None
    assert later.run("run") is None
    assert (run.sequence, run.inputs, run.counts_in, run.guards) == (
        1,
        {"ends": {"0": 7}},
        {"records": 7},
        ("dev/log",),
    )
    ended, planned = stored(engine, place)
    assert (ended[c.STATUS], planned[c.STATUS]) == ("committed", "planned")
    assert ended[c.STARTED_AT].timestamp() == START.timestamp()


@rule
def test_a_committed_run_stays_as_it_is(engine, place):
    first = attempts.commit(engine, place, attempt("run-1", "a-1"), 0, OUTCOME)
    for since in (0, 1):
        again = attempts.commit(engine, place, attempt("run-1", "a-2"), since, replace(OUTCOME, result_digest="other"))
        assert again == first
    assert committed(engine, place) == [(1, "run-1", "a-1")]


@rule
def test_a_run_id_is_of_one_command(engine, place):
    attempts.commit(engine, place, attempt("airflow-7", "a-1", kind="ingest"), 0, OUTCOME)
    mine = attempt("airflow-7", "a-2", kind="assign")
    words = "run id 'airflow-7' is that of a committed run of ingest; .* for assign, such as 'assign-airflow-7'"
    with pytest.raises(Fault, match=words) as caught:
        attempts.counted(attempts.read_commits(engine, place), mine)
    assert caught.value.code == "RUN_ID_TAKEN"
    with pytest.raises(Fault, match=words):  # the name was taken while this one was at work
        attempts.commit(engine, place, mine, 0, OUTCOME)
    assert committed(engine, place) == [(1, "airflow-7", "a-1")]


@rule
def test_commits_are_numbered_in_their_order(engine, place):
    for number in range(1, 4):
        assert attempts.commit(engine, place, attempt(f"run-{number}", f"a-{number}"), 0, OUTCOME).sequence == number
    assert committed(engine, place) == [(number, f"run-{number}", f"a-{number}") for number in range(1, 4)]


GUARDED = [
    pytest.param(("dev/log",), ("dev/log",), True, id="same source"),
    pytest.param(("dev/log",), ("dev/topics", "dev/log"), True, id="one source of two"),
    pytest.param(("dev/log",), ("prod/log",), False, id="another cluster"),
    pytest.param((), ("dev/log",), False, id="no guard"),
]


@rule
@pytest.mark.parametrize(("mine", "theirs", "conflict"), GUARDED)
def test_two_attempts_that_share_a_guard_do_not_both_count(engine, place, mine, theirs, conflict):
    seen = attempts.read_commits(engine, place)
    attempts.commit(engine, place, attempt("theirs", "a-theirs", theirs), 0, OUTCOME)
    if conflict:
        with pytest.raises(WriteConflict, match="read dev/log as of commit 0, and run 'theirs'") as caught:
            attempts.commit(engine, place, attempt("mine", "a-mine", mine), seen.sequence, OUTCOME)
        assert caught.value.code == "WRITE_CONFLICT"
        assert isinstance(caught.value, Fault)
    else:
        assert attempts.commit(engine, place, attempt("mine", "a-mine", mine), seen.sequence, OUTCOME).sequence == 2
    assert len(committed(engine, place)) == 2 - conflict


def race(engine, place, several):
    def one(mine):
        try:
            return attempts.commit(engine, place, mine, 0, OUTCOME)
        except WriteConflict as conflict:
            return conflict

    with ThreadPoolExecutor(len(several)) as pool:
        return list(pool.map(one, several))


def test_of_attempts_of_one_run_at_once_one_counts_and_all_learn_which(engine, place):
    results = race(engine, place, [attempt("run", f"a-{number}", ("dev/log",)) for number in range(4)])
    [(sequence, _, winner)] = committed(engine, place)
    assert sequence == 1
    assert {run.attempt_id for run in results} == {winner}


@rule
def test_of_ingests_from_the_same_offsets_at_once_one_counts(engine, place):
    results = race(engine, place, [attempt(f"run-{number}", f"a-{number}", ("dev/log",)) for number in range(3)])
    assert sorted(isinstance(result, WriteConflict) for result in results) == [False, True, True]
    assert len(committed(engine, place)) == 1


@rule
def test_runs_that_do_not_concern_each_other_all_count(engine, place):
    results = race(engine, place, [attempt(f"run-{number}", f"a-{number}", kind="assign") for number in range(4)])
    assert sorted(run.sequence for run in results) == [1, 2, 3, 4]
    assert [row[0] for row in committed(engine, place)] == [1, 2, 3, 4]


@rule
def test_who_is_overtaken_for_ever_gives_up(engine, place, monkeypatch):
    for kind in (FolderCommitLog, SparkCommitLog):
        monkeypatch.setattr(kind, "compare_and_set", lambda *_: False)
    with pytest.raises(WriteConflict, match="10 other commits"):
        attempts.commit(engine, place, attempt("run", "a"), 0, OUTCOME)


HOSTILE = [
    "it's",
    "`; DROP TABLE x; --",
    "\\' OR 1=1 --",
    "{view}",
    ":name",
    "\u00fc\u2028\U0001f600",
    "a" * 10_000,
    "n\nl",
]


def test_no_value_is_taken_for_sql(engine, place):
    texts = tuple(HOSTILE)
    for number, text in enumerate(("'`\\;--", "{view} :name"), start=1):
        mine = replace(attempt(text, text, texts, kind=text), inputs=dict.fromkeys(texts, texts[0]))
        outcome = replace(OUTCOME, counts_in=dict.fromkeys(texts, 1), verdict="".join(texts))
        run = attempts.commit(engine, place, mine, number - 1, outcome)
        seen = attempts.read_commits(engine, place)
        assert (seen.sequence, seen.run(text)) == (number, run)
        assert [seen.last(guard) for guard in texts] == [run] * len(texts)


def test_any_other_failure_is_told_as_it_is(spark, tmp_path):
    with pytest.raises(Exception, match="runs") as caught:
        attempts.commit(spark, LedgerLocation(path=str(tmp_path)), attempt("run", "a"), 0, OUTCOME)
    assert not isinstance(caught.value, WriteConflict)
