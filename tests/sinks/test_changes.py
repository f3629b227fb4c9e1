"""Writers of one table take turns on a local path, and there is one way to write."""

import ast
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

import pytest

from groupledger.sinks import append, location
from groupledger.sinks.ledger_tables import LedgerLocation, ddl, init
from groupledger.sinks.location import FOLDER, LedgerRefusal, WriteConflict, local_folder
from groupledger.tables import QUARANTINE, RUNS, TABLES

SOURCE = Path(append.__file__).parents[1]
WRITERS = {"writeTo", "saveAsTable", "insertInto", "forPath", "forName", "optimize"}
WRITERS |= {"create_write_transaction", "startTransaction"}
READING = ("DESCRIBE ", "SHOW ", "SELECT ", "CREATE SCHEMA ", "VACUUM ")
"""Commands that make no commit; a VACUUM would, were it logged."""
HOLDER = "import fcntl, sys; f = open(sys.argv[1], 'a'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"


def unlocked(text):
    """Calls in a module's source that may commit without the lock, and commands that are handed on to be run."""
    tree = ast.parse(text)
    calls = {id(node.func): node for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            call = calls.get(id(node))
            saved = node.attr == "save" and "delta" in ast.unparse(node)
            command = node.attr == "sql" and ast.unparse(node.value).endswith("spark")
            if node.attr in WRITERS or saved or (command and not _first_words(call).startswith(READING)):
                yield ast.unparse(node)


def _first_words(call):
    """How the text of a command begins; empty where it is made elsewhere."""
    first = call.args[0] if call and call.args else None
    first = first.values[0] if isinstance(first, ast.JoinedStr) else first
    return str(first.value) if isinstance(first, ast.Constant) else ""


APART = ("append.py", "archive.py", "frames.py")
"""The module itself; one that writes a table of its own; and queries of users, of which only those that read are run
(`test_what_is_no_query_is_refused_by_spark_s_reader_too`), and views, which are no tables."""


def test_nothing_but_one_module_changes_a_table():
    modules = [path for path in SOURCE.rglob("*.py") if path.name not in APART]
    found = {path.name: calls for path in modules if (calls := list(unlocked(path.read_text(encoding="utf-8"))))}
    assert len(modules) > 200
    assert found == {}, "go through sinks.append: on a local path a commit needs the table's lock"
    assert len(list(unlocked(Path(append.__file__).read_text(encoding="utf-8")))) == 6


@pytest.mark.parametrize(
    "text",
    [
        "spark.sql(f'DELETE FROM {name}')",
        "spark.sql(command)",
        "partial(spark.sql, command)",
        "rows.writeTo(name).append()",
        "rows.write.format('delta').mode('append').save(path)",
        "rows.write.insertInto(name)",
        "table.create_write_transaction(actions, 'append', schema)",
        "DeltaTable(place).optimize.compact()",
        "log.startTransaction().commit(added, operation)",
    ],
)
def test_a_way_around_the_lock_is_seen(text):
    assert list(unlocked(text))


def test_what_commits_nothing_needs_no_lock():
    assert list(unlocked("spark.sql(f'VACUUM {name} RETAIN 168 HOURS')\nspark.sql('DESCRIBE DETAIL x')")) == []


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("file:/data/ledger", "/data/ledger"),
        ("file:///data/led ger#?%20", "/data/led ger#?%20"),
        ("file://host/data", None),
        ("s3a://bucket/ledger", None),
        ("hdfs:/ledger", None),
        ("a:b/ledger", None),
        ("/data", None),
    ],
)
def test_which_folder_of_this_machine_a_url_names(url, folder):
    assert local_folder(url) == (folder and Path(folder))


class Configured:
    """As much of a session as says where plain paths lie."""

    _jvm = object()

    def __init__(self, default):
        self._jsc = SimpleNamespace(hadoopConfiguration=lambda: {"fs.defaultFS": default})


@pytest.mark.parametrize(
    ("path", "default", "url"),
    [
        ("/data/ledger", "file:///", "file:/data/ledger/runs"),
        ("/data/ledger/", None, "file:/data/ledger/runs"),
        ("ledger", "file:///", f"file:{Path('ledger').absolute()}/runs"),
        ("/data/ledger", "hdfs://name:8020", "hdfs:/data/ledger/runs"),
        ("file:///data/ledger", "hdfs://name:8020", "file:///data/ledger/runs"),
        ("s3a://bucket/ledger", "file:///", "s3a://bucket/ledger/runs"),
    ],
)
def test_a_plain_path_lies_on_the_default_file_system(path, default, url):
    assert append.table_url(cast(Any, Configured(default)), LedgerLocation(path=path), RUNS) == url


def test_where_a_connect_server_has_its_files_is_not_known():
    assert append.table_url(cast(Any, SimpleNamespace()), LedgerLocation(path="/data/ledger"), RUNS) is None


@pytest.fixture
def place(spark, tmp_path):
    return LedgerLocation(path=str(tmp_path / "ledger"))


def table_folder(spark, location, table):
    return local_folder(append.table_url(spark, location, table))


@pytest.mark.parametrize("path", ["{}", "file:{}", "file://{}"])
def test_a_path_is_locked_however_it_is_given(spark, tmp_path, path):
    location = LedgerLocation(path=path.format(tmp_path / "a ledger"))
    assert table_folder(spark, location, RUNS) == tmp_path / "a ledger" / "runs"
    append.run(spark, location, RUNS, ddl(location, RUNS))
    assert (tmp_path / "a ledger" / FOLDER / "runs.lock").is_file()
    assert (tmp_path / "a ledger" / "runs" / "_delta_log").is_dir()


def test_another_store_has_no_lock(spark):
    url = append.table_url(spark, LedgerLocation(path="s3a://bucket/ledger/"), RUNS)
    assert (url, local_folder(url)) == ("s3a://bucket/ledger/runs", None)


def held_elsewhere(folder):
    """Another process that holds the lock of a table until it is killed."""
    file = folder.parent / FOLDER / f"{folder.name}.lock"
    file.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.stdout.readline()
    return process


def test_a_writer_waits_for_another_process_and_gives_up(spark, place):
    folder = table_folder(spark, place, RUNS)
    other = held_elsewhere(folder)
    try:
        with (
            pytest.raises(WriteConflict, match="writer of table runs has been at work for 0 s"),
            location.table_lock(spark, folder, 0.2),
        ):
            pytest.fail("two processes hold one lock")
    finally:
        other.kill()
        other.communicate()
    with location.table_lock(spark, folder, 60):
        pass


def test_a_killed_holder_lets_the_next_one_in(spark, place):
    folder = table_folder(spark, place, RUNS)
    other = held_elsewhere(folder)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(_enter, spark, folder)
        other.kill()
        other.communicate()
        assert waiting.result(timeout=60)


def _enter(spark, folder):
    with location.table_lock(spark, folder):
        return True


def test_the_jvm_holds_the_lock_and_lets_it_go(spark, place):
    """Not Python: a JVM outlives its Python, and may commit meanwhile."""
    folder = table_folder(spark, place, QUARANTINE)
    with location.table_lock(spark, folder):
        holder = _holder(folder)
    assert holder == int(spark._jvm.java.lang.ProcessHandle.current().pid())
    assert _holder(folder) is None


def _holder(folder):
    """The process that holds a table's lock, as /proc/locks has it."""
    number = (folder.parent / FOLDER / f"{folder.name}.lock").stat().st_ino
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        words = line.split()
        if words[1] == "POSIX" and words[5].endswith(f":{number}"):
            return int(words[4])
    return None


def test_this_process_holds_the_lock_of_what_it_commits_itself(spark, place):
    """Not the JVM: a commit by delta-rs ends with Python."""
    folder = table_folder(spark, place, QUARANTINE)
    with location.table_lock(None, folder):
        assert _holder(folder) == os.getpid()
        with pytest.raises(WriteConflict), location.table_lock(spark, folder, 0.1):
            pytest.fail("two hold one lock")
    assert _holder(folder) is None
    other = held_elsewhere(folder)
    try:
        with pytest.raises(WriteConflict), location.table_lock(None, folder, 0.1):
            pytest.fail("two processes hold one lock")
    finally:
        other.kill()
        other.communicate()


def test_threads_of_one_session_take_turns(spark, place):
    folder = table_folder(spark, place, RUNS)
    inside, leave = Event(), Event()

    def hold():
        with location.table_lock(spark, folder):
            inside.set()
            assert leave.wait(60)

    with ThreadPoolExecutor(1) as pool:
        holding = pool.submit(hold)
        assert inside.wait(60)
        with pytest.raises(WriteConflict), location.table_lock(spark, folder, 0.1):
            pytest.fail("two threads hold one lock")
        leave.set()
        holding.result()
    assert _enter(spark, folder)


def test_an_interrupted_command_keeps_its_lock_for_a_while(spark, place, monkeypatch):
    """In the JVM it may still be at its commit."""
    monkeypatch.setattr(location, "LINGER_SECONDS", 0.3)
    folder = table_folder(spark, place, RUNS)
    with pytest.raises(KeyboardInterrupt), location.table_lock(spark, folder):
        raise KeyboardInterrupt
    assert _holder(folder) is not None
    assert _enter(spark, folder)


def test_a_ledger_that_was_removed_and_made_again_has_another_lock(spark, place, monkeypatch):
    """The first file is locked, but it is no longer the one that others open."""
    folder = table_folder(spark, place, RUNS)
    file = folder.parent / FOLDER / "runs.lock"
    try_lock, tries = location._try_lock, []

    def replaced(opened):
        tries.append(file)
        if len(tries) == 1:
            file.unlink()
            file.touch()
        return try_lock(opened)

    monkeypatch.setattr(location, "_try_lock", replaced)
    with location.table_lock(spark, folder), file.open("a") as other:
        assert len(tries) == 2
        with pytest.raises(BlockingIOError):
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_file_that_cannot_be_made_is_named(spark, place):
    Path(place.path).mkdir()
    Path(place.path, FOLDER).write_text("in the way", encoding="ascii")
    with pytest.raises(LedgerRefusal, match=r"LEDGER_UNWRITABLE|lock file .*_locks/.*\.lock cannot be opened"):
        init(spark, place)


def test_lock_files_can_be_written_by_whoever_may_write_the_ledger(spark, place):
    Path(place.path).mkdir()
    Path(place.path).chmod(0o775)
    before = os.umask(0o077)
    try:
        assert _enter(spark, table_folder(spark, place, RUNS))
    finally:
        os.umask(before)
    folder = Path(place.path, FOLDER)
    assert (folder.stat().st_mode & 0o777, (folder / "runs.lock").stat().st_mode & 0o777) == (0o775, 0o664)


def test_tables_of_a_catalog_are_locked_beside_their_folders(spark):
    location = LedgerLocation(catalog="spark_catalog.locked_ledger")
    spark.sql("CREATE SCHEMA locked_ledger")
    try:
        before = table_folder(spark, location, RUNS)
        init(spark, location)
        after = table_folder(spark, location, RUNS)
        assert after == before
        assert {file.stem for file in (after.parent / FOLDER).iterdir()} == {table.name for table in TABLES}
    finally:
        spark.sql("DROP SCHEMA locked_ledger CASCADE")
