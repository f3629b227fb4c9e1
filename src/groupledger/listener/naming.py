"""Find a user's listener by name: `module:Class`. Names come from the command line or code, never from data."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from groupledger.core.faults import Fault
from groupledger.core.user_code import imported
from groupledger.listener.interface import Adapted, RebalanceListener

NOT_FOUND = "LISTENER_NOT_FOUND"
NOT_MADE = "LISTENER_NOT_MADE"
_MODULE_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
REQUIRED = ("on_partitions_assigned", "on_partitions_revoked")


def find_listener(name: str) -> Callable[[], RebalanceListener]:
    """Return a function that makes a listener for each member; a class of kafka-python's form is adapted.

    Raises Fault("LISTENER_NOT_FOUND"), which says what could not be imported or is missing; the function raises
    Fault("LISTENER_NOT_MADE") if the class cannot be called without arguments.
    """
    if _MODULE_CLASS.fullmatch(name) is None:
        raise Fault(NOT_FOUND, f"listener is {name!r}; expected module:Class")
    kind = imported(name, NOT_FOUND, "a module on the Python path")
    if isinstance(kind, type) and issubclass(kind, RebalanceListener):
        return lambda: _made(name, kind)
    missing = [method for method in REQUIRED if not callable(getattr(kind, method, None))]
    if not isinstance(kind, type) or missing:
        raise Fault(NOT_FOUND, f"{name} is no listener; expected a class with {', '.join(missing or REQUIRED)}")
    return lambda: Adapted(_made(name, kind))


def _made(name: str, kind: Callable[[], Any]) -> Any:
    try:
        return kind()
    except Exception as error:  # a foreign constructor may fail in any way
        told = f"{name}() raised {type(error).__name__}: {error}"
        raise Fault(NOT_MADE, f"{told}; expected a class that is made without arguments") from error
