"""Convert groups as an admin client describes them at one moment to lines of a user's snapshot tables.

A description says which member is assigned what, but nothing of subscriptions, generations or claims, and anything may
have occurred between two descriptions: a snapshot from it is incomplete and supports no verdict. Only a Stable group
is reliable; during a rebalance, a broker returns assignments from before, from after, or none. An Empty group gets a
line only if the ledger has members of it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from groupledger.core.digest import digest
from groupledger.core.moments import from_millis, iso

STABLE, EMPTY = "Stable", "Empty"
PREFIX = "admin/"
"""Prefix of these snapshots' ids."""
TOPIC_IDS = Mapping[str, str | None]


class DescribedMember(NamedTuple):
    """A member, with the partitions (topic, number) that the coordinator has assigned to it."""

    member_id: str
    group_instance_id: str | None
    client_id: str | None
    host: str | None
    partitions: tuple[tuple[str, int], ...]


class DescribedGroup(NamedTuple):
    """A group. `group_type` is classic or consumer; `state` uses Kafka's words."""

    group_id: str
    group_type: str
    state: str
    assignor: str | None
    members: tuple[DescribedMember, ...]

    @property
    def digest(self) -> str:
        """Return a digest that is equal for the same members with the same partitions, in any order."""
        members = sorted((*each[:-1], sorted(each.partitions)) for each in self.members)
        return digest([self.group_type, self.assignor, members])[:16]


class LastDescribed(NamedTuple):
    """The ledger's last snapshot of a group from an admin client: its position, and the group's digest."""

    position: int
    digest: str


@dataclass(frozen=True, slots=True)
class DescribedLines:
    """Lines for `group_snapshots` and `member_snapshots`. `left_out` counts groups by why they have no line."""

    groups: tuple[bytes, ...]
    members: tuple[bytes, ...]
    left_out: Mapping[str, int]


def described_lines(
    groups: Iterable[DescribedGroup], before: Mapping[str, LastDescribed], topic_ids: TOPIC_IDS, at_ms: int
) -> DescribedLines:
    """Return lines for groups that differ from the ledger: Stable ones, and those that became Empty.

    A snapshot's position is its moment in milliseconds; if the clock went back, the position after the group's last.
    """
    group_lines, member_lines, left_out = list[bytes](), list[bytes](), Counter[str]()
    for group in sorted(groups):
        known = before.get(group.group_id)
        if group.state != STABLE and (group.state != EMPTY or known is None):
            left_out[f"group in state {group.state}"] += 1
        elif known is not None and known.digest == group.digest:
            left_out["unchanged group"] += 1
        else:
            position = at_ms if known is None else max(at_ms, known.position + 1)
            snapshot_id = f"{PREFIX}{position}/{group.digest}/{group.group_id}"
            group_lines.append(_line(_group_row(group, snapshot_id, position, at_ms)))
            ordered = sorted(group.members)
            member_lines += [_line(_member_row(each, snapshot_id, topic_ids)) for each in ordered]
    return DescribedLines(tuple(group_lines), tuple(member_lines), dict(left_out))


def described_in(snapshot_id: str) -> LastDescribed:
    """Parse a snapshot id written by `described_lines`."""
    _, position, last, _ = snapshot_id.split("/", 3)
    return LastDescribed(int(position), last)


def _group_row(group: DescribedGroup, snapshot_id: str, position: int, at_ms: int) -> dict[str, object]:
    return {
        "snapshot_id": snapshot_id,
        "group_id": group.group_id,
        "group_type": group.group_type,
        "offset": position,
        "observed_at": iso(from_millis(at_ms)),
        "state": group.state,
        "assignor": group.assignor,
        "complete": False,
        "members": len(group.members),
    }


def _member_row(member: DescribedMember, snapshot_id: str, topic_ids: TOPIC_IDS) -> dict[str, object]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in sorted(member.partitions):
        by_topic.setdefault(topic, []).append(partition)
    recorded = [
        {"topic_id": topic_ids.get(topic), "topic": topic, "partitions": partitions}
        for topic, partitions in by_topic.items()
    ]
    return {
        "snapshot_id": snapshot_id,
        "member_id": member.member_id,
        "group_instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "host": member.host,
        "recorded": recorded,
    }


def _line(row: Mapping[str, object]) -> bytes:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
