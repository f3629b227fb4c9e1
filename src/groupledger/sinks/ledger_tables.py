"""Make the tables of a ledger, and check that a place holds one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, reduce
from pathlib import Path
from typing import TypeVar

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from groupledger.core.ledger_version import VERSION_PROPERTY, no_ledger, version_problem
from groupledger.core.moments import iso
from groupledger.sinks import append
from groupledger.sinks.attempts import TRIES, Attempt, FolderCommitLog, SparkCommitLog, commit_log, planned_row
from groupledger.sinks.location import (
    ENGINE_ERRORS,
    WriteConflict,
    explained,
    file_sizes,
    has_files_to_vacuum,
    has_scheme,
    is_conflict,
    local_folder,
    meaning,
    plain_table,
    with_scheme,
)
from groupledger.sinks.location import LedgerFault as LedgerFault
from groupledger.sinks.location import LedgerLocation as LedgerLocation
from groupledger.tables import RUNS, SCHEMA_VERSION, TABLES, Table
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal, quoted

_CONSTRAINT, _INTERVAL, _LOG = "delta.constraints.", "delta.checkpointInterval", "delta.logRetentionDuration"
CHECKPOINT_INTERVAL = 50
"""Commits between two checkpoints of the first table; one more for each next table.

A checkpoint costs a small job 1 s, and so many log files are read fast. A run commits once to most tables: with one
interval for all, the fiftieth would write all their checkpoints, and take three times as long as the others.
"""

LOG_HOURS = 168
"""How long entries of a table's log are kept, as long as files that no longer belong to it (`maintain.vacuum_hours`).

Delta keeps them for 30 days by default: a follower that commits each minute would leave a million files.
"""

_MISSING = {
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "PATH_NOT_FOUND",
    "DELTA_PATH_DOES_NOT_EXIST",
    "DELTA_TABLE_NOT_FOUND",
    "DELTA_MISSING_DELTA_TABLE",
    "DELTA_TABLE_ONLY_OPERATION",
}


def init(spark: SparkSession, location: LedgerLocation) -> list[str]:
    """Make the tables that are missing; give their names. `runs` comes last: where it stands, the others do.

    Raises LedgerFault as `check` does, before anything is made, where a table stands that is not this ledger's, and
    LOCAL_LEDGER; where files stand that are no table, when it comes to them.
    """
    require_reachable(spark, location)
    to_make = [table for table in TABLES if not stands(spark, location, table)]
    if location.catalog is not None:
        spark.sql(f"CREATE SCHEMA IF NOT EXISTS {location.schema}")
    for table in to_make:
        create(spark, location, table)
    check(spark, location)
    return [table.name for table in to_make]


def check(spark: SparkSession, location: LedgerLocation, tables: Iterable[Table] = (RUNS,)) -> None:
    """Check that these tables are there as this version declares them.

    Raises LedgerFault: LEDGER_MISSING, LEDGER_UNREADABLE, FOREIGN_TABLE, LEDGER_OLDER, LEDGER_NEWER.
    """
    for table in tables:
        if table is RUNS and _is_plainly_ours(spark, location):
            continue
        if not stands(spark, location, table):
            raise missing(location, table)


def check_for_writing(spark: SparkSession, location: LedgerLocation, tables: Iterable[Table] = (RUNS,)) -> None:
    """Check as `check` does that a job may write there. Raises LedgerFault as it does, and LOCAL_LEDGER."""
    require_reachable(spark, location)
    check(spark, location, tables)


def _is_plainly_ours(spark: SparkSession, location: LedgerLocation) -> bool:
    """Return whether `runs` is as declared, without Spark; if it is not, Spark has to say what there is."""
    runs = commit_log(spark, location)
    if not isinstance(runs, FolderCommitLog):
        return False
    schema, version = runs.declared()
    return version == str(SCHEMA_VERSION) and first_difference(schema, RUNS.schema) is None


def missing(location: LedgerLocation, table: Table) -> LedgerFault:
    """Return the fault that there is no ledger."""
    return LedgerFault(*no_ledger(str(location), table.name))


def ddl(location: LedgerLocation, table: Table) -> str:
    """Return CREATE TABLE with every comment and constraint, no feature that others lack, and the schema version."""
    checks = (f"{literal(_CONSTRAINT + name)} = {literal(text)}" for name, text in table.constraints.items())
    made_with = ", ".join([properties_ddl(table), *checks])
    return (
        f"CREATE TABLE IF NOT EXISTS {location.identifier(table)} ({columns_ddl(table.schema)}) USING delta"
        f"{layout(table)} COMMENT {literal(table.comment)} TBLPROPERTIES ({made_with})"
    )


def columns_ddl(columns: Iterable[StructField]) -> str:
    """Write columns as CREATE and ALTER TABLE take them."""
    return ", ".join(
        f"{quoted(field.name)} {field.dataType.simpleString()}{'' if field.nullable else ' NOT NULL'}"
        f" COMMENT {literal(field.metadata['comment'])}"
        for field in columns
    )


def layout(table: Table) -> str:
    """Return the clause for clustering or partitioning; empty if a table has neither."""
    if table.partition_by:
        return f" PARTITIONED BY ({', '.join(map(quoted, table.partition_by))})"
    return f" CLUSTER BY ({', '.join(map(quoted, table.cluster_by))})" if table.cluster_by else ""


def properties_ddl(table: Table) -> str:
    """Return the table's properties as a clause, the schema version among them."""
    return ", ".join(f"{literal(key)} = {literal(value)}" for key, value in properties(table).items())


def properties(table: Table) -> dict[str, str]:
    """Return the properties of a new table, without its constraints."""
    place = [each.name for each in TABLES].index(table.name)
    kept = {_INTERVAL: str(CHECKPOINT_INTERVAL + place), _LOG: f"interval {LOG_HOURS} hours"}
    return _asked(table) | kept


def _asked(table: Table) -> dict[str, str]:
    """Return the properties that every writer has to follow."""
    return {
        VERSION_PROPERTY: str(SCHEMA_VERSION),
        "delta.isolationLevel": "Serializable",
        "delta.dataSkippingStatsColumns": ",".join(table.filtered_by),
    }


def folders_for_files(
    spark: SparkSession, location: LedgerLocation, tables: Collection[Table]
) -> dict[str, str] | None:
    """Return the folder of each table, if workers may write files into it that a commit adds; None: Spark has to write.

    That is where the ledger is no folder of this machine, or Spark's workers run on others, and where somebody gave a
    table another layout, or rules that only Spark knows how to check.
    """
    folders = {table.name: location.folder(spark, table) for table in tables}
    if not all(folders.values()) or not str(spark.sparkContext.master).startswith("local"):
        return None
    if append.adds_files(spark) and all(_is_as_made(Path(str(folders[table.name])), table) for table in tables):
        return {name: str(folder) for name, folder in folders.items()}
    return None


_FEATURES = {"appendOnly", "invariants", "checkConstraints", "domainMetadata", "clustering"}
"""Of the tables as they are made, in the words of Delta's protocol."""


def _is_as_made(folder: Path, table: Table) -> bool:
    """Return whether the rules for writers are those that the table was made with."""
    found = plain_table(folder)
    if found is None:
        return False
    asked = _asked(table) | {_CONSTRAINT + name: text for name, text in table.constraints.items()}
    schema = StructType.fromJson(json.loads(found.schema().to_json()))
    features = set(found.protocol().writer_features or ())
    found_with = found.metadata().configuration.items()
    configuration = {key: value for key, value in found_with if key not in (_INTERVAL, _LOG)}  # no matter to a writer
    return (
        features <= _FEATURES
        and configuration == asked
        and not found.metadata().partition_columns
        and first_difference(schema, table.schema) is None
    )


def constraints(spark: SparkSession, location: LedgerLocation, table: Table) -> dict[str, str]:
    """Return the constraints that a table has: name -> condition."""
    found = _properties(spark, location, table).items()
    return {key.removeprefix(_CONSTRAINT): value for key, value in found if key.startswith(_CONSTRAINT)}


def create(spark: SparkSession, location: LedgerLocation, table: Table) -> None:
    """Make a table; LedgerFault where files stand in its place that are no table, or another's table.

    Its version is not asked for: to tell the properties of a clustered table, Delta reads the whole state of it.
    """
    try:
        append.run(spark, location, table, ddl(location, table))
    except AnalysisException as error:
        raise foreign(location, table, f"Delta refuses to make it there: {meaning(error)}") from error
    schema = _schema(spark, location, table)
    if schema is None:
        raise foreign(
            location, table, "its folder is not empty and holds no Delta table (left by a killed init? then remove it)"
        )
    _require_declared(location, table, schema)


def stands(spark: SparkSession, location: LedgerLocation, table: Table) -> bool:
    """Return whether the table is there. Raises Fault: something else is, another version, or an unreadable log."""
    schema = _schema(spark, location, table)
    if schema is None:
        return False
    _check_version(location, _version(spark, location, table))
    _require_declared(location, table, schema)
    return True


def _require_declared(location: LedgerLocation, table: Table, schema: StructType) -> None:
    difference = first_difference(schema, table.schema)
    if difference is not None:
        raise foreign(location, table, difference)


def version(spark: SparkSession, location: LedgerLocation, table: Table) -> int | None:
    """Return the schema version of a table, this one or an older; None if there is no table. LedgerFault otherwise."""
    if _schema(spark, location, table) is None:
        return None
    got = _version(spark, location, table)
    if got > SCHEMA_VERSION:
        _check_version(location, got)
    return got


def _schema(spark: SparkSession, location: LedgerLocation, table: Table) -> StructType | None:
    try:
        return location.rows(spark, table).schema
    except ENGINE_ERRORS as error:
        if isinstance(error, AnalysisException) and error.getCondition() in _MISSING:
            return None
        what = f"{location.identifier(table)} cannot be read: {meaning(error)}"
        raise explained(error, location) or LedgerFault("LEDGER_UNREADABLE", what) from error


def _version(spark: SparkSession, location: LedgerLocation, table: Table) -> int:
    text = _properties(spark, location, table).get(VERSION_PROPERTY)
    if text is None or not text.isdecimal():
        raise foreign(location, table, f"its property {VERSION_PROPERTY} is {text!r}, expected a number")
    return int(text)


def _properties(spark: SparkSession, location: LedgerLocation, table: Table) -> dict[str, str]:
    rows = spark.sql(f"SHOW TBLPROPERTIES {location.identifier(table)}").collect()  # DESCRIBE DETAIL reads all the log
    return {row["key"]: row["value"] for row in rows}


def _check_version(location: LedgerLocation, got: int) -> None:
    problem = version_problem(str(location), got)
    if problem is not None:
        raise LedgerFault(*problem)


def foreign(location: LedgerLocation, table: Table, got: str) -> LedgerFault:
    """Return the fault that something else is in a table's place."""
    message = f"{location.identifier(table)} is not this ledger's table {table.name}: {got}; choose another place"
    return LedgerFault("FOREIGN_TABLE", message)


def first_difference(got: StructType, expected: StructType) -> str | None:
    """Describe the first column that differs; None if names and types agree. Order and nullability may differ."""
    for field in expected:
        if field.name not in got.names:
            return f"column {field.name} is missing, expected {field.dataType.simpleString()}"
        kind = got[field.name].dataType
        if not same_type(kind, field.dataType):
            return f"column {field.name} is {kind.simpleString()}, expected {field.dataType.simpleString()}"
    others = [name for name in got.names if name not in expected.names]
    return f"column {others[0]} is not known" if others else None


def same_type(got: DataType, expected: DataType) -> bool:
    """Return whether types are equal but for nullability inside."""
    if isinstance(got, ArrayType) and isinstance(expected, ArrayType):
        return same_type(got.elementType, expected.elementType)
    if isinstance(got, StructType) and isinstance(expected, StructType):
        return first_difference(got, expected) is None and got.names == expected.names
    return got.simpleString() == expected.simpleString()


# Refuse a place at which a ledger would be in pieces, or gone, before anything is made there.

_SESSION_CATALOG = "spark_catalog"


def require_reachable(spark: SparkSession, location: LedgerLocation) -> None:
    """Raise LedgerFault("LOCAL_LEDGER") for a folder of this machine where the executors may be others.

    Each executor would write to a disk of its own, and the log of the table would be on the driver's alone. Through
    Spark Connect the server's machines are not known here.
    """
    if location.path is None or location.shared or getattr(spark, "_jvm", None) is None:
        return
    master = str(spark.sparkContext.master)
    folder = local_folder(with_scheme(spark, location.path))
    if folder is None or master.startswith("local"):
        return
    what = f"the ledger is at {folder}, a folder of this machine, and Spark's executors run on others (master {master})"
    place = "a store that all of them reach (s3a://, abfss://, gs://, hdfs://) or a catalog"
    shared = "if this folder is a mount that all of them share, such as NFS, set ledger.shared: true"
    raise LedgerFault("LOCAL_LEDGER", f"{what}: each would write to a disk of its own; put it on {place}; {shared}")


def require_lasting_catalog(spark: SparkSession, location: LedgerLocation) -> None:
    """Raise LedgerFault("CATALOG_IN_MEMORY") for a catalog that ends with the session."""
    if location.catalog is None:
        return
    name, dot, _ = location.catalog.partition(".")
    kind = spark.conf.get("spark.sql.catalogImplementation", "in-memory")
    if (dot and name != _SESSION_CATALOG) or kind != "in-memory":
        return
    what = f"ledger.catalog is {location.catalog}, and this Spark's catalog is in memory: it ends with the session"
    expected = "expected one that lasts: profile cluster on a Spark with a metastore or Unity Catalog"
    ways = "or spark.conf spark.sql.catalogImplementation: hive, or a folder (ledger.location)"
    raise LedgerFault("CATALOG_IN_MEMORY", f"{what}; {expected}, {ways}")


# Migrate an older ledger in place: new tables are made, new columns added, layout and properties set.
#
# What a version adds to the one before follows from the declarations: a table, a column that may be null, a layout. A
# change of another kind needs a step of its own here. Each step can be done again; a table's version is set last, and
# `runs`, by which every command knows the ledger, comes last of all.


def migrate(spark: SparkSession, location: LedgerLocation) -> dict[str, int | None]:
    """Bring every table to this version; the tables that were not, with their version before (None: made now).

    Raises LedgerFault: LEDGER_MISSING, LEDGER_NEWER, FOREIGN_TABLE, all before anything is changed but where a table of
    an older version holds a column of another type.
    """
    before = {table: version(spark, location, table) for table in TABLES}
    if before[RUNS] is None:
        raise missing(location, RUNS)
    older = {table: was for table, was in before.items() if was != SCHEMA_VERSION}
    for table, was in older.items():
        if was is None:
            create(spark, location, table)
        else:
            _forward(spark, location, table)
    return {table.name: was for table, was in older.items()}


def _forward(spark: SparkSession, location: LedgerLocation, table: Table) -> None:
    """Bring one table from any older version to this one."""
    name = location.identifier(table)
    got = location.rows(spark, table).schema
    new = [field for field in table.schema if field.name not in got.names]
    if any(not field.nullable for field in new):
        raise foreign(location, table, first_difference(got, table.schema) or "")
    commands = [f"ALTER TABLE {name} ADD COLUMNS ({columns_ddl(new)})"] if new else []
    commands += _constraining(name, constraints(spark, location, table), table.constraints)
    [detail] = spark.sql(f"DESCRIBE DETAIL {name}").collect()
    if table.cluster_by != tuple(detail["clusteringColumns"] or ()):
        commands.append(f"ALTER TABLE {name}{layout(table) or ' CLUSTER BY NONE'}")
    for command in commands:
        persistently(partial(append.run, spark, location, table, command), table)
    _require_declared(location, table, location.rows(spark, table).schema)
    command = f"ALTER TABLE {name} SET TBLPROPERTIES ({properties_ddl(table)})"
    persistently(partial(append.run, spark, location, table, command), table)


def _constraining(name: str, got: Mapping[str, str], wanted: Mapping[str, str]) -> Iterator[str]:
    """List the commands that give a table its constraints; Delta reads the rows before it takes one."""
    kept = {each for each in got if each in wanted and _squeezed(got[each]) == _squeezed(wanted[each])}
    for each in sorted(got.keys() - kept):
        yield f"ALTER TABLE {name} DROP CONSTRAINT {quoted(each)}"
    for each, condition in wanted.items():
        if each not in kept:
            yield f"ALTER TABLE {name} ADD CONSTRAINT {quoted(each)} CHECK ({condition})"


def _squeezed(condition: str) -> str:
    """Remove all spaces: Delta puts some into a constraint that comes later than its table."""
    return "".join(condition.split())


# What keeps one table small and fast: rows removed, rows gathered in few files, files that are nobody's removed.
#
# Each is one SQL command, a commit of its own that other writers may come before or after; a command that another
# writer overtook is done again. On a local path the writers of a table wait for each other (`sinks.location`).
# Checkpoints Delta writes itself (`CHECKPOINT_INTERVAL`).

FILE_BYTES = "spark.databricks.delta.optimize.maxFileSize"
SMALL_BYTES = "spark.databricks.delta.optimize.minFileSize"
VACUUM_LOGGED = "spark.databricks.delta.vacuum.logging.enabled"
LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"
LISTERS = 8
"""Tasks that list a table's folder for a vacuum. It is flat: Spark's own 10,000 tasks took a minute a table."""
STAMPED = tuple(table for table in TABLES if table is not RUNS)
"""Every table but `runs`: their rows carry the attempt that wrote them."""
NAMED = 500
"""Attempts named in one command."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TableSize:
    """The files that make a table now."""

    files: int
    bytes: int


def size(spark: SparkSession, location: LedgerLocation, table: Table) -> TableSize:
    """Return how many files there are, and their size together."""
    sizes = file_sizes(location.folder(spark, table))
    if sizes is not None:
        return TableSize(len(sizes), sum(sizes))
    [row] = spark.sql(f"DESCRIBE DETAIL {location.identifier(table)}").collect()
    return TableSize(row["numFiles"], row["sizeInBytes"])


def stored(
    spark: SparkSession, location: LedgerLocation, tables: Iterable[Table] = STAMPED
) -> dict[tuple[str, str], int]:
    """Count the rows by (table, attempt), whether they count or not: one pass over one column of each table."""
    pieces = [location.rows(spark, each).select(F.lit(each.name), c.ATTEMPT_ID) for each in tables if each is not RUNS]
    if not pieces:
        return {}
    rows = reduce(lambda left, right: left.unionAll(right), pieces)
    counted = rows.groupBy(*rows.columns).count().collect()
    return {(table, attempt): number for table, attempt, number in counted}


def remove(spark: SparkSession, location: LedgerLocation, table: Table, attempts: Sequence[str]) -> int:
    """Remove the rows of these attempts from a table; return how many. Raises WriteConflict as `persistently`."""
    removed = 0
    for first in range(0, len(attempts), NAMED):
        named = ", ".join(map(literal, attempts[first : first + NAMED]))
        removed += remove_all(spark, location, table, f" WHERE {c.ATTEMPT_ID} IN ({named})")
    return removed


def remove_all(spark: SparkSession, location: LedgerLocation, table: Table, condition: str = "") -> int:
    """Remove every row of a table that meets the condition; return how many there were."""
    command = f"DELETE FROM {location.identifier(table)}{condition}"  # noqa: S608 quoted by identifier
    [(removed, *_)] = persistently(partial(append.run, spark, location, table, command), table)
    return int(removed)


def gather(spark: SparkSession, location: LedgerLocation, table: Table, file_mb: int) -> None:
    """Bring the rows into files of this size in MiB, by the table's clustering where it has one; they stay so."""
    size_bytes = str(file_mb * 2**20)
    with settings(spark, {FILE_BYTES: size_bytes, SMALL_BYTES: size_bytes}):
        command = f"OPTIMIZE {location.identifier(table)}"
        persistently(partial(append.run, spark, location, table, command), table)


def small_files(spark: SparkSession, location: LedgerLocation, table: Table, file_mb: int) -> int:
    """Count the files of a table below half of this size in MiB, without a query; 0 if only Spark can know."""
    sizes = file_sizes(location.folder(spark, table))
    return sum(size < file_mb * 2**19 for size in sizes or ())


def vacuum(spark: SparkSession, location: LedgerLocation, table: Table, hours: int) -> None:
    """Remove files in the table's folder that belonged to it no longer `hours` ago, or never did.

    Most of the time there are none, which Spark takes a dozen jobs to find out.
    """
    folder = location.folder(spark, table)
    if folder is not None and not has_files_to_vacuum(folder, hours):
        return
    with settings(spark, {VACUUM_LOGGED: "false", LISTING_TASKS: str(LISTERS)}):  # logged, each would be two commits
        spark.sql(f"VACUUM {location.identifier(table)} RETAIN {hours:d} HOURS").collect()


def persistently(work: Callable[[], T], table: Table) -> T:
    """Do the work until no other writer's commit comes in between. WriteConflict where one always does."""
    for _ in range(TRIES):
        try:
            return work()
        except ENGINE_ERRORS as error:
            if not is_conflict(error):
                raise
    raise WriteConflict(f"others write {table.name} all the time: {TRIES} tries were overtaken; run it again later")


@contextmanager
def settings(spark: SparkSession, values: Mapping[str, str]) -> Iterator[None]:
    """Change settings of the session for a while."""
    before = {name: spark.conf.get(name, None) for name in values}
    for name, value in values.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


# Folders of damaged tables that `rebuild` moved out of the way: `<ledger>/<table>.damaged-<attempt>`.
#
# Nobody reads them, and no vacuum of Delta sees them. They are kept for a person to look at, not for ever: what they
# hold is subject to retention and redaction as it was in the table. A note in each says when it was moved, and after
# which commit of the ledger.

DAMAGED = ".damaged-"
NOTE = "_set_aside.json"
_SEQUENCE, _AT = "sequence", "at"


@dataclass(frozen=True, slots=True)
class Aside:
    """One such folder. `sequence` numbers the last commit before it was moved; 0 where no note says."""

    table: str
    folder: Path
    sequence: int
    at: datetime


def folder_of(location: LedgerLocation, table: Table) -> Path | None:
    """Return the folder of a table on this machine; None if it is elsewhere, or only a catalog knows."""
    if location.path is None:
        return None
    folder = local_folder(location.path) if has_scheme(location.path) else Path(location.path)
    return None if folder is None else folder / table.name


def move_aside(folder: Path, attempt_id: str, sequence: int, now: datetime) -> Path:
    """Move a table's folder out of the way. Killed in between, the table is where it was, with a note in it."""
    note = {_SEQUENCE: sequence, _AT: now.astimezone(UTC).isoformat()}
    Path(folder, NOTE).write_text(json.dumps(note), encoding="utf-8")
    aside = folder.with_name(f"{folder.name}{DAMAGED}{attempt_id}")
    folder.rename(aside)
    return aside


def set_aside(location: LedgerLocation, table: Table) -> tuple[Aside, ...]:
    """List the folders of one table, in order of their names."""
    folder = folder_of(location, table)
    if folder is None or not folder.parent.is_dir():
        return ()
    found = (each for each in folder.parent.iterdir() if each.name.startswith(f"{table.name}{DAMAGED}"))
    return tuple(_aside(table, each) for each in sorted(found) if each.is_dir() and not each.is_symlink())


def _aside(table: Table, folder: Path) -> Aside:
    try:
        note = json.loads(Path(folder, NOTE).read_text(encoding="utf-8"))
        return Aside(table.name, folder, int(note[_SEQUENCE]), datetime.fromisoformat(note[_AT]))
    except (OSError, ValueError, KeyError, TypeError):  # of an older version, or a removal that was cut off
        return Aside(table.name, folder, 0, datetime.fromtimestamp(folder.stat().st_mtime, UTC))


def erase(aside: Aside) -> str:
    """Remove the folder with all it holds; return why it cannot be removed. Cut off, it can be repeated."""
    try:
        shutil.rmtree(aside.folder)
    except OSError as error:
        return f"cannot be removed: {error.strerror or error}"
    return ""


# A lease: a row of `runs` that keeps a second `maintain` out, taken by compare-and-set and good for a while.
#
# Nothing rests on it but work done twice: whatever a lease's holder does is safe beside any other writer.

LEASED = "leased"


@dataclass(frozen=True, slots=True)
class Lease:
    """Who may do one kind of work, and for how long after each word. `attempt.kind` is what is leased."""

    attempt: Attempt
    length: timedelta

    def take(self, spark: SparkSession, location: LedgerLocation, now: datetime) -> None:
        """Take the lease, or say that it is still held. Raises WriteConflict where another holds it."""
        mine = planned_row(self.attempt) | {c.STATUS: LEASED, c.FINISHED_AT: now + self.length}
        same = f"t.{c.STATUS} = '{LEASED}' AND t.{c.KIND} = s.{c.KIND}"
        micros = round(now.timestamp() * 1_000_000)
        over = f"t.{c.ATTEMPT_ID} = s.{c.ATTEMPT_ID} OR t.{c.FINISHED_AT} <= timestamp_micros({micros})"
        taking = f" WHEN MATCHED AND ({over}) THEN UPDATE SET *"
        if SparkCommitLog(spark, location).merge(mine, same, taking) != 1:
            raise WriteConflict(self._refusal(spark, location))

    def renew(self, spark: SparkSession, location: LedgerLocation, now: datetime) -> None:
        """Say that it is still held, if half of its time is over."""
        if now >= self.attempt.started_at + self.length / 2:
            self.take(spark, location, now)

    def _refusal(self, spark: SparkSession, location: LedgerLocation) -> str:
        rows = location.rows(spark, RUNS).where((F.col(c.STATUS) == LEASED) & (F.col(c.KIND) == self.attempt.kind))
        holders = [(row[c.ATTEMPT_ID], row[c.FINISHED_AT]) for row in rows.collect()]
        held = "; ".join(f"attempt {holder} holds it until {iso(until)}" for holder, until in sorted(holders))
        return f"another {self.attempt.kind} is at work ({held or 'it took the lease just now'}); run it again later"

    def release(self, spark: SparkSession, location: LedgerLocation) -> None:
        """Give the lease back; nothing where another has taken it over."""
        mine = f"{c.STATUS} = '{LEASED}' AND {c.ATTEMPT_ID} = {literal(self.attempt.attempt_id)}"
        command = f"DELETE FROM {location.identifier(RUNS)} WHERE {mine}"  # noqa: S608 quoted by identifier and literal
        append.run(spark, location, RUNS, command)
