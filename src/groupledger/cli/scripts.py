"""Files of scripts: JSON lines, one JSON object or a list of them, or YAML documents."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from groupledger.core.faults import Fault

YAML = (".yaml", ".yml")
JSON = ".json"
STDIN = "<stdin>"


class ScriptLines(NamedTuple):
    """The scripts of one file, a JSON text each; `named` is how complaints call the file, where there are several."""

    named: str
    lines: Iterable[str]


def read_files(files: Iterable[IO[str]]) -> Iterator[ScriptLines]:
    """The scripts of each file, by how its name ends. Raises Fault("BAD_YAML")."""
    for file in files:
        named = getattr(file, "name", STDIN)
        yield ScriptLines(named, _lines(file, named))


def _lines(file: IO[str], named: str) -> Iterable[str]:
    suffix = Path(named).suffix.lower()
    if suffix in YAML:
        return [_as_json(each) for each in _documents(file, named)]
    return _objects(file.read()) if suffix == JSON else file


def _objects(text: str) -> list[str]:
    """One object over several lines, or a list of objects; anything else is a line each."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text.splitlines(keepends=True)
    return [json.dumps(each) for each in found] if isinstance(found, list) else [json.dumps(found)]


def _documents(file: IO[str], named: str) -> list[Any]:
    """Documents apart by `---`, or the entries of a list."""
    import yaml

    try:
        found = [each for each in yaml.safe_load_all(file) if each is not None]
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise Fault("BAD_YAML", f"{named}: not YAML{where}: {getattr(error, 'problem', None) or error}") from error
    return [script for each in found for script in (each if isinstance(each, list) else [each])]


def _as_json(script: Any) -> str:
    """A YAML value that JSON does not have, such as a date, is a text."""
    return json.dumps(script, default=str)
