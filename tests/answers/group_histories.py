"""Short histories of groups, written down state by state, as rows of a ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.answers.rows import wire

BEGIN = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
CLUSTER = "dev"


def second(number):
    return BEGIN + timedelta(seconds=number)


@dataclass
class History:
    """A group's states in order, and other rows about it. A member is `name`, or `name/instance/process`."""

    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    group: str = ""
    offset: int = 0

    def add(self, table, **row):
        self.rows.setdefault(table, []).append({"cluster_id": CLUSTER, "group_id": self.group} | row)
        return self

    @property
    def snapshot_id(self):
        return f"log/{CLUSTER}/{self.group}/{self.offset}"

    def state(self, at, number, members, topics="a", **more):
        """A record `at` seconds: members by name with what they are recorded to have, as `a:0,1 b:2`."""
        before = self.snapshot_id if self.offset else None
        self.offset += 1
        told = {"snapshot_id": self.snapshot_id, "offset": self.offset, "log_partition": 0}
        same = {"group_type": "classic", "snapshot_kind": "generation", "state": "Stable", "incarnation": 1}
        said = same | {"complete": True, "assignor": "cooperative-sticky", "shared_topics": topics.split()}
        said |= {"generation": number, "observed_at": second(at), "members": len(members)}
        self.add("group_snapshots", **(told | said | {"previous_snapshot_id": before} | more))
        for order, (name, recorded) in enumerate(members.items()):
            who, instance, process = [each or None for each in [*name.split("/"), None, None][:3]]
            row = {"member_id": who, "group_instance_id": instance, "client_id": process, "member_order": order}
            self.add("member_snapshots", **(told | row | {"recorded": wire(recorded)}))
        return self

    def finding(self, code, severity="warning", **more):
        """A row of `violations` about the last state."""
        about = {"snapshot_id": self.snapshot_id, "offset": self.offset, "evidence": f"{code} seen"}
        return self.add("violations", **(about | {"code": code, "severity": severity} | more))

    def result(self, moves, least, assignor="cooperative-sticky", verdict="exact", **more):
        """What `assign` made of the last state."""
        about = {"snapshot_id": self.snapshot_id, "scenario": "baseline", "round": 1, "outcome": "ASSIGNED"}
        told = {"moves": moves, "least_moves": least, "assignor": assignor, "verdict": verdict}
        return self.add("rebalances", **(about | {"protocol": "COOPERATIVE", "follow_up": False} | told | more))


def history(group):
    """An empty one."""
    return History(group=group)


def together(histories, **more):
    """The rows of all of them, for `ledgers.write`."""
    rows: dict[str, list[dict[str, Any]]] = {}
    for each in histories:
        for table, of_table in each.rows.items():
            rows.setdefault(table, []).extend(of_table)
    return rows | more


def listed(topic, *changes):
    """`listed("a", (0, 3), (60, 5))`: three partitions from the beginning, five after a minute; None: deleted."""
    return [
        {"cluster_id": CLUSTER, "topic": topic, "topic_id": topic, "partition_count": count, "valid_from": second(at)}
        for at, count in changes
    ]
