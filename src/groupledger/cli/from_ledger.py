"""`groupledger simulate --from-ledger GROUP`: scripts go on where a recorded group stands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from groupledger.answers.spoken import numbered
from groupledger.cli.output import say
from groupledger.cli.scripts import ScriptLines
from groupledger.core.faults import Fault
from groupledger.core.moment import from_millis, iso

if TYPE_CHECKING:
    from groupledger.cli.options import Job
    from groupledger.core.protocol.recorded_start import GroupStart


@dataclass(frozen=True, slots=True)
class RecordedStart:
    """The group that scripts start from."""

    job: Job
    group: str
    cluster: str | None


def started(files: Iterable[ScriptLines], start: RecordedStart) -> list[ScriptLines]:
    """Return these scripts, each with the group's recorded members before its events, over its and the group's topics.

    Raises Fault: UNKNOWN_GROUP, AMBIGUOUS_GROUP, and as `members_now`; TOPIC_NOT_LISTED where a script does not say how
    many partitions a topic has that no listing names.
    """
    from groupledger.answers.recorded_members import members_now
    from groupledger.core.protocol.script import Script
    from groupledger.core.protocol.story import write_script

    scripts = [ScriptLines(file.named, list(file.lines)) for file in files]
    recorded, counts = members_now(start.job.reader(), start.group, start.cluster, _topics_named(scripts))
    there = {topic: count for topic, count in counts.items() if count is not None}
    joins = write_script(Script(there, recorded.joins), start.group)["events"]
    say(f"{start.group} {_told(recorded, there)}")
    wanted = {topic for join in recorded.joins for topic in join.topics} - counts.keys()
    before = _Before(recorded.generation, there, tuple(sorted(wanted)), joins)
    return [ScriptLines(file.named, [before.put(line) for line in file.lines]) for file in scripts]


def _topics_named(files: Iterable[ScriptLines]) -> set[str] | None:
    """Return the topics that events of these scripts name; None where one subscribes by a pattern: all may match."""
    scripts = filter(None, (_object(line) for file in files for line in file.lines))
    lists = [found.get("events") for found in scripts]
    events = [each for some in lists if isinstance(some, list) for each in some if isinstance(each, dict)]
    if any(each.get("topic_regex") is not None for each in events):
        return None
    named = [each["topics"] if isinstance(each.get("topics"), list) else [each.get("topic")] for each in events]
    return {topic for some in named for topic in some if isinstance(topic, str)}


def _object(line: str) -> dict[str, Any] | None:
    """Return the JSON object of a line; None for all else, which is left for the reader of scripts to refuse."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _told(recorded: GroupStart, counts: dict[str, int]) -> str:
    """Return what the scripts start from, as a sentence without its subject."""
    at = iso(from_millis(recorded.snapshot.observed_at))
    number = "group epoch" if recorded.snapshot.group_type == "consumer" else "generation"
    state = f"starts as recorded at {at}: {number} {recorded.generation}"
    if not recorded.joins:
        return f"{state}, no members"
    held = {each for join in recorded.joins if join.seat is not None for each in join.seat.assigned}
    topics = {topic for join in recorded.joins for topic in join.topics}
    wanted = {(topic, number) for topic in topics for number in range(counts.get(topic, 0))}
    away = len(wanted - held)
    return f"{state}, {numbered(len(recorded.joins), 'member')}, {numbered(away, 'partition')} without an owner"


@dataclass(frozen=True, slots=True)
class _Before:
    """What comes before the events of each script; `unlisted` topics are in no listing."""

    generation: int
    counts: dict[str, int]
    unlisted: tuple[str, ...]
    joins: list[dict[str, Any]]

    def put(self, line: str) -> str:
        """Return a script line whose events come after these."""
        found = _object(line)
        if found is None:
            return line
        topics, events = found.get("topics", {}), found.get("events", [])
        if isinstance(topics, dict):
            unknown = [each for each in self.unlisted if each not in topics]
            if unknown:
                told = f"no topic listing names {unknown[0]!r}, which members subscribe to"
                raise Fault("TOPIC_NOT_LISTED", f"{told}; expected its partitions in the script's topics")
            found["topics"] = {**self.counts, **topics}
        found["generation"] = self.generation
        if isinstance(events, list):
            found["events"] = [*self.joins, *events]
        return json.dumps(found)
