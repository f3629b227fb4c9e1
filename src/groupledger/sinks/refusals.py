"""What Spark and Delta say when they cannot read or write the ledger, as a fault that names table, file and way out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from groupledger.core.faults import Fault
from groupledger.tables import BY_NAME, CONSTRAINTS, LOG_RECORDS, RUNS, TOPIC_SNAPSHOTS

ENGINE_ERRORS = (PySparkException, Py4JJavaError)
RAW = (LOG_RECORDS.name, TOPIC_SNAPSHOTS.name, RUNS.name)
"""Tables that everything else can be made of again, and that themselves come from nothing else in the ledger."""

_CONFLICT = re.compile(r"DELTA_CONCURRENT|Concurrent\w+Exception|MetadataChangedException|ProtocolChangedException")
_UNWRITABLE = re.compile(
    r"No space left on device[^\n|]*|File too large|Permission denied[^\n|]*|Read-only file system"
)
_DAMAGED = re.compile(
    r"FAILED_READ_FILE|CANNOT_READ_FILE|is not a Parquet file|ChecksumException|FileNotFoundException"
    r"|DELTA_\w*(?:LOG_FILE|STATE_RECOVER|FILE_NOT_FOUND|TRUNCATED|VERSIONS_NOT_CONTIGUOUS|CHECKSUM|INTEGRITY)"
    r"|Json(?:Parse|EOF|Mapping)|MalformedJson|versions are not contiguous|Unexpected character"
)
_BROKEN = re.compile(r"CHECK constraint (\w+) .*? violated by row with values:((?:\s+- [^\n]*)+)", re.DOTALL)
_FILE = re.compile(r"[^\s'\"`,;()\[\]]+\.(?:parquet|json|crc)\b")
_WORDS = 300


class WriteConflict(Fault):
    """Another attempt changed what this one rests on: start again from what is committed now."""

    def __init__(self, message: str) -> None:
        super().__init__("WRITE_CONFLICT", message)

    def __reduce__(self) -> tuple[type[Fault], tuple[str]]:  # type: ignore[override]
        return type(self), (self.message,)


class Refusal(Fault):
    """The ledger cannot be written, or a file of it cannot be read."""


def is_conflict(error: Exception) -> bool:
    """Whether Delta refused a commit because of another one beside it."""
    return _CONFLICT.search(str(error)) is not None


@contextmanager
def named() -> Iterator[None]:
    """Errors of the engine that are the ledger's state, or the disk's, as faults; all others as they are."""
    try:
        yield
    except ENGINE_ERRORS as error:
        fault = explained(error)
        if fault is None:
            raise
        raise fault from error


def explained(error: Exception) -> Fault | None:
    """WRITE_CONFLICT, CONSTRAINT_BROKEN, LEDGER_UNWRITABLE or LEDGER_DAMAGED; None where it is something else."""
    text = _whole(error)
    if _CONFLICT.search(text):
        return WriteConflict("another job changed a table meanwhile; nothing of this run counts; run it again")
    broken = _BROKEN.search(text)
    if broken and broken[1] in CONSTRAINTS:
        return _broken(broken[1], broken[2])
    refused = _UNWRITABLE.search(text)
    if refused:
        what = f"the ledger cannot be written: {refused[0].strip()}"
        return Refusal("LEDGER_UNWRITABLE", f"{what}; nothing of this run counts; mend that, then run it again")
    found = _table_and_file(text)
    if found is None or _DAMAGED.search(text) is None:
        return None
    table, file = found
    return damaged(table, f"{file} cannot be read ({next(iter(text.splitlines()), '')[:_WORDS]})")


def _broken(constraint: str, values: str) -> Fault:
    table, condition = CONSTRAINTS[constraint]
    got = ", ".join(line.strip("- ") for line in values.splitlines() if ":" in line)[:_WORDS]
    what = f"a row of table {table.name} breaks the constraint {constraint}: got {got}; expected {condition}"
    return Refusal("CONSTRAINT_BROKEN", f"{what}; nothing of this run counts; what wrote it has a defect: report it")


def damaged(table: str, what: str) -> Fault:
    """The fault of a table that cannot be read or lacks rows, with what to do about it."""
    way_out = (
        "restore this table from a backup, or ingest the sources into a new ledger: it is what the others are made of"
        if table in RAW
        else "`groupledger rebuild` makes its rows again from log_records"
    )
    return Refusal("LEDGER_DAMAGED", f"table {table} is damaged: {what}; {way_out}")


def _whole(error: Exception) -> str:
    """The error's words with those of its causes in the JVM."""
    texts = [str(error)]
    cause = getattr(error, "java_exception", None)
    while cause is not None and len(texts) < 10:
        texts.append(str(cause.toString()))
        cause = cause.getCause()
    return "\n".join(texts)


def _table_and_file(text: str) -> tuple[str, str] | None:
    """The first file of a table of ours that the words name."""
    for match in _FILE.finditer(text):
        folders = match[0].split("/")[:-1]
        tables = [name for name in folders if name in BY_NAME]
        if tables:
            return tables[-1], match[0].removeprefix("file:")
    return None
