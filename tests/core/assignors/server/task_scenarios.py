"""Seeded Streams groups (KIP-1071) in the parity format: for the golden pairs and for the comparison with a live jar.

`task_chains(seed)` yields consecutive rebalances: each result is what members have in the next scenario, some of it not
taken yet; members and whole processes come and go, subtopologies grow, and some members report offsets.
"""

import random
from collections.abc import Iterator
from typing import Any

from groupledger.core.scenarios.solving import solve_server_group
from tests.core.assignors.server.scenarios import ALPHABET, WORDS

Scenario = dict[str, Any]


def task_chains(seed: int, groups: int, rounds: int = 5) -> Iterator[Scenario]:
    """`groups` groups of `rounds` consecutive rebalances each."""
    for number in range(groups):
        draw = random.Random(f"tasks-{seed}-{number}")  # noqa: S311 - seeded on purpose, nothing secret
        scenario = _first(draw)
        for at in range(rounds):
            yield {**scenario, "id": f"tasks-{seed}-{number}-{at}"}
            _take_result(draw, scenario)
            _change(draw, scenario)


def _first(draw: random.Random) -> Scenario:
    most = draw.choice((2, 6, 12, 12, 40))
    names = [str(at) for at in range(draw.choice((1, 2, 3, 5, 12)))]
    if draw.random() < 0.2:
        names = [f"{draw.choice(WORDS)}{name}" for name in names]
    subtopologies = {name: {"tasks": draw.randint(1, most), "stateful": draw.random() < 0.6} for name in names}
    scenario: Scenario = {
        "assignor": "server-sticky",
        "subtopologies": subtopologies,
        "standby_replicas": draw.choice((0, 0, 1, 1, 2, 3)),
        "members": [],
        "history": [],
        "joining": None,
        "threads": draw.choice((1, 1, 2, 4)),
        "crossed": draw.random() < 0.2,
    }
    for _ in range(draw.choice((1, 2, 3, 5, 8, 16, 30))):
        _join(draw, scenario, joining=False)
    if draw.random() < 0.5:
        _join(draw, scenario, joining=True)
    return scenario


def _join(draw: random.Random, scenario: Scenario, *, joining: bool) -> None:
    """One more thread, of a process that has room for it or of a new one."""
    processes = [member["process_id"] for member in scenario["members"]]
    room = sorted({each for each in processes if processes.count(each) < scenario["threads"]})
    process = draw.choice(room) if room and draw.random() < 0.7 else _uuid(draw)
    member = "".join(draw.choices(ALPHABET, k=22))
    scenario["members"] = [*scenario["members"], {"id": member, "process_id": process, "active": [], "standby": []}]
    if scenario["joining"] is not None:
        scenario["history"] = [*scenario["history"], [scenario["joining"], 1]]
    scenario["joining"] = member if joining else None
    if not joining:
        scenario["history"] = [*scenario["history"], [member, 1]]


def _uuid(draw: random.Random) -> str:
    digits = f"{draw.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _take_result(draw: random.Random, scenario: Scenario) -> None:
    """Make the result what members have; where it is `crossed`, some have not taken, or not given up, all of it."""
    result = solve_server_group({**scenario, "id": None})
    held = {member["id"]: member for member in scenario["members"]}
    scenario["members"] = [_taken(draw, scenario, held[each], result) for each in held]


def _taken(draw: random.Random, scenario: Scenario, member: dict[str, Any], result: Scenario) -> dict[str, Any]:
    active, standby = result["active"][member["id"]], result["standby"][member["id"]]
    if scenario["crossed"] and draw.random() < 0.4:
        active = [each for each in active if draw.random() < 0.6]
        standby = member["standby"] if draw.random() < 0.5 else standby
    taken = {**member, "active": active, "standby": standby}
    if draw.random() < 0.15:
        tasks = [[name, at] for name, fact in scenario["subtopologies"].items() for at in range(fact["tasks"])]
        some = draw.sample(tasks, min(len(tasks), draw.randint(1, 6)))
        taken["offsets"] = [[*task, draw.choice((0, 10, 10, 5_000, draw.randrange(10**9)))] for task in sorted(some)]
    return taken


def _change(draw: random.Random, scenario: Scenario) -> None:
    """What caused the next rebalance. Containers that earlier scenarios share are replaced, not changed."""
    if scenario["joining"] is not None:
        scenario["history"] = [*scenario["history"], [scenario["joining"], 1]]
        scenario["joining"] = None
    what = draw.random()
    if what < 0.45:
        for _ in range(draw.choice((1, 1, 2))):
            _join(draw, scenario, joining=draw.random() < 0.8)
    elif what < 0.85 and len(scenario["members"]) > 1:
        gone = draw.choice(scenario["members"])
        leaves = (
            [gone] if draw.random() < 0.6 else [e for e in scenario["members"] if e["process_id"] == gone["process_id"]]
        )
        leaves = leaves[: len(scenario["members"]) - 1]
        scenario["members"] = [each for each in scenario["members"] if each not in leaves]
        scenario["history"] = [*scenario["history"], *([each["id"], -1] for each in leaves)]
    elif what < 0.95:
        name = draw.choice(sorted(scenario["subtopologies"]))
        fact = scenario["subtopologies"][name]
        grown = {**fact, "tasks": fact["tasks"] + draw.randint(1, 3)}
        scenario["subtopologies"] = {**scenario["subtopologies"], name: grown}
    else:
        scenario["standby_replicas"] = draw.choice((0, 1, 2))
