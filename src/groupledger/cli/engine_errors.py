"""Report errors of Spark, its JVM and the machine as one line: what failed, and where the full error is."""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any

from groupledger.cli.output import say_lines
from groupledger.core.faults import Fault
from groupledger.core.secrets import without_secrets
from groupledger.core.spark_versions import spark_missing

if TYPE_CHECKING:
    from groupledger.config import LedgerSettings


LEDGER, JVM_OUTPUT = "groupledger.ledger", "groupledger.jvm_output"
"""Keys in click's `meta`: the settings of the command's ledger, and the file that its JVM writes to."""

LOGGED = frozenset({"JVM_GONE", "OUT_OF_MEMORY"})
"""Faults whose cause only the JVM's output can tell."""
MOST_OF_LOG = 2**20


def foreign_errors() -> tuple[type[Exception], ...]:
    """Return exceptions that are not bugs of ours: errors of the machine, and of Spark if it was started."""
    if "pyspark.sql" not in sys.modules:
        return (OSError, ModuleNotFoundError)
    from groupledger.sinks.refusals import ENGINE_ERRORS, JVM_GONE

    return (OSError, ModuleNotFoundError, *ENGINE_ERRORS, *JVM_GONE)


def explained(error: Exception, meta: Mapping[str, Any]) -> Fault | None:
    """Convert the error to a fault; None if it is a bug of ours."""
    if isinstance(error, ModuleNotFoundError):
        return spark_missing() if (error.name or "").partition(".")[0] in ("pyspark", "py4j") else None
    if isinstance(error, OSError) and not isinstance(error, ConnectionError):
        where = f": {error.filename}" if error.filename else ""
        return Fault("NOT_POSSIBLE_HERE", f"{error.strerror or error}{where}; mend that, then run it again")
    from groupledger.sinks.refusals import explained as known
    from groupledger.sinks.refusals import is_bug, meaning

    if is_bug(error):
        return None
    from groupledger.sinks.ledger import LedgerLocation

    settings: LedgerSettings | None = meta.get(LEDGER)
    fault = known(error, LedgerLocation.of(settings) if settings else None)
    if fault is not None and fault.code not in LOGGED:
        return fault
    what = fault or Fault("ENGINE_FAILED", f"Spark failed: {meaning(error)}")
    return Fault(what.code, f"{what.message}; all it said: {_written(error, meta.get(JVM_OUTPUT))}")


def _written(error: Exception, jvm_output: IO[bytes] | None) -> str:
    """Write the whole error and the JVM's output to a file of its own; return its name."""
    number, name = tempfile.mkstemp(prefix="groupledger-", suffix=".log")
    told = "".join(traceback.format_exception(error))
    if jvm_output is not None:
        jvm_output.seek(-min(MOST_OF_LOG, jvm_output.seek(0, os.SEEK_END)), os.SEEK_END)
        told += jvm_output.read().decode("utf-8", "replace")
    os.close(number)
    Path(name).write_text(without_secrets(told), encoding="utf-8", errors="backslashreplace")
    return name


# Print the traceback of a bug of ours without the secrets that an exception's message may quote.

SPARKS_OWN = "SQLQueryContextLogger"
"""The logger to which PySpark writes a query's exception in full, as JSON on stderr, when it is raised."""


def hide_secrets() -> None:
    """From now on, print errors that end this process without secrets, and only once."""
    sys.excepthook = tell
    logging.getLogger(SPARKS_OWN).setLevel(logging.CRITICAL + 1)


def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an exception as Python does, on stderr."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    say_lines(without_secrets("".join(traceback.format_exception(kind, error, trace))))
