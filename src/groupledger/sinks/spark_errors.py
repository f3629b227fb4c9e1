"""Explain errors of Spark and Delta as faults: what is wrong, where, and what to do.

Whose file it is that cannot be read is decided by where it lies: in a table's folder of the ledger, or elsewhere. A
folder of a user's may have the name of a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pyspark
from py4j.protocol import Py4JJavaError, Py4JNetworkError
from pyspark.errors import (
    PySparkAttributeError,
    PySparkException,
    PySparkTypeError,
    PySparkValueError,
    PythonException,
)

from groupledger.core.faults import Fault
from groupledger.core.spark_versions import release_of
from groupledger.sinks.location import LedgerLocation
from groupledger.tables import BY_NAME, CONSTRAINTS, LOG_RECORDS, RUNS, TOPIC_SNAPSHOTS

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
    return _set_up(text) or _file(error, unquote(text), location)


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


def _file(error: Exception, text: str, location: LedgerLocation | None) -> Fault | None:
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
