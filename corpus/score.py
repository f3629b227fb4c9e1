"""Score what a tool found in the histories of this corpus: `python corpus/score.py FOUND.jsonl [LABELS.jsonl]`.

A line of FOUND.jsonl is of one history: {"history": "007577cfed", "findings": ["UNOWNED"], "causes": {"3":
["member-joined"]}}. `causes` may be left out: then findings alone are scored. Needs nothing but Python.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LABELS = Path(__file__).with_name("labels.jsonl")
Lines = dict[str, dict[str, Any]]


@dataclass(slots=True)
class Score:
    """How often something was found that is there, is not there, or was missed."""

    right: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    missed: Counter[str] = field(default_factory=Counter)

    def add(self, found: Counter[str], there: Counter[str]) -> None:
        """What was found in one place, and what is there."""
        self.right += found & there
        self.wrong += found - there
        self.missed += there - found

    @property
    def names(self) -> list[str]:
        """Everything that was found or is there."""
        return sorted({*self.right, *self.wrong, *self.missed})


def score(found: Lines, labels: Lines) -> tuple[Score, Score, int]:
    """Findings, causes, and in how many clean histories something was found."""
    findings, causes, false_alarms = Score(), Score(), 0
    has_causes = any("causes" in line for line in found.values())
    for name, label in labels.items():
        line = found.get(name, {})
        told = Counter(set(line.get("findings", ())))
        findings.add(told, Counter({each["code"] for each in label["findings"]}))
        false_alarms += label["origin"] == "clean" and bool(told)
        if has_causes:
            given = line.get("causes", {})
            for generation in {*given, *label["causes"]}:
                causes.add(Counter(given.get(generation, ())), Counter(label["causes"].get(generation, ())))
    return findings, causes, false_alarms


def lines(path: Path) -> Lines:
    """Lines of a file by history; ValueError for one that names none."""
    found: Lines = {}
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            line = json.loads(text)
            found[line["history"]] = line
        except (ValueError, KeyError, TypeError) as error:
            message = f'{path}, line {number} is {text[:80]!r}; expected {{"history": "007577cfed", "findings": [..]}}'
            raise ValueError(message) from error
    return found


def table(of: Score) -> str:
    """A line for each name: right, wrong, missed."""
    head = f"{'':30}{'right':>8}{'wrong':>8}{'missed':>8}"
    rows = [f"{name:30}{of.right[name]:8}{of.wrong[name]:8}{of.missed[name]:8}" for name in of.names]
    total = f"{'all':30}{of.right.total():8}{of.wrong.total():8}{of.missed.total():8}"
    return "\n".join([head, *rows, total])


def main(arguments: list[str]) -> int:
    """Print the scores; 0 where all is right, 1 where something is not, 2 where there is nothing to score."""
    if len(arguments) not in (1, 2):
        sys.stderr.write(f"{(__doc__ or '').splitlines()[0]}\n")
        return 2
    try:
        labels = lines(Path(arguments[1]) if len(arguments) == 2 else LABELS)
        found = lines(Path(arguments[0]))
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    unknown = sorted(found.keys() - labels.keys())
    if unknown:
        sys.stderr.write(f"no history is called {unknown[0]!r}; expected a folder of corpus/histories\n")
        return 2
    findings, causes, false_alarms = score(found, labels)
    clean = sum(each["origin"] == "clean" for each in labels.values())
    text = f"findings, by history\n{table(findings)}\n"
    text += f"\ncauses, by generation\n{table(causes)}\n" if causes.names else "\ncauses: none given\n"
    sys.stdout.write(f"{text}\nclean histories with a finding: {false_alarms} of {clean}\n")
    return int(bool(findings.wrong or findings.missed or causes.wrong or causes.missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
