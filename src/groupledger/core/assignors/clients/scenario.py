"""Solve a JSON scenario (see `core.scenario`) by the assignor of another client library, such as `sarama-range`.

A scenario may name the `leader`, which KafkaJS's assignor needs. The result adds `absent`, the members that the leader
sends no assignment to; and `several`: true, if the library may give another answer to the same group.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.input_codes import ScenarioCode
from groupledger.core.scenario_groups import group_of

LOOKS = 24
"""Runs tried to find a second answer."""


def solve(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a well-formed scenario: the likeliest answer, or the leader's failure.

    Raises Fault: UNKNOWN_ASSIGNOR; NO_ANSWER for an assignor whose answer is random; BAD_SCENARIO for a leader
    that is not a member.
    """
    name, leader = scenario["assignor"], scenario.get("leader")
    known = CLIENT_ASSIGNORS.get(name)
    if known is None:
        expected = expected_one_of(name, [*ASSIGNORS, *(each for each in CLIENT_ASSIGNORS if each not in ASSIGNORS)])
        raise Fault(ScenarioCode.UNKNOWN_ASSIGNOR, f"assignor is {name!r}; {expected}")
    ids = [member["id"] for member in scenario["members"]]
    if leader is not None and leader not in ids:
        raise Fault(ScenarioCode.BAD_SCENARIO, f"leader is {leader!r}; expected the id of a member")
    if not ids:
        return {"id": scenario.get("id"), "assignment": {}}
    plans = known.plans(group_of(scenario), leader)
    plans = replace(plans, most=min(plans.most, LOOKS))
    found = list(islice(plans, 2))
    if not found:
        message = f"{name} walks Go maps, whose order is left to chance: it has no one answer to compute;"
        raise Fault(ScenarioCode.NO_ANSWER, f"{message} expected an assignor that has")
    plan, *others = found
    if plan.failure is not None:
        return {"id": scenario.get("id"), "error": plan.failure}
    lists = {member_id: [list(pair) for pair in plan.lists.get(member_id, ())] for member_id in ids}
    result: dict[str, Any] = {"id": scenario.get("id"), "assignment": lists}
    absent = [member_id for member_id in ids if member_id not in plan.lists]
    return result | ({"absent": absent} if absent else {}) | ({"several": True} if others or plans.cut else {})
