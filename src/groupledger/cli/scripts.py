"""Read files of scripts: JSON lines, one JSON object or a list of them, or YAML documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from groupledger.core.faults import Fault

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
        """A value that JSON does not have, such as a date, is a text. Raises Fault("BAD_YAML")."""
        self.left -= 1
        if depth > DEEPEST or self.left < 0:
            told = f"{self.named}: with its aliases more than {MOST_VALUES:,} values, or nested over {DEEPEST} deep"
            raise Fault("BAD_YAML", f"{told}; expected scripts, with anchors for what they share")
        if isinstance(value, dict):
            return {_key(key): self.plain(each, depth + 1) for key, each in value.items()}
        if isinstance(value, list | tuple | set):
            return [self.plain(each, depth + 1) for each in value]
        return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def _key(key: Any) -> str:
    """A topic may be called 3 or 2024-01-01; as JSON has them, they are texts."""
    return key if isinstance(key, str) else json.dumps(key, default=str).strip('"')
