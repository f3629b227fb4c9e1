"""The tables of docs/contributing/corpus.md, from the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from groupledger.answers.causes import CauseKind
from groupledger.core.rebalance.findings import INVARIANTS
from tests.corpus.history import Line, labels

PAGE = Path(__file__).parents[2] / "docs" / "contributing/corpus.md"
BEGIN, END = "<!-- written by `python -m tests.corpus` -->\n", "<!-- end -->\n"
ORIGINS = ("recorded", "made", "clean")


def with_table(page: str) -> str:
    """The page with the tables as the labels have them."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables()}\n{END}{after}"


def tables() -> str:
    """How many histories hold what; then each that was recorded, or made with a fault or cause."""
    every = list(labels().values())
    wanted = sorted(
        (line for line in every if line["origin"] != "clean"),
        key=lambda line: (ORIGINS.index(line["origin"]), line["title"]),
    )
    counts = ["| code or cause | recorded | made | clean |", "|---|---|---|---|", *_counts(every)]
    each = ["| history | origin | what happened | findings | causes |", "|---|---|---|---|---|", *map(_row, wanted)]
    return "\n".join([*counts, "", *each])


def _counts(every: list[Line]) -> Iterator[str]:
    yield _count("all histories", every, lambda line: True)
    for invariant in INVARIANTS:
        yield _count(f"`{invariant.code}`", every, lambda line, code=invariant.code: code in _codes(line))
    for kind in CauseKind:
        yield _count(f"`{kind.value}`", every, lambda line, cause=kind.value: cause in _causes(line))


def _count(name: str, every: list[Line], holds) -> str:
    found = Counter(line["origin"] for line in every if holds(line))
    return f"| {name} | " + " | ".join(str(found[origin] or "") for origin in ORIGINS) + " |"


def _codes(line: Line) -> list[str]:
    return [each["code"] for each in line["findings"]]


def _causes(line: Line) -> list[str]:
    named = {cause for causes in line["causes"].values() for cause in causes}
    return [kind.value for kind in CauseKind if kind.value in named]


def _row(line: Line) -> str:
    found = ", ".join(f"`{each['code']}` ({each['severity']})" for each in line["findings"])
    told = f"**{line['title']}**: {line['what'].rstrip('.')}"
    return f"| {line['history']} | {line['origin']} | {told} | {found} | {', '.join(_causes(line))} |"
