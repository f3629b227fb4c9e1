"""Scenarios of tests/data/parity as tables of members and topics, and lists of a result by member."""

from __future__ import annotations

import base64

import pyarrow as pa

from groupledger.core.scenarios.solving import solve
from groupledger.tables import columns as c

OWNED = pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int32())]))
MEMBERS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("group_id", pa.string()),
        ("observed_at", pa.timestamp("us")),
        ("member_id", pa.string()),
        ("member_order", pa.int32()),
        ("group_instance_id", pa.string()),
        ("rack", pa.string()),
        ("topics", pa.list_(pa.string())),
        ("owned", OWNED),
        ("generation", pa.int32()),
        ("user_data", pa.binary()),
        ("assignor", pa.string()),
    ]
)
TOPICS = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("group_id", pa.string()),
        ("observed_at", pa.timestamp("us")),
        ("topic", pa.string()),
        ("partitions", pa.int32()),
        ("racks", pa.list_(pa.list_(pa.string()))),
    ]
)


def tables(scenarios, moments=1) -> tuple[pa.Table, pa.Table]:
    """One table of members and one of topics; scenario i is of the group i // moments at moment i % moments."""
    members, topics = [], []
    for number, scenario in enumerate(scenarios):
        key = {"cluster_id": "c", "group_id": f"g{number // moments}", "observed_at": number % moments}
        for order, member in enumerate(scenario["members"]):
            data = member.get("user_data")
            members.append(
                key
                | {name: member.get(name) for name in ("topics", "generation", "rack")}
                | {
                    "member_id": member["id"],
                    "member_order": order,
                    "group_instance_id": member.get("instance_id"),
                    "owned": [{"topic": topic, "partition": number} for topic, number in member.get("owned") or ()],
                    "user_data": None if data is None else base64.b64decode(data),
                    "assignor": scenario["assignor"],
                }
            )
        racks = scenario.get("racks") or {}
        for topic, count in scenario["topics"].items():
            topics.append(key | {"topic": topic, "partitions": count, "racks": racks.get(topic)})
    return pa.Table.from_pylist(members, MEMBERS), pa.Table.from_pylist(topics, TOPICS)


def solved(scenarios, moments=1):
    """What `solve` gives each member, topic by topic and each once; None where Kafka's assignor fails."""
    found = {}
    for number, scenario in enumerate(scenarios):
        result = solve(scenario)
        lists = None if "error" in result else {name: _on_wire(each) for name, each in result["assignment"].items()}
        found[f"g{number // moments}", number % moments] = lists
    return found


def _on_wire(pairs):
    by_topic: dict[str, dict[int, None]] = {}
    for topic, number in pairs:
        by_topic.setdefault(topic, {})[number] = None
    return [(topic, number) for topic, numbers in by_topic.items() for number in numbers]


def lists_of(rows, name="assigned"):
    """A list column of `Assigned.members` (rows as dictionaries), by group, moment and member."""
    found = {}
    for row in rows:
        at = row["observed_at"]
        moment = at if isinstance(at, int) else at.microsecond
        pairs = [(entry[c.TOPIC], number) for entry in row[name] for number in entry[c.PARTITIONS]]
        found.setdefault((row[c.GROUP_ID], moment), {})[row[c.MEMBER_ID]] = pairs
    return found
