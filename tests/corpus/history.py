"""A history of the corpus: the records and listings that a tool is given, and the label that it is not given."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from groupledger.core.rebalance.findings import BY_CODE

CORPUS = Path(__file__).parents[2] / "corpus"
HISTORIES, LABELS, JOINED = "histories", "labels.jsonl", "joined.json"
OFFSETS, TOPICS = "offsets.jsonl.gz", "topics.jsonl.gz"
Line = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A code that the audit has to give, with how many records have it, and the generation of the one it names."""

    code: str
    severity: str
    records: int
    generation: int | None


@dataclass(slots=True)
class Label:
    """What is in a history. `causes`: of each generation or epoch, sorted, as often as each is there.

    Records of one generation stand together, and those of one name in two lives of the group. The key of a tombstone is
    `deleted`.
    """

    findings: list[Finding] = field(default_factory=list)
    causes: dict[str, list[str]] = field(default_factory=dict)

    def cause(self, generation: int | None, *kinds: str) -> None:
        """Add causes of a generation; None: of the group's deletion."""
        key = "deleted" if generation is None else str(generation)
        self.causes[key] = sorted([*self.causes.get(key, ()), *kinds])

    def find(self, code: str, generation: int | None, records: int = 1, severity: str | None = None) -> None:
        """Add a finding, with the severity of its code if no other is given."""
        self.findings.append(Finding(code, severity or BY_CODE[code].severity.value, records, generation))


@dataclass(slots=True)
class History:
    """One group's log and its topics. `joined`: topics that the application joins, which no log says."""

    title: str
    what: str
    origin: str
    offsets: list[Line]
    topics: list[Line]
    label: Label
    joined: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The folder: tells nothing of what is in it, and stays when others are added."""
        return hashlib.sha256(f"{self.origin}/{self.title}".encode()).hexdigest()[:10]

    @property
    def label_line(self) -> Line:
        """The line of labels.jsonl."""
        return {
            "history": self.name,
            "origin": self.origin,
            "title": self.title,
            "what": self.what,
            "findings": [
                {"code": each.code, "severity": each.severity, "records": each.records, "generation": each.generation}
                for each in sorted(self.label.findings)
            ],
            "causes": dict(sorted(self.label.causes.items(), key=_by_number)),
        }


def _by_number(item: tuple[str, list[str]]) -> tuple[bool, int]:
    return (True, 0) if item[0] == "deleted" else (False, int(item[0]))


def read(name: str) -> tuple[list[Line], list[Line]]:
    """Records and listings of a history, and nothing else: what a tool that is judged may see."""
    folder = CORPUS / HISTORIES / name
    return _lines(folder / OFFSETS), _lines(folder / TOPICS)


def _lines(path: Path) -> list[Line]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def names() -> list[str]:
    """All histories."""
    return sorted(path.name for path in (CORPUS / HISTORIES).iterdir())


def labels() -> dict[str, Line]:
    """Lines of labels.jsonl by history."""
    text = (CORPUS / LABELS).read_text(encoding="utf-8")
    return {line["history"]: line for line in map(json.loads, text.splitlines())}


def joined() -> dict[str, list[str]]:
    """Topics that are joined, by history."""
    found: dict[str, list[str]] = json.loads((CORPUS / JOINED).read_text(encoding="utf-8"))
    return found


def text_of(lines: Iterable[Line]) -> str:
    """Lines of a file."""
    return "".join(json.dumps(line) + "\n" for line in lines)


def write(histories: Iterable[History], corpus: Path = CORPUS) -> None:
    """All of it; histories that are no longer made go."""
    every = sorted(histories, key=lambda each: each.name)
    wanted = {each.name for each in every}
    assert len(wanted) == len(every), "two histories have one title"
    for old in _there(corpus / HISTORIES):
        if old.name not in wanted:
            for file in old.iterdir():
                file.unlink()
            old.rmdir()
    for each in every:
        folder = corpus / HISTORIES / each.name
        folder.mkdir(parents=True, exist_ok=True)
        for kind, lines in ((OFFSETS, each.offsets), (TOPICS, each.topics)):
            (folder / kind).write_bytes(gzip.compress(text_of(lines).encode(), mtime=0))
    (corpus / LABELS).write_text(text_of(each.label_line for each in every), encoding="utf-8")
    applications = {each.name: list(each.joined) for each in every if each.joined}
    (corpus / JOINED).write_text(json.dumps(applications, indent=1) + "\n", encoding="utf-8")


def _there(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(folder.iterdir())
