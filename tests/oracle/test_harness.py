"""The comparison itself, with an oracle of our own in the JVM's place: what it counts, and that a difference shows."""

from __future__ import annotations

from collections import Counter

import pytest

from groupledger.core.scenarios.solving import solve
from tests.oracle import client_groups, validation
from tests.oracle.parity import ASKED, compare, outcome, table

GROUPS = list(client_groups.chains(seed=7, groups=60))


class Parrot:
    """Answers what we answer, but for scenarios it was told to get wrong."""

    def __init__(self, wrong=()):
        self.wrong = wrong

    def ask(self, scenario):
        result = solve(scenario | ASKED)
        return result | {"assignment": {}} if scenario["id"] in self.wrong else result


def test_what_differs_is_counted_kept_and_nothing_else_is():
    wrong = {scenario["id"] for scenario in GROUPS[10:13]}
    counts: Counter[tuple[str, str, str]] = Counter()
    keep: list[str] = []
    compare("new", GROUPS, Parrot(wrong), counts, keep)  # type: ignore[arg-type]
    assert len(keep) == 3
    assert sum(count for (_, _, found), count in counts.items() if found == "differing") == 3
    assert sum(counts.values()) == len(GROUPS)
    assert "differing" in table(counts)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, "equal"),
        ({"transferring": [["orders", 0, "nobody"]]}, "differing"),
        ({"path": "other"}, "differing"),
        ({"error": "ArithmeticException: / by zero"}, "differing"),
    ],
)
def test_all_that_kafka_says_must_agree(change, found):
    scenario = next(each for each in GROUPS if each["assignor"] == "sticky")
    assert outcome(scenario, solve(scenario | ASKED) | change) == found


class Leader:
    """Kafka's leader as its source reads: what one loses another may not gain, whatever the generations."""

    def ask(self, asked):
        owned, given = (
            {name: {*map(tuple, each)} for name, each in asked[key].items()} for key in ("owned", "assigned")
        )
        revoked = {each for name in given for each in owned[name] - given[name]}
        return {"valid": not any((given[name] - owned[name]) & revoked for name in given)}


class Reading(Leader):
    """One that reads generations, as KIP-792's text has it: here it accepts whatever it is asked."""

    def ask(self, asked):
        return {"valid": True}


def test_answers_of_custom_assignors_are_compared_with_the_leaders_validation():
    assert validation.compare(3, 60, Leader()) == {"equal": 60, "stale: accepted by us alone": 60}  # type: ignore[arg-type]
    found = validation.compare(3, 60, Reading())  # type: ignore[arg-type]
    assert found["differing"] > 20
    assert found["stale: not as decided"] == 60


def test_groups_are_the_same_for_a_seed_and_cover_the_ground():
    assert list(client_groups.chains(seed=7, groups=60)) == GROUPS
    assert next(client_groups.chains(seed=8, groups=1)) != GROUPS[0]
    assert {scenario["assignor"] for scenario in GROUPS} == set(client_groups.ASSIGNORS)
    assert any("racks" in scenario for scenario in GROUPS)
    assert any(member["owned"] for scenario in GROUPS for member in scenario["members"])
    paths = Counter(solve(scenario).get("path") for scenario in GROUPS)
    assert paths["constrained"] > 5
    assert paths["general"] > 5
