"""Print the traceback of a bug of ours without the secrets that an exception's message may quote."""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType

from groupledger.cli.output import say_lines
from groupledger.core.secrets import without_secrets

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
