"""Where a ledger is: a folder of tables, or a schema of Spark's catalogs; and what a path or a URL says."""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from threading import Lock, Timer
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyspark
from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import PySparkAttributeError, PySparkException, PySparkTypeError, PySparkValueError, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from groupledger.config import LedgerSettings
from groupledger.core.digest import digest
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.core.spark_versions import release_of
from groupledger.tables import BY_NAME, CONSTRAINTS, LOG_RECORDS, RUNS, TOPIC_SNAPSHOTS, Table
from groupledger.tables import columns as c
from groupledger.tables.sql_text import literal_path, quoted

if TYPE_CHECKING:
    from deltalake import DeltaTable


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?=/)(?://(?P<host>[^/]*))?")


class LedgerFault(Fault):
    """There is no ledger at the place, or one that this version cannot use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLocation:
    """Where the tables are: a folder with one folder a table, or a `schema` or `catalog.schema` of Spark's catalogs."""

    path: str | None = None
    catalog: str | None = None
    shared: bool = False  # a local path that is a mount of all machines

    def __post_init__(self) -> None:
        if (self.path is None) == (self.catalog is None):
            message = f"a ledger is at a path or in a catalog; got path {self.path!r} and catalog {self.catalog!r}"
            raise LedgerFault("BAD_LOCATION", message)

    @classmethod
    def of(cls, settings: LedgerSettings) -> LedgerLocation:
        """Return the place that a configuration names."""
        return cls(path=settings.location, catalog=settings.catalog, shared=settings.shared)

    def __str__(self) -> str:
        return without_secrets(self.path) if self.path is not None else str(self.catalog)

    def identifier(self, table: Table) -> str:
        """Return the table's name in SQL, every part quoted."""
        if self.path is not None:
            return f"delta.{quoted(absolute(self.path).rstrip('/') + '/' + table.name)}"
        return f"{self.schema}.{quoted(table.name)}"

    @property
    def schema(self) -> str:
        """Return the catalog's schema in SQL, every part quoted."""
        return ".".join(quoted(part) for part in str(self.catalog).split("."))

    def rows(self, spark: SparkSession, table: Table, attempts: Collection[str] | None = None) -> DataFrame:
        """Read every row of a table, those of dead attempts too. Readers want `sinks.current.current`.

        With `attempts` every row of these: files that have none of them are passed over.
        """
        folder = None if attempts is None else self.folder(spark, table)
        found = None if folder is None or attempts is None else rows_in_files(spark, folder, attempts)
        return spark.table(self.identifier(table)) if found is None else found

    def folder(self, spark: SparkSession, table: Table) -> Path | None:
        """Return the table's folder as delta-rs takes it, if the ledger is one of this machine; else None.

        None, too, through Spark Connect, which has no JVM here, and where the path has a percent sign, which delta-rs
        takes for the code of another one.
        """
        if self.path is None or "%" in self.path or getattr(spark, "_jvm", None) is None:
            return None
        return local_folder(f"{with_scheme(spark, self.path).rstrip('/')}/{table.name}")


def absolute(path: str) -> str:
    """Return a folder as Spark's SQL takes it, which knows no working directory; URLs as they are."""
    return path if has_scheme(path) else str(Path(path).absolute())


def has_scheme(path: str) -> bool:
    """Return whether a path is a URL, which names its store."""
    return _SCHEME.match(path) is not None


def scheme(url: str) -> str:
    """Return the kind of store in lower case: `"s3a://bucket/ledger"` -> `"s3a"`; empty for a plain path."""
    found = _SCHEME.match(url)
    return found[1].lower() if found else ""


def with_scheme(spark: SparkSession, path: str) -> str:
    """Return a plain path as a URL: on the cluster's default file system, which is this machine's unless it is set."""
    if has_scheme(path):
        return path
    context: Any = spark._jsc
    default = context.hadoopConfiguration().get("fs.defaultFS")
    return f"{scheme(default or 'file:/')}:{Path(path).absolute()}"


def local_folder(url: str | None) -> Path | None:
    """Return the folder of this machine that a `file:` URL names; None for other stores and for none.

    >>> local_folder("file:///data/ledger"), local_folder("s3a://bucket/ledger")
    (PosixPath('/data/ledger'), None)
    """
    found = _SCHEME.match(url or "")
    return Path(found.string[found.end() :]) if found and found[1] == "file" and not found["host"] else None


# Rows of a table in a folder of this machine, from the very files that have them: delta-rs says which these are.
#
# For a table that it has not read before, Delta's own reader runs a job to learn the table's files, and in each query
# one to choose among them. Both take longer than to read the rows of one ingest. What is here reads plain Parquet;
# where a table needs more than that (deletion vectors, renamed columns: a higher reader version), Delta's reader has
# to.

_ELSEWHERE = re.compile("[%:]")
"""In the path of a file: encoded, or that of another table; no writer of ours makes such ones."""
_BOUNDS = f"min.{c.ATTEMPT_ID}", f"max.{c.ATTEMPT_ID}"


def rows_in_files(spark: SparkSession, folder: Path, attempts: Collection[str]) -> DataFrame | None:
    """Read every row of these attempts in the table's latest version, and of others that share a file with one.

    None where Delta's reader has to read it, or to say what is wrong with it.
    """
    table = plain_table(folder)
    if table is None or table.metadata().partition_columns:
        return None
    names = list(_files(table, sorted(attempts)))
    schema = StructType.fromJson(json.loads(table.schema().to_json()))
    if any(_ELSEWHERE.search(name) or not (folder / name).is_file() for name in names):
        return None
    if names:
        reader = spark.read.schema(schema).option("recursiveFileLookup", "true")  # no columns from folders like `a=1`
        return reader.parquet(*(literal_path(f"file:{folder / name}") for name in names))
    none = (f"cast(NULL AS {field.dataType.simpleString()}) AS {quoted(field.name)}" for field in schema)
    return spark.range(0).where("false").selectExpr(*none)  # the optimizer sees that there is nothing


def verified_rows(
    folder: Path, columns: Sequence[str], condition: Any, attempts: Collection[str] | None = None
) -> list[dict[str, Any]] | None:
    """Return the rows for which an expression of Arrow's holds; each page is held against its checksum.

    With `attempts` only files that may have rows of these are opened. None as in `rows_in_files`.
    """
    from pyarrow import ArrowException, parquet

    table = plain_table(folder)
    if table is None:
        return None
    names = table.get_add_actions()["path"].to_pylist() if attempts is None else list(_files(table, sorted(attempts)))
    if any(_ELSEWHERE.search(name) for name in names):
        return None
    places, how = [folder / name for name in names], {"filters": condition, "page_checksum_verification": True}
    try:
        return parquet.read_table(places, columns=list(columns), **how).to_pylist() if places else []
    except (OSError, ArrowException):
        return None


def plain_table(folder: Path) -> DeltaTable | None:
    """Open the latest version of the table in a folder; None if Delta's own reader has to read it.

    That is where its files do not say all of its rows, and where the log is damaged: an entry without a byte, which
    delta-rs passes over, too.
    """
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        if _has_empty_entry(folder / "_delta_log"):
            return None
        table = DeltaTable(str(folder))
        return table if table.protocol().min_reader_version == 1 else None
    except (DeltaError, OSError):
        return None


def _has_empty_entry(log: Path) -> bool:
    """Return whether there is an entry without a byte after the last checkpoint; no reader looks at those before it."""
    try:
        version = int(json.loads((log / "_last_checkpoint").read_bytes())["version"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        version = -1
    with os.scandir(log) as entries:
        later = (each for each in entries if each.name > f"{version:020}.json" and each.name.endswith(".json"))
        return any(not each.stat().st_size for each in later)


def file_sizes(folder: Path | None) -> list[int] | None:
    """Return the bytes of each file of the table's latest version; None without one, or where delta-rs cannot say."""
    table = None if folder is None else plain_table(folder)
    return None if table is None else list(table.get_add_actions()["size_bytes"].to_pylist())


def has_files_to_vacuum(folder: Path, hours: int) -> bool:
    """Return whether a vacuum would remove a file, or may: delta-rs cannot always say."""
    from deltalake.exceptions import DeltaError

    table = plain_table(folder)
    try:
        return table is None or bool(table.vacuum(hours, dry_run=True, enforce_retention_duration=False, full=True))
    except (DeltaError, OSError):
        return True


def _files(table: DeltaTable, attempts: list[str]) -> Iterator[str]:
    """List the files that may have rows of one of the attempts, by their statistics."""
    added = table.get_add_actions(flatten=True)
    names = added["path"].to_pylist()
    if not set(_BOUNDS) <= set(added.column_names):
        yield from names
        return
    least, greatest = (added[name].to_pylist() for name in _BOUNDS)
    for name, low, high in zip(names, least, greatest, strict=True):
        at = 0 if low is None else bisect_left(attempts, low)
        if at < len(attempts) and (high is None or attempts[at] <= high):
            yield name


# A lock between processes for the writers of one table, in ledgers on a local path.
#
# Delta adds a version to a log on local files by a check and then a rename, so two JVMs can both believe that they
# wrote it, and the work of one is lost. The lock is the kernel's, on `_locks/<table>.lock` beside the table's folder.
# The process that makes the commit holds it. For a command of Spark's that is the driver's JVM, not Python: a JVM whose
# Python was killed runs on for a second and may still commit. For a commit by delta-rs it is this process. The kernel
# releases a lock when its holder ends, however it ends. No command holds two of them, so there is no deadlock.

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
        raise unwritable(f"its lock file {file} cannot be opened: {reason}") from error


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


# Explain errors of Spark and Delta as faults: what is wrong, where, and what to do.
#
# Whose file it is that cannot be read is decided by where it lies: in a table's folder of the ledger, or elsewhere. A
# folder of a user's may have the name of a table.

ENGINE_ERRORS = (PySparkException, Py4JJavaError)
JVM_GONE = (Py4JNetworkError, ConnectionError)
"""What a call into the JVM raises once that has ended."""
RAW = (LOG_RECORDS.name, TOPIC_SNAPSHOTS.name, RUNS.name)
"""Tables that everything else can be made of again, and that themselves come from nothing else in the ledger."""

_OURS = (PythonException, PySparkTypeError, PySparkValueError, PySparkAttributeError)
_CONFLICT = re.compile(r"DELTA_CONCURRENT|Concurrent\w+Exception|MetadataChangedException|ProtocolChangedException")
_UNWRITABLE = re.compile(
    r"No space left on device[^\n|]*|File too large|Permission denied[^\n|]*|Read-only file system"
    r"|Operation not permitted|Not a directory|ParentNotDirectoryException|Mkdirs failed to create[^\n]*"
)
_DAMAGED = re.compile(
    r"FAILED_READ_FILE|CANNOT_READ_FILE|is not a Parquet file|ChecksumException|FileNotFoundException"
    r"|DELTA_\w*(?:LOG_FILE|STATE_RECOVER|FILE_NOT_FOUND|TRUNCATED|VERSIONS_NOT_CONTIGUOUS|CHECKSUM|INTEGRITY)"
    r"|Json(?:Parse|EOF|Mapping)|MalformedJson|versions are not contiguous|Unexpected character"
)
_BROKEN = re.compile(r"CHECK constraint (\w+) .*? violated by row with values:((?:\s+- [^\n]*)+)", re.DOTALL)
_READ = re.compile(
    r"FAILED_READ_FILE[^\n]*?reading (?:file )?(?P<file>\S[^\n]*?)(?:\.?\s+SQLSTATE|\.\s|\s*$)", re.MULTILINE
)
_FILE = re.compile(r"[^\s'\"`,;()\[\]]+\.(?:parquet|json|crc|gz|jsonl|csv|orc|avro|bz2|zst|snappy|lz4)\b")
_BEFORE_PATH = r"(?<![^\s'\"`,;:=()\[\]])"
_REST_OF_PATH = r"[^\s'\"`,;()\[\]]*"
_REASONS = (
    (r"Unexpected end of|EOFException", "its compressed data ends too soon: copy it again, whole"),
    (
        r"not (?:in gzip format|a gzip file)|incorrect (?:header|data) check"
        r"|invalid (?:block|stored|distance|code|literal|bit)|ZipException|DataFormatException|ZLIB",
        "its compressed data is damaged, or it is not what its ending says: make it again",
    ),
    (r"is not a Parquet file|Could not read footer|corrupt", "it is damaged, or not of this format: make it again"),
    (r"Permission denied|AccessControlException", "this user may not read it: change its owner or mode"),
    (r"FileNotFoundException|does not exist", "it is gone: leave files alone while they are read"),
)
_SCHEMES = dict.fromkeys(("s3a", "s3", "s3n"), "aws") | dict.fromkeys(("abfs", "abfss", "wasb", "wasbs"), "azure")
_SCHEMES["gs"] = "gcp"
_NO_SCHEME = re.compile(r'No FileSystem for scheme:? "?(?P<scheme>[\w+.-]+)')
_NO_CLASS = re.compile(r"Class \S*?\.(?:s3a|azurebfs|azure|gs|gcs)\.(?P<name>\w+) not found")
_UNREACHABLE = re.compile(
    r"UnknownHostException: (?P<host>[^\s:;]+)|Call From \S+ to \S+ failed[^\n;]*|Connection refused[^\n]*"
    r"|NoRouteToHostException"
)
_NO_MEMORY = re.compile(r"OutOfMemoryError[^\n]*|must be at least \d+[^\n]*memory[^\n]*")
_ERROR_CLASS = re.compile(r"(?:\b[\w$]+\.)+[\w$]*(?:Exception|Error|Throwable)\b:?\s*")
_CLASS = re.compile(r"\b(?:[a-z][\w$]*\.){2,}(?=[A-Z])")
_NO_WORDS = ("at ", "...", "Caused by", "Driver stacktrace", "An error occurred while calling", "|", "+-", "JVM stack")
_WORDS = 300


class WriteConflict(Fault):
    """Another attempt changed what this one rests on: start again from what is committed now."""

    def __init__(self, message: str) -> None:
        super().__init__("WRITE_CONFLICT", message)

    def __reduce__(self) -> tuple[type[Fault], tuple[str]]:  # type: ignore[override]
        return type(self), (self.message,)


class LedgerRefusal(Fault):
    """The ledger cannot be written, or a file of it cannot be read."""


def is_conflict(error: Exception) -> bool:
    """Return whether Delta refused a commit because of another one beside it."""
    return _CONFLICT.search(str(error)) is not None


@contextmanager
def engine_errors_as_faults(location: LedgerLocation) -> Iterator[None]:
    """Raise errors that a user can mend as faults, those of files written here too; others as they are."""
    try:
        yield
    except (*ENGINE_ERRORS, OSError, ValueError) as error:
        fault = explained(error, location)
        if fault is None:
            raise
        raise fault from error


def is_bug(error: Exception) -> bool:
    """Return whether code of ours raised it: in a Python worker, or by calling Spark in a wrong way."""
    return isinstance(error, _OURS)


def explained(error: Exception, location: LedgerLocation | None) -> Fault | None:
    """Explain what is wrong with the ledger at `location`, a source, the disk or the set-up; None for anything else.

    WRITE_CONFLICT, CONSTRAINT_BROKEN, LEDGER_UNWRITABLE, LEDGER_DAMAGED, SOURCE_UNREADABLE, STORE_UNKNOWN,
    STORE_UNREACHABLE, OUT_OF_MEMORY, JVM_GONE.
    """
    if isinstance(error, JVM_GONE):
        return LedgerRefusal(
            "JVM_GONE", "Spark's JVM has ended: killed, or out of memory (spark.driver_memory); run it again"
        )
    text = _whole(error)
    if _CONFLICT.search(text):
        return WriteConflict("another job changed a table meanwhile; nothing of this run counts; run it again")
    broken = _BROKEN.search(text)
    if broken and broken[1] in CONSTRAINTS:
        return _broken(broken[1], broken[2])
    return _set_up(text) or _missing_file(error, unquote(text), location)


def _set_up(text: str) -> Fault | None:
    """Explain what is wrong with the machine or the session."""
    store = _NO_SCHEME.search(text) or _NO_CLASS.search(text)
    if store:
        return _unknown_store(store)
    unreachable = _UNREACHABLE.search(text)
    if unreachable:
        what = unreachable["host"] or _plain(unreachable[0])
        return LedgerRefusal(
            "STORE_UNREACHABLE", f"a store cannot be reached: {what}; check the address, and the network"
        )
    if _NO_MEMORY.search(text):
        return LedgerRefusal(
            "OUT_OF_MEMORY", "Spark's JVM has too little memory: raise spark.driver_memory, such as 2g"
        )
    return None


def _unknown_store(found: re.Match[str]) -> Fault:
    name = found.groupdict().get("scheme", "")
    if not name:
        name = next((scheme for scheme, mark in _MARKS.items() if mark in found[0]), "")
    store = _SCHEMES.get(name)
    if store is None:
        return LedgerRefusal(
            "STORE_UNKNOWN", f"{name}:// is no file system that Spark knows; write s3a://, gs://, hdfs:// ..."
        )
    what = f"{name}:// needs a jar that Spark does not bring"
    jar = f"org.apache.hadoop:hadoop-{store}:{release_of(pyspark.__version__).hadoop}"
    return LedgerRefusal(
        "STORE_UNKNOWN", f"{what}: name {jar} in spark.conf, as spark.jars.packages, or give spark-submit it"
    )


_MARKS = {"s3a": ".s3a.", "abfss": ".azurebfs.", "wasbs": ".azure.", "gs": ".Google"}


def _missing_file(error: Exception, text: str, location: LedgerLocation | None) -> Fault | None:
    """Explain what is wrong with a file, the ledger's or another."""
    failed = [found["file"] for found in _READ.finditer(text)]
    tables = "|".join(map(re.escape, sorted(BY_NAME)))
    place = rf"/+(?P<table>{tables})/{_REST_OF_PATH}"
    mine = _names("\n".join(failed) if failed else text, location, place)
    if mine is None and failed:
        return _unreadable(failed[-1], error, text)
    refused = _UNWRITABLE.search(text)
    if refused:
        what = "the ledger cannot be written" if _names(text, location) else "a file cannot be written"
        return unwritable(_plain(refused[0]), what)
    if _DAMAGED.search(text) is None:
        return None
    if mine is not None:
        return damaged(mine["table"], f"{mine[0].rstrip('.')} cannot be read ({meaning(error)})")
    other = _FILE.search(text)
    return None if other is None else _unreadable(other[0], error, text)


def _unreadable(file: str, error: Exception, text: str) -> Fault:
    """Return the fault of a file that is not the ledger's."""
    why = next((words for pattern, words in _REASONS if re.search(pattern, text)), None) or meaning(error)
    return LedgerRefusal("SOURCE_UNREADABLE", f"{re.sub('^file:/+', '/', file)} cannot be read: {why}")


def _broken(constraint: str, values: str) -> Fault:
    table, condition = CONSTRAINTS[constraint]
    got = ", ".join(line.strip("- ") for line in values.splitlines() if ":" in line)[:_WORDS]
    what = f"a row of table {table.name} breaks the constraint {constraint}: got {got}; expected {condition}"
    return LedgerRefusal(
        "CONSTRAINT_BROKEN", f"{what}; nothing of this run counts; what wrote it has a defect: report it"
    )


def unwritable(why: str, what: str = "the ledger cannot be written") -> Fault:
    """Return the fault of a ledger, or of another file, that cannot be written."""
    message = f"{what}: {why}; nothing of this run counts; mend that, then run it again"
    return LedgerRefusal("LEDGER_UNWRITABLE", message)


def damaged(table: str, what: str) -> Fault:
    """Return the fault of a table that cannot be read or lacks rows, with the remedy."""
    way_out = (
        "restore this table from a backup, or ingest the sources into a new ledger: it is what the others are made of"
        if table in RAW
        else "`groupledger rebuild` makes its rows again from log_records"
    )
    return LedgerRefusal("LEDGER_DAMAGED", f"table {table} is damaged: {what}; {way_out}")


def meaning(error: Exception) -> str:
    """Return the first readable words of the error's root cause: no class of Java's, no stack."""
    for text in reversed(_texts(error)):
        for line in text.splitlines():
            words = _plain(line)
            if words and not words.startswith(_NO_WORDS):
                return words
    return next(reversed(re.findall(r"\w+(?:Exception|Error)", _whole(error))), "it does not say why")


def _plain(line: str) -> str:
    """Remove the names of Java's classes from a line, and cut it to a readable length."""
    text = _CLASS.sub("", _ERROR_CLASS.sub("", line)).strip(" :;\t")
    return text if len(text) <= _WORDS else f"{text[:_WORDS]}..."


def _whole(error: Exception) -> str:
    """Return the error's text with those of its causes in the JVM."""
    return "\n".join(_texts(error))


def _texts(error: Exception) -> list[str]:
    texts = [str(error)]
    cause = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    while cause is not None and len(texts) < 10:
        texts.append(str(cause.toString()))
        cause = cause.getCause()
    return texts


def _names(text: str, location: LedgerLocation | None, below: str = r"(?![\w.-])") -> re.Match[str] | None:
    """Find where the text names the ledger's folder, or something in it."""
    if location is None:
        return None
    path = location.path if location.path is not None else _folder_of_schema(location)
    path = re.sub(r"^file:/+", "/", unquote(path))  # messages of the engine have no scheme `file`
    root = (path if "://" in path else str(Path(path).absolute())).rstrip("/")
    return re.search(f"{_BEFORE_PATH}{re.escape(root)}{below}", re.sub(r"\bfile:/+", "/", text))


def _folder_of_schema(location: LedgerLocation) -> str:
    """Return where the tables of a ledger in a catalog are; asked only after an error."""
    from pyspark.sql import SparkSession

    spark = SparkSession.getActiveSession()
    try:
        rows = spark.sql(f"DESCRIBE SCHEMA EXTENDED {location.schema}").collect() if spark else []
    except ENGINE_ERRORS:
        rows = []
    return next((str(row[1]) for row in rows if row[0] == "Location"), "/no schema tells its place")
