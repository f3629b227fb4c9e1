"""Two processes, each with a JVM, write the same versions of one table's log: each version has exactly one winner.

Both try every version at about the same moment, through the log store that Delta itself uses for `file:` paths, and
under the lock that every commit of ours takes. Without the lock both are told "done" now and then.
"""

from __future__ import annotations

import multiprocessing
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from py4j import java_gateway, protocol
from py4j.protocol import Py4JJavaError

from groupledger.config import SparkSettings
from groupledger.engine.session import session
from groupledger.sinks.location import table_lock

if TYPE_CHECKING:
    from multiprocessing.synchronize import Barrier

    from pyspark.sql import SparkSession

WRITERS = 2
TOGETHER = 10
"""Versions after which the writers wait for each other, so that none runs ahead."""


@dataclass(frozen=True, slots=True)
class Contest:
    """What became of the versions that both wrote. `overwritten`: the winner's entry is not what stands in the log."""

    locked: bool
    versions: int
    won_twice: int
    won_by_nobody: int
    overwritten: int
    seconds: float

    @property
    def wrong(self) -> int:
        """Versions with more or less than one winner, or another's content."""
        return self.won_twice + self.won_by_nobody + self.overwritten

    def __str__(self) -> str:
        return (
            f"{self.versions} versions, each written by {WRITERS} JVMs at once, in {self.seconds:.0f} s:"
            f" {self.won_twice} won twice, {self.won_by_nobody} by nobody,"
            f" {self.overwritten} other than their winner wrote"
        )


def contest(folder: Path, versions: int, *, locked: bool) -> Contest:
    """Let the writers write `versions` versions of one table's log, and judge."""
    log = folder / "table" / "_delta_log"
    log.mkdir(parents=True)
    context = multiprocessing.get_context("spawn")
    barrier, ready = context.Barrier(WRITERS), context.Barrier(WRITERS + 1)
    wins = [context.RawArray("b", versions) for _ in range(WRITERS)]
    processes = [
        context.Process(target=_write, args=(number, str(log), wins[number], barrier, ready, locked))
        for number in range(WRITERS)
    ]
    for process in processes:
        process.start()
    ready.wait()
    began = time.monotonic()
    for process in processes:
        process.join()
    seconds = time.monotonic() - began
    assert all(process.exitcode == 0 for process in processes), "a writer failed"
    winners = [[number for number in range(WRITERS) if wins[number][version]] for version in range(versions)]
    return Contest(
        locked,
        versions,
        sum(len(each) > 1 for each in winners),
        sum(not each for each in winners),
        sum(
            len(each) == 1 and _entry(log, version).read_text() != f"{each[0]}\n"
            for version, each in enumerate(winners)
        ),
        seconds,
    )


def _entry(log: Path, version: int) -> Path:
    return log / f"{version:020}.json"


def _write(number: int, log: str, won: Any, barrier: Barrier, ready: Barrier, locked: bool) -> None:
    """Write every version when the other one does; note which were won."""
    try:
        spark = session(SparkSettings(profile="small", master="local[1]", driver_memory="512m"), "groupledger commits")
        write = _writer(spark, log, f"{number}")
        java_gateway.get_return_value = protocol.get_return_value  # PySpark's own takes half of the time to word errors
        ready.wait()
        for version in range(len(won)):
            if version % TOGETHER == 0:
                barrier.wait()
            with table_lock(spark, Path(log).parent) if locked else nullcontext():
                won[version] = write(version)
        spark.stop()
    except BaseException:
        ready.abort()
        barrier.abort()
        raise


def _writer(spark: SparkSession, log: str, text: str) -> Any:
    """Write a version as Delta does when it commits; whether it was told that the version is its own."""
    jvm: Any = spark._jvm
    java_session: Any = spark._jsparkSession
    path_of = jvm.org.apache.hadoop.fs.Path
    store = jvm.org.apache.spark.sql.delta.DeltaLog.forTable(java_session, str(Path(log).parent)).store()
    hadoop = java_session.sessionState().newHadoopConf()
    lines = jvm.java.util.ArrayList()
    lines.add(text)
    lines = jvm.org.apache.spark.api.python.PythonUtils.toSeq(lines)

    def write(version: int) -> bool:
        try:
            store.write(path_of(str(_entry(Path(log), version))), lines.iterator(), False, hadoop)
        except Py4JJavaError as error:
            if not error.java_exception.getClass().getName().endswith("FileAlreadyExistsException"):
                raise
            return False
        return True

    return write
