"""The assignors of seven client libraries and ours side by side, on new groups (part of `make prove`).

    python -m tests.oracle.libraries --groups 2000 --seed 1 --only librdkafka

A line for each assignor: the library's version, groups, how many are equal list for list, failures and members without
an assignment included; how many keep the promise where not every answer can be computed; of how many the library
itself died; how many differ. Exits with 1 where more than `UNDEFINED` differ; those scenarios go to `--keep`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from groupledger.core.assignors.clients import CLIENT_ASSIGNORS, ClientAssignor
from groupledger.core.rebalance.attribution import MOST_WORK
from tests.oracle.libraries.comparison import Outcome, compare
from tests.oracle.libraries.groups import asked, groups
from tests.oracle.libraries.programs import Programs

BUILT = Path("build/client-assignors")
UNDEFINED = {"librdkafka-cooperative-sticky": 0.003}
"""Share that may differ: where a partition moves back, librdkafka reads memory that it has freed, and may die of it."""
COLUMNS = (Outcome.LISTS, Outcome.PROMISE, Outcome.DIED, Outcome.DIFFERING)


def line(candidate: ClientAssignor, version: str, found: Counter[Outcome]) -> str:
    """What came of one assignor."""
    counts = "".join(f"{found[each]:>11,}" for each in COLUMNS)
    return f"{candidate.name:<32} {version.removeprefix('v'):<8} {found.total():>8,}{counts}"


def main() -> int:
    """Compare, print the counts; 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.oracle.libraries", description=__doc__)
    parser.add_argument("--groups", type=int, default=2_000, help="new groups for each assignor")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="assignors whose names begin so")
    parser.add_argument("--keep", type=Path, help="a file for the scenarios that differ")
    options = parser.parse_args()
    BUILT.mkdir(parents=True, exist_ok=True)
    programs = Programs(BUILT, options.seed)
    differing: list[dict[str, Any]] = []
    failed = False
    print(f"{'assignor':<32} {'version':<8} {'groups':>8}" + "".join(f"{each:>11}" for each in COLUMNS))
    for candidate in CLIENT_ASSIGNORS.values():
        if not candidate.name.startswith(options.only):
            continue
        scenarios = list(groups(candidate, options.seed, options.groups))
        version, answers = programs.answers(candidate.library, (asked(each, candidate.protocol) for each in scenarios))
        found: Counter[Outcome] = Counter()
        for scenario, answer in zip(scenarios, answers, strict=True):
            outcome = compare(candidate, scenario, answer, MOST_WORK)
            found[outcome] += 1
            if outcome is Outcome.DIFFERING:
                differing.append({"scenario": scenario, "answer": answer})
        failed |= found[Outcome.DIFFERING] > UNDEFINED.get(candidate.name, 0) * found.total()
        print(line(candidate, version, found), flush=True)
    if options.keep:
        options.keep.write_text("".join(f"{json.dumps(each)}\n" for each in differing), encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
