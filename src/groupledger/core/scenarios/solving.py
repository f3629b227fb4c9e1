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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from groupledger.core.arrays.snapshots import EncodedGroups
from groupledger.core.assignors import ASSIGNORS, MESSAGES, Mode, Path, Status, assign
from groupledger.core.assignors.answer import AssignmentBatch
from groupledger.core.assignors.clients import CLIENT_ASSIGNORS
from groupledger.core.assignors.kip315 import left_out, next_epochs, read_memory
from groupledger.core.assignors.server.judgement import TargetCertainty, certainty
from groupledger.core.assignors.server.server_batch import ASSIGNORS as SERVER_ASSIGNORS
from groupledger.core.assignors.server.server_batch import TargetRows, failure, find_walks, path_word, written
from groupledger.core.assignors.server.server_batch import assign as server_assign
from groupledger.core.assignors.server.server_group import ServerGroup, ServerMember, Topic, TopicId
from groupledger.core.assignors.server.server_group import encode as server_encode
from groupledger.core.assignors.server.simple import SIMPLE, assign_simple
from groupledger.core.assignors.server.tasks import (
    STICKY_TASKS,
    MemberTasks,
    SubtopologyTasks,
    Task,
    TaskGroup,
    TaskMember,
    assign_tasks,
)
from groupledger.core.assignors.transfers import is_sticky, transferring
from groupledger.core.custom.contract import examine
from groupledger.core.custom.custom_group import CustomAssignor
from groupledger.core.faults import Fault, expected_one_of
from groupledger.core.log.lines import ScenarioCode
from groupledger.core.rebalance.registry import STREAM_JOIN, called
from groupledger.core.rebalance.step import Reason
from groupledger.core.scenarios.form import (
    encode,
    group_of,
    require_form,
    require_known_keys,
    require_no_racks,
    require_server_form,
    require_task_form,
)
from groupledger.core.text import json_text
from groupledger.core.wire.codec import uuid_bytes

MOST_ROUNDS = 4
"""Rounds in which a group must settle; cooperative assignors need two or three."""
COOPERATIVE = "cooperative"
"""In the name of every cooperative assignor, whatever library it is of."""


def solve(
    scenario: dict[str, Any], *, mode: Mode = "as-kafka", custom: Mapping[str, CustomAssignor] | None = None
) -> dict[str, Any]:
    """Return the result of one scenario; an unusable scenario raises Fault.

    `custom` are the custom assignors that a scenario may name; it cannot import any other.
    `server-uniform`, `server-range` and `server-simple` have their own format and result: see `solve_server_group`;
    assignors of other client libraries have their own result: see `solve_by_client`.
    """
    scenario = _with_our_name(scenario)
    if str(scenario.get("assignor")).startswith("server-"):
        return solve_server_group(scenario)
    require_form(scenario)
    require_no_racks(scenario)
    if scenario["assignor"] in (custom or {}):
        return solve_by_custom((custom or {})[scenario["assignor"]], scenario)
    if scenario["assignor"] not in ASSIGNORS:
        return solve_by_client(scenario)
    encoded = encode(scenario)
    answer = assign(scenario["assignor"], encoded.batch, mode=mode)
    return _result(scenario, encoded, answer) | _reports(scenario, encoded, answer, mode)


def _with_our_name(scenario: dict[str, Any]) -> dict[str, Any]:
    name = scenario.get("assignor")
    return scenario | {"assignor": called(name)} if isinstance(name, str) else scenario


def targets(
    scenario: dict[str, Any], custom: Mapping[str, CustomAssignor] | None = None
) -> dict[str, list[tuple[str, int]]]:
    """Return the final partitions of a scenario's members: what a cooperative assignor's last round gives them.

    Raises Fault as `solve` does, and ASSIGNOR_FAILS with the assignor's failure.
    """
    scenario = _with_our_name(scenario)
    result = _settled(scenario, custom)
    if "error" in result:
        raise Fault("ASSIGNOR_FAILS", f"{scenario['assignor']} fails on this group: {result['error']}")
    return {
        member_id: [(topic, number) for topic, number in pairs] for member_id, pairs in result["assignment"].items()
    }


def targets_after_joins(
    scenario: dict[str, Any], joined: int, custom: Mapping[str, CustomAssignor] | None = None
) -> dict[str, list[tuple[str, int]]]:
    """Return the same where the last `joined` members are new: a coordinator computes again for each that joins."""
    members, by_coordinator = scenario["members"], joined and scenario["assignor"].startswith(PREFIX)
    given = dict[str, list[tuple[str, int]]]()
    for left in range(joined - 1 if by_coordinator else 0, -1, -1):
        some = members[: len(members) - left]
        joining = {"joining": some[-1]["id"]} if by_coordinator else {}
        given = targets({**scenario, "members": some} | joining, custom)
        members = [each | {"assigned": [*map(list, given.get(each["id"], ()))]} for each in members]
    return given


def order_decides(scenario: dict[str, Any], joined: int) -> bool:
    """Return whether the order of members that share a bucket and a slot of a coordinator's maps may decide its answer.

    It is the order in which they joined, which a log need not show; the last of the `joined` members is the last.
    """
    name = scenario["assignor"].removeprefix(PREFIX)
    if name == scenario["assignor"]:
        return False
    joining = {"joining": scenario["members"][-1]["id"]} if joined else {}
    batch, _ = server_encode([read(scenario | joining)])
    return certainty(name, batch, [False]) != [TargetCertainty.EXACT]


def _settled(scenario: dict[str, Any], custom: Mapping[str, CustomAssignor] | None) -> dict[str, Any]:
    """Return the result after all rounds: an eager assignor and a coordinator give it in one."""
    result, own = solve(scenario, custom=custom), (custom or {}).get(scenario["assignor"])
    in_steps = COOPERATIVE in scenario["assignor"] if own is None else own.cooperative
    for _ in range(MOST_ROUNDS if in_steps else 0):
        if "error" in result:
            break
        lists = result["assignment"]
        members = [each | {"owned": lists[each["id"]], "generation": 0} for each in scenario["members"]]
        again = solve(scenario | {"members": members}, custom=custom)
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
    """Return the answer's lists by member and name, or Kafka's error."""
    status = Status(int(answer.status[0]))
    if status is not Status.OK:
        return {"id": scenario.get("id"), "error": MESSAGES[status]}
    lists = encoded.named(answer.assigned)
    assignment = {member_id: [list(pair) for pair in pairs] for member_id, pairs in lists.items()}
    result: dict[str, Any] = {"id": scenario.get("id"), "assignment": assignment}
    if answer.path[0] != Path.ONLY:
        result["path"] = Path(int(answer.path[0])).name.lower()
    if scenario["assignor"] == STREAM_JOIN.name:
        result |= _stream_join(encoded, answer) | _unreadable(scenario)
    return result


def _reports(scenario: dict[str, Any], encoded: EncodedGroups, answer: AssignmentBatch, mode: Mode) -> dict[str, Any]:
    """Return what else the scenario asks for: `transferring` as [topic, partition, to_member] by name and number."""
    extra: dict[str, Any] = {}
    if answer.status[0] != Status.OK:
        return extra
    if scenario.get("transferring"):
        rows = transferring(scenario["assignor"], encoded.batch, answer, mode=mode)
        extra["transferring"] = rows and sorted(
            [encoded.topics[topic], partition, scenario["members"][to]["id"]] for topic, partition, to in rows
        )
    if scenario.get("is_sticky"):
        extra["is_sticky"] = is_sticky(scenario["assignor"])
    return extra


def _stream_join(encoded: EncodedGroups, answer: AssignmentBatch) -> dict[str, Any]:
    """Return KIP-315's extra results: its members' new epoch, and what is left unassigned, with the reason."""
    rows = left_out(encoded.batch, answer)
    of_rows = zip(rows.topic.tolist(), rows.partition.tolist(), rows.reason.tolist(), strict=True)
    unassigned = [[encoded.topics[topic], number, Reason(reason).text] for topic, number, reason in of_rows]
    return {"epoch": int(next_epochs(encoded.batch)[0]), "unassigned": unassigned}


def _unreadable(scenario: dict[str, Any]) -> dict[str, Any]:
    """Explain why members' user data is not KIP-315's: they count as remembering nothing (decision 0022)."""
    extra = {}
    for member in scenario["members"]:
        try:
            if member.get("user_data") is not None:
                read_memory(base64.b64decode(member["user_data"]))
        except Fault as fault:
            extra[member["id"]] = f"{fault.code}: {fault.message}"
    return {"unreadable": extra} if extra else {}


# Solve a group given as one JSON scenario, for `solve` with `server-uniform`, `server-range` and `server-simple`.
#
# A Streams group (`server-sticky`) has a form of its own: `solve_tasks`.
#
# The format is that of `tests/data/parity/README.md`. `map`, the collection under the group's members, is not an input
# here: production's TimelineHashMap is the only one.

PREFIX = "server-"
NAMES = tuple(PREFIX + name for name in (*SERVER_ASSIGNORS, SIMPLE, STICKY_TASKS))
HOMOGENEOUS = {"homogeneous": True, "heterogeneous": False}


def solve_server_group(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's result: `assignment` sorted, `order` as the records are written, or Kafka's `error`.

    Raises Fault if the scenario is malformed, or if its group cannot exist.
    """
    if scenario["assignor"] == PREFIX + STICKY_TASKS:
        return solve_tasks(scenario)
    group = read(scenario)
    batch, names = server_encode([group])
    if scenario["assignor"] == PREFIX + SIMPLE:
        topics, records = _names(scenario), assign_simple(group).items()
        order = {member: [(topics[topic], list(each)) for topic, each in record] for member, record in records}
        return _answer(scenario, order, path_word(find_walks(batch)[0], 0))
    result = server_assign(scenario["assignor"].removeprefix(PREFIX), batch)
    error = failure(batch, result, 0)
    if error is not None:
        return {"id": scenario.get("id"), "error": error, "path": path_word(result.path, 0)}
    return _answer(scenario, written(batch, names, result, 0), path_word(result.path, 0))


def _answer(scenario: Mapping[str, Any], order: TargetRows, path: str) -> dict[str, Any]:
    return {
        "id": scenario.get("id"),
        "assignment": {member: _pairs(record) for member, record in order.items()},
        "order": {member: [[topic, list(each)] for topic, each in record] for member, record in order.items()},
        "path": path,
    }


def read(scenario: Mapping[str, Any]) -> ServerGroup:
    """Return the group that a scenario describes; Fault BAD_SCENARIO says what is wrong with its form."""
    require_server_form(scenario, NAMES)
    topics = {name: Topic(_id(fact["id"]), int(fact["partitions"])) for name, fact in scenario["topics"].items()}
    ids = {name: topic_id for topic_id, name in _names(scenario).items()}
    history = scenario.get("history")
    kind = scenario.get("subscription_type")
    return ServerGroup(
        tuple(_member(member, ids) for member in scenario["members"]),
        topics,
        changes=None if history is None else tuple(int(change) for _, change in history),
        joining=scenario.get("joining"),
        homogeneous=None if kind is None else HOMOGENEOUS[kind],
    )


def _names(scenario: Mapping[str, Any]) -> dict[TopicId, str]:
    """Return the names of topics, of deleted ones too, by their ids."""
    extra = {name: fact["id"] for name, fact in scenario["topics"].items()} | (scenario.get("deleted") or {})
    return {_id(text): name for name, text in extra.items()}


def _member(member: Mapping[str, Any], ids: Mapping[str, TopicId]) -> ServerMember:
    target: dict[TopicId, list[int]] = {}
    for topic, partition in member.get("assigned") or ():
        target.setdefault(ids[topic], []).append(int(partition))
    held = tuple((topic, tuple(partitions)) for topic, partitions in target.items())
    return ServerMember(member["id"], tuple(member["topics"]), held, member.get("instance_id"))


def _id(text: str) -> TopicId:
    return TopicId(uuid_bytes(text))


def _pairs(record: Sequence[tuple[str, Sequence[int]]]) -> list[list[Any]]:
    """Return pairs sorted by topic, in Java's order (UTF-16 units), then by partition."""
    by_topic = sorted(record, key=lambda each: each[0].encode("utf-16-be", "surrogatepass"))
    return [[topic, partition] for topic, each in by_topic for partition in sorted(each)]


# Solve a Streams group given as one JSON scenario, for `solve` with `server-sticky`.
#
# The format is that of `tests/data/parity/README.md`.


def solve_tasks(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's result: the active and the standby tasks of each member, sorted.

    Raises Fault if the scenario is malformed.
    """
    require_task_form(scenario)
    targets = assign_tasks(read_tasks(scenario))
    return {
        "id": scenario.get("id"),
        "active": {member_id: [*map(list, target.active)] for member_id, target in targets.items()},
        "standby": {member_id: [*map(list, target.standby)] for member_id, target in targets.items()},
    }


def read_tasks(scenario: Mapping[str, Any]) -> TaskGroup:
    """Return the group that a scenario describes."""
    history = scenario.get("history")
    return TaskGroup(
        tuple(_streams_member(each) for each in scenario["members"]),
        {
            name: SubtopologyTasks(fact["tasks"], fact.get("stateful", False))
            for name, fact in scenario["subtopologies"].items()
        },
        scenario.get("standby_replicas", 0),
        changes=None if history is None else tuple(int(change) for _, change in history),
        joining=scenario.get("joining"),
    )


def _streams_member(member: Mapping[str, Any]) -> TaskMember:
    held = MemberTasks(_tasks(member.get("active")), _tasks(member.get("standby")))
    offsets = {Task(name, number): offset for name, number, offset in member.get("offsets") or ()}
    return TaskMember(member["id"], member["process_id"], held, offsets)


def _tasks(pairs: Iterable[tuple[str, int]] | None) -> tuple[Task, ...]:
    return tuple(sorted({Task(name, number) for name, number in pairs or ()}))


# Solve a JSON scenario (see `core.scenarios.form`) by the assignor of another client library, such as `sarama-range`.
#
# A scenario may name the `leader`, which KafkaJS's assignor needs. The result adds `absent`, the members to whom the
# leader sends no assignment; and `several`: true, if the library may give another answer to the same group.

LOOKS = 24
"""Runs tried to find a second answer."""


def solve_by_client(scenario: dict[str, Any]) -> dict[str, Any]:
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


# Solve a JSON scenario (see `core.scenarios.form`) by a custom assignor.


def solve_by_custom(custom: CustomAssignor, scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a well-formed scenario; `violations` holds code and message of each broken rule."""
    found = examine(custom, group_of(scenario))
    if found.complaints:
        first = found.complaints[0]
        broken = [list(each) for each in found.complaints]
        return {"id": scenario.get("id"), "error": f"{first.code}: {first.message}", "violations": broken}
    ids = [member["id"] for member in scenario["members"]]
    lists = {member_id: [list(each) for each in found.assigned.get(member_id, ())] for member_id in ids}
    return {"id": scenario.get("id"), "assignment": lists}
