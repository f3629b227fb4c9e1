"""A user's listener by name: `module:Class`. Names come from the command line or code, never from data."""

from __future__ import annotations

import re
from collections.abc import Callable

from groupledger.core.faults import Fault
from groupledger.core.user_code import imported
from groupledger.listener.interface import Adapted, RebalanceListener

NOT_FOUND = "LISTENER_NOT_FOUND"
_MODULE_CLASS = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
REQUIRED = ("on_partitions_assigned", "on_partitions_revoked")


def find_listener(name: str) -> Callable[[], RebalanceListener]:
    """What makes a listener for each member; a class of kafka-python's form is adapted.

    Raises Fault("LISTENER_NOT_FOUND"), which says what could not be imported or is missing.
    """
    if _MODULE_CLASS.fullmatch(name) is None:
        raise Fault(NOT_FOUND, f"listener is {name!r}; expected module:Class")
    kind = imported(name, NOT_FOUND, "a module on the Python path")
    if isinstance(kind, type) and issubclass(kind, RebalanceListener):
        return kind
    missing = [method for method in REQUIRED if not callable(getattr(kind, method, None))]
    if not isinstance(kind, type) or missing:
        raise Fault(NOT_FOUND, f"{name} is no listener; expected a class with {', '.join(missing or REQUIRED)}")
    return lambda: Adapted(kind())
