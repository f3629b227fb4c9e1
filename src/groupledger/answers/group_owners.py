"""Who had the partitions of one group, all of them over time; and how large the group was."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

from groupledger.answers.recorded_states import loads, recorded
from groupledger.answers.rows import records
from groupledger.answers.tenures import spans

if TYPE_CHECKING:
    from datetime import datetime

    from groupledger.answers.rows import Reader, Record
    from groupledger.answers.scope import Scope
    from groupledger.answers.tenures import OwnerSpan
    from groupledger.answers.topic_partitions import NamedPartition

_PLACE = "coalesce(t.topic, concat('id:', t.topic_id))"


@dataclass(frozen=True, slots=True)
class PartitionOwners:
    """The owners of a partition, one after another."""

    place: NamedPartition
    spans: tuple[OwnerSpan, ...]


@dataclass(frozen=True, slots=True)
class GroupOwners:
    """Of how many partitions the record of a group tells; their owners, unless that are too many.

    `names`: member id -> the instance id, which outlives a restart; other members are not in it.
    """

    partitions: int
    changes: int
    owners: tuple[PartitionOwners, ...] | None
    names: dict[str, str]


@dataclass(frozen=True, slots=True)
class Size:
    """A record of a group: its members, how many partitions they had, and the most and least of a member."""

    at: datetime
    members: int
    assigned: int
    most: int
    least: int


def group_owners(reader: Reader, of_group: Scope, most_partitions: int, most_changes: int) -> GroupOwners:
    """Owners from the beginning of the record to the end of the period, where partitions and changes are that few."""
    condition, values = of_group.of_groups("t.")
    if of_group.until is not None:
        condition, values = f"{condition} AND t.at < :until", values | {"until": of_group.until}
    changes = f"FROM current_ownership_changes t WHERE {condition} AND (t.topic IS NOT NULL OR t.topic_id IS NOT NULL)"
    places = f"SELECT {_PLACE} AS topic, t.partition, count(*) AS n {changes} GROUP BY {_PLACE}, t.partition"
    [counted] = records(
        reader, f"SELECT count(*) AS places, coalesce(sum(p.n), 0) AS changes FROM ({places}) p", **values
    )
    if counted["places"] > most_partitions or counted["changes"] > most_changes:
        return GroupOwners(counted["places"], int(counted["changes"]), None, {})
    rows = records(
        reader,
        f"SELECT {_PLACE} AS topic, t.partition, t.at, t.offset, t.held_since, t.from_member_id, t.to_member_id, "
        f"t.snapshot_id {changes} ORDER BY 1, 2, 4, 6 NULLS LAST, 7 NULLS LAST",
        **values,
    )
    key = of_group.cluster or "", of_group.group or "", None
    owners = tuple(
        PartitionOwners(place, tuple(spans(key, (), list(of_one))))
        for place, of_one in groupby(rows, lambda row: (row["topic"], row["partition"]))
    )
    return GroupOwners(counted["places"], int(counted["changes"]), owners, _names(reader, of_group))


def _names(reader: Reader, of_group: Scope) -> dict[str, str]:
    condition, values = of_group.of_groups("t.")
    rows: list[Record] = records(
        reader,
        "SELECT DISTINCT t.member_id, t.group_instance_id FROM current_member_snapshots t "
        f"WHERE {condition} AND t.group_instance_id IS NOT NULL ORDER BY 1, 2",
        **values,
    )
    return {row["member_id"]: row["group_instance_id"] for row in rows}


def sizes(reader: Reader, of_group: Scope, limit: int) -> tuple[tuple[Size, ...], int]:
    """The last records of the period in order, and how many there are."""
    of_records, values = recorded(of_group)
    newest = (
        f"SELECT r.*, count(*) OVER () AS records FROM ({of_records}) r "
        f"ORDER BY r.offset DESC, r.snapshot_id DESC LIMIT {limit}"
    )
    rows = records(
        reader,
        "SELECT s.observed_at, s.members, s.records, coalesce(l.total, 0) AS total, coalesce(l.most, 0) AS most, "
        "CASE WHEN coalesce(l.owners, 0) < s.members THEN 0 ELSE coalesce(l.least, 0) END AS least "
        f"FROM ({newest}) s LEFT JOIN ({loads(of_group, newest)}) l ON l.snapshot_id = s.snapshot_id "
        "ORDER BY s.offset, s.snapshot_id",
        **values,
    )
    found = tuple(Size(row["observed_at"], row["members"], row["total"], row["most"], row["least"]) for row in rows)
    return found, rows[0]["records"] if rows else 0
