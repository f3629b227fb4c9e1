"""`make parity`: Kafka's own classes and ours side by side, on new groups and on the golden pairs.

    python -m tests.oracle.parity --groups 20000 --seed 1 --examples 500

First the golden pairs of tests/data/parity, asked anew of the jars and of us; then `--groups` new client groups and as
many server groups; last, hypothesis looks for a group that differs and makes it as small as it can. Exits with 1
where anything differs; scenarios that do are written, one a line, to `--keep`.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from groupledger.core.scenarios.solving import solve
from tests.core.assignors.golden import PROFILES, gold
from tests.core.assignors.groups import scenarios
from tests.core.assignors.server.scenarios import chains as server_chains
from tests.core.assignors.server.task_scenarios import task_chains
from tests.core.protocol.task_steps import drawn_steps, solve_step
from tests.oracle import client_groups
from tests.oracle.live import CLIENT, SERVER, TASK_STEPS, Oracle

SERVER_FILES = ("server-chain", "server-hetero", "server-homog", "server-simple", "server-sticky")
SIMPLE = "server-simple"
ASKED = {"transferring": True, "is_sticky": True}
Row = tuple[str, str]
Result = dict[str, Any]


def outcome(scenario: dict[str, Any], kafka: Result) -> str:
    """`equal`, `differing` or `not emulated`: all that Kafka's result says, ours must say too."""
    ours = solve(scenario | ASKED)
    if str(ours.get("error")).startswith("OrderNotEmulated"):
        return "not emulated"
    mine, told = _canonical(ours), _canonical(kafka)
    if scenario["assignor"] == SIMPLE:  # whose unchanged targets are copied, and not written
        mine, told = _unordered(mine), _unordered(told)
    return "equal" if {name: mine.get(name) for name in told} == told else "differing"


def _unordered(result: Result) -> Result:
    order = {member: sorted((topic, sorted(some)) for topic, some in told) for member, told in result["order"].items()}
    return {**result, "order": order}


def _canonical(result: Result) -> Result:
    """Without what says the same in other words: maps have no order, and a failed group no path."""
    kept = dict(result)
    if kept.get("transferring") is not None:
        kept["transferring"] = sorted(kept["transferring"])
    if "error" in kept:
        return {"error": kept["error"]}
    return kept


def compare(
    source: str, asked: Iterable[dict[str, Any]], oracle: Oracle, counts: Counter[tuple[str, str, str]], keep: list[str]
) -> None:
    """Count the outcomes of these scenarios by source and assignor; keep those that differ."""
    for scenario in asked:
        found = outcome(scenario, oracle.ask(scenario))
        counts[source, scenario["assignor"], found] += 1
        if found == "differing":
            keep.append(json.dumps(scenario))


def compare_steps(
    seed: int, count: int, oracle: Oracle, counts: Counter[tuple[str, str, str]], keep: list[str]
) -> None:
    """Do as `compare` for steps of members of Streams groups."""
    for step in drawn_steps(seed, count):
        found = "equal" if solve_step(step) == oracle.ask(step) else "differing"
        counts["new", "task-steps", found] += 1
        if found == "differing":
            keep.append(json.dumps(step))


def golden(files: Iterable[str]) -> Iterator[dict[str, Any]]:
    """The scenarios of these golden files."""
    for name in files:
        for pair in gold(name):
            yield pair["scenario"]


def search(oracle: Oracle, examples: int) -> None:
    """Let hypothesis look for a group that differs; what it raises shows the smallest it found."""

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(st.sampled_from(client_groups.ASSIGNORS).flatmap(scenarios))
    def same(scenario: dict[str, Any]) -> None:
        assert outcome(scenario, oracle.ask(scenario)) != "differing", json.dumps(scenario)

    run: Callable[[], None] = same
    run()


def table(counts: Counter[tuple[str, str, str]]) -> str:
    """Counts by source and assignor."""
    rows: list[Row] = sorted({(source, assignor) for source, assignor, _ in counts})
    lines = [f"{'groups':<8} {'assignor':<20} {'compared':>9} {'equal':>9} {'differing':>9} {'not emulated':>12}"]
    for source, assignor in rows:
        each = [counts[source, assignor, found] for found in ("equal", "differing", "not emulated")]
        lines.append(f"{source:<8} {assignor:<20} {sum(each):>9,} {each[0]:>9,} {each[1]:>9,} {each[2]:>12,}")
    return "\n".join(lines)


def main() -> int:
    """Compare, print the counts; 1 where anything differs."""
    parser = argparse.ArgumentParser(prog="make parity", description=__doc__)
    parser.add_argument("--groups", type=int, default=2_000, help="new groups for the client and for the server")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--examples", type=int, default=500, help="groups that hypothesis tries")
    parser.add_argument("--keep", type=Path, help="a file for the scenarios that differ")
    asked = parser.parse_args()
    counts: Counter[tuple[str, str, str]] = Counter()
    keep: list[str] = []
    with Oracle(CLIENT) as oracle:
        compare("golden", golden(PROFILES), oracle, counts, keep)
        compare("new", client_groups.chains(asked.seed, asked.groups), oracle, counts, keep)
        search(oracle, asked.examples)
    with Oracle(SERVER) as oracle:
        compare("golden", golden(SERVER_FILES), oracle, counts, keep)
        compare("new", server_chains(asked.seed, -(-asked.groups // 5)), oracle, counts, keep)
        compare("new", server_chains(asked.seed, -(-asked.groups // 50), assignor=SIMPLE), oracle, counts, keep)
        compare("new", task_chains(asked.seed, -(-asked.groups // 50)), oracle, counts, keep)
    with Oracle(TASK_STEPS) as oracle:
        compare_steps(asked.seed, asked.groups, oracle, counts, keep)
    print(table(counts))  # noqa: T201 the command's answer
    if asked.keep:
        asked.keep.write_text("".join(f"{line}\n" for line in keep), encoding="utf-8")
    return 1 if keep else 0


if __name__ == "__main__":
    raise SystemExit(main())
