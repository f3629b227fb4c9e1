"""Is everything there that a job needs, and is the ledger sound? One line a check, with what to do.

The environment is looked at without Spark, so that a missing Java is a line and not a stack trace. The ledger's
invariants hold at any time, also beside running jobs: rows of attempts that are not committed are nobody's yet.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from groupledger import tables
from groupledger.core.faults import Fault
from groupledger.engine import jars
from groupledger.engine.java import java, version
from groupledger.sinks import ledger
from groupledger.sinks.current import committed, current
from groupledger.sinks.runs import PLANNED, committed_runs
from groupledger.tables import columns as c

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from groupledger.sinks.ledger import LedgerLocation

VERSIONS: dict[str, tuple[str, str | None]] = {
    "python": ("3.11", None),
    "pyspark": ("4.2.0", "4.2.1"),
    "delta-spark": ("4.4.0", "4.4.1"),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18", None),
    "numpy": ("2.0", None),
    "numba": ("0.61", None),
}
"""From which version on, and below which; a test holds them against the project file."""

LEAST_FREE_BYTES = 2**30
NAMED = 5
TABLE, ROWS, EXPECTED = "table", "rows", "expected"


@dataclass(frozen=True, slots=True)
class Check:
    """One answer. `remedy` says what to do where it is not ok, and is empty where it is."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def doctor(session: Callable[[], SparkSession], location: LedgerLocation, jars_folder: Path | None) -> list[Check]:
    """Every check, in the order in which things can be mended; the ledger's only where Spark can be started."""
    checks = [*environment(jars_folder), *place(location)]
    if all(check.ok for check in checks if check.name in ("java", "jars", "pyspark", "delta-spark")):
        checks += soundness(session(), location)
    return checks


def environment(jars_folder: Path | None) -> Iterator[Check]:
    """Versions and jars; starts no JVM and fetches nothing."""
    for name, (least, below) in VERSIONS.items():
        yield _version(name, least, below)
    try:
        command = java()
        yield Check("java", True, f"{version(command)} at {command}")
    except Fault as fault:
        yield Check("java", False, fault.message, "install it, then ask again")
    missing = [conf for conf in ("delta",) if not (jars.home(jars_folder) / conf).is_dir()]
    where = str(jars.home(jars_folder))
    yield Check(
        "jars", not missing, f"{where} {'lacks' if missing else 'has'} delta", "groupledger jars" if missing else ""
    )


def _version(name: str, least: str, below: str | None) -> Check:
    wanted = f"{least} or newer" + (f", below {below}" if below else "")
    try:
        got = platform.python_version() if name == "python" else metadata.version(name)
    except metadata.PackageNotFoundError:
        return Check(name, False, "not installed", f"pip install '{name}>={least}'")
    fits = numbers(least) <= numbers(got) and (below is None or numbers(got) < numbers(below))
    return Check(name, fits, f"{got} (expected {wanted})", "" if fits else f"install {name} {wanted}")


def numbers(text: str) -> tuple[int, ...]:
    """`"4.2.0rc1"` -> (4, 2, 0): the leading numbers of a version."""
    parts = []
    for part in text.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        parts.append(int(digits))
    return tuple(parts)


def place(location: LedgerLocation) -> Iterator[Check]:
    """Rights and room where the ledger is, or is to be, as far as this machine can tell."""
    if location.path is None or "://" in location.path:
        yield Check(
            "rights", True, f"{location} is no folder of this machine: its rights show at the first read and write"
        )
        return
    folder = Path(location.path).absolute()
    while not folder.exists():
        folder = folder.parent
    allowed = os.access(folder, os.R_OK | os.W_OK | os.X_OK) and folder.is_dir()
    said = "can be read and written" if allowed else "cannot be read and written by this user"
    yield Check(
        "rights", allowed, f"{folder} {said}", "" if allowed else "change its owner or mode, or choose another place"
    )
    free = shutil.disk_usage(folder).free
    enough = free >= LEAST_FREE_BYTES
    yield Check(
        "disk", enough, f"{free / 2**30:.1f} GiB free at {folder}", "" if enough else "make room: 1 GiB or more"
    )


def soundness(spark: SparkSession, location: LedgerLocation) -> Iterator[Check]:
    """The ledger's own invariants; where a table is not there or not ours, that is the only answer."""
    try:
        ledger.check(spark, location, tables.TABLES)
    except Fault as fault:
        yield Check(
            "tables", False, fault.message, "groupledger init" if fault.code == "LEDGER_MISSING" else "see above"
        )
        return
    yield Check("tables", True, f"{len(tables.TABLES)} tables of schema version {tables.SCHEMA_VERSION}")
    yield _numbering(spark, location)
    yield _counts(spark, location)
    yield _uncommitted(spark, location)
    yield _unique_snapshots(spark, location)
    yield _members_of_snapshots(spark, location)


def _numbering(spark: SparkSession, location: LedgerLocation) -> Check:
    """Commits are numbered 1 to n, and each run and attempt is committed once."""
    counted = committed_runs(spark, location).agg(
        F.count(F.lit(1)), F.coalesce(F.max(c.SEQUENCE), F.lit(0)), *(F.count_distinct(name) for name in _ONCE)
    )
    found = tuple(counted.collect()[0])
    said = f"{found[0]} commits, last number {found[1]}"
    return _judged(
        "commits", len(set(found)) == 1, said, "runs was written by something else: restore it to an older version"
    )


_ONCE = (c.SEQUENCE, c.RUN_ID, c.ATTEMPT_ID)


def _counts(spark: SparkSession, location: LedgerLocation) -> Check:
    """What each committed attempt says it wrote is there, in every table."""
    said = committed_runs(spark, location).select(c.ATTEMPT_ID, F.explode(c.COUNTS_OUT).alias(TABLE, EXPECTED))
    said = said.where(F.col(TABLE).isin([table.name for table in _STAMPED]))
    there = reduce(lambda left, right: left.unionAll(right), [_rows_by_attempt(spark, location, t) for t in _STAMPED])
    both = said.join(there, [c.ATTEMPT_ID, TABLE], "left").fillna(0, [ROWS])
    wrong = both.where(F.col(ROWS) != F.col(EXPECTED)).sort(c.ATTEMPT_ID, TABLE)
    return _none_of(
        "rows written",
        wrong.select(F.concat_ws(" ", c.ATTEMPT_ID, TABLE, ROWS, F.lit("of"), EXPECTED)),
        "every committed attempt's rows are there",
        "rows were lost or added from outside: restore the table to an older version, or ingest into a new ledger",
    )


_STAMPED = tuple(table for table in tables.TABLES if table is not tables.RUNS)


def _rows_by_attempt(spark: SparkSession, location: LedgerLocation, table: tables.Table) -> DataFrame:
    rows = location.rows(spark, table).groupBy(c.ATTEMPT_ID).agg(F.count(F.lit(1)).alias(ROWS))
    return rows.select(c.ATTEMPT_ID, F.lit(table.name).alias(TABLE), ROWS)


def _uncommitted(spark: SparkSession, location: LedgerLocation) -> Check:
    """No row that readers see is of an attempt that is not committed. How many such attempts there are is no fault."""
    seen = reduce(
        lambda left, right: left.unionAll(right),
        [current(spark, location, table).select(c.ATTEMPT_ID).distinct() for table in _STAMPED],
    ).distinct()
    runs = location.rows(spark, tables.RUNS)
    counting = committed(seen, runs)
    planned = runs.where(F.col(c.STATUS) == PLANNED).select(c.ATTEMPT_ID)
    idle = planned.join(committed_runs(spark, location).select(c.ATTEMPT_ID), c.ATTEMPT_ID, "left_anti").count()
    return _none_of(
        "uncommitted rows",
        seen.exceptAll(counting).select(c.ATTEMPT_ID).sort(c.ATTEMPT_ID),
        f"none is seen; {idle} attempts began and did not commit",
        "this is a fault of groupledger: please report it",
    )


def _unique_snapshots(spark: SparkSession, location: LedgerLocation) -> Check:
    twice = current(spark, location, tables.GROUP_SNAPSHOTS).groupBy(c.SNAPSHOT_ID).count().where("count > 1")
    return _none_of(
        "snapshots",
        twice.select(c.SNAPSHOT_ID).sort(c.SNAPSHOT_ID),
        "each stands once",
        "two attempts committed the same position: ingest into a new ledger and compare",
    )


def _members_of_snapshots(spark: SparkSession, location: LedgerLocation) -> Check:
    """Each snapshot has the members it says it has."""
    groups = current(spark, location, tables.GROUP_SNAPSHOTS).select(c.SNAPSHOT_ID, c.MEMBERS)
    members = (
        current(spark, location, tables.MEMBER_SNAPSHOTS).groupBy(c.SNAPSHOT_ID).agg(F.count(F.lit(1)).alias(ROWS))
    )
    both = groups.join(members, c.SNAPSHOT_ID, "full").fillna(0, [ROWS])
    return _none_of(
        "members",
        both.where(~F.col(c.MEMBERS).eqNullSafe(F.col(ROWS))).select(c.SNAPSHOT_ID).sort(c.SNAPSHOT_ID),
        "each snapshot has the members it counts",
        "rows were lost or added from outside: restore the table to an older version",
    )


def _none_of(name: str, wrong: DataFrame, fine: str, remedy: str) -> Check:
    """Ok where `wrong` has no row; else the first few, in its order."""
    found = [row[0] for row in wrong.limit(NAMED).collect()]
    return _judged(name, not found, "; ".join(found) if found else fine, remedy)


def _judged(name: str, ok: bool, detail: str, remedy: str) -> Check:
    return Check(name, ok, detail, "" if ok else remedy)
