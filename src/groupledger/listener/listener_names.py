"""Find a user's listener by name: `module:Class`. Names come from the command line or code, never from data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from groupledger.core.faults import MODULE_NAME, RAISED, Fault, imported
from groupledger.listener.interface import Adapted, RebalanceListener

NOT_FOUND = "LISTENER_NOT_FOUND"
NOT_MADE = "LISTENER_NOT_MADE"
REQUIRED = ("on_partitions_assigned", "on_partitions_revoked")
CALLBACKS = (*REQUIRED, "on_partitions_lost")


def find_listener(name: str) -> Callable[[], RebalanceListener]:
    """Return a function that makes a listener for each member; a class of kafka-python's form is adapted.

    Raises Fault("LISTENER_NOT_FOUND"), which says what could not be imported or is missing; the function raises
    Fault("LISTENER_NOT_MADE") if the class cannot be called without arguments, or its callbacks not with theirs.
    """
    if MODULE_NAME.fullmatch(name) is None:
        raise Fault(NOT_FOUND, f"listener is {name!r}; expected module:Class")
    kind = imported(name, NOT_FOUND, "a module on the Python path or in the current folder")
    if isinstance(kind, type) and issubclass(kind, RebalanceListener):
        return lambda: _made(name, kind, "partitions", "consumer")
    missing = [method for method in REQUIRED if not callable(getattr(kind, method, None))]
    if not isinstance(kind, type) or missing:
        raise Fault(NOT_FOUND, f"{name} is no listener; expected a class with {', '.join(missing or REQUIRED)}")
    return lambda: Adapted(_made(name, kind, "partitions"))


def _made(name: str, kind: Callable[[], Any], *arguments: str) -> Any:
    try:
        listener = kind()
    except RAISED as error:  # a foreign constructor may fail in any way
        got = f"{name}() raised {type(error).__name__}: {error}"
        raise Fault(NOT_MADE, f"{got}; expected a class that is made without arguments") from error
    for method in CALLBACKS:
        _require_callable(listener, name, method, arguments)
    return listener


def _require_callable(listener: Any, name: str, method: str, arguments: Sequence[str]) -> None:
    """Refuse a callback that would fail in every call; none, or one whose signature Python does not know, passes."""
    callback: Any = getattr(listener, method, None)
    try:
        signature = inspect.signature(callback)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*arguments)
    except TypeError as error:
        takes = f"{name}.{method} takes {signature}, and is called with ({', '.join(arguments)})"
        expected = "(partitions, consumer) in a subclass of groupledger.listener.RebalanceListener, else (partitions)"
        raise Fault(NOT_MADE, f"{takes}; expected {expected}") from error
