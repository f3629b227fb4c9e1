"""Solve one group given as a JSON scenario, with one assignment as a JSON result: the format of the parity files.

Works without Spark. A scenario: {"id", "assignor", "topics": {name: partitions}, "members": [{"id", "instance_id",
"topics", "owned", "generation", "rack", "user_data"}], "racks": {name: [[rack or null of each replica], ..]}
(optional)}; members in the order of the JoinGroup response. A result: {"id", "assignment": {member: [[topic,
partition], ..]}, "path"} or {"id", "error": "ExceptionClass: message"}. A scenario may ask for more with
`"transferring": true` and `"is_sticky": true`: other reports of Kafka's sticky assignors, see `assignors.transfers`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from groupledger.core.assignors import ASSIGNORS, MESSAGES, Mode, Path, Status, assign
from groupledger.core.assignors.kip315 import left_out, next_epochs, read_memory
from groupledger.core.assignors.transfers import is_sticky, transferring
from groupledger.core.batch import AssignmentBatch
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.faults import Fault
from groupledger.core.group_encoding import EncodedGroups
from groupledger.core.input_codes import ScenarioCode
from groupledger.core.registry import STREAM_JOIN
from groupledger.core.scenario_form import require_form, require_known_keys, require_no_racks
from groupledger.core.scenario_groups import encode
from groupledger.core.visible_text import json_text

MOST_ROUNDS = 4
"""Rounds in which a group must settle; cooperative assignors need two or three."""


def solve(
    scenario: dict[str, Any], *, mode: Mode = "as-kafka", custom: Mapping[str, CustomAssignor] | None = None
) -> dict[str, Any]:
    """Return the result of one scenario; an unusable scenario raises Fault.

    `custom` are the custom assignors that a scenario may name; it cannot import any other.
    `server-uniform`, `server-range` and `server-simple` have their own format and result: `assignors.server.scenario`;
    assignors of other client libraries have their own result: `assignors.clients.scenario`.
    """
    if str(scenario.get("assignor")).startswith("server-"):
        from groupledger.core.assignors.server.scenario import solve as solve_server

        return solve_server(scenario)
    require_form(scenario)
    require_no_racks(scenario)
    if scenario["assignor"] in (custom or {}):
        from groupledger.core.custom.scenarios import solve as solve_custom

        return solve_custom((custom or {})[scenario["assignor"]], scenario)
    if scenario["assignor"] not in ASSIGNORS:
        from groupledger.core.assignors.clients.scenario import solve as solve_client

        return solve_client(scenario)
    encoded = encode(scenario)
    answer = assign(scenario["assignor"], encoded.batch, mode=mode)
    return _result(scenario, encoded, answer) | _told(scenario, encoded, answer, mode)


def targets(scenario: dict[str, Any]) -> dict[str, list[tuple[str, int]]]:
    """Return the final partitions of a scenario's members: a cooperative assignor's target, not its first round.

    Raises Fault as `solve` does, and ASSIGNOR_FAILS with the assignor's failure.
    """
    name = scenario["assignor"]
    if name in ASSIGNORS:
        require_form(scenario)
        encoded = encode(scenario)
        answer = assign(name, encoded.batch, mode="safe")
        result = _listed(scenario, encoded, answer, answer.target_start, answer.target_topic, answer.target_partition)
    else:
        result = _settled(scenario)
    if "error" in result:
        raise Fault("ASSIGNOR_FAILS", f"{name} fails on this group: {result['error']}")
    return {
        member_id: [(topic, number) for topic, number in pairs] for member_id, pairs in result["assignment"].items()
    }


def _settled(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the result after all rounds, for an assignor that gives each round's answer but no target."""
    result = solve(scenario)
    for _ in range(MOST_ROUNDS):
        if "error" in result or scenario["assignor"].startswith("server-"):
            break
        lists = result["assignment"]
        members = [member | {"owned": lists[member["id"]]} for member in scenario["members"]]
        again = solve(scenario | {"members": members})
        if again.get("assignment") == lists:
            break
        result = again
    return result


NO_MEMBERS = "NoMembers: the group has no members, so there is nobody to assign to; expected at least one"
"""For a person, in place of what an assignor throws then: Java's sticky ones divide by zero."""


def solve_lines(
    lines: Iterable[str], *, mode: Mode = "as-kafka", custom: Mapping[str, CustomAssignor] | None = None
) -> Iterator[str]:
    """Yield one result line per scenario line; a bad line gives an error result with its number."""
    for number, line in enumerate(lines, 1):
        yield json_text(_solve_line(number, line, mode, custom))


def _solve_line(number: int, line: str, mode: Mode, custom: Mapping[str, CustomAssignor] | None) -> dict[str, Any]:
    name = None
    try:
        scenario = _parsed(line)
        name = scenario.get("id")
        require_known_keys(scenario, custom or {})
        result = solve(scenario, mode=mode, custom=custom)
        return result | {"error": NO_MEMBERS} if "error" in result and not scenario["members"] else result
    except Fault as fault:
        return {"id": name, "line": number, "error": f"{fault.code}: {fault.message}"}


def _parsed(line: str) -> dict[str, Any]:
    try:
        scenario = json.loads(line)
    except (ValueError, RecursionError) as error:  # not JSON, a number of 5,000 digits, brackets 1,000 deep
        raise Fault(ScenarioCode.BAD_JSON, f"{error}; expected one JSON object a line") from error
    if not isinstance(scenario, dict):
        raise Fault(ScenarioCode.BAD_SCENARIO, f"the line holds a {type(scenario).__name__}; expected a JSON object")
    return scenario


def _result(scenario: dict[str, Any], encoded: EncodedGroups, answer: AssignmentBatch) -> dict[str, Any]:
    lists = answer.assigned_start, answer.assigned_topic, answer.assigned_partition
    result = _listed(scenario, encoded, answer, *lists)
    if "error" in result:
        return result
    if answer.path[0] != Path.ONLY:
        result["path"] = Path(int(answer.path[0])).name.lower()
    if scenario["assignor"] == STREAM_JOIN.name:
        result |= _stream_join(encoded, answer) | _unreadable(scenario)
    return result


def _listed(
    scenario: dict[str, Any],
    encoded: EncodedGroups,
    answer: AssignmentBatch,
    starts: np.ndarray,
    topic: np.ndarray,
    partition: np.ndarray,
) -> dict[str, Any]:
    """Return the answer's lists by member and name, or Kafka's error."""
    status = Status(int(answer.status[0]))
    if status is not Status.OK:
        return {"id": scenario.get("id"), "error": MESSAGES[status]}
    names = [encoded.topics[each] for each in topic.tolist()]
    pairs = [list(pair) for pair in zip(names, partition.tolist(), strict=True)]
    start = starts.tolist()
    lists = {m["id"]: pairs[start[at] : start[at + 1]] for at, m in enumerate(scenario["members"])}
    return {"id": scenario.get("id"), "assignment": lists}


def _told(scenario: dict[str, Any], encoded: EncodedGroups, answer: AssignmentBatch, mode: Mode) -> dict[str, Any]:
    """Return what else the scenario asks for: `transferring` as [topic, partition, to_member] by name and number."""
    told: dict[str, Any] = {}
    if answer.status[0] != Status.OK:
        return told
    if scenario.get("transferring"):
        rows = transferring(scenario["assignor"], encoded.batch, answer, mode=mode)
        told["transferring"] = rows and sorted(
            [encoded.topics[topic], partition, scenario["members"][to]["id"]] for topic, partition, to in rows
        )
    if scenario.get("is_sticky"):
        told["is_sticky"] = is_sticky(scenario["assignor"])
    return told


def _stream_join(encoded: EncodedGroups, answer: AssignmentBatch) -> dict[str, Any]:
    """Return KIP-315's extra results: its members' new epoch, and what is left unassigned, with the reason."""
    rows = left_out(encoded.batch, answer)
    pairs = zip(rows.topic.tolist(), rows.partition.tolist(), strict=True)
    unassigned = [[encoded.topics[t], p, rows.reason(row).text] for row, (t, p) in enumerate(pairs)]
    return {"epoch": int(next_epochs(encoded.batch)[0]), "unassigned": unassigned}


def _unreadable(scenario: dict[str, Any]) -> dict[str, Any]:
    """Explain why members' user data is not KIP-315's: they count as remembering nothing (decision 0022)."""
    told = {}
    for member in scenario["members"]:
        try:
            if member.get("user_data") is not None:
                read_memory(base64.b64decode(member["user_data"]))
        except Fault as fault:
            told[member["id"]] = f"{fault.code}: {fault.message}"
    return {"unreadable": told} if told else {}
