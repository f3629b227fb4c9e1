"""Read files of scripts: JSON lines, one JSON object or a list of them, or YAML documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from groupledger.answers.spoken import numbered
from groupledger.cli.output import say
from groupledger.core.faults import Fault, prints_to_stderr
from groupledger.core.moments import from_millis, iso

if TYPE_CHECKING:
    from groupledger.cli.options import Job
    from groupledger.core.custom.custom_group import CustomAssignor
    from groupledger.core.protocol.recorded_clients import GroupStart
    from groupledger.listener import Entry


YAML = (".yaml", ".yml")
JSON = ".json"
STDIN = "<stdin>"
MOST_VALUES, DEEPEST = 2_000_000, 50
"""Of a YAML file: over a hundred thousand events, and deeper than a script ever is."""


class ScriptLines(NamedTuple):
    """The scripts of one file, a JSON text each; `named` is the file's name in complaints, if there are several."""

    named: str
    lines: Iterable[str]


def read_files(files: Iterable[IO[str]]) -> Iterator[ScriptLines]:
    """Yield the scripts of each file, by its name's ending. Raises Fault("BAD_YAML")."""
    for file in files:
        named = getattr(file, "name", STDIN)
        yield ScriptLines(named, _lines(file, named))


def _lines(file: IO[str], named: str) -> Iterable[str]:
    suffix = Path(named).suffix.lower()
    if suffix in YAML:
        documents = _documents(file, named)
        values = _Values(named)
        return [json.dumps(values.plain(each)) for each in documents]
    return _objects(file.read()) if suffix == JSON else file


def _objects(text: str) -> list[str]:
    """Read one object over several lines, or a list of objects; anything else is one per line."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text.splitlines(keepends=True)
    return [json.dumps(each) for each in found] if isinstance(found, list) else [json.dumps(found)]


def _documents(file: IO[str], named: str) -> list[Any]:
    """Read documents separated by `---`, or the entries of a list."""
    import yaml

    try:
        found = [each for each in yaml.safe_load_all(file) if each is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Fault("BAD_YAML", f"{named}: not YAML{where}: {getattr(error, 'problem', None) or error}") from error
    return [script for each in found for script in (each if isinstance(each, list) else [each])]


class _Values:
    """The values of one YAML file, as JSON has them; what aliases make of it is bounded."""

    def __init__(self, named: str) -> None:
        self.named = named
        self.left = MOST_VALUES

    def plain(self, value: Any, depth: int = 0) -> Any:
        """Convert to JSON values; one that JSON does not have, such as a date, is a text. Raises Fault("BAD_YAML")."""
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            text = f"{self.named}: with its aliases more than {MOST_VALUES:,} values, or nested over {DEEPEST} deep"
            raise Fault("BAD_YAML", f"{text}; expected scripts, with anchors for what they share")
        if isinstance(value, dict):
            return {_key(key): self.plain(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple | set):
            return [self.plain(each, depth + 1) for each in value]
        return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _key(key: Any) -> str:
    """Return a key as text: a topic may be called 3 or 2024-01-01."""
    return key if isinstance(key, str) else json.dumps(key, default=str).strip('"')


# `groupledger simulate --from-ledger GROUP`: scripts go on where a recorded group stands.


def started(files: Iterable[ScriptLines], job: Job, group: str, cluster: str | None) -> list[ScriptLines]:
    """Return these scripts, each with the group's recorded members before its events, over its and the group's topics.

    Raises Fault: UNKNOWN_GROUP, AMBIGUOUS_GROUP, and as `members_now`; TOPIC_NOT_LISTED where a script does not say how
    many partitions a topic has that no listing names.
    """
    from groupledger.answers.recorded_history import members_now
    from groupledger.core.protocol.script import Script
    from groupledger.core.protocol.script_json import write_script

    scripts = [ScriptLines(file.named, list(file.lines)) for file in files]
    recorded, counts = members_now(job.reader(), group, cluster, _topics_named(scripts))
    there = {topic: count for topic, count in counts.items() if count is not None}
    joins = write_script(Script(there, recorded.joins), group)["events"]
    say(f"{group} {_description(recorded, there)}")
    unlisted = sorted({topic for join in recorded.joins for topic in join.topics} - counts.keys())

    def put(line: str) -> str:
        """Return a script line whose events come after the joins."""
        found = _object(line)
        if found is None:
            return line
        topics, events = found.get("topics", {}), found.get("events", [])
        if isinstance(topics, dict):
            unknown = [each for each in unlisted if each not in topics]
            if unknown:
                text = f"no topic listing names {unknown[0]!r}, which members subscribe to"
                raise Fault("TOPIC_NOT_LISTED", f"{text}; expected its partitions in the script's topics")
            found["topics"] = {**there, **topics}
        found["generation"] = recorded.generation
        if isinstance(events, list):
            found["events"] = [*joins, *events]
        return json.dumps(found)

    return [ScriptLines(file.named, list(map(put, file.lines))) for file in scripts]


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


def _description(recorded: GroupStart, counts: dict[str, int]) -> str:
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


# Run users' listeners from the command line: scripts played with them, and a journal of their actions.


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
    from groupledger.core.protocol.script_json import read_line, refused_line, result_of
    from groupledger.core.text import json_text
    from groupledger.listener import rehearse
    from groupledger.listener.listener_names import NOT_MADE, find_listener

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
