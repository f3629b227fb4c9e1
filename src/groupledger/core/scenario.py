"""One group as a JSON scenario, one assignment as a JSON result: the format of the parity files, without Spark.

A scenario: {"id", "assignor", "topics": {name: partitions}, "members": [{"id", "instance_id", "topics", "owned",
"generation", "rack", "user_data"}], "racks": {name: [[rack or null of each replica], ..]} (optional)}; members in
the order of the JoinGroup response. A result: {"id", "assignment": {member: [[topic, partition], ..]}, "path"} or
{"id", "error": "ExceptionClass: message"}. A scenario may ask for more with `"transferring": true` and `"is_sticky":
true`: what Kafka's sticky assignors tell besides, see `assignors.transfers`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupledger.core.assignors import ASSIGNORS, MESSAGES, Mode, Path, Status, assign
from groupledger.core.assignors.kip315 import left_out, next_epochs, read_memory
from groupledger.core.assignors.transfers import is_sticky, transferring
from groupledger.core.batch import NONE, AssignmentBatch, GroupBatch
from groupledger.core.custom.group import Group, Member, TopicPartition
from groupledger.core.custom.naming import CustomAssignor
from groupledger.core.faults import Fault
from groupledger.core.javaorder import computed_map_order, hash_texts, rank_present, rank_texts
from groupledger.core.scenario_form import require_form
from groupledger.core.visible_text import json_text
from groupledger.core.wire.user_data import COOPERATIVE_STICKY, STICKY, decode_user_data, taken

Claim = tuple[str, int]
STREAM_JOIN = "sticky-stream-join"
MOST_ROUNDS = 4
"""Rounds that a group is given to settle in; cooperative assignors need two or three."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch of one group, and the topic names its local topics stand for."""

    batch: GroupBatch
    topics: list[str]


def solve(
    scenario: dict[str, Any], *, mode: Mode = "as-kafka", custom: Mapping[str, CustomAssignor] | None = None
) -> dict[str, Any]:
    """The result of one scenario; a scenario that cannot be used raises Fault.

    `custom` are the custom assignors a scenario may name: it cannot have any other imported.
    `server-uniform` and `server-range` (KIP-848) have a format and a result of their own: `assignors.server.scenario`;
    assignors of other client libraries a result of their own: `assignors.clients.scenario`.
    """
    if str(scenario.get("assignor")).startswith("server-"):
        from groupledger.core.assignors.server.scenario import solve as solve_server

        return solve_server(scenario)
    require_form(scenario)
    if scenario["assignor"] in (custom or {}):
        from groupledger.core.custom.scenarios import solve as solve_custom

        return solve_custom((custom or {})[scenario["assignor"]], scenario)
    if scenario["assignor"] not in ASSIGNORS:
        from groupledger.core.assignors.clients.scenario import solve as solve_client

        return solve_client(scenario)
    encoded = encode(scenario)
    answer = assign(scenario["assignor"], encoded.batch, mode=mode)
    return _result(scenario, encoded, answer) | _told(scenario, encoded, answer, mode)


def targets(scenario: dict[str, Any]) -> dict[str, list[Claim]]:
    """Where the members of a scenario are to be at last: a cooperative assignor's target, not its first round.

    Raises Fault: as `solve`, and ASSIGNOR_FAILS with what the assignor fails with.
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
    """The result after as many rounds as it takes: of an assignor that gives this round's answer and no target."""
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


def solve_lines(
    lines: Iterable[str], *, mode: Mode = "as-kafka", custom: Mapping[str, CustomAssignor] | None = None
) -> Iterator[str]:
    """One result line for each scenario line; a bad line becomes an error result with its number, the others go on."""
    for number, line in enumerate(lines, 1):
        yield json_text(_solve_line(number, line, mode, custom))


def _solve_line(number: int, line: str, mode: Mode, custom: Mapping[str, CustomAssignor] | None) -> dict[str, Any]:
    name = None
    try:
        scenario = _parsed(line)
        name = scenario.get("id")
        return solve(scenario, mode=mode, custom=custom)
    except Fault as fault:
        return {"id": name, "line": number, "error": f"{fault.code}: {fault.message}"}


def _parsed(line: str) -> dict[str, Any]:
    try:
        scenario = json.loads(line)
    except (ValueError, RecursionError) as error:  # no JSON, a number of 5,000 digits, brackets 1,000 deep
        raise Fault("bad-json", f"{error}; expected one JSON object a line") from error
    if not isinstance(scenario, dict):
        raise Fault("bad-scenario", f"the line holds a {type(scenario).__name__}; expected a JSON object")
    return scenario


def encode(scenario: dict[str, Any]) -> Encoded:
    """The scenario as a batch of one group."""
    members = scenario["members"]
    claims = [read_claim(scenario["assignor"], member) for member in members]
    names = list(dict.fromkeys(topic for member in members for topic in member["topics"]))
    local = {name: at for at, name in enumerate(names)}
    kept = [[(local[t], p) for t, p in owned if t in local] for owned, _ in claims]
    subscribed = [local[topic] for member in members for topic in member["topics"]]
    batch = GroupBatch(
        member_start=_ints([0, len(members)]),
        member_hash=hash_texts([member["id"] for member in members]),
        member_rank=rank_texts([member["id"] for member in members]),
        instance_rank=rank_present([member.get("instance_id") for member in members], NONE),
        member_rack=_rack_codes(scenario)[1],
        subscription_generation=_small([_or_none(stated_generation(member)) for member in members]),
        claim_generation=_small([_or_none(generation) for _, generation in claims]),
        topic_start=_ints([0, len(names)]),
        topic_hash=hash_texts(names),
        topic_rank=rank_texts(names),
        topic_partitions=_small([scenario["topics"].get(name, NONE) for name in names]),
        member_subscription=np.arange(len(members)),
        subscription_start=_starts([len(member["topics"]) for member in members]),
        subscription_topic=_small(subscribed),
        claim_start=_starts([len(owned) for owned in kept]),
        claim_topic=_small([topic for owned in kept for topic, _ in owned]),
        claim_partition=_small([partition for owned in kept for _, partition in owned]),
        **_racks(scenario, names),
    )
    return Encoded(batch, names)


def group_of(scenario: dict[str, Any]) -> Group:
    """A scenario whose form is right as one group in plain values, with the topics that somebody subscribes to."""
    members = tuple(
        Member(
            member_id=told["id"],
            topics=tuple(told["topics"]),
            owned=tuple(TopicPartition(*pair) for pair in told.get("owned") or []),
            generation=stated_generation(told),
            group_instance_id=told.get("instance_id"),
            rack=told.get("rack") or None,
            user_data=None if told.get("user_data") is None else base64.b64decode(told["user_data"]),
        )
        for told in scenario["members"]
    )
    subscribed = {topic for member in members for topic in member.topics}
    return Group(members, {name: count for name, count in scenario["topics"].items() if name in subscribed})


def scenario_of(group: Group, assignor: str) -> dict[str, Any]:
    """The group as a scenario."""
    members = [
        {
            "id": member.member_id,
            "instance_id": member.group_instance_id,
            "topics": list(member.topics),
            "owned": [list(pair) for pair in member.owned],
            "generation": member.generation,
            "rack": member.rack,
            "user_data": None if member.user_data is None else base64.b64encode(member.user_data).decode(),
        }
        for member in group.members
    ]
    return {"id": None, "assignor": assignor, "topics": dict(group.topics), "members": members}


def _result(scenario: dict[str, Any], encoded: Encoded, answer: AssignmentBatch) -> dict[str, Any]:
    lists = answer.assigned_start, answer.assigned_topic, answer.assigned_partition
    result = _listed(scenario, encoded, answer, *lists)
    if "error" in result:
        return result
    if answer.path[0] != Path.ONLY:
        result["path"] = Path(int(answer.path[0])).name.lower()
    if scenario["assignor"] == STREAM_JOIN:
        result |= _stream_join(encoded, answer) | _unreadable(scenario)
    return result


def _listed(
    scenario: dict[str, Any],
    encoded: Encoded,
    answer: AssignmentBatch,
    starts: np.ndarray,
    topic: np.ndarray,
    partition: np.ndarray,
) -> dict[str, Any]:
    """Lists of the answer by member and name, or Kafka's error."""
    status = Status(int(answer.status[0]))
    if status is not Status.OK:
        return {"id": scenario.get("id"), "error": MESSAGES[status]}
    names = [encoded.topics[each] for each in topic.tolist()]
    pairs = [list(pair) for pair in zip(names, partition.tolist(), strict=True)]
    start = starts.tolist()
    lists = {m["id"]: pairs[start[at] : start[at + 1]] for at, m in enumerate(scenario["members"])}
    return {"id": scenario.get("id"), "assignment": lists}


def _told(scenario: dict[str, Any], encoded: Encoded, answer: AssignmentBatch, mode: Mode) -> dict[str, Any]:
    """What the scenario asks for besides: `transferring` as [topic, partition, to_member] by name and number."""
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


def _stream_join(encoded: Encoded, answer: AssignmentBatch) -> dict[str, Any]:
    """What KIP-315 answers besides: the epoch its members are to remember, and what nobody gets, with the reason."""
    rows = left_out(encoded.batch, answer)
    pairs = zip(rows.topic.tolist(), rows.partition.tolist(), strict=True)
    unassigned = [[encoded.topics[t], p, rows.reason(row).value] for row, (t, p) in enumerate(pairs)]
    return {"epoch": int(next_epochs(encoded.batch)[0]), "unassigned": unassigned}


def _unreadable(scenario: dict[str, Any]) -> dict[str, Any]:
    """Of each member whose user data is not KIP-315's, why: it counts as one that remembers nothing (decision 0022)."""
    told = {}
    for member in scenario["members"]:
        try:
            if member.get("user_data") is not None:
                read_memory(base64.b64decode(member["user_data"]))
        except Fault as fault:
            told[member["id"]] = f"{fault.code}: {fault.message}"
    return {"unreadable": told} if told else {}


def read_claim(assignor: str, member: dict[str, Any]) -> tuple[list[Claim], int | None]:
    """What Kafka's assignor takes the member to own, and of which generation."""
    data = member.get("user_data")
    raw = None if data is None else base64.b64decode(data)
    owned = [(topic, partition) for topic, partition in member.get("owned") or []]
    if assignor == STREAM_JOIN:
        return (owned, stated_generation(member)) if raw is None else _stream_join_memory(member, raw)
    if assignor == STICKY and raw is None:
        return through_user_data(owned), stated_generation(member)
    if assignor == STICKY:
        sent = decode_user_data(raw, STICKY)
        lists, generation = taken(STICKY, sent.owned, sent.generation, None, raw)
        return [(topic, number) for topic, numbers in lists for number in numbers], generation
    _, generation = taken(COOPERATIVE_STICKY, owned, None, stated_generation(member), raw)
    return owned, generation


def _stream_join_memory(member: dict[str, Any], raw: bytes) -> tuple[list[Claim], int | None]:
    """KIP-315: partition numbers of whatever topic, and their epoch; what cannot be read claims nothing."""
    try:
        memory = read_memory(raw)
    except Fault:
        return [], None
    return [(topic, number) for topic in member["topics"][:1] for number in memory.partitions], memory.epoch


def through_user_data(owned: list[Claim]) -> list[Claim]:
    """The claims in the order in which StickyAssignor writes them: by topic, as its hash map of topics is walked."""
    names = list(dict.fromkeys(topic for topic, _ in owned))
    order = np.arange(len(names), dtype=np.int32)
    called_again = bool(owned) and owned[-1][0] in {topic for topic, _ in owned[:-1]}
    computed_map_order(hash_texts(names), order, len(names), called_again)
    return [(topic, partition) for at in order for topic, partition in owned if topic == names[at]]


def stated_generation(member: dict[str, Any]) -> int | None:
    """The generation of the member's subscription; a negative one is none, as Kafka reads it."""
    generation = member.get("generation")
    return None if generation is None or generation < 0 else int(generation)


def _racks(scenario: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """Replica racks of all partitions of all topics, as the batch lays them out; nothing without racks."""
    racks = scenario.get("racks")
    if not racks:
        return {}
    codes, _ = _rack_codes(scenario)
    starts, first, flat = [0], [0], []
    for name in names:
        known = racks.get(name, [])
        for partition in range(max(scenario["topics"].get(name, 0), 0)):
            replicas = known[partition] if partition < len(known) else []
            flat += [NONE if rack is None else codes[rack] for rack in replicas]
            starts.append(len(flat))
        first.append(len(starts) - 1)
    return {"rack_start": _ints(starts), "rack_code": _small(flat), "rack_topic_start": _ints(first)}


def _rack_codes(scenario: dict[str, Any]) -> tuple[dict[str, int], np.ndarray]:
    """A number for each rack, and the rack of each member: an empty one is none."""
    replicas = [rack for topic in (scenario.get("racks") or {}).values() for each in topic for rack in each]
    mine = [member.get("rack") or None for member in scenario["members"]]
    codes = {rack: code for code, rack in enumerate(sorted({rack for rack in replicas + mine if rack is not None}))}
    return codes, _small([NONE if rack is None else codes[rack] for rack in mine])


def _or_none(generation: int | None) -> int:
    return NONE if generation is None else generation


def _ints(values: list[int]) -> np.ndarray:
    return np.array(values, np.int64)


def _small(values: list[int]) -> np.ndarray:
    return np.array(values, np.int32)


def _starts(lengths: list[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)
