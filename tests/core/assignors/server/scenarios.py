"""Seeded KIP-848 groups in the parity format: for tests, for the comparison with a live jar, and for benchmarks.

`chains(seed)` yields consecutive rebalances: each result is the next scenario's target, as the coordinator would have
written it; members join and leave, topics grow, go, and come back under another id.
"""

import base64
import random
from collections.abc import Iterator
from typing import Any

from groupledger.core.scenarios.solving import solve_server_group

Scenario = dict[str, Any]
ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
WORDS = ("orders", "payments.eu", "clicks.v1", "cdc.public", "t", "\u00e9", "\u6d88\u8d39", "\U0001f600x")


def chains(seed: int, groups: int, rounds: int = 5, assignor: str | None = None) -> Iterator[Scenario]:
    """`groups` groups of `rounds` consecutive rebalances each; `assignor` None: one of a consumer group's is drawn."""
    for number in range(groups):
        draw = random.Random(f"{seed}-{number}")  # noqa: S311 - seeded on purpose, nothing secret
        yield from _chain(draw, f"server-{seed}-{number}", rounds, assignor)


def _chain(draw: random.Random, name: str, rounds: int, assignor: str | None) -> Iterator[Scenario]:
    scenario = _first(draw)
    scenario["assignor"] = assignor or scenario["assignor"]
    for number in range(rounds):
        yield {**scenario, "id": f"{name}-{number}"}
        _take_result(scenario)
        _change(draw, scenario)


def _first(draw: random.Random) -> Scenario:
    assignor = "server-range" if draw.random() < 0.2 else "server-uniform"
    most = draw.choice((4, 20, 20, 100, 700))
    topics = {}
    for number in range(draw.choice((1, 2, 3, 5, 9, 30 if most <= 20 else 4))):
        topics[f"{draw.choice(WORDS)}{number}"] = {
            "id": _uuid(draw),
            "partitions": draw.randint(max(1, most // 3), most),
        }
    scenario: Scenario = {"assignor": assignor, "topics": topics, "members": [], "deleted": {}, "history": []}
    scenario["mixed"] = draw.random() < 0.5
    for _ in range(draw.choice((1, 2, 3, 5, 8, 16, 16, 32, 50))):
        _join(draw, scenario, joining=False)
    if draw.random() < 0.5:
        _join(draw, scenario, joining=True)
    return scenario


def _uuid(draw: random.Random) -> str:
    return base64.urlsafe_b64encode(draw.randbytes(16)).decode()[:22]


def _join(draw: random.Random, scenario: Scenario, *, joining: bool) -> None:
    names = sorted([*scenario["topics"], *(["unknown"] if draw.random() < 0.1 and scenario["mixed"] else [])])
    if scenario["mixed"] and draw.random() < 0.7:
        names = sorted(draw.sample(names, draw.randint(1, len(names))))
    if joining:
        draw.shuffle(names)
    member = "".join(draw.choices(ALPHABET, k=22)) if draw.random() < 0.9 else f"{draw.choice(WORDS)}-{draw.random()}"
    static = f"i{draw.randint(0, 10**6)}" if draw.random() < 0.3 else None
    scenario["members"].append({"id": member, "instance_id": static, "rack": None, "topics": names, "assigned": []})
    scenario["joining"] = member if joining else None
    if not joining:
        scenario["history"] = [*scenario["history"], [member, 1], [member, 0]]


def _take_result(scenario: Scenario) -> None:
    """Make the result the current target: a record is written only where the set changed."""
    scenario["members"] = list(scenario["members"])
    order = solve_server_group({**scenario, "id": None})["order"]
    for at, member in enumerate(scenario["members"]):
        flat = [[topic, partition] for topic, partitions in order[member["id"]] for partition in partitions]
        if sorted(flat) != sorted(member["assigned"]):
            scenario["members"][at] = {**member, "assigned": flat}
    if scenario["joining"] is not None:
        joined = scenario["members"][-1]
        scenario["members"][-1] = {**joined, "topics": sorted(joined["topics"])}
        scenario["history"] = [*scenario["history"], [joined["id"], 1], [joined["id"], 0]]
        scenario["joining"] = None


def _change(draw: random.Random, scenario: Scenario) -> None:
    """What caused the next rebalance. Containers that earlier scenarios share are replaced, not changed."""
    what = draw.random()
    name = draw.choice(sorted(scenario["topics"]))
    fact = scenario["topics"][name]
    if what < 0.35:
        _join(draw, scenario, joining=draw.random() < 0.8)
    elif what < 0.75 and len(scenario["members"]) > 1:
        for _ in range(draw.randint(1, max(1, len(scenario["members"]) // 3))):
            gone = scenario["members"].pop(draw.randrange(len(scenario["members"])))
            scenario["history"] = [*scenario["history"], [gone["id"], -1]]
    elif what < 0.85:
        grown = {**fact, "partitions": fact["partitions"] + draw.randint(1, 5)}
        scenario["topics"] = {**scenario["topics"], name: grown}
    elif "#" not in name:
        old = f"{name}#old{len(scenario['deleted'])}"
        scenario["deleted"] = {**scenario["deleted"], old: fact["id"]}
        scenario["topics"] = {**scenario["topics"], name: {**fact, "id": _uuid(draw)}}
        scenario["members"] = [
            {**member, "assigned": [[old if topic == name else topic, number] for topic, number in member["assigned"]]}
            for member in scenario["members"]
        ]
