"""Run users' listeners from the command line: scripts played with them, and a journal of their actions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from groupledger.core.faults import Fault
from groupledger.core.user_code import prints_to_stderr

if TYPE_CHECKING:
    from groupledger.core.custom.naming import CustomAssignor
    from groupledger.listener import Entry


def plain_entry(entry: Entry) -> dict[str, Any]:
    """Convert one entry of a journal to plain values."""
    named = ", ".join(f"{topic}-{number}" for topic, number in entry.partitions)
    return {
        "member": entry.member,
        "callback": entry.callback.value,
        "did": entry.did,
        "partitions": named,
        "offsets": [offset for offset, *_ in entry.offsets],
        "generation": entry.generation,
        "error": entry.error,
        **({} if entry.at_ms is None else {"at_ms": entry.at_ms}),
    }


def rehearse_lines(
    lines: Iterable[str], listener: str, custom: Mapping[str, CustomAssignor] | None = None, *, metrics: bool = False
) -> Iterator[str]:
    """Yield one result line per script line, as `simulate_lines` does, with the journal of such listeners.

    Raises Fault: LISTENER_NOT_FOUND, LISTENER_NOT_MADE.
    """
    from groupledger.core.protocol.story import read_line, refused_line, result_of
    from groupledger.core.visible_text import json_text
    from groupledger.listener import rehearse
    from groupledger.listener.naming import NOT_MADE, find_listener

    make = find_listener(listener)
    for number, line in enumerate(lines, 1):
        name, script = read_line(line)
        try:
            if isinstance(script, Fault):
                raise script
            with prints_to_stderr():
                played = rehearse(script, make, custom=custom)
        except Fault as fault:
            if fault.code == NOT_MADE:
                raise
            yield json_text(refused_line(name, number, fault))
            continue
        journal = [plain_entry(entry) for entry in played.journal]
        result = result_of(name, played.settlements, metrics=metrics)
        yield json_text({**result, "convicted": len(played.convicted), "journal": journal})
