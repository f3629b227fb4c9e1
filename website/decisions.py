"""The index of the decisions, from their titles."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

_HEAD = """# Decisions

Each decision has one numbered page, which is never rewritten: a decision that replaces another one names it. To add
one, copy `0000-template.md`. This index is generated from the pages by `python -m website`.

| | decision | date |
|---|---|---|
"""
_TITLE = re.compile(r"^# (?P<number>\d{4}): (?P<title>.+)$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
FOLDER = Path(__file__).parents[1] / "docs" / "contributing" / "decisions"
TEMPLATE = "0000-template.md"


class Decision(NamedTuple):
    """One page of docs/contributing/decisions."""

    name: str
    number: str
    title: str
    date: str


def decisions(folder: Path) -> list[Decision]:
    """All of them, by number."""
    return [_decision(path) for path in sorted(folder.glob("[0-9]*.md")) if path.name != TEMPLATE]


def _decision(path: Path) -> Decision:
    page = path.read_text(encoding="utf-8")
    title, date = _TITLE.search(page), _DATE.search(page)
    assert title, f"{path.name} does not begin with '# 0000: The decision in one sentence'"
    return Decision(path.name, title["number"], title["title"], date[0] if date else "")


def index(folder: Path) -> str:
    """docs/contributing/decisions/README.md."""
    rows = (f"| {each.number} | [{each.title}]({each.name}) | {each.date} |\n" for each in decisions(folder))
    return _HEAD + "".join(rows)
