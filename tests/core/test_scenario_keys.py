"""A key that an assignor does not read is an error; one that is accepted can change the answer."""

from __future__ import annotations

import base64
import json
import random
import struct
from typing import Any

import pytest

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.faults import Fault
from groupledger.core.scenarios.form import require_known_keys
from groupledger.core.scenarios.solving import solve, solve_lines

BY_CHANCE = {"sarama-sticky", "sarama-cooperative-sticky", "kafka-go-rack-affinity"}
NAMES = [name for name in dict.fromkeys([*ASSIGNORS, *CLIENT_ASSIGNORS]) if name not in BY_CHANCE]
OF_SCENARIO = ("racks", "leader", "transferring", "is_sticky")
OF_MEMBER = ("owned", "generation", "instance_id", "rack", "user_data")
UNMODELLED = {"librdkafka-range", "librdkafka-cooperative-sticky"} | {
    f"franz-go-{each}" for each in ("range", "sticky", "cooperative-sticky")
}
MEMBERS = [{"id": f"m{number}", "topics": ["t"]} for number in range(3)]
GROUP: dict[str, Any] = {"topics": {"t": 6}, "members": MEMBERS}
RACKS = {"t": [["b"], ["c"], ["a"], ["b"], ["c"], ["a"]]}
"""Case 27."""


def memory(owned, generation):
    """KIP-54's user data."""
    topics = {}
    for topic, number in owned:
        topics.setdefault(topic, []).append(number)
    lists = b"".join(
        struct.pack(">h", len(topic)) + topic.encode() + struct.pack(f">{len(some) + 1}i", len(some), *some)
        for topic, some in topics.items()
    )
    return struct.pack(">i", len(topics)) + lists + struct.pack(">i", generation)


def seeded(seed):
    return random.Random(seed)  # noqa: S311 - the same groups each time


def scenario(random_, name):
    """A group that says all that a group may say."""
    topics = {topic: random_.randint(1, 6) for topic in "tuv"[: random_.randint(1, 3)]}
    parts = [[topic, number] for topic, count in topics.items() for number in range(count)]
    members = []
    for number in range(random_.randint(2, 5)):
        mine = random_.sample(parts, random_.randint(0, len(parts)))
        generation = random_.choice([5, 5, 6])
        if name == "sticky-stream-join":
            told = struct.pack(">3i", generation, 1, random_.randint(0, 3))
        else:
            told = random_.choice([memory(random_.sample(parts, 1), generation), struct.pack(">i", 9)])
        told = b"\0\1" * (name == "kafka-python-sticky") + told
        members.append({
            "id": f"m{random_.randint(0, 99):02}{number}",
            "topics": random_.sample(list(topics), random_.randint(1, len(topics))),
            "owned": [pair for pair in parts if pair in mine], "generation": generation,
            "instance_id": f"i{random_.randint(0, 9)}{number}" if random_.random() < 0.5 else None,
            "rack": random_.choice("abc"), "user_data": base64.b64encode(told).decode(),
        })  # fmt: skip
    racks = {topic: [[random_.choice("abc")] for _ in range(count)] for topic, count in topics.items()}
    leader = random_.choice(members)["id"]
    more = {"racks": racks, "leader": leader, "transferring": True, "is_sticky": True}
    return {"id": "x", "assignor": name, "topics": topics, "members": members, **more}


def only(told, scenario_keys, member_keys):
    kept = {key: value for key, value in told.items() if key not in OF_SCENARIO or key in scenario_keys}
    members = [{k: v for k, v in each.items() if k not in OF_MEMBER or k in member_keys} for each in told["members"]]
    return {**kept, "members": members}


def accepted(name):
    def takes(told):
        try:
            require_known_keys(told)
        except Fault:
            return False
        return True

    told = scenario(seeded(1), name)
    return (
        [key for key in OF_SCENARIO if takes(only(told, (key,), ()))],
        [key for key in OF_MEMBER if takes(only(told, (), (key,)))],
    )


@pytest.mark.parametrize("name", NAMES)
def test_exactly_the_keys_that_can_change_an_answer_are_accepted(name):
    scenario_keys, member_keys = accepted(name)
    changed = set()
    for seed in range(1_000):
        random_ = seeded(seed)
        some = [key for key in member_keys if random_.random() < 0.7]  # what is owned may hide what is remembered
        told = only(scenario(random_, name), scenario_keys, some)
        answer = solve(told)
        for key in {*scenario_keys, *some} - changed:
            without = only(
                told, [each for each in scenario_keys if each != key], [each for each in some if each != key]
            )
            if solve(without) != answer:
                changed.add(key)
        if changed == {*scenario_keys, *member_keys}:
            break
    assert changed == {*scenario_keys, *member_keys}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", [*OF_SCENARIO, *OF_MEMBER])
def test_any_other_key_is_an_error_of_its_line(name, key):
    told = scenario(seeded(1), name)
    told = only(told, [key], [key])
    known = accepted(name)
    (line,) = (json.loads(each) for each in solve_lines([json.dumps(told)]))
    if key in (*known[0], *known[1]):
        assert "line" not in line
    elif key in ("racks", "rack") and name in UNMODELLED:
        assert line["error"].startswith("NO_ANSWER: ")
    else:
        assert line["error"].startswith("BAD_SCENARIO: a key ")


@pytest.mark.parametrize("name", sorted(UNMODELLED))
@pytest.mark.parametrize("part", ["racks", "rack"])
def test_an_assignor_that_balances_by_racks_elsewhere_refuses_them(name, part):
    """Case 27: never 0-1, 2-3, 4-5."""
    members = [{**each, "rack": rack} if part == "rack" else each
               for each, rack in zip(GROUP["members"], "abc", strict=True)]  # fmt: skip
    told = {"assignor": name, **GROUP, "members": members, **({"racks": RACKS} if part == "racks" else {})}
    with pytest.raises(Fault, match=r"balances by racks \(KIP-881\), which is not modelled for") as refused:
        solve(told)
    assert refused.value.code == "NO_ANSWER"


def test_null_says_nothing_and_is_no_error():
    member = {"id": "m", "topics": ["t"], "owned": None, "user_data": None}
    (line,) = solve_lines([json.dumps({"assignor": "range", "topics": {"t": 1}, "members": [member], "leader": None})])
    assert json.loads(line)["assignment"] == {"m": [["t", 0]]}


def test_a_custom_assignor_may_read_all_that_members_say_and_nothing_else():
    told = scenario(seeded(1), "mine")
    require_known_keys(only(told, (), OF_MEMBER), {"mine"})
    for key in OF_SCENARIO:
        with pytest.raises(Fault, match=f"a key is '{key}'"):
            require_known_keys(only(told, (key,), ()), {"mine"})


def test_javas_range_takes_the_racks_of_case_27():
    members = [{**each, "rack": rack} for each, rack in zip(GROUP["members"], "abc", strict=True)]
    lists = solve({"assignor": "range", **GROUP, "members": members, "racks": RACKS})["assignment"]
    assert lists == {"m0": [["t", 2], ["t", 5]], "m1": [["t", 0], ["t", 3]], "m2": [["t", 1], ["t", 4]]}


@pytest.mark.parametrize(("name", "key"), [("server-uniform", "rack"), ("server-uniform", "instance_id"),
                                           ("server-range", "rack"), ("server-range", "assigned")])  # fmt: skip
def test_so_it_is_for_the_assignors_of_coordinators(name, key):
    topics = {"t": {"id": "6kTR4yJfQIq7HpOsWZpVHg", "partitions": 2}}
    member = {"id": "m", "topics": ["t"], key: "x"}
    (line,) = solve_lines([json.dumps({"assignor": name, "topics": topics, "members": [member]})])
    assert f"BAD_SCENARIO: a key of members.0 is '{key}'; expected one of id, topics" in json.loads(line)["error"]
