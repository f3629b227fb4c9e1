"""Solve a JSON scenario (see `core.scenario`) by a custom assignor."""

from __future__ import annotations

from typing import Any

from groupledger.core.custom.contract import examine
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.scenario_groups import group_of


def solve(custom: CustomAssignor, scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a well-formed scenario; `violations` holds code and message of each broken rule."""
    found = examine(custom, group_of(scenario))
    if found.complaints:
        first = found.complaints[0]
        broken = [list(each) for each in found.complaints]
        return {"id": scenario.get("id"), "error": f"{first.code}: {first.message}", "violations": broken}
    ids = [member["id"] for member in scenario["members"]]
    lists = {member_id: [list(each) for each in found.assigned.get(member_id, ())] for member_id in ids}
    return {"id": scenario.get("id"), "assignment": lists}
