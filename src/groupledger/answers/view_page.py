"""The views of `views.sql`: their names, what they are about, their queries, and what each rests on."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_VIEW = re.compile(r"^-- (?P<comment>[^\n]*)\nCREATE VIEW (?P<name>\w+) AS\n(?P<query>.*?);$", re.MULTILINE | re.DOTALL)
_SOURCE = re.compile(r"\b(?P<word>FROM|JOIN) (?P<name>[a-z]\w*)")
_WORD = re.compile(r"\w+")
WHERE_VIEWS_ARE = "`groupledger sql` lists the views"
"""For a query that names something else."""


@dataclass(frozen=True, slots=True)
class View:
    """A view; `sources` are tables of the ledger and views before it."""

    name: str
    comment: str
    query: str

    @property
    def sources(self) -> frozenset[str]:
        """What its query reads."""
        return frozenset(found["name"] for found in _SOURCE.finditer(self.query))

    def reading(self, named: Callable[[str], str]) -> str:
        """The query with another name for everything it reads."""
        return _SOURCE.sub(lambda found: f"{found['word']} {named(found['name'])}", self.query)

    @property
    def facts(self) -> str:
        """Of facts with results beside them the facts alone: an engine works out which results count, wanted or not."""
        return self.query.partition("\nUNION ALL\n")[0]


@cache
def views() -> dict[str, View]:
    """The views by name; each rests on those before it."""
    text = files(__package__).joinpath("views.sql").read_text(encoding="utf-8")
    return {found["name"]: View(found["name"], found["comment"], found["query"]) for found in _VIEW.finditer(text)}


@cache
def tables() -> frozenset[str]:
    """The tables of a ledger that the views rest on: all of them."""
    return frozenset(name for view in views().values() for name in view.sources) - views().keys()


def ingest_findings() -> str:
    """A query of what `ingest` found: `current_violations` whose scenario is null."""
    return views()["current_violations"].facts


def needed(sql: str) -> tuple[list[View], list[str]]:
    """The views, in their order, and the tables that a query may read, told by the words in it."""
    named = {word.lower() for word in _WORD.findall(sql)}
    for view in reversed(views().values()):
        if view.name in named:
            named |= view.sources
    return [view for view in views().values() if view.name in named], sorted(named & tables())
