"""Is everything there that a job needs, and is the ledger sound? One line a check, with what to do.

The environment is looked at without Spark, so that a missing Java is a line and not a stack trace. The ledger's
invariants hold at any time, also beside running jobs: rows of attempts that are not committed are nobody's yet.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from groupledger import tables
from groupledger.core.faults import Fault
from groupledger.core.spark_versions import BELOW, LEAST, bring_spark, numbers
from groupledger.engine import jars
from groupledger.engine.java import java, version
from groupledger.pipeline.maintain import Erasure, RunRows, Stored, may_change, short
from groupledger.sinks import append, attempts, ledger_tables
from groupledger.sinks.append import Written, stored
from groupledger.sinks.current import current
from groupledger.sinks.ledger_tables import STAMPED
from groupledger.sinks.location import LedgerLocation, engine_errors_as_faults, local_folder
from groupledger.sinks.location import scheme as scheme_of
from groupledger.tables import RUNS, Table
from groupledger.tables import columns as c

VERSIONS: dict[str, tuple[str, str | None]] = {
    "python": ("3.11", None),
    "pyspark": (LEAST, BELOW),
    "pandas": ("2.2", "3"),
    "pyarrow": ("18", None),
    "numpy": ("2.0", None),
    "numba": ("0.61", None),
}
"""From which version on, and below which; a test holds them against the project file."""

LEAST_FREE_BYTES = 2**30
NAMED = 5
_REBUILD = (
    "rows were lost or added from outside: `groupledger rebuild` makes them again "
    "(docs/operate/failures-and-recovery.md)"
)
MOST = 1000
COPIES = "copies"
FAST_LISTING = "delta.enableFastS3AListFrom"


@dataclass(frozen=True, slots=True)
class Check:
    """One answer. `remedy` says what to do where it is not ok; where it is ok it is empty, or says what to mind."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def doctor(
    session: Callable[[], SparkSession], location: LedgerLocation, jars_folder: Path | None, *, deep: bool = False
) -> list[Check]:
    """Make every check, in the order in which things can be mended; the ledger's only if Spark can be started.

    `deep` reads every row as well: are they those that were written?
    """
    checks = [*environment(jars_folder), *place(location)]
    if all(check.ok for check in checks if check.name in ("java", "jars", "pyspark")):
        spark = session()
        checks += [store(spark, location), listing(spark), *soundness(spark, location)]
        if deep and all(check.ok for check in checks if check.name == "tables"):
            checks.append(digest_checks(spark, location))
    return checks


def digest_checks(spark: SparkSession, location: LedgerLocation) -> Check:
    """Check that the rows of every committed attempt have the digests that it committed; reads every table once."""
    with engine_errors_as_faults(location):
        found = compare(spark, location)
    others = [f"{found.erased} erased by retention or redaction"] if found.erased else []
    others += [f"{found.unknown} beside them without a digest of their own"] if found.unknown else []
    return _none(
        "digests",
        found.different,
        "; ".join([f"{found.equal} tables of runs hold the rows that were written", *others]),
        "a value was changed from outside: `groupledger rebuild` makes derived rows again; restore log_records,"
        " topic_snapshots and runs from a backup (docs/operate/failures-and-recovery.md)",
    )


def environment(jars_folder: Path | None) -> Iterator[Check]:
    """Check versions and jars; starts no JVM and fetches nothing."""
    for name, (least, below) in VERSIONS.items():
        yield _version(name, least, below)
    try:
        command = java()
        yield Check("java", True, f"{version(command)} at {command}")
    except Fault as fault:
        yield Check("java", False, fault.message, "install it, then ask again")
    yield _jars(jars_folder)


def _jars(jars_folder: Path | None) -> Check:
    """Check the jars of Delta for the Spark here."""
    try:
        wanted = jars.jar_set("delta")
    except Fault as fault:
        return Check("jars", False, fault.message, bring_spark())
    home = jars.home(jars_folder)
    there = (home / wanted).is_dir()
    return _judged("jars", there, f"{home} {'has' if there else 'lacks'} {wanted}", "groupledger jars")


def _version(name: str, least: str, below: str | None) -> Check:
    wanted = f"{least} or newer" + (f", below {below}" if below else "")
    try:
        got = _FOUND.get(name, lambda: metadata.version(name))()
    except metadata.PackageNotFoundError:
        return Check(name, False, "not installed", f"pip install '{name}>={least}'")
    fits = numbers(least) <= numbers(got) and (below is None or numbers(got) < numbers(below))
    remedy = bring_spark() if name == "pyspark" else f"install {name} {wanted}"
    return _judged(name, fits, f"{got} (expected {wanted})", remedy)


_FOUND = {"python": platform.python_version, "pyspark": jars.spark_version}
"""Versions that pip may not know: a cluster's pyspark is not always installed by it."""


def place(location: LedgerLocation) -> Iterator[Check]:
    """Check rights and room of the ledger's place, as far as this machine can know."""
    if location.path is None or "://" in location.path:
        yield Check(
            "rights", True, f"{location} is no folder of this machine: its rights show at the first read and write"
        )
        return
    folder = Path(location.path).absolute()
    while not folder.exists():
        folder = folder.parent
    logs = [path for table in tables.TABLES for path in Path(location.path).absolute().glob(f"{table.name}/_delta_log")]
    closed = [path for path in (folder, *(log.parent for log in logs), *logs) if not _open(path)]
    said = "can be read and written, and deleted from" if not closed else "cannot be read and written by this user"
    where, remedy = ", ".join(map(str, closed[:NAMED] or [folder])), "change its owner or mode, or choose another place"
    yield _judged("rights", not closed, f"{where} {said}", remedy)
    free = shutil.disk_usage(folder).free
    said = f"{free / 2**30:.1f} GiB free at {folder}"
    yield _judged("disk", free >= LEAST_FREE_BYTES, said, "make room: 1 GiB or more")


def _open(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def store(spark: SparkSession, location: LedgerLocation) -> Check:
    """Check whether several processes may write at once. If only one may, that is no fault: it says so."""
    found = writers_of(spark, location)
    if found is None:
        detail = "through Spark Connect: writers take no lock, and on a local folder a second one's commit can be lost"
        return Check("writers", True, detail, "let one process write at a time")
    return Check("writers", True, found.detail, found.advice)


def listing(spark: SparkSession) -> Check:
    """Check whether Delta lists a table's log by S3A's faster way, by which Delta 4.4.0 may read an older one."""
    given = [spark.conf.get(name, None) for name in (FAST_LISTING, f"spark.hadoop.{FAST_LISTING}")]
    if not any(str(value).lower() == "true" for value in given):
        return Check("listing", True, f"{FAST_LISTING} is not set")
    detail = f"{FAST_LISTING} is true, with which Delta 4.4.0 may miss the newest version of a table"
    return Check("listing", False, detail, f"remove spark.hadoop.{FAST_LISTING} until Delta 4.4.1")


def soundness(spark: SparkSession, location: LedgerLocation) -> Iterator[Check]:
    """Check the ledger's own invariants; if a table is not there or not ours, that is the only answer."""
    try:
        ledger_tables.check(spark, location, tables.TABLES)
    except Fault as fault:
        remedy = "groupledger init" if fault.code == "LEDGER_MISSING" else "see above"
        yield Check("tables", False, fault.message, remedy)
        return
    yield Check("tables", True, f"{len(tables.TABLES)} tables of schema version {tables.SCHEMA_VERSION}")
    seen = attempts.read_commits(spark, location)
    yield _numbering(seen)
    stored = ledger_tables.stored(spark, location)
    yield _counts(seen, stored, attempts.read_commits(spark, location).removed)
    yield _attempts(spark, location, stored)
    yield from _snapshots(spark, location, seen)


def _numbering(seen: attempts.LedgerView) -> Check:
    """Check that commits are numbered 1 to n, and each run and attempt is committed once."""
    once = [len({getattr(commit, name) for commit in seen.commits}) for name in _ONCE]
    found = {len(seen.commits), seen.sequence, *once}
    said = f"{len(seen.commits)} commits, last number {seen.sequence}"
    remedy = "runs was written by something else: restore it to an older version"
    return _judged("commits", len(found) == 1, said, remedy)


_ONCE = (c.SEQUENCE, c.RUN_ID, c.ATTEMPT_ID)


def _counts(seen: attempts.LedgerView, stored: Stored, removed: Mapping[str, Set[str]]) -> Check:
    """Check that each committed attempt's rows are there, in every table, but for those that `maintain` removed."""
    wrong = [line for table in ledger_tables.STAMPED for line in short(seen.commits, table, stored, removed)]
    gone = ", ".join(f"{table} of {len(attempts)} runs" for table, attempts in sorted(removed.items()))
    except_for = f"; removed by retention: {gone}" if gone else ""
    return _none("rows written", wrong, f"every committed attempt's rows are there{except_for}", _REBUILD)


def _attempts(spark: SparkSession, location: LedgerLocation, stored: Stored) -> Check:
    """Check that every row is of an attempt that `runs` knows. Attempts that did not commit are no fault."""
    rows = location.rows(spark, tables.RUNS).select(c.ATTEMPT_ID, c.STATUS).collect()
    by_status: dict[str, set[str]] = {status: set() for status in (attempts.PLANNED, attempts.COMMITTED)}
    for attempt, status in rows:
        by_status.setdefault(status, set()).add(attempt)
    known = set().union(*by_status.values())
    strangers = sorted({f"{attempt} in {table}" for table, attempt in stored if attempt not in known})
    idle = len(by_status[attempts.PLANNED] - by_status[attempts.COMMITTED])
    return _none(
        "uncommitted rows",
        strangers,
        f"none is seen; {idle} attempts began and did not commit",
        "rows that no run of groupledger planned: no reader sees them; find out who writes to this place",
    )


def _snapshots(spark: SparkSession, location: LedgerLocation, seen: attempts.LedgerView) -> Iterator[Check]:
    """Check that each snapshot is there once, with as many members as it counts; both in one pass."""
    groups = current(spark, location, tables.GROUP_SNAPSHOTS, seen.commits).select(
        c.SNAPSHOT_ID, F.lit(1).alias(COPIES), c.MEMBERS
    )
    members = current(spark, location, tables.MEMBER_SNAPSHOTS, seen.commits).select(
        c.SNAPSHOT_ID, F.lit(0).alias(COPIES), F.lit(-1).alias(c.MEMBERS)
    )
    summed = groups.unionAll(members).groupBy(c.SNAPSHOT_ID).agg(F.sum(COPIES).alias(COPIES), F.sum(c.MEMBERS))
    twice, unlike = (F.col(name) for name in (COPIES, f"sum({c.MEMBERS})"))
    wrong = summed.where((twice != 1) | (unlike != 0)).sort(c.SNAPSHOT_ID).limit(MOST).collect()
    copies = [row[0] for row in wrong if row[1] > 1]
    remedy = "two attempts committed the same position: ingest into a new ledger and compare"
    yield _none("snapshots", copies, "each stands once", remedy)
    others = [row[0] for row in wrong if row[2] != 0 or row[1] == 0]
    yield _none("members", others, "each snapshot has the members it counts", _REBUILD)


def _none(name: str, wrong: Sequence[str], fine: str, remedy: str) -> Check:
    """Return ok if nothing is wrong; else the first few."""
    return _judged(name, not wrong, "; ".join(wrong[:NAMED]) if wrong else fine, remedy)


def _judged(name: str, ok: bool, detail: str, remedy: str) -> Check:
    return Check(name, ok, detail, "" if ok else remedy)


# `doctor --deep`: are the rows that committed runs wrote still the rows that are there? Every row is read.
#
# A run commits one digest of all its rows (`result_digest`), and in `counts_out` a short one of each table
# (`digest.<table>`). What retention removed is not there to be compared, and what a redaction rewrote is not what the
# run wrote: of such runs the other tables are compared, each by its own digest.

Contents = Mapping[str, Mapping[str, Written]]
"""By table and attempt."""

_EQUAL, _ERASED, _UNKNOWN = "equal", "erased", "unknown"


@dataclass(frozen=True, slots=True)
class DigestComparison:
    """What the tables hold against what the runs committed. All but `different` counts tables of runs."""

    different: tuple[str, ...]  # a line each: table, attempt, run, rows and digest got and wanted
    equal: int
    erased: int  # removed by retention or rewritten by a redaction: there is nothing to compare with
    unknown: int  # beside an erased one, of a run that kept no digest of each table


def compare(spark: SparkSession, location: LedgerLocation) -> DigestComparison:
    """Compute the digests of every committed attempt again, and compare them with what its run said."""
    history, erasure = attempts.read_commits(spark, location).commits, Erasure.of(spark, location)
    contents = {table.name: stored(spark, location, table) for table in STAMPED}
    return compared(history, contents, erasure)


def compared(history: Iterable[attempts.Run], contents: Contents, erasure: Erasure) -> DigestComparison:
    """Compare the runs with the contents. Runs that wrote no rows (`maintain`) have no digest and are passed over."""
    tally: Counter[str] = Counter()
    different: list[str] = []
    for run in history:
        if run.result_digest:
            different += _differences(RunRows.of(run, contents), erasure, tally)
    return DigestComparison(tuple(different), tally[_EQUAL], tally[_ERASED], tally[_UNKNOWN])


def _differences(rows: RunRows, erasure: Erasure, tally: Counter[str]) -> Iterator[str]:
    """Yield a line for each table that differs; if the run has no digests of its tables, one for all of them."""
    run, attempt = rows.run, f"attempt {rows.run.attempt_id} (run {rows.run.run_id})"
    wrote = [table for table in STAMPED if rows.committed(table) or rows.number(table)]
    kept = [table for table in wrote if not _is_erased(run, table, erasure)]
    erased = len(wrote) - len(kept)
    tally[_ERASED] += erased
    if erased and not rows.by_table:
        tally[_UNKNOWN] += len(kept)
        return
    wrong = [table for table in kept if rows.by_table and not rows.same(table)]
    tally[_EQUAL] += len(kept) - len(wrong)
    for table in wrong:
        digests = rows.digest(table), rows.committed_digest(table)
        got, wanted = ("none" if digest is None else f"{digest:015x}" for digest in digests)
        numbers = f"{rows.number(table)} rows of {rows.committed(table)}"
        yield f"{table.name} of {attempt}: {numbers}, digest {got}, wanted {wanted}"
    if not wrong and not erased and not rows.all_same:
        tables = ", ".join(f"{table.name} ({rows.number(table)} rows)" for table in kept)
        yield f"{tables or 'no rows'} of {attempt}: digest of all {rows.digest_of_all}, wanted {run.result_digest}"


def _is_erased(run: attempts.Run, table: Table, erasure: Erasure) -> bool:
    removed = run.attempt_id in erasure.removed.get(table.name, ())
    return removed or (run.sequence < erasure.redacted and may_change(table))


# May several processes write to a ledger at once? What its store promises, and what our lock adds to it.

_SHARED = re.compile(
    r"nfs\d*|cifs|smb\w*|9p|fuse\w*(\..*)?|virtiofs|ceph|lustre|gpfs|beegfs|afs|glusterfs|ocfs2|gfs2|vboxsf"
)
"""Kinds of mounts whose locks may not reach other machines."""
_OWN_MACHINE = ("fuseblk",)
_S3 = ("s3", "s3a", "s3n")
_ONE_DRIVER = "S3SingleDriverLogStore"
_BY_DELTA = ("hdfs", "viewfs", "abfs", "abfss", "adl", "wasb", "wasbs", "gs")
"""Stores on which Delta's own log stores create a version once only."""
_ESCAPE = re.compile(r"\\([0-7]{3})")

MULTI_CLUSTER = (
    "for several: put io.delta:delta-storage-s3-dynamodb, of the version of Delta's other jars, on Spark's class path "
    "(spark.jars.packages), and set spark.delta.logStore.{}.impl: io.delta.storage.S3DynamoDBLogStore and "
    "spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName: the DynamoDB table (keys tablePath and fileName, of type "
    "string) that they share"
)
MOUNTS = Path("/proc/mounts")


@dataclass(frozen=True, slots=True)
class Writers:
    """Whether several may write at once: why, or what to do."""

    several: bool
    detail: str
    advice: str = ""


def writers(scheme: str, file_system: str | None, log_store: str | None) -> Writers:
    """Judge a store by the scheme of its URL; a local one by its mount's kind, S3 by the log store that is set.

    >>> writers("file", "ext4", None).several, writers("s3a", None, None).several
    (True, False)
    """
    if scheme == "file":
        return _local(file_system or "unknown")
    if log_store is not None and _ONE_DRIVER not in log_store:
        return Writers(True, f"{scheme}: as its log store {log_store} promises")
    if scheme in _S3:
        detail = f"{scheme} with Delta's log store for one driver: a second writer's commit can be lost"
        return Writers(False, detail, f"let one process write at a time; {MULTI_CLUSTER.format(scheme)}")
    if scheme in _BY_DELTA:
        return Writers(True, f"{scheme}: Delta creates each version of a table once only")
    what = f"{scheme or 'an unknown store'}: Delta does not say whether two writers can both win a commit"
    return Writers(
        False, what, "let one process write at a time, or set a log store that says so (docs/operate/stores.md)"
    )


def writers_of(spark: SparkSession, location: LedgerLocation) -> Writers | None:
    """Judge the store of a ledger, as this session is configured; None through Spark Connect, which does not tell."""
    url = append.table_url(spark, location, RUNS)
    if url is None:
        return None
    kind_of_store, folder = scheme_of(url), local_folder(url)
    names = (f"spark.delta.logStore.{kind_of_store}.impl", "spark.delta.logStore.class")
    log_store = next((value for name in names if (value := spark.conf.get(name, None))), None)
    kind = mounted_as(folder, MOUNTS.read_text(encoding="utf-8")) if folder and MOUNTS.is_file() else None
    return writers(kind_of_store, kind, log_store)


def _local(file_system: str) -> Writers:
    if _SHARED.fullmatch(file_system) and file_system not in _OWN_MACHINE:
        detail = f"a folder on {file_system}: the lock that writers take may not reach other machines"
        return Writers(False, detail, "write from one machine only, or put the ledger on a store that Delta knows")
    return Writers(True, f"a local folder ({file_system}): writers take turns under a lock")


def mounted_as(folder: Path, mounts: str) -> str | None:
    """Return the kind of file system of a folder by the text of /proc/mounts; None without one.

    The innermost mount counts, and the last of several at one place.
    """
    found: tuple[int, str] | None = None
    for line in mounts.splitlines():
        words = line.split(" ")
        if len(words) < 3:
            continue
        point = Path(_ESCAPE.sub(lambda code: chr(int(code[1], 8)), words[1]))
        depth = len(point.parts)
        if folder.is_relative_to(point) and (found is None or depth >= found[0]):
            found = depth, words[2]
    return found and found[1]
