"""Solve a group given as one JSON scenario, for `solve` with `server-uniform`, `server-range` and `server-simple`.

A Streams group (`server-sticky`) has a form of its own: `task_scenario`.

The format is that of `tests/data/parity/README.md`. `map`, the collection under the group's members, is not an input
here: production's TimelineHashMap is the only one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groupledger.core.assignors.server.answer import PATHS, TargetRows, failure, path_word, written
from groupledger.core.assignors.server.assign import ASSIGNORS, assign, find_walks
from groupledger.core.assignors.server.group import ServerGroup, ServerMember, Topic, TopicId, encode
from groupledger.core.assignors.server.simple import SIMPLE, assign_simple
from groupledger.core.assignors.server.spec import ServerPath
from groupledger.core.assignors.server.sticky_tasks import STICKY_TASKS
from groupledger.core.assignors.server.task_scenario import solve_tasks
from groupledger.core.scenario_form import require_server_form
from groupledger.core.wire.primitives import uuid_bytes

PREFIX = "server-"
NAMES = tuple(PREFIX + name for name in (*ASSIGNORS, SIMPLE, STICKY_TASKS))
HOMOGENEOUS = {"homogeneous": True, "heterogeneous": False}


def solve(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Return a scenario's result: `assignment` sorted, `order` as the records are written, or Kafka's `error`.

    Raises Fault if the scenario is malformed, or if its group cannot exist.
    """
    if scenario["assignor"] == PREFIX + STICKY_TASKS:
        return solve_tasks(scenario)
    group = read(scenario)
    batch, names = encode([group])
    if scenario["assignor"] == PREFIX + SIMPLE:
        return _answer(
            scenario, _simple_order(group, _names(scenario)), PATHS[ServerPath(int(find_walks(batch)[0][0]))]
        )
    result = assign(scenario["assignor"].removeprefix(PREFIX), batch)
    error = failure(batch, result, 0)
    if error is not None:
        return {"id": scenario.get("id"), "error": error, "path": path_word(result, 0)}
    return _answer(scenario, written(batch, names, result, 0), path_word(result, 0))


def _simple_order(group: ServerGroup, names: Mapping[TopicId, str]) -> TargetRows:
    """Return each member's record by `simple`, with the names of topics."""
    records = assign_simple(group).items()
    return {member: [(names[topic], list(each)) for topic, each in record] for member, record in records}


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
    told = {name: fact["id"] for name, fact in scenario["topics"].items()} | (scenario.get("deleted") or {})
    return {_id(text): name for name, text in told.items()}


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
