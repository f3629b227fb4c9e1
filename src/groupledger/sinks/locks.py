"""A lock between processes for the writers of one table, in ledgers on a local path.

Delta adds a version to a log on local files by a check and then a rename, so two JVMs can both believe that they wrote
it, and the work of one is lost. The lock is the kernel's, on `_locks/<table>.lock` beside the table's folder. The
process that makes the commit holds it. For a command of Spark's that is the driver's JVM, not Python: a JVM whose
Python was killed runs on for a second and may still commit. For a commit by delta-rs it is this process. The kernel
releases a lock when its holder ends, however it ends. No command holds two of them, so there is no deadlock.
"""

from __future__ import annotations

import fcntl
import logging
import os
import time
from collections import defaultdict
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedIOBase
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.sql import SparkSession

from groupledger.core.digest import digest
from groupledger.sinks.spark_errors import LedgerRefusal, WriteConflict

FOLDER = "_locks"
PATIENCE_SECONDS = 1_800.0
"""How long a command waits for other writers of its table; an OPTIMIZE of a large one may take minutes."""
LINGER_SECONDS = 60.0
"""How long the lock of an interrupted command is kept: the JVM may still be at its commit."""
_WARNING_SECONDS = 5.0
_SHORTEST_SECONDS, _LONGEST_SECONDS = 0.002, 0.1

_log = logging.getLogger(__name__)
_threads: defaultdict[Path, Lock] = defaultdict(Lock)
"""Keeps out other threads of this process, as the kernel's lock does not."""


@contextmanager
def table_lock(spark: SparkSession | None, folder: Path, patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold the lock of the table in this folder: the session's JVM does, or this process where there is none.

    Raises WriteConflict where others hold it for `patience` seconds, Refusal LEDGER_UNWRITABLE where the lock file
    cannot be opened.
    """
    held = _acquired(spark, _file(folder.parent, folder.name), f"writer of table {folder.name}", patience)
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        if spark is None:  # what was interrupted has ended
            held.close()
            raise
        timer = Timer(LINGER_SECONDS, held.close)
        timer.daemon = True
        timer.start()
        raise
    except BaseException:
        held.close()
        raise
    held.close()


@contextmanager
def turn(ledger: Path, inputs: Collection[str], patience: float = PATIENCE_SECONDS) -> Iterator[None]:
    """Hold this process's turn to ingest these inputs into the ledger in this folder.

    Two ingests of one cluster side by side rest on the same offsets: the second one to commit has worked for nothing.
    Beside a follower, whose next ingest begins at once, that is always the same one. So a turn is taken in order of
    arrival: a process that waits holds the queue, which the follower needs for its next turn, too. It is a courtesy;
    what counts is decided by the compare-and-set of the commit. Raises as `table_lock`.
    """
    with ExitStack() as held:
        for each in sorted(inputs):  # in one order, so that two processes never wait for each other
            what, name = f"ingest of {each}", f"ingest-{digest(each)[:16]}"
            with _acquired(None, _file(ledger, f"{name}.queue"), what, patience):
                held.enter_context(_acquired(None, _file(ledger, name), what, patience))
        yield


def _file(ledger: Path, name: str) -> Path:
    return ledger / FOLDER / f"{name}.lock"


def _acquired(spark: SparkSession | None, file: Path, what: str, patience: float) -> ExitStack:
    """Acquire the lock, held until the stack is closed; `what` names the other holder for a person."""
    waits = _waits(file, what, patience)
    with ExitStack() as held:
        while not _threads[file].acquire(blocking=False):
            next(waits)
        held.callback(_threads[file].release)
        while True:
            opened, identity = _opened(spark, file)
            held.callback(_close, opened)
            while not _try_lock(opened):
                next(waits)
            if _identity(file) == identity:
                return held.pop_all()
            _close(opened)  # the ledger was removed meanwhile, and its lock file with it


def _waits(file: Path, what: str, patience: float) -> Iterator[None]:
    """Wait a little at each step, longer each time; say so once."""
    waited, pause = 0.0, _SHORTEST_SECONDS
    while waited < patience:
        time.sleep(pause)
        if waited < _WARNING_SECONDS <= waited + pause:
            _log.warning("waiting for another %s, up to %.0f s (%s)", what, patience, file)
        waited, pause = waited + pause, min(2 * pause, _LONGEST_SECONDS)
        yield
    message = f"another {what} has been at work for {patience:.0f} s (it holds {file})"
    raise WriteConflict(f"{message}; nothing of this run counts; run it again when the other is done")


def _opened(spark: SparkSession | None, file: Path) -> tuple[Any, tuple[int, int]]:
    """Open the lock file for its holder; return it with the identity of the file."""
    jvm: Any = None if spark is None else spark._jvm
    try:
        _make(file)
        identity = _identity(file)
        return file.open("r+b") if jvm is None else jvm.java.io.RandomAccessFile(str(file), "rw"), identity
    except (OSError, Py4JJavaError) as error:
        reason = str(getattr(error, "java_exception", error))
        what = f"the ledger cannot be written: its lock file {file} cannot be opened: {reason}"
        way_out = "nothing of this run counts; mend that, then run it again"
        raise LedgerRefusal("LEDGER_UNWRITABLE", f"{what}; {way_out}") from error


def _make(file: Path) -> None:
    """Make the lock file if it is missing: every user who may write to the ledger's folder may write to it."""
    if file.exists():
        return
    ledger = file.parent.parent
    ledger.mkdir(parents=True, exist_ok=True)
    mode = ledger.stat().st_mode & 0o777
    if not file.parent.exists():
        with suppress(FileExistsError):
            file.parent.mkdir()
            file.parent.chmod(mode)
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        file.chmod(mode & 0o666)


def _identity(file: Path) -> tuple[int, int]:
    try:
        found = file.stat()
    except FileNotFoundError:
        return (0, 0)
    return found.st_dev, found.st_ino


def _try_lock(opened: Any) -> bool:
    """Try to take the lock: no other process may hold it, and no other thread of this JVM."""
    if isinstance(opened, BufferedIOBase):
        try:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
    try:
        return opened.getChannel().tryLock() is not None
    except Py4JJavaError as error:
        if "OverlappingFileLockException" not in str(error.java_exception):
            raise
        return False


def _close(opened: Any) -> None:
    """Close a lock file, which releases its lock; a JVM that has ended did."""
    with suppress(Py4JError, OSError):
        opened.close()
