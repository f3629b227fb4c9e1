"""A JSON scenario (see `core.scenario`) answered by a custom assignor."""

from __future__ import annotations

from base64 import b64decode
from typing import Any

from groupledger.core.custom.contract import examine
from groupledger.core.custom.group import Group, Member, TopicPartition
from groupledger.core.custom.naming import CustomAssignor


def solve(custom: CustomAssignor, scenario: dict[str, Any]) -> dict[str, Any]:
    """The result of a scenario whose form is right; `violations` holds code and message of each broken rule."""
    found = examine(custom, _group(scenario))
    if found.complaints:
        first = found.complaints[0]
        broken = [list(each) for each in found.complaints]
        return {"id": scenario.get("id"), "error": f"{first.code}: {first.message}", "violations": broken}
    ids = [member["id"] for member in scenario["members"]]
    lists = {member_id: [list(each) for each in found.assigned.get(member_id, ())] for member_id in ids}
    return {"id": scenario.get("id"), "assignment": lists}


def _group(scenario: dict[str, Any]) -> Group:
    members = tuple(_member(each) for each in scenario["members"])
    subscribed = {topic for member in members for topic in member.topics}
    return Group(members, {name: count for name, count in scenario["topics"].items() if name in subscribed})


def _member(told: dict[str, Any]) -> Member:
    generation, data = told.get("generation"), told.get("user_data")
    return Member(
        member_id=told["id"],
        topics=tuple(told["topics"]),
        owned=tuple(TopicPartition(*pair) for pair in told.get("owned") or []),
        generation=None if generation is None or generation < 0 else generation,
        group_instance_id=told.get("instance_id"),
        rack=told.get("rack") or None,
        user_data=None if data is None else b64decode(data),
    )
