"""Find custom assignors by name: an entry point of the group `groupledger.assignors`, or `module:function`.

Names come from configuration or code, never from data: a record that names `os:system` imports nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from groupledger.core.custom.custom_group import DEFAULT, CustomAssignor, CustomLimits
from groupledger.core.custom.messages import Unusable
from groupledger.core.faults import MODULE_NAME, Fault

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


ENTRY_POINTS = "groupledger.assignors"
NOT_FOUND = "ASSIGNOR_NOT_FOUND"
SOLVED_ALONE = (
    "those of other client libraries, such as kafka-python-sticky, only in `groupledger solve` and `what-if GROUP`"
)
"""What other commands say of these: they would have to invent the bytes that members send
(docs/guides/decide/solve-one-group.md)."""
ON_THE_PATH = "a module on the Python path, here and in every Spark worker, or in the current folder"


def may_be_custom(name: str) -> bool:
    """Return whether a name has the form `module:function` or is an installed entry point; nothing is imported."""
    return MODULE_NAME.fullmatch(name) is not None or len(_entry_points(name)) > 0


def find_all(names: Iterable[str], limits: CustomLimits = DEFAULT) -> dict[str, CustomAssignor]:
    """Map each name to what `find` returns."""
    return {name: find(name, limits) for name in names}


def find(name: str, limits: CustomLimits = DEFAULT) -> CustomAssignor:
    """Return what an assignor declares about itself. Its module is imported in another process, never in this one.

    Raises Fault("ASSIGNOR_NOT_FOUND"), which says what could not be imported.
    """
    from groupledger.core.custom import children  # most runs need no process of custom code

    points = [] if MODULE_NAME.fullmatch(name) else _entry_points(name)
    source = points[0].value if points else name
    if len({point.value for point in points}) > 1:
        values = ", ".join(sorted({point.value for point in points}))
        raise Fault(NOT_FOUND, f"{name!r} is an entry point of {ENTRY_POINTS} twice: {values}; expected once")
    if MODULE_NAME.fullmatch(source) is None:
        raise Fault(NOT_FOUND, f"assignor is {source!r}; expected module:function or an entry point of {ENTRY_POINTS}")
    try:
        return children.described(CustomAssignor(name, None, frozenset(), None, source, limits=limits))
    except Unusable as error:
        raise Fault(NOT_FOUND, f"{error}; expected {ON_THE_PATH}") from error


def by_every_name(found: Mapping[str, CustomAssignor], ours: Collection[str]) -> dict[str, CustomAssignor]:
    """Map each assignor's requested name, and the name by which members join with it, to the assignor.

    A name among `ours` stays ours. Raises Fault("ASSIGNOR_AMBIGUOUS") if two share a name.
    """
    known = dict(found)
    for custom in found.values():
        name = custom.protocol_name
        if name is None or name in ours:
            continue
        if known.setdefault(name, custom).source != custom.source:
            message = f"{custom.name!r} and {known[name].name!r} both call themselves {name!r}; expected one of them"
            raise Fault("ASSIGNOR_AMBIGUOUS", message)
    return known


def source_digests(found: Mapping[str, CustomAssignor]) -> dict[str, str]:
    """Map each name to the SHA-256 of its module's source: changed code makes another run."""
    return {name: found[name].digest for name in sorted(found)}


def _entry_points(name: str) -> list[EntryPoint]:
    from importlib import metadata

    return list(metadata.entry_points(group=ENTRY_POINTS, name=name))
