"""The traceback of a bug of ours, without the secrets that an exception's words may quote."""

from __future__ import annotations

import logging
import sys
import traceback
from types import TracebackType

from groupledger.cli.output import say_lines
from groupledger.core.secrets import without_secrets

SPARKS_OWN = "SQLQueryContextLogger"
"""To which PySpark tells an exception of a query as JSON on stderr, in full, while it is raised."""


def hide_secrets() -> None:
    """From now on, what ends this process early is told without secrets, and once."""
    sys.excepthook = tell
    logging.getLogger(SPARKS_OWN).setLevel(logging.CRITICAL + 1)


def tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """As Python tells it, on stderr."""
    if issubclass(kind, KeyboardInterrupt):
        sys.__excepthook__(kind, error, trace)
        return
    say_lines(without_secrets("".join(traceback.format_exception(kind, error, trace))))
