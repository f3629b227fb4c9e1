"""Seeded client groups in the parity format, for the comparison with the live jar.

`chains(seed, groups)` yields groups and, after each, up to two more rebalances of it: claims are what the last answer
gave, members come and go, and sometimes a claim is stale, disputed, or to what does not exist.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from groupledger.core.scenarios.form import RACKS_UNMODELLED
from groupledger.core.scenarios.solving import solve

Scenario = dict[str, Any]
Answers = Callable[[Scenario], dict[str, Any]]
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")
WORDS = ("orders", "payments.eu", "AaAa", "BBBB", "AaBB", "t", "\u00e9", "\u6d88\u8d39", "\ue000x", "\U0001f600x")
RACKS = ("r1", "r2", "r3", "", None)
DATED = ("AAAAAQ==", "AAAAAg==", "/////w==", "")  # CooperativeStickyAssignor's user data: generation 1, 2, none, cut


def chains(seed: int, groups: int, assignors: tuple[str, ...] = ASSIGNORS) -> Iterator[Scenario]:
    """`groups` scenarios, the assignors in turn a chain."""
    made = 0
    for number in range(groups):
        draw = random.Random(f"{seed}-{number}")  # noqa: S311 seeded on purpose, nothing secret
        for scenario in chain(draw, f"client-{seed}-{number}", assignors[number % len(assignors)]):
            if made == groups:
                return
            yield scenario
            made += 1


def chain(draw: random.Random, name: str, assignor: str, answers: Answers = solve) -> Iterator[Scenario]:
    """A group and up to two more rebalances of it. `answers`: whose answer its members rejoin with."""
    most = draw.choice((2, 6, 6, 20, 60))
    topics = {f"{draw.choice(WORDS)}{at}": draw.randint(1, most) for at in range(draw.choice((1, 2, 3, 3, 5, 9, 30)))}
    scenario = {"assignor": assignor, "topics": topics, "members": []}
    equal = draw.random() < 0.5
    if draw.random() < 0.2:
        scenario["racks"] = {topic: _racks(draw, count) for topic, count in topics.items()}
    for _ in range(draw.choice((1, 2, 3, 5, 8, 13, 13, 30))):
        _join(draw, scenario, equal)
    if draw.random() < 0.35:
        _disturb(draw, scenario)
    for number in range(draw.choice((1, 3))):
        yield {**scenario, "id": f"{name}-{number}"}
        _claim_answer(scenario, number + 1, answers)
        _change(draw, scenario, equal)


def _racks(draw: random.Random, count: int) -> list[list[str | None]]:
    return [[draw.choice(RACKS[:3] if draw.random() < 0.9 else (None,)) for _ in range(2)] for _ in range(count)]


def _join(draw: random.Random, scenario: Scenario, equal: bool) -> None:
    names = list(scenario["topics"]) + (["nowhere"] if not equal and draw.random() < 0.1 else [])
    draw.shuffle(names)
    if not equal:
        names = names[: draw.randint(0 if draw.random() < 0.05 else 1, len(names))]
    ids = (str(UUID(int=draw.getrandbits(128))), f"{draw.choice(WORDS)}{draw.randint(0, 999)}")
    name = f"consumer-app-{ids[0]}" if draw.random() < 0.7 else ids[1]
    if any(member["id"] == name for member in scenario["members"]):
        return
    instance = f"i{draw.randint(0, 10**6)}" if draw.random() < 0.15 else None
    rack = draw.choice(RACKS) if "racks" in scenario else None
    member = {"id": name, "instance_id": instance, "topics": names, "owned": [], "generation": -1}
    scenario["members"] = [*scenario["members"], member | {"rack": rack, "user_data": None}]


def answerable(scenario: Scenario) -> Scenario:
    """The group without racks, where its assignor stands for one that balances by them and does not itself."""
    if not any(scenario["assignor"] in names for names in RACKS_UNMODELLED.values()):
        return scenario
    return {**scenario, "racks": None, "members": [member | {"rack": None} for member in scenario["members"]]}


def _claim_answer(scenario: Scenario, generation: int, answers: Answers) -> None:
    """Every member that has an answer rejoins with it."""
    given = answers({**answerable(scenario), "id": None}).get("assignment", {})
    scenario["members"] = [
        member | {"owned": given.get(member["id"], []), "generation": generation} for member in scenario["members"]
    ]


def _change(draw: random.Random, scenario: Scenario, equal: bool) -> None:
    """What caused the next rebalance."""
    what = draw.random()
    if what < 0.4:
        _join(draw, scenario, equal)
    elif what < 0.75 and len(scenario["members"]) > 1:
        gone = draw.randrange(len(scenario["members"]))
        scenario["members"] = scenario["members"][:gone] + scenario["members"][gone + 1 :]
    elif what < 0.9 and "racks" not in scenario:
        name = draw.choice(list(scenario["topics"]))
        scenario["topics"] = {**scenario["topics"], name: max(1, scenario["topics"][name] + draw.randint(-2, 4))}
    if draw.random() < 0.15:
        _disturb(draw, scenario)


def _disturb(draw: random.Random, scenario: Scenario) -> None:
    """Claims that are stale, disputed, or, now and then, to what does not exist."""
    beyond = draw.random() < 0.2
    disturbed = []
    for member in scenario["members"]:
        claims = [list(each) for each in member["owned"]]
        for _ in range(draw.randint(0, 4)):
            name = draw.choice(list(scenario["topics"]))
            claims.append([name, draw.randrange(scenario["topics"][name] + (2 if beyond else 0))])
        claims = [list(each) for each in dict.fromkeys(map(tuple, claims))]
        dated = draw.choice((-1, 1, 1, 2))
        data = draw.choice(DATED) if scenario["assignor"] == "cooperative-sticky" and draw.random() < 0.5 else None
        disturbed.append(member | {"owned": claims, "generation": dated, "user_data": data})
    scenario["members"] = disturbed
