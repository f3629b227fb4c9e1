"""The index of the decisions by theme, from their titles and their second lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_HEAD = """# Decisions

Each decision has one numbered page, which is never rewritten: a decision that replaces another one, or a part of it,
names it, and the replaced page names its successor. To add one, copy `0000-template.md` and give it a theme in
`website/decisions.py`. This index is generated from the pages by `python -m website`.
"""
_TITLE = re.compile(r"^# (?P<number>\d{4}): (?P<title>.+)$", re.MULTILINE)
_DATED = re.compile(r"^\*(?P<date>[^.]+)\. Replaces: (?P<replaces>.*?)(?: Part G)?\.\*$", re.MULTILINE)
_NUMBER = re.compile(r"\d{4}")
FOLDER = Path(__file__).parents[1] / "docs" / "contributing" / "decisions"
TEMPLATE = "0000-template.md"
THEMES = {
    "Installation, Spark and the code base": "0001 0002 0003 0040 0065 0066 0100 0160",
    "The ledger: what counts, commits, maintenance": "0010 0011 0012 0013 0014 0015 0060 0061 0063 0064 0072 0075 0076 "
    "0085 0170 0171 0189 0212",
    "Sources": "0062 0070 0081 0090 0091 0092 0093 0094 0095 0096 0099 0101 0103 0206",
    "From records to facts": "0071 0097 0098 0165 0180 0181 0182 0184 0187 0191 0194 0205 0207 0208 0209",
    "Assignors and recomputed rebalances": "0020 0021 0022 0023 0024 0025 0026 0027 0074 0077 0110 0111 0112 0122 0183 "
    "0188 0190 0192 0198",
    "The KIPs, where they are silent or contradict themselves": "0030 0031 0032 0033 0120 0123 0136",
    "Simulation": "0130 0131 0135 0150 0151 0152 0153 0154 0210 0211",
    "Custom assignors and listeners": "0073 0119 0121 0186",
    "Answers and output": "0078 0104 0113 0114 0115 0116 0117 0118 0143 0144 0145 0175 0193 0197 0215",
    "Tests and evidence": "0084 0140 0200",
}


class Decision(NamedTuple):
    """One page of the decisions; `replaces` are the numbers of those that it replaces, `wholly` or in part."""

    name: str
    number: str
    title: str
    date: str
    replaces: tuple[str, ...]
    wholly: bool


def decisions(folder: Path) -> dict[str, list[Decision]]:
    """Return theme -> decisions by number; each decision has one theme."""
    found = {each.number: each for each in map(_decision, sorted(folder.glob("[0-9]*.md"))) if each.name != TEMPLATE}
    themed = {theme: numbers.split() for theme, numbers in THEMES.items()}
    assert sorted(found) == sorted(number for numbers in themed.values() for number in numbers), "give each one theme"
    return {theme: [found[number] for number in numbers] for theme, numbers in themed.items()}


def _decision(path: Path) -> Decision:
    page = path.read_text(encoding="utf-8")
    title, dated = _TITLE.search(page), _DATED.search(page)
    assert title, f"{path.name} does not begin with '# 0000: The decision in one sentence'"
    assert dated, f"{path.name} has no line '*Date. Replaces: none.*'"
    replaces = dated["replaces"]
    numbers = () if replaces.startswith("none") else tuple(dict.fromkeys(_NUMBER.findall(replaces)))
    wholly = _NUMBER.fullmatch(replaces) is not None
    return Decision(path.name, title["number"], title["title"], dated["date"], numbers, wholly)


def index(folder: Path) -> str:
    """Return docs/contributing/decisions/README.md."""
    themed = decisions(folder)
    named = {each.number: each.name for found in themed.values() for each in found}
    successors: dict[str, list[str]] = {}
    for found in themed.values():
        for each in found:
            for number in each.replaces:
                link = f"{'' if each.wholly else 'in part '}by [{each.number}]({each.name})"
                successors.setdefault(number, []).append(link)
    _check_pages(folder, named, successors)
    return "\n".join([_HEAD, *(line for theme in themed.items() for line in _section(*theme, successors))])


def _check_pages(folder: Path, named: dict[str, str], successors: dict[str, list[str]]) -> None:
    """Each replaced page names its successors, for readers who come from a link."""
    for number, links in successors.items():
        page = (folder / named[number]).read_text(encoding="utf-8").partition("\n\n**")[0]
        for successor in _NUMBER.findall(" ".join(link.partition("](")[0] for link in links)):
            assert f"]({named[successor]})" in page, f"{named[number]} does not say that {successor} replaces it"


def _section(theme: str, found: list[Decision], successors: dict[str, list[str]]) -> Iterator[str]:
    yield f"## {theme}\n"
    yield "| | decision | date |"
    yield "|---|---|---|"
    for each in found:
        replaced = "; replaced " + " and ".join(successors[each.number]) if each.number in successors else ""
        yield f"| {each.number} | [{each.title}]({each.name}){replaced} | {each.date} |"
    yield ""
