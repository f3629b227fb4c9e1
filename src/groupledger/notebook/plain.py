"""Solve and simulate one group in plain Python values, and list the assignors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from groupledger.core.assignors import ASSIGNORS
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.custom.assignor_names import by_every_name, find_all
from groupledger.core.custom.custom_group import DEFAULT, CustomLimits
from groupledger.core.faults import Fault
from groupledger.core.rebalance.registry import RECORDS
from groupledger.core.scenarios.solving import NAMES as SERVER_ASSIGNORS


class AssignorInfo(NamedTuple):
    """An assignor: where it can be used, and whose it is."""

    name: str
    library: str | None  # whose assignor it is; None: no library ships it
    cooperative: bool | None  # members keep what they own while they rejoin; None: a coordinator or a library decides
    java_class: str | None
    anywhere: bool  # in `assign`, `simulate`, `replay`, grids; False: in `solve`, and the what-if of one group


def assignors() -> list[AssignorInfo]:
    """Return the assignors that have a name; others are `module:function` (docs/guides/decide/write-an-assignor.md).

    >>> [each.name for each in assignors() if each.anywhere][:4]
    ['range', 'roundrobin', 'sticky', 'cooperative-sticky']
    """
    of_consumers = [
        AssignorInfo(each.name, each.library, each.cooperative, each.java_class or None, anywhere=True)
        for each in RECORDS
    ]
    of_coordinators = [AssignorInfo(name, "kafka", None, None, anywhere=False) for name in SERVER_ASSIGNORS]
    known = {each.name for each in RECORDS}
    others = [
        AssignorInfo(name, each.library, None, None, anywhere=False)
        for name, each in CLIENT_ASSIGNORS.items()
        if name not in known
    ]
    return [*of_consumers, *of_coordinators, *others]


def solve(scenario: Mapping[str, Any], *, custom: Iterable[str] = (), limits: CustomLimits = DEFAULT) -> dict[str, Any]:
    """Compute the assignment of one group in plain values.

    A scenario is that of `groupledger solve` (docs/guides/decide/solve-one-group.md).
    `assignment` has for each member its partitions as [topic, number]; where Kafka's own assignor fails on the group,
    `error` says how. `custom`: names of custom assignors that the scenario may use. Raises Fault: BAD_SCENARIO,
    UNKNOWN_ASSIGNOR, NO_ANSWER, BAD_GROUP, BAD_USER_DATA, ASSIGNOR_NOT_FOUND.

    >>> solve({
    ...     "assignor": "range",
    ...     "topics": {"orders": 3},
    ...     "members": [{"id": "a", "topics": ["orders"]}, {"id": "b", "topics": ["orders"]}],
    ... })["assignment"]
    {'a': [['orders', 0], ['orders', 1]], 'b': [['orders', 2]]}
    """
    from groupledger.core.scenarios.form import require_known_keys
    from groupledger.core.scenarios.solving import solve as solve_scenario

    if not isinstance(scenario, Mapping):
        raise Fault("BAD_SCENARIO", f"the scenario is a {type(scenario).__name__}; expected a dictionary")
    found = by_every_name(find_all(custom, limits), (*ASSIGNORS, *CLIENT_ASSIGNORS))
    plain = dict(scenario)
    require_known_keys(plain, found)
    return solve_scenario(plain, custom=found)


def simulate(
    script: Mapping[str, Any], *, custom: Iterable[str] = (), metrics: bool = False, limits: CustomLimits = DEFAULT
) -> dict[str, Any]:
    """Play the events of one group, in plain values.

    A script is that of `groupledger simulate` (docs/guides/decide/simulate-a-group.md).
    Returns its events, each with the rounds that it took. `metrics` adds KIP-429's. Raises Fault with the code
    of what is wrong with the script.

    >>> joins = [{"event": "join", "member": name, "topics": ["orders"]} for name in "ab"]
    >>> played = simulate({"id": "payments", "topics": {"orders": 4}, "events": joins})
    >>> [len(event["rounds"]) for event in played["events"]]
    [1, 2]
    """
    from groupledger.core.protocol.script_json import simulate_lines

    try:
        line = json.dumps(script)
    except (TypeError, ValueError) as error:
        raise Fault("BAD_SCRIPT", f"the script has a value that JSON has no form for: {error}") from error
    [answer] = simulate_lines([line], find_all(custom, limits), metrics=metrics)
    result: dict[str, Any] = json.loads(answer)
    if "error" in result and "line" in result:
        code, _, message = result["error"].partition(": ")
        raise Fault(code, message)
    return result
