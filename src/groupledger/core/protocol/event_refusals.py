"""What is refused of an event in any kind of simulated group."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from groupledger.core.faults import Fault
from groupledger.core.protocol import events as e

BAD_EVENT = "BAD_EVENT"
REFUSALS = frozenset({"INCONSISTENT_GROUP_PROTOCOL", "GROUP_ID_NOT_FOUND"})
PATTERN = re.compile(r"[*+?^$|\\()\[{}]")
"""What stands in a pattern, and in no topic's name."""


def no_process(name: str) -> Fault:
    """Say that no process of this name runs."""
    return Fault(BAD_EVENT, f"there is no process {name!r}; expected one that joined and has not ended")


def ended(settings: Mapping[str, e.Join], name: str) -> e.Join:
    """How a process that ended had joined; raises Fault(BAD_EVENT) where none of this name did."""
    found = settings.get(name)
    if found is None:
        raise Fault(BAD_EVENT, f"there is no process {name!r} to restart; expected one that joined")
    return found


def require_topic_names(names: Iterable[str]) -> None:
    """Raise Fault(BAD_EVENT) for a pattern: no topic can be called so."""
    for name in names:
        if PATTERN.search(name) is not None:
            raise Fault(BAD_EVENT, f"topic is {name[:80]!r}; expected a name; a pattern is a topic_regex")


def no_expiry(_: object, event: e.Expire) -> None:
    """Raise Fault(BAD_EVENT): a clock ends sessions."""
    raise Fault(BAD_EVENT, f"{event.member!r} is to expire; where a script has times, sessions end by themselves")


def needs_times(_: object, event: e.Hang | e.CutOff) -> None:
    """Raise Fault(BAD_EVENT): without a clock no poll and no heartbeat is ever late."""
    raise Fault(BAD_EVENT, f"{event.member!r} is to hang or to be cut off; expected a script with times")
