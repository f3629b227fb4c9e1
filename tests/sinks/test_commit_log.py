"""The table `runs` in a folder is read and written without Spark, beside writers that use Spark."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from groupledger.core.faults import Fault
from groupledger.sinks import append, attempts
from groupledger.sinks.attempts import FolderCommitLog, SparkCommitLog, itself
from groupledger.sinks.ledger_tables import check
from groupledger.tables import RUNS
from groupledger.tables import columns as c
from tests.answers.ledgers import write
from tests.sinks.test_ledger import ODD_FOLDERS
from tests.sinks.test_runs import NO_SESSION, OUTCOME, attempt, committed, folder_without_spark


@pytest.fixture
def place(new_ledger, tmp_path):
    return new_ledger(tmp_path / "ledger")


@pytest.fixture
def plain(tmp_path, monkeypatch):
    """A ledger of whose runs no session is asked anything."""
    return folder_without_spark(tmp_path, monkeypatch)


def folder_of(place):
    return Path(place.path, RUNS.name)


def by_spark(monkeypatch):
    """As an older version writes, which knows no other way."""
    monkeypatch.setattr(attempts, "plain_table", lambda *_: None)


def test_no_query_of_spark_is_run_for_a_run(spark, place):
    queries = spark._jsparkSession.sharedState().statusStore()
    before = queries.executionsCount()
    check(spark, place)
    first = attempt("run", "a")
    attempts.plan(spark, place, first)
    run = attempts.commit(spark, place, first, 0, OUTCOME)
    seen = attempts.read_commits(spark, place)
    assert (attempts.given_up(spark, place), seen.removed, seen.commits) == (set(), {}, (run,))
    assert queries.executionsCount() == before


@pytest.mark.parametrize("folder", ODD_FOLDERS)
def test_a_folder_may_have_any_name(spark, new_ledger, tmp_path, folder):
    location = new_ledger(tmp_path / folder)
    by_spark = SparkCommitLog(spark, location)  # delta-rs decodes a percent sign
    expected = by_spark if "%" in folder else FolderCommitLog(tmp_path / folder / RUNS.name)
    assert attempts.commit_log(spark, location) == expected
    attempts.commit(spark, location, attempt("run", "a"), 0, OUTCOME)
    assert committed(spark, location) == [(1, "run", "a")]


def test_spark_and_delta_rs_read_the_same_of_each_other_s_rows(spark, place, monkeypatch):
    first, second = attempt("run-1", "a-1", ("dev/log",)), attempt("run-2", "a-2", ("dev/log", "dev/topics"))
    attempts.plan(spark, place, first)
    attempts.commit(spark, place, first, 0, OUTCOME)
    with monkeypatch.context() as older:
        by_spark(older)
        attempts.plan(spark, place, second)
        attempts.commit(spark, place, second, 1, OUTCOME)
        told = attempts.read_commits(spark, place)
    assert attempts.read_commits(spark, place) == told
    assert [run.run_id for run in told.commits] == ["run-1", "run-2"]


def test_writers_of_both_kinds_count_one_after_another(spark, place):
    """An older version's MERGE takes the same lock."""

    def numbers(log, names):
        for name in names:
            number = 1
            while not log.compare_and_set(attempts.committed_row(attempt(name, name), number, OUTCOME)):
                number = attempts.read_commits(spark, place).sequence + 1
            yield number

    older = SparkCommitLog(spark, place), ("a", "b", "c")
    newer = FolderCommitLog(folder_of(place)), ("d", "e", "f", "g", "h")
    with ThreadPoolExecutor(2) as pool:
        told = list(pool.map(lambda way: list(numbers(*way)), (older, newer)))
    assert sorted(number for numbers in told for number in numbers) == list(range(1, 9))
    assert [row[0] for row in committed(spark, place)] == list(range(1, 9))


def test_a_commit_that_takes_no_lock_is_not_written_over(plain, monkeypatch):
    log = FolderCommitLog(folder_of(plain))
    attempts.commit(NO_SESSION, plain, attempt("other", "a-0"), 0, OUTCOME)
    mine = attempts.committed_row(attempt("run", "a"), 2, OUTCOME)

    def overtaken(row, other):
        assert (row[c.RUN_ID], other[c.RUN_ID]) == ("run", "other")
        rows = DeltaTable(str(folder_of(plain))).to_pyarrow_table()
        write_deltalake(str(folder_of(plain)), rows, mode="append")
        return False

    with monkeypatch.context() as patched:
        patched.setattr(attempts, "bars", overtaken)
        assert log.compare_and_set(mine) is False
    assert [row[c.RUN_ID] for row in log.read(itself, attempts.COMMITTED)] == ["other", "other"]
    assert log.compare_and_set(mine) is True


ENDED = [
    pytest.param(("a", 2, "run"), ("a", None, "run"), (True, True), id="given up"),
    pytest.param(("a", 2, "run"), ("b", 2, "other"), (True, False), id="number taken"),
    pytest.param(("a", 2, "run"), ("b", 1, "run"), (True, False), id="run committed"),
    pytest.param(("a", 2, "run"), ("b", 1, "other"), (False, False), id="another run before"),
    pytest.param(("a", 2, "run"), ("b", None, "run"), (False, False), id="another attempt given up"),
]


def kept_out_of(log, mine, other):
    """Whether the log does not take the new row, beside the other one."""

    def ended(attempt_id, sequence, run_id):
        row = attempts.committed_row(attempt(run_id, attempt_id), sequence or 0, OUTCOME)
        return row if sequence else row | {c.STATUS: attempts.GIVEN_UP, c.SEQUENCE: None}

    log.append(ended(*other))
    return not log.compare_and_set(ended(*mine))


def both(mine):
    """The new row, and the same as given up."""
    return mine, (mine[0], None, mine[2])


@pytest.mark.parametrize(("mine", "other", "kept_out"), ENDED)
def test_rows_are_kept_out(tmp_path, mine, other, kept_out):
    folders = [Path(write(tmp_path / str(number), runs=[]), RUNS.name) for number in range(2)]
    found = [kept_out_of(FolderCommitLog(folder), new, other) for folder, new in zip(folders, both(mine), strict=True)]
    assert tuple(found) == kept_out


@pytest.mark.parametrize(("mine", "other", "kept_out"), ENDED)
def test_spark_keeps_the_same_rows_out(spark, new_ledger, tmp_path, mine, other, kept_out):
    places = [new_ledger(tmp_path / str(number)) for number in range(2)]
    found = [kept_out_of(SparkCommitLog(spark, at), new, other) for at, new in zip(places, both(mine), strict=True)]
    assert tuple(found) == kept_out


def test_files_of_many_commits_are_made_one(plain, monkeypatch):
    monkeypatch.setattr(attempts, "MOST_FILES", 3)
    for number in range(1, 6):
        one = attempt(f"run-{number}", f"a-{number}")
        attempts.plan(NO_SESSION, plain, one)
        attempts.commit(NO_SESSION, plain, one, number - 1, OUTCOME)
    assert len(DeltaTable(str(folder_of(plain))).file_uris()) == 4, "of each status one of four, and one"
    planned = FolderCommitLog(folder_of(plain)).read(itself, attempts.PLANNED)
    assert sorted(row[c.RUN_ID] for row in planned) == [f"run-{number}" for number in range(1, 6)]
    assert committed(NO_SESSION, plain) == [(number, f"run-{number}", f"a-{number}") for number in range(1, 6)]
    assert [run.sequence for run in attempts.read_commits(NO_SESSION, plain).commits] == [1, 2, 3, 4, 5]


def test_a_file_of_rows_is_read_once_and_again_where_it_was_changed(plain, monkeypatch):
    opened: list[Path] = []
    opening = parquet.ParquetFile

    def noted(path, **how):
        opened.append(path)
        return opening(path, **how)

    monkeypatch.setattr(parquet, "ParquetFile", noted)
    first = attempts.commit(NO_SESSION, plain, attempt("run-1", "a-1"), 0, OUTCOME)
    assert (
        attempts.read_commits(NO_SESSION, plain).commits == attempts.read_commits(NO_SESSION, plain).commits == (first,)
    )
    [file] = opened
    second = attempts.commit(NO_SESSION, plain, attempt("run-2", "a-2"), 1, OUTCOME)
    assert attempts.read_commits(NO_SESSION, plain).commits == (first, second)
    assert [path == file for path in opened] == [True, False]
    file.write_bytes(b"PAR1")
    with pytest.raises(Fault, match="table runs is damaged"):
        attempts.read_commits(NO_SESSION, plain)


def killed(*_, **__):
    raise KeyboardInterrupt


def test_what_a_commit_left_that_was_killed_before_its_entry_harms_nobody(plain, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_write_transaction", killed)
        with pytest.raises(KeyboardInterrupt):
            attempts.commit(NO_SESSION, plain, attempt("run", "a"), 0, OUTCOME)
    log = folder_of(plain) / "_delta_log"
    (log / "00000000000000000001.json#1").write_text('{"add', encoding="ascii")
    assert list(folder_of(plain).glob("*/*.parquet"))
    assert attempts.read_commits(NO_SESSION, plain).commits == ()
    assert attempts.commit(NO_SESSION, plain, attempt("run", "a"), 0, OUTCOME).sequence == 1
    assert committed(NO_SESSION, plain) == [(1, "run", "a")]


def test_a_table_with_features_that_delta_rs_may_not_know_is_left_to_spark(spark, place):
    name = place.identifier(RUNS)
    append.run(spark, place, RUNS, f"ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert attempts.commit_log(spark, place) == SparkCommitLog(spark, place)
    attempts.commit(spark, place, attempt("run", "a"), 0, OUTCOME)
    assert committed(spark, place) == [(1, "run", "a")]


@pytest.mark.parametrize("damage", ["a byte", "all but the beginning"])
def test_a_damaged_file_is_told_by_its_table(plain, damage):
    attempts.commit(NO_SESSION, plain, attempt("run", "a"), 0, OUTCOME)
    (file,) = folder_of(plain).glob("*/*.parquet")
    content = bytearray(file.read_bytes())
    content[content.index(b"run")] ^= 1  # in a page of text: it would be read as another text
    file.write_bytes(content if damage == "a byte" else content[:4])
    with pytest.raises(Fault, match="table runs is damaged") as caught:
        attempts.read_commits(NO_SESSION, plain)
    assert caught.value.code == "LEDGER_DAMAGED"


def test_a_folder_that_cannot_be_written_is_told(plain):
    (folder_of(plain) / "status=committed").write_text("in the way", encoding="ascii")
    with pytest.raises(Fault, match="the ledger cannot be written") as caught:
        attempts.commit(NO_SESSION, plain, attempt("run", "a"), 0, OUTCOME)
    assert caught.value.code == "LEDGER_UNWRITABLE"


def test_int96_times_of_older_ledgers_are_utc(tmp_path, monkeypatch):
    """Spark's int96 has no time zone: taken for local time, each run would be hours off."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    at = datetime(2026, 11, 21, 12, 8, 31, 515_000, UTC)
    row = pa.table({c.RUN_ID: ["r"], c.FINISHED_AT: pa.array([at], pa.timestamp("us", "UTC"))})
    parquet.write_table(row, tmp_path / "runs.parquet", use_deprecated_int96_timestamps=True)
    [read] = attempts._rows_of_file(attempts._DataFile(tmp_path / "runs.parquet", attempts.COMMITTED, (0, 0, 0)))
    assert (read[c.RUN_ID], read[c.FINISHED_AT]) == ("r", at)
