"""Histories of groups in a line each, as rows of a ledger: what its members had, one state after another.

A state is at the minute of its number, and its offset is the same number.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.answers.rows import at, wire


@dataclass
class History:
    """`History("pay").state("m:a:0,1 n:").state("m:a:0 n:a:1")`: states, their members, and what changed hands."""

    group: str
    cluster: str = "dev"
    kind: str = "classic"
    topics: tuple[str, ...] = ("a",)
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _held: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    _ids: dict[str, str | None] = field(default_factory=dict)
    _last: str | None = None

    def state(self, number: int, text: str | None, **more: Any) -> History:
        """The members after `number`, each with its partitions: `m a:0,1 | n`; None: the group is empty."""
        members = [part.split(" ", 1) for part in text.split(" | ")] if text else []
        snapshot_id = f"log/{self.cluster}/{self.group}/{number}"
        key = {"cluster_id": self.cluster, "group_id": self.group, "snapshot_id": snapshot_id, "offset": number}
        epoch = more.get("group_epoch", number)
        counted = {"generation": number} if self.kind == "classic" else {"group_epoch": epoch, "target_epoch": epoch}
        kind = ("generation" if self.kind == "classic" else "fold") if members else "empty"
        said = {"group_type": self.kind, "snapshot_kind": kind, "observed_at": at(number), "log_partition": 0}
        said |= {"assignor": "range", "state": "Stable" if members else "Empty", "members": len(members)}
        said |= {"incarnation": 1, "shared_topics": list(self.topics) if members else None, "subscribed_topics": []}
        said |= {"previous_snapshot_id": self._last, **counted, **more}
        self._add("group_snapshots", key | said)
        for order, (name, *held) in enumerate(members):
            name, _, instance = name.partition("/")
            of_one: dict[str, Any] = {"member_order": order, "member_id": name, "group_instance_id": instance or None}
            self._add("member_snapshots", key | of_one | {"recorded": wire(held[0]) if held else None})
        self._change(key | {"at": said["observed_at"], "log_partition": 0, "incarnation": said["incarnation"]}, members)
        self._last = snapshot_id
        return self

    def _change(self, key: dict[str, Any], members: list[list[str]]) -> None:
        has = {
            (topic, number, name.partition("/")[0])
            for name, *held in members
            for entry in (wire(held[0]) if held else [])
            for topic, number in ((entry["topic"], number) for number in entry["partitions"])
        }
        for _, *held in members:
            self._ids |= {entry["topic"]: entry["topic_id"] for entry in (wire(held[0]) if held else [])}
        had = {(*place, owner): since for place, owners in self._held.items() for owner, since in owners.items()}
        lost = {each: had[each] for each in sorted(had.keys() - has)}
        for topic, number, name in sorted(has - had.keys()):
            source = next((each for each in lost if each[:2] == (topic, number)), None)
            since = lost.pop(source) if source else None
            place: dict[str, Any] = {"topic": topic, "topic_id": self._ids.get(topic), "partition": number}
            place["held_since"] = since
            moved: dict[str, Any] = {"from_member_id": source and source[2], "to_member_id": name}
            self._add("ownership_changes", key | place | moved)
        for (topic, number, name), since in lost.items():
            place = {"topic": topic, "topic_id": self._ids.get(topic), "partition": number}
            moved = place | {"from_member_id": name, "to_member_id": None}
            self._add("ownership_changes", key | moved | {"held_since": since})
        self._held = {}
        for topic, number, name in has:
            self._held.setdefault((topic, number), {})[name] = had.get((topic, number, name), key["at"])

    def _add(self, table: str, row: dict[str, Any]) -> None:
        self.rows.setdefault(table, []).append(row)


def in_words(members):
    """Member -> numbers of partitions of topic `t`, as `History.state` takes it."""
    text = [f"{name} t:{','.join(map(str, sorted(has)))}" if has else name for name, has in sorted(members.items())]
    return " | ".join(text) or None


def listed(topic, count, minute=0, cluster="dev", topic_id=None):
    """A change in a topic listing; a count of None is a deletion."""
    known = {"cluster_id": cluster, "topic": topic, "topic_id": topic_id, "partition_count": count}
    return known | {"valid_from": at(minute)}


def rows_of(*histories, **more):
    """All rows of the histories, by table."""
    found: dict[str, list[dict[str, Any]]] = {name: list(rows) for name, rows in more.items()}
    for history in histories:
        for table, rows in history.rows.items():
            found.setdefault(table, []).extend(rows)
    return found
