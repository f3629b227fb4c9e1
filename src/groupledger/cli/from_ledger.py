"""`groupledger simulate --from-ledger GROUP`: scripts go on where a recorded group stands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupledger.cli.scripts import ScriptLines

if TYPE_CHECKING:
    from groupledger.cli.options import Job
    from groupledger.core.protocol.recorded_clients import RecordedGroup


@dataclass(frozen=True, slots=True)
class RecordedStart:
    """The group that scripts start from."""

    job: Job
    group: str
    cluster: str | None


def started(files: Iterable[ScriptLines], start: RecordedStart) -> list[ScriptLines]:
    """These scripts, each after the members of the recorded group have joined together, over its topics.

    Raises Fault: UNKNOWN_GROUP, AMBIGUOUS_GROUP, NOT_CLASSIC, NO_MEMBERS, UNKNOWN_CLIENT.
    """
    from groupledger.answers.recorded_members import recorded_members

    recorded, counts = recorded_members(start.job.reader(), start.group, start.cluster)
    joins = list(_joins(recorded))
    return [ScriptLines(file.named, [_after(line, joins, counts) for line in file.lines]) for file in files]


def _joins(recorded: RecordedGroup) -> Iterator[dict[str, Any]]:
    """All but the last with the next one: one round, as after a deployment."""
    for number, client in enumerate(recorded.clients, 1):
        yield {
            "event": "join",
            "member": client.member,
            "topics": list(client.topics),
            "assignors": list(client.assignors),
            "group_instance_id": client.group_instance_id,
            "byte_code": client.byte_code.name,
            "library": client.library,
            "together": number < len(recorded.clients),
        }


def _after(line: str, joins: list[dict[str, Any]], counts: dict[str, int]) -> str:
    """A script line whose events come after these; what is no script is left for its reader to refuse."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(found, dict):
        return line
    topics, events = found.get("topics", {}), found.get("events", [])
    if isinstance(topics, dict):
        found["topics"] = {**counts, **topics}
    if isinstance(events, list):
        found["events"] = [*joins, *events]
    return json.dumps(found)
