"""Import code that is not ours when it is needed: users' own by the name `module:name`, and client libraries.

A name comes from configuration or a command, never from data.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from groupledger.core.faults import Fault

RAISED = (Exception, SystemExit)
"""What users' code may raise; sys.exit() in it must not end a command as if it had succeeded."""


@contextmanager
def prints_to_stderr() -> Iterator[None]:
    """Send what users' code prints to stderr: stdout has a command's results, which a program may read."""
    with redirect_stdout(sys.stderr):
        yield


def imported(name: str, code: str, expected: str) -> Any:
    """Return the object named `module:name`. Raises Fault(code), which says what failed and what was `expected`."""
    module, _, attribute = name.partition(":")
    try:
        with prints_to_stderr():
            return getattr(importlib.import_module(module), attribute)
    except RAISED as error:  # a foreign module may fail in any way during its import
        told = f"{type(error).__name__}: {error}"
        raise Fault(code, f"cannot import {name}: {told}; expected {expected}") from error


def client_module(name: str, package: str, extra: str | None = None) -> Any:
    """Return a client library, imported now. Raises Fault("CLIENT_MISSING") if it is not installed.

    `extra`: the extra of groupledger that installs it.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        wanted = package if extra is None else f"'groupledger[{extra}]'"
        raise Fault("CLIENT_MISSING", f"{package} is not installed; expected `pip install {wanted}`") from error
