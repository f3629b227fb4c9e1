"""Custom assignors by name: an entry point of the group `groupledger.assignors`, or `module:function`.

Names come from configuration or code, never from data: a record that says `os:system` imports nothing.
"""

from __future__ import annotations

import functools
import hashlib
import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupledger.core.custom.group import Protocol
from groupledger.core.faults import Fault
from groupledger.core.user_code import imported

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ENTRY_POINTS = "groupledger.assignors"
NOT_FOUND = "ASSIGNOR_NOT_FOUND"
ON_THE_PATH = "a module on the Python path of this process, and of every Spark worker"
_MODULE_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class CustomAssignor:
    """A function under the name it was asked for by."""

    name: str
    function: Callable[..., Any]
    supported_protocols: frozenset[Protocol]
    protocol_name: str | None  # by which members join; None: no record is of this assignor

    @property
    def cooperative(self) -> bool:
        """Whether members keep what they own while they rejoin."""
        return Protocol.COOPERATIVE in self.supported_protocols


def may_be_custom(name: str) -> bool:
    """Whether a name has the form `module:function`, or is an installed entry point; nothing is imported."""
    return _MODULE_FUNCTION.fullmatch(name) is not None or len(_entry_points(name)) > 0


def find_all(names: Iterable[str]) -> dict[str, CustomAssignor]:
    """`find`, by name."""
    return {name: find(name) for name in names}


@functools.cache
def find(name: str) -> CustomAssignor:
    """Import an assignor. Raises Fault("ASSIGNOR_NOT_FOUND"), which says what could not be imported."""
    points = [] if _MODULE_FUNCTION.fullmatch(name) else _entry_points(name)
    target = points[0].value if points else name
    if len({point.value for point in points}) > 1:
        values = ", ".join(sorted({point.value for point in points}))
        raise Fault(NOT_FOUND, f"{name!r} is an entry point of {ENTRY_POINTS} twice: {values}; expected once")
    if _MODULE_FUNCTION.fullmatch(target) is None:
        raise Fault(NOT_FOUND, f"assignor is {target!r}; expected module:function or an entry point of {ENTRY_POINTS}")
    function = imported(target, NOT_FOUND, ON_THE_PATH)
    if not callable(function):
        raise Fault(NOT_FOUND, f"{target} is a {type(function).__name__}; expected a function of a Group")
    protocols = getattr(function, "supported_protocols", (Protocol.EAGER,))
    try:
        supported = frozenset(Protocol(each) for each in protocols)
    except (TypeError, ValueError) as error:
        raise Fault(
            NOT_FOUND, f"supported_protocols of {target} is {protocols!r}; expected EAGER, COOPERATIVE"
        ) from error
    return CustomAssignor(name, function, supported, getattr(function, "assignor_name", None))


def source_digest(names: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the source of each one's module, by name: another code is another run. Raises as `find`."""
    return {name: hashlib.sha256(_source(find(name)).encode()).hexdigest() for name in sorted(names)}


def _source(found: CustomAssignor) -> str:
    import inspect  # it and importlib.metadata cost more than all else here; most runs need neither

    try:
        return inspect.getsource(sys.modules[found.function.__module__])
    except (OSError, TypeError, AttributeError, KeyError):  # compiled, or no plain function
        return repr(type(found.function))


def _entry_points(name: str) -> list[EntryPoint]:
    from importlib import metadata

    return list(metadata.entry_points(group=ENTRY_POINTS, name=name))
